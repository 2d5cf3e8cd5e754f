"""Sorts and exchanges of the items of a block's threads, or of a warp's lanes: `cuda.coop`.

Items go through `buffer(n, x)`, the scratch of `coop.py` as an array, or through `warp_buffer(n, x)`, which has a part
for each group of lanes: a group synchronizes its own lanes before they store there. A thread's array has `count` items,
which are consecutive in the order of the threads (blocked), or distributed to the threads in round-robin order
(striped).
"""

import numpy as np
from weft import cuda


def coop_wait(lanes):
    """Synchronize the block, or some lanes of a warp."""
    if lanes is None:
        cuda.syncthreads()
    else:
        cuda.syncwarp(lanes)


# ---- exchanges ------------------------------------------------------------------------------------------------------


def coop_padded(k, count: known):
    """The padded index of an item, which avoids bank conflicts for strides that are powers of two."""
    if count > 4:
        return k + (k >> 5)
    return k


def coop_room(count: known):
    """The number of slots of memory for the items of a block, plus one."""
    if count > 4:
        return most_threads() * count + (most_threads() * count >> 5) + 1
    return most_threads() * count + 1


def coop_put(memory, items, first, step, count: known):
    """Store a thread's items at the stride `step`."""
    for k in range(count):
        memory[coop_padded(np.uint32(first + k * step), count)] = items[k]


def coop_get(memory, items, first, step, count: known):
    """Load a thread's items at the stride `step`."""
    for k in range(count):
        items[k] = memory[coop_padded(np.uint32(first + k * step), count)]


def coop_block_striped_to_blocked(items, count: known = None):
    """Move the item with the index `k * threads + t` from item `k` of thread `t` to the index `t * count + k`."""
    memory = buffer(coop_room(count), items[0])
    rank = block_thread_rank()
    coop_put(memory, items, rank, block_num_threads(), count)
    cuda.syncthreads()
    coop_get(memory, items, rank * count, 1, count)
    cuda.syncthreads()


def coop_block_blocked_to_striped(items, count: known = None):
    """The inverse."""
    memory = buffer(coop_room(count), items[0])
    rank = block_thread_rank()
    coop_put(memory, items, rank * count, 1, count)
    cuda.syncthreads()
    coop_get(memory, items, rank, block_num_threads(), count)
    cuda.syncthreads()


def coop_scatter(memory, items, ranks, count: known):
    """Stores a thread's items at their target indices."""
    for k in range(count):
        memory[coop_padded(np.uint32(ranks[k]), count)] = items[k]


def coop_block_scatter_to_blocked(items, ranks, count: known = None):
    """Item `k` moves to the index `ranks[k]` of the blocked order."""
    memory = buffer(coop_room(count), items[0])
    coop_scatter(memory, items, ranks, count)
    cuda.syncthreads()
    coop_get(memory, items, block_thread_rank() * count, 1, count)
    cuda.syncthreads()


def coop_block_scatter_to_striped(items, ranks, count: known = None):
    """The same for the striped order."""
    memory = buffer(coop_room(count), items[0])
    coop_scatter(memory, items, ranks, count)
    cuda.syncthreads()
    coop_get(memory, items, block_thread_rank(), block_num_threads(), count)
    cuda.syncthreads()


def coop_group_size(threads, lane):
    """The number of lanes of the thread's group."""
    return lane + coop_left(threads, lane)


def coop_warp_striped_to_blocked(items, threads=32, count: known = None):
    """The same for the lanes of a group."""
    memory = warp_buffer(most_threads() * count, items[0])
    lanes, lane = coop_group(threads)
    size, base = coop_group_size(threads, lane), (block_thread_rank() - lane) * count
    cuda.syncwarp(lanes)
    for k in range(count):
        memory[np.uint32(base + k * size + lane)] = items[k]
    cuda.syncwarp(lanes)
    for k in range(count):
        items[k] = memory[np.uint32(base + lane * count + k)]
    cuda.syncwarp(lanes)


def coop_warp_blocked_to_striped(items, threads=32, count: known = None):
    """The inverse."""
    memory = warp_buffer(most_threads() * count, items[0])
    lanes, lane = coop_group(threads)
    size, base = coop_group_size(threads, lane), (block_thread_rank() - lane) * count
    cuda.syncwarp(lanes)
    for k in range(count):
        memory[np.uint32(base + lane * count + k)] = items[k]
    cuda.syncwarp(lanes)
    for k in range(count):
        items[k] = memory[np.uint32(base + k * size + lane)]
    cuda.syncwarp(lanes)


# ---- sorts by merging -----------------------------------------------------------------------------------------------


def coop_precedes(a, b, less):
    """Whether a key precedes another; NaN comes last."""
    if less is None:
        if isinstance(a, float):
            return a < b or (b != b and a == a)
        return a < b
    return bool(less(a, b))


def coop_change_places(keys, values, less, k):
    """Swap two adjacent items if the second precedes the first."""
    if coop_precedes(keys[k + 1], keys[k], less):
        key = keys[k]
        keys[k] = keys[k + 1]
        keys[k + 1] = key
        if values is not None:
            value = values[k]
            values[k] = values[k + 1]
            values[k + 1] = value


def coop_sort_own(keys, values, less, valid, own, count: known):
    """Sort a thread's first items by odd-even transposition, which is stable.

    The loop over pairs of rounds is not unrolled; the inner loops have constant indices, so that items are in
    registers.
    """
    if count == 1:
        return
    for _ in range((count + 1) // 2):
        for k in range(0, count - 1, 2):
            if valid is None or k + 1 < own:
                coop_change_places(keys, values, less, k)
        for k in range(1, count - 1, 2):
            if valid is None or k + 1 < own:
                coop_change_places(keys, values, less, k)


def coop_split(memory, a, n_a, b, n_b, diagonal, less, count: known):
    """Of the first `diagonal` items of two merged lists, the number of items from the first list."""
    low, high = max(np.int32(diagonal - n_b), np.int32(0)), min(diagonal, n_a)
    last = np.int32(b + diagonal - 1)
    while low < high:
        middle = np.int32(np.uint32(low + high) >> np.uint32(1))
        x = memory[coop_padded(np.uint32(last - middle), count)]
        if coop_precedes(x, memory[coop_padded(np.uint32(a + middle), count)], less):
            high = middle
        else:
            low = np.int32(middle + 1)
    return low


def coop_next(memory, at, end, lanes, count: known):
    """The item at an index of a list, clamped to the list for a group; for a block it may be past the end."""
    if lanes is not None:
        at = max(min(at, np.int32(end - 1)), np.int32(0))
    return memory[coop_padded(np.uint32(at), count)]


def coop_merge(keys, values, less, valid, total, rank, base, memory, more, lanes, count: known):
    """Sort the first items of a block or of a group: each thread its own, then merge lists of doubling length.

    A thread finds the start of its part of the merged list in both lists, and merges from there. It holds the next item
    of each list, and replaces the one that it has taken. All items are valid if `valid` is None.
    """
    zero, first = np.int32(0), np.int32(rank * count)
    coop_sort_own(keys, values, less, valid, np.int32(total - first), count)
    merged = np.int32(1)
    width = np.int32(count)
    while width < total:
        for k in range(count):
            at = coop_padded(np.uint32(base + first + k), count)
            memory[at] = keys[k]
            if values is not None:
                more[at] = values[k]
        coop_wait(lanes)
        begin = np.int32(np.int32(rank & np.int32(-2 * merged)) * count)
        left = np.int32(total - begin)
        n_a = min(width, max(left, zero))
        n_b = min(width, max(np.int32(left - width), zero))
        i = np.int32(base + begin)
        end_i = np.int32(i + n_a)
        end_j = np.int32(end_i + n_b)
        diagonal = min(np.int32(first - begin), np.int32(n_a + n_b))
        split = coop_split(memory, i, n_a, end_i, n_b, diagonal, less, count)
        i, j = np.int32(i + split), np.int32(end_i + diagonal - split)
        one, other = coop_next(memory, i, end_i, lanes, count), coop_next(memory, j, end_j, lanes, count)
        for k in range(count):
            if valid is None or i < end_i or j < end_j:
                second = j < end_j
                if second and i < end_i:
                    second = coop_precedes(other, one, less)
                at = j if second else i
                keys[k] = other if second else one
                if values is not None:
                    values[k] = more[coop_padded(np.uint32(at), count)]
                at = np.int32(at + 1)
                i, j = i if second else at, at if second else j
                following = coop_next(memory, at, end_j if second else end_i, lanes, count)
                one, other = one if second else following, following if second else other
        coop_wait(lanes)
        merged, width = np.int32(2 * merged), np.int32(2 * width)


def coop_total(count: known, valid, threads):
    """The number of sorted items."""
    if valid is None:
        return np.int32(count * threads)
    return np.int32(min(max(valid, 0), count * threads))


def coop_block_merge_sort_keys(keys, less=None, valid=None, count: known = None):
    """Sorts the items of a block."""
    if isinstance(keys, np.ndarray):
        memory = buffer(coop_room(count), keys[0])
        total = coop_total(count, valid, block_num_threads())
        coop_merge(keys, None, less, valid, total, block_thread_rank(), 0, memory, None, None, count)
        return None
    own = cuda.local.array(1, type(keys))
    own[0] = keys
    memory = buffer(coop_room(1), keys)
    total = coop_total(1, valid, block_num_threads())
    coop_merge(own, None, less, valid, total, block_thread_rank(), 0, memory, None, None, 1)
    return own[0]


def coop_block_merge_sort_pairs(keys, values, less=None, valid=None, count: known = None):
    """Sorts the items of a block by their keys."""
    if isinstance(keys, np.ndarray):
        memory = buffer(coop_room(count), keys[0])
        more = buffer(coop_room(count), values[0], coop_room(count), keys[0])
        total = coop_total(count, valid, block_num_threads())
        coop_merge(keys, values, less, valid, total, block_thread_rank(), 0, memory, more, None, count)
        return None
    own, beside = cuda.local.array(1, type(keys)), cuda.local.array(1, type(values))
    own[0], beside[0] = keys, values
    memory = buffer(coop_room(1), keys)
    more = buffer(coop_room(1), values, coop_room(1), keys)
    total = coop_total(1, valid, block_num_threads())
    coop_merge(own, beside, less, valid, total, block_thread_rank(), 0, memory, more, None, 1)
    return own[0], beside[0]


def coop_warp_merge_sort_keys(keys, less=None, threads=32, valid=None, count: known = None):
    """Sorts the items of a group of lanes."""
    lanes, lane = coop_group(threads)
    size, rank = coop_group_size(threads, lane), block_thread_rank() - lane
    if isinstance(keys, np.ndarray):
        memory = warp_buffer(coop_room(count), keys[0])
        cuda.syncwarp(lanes)
        total = coop_total(count, valid, size)
        coop_merge(keys, None, less, valid, total, lane, rank * count, memory, None, lanes, count)
        return None
    own = cuda.local.array(1, type(keys))
    own[0] = keys
    memory = warp_buffer(coop_room(1), keys)
    cuda.syncwarp(lanes)
    coop_merge(own, None, less, valid, coop_total(1, valid, size), lane, rank, memory, None, lanes, 1)
    return own[0]


# ---- sorts by digits ------------------------------------------------------------------------------------------------


def coop_bits(x, descending):
    """The bits of a number, in an order-preserving form; a NaN comes first or last, by its sign."""
    if isinstance(x, float):
        if np.finfo(type(x)).bits == 64:
            bits = x.view(np.uint64)
            top = np.uint64(1 << 63)
        elif np.finfo(type(x)).bits == 32:
            bits = x.view(np.uint32)
            top = np.uint32(1 << 31)
        else:
            bits = x.view(np.uint16)
            top = np.uint16(1 << 15)
        if bits & top != 0:
            bits = type(bits)(~bits)
        else:
            bits = type(bits)(bits | top)
    else:
        if np.iinfo(type(x)).bits == 64:
            bits = np.uint64(x)
        elif np.iinfo(type(x)).bits == 32:
            bits = np.uint32(x)
        elif np.iinfo(type(x)).bits == 16:
            bits = np.uint16(x)
        else:
            bits = np.uint8(x)
        if np.iinfo(type(x)).min < 0:
            bits = type(bits)(bits ^ type(bits)(1 << (np.iinfo(type(x)).bits - 1)))
    if descending:
        bits = type(bits)(~bits)
    return bits


def coop_of_bits(bits, x, descending):
    """The number of the type of `x` with these bits."""
    if descending:
        bits = type(bits)(~bits)
    top = type(bits)(1 << (np.iinfo(type(bits)).bits - 1))
    if isinstance(x, float):
        if bits & top != 0:
            bits = type(bits)(bits ^ top)
        else:
            bits = type(bits)(~bits)
        return bits.view(type(x))
    if np.iinfo(type(x)).min < 0:
        bits = type(bits)(bits ^ top)
    return type(x)(bits)


def coop_width(x):
    """The number of bits of a number."""
    if isinstance(x, float):
        return np.finfo(type(x)).bits
    return np.iinfo(type(x)).bits


def coop_digit_place(bits, x, descending, bit, mask, threads, rank):
    """The counter of a thread for the digit of a number of the type of `x`; both zeros have the same digits."""
    if isinstance(x, float):
        zero = type(bits)(1 << (np.iinfo(type(bits)).bits - 1))
        if descending:
            if bits == zero:
                bits = type(bits)(bits - 1)
        elif bits == zero - 1:
            bits = zero
    digit = np.uint32(bits >> bit) & mask
    word = coop_padded(np.uint32((digit & np.uint32(7)) * threads + rank), 8)
    return np.uint32(2 * word + (digit >> np.uint32(3)))


def coop_radix(keys, values, descending, begin, end, count: known):
    """Sorts the items of a block by their bits, four at a time, from the lowest on.

    Each thread counts its digits; a scan of the counts over digits and threads gives the target of each item. A word
    has two counts, of a digit below 8 and of that digit plus 8. The slots of the scan precede them.
    """
    items, places = cuda.local.array(count, type(coop_bits(keys[0], False))), cuda.local.array(count, np.uint32)
    counters = buffer(most_threads() * 8 + most_threads() // 4 + 1, np.uint32(0), 264, np.uint32(0))
    counts = buffer(most_threads() * 16 + most_threads() // 2 + 2, np.uint16(0), 264, np.uint32(0))
    room = coop_room(count)
    memory = buffer(room, items[0], 264, np.uint32(0))
    more = None
    if values is not None:
        more = buffer(room, values[0], 264, np.uint32(0), room, items[0])
    rank, threads = np.uint32(block_thread_rank()), np.uint32(block_num_threads())
    for k in range(count):
        items[k] = coop_bits(keys[k], descending)
    for bit in range(begin, end, 4):
        mask = np.uint32((1 << min(end - bit, 4)) - 1)
        # Its own, those of its digits.
        for k in range(8):
            counters[coop_padded(np.uint32(k * threads + rank), 8)] = 0
        for k in range(count):
            at = coop_digit_place(items[k], keys[0], descending, bit, mask, threads, rank)
            before = counts[at]
            places[k] = before
            counts[at] = before + 1
        cuda.syncthreads()
        here = np.uint32(0)
        for k in range(8):
            here = np.uint32(here + counters[coop_padded(np.uint32(rank * 8 + k), 8)])
        start, total = coop_exclusive_sum_of(here, True)
        start = np.uint32(start + (total << 16))
        for k in range(8):
            at = coop_padded(np.uint32(rank * 8 + k), 8)
            word = counters[at]
            counters[at] = start
            start = np.uint32(start + word)
        cuda.syncthreads()
        for k in range(count):
            places[k] += counts[coop_digit_place(items[k], keys[0], descending, bit, mask, threads, rank)]
        cuda.syncthreads()
        for k in range(count):
            place = coop_padded(places[k], count)
            memory[place] = items[k]
            if values is not None:
                more[place] = values[k]
        cuda.syncthreads()
        coop_get(memory, items, rank * count, 1, count)
        if values is not None:
            coop_get(more, values, rank * count, 1, count)
        cuda.syncthreads()
    for k in range(count):
        keys[k] = coop_of_bits(items[k], keys[0], descending)


def coop_last_bit(x, end_bit):
    """The end of the range of bits that are compared."""
    if end_bit is None:
        return coop_width(x)
    return end_bit


def coop_radix_keys(keys, descending, begin_bit, end_bit, count: known):
    """For an array of items, or for one."""
    if isinstance(keys, np.ndarray):
        coop_radix(keys, None, descending, begin_bit, coop_last_bit(keys[0], end_bit), count)
        return None
    own = cuda.local.array(1, type(keys))
    own[0] = keys
    coop_radix(own, None, descending, begin_bit, coop_last_bit(keys, end_bit), 1)
    return own[0]


def coop_radix_pairs(keys, values, descending, begin_bit, end_bit, count: known):
    """For arrays of items, or for single ones."""
    if isinstance(keys, np.ndarray):
        coop_radix(keys, values, descending, begin_bit, coop_last_bit(keys[0], end_bit), count)
        return None
    own, beside = cuda.local.array(1, type(keys)), cuda.local.array(1, type(values))
    own[0], beside[0] = keys, values
    coop_radix(own, beside, descending, begin_bit, coop_last_bit(keys, end_bit), 1)
    return own[0], beside[0]


def coop_block_radix_sort_keys(keys, begin_bit=0, end_bit=None, count: known = None):
    """Sorts the items of a block in ascending order."""
    return coop_radix_keys(keys, False, begin_bit, end_bit, count)


def coop_block_radix_sort_keys_descending(keys, begin_bit=0, end_bit=None, count: known = None):
    """In descending order."""
    return coop_radix_keys(keys, True, begin_bit, end_bit, count)


def coop_block_radix_sort_pairs(keys, values, begin_bit=0, end_bit=None, count: known = None):
    """Sorts the items of a block by their keys in ascending order."""
    return coop_radix_pairs(keys, values, False, begin_bit, end_bit, count)


def coop_block_radix_sort_pairs_descending(keys, values, begin_bit=0, end_bit=None, count: known = None):
    """In descending order."""
    return coop_radix_pairs(keys, values, True, begin_bit, end_bit, count)
