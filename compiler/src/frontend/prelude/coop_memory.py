"""Cooperative loads and stores of the items of a block's threads: `cuda.coop.block.load` and `store`.

A thread's array has `count` items. Blocked, item `k` of thread `t` is the element `t * count + k`; striped, it is `k *
threads + t`, so that adjacent threads access adjacent elements. To convert between both, the items go through shared
memory: of the block (`buffer`), or of each warp separately (`warp_buffer`).
"""

import numpy as np
from weft import cuda


def coop_limit(valid, count: known):
    """The number of valid elements."""
    if valid is None:
        return None
    return coop_total(count, valid, block_num_threads())


def coop_take(source, items, first, step, valid, default, count: known):
    """Load items at the stride `step`; an invalid one gets the default, if there is one."""
    for k in range(count):
        at = first + k * step
        if valid is None:
            items[k] = source[np.uint32(at)]
        elif at < valid:
            items[k] = source[np.uint32(at)]
        elif default is not None:
            items[k] = default


def coop_give(target, items, first, step, valid, count: known):
    """Store items at the stride `step`, if they are valid."""
    for k in range(count):
        at = first + k * step
        if valid is None:
            target[np.uint32(at)] = items[k]
        elif at < valid:
            target[np.uint32(at)] = items[k]


def coop_settle(items, kept, first, valid, default, count: known):
    """Selects the valid ones of blocked items; the others get the default, or remain unchanged."""
    for k in range(count):
        if valid is None:
            items[k] = kept[k]
        elif first + k < valid:
            items[k] = kept[k]
        elif default is not None:
            items[k] = default


def coop_lane_places(count: known):
    """The index of the first element of the thread's warp, the thread's lane, and the warp's number of lanes."""
    rank = block_thread_rank()
    lane = np.int32(rank & 31)
    lanes = np.int32(min(block_num_threads() - (rank - lane), 32))
    return (rank - lane) * count, lane, lanes


def coop_take_wide(wide, items, rank, count: known):
    """Loads a thread's items as vectors of four, or two."""
    if count % 4 == 0:
        for k in range(count // 4):
            four = wide[np.uint32(rank * (count // 4) + k)]
            items[4 * k], items[4 * k + 1], items[4 * k + 2], items[4 * k + 3] = four.x, four.y, four.z, four.w
    else:
        for k in range(count // 2):
            two = wide[np.uint32(rank * (count // 2) + k)]
            items[2 * k], items[2 * k + 1] = two.x, two.y


def coop_give_wide(wide, items, rank, count: known):
    """Stores a thread's items as vectors."""
    if count % 4 == 0:
        for k in range(count // 4):
            four = vector(wide, items[4 * k], items[4 * k + 1], items[4 * k + 2], items[4 * k + 3])
            wide[np.uint32(rank * (count // 4) + k)] = four
    else:
        for k in range(count // 2):
            wide[np.uint32(rank * (count // 2) + k)] = vector(wide, items[2 * k], items[2 * k + 1])


def coop_vectorized(memory, valid, count: known):
    """On GPUs, the array as an array of vectors, if it is aligned and all elements are valid."""
    if valid is None:
        return vectors(memory, count)
    return None


def coop_block_load(source, items, valid=None, default=None, algorithm="direct", count: known = None):
    """Loads the first elements of an array, one for each item of the block."""
    rank, threads, limit = block_thread_rank(), block_num_threads(), coop_limit(valid, count)
    if algorithm == "striped":
        coop_take(source, items, rank, threads, limit, default, count)
    elif algorithm == "transpose":
        memory = buffer(most_threads() * count + (most_threads() * count >> 5) + 1, items[0])
        own = cuda.local.array(count, type(items[0]))
        coop_take(source, own, rank, threads, limit, None, count)
        coop_put(memory, own, rank, threads, count)
        cuda.syncthreads()
        coop_get(memory, own, rank * count, 1, count)
        coop_settle(items, own, rank * count, limit, default, count)
        cuda.syncthreads()
    elif algorithm == "warp_transpose":
        memory = warp_buffer(most_threads() * count, items[0])
        cuda.syncwarp()
        own = cuda.local.array(count, type(items[0]))
        first, lane, lanes = coop_lane_places(count)
        coop_take(source, own, first + lane, lanes, limit, None, count)
        for k in range(count):
            memory[np.uint32(first + k * lanes + lane)] = own[k]
        cuda.syncwarp()
        for k in range(count):
            own[k] = memory[np.uint32(first + lane * count + k)]
        coop_settle(items, own, first + lane * count, limit, default, count)
        cuda.syncwarp()
    elif algorithm == "vectorize":
        wide = coop_vectorized(source, valid, count)
        if wide is None:
            coop_take(source, items, rank * count, 1, limit, default, count)
        elif is_aligned(wide):
            coop_take_wide(wide, items, rank, count)
        else:
            # Without the fences, LLVM would merge both branches and use scalar loads in both.
            cuda.threadfence_block()
            coop_take(source, items, rank * count, 1, limit, default, count)
            cuda.threadfence_block()
    else:
        coop_take(source, items, rank * count, 1, limit, default, count)


def coop_store_items(target, items, valid, algorithm, count: known):
    """Stores the items to the first elements of an array."""
    rank, threads, limit = block_thread_rank(), block_num_threads(), coop_limit(valid, count)
    if algorithm == "striped":
        coop_give(target, items, rank, threads, limit, count)
    elif algorithm == "transpose":
        memory = buffer(most_threads() * count + (most_threads() * count >> 5) + 1, items[0])
        own = cuda.local.array(count, type(items[0]))
        coop_put(memory, items, rank * count, 1, count)
        cuda.syncthreads()
        coop_get(memory, own, rank, threads, count)
        coop_give(target, own, rank, threads, limit, count)
        cuda.syncthreads()
    elif algorithm == "warp_transpose":
        memory = warp_buffer(most_threads() * count, items[0])
        cuda.syncwarp()
        own = cuda.local.array(count, type(items[0]))
        first, lane, lanes = coop_lane_places(count)
        for k in range(count):
            memory[np.uint32(first + lane * count + k)] = items[k]
        cuda.syncwarp()
        for k in range(count):
            own[k] = memory[np.uint32(first + k * lanes + lane)]
        coop_give(target, own, first + lane, lanes, limit, count)
        cuda.syncwarp()
    elif algorithm == "vectorize":
        wide = coop_vectorized(target, valid, count)
        if wide is None:
            coop_give(target, items, rank * count, 1, limit, count)
        elif is_aligned(wide):
            coop_give_wide(wide, items, rank, count)
        else:
            # As in `coop_block_load`.
            cuda.threadfence_block()
            coop_give(target, items, rank * count, 1, limit, count)
            cuda.threadfence_block()
    else:
        coop_give(target, items, rank * count, 1, limit, count)


def coop_block_store(target, items, valid=None, algorithm="direct", count: known = None):
    """An array of items, or one."""
    if isinstance(items, np.ndarray):
        coop_store_items(target, items, valid, algorithm, count)
    else:
        own = cuda.local.array(1, type(items))
        own[0] = items
        coop_store_items(target, own, valid, algorithm, 1)
