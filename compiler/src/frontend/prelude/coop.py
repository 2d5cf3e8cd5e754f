"""Collective operations of the threads of a block: `cuda.coop`.

A function `coop_block_sum` is the row `weft.cuda.coop.block.sum`. Threads are ordered by their linear index, and lanes
are reduced and scanned by shuffles over 1, 2, 4, 8 and 16 of them, so that functions need not commute.

Warps exchange values through two buffers in shared memory, which all calls share. A call may write the scratch from its
start, and does not access it after its last barrier; it writes the cells after its first barrier and reads them after
the next one. So two consecutive calls need no barrier between them. `slot(k, x)`, `put_slot(k, x)` and `cell(k, x)`,
`put_cell(k, x)` access 32 values in them, `rake(k, x)`, `put_rake(k, x)` and `kept(k, x)`, `put_kept(k, x)` 264.

On the CPU (`is_serial()`) each thread writes its value to a buffer with an element for each thread
(`put_staged(k, x)`). After a barrier the first thread combines the values in loops, in the order of the shuffles, so
that all devices round alike. It writes scans to another such buffer (`put_prefix(k, x)`), which follows the rules of
the cells.

A thread's value is a number, a composed value, or an array of several items, which are consecutive in the order of the
threads. `like(y, x)` is a value converted to the type of `x`.
"""

import numpy as np
from weft import cuda


def coop_add(a, b):
    """The sum."""
    return a + b


def coop_smaller(a, b):
    """The smaller one."""
    return min(a, b)


def coop_larger(a, b):
    """The larger one."""
    return max(a, b)


def coop_zero(x):
    """The identity of a sum."""
    return type(x)(0)


def coop_same(x):
    """The identity of a minimum or maximum over values that include `x`."""
    return x


def coop_one(x, op):
    """A thread's value: the reduction of its items, if it has several."""
    if isinstance(x, np.ndarray):
        quarter = len(x) >> 2
        if quarter < 2:
            total = x[0]
            for k in range(1, len(x)):
                total = like(op(total, x[k]), total)
            return total
        # Four independent partial results: an operation depends on the previous one.
        a, b, c, d = x[0], x[quarter], x[2 * quarter], x[3 * quarter]
        for k in range(1, quarter):
            a = like(op(a, x[k]), a)
            b = like(op(b, x[quarter + k]), a)
            c = like(op(c, x[2 * quarter + k]), a)
            d = like(op(d, x[3 * quarter + k]), a)
        a = like(op(like(op(a, b), a), like(op(c, d), a)), a)
        for k in range(4 * quarter, len(x)):
            a = like(op(a, x[k]), a)
        return a
    return x


def coop_counted(x):
    """A thread's part of a sum: bools are counted."""
    if isinstance(x, np.ndarray) and isinstance(x[0], bool):
        total = np.int32(x[0])
        for k in range(1, len(x)):
            total += np.int32(x[k])
        return total
    x = coop_one(x, coop_add)
    if isinstance(x, bool):
        return np.int32(x)
    return x


def coop_down1(x, op, left, step):
    """Combine the value of `step` lanes with that of the next `step`; `left` lanes are left, with this one."""
    other = cuda.shfl_down_sync(0xFFFFFFFF, x, step)
    if step < left:
        x = like(op(x, other), x)
    return x


def coop_down(x, op, left):
    """The combined values from the thread's own lane on."""
    x = coop_down1(x, op, left, 1)
    x = coop_down1(x, op, left, 2)
    x = coop_down1(x, op, left, 4)
    x = coop_down1(x, op, left, 8)
    return coop_down1(x, op, left, 16)


def coop_all_down(x, op):
    """The combined values of all 32 lanes, in the first lane."""
    x = like(op(x, cuda.shfl_down_sync(0xFFFFFFFF, x, 1)), x)
    x = like(op(x, cuda.shfl_down_sync(0xFFFFFFFF, x, 2)), x)
    x = like(op(x, cuda.shfl_down_sync(0xFFFFFFFF, x, 4)), x)
    x = like(op(x, cuda.shfl_down_sync(0xFFFFFFFF, x, 8)), x)
    return like(op(x, cuda.shfl_down_sync(0xFFFFFFFF, x, 16)), x)


def coop_is_exact():
    """Whether the block has the maximum size and whole warps, so that its size is a constant."""
    return most_threads() % 32 == 0 and block_num_threads() == most_threads()


def coop_up1(x, op, lane, step):
    """Combine the value of `step` lanes with that of the `step` lanes below."""
    other = cuda.shfl_up_sync(0xFFFFFFFF, x, step)
    if lane >= step:
        x = like(op(other, x), x)
    return x


def coop_up(x, op, lane):
    """The combined values up to the thread's own lane."""
    x = coop_up1(x, op, lane, 1)
    x = coop_up1(x, op, lane, 2)
    x = coop_up1(x, op, lane, 4)
    x = coop_up1(x, op, lane, 8)
    return coop_up1(x, op, lane, 16)


def coop_pair(a, b, op, both):
    """Combine two adjacent values, if both exist."""
    if both:
        a = like(op(a, b), a)
    return a


def coop_first(x, op, count: known):
    """Reduce the first slots, one to eight of them, as a tree within one thread."""
    low = coop_pair(slot(0, x), slot(1, x), op, count > 1)
    if most_threads() <= 64:
        return low
    low = coop_pair(low, coop_pair(slot(2, x), slot(3, x), op, count > 3), op, count > 2)
    if most_threads() <= 128:
        return low
    high = coop_pair(slot(4, x), slot(5, x), op, count > 5)
    high = coop_pair(high, coop_pair(slot(6, x), slot(7, x), op, count > 7), op, count > 6)
    return coop_pair(low, high, op, count > 4)


def coop_slots(x, op, lane, warps):
    """Reduce the slots, one per warp, across the lanes of the first warp, 32 if there are several."""
    left = np.int32(warps - lane)
    x = slot(min(lane, np.int32(warps - 1)), x)
    x = coop_down1(x, op, left, 1)
    x = coop_down1(x, op, left, 2)
    x = coop_down1(x, op, left, 4)
    if warps > 8:
        x = coop_down1(x, op, left, 8)
        x = coop_down1(x, op, left, 16)
    return x


def coop_number():
    """The thread's linear index, whose type does not wrap: `block_thread_rank` converts it."""
    return (cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y) * cuda.blockDim.x + cuda.threadIdx.x


def coop_is_first():
    """Whether the thread is the first one of the block."""
    return cuda.threadIdx.x == 0 and cuda.threadIdx.y == 0 and cuda.threadIdx.z == 0


def coop_pair_staged(k, x, op):
    """The staged values `k` and `k + 1`, combined."""
    x = staged(k, x)
    return like(op(x, staged(k + 1, x)), x)


def coop_tree(x, op, count):
    """The first `count` staged values: neighbors are combined, then neighbors of these, as by shuffles."""
    left = count
    while left > 1:
        whole = left >> 3
        for k in range(whole):
            low = like(op(coop_pair_staged(8 * k, x, op), coop_pair_staged(8 * k + 2, x, op)), x)
            high = like(op(coop_pair_staged(8 * k + 4, x, op), coop_pair_staged(8 * k + 6, x, op)), x)
            put_staged(k, like(op(low, high), x))
        first = whole << 3
        if first < left:
            step = 1
            while first + step < left:
                for k in range(first, left - step, 2 * step):
                    put_staged(k, like(op(staged(k, x), staged(k + step, x)), x))
                step *= 2
            put_staged(whole, staged(first, x))
            whole += 1
        left = whole
    return staged(0, x)


def coop_serial_fold(x, op, valid, is_exact: known):
    """The combined values of the block's threads, or of the first `valid` ones; an exact function has no order."""
    count = block_num_threads()
    if valid is not None:
        count = min(count, np.int32(valid))
    put_staged(coop_number(), x)
    cuda.syncthreads()
    if coop_is_first():
        if is_exact:
            total = staged(0, x)
            for k in range(1, count):
                total = like(op(total, staged(k, x)), x)
            put_cell(0, total)
        else:
            put_cell(0, coop_tree(x, op, count))
    cuda.syncthreads()
    return cell(0, x)


def coop_block_fold(x, op, valid, broadcast):
    """The combined values of the block's threads, or of the first `valid` ones."""
    if is_serial():
        return coop_serial_fold(x, op, valid, False)
    rank = block_thread_rank()
    lane = np.int32(rank & 31)
    if valid is None and coop_is_exact():
        x = coop_all_down(x, op)
    elif valid is None:
        x = coop_down(x, op, min(np.int32(block_num_threads() - rank), np.int32(32 - lane)))
    else:
        x = coop_down(x, op, min(np.int32(valid - rank), np.int32(32 - lane)))
    if most_threads() <= 32:
        return cuda.shfl_sync(0xFFFFFFFF, x, 0)
    if lane == 0:
        put_slot(rank >> 5, x)
    cuda.syncthreads()
    if most_threads() <= 128:
        count = np.int32(block_num_threads())
        if valid is not None:
            count = valid
        total = coop_first(x, op, np.int32((count + 31) >> 5))
        cuda.syncthreads()
        return total
    total = x
    if rank < 32:
        warps = np.int32((block_num_threads() + 31) >> 5)
        if valid is not None:
            warps = np.int32((valid + 31) >> 5)
        if most_threads() > 256:
            total = coop_slots(x, op, lane, warps)
        elif valid is None and coop_is_exact():
            total = coop_first(x, op, most_threads() // 32)
        else:
            total = coop_first(x, op, warps)
        if broadcast and rank == 0:
            put_cell(0, total)
    cuda.syncthreads()
    if broadcast:
        total = cell(0, x)
    return total


def coop_block_words(x, across, op, spare, broadcast):
    """The same for 32-bit integers; `across` reduces those of a warp."""
    if is_serial():
        return coop_serial_fold(x, op, None, True)
    rank = block_thread_rank()
    x = across(0xFFFFFFFF, x)
    if most_threads() <= 32:
        return x
    if rank & 31 == 0:
        put_slot(rank >> 5, x)
    cuda.syncthreads()
    if most_threads() <= 128:
        total = coop_first(x, op, np.int32((block_num_threads() + 31) >> 5))
        cuda.syncthreads()
        return total
    total = x
    if rank < 32:
        part = slot(rank, x)
        if rank >= (block_num_threads() + 31) >> 5:
            part = spare(slot(0, x))
        total = across(0xFFFFFFFF, part)
        if broadcast and rank == 0:
            put_cell(0, total)
    cuda.syncthreads()
    if broadcast:
        total = cell(0, x)
    return total


def coop_block_of(x, op, across, spare, valid, broadcast):
    """The combined values of all threads, or of the first `valid`, by a function with an instruction for integers."""
    if valid is not None:
        return coop_block_fold(x, op, np.int32(valid), broadcast)
    if isinstance(x, int) and not isinstance(x, bool):
        if np.iinfo(type(x)).bits == 32:
            return coop_block_words(x, across, op, spare, broadcast)
        if np.iinfo(type(x)).bits < 32:
            return type(x)(coop_block_words(np.int32(x), across, op, spare, broadcast))
    return coop_block_fold(x, op, None, broadcast)


def coop_block_reduce(x, op, valid=None, broadcast=True):
    """The reduction over all threads, or over the first `valid`."""
    x = coop_one(x, op)
    if valid is None:
        return coop_block_fold(x, op, None, broadcast)
    return coop_block_fold(x, op, np.int32(valid), broadcast)


def coop_block_sum(x, valid=None, broadcast=True):
    """The sum."""
    return coop_block_of(coop_counted(x), coop_add, cuda.reduce_add_sync, coop_zero, valid, broadcast)


def coop_block_min(x, valid=None, broadcast=True):
    """The minimum."""
    return coop_block_of(coop_one(x, coop_smaller), coop_smaller, cuda.reduce_min_sync, coop_same, valid, broadcast)


def coop_block_max(x, valid=None, broadcast=True):
    """The maximum."""
    return coop_block_of(coop_one(x, coop_larger), coop_larger, cuda.reduce_max_sync, coop_same, valid, broadcast)


def coop_climb(x, op):
    """The values before the thread's own, and all: each warp scans by shuffles, then the first warp the totals."""
    rank, threads = block_thread_rank(), block_num_threads()
    lane, warp, warps = np.int32(rank & 31), np.int32(rank >> 5), np.int32((threads + 31) >> 5)
    here = coop_up(x, op, lane)
    if lane == 31 or rank == threads - 1:
        put_slot(warp, here)
    cuda.syncthreads()
    if rank < 32:
        put_cell(lane, coop_up(slot(min(lane, np.int32(warps - 1)), x), op, lane))
    before = cuda.shfl_up_sync(0xFFFFFFFF, here, 1)
    cuda.syncthreads()
    if warp > 0:
        below = cell(warp - 1, x)
        if lane == 0:
            before = below
        else:
            before = like(op(below, before), x)
    return before, cell(warps - 1, x)


def coop_place(first, k):
    """The index of a thread's value in the padded buffer."""
    return first + k + (first + k >> 5)


def coop_keep_behind(before, x, place, op, lane):
    """Stores the combined values before a thread's own."""
    if lane > 0:
        x = like(op(before, x), x)
    put_kept(place, x)


def coop_rake_lane(x, op, aggregate):
    """Scan the values of up to eight threads per lane, the same number for each lane of the first warp."""
    lane = np.int32(block_thread_rank())
    each = most_threads() // 32
    first = lane * each
    place = first + (first >> 5)
    x0 = rake(place, x)
    x1, x2, x3, x4, x5, x6, last = x0, x0, x0, x0, x0, x0, x0
    if each > 1:
        x1 = like(op(x0, rake(coop_place(first, 1), x)), x)
        last = x1
    if each > 2:
        x2 = like(op(x1, rake(coop_place(first, 2), x)), x)
        last = x2
    if each > 3:
        x3 = like(op(x2, rake(coop_place(first, 3), x)), x)
        last = x3
    if each > 4:
        x4 = like(op(x3, rake(coop_place(first, 4), x)), x)
        last = x4
    if each > 5:
        x5 = like(op(x4, rake(coop_place(first, 5), x)), x)
        last = x5
    if each > 6:
        x6 = like(op(x5, rake(coop_place(first, 6), x)), x)
        last = x6
    if each > 7:
        last = like(op(x6, rake(coop_place(first, 7), x)), x)
    all_of = coop_up(last, op, lane)
    before = cuda.shfl_up_sync(0xFFFFFFFF, all_of, 1)
    put_kept(place, before)
    if each > 1:
        coop_keep_behind(before, x0, coop_place(first, 1), op, lane)
    if each > 2:
        coop_keep_behind(before, x1, coop_place(first, 2), op, lane)
    if each > 3:
        coop_keep_behind(before, x2, coop_place(first, 3), op, lane)
    if each > 4:
        coop_keep_behind(before, x3, coop_place(first, 4), op, lane)
    if each > 5:
        coop_keep_behind(before, x4, coop_place(first, 5), op, lane)
    if each > 6:
        coop_keep_behind(before, x5, coop_place(first, 6), op, lane)
    if each > 7:
        coop_keep_behind(before, x6, coop_place(first, 7), op, lane)
    if aggregate and lane == 31:
        put_kept(263, all_of)


def coop_rake(x, op, aggregate):
    """The values before the thread's own, and all if requested: the lanes of the first warp scan for all threads."""
    rank = block_thread_rank()
    place = rank + (rank >> 5)
    put_rake(place, x)
    cuda.syncthreads()
    if rank < 32:
        coop_rake_lane(x, op, aggregate)
    cuda.syncthreads()
    if aggregate:
        return kept(place, x), kept(263, x)
    return kept(place, x), x


def coop_serial_run(x, op, threads):
    """The values before each thread's own and all, by a function whose result does not depend on the order."""
    running = staged(0, x)
    put_prefix(0, running)
    for k in range(1, threads):
        put_prefix(k, running)
        running = like(op(running, staged(k, x)), x)
    put_cell(0, running)


def coop_serial_steps(first, last, x, op):
    """Scan staged values in the order of shuffles."""
    step = 1
    while step <= last - first:
        for k in range(last, first + step - 1, -1):
            put_staged(k, like(op(staged(k - step, x), staged(k, x)), x))
        step *= 2


def coop_serial_scan(x, op, threads, width, is_raked: known):
    """The values before each thread's own and all, in the order of warps, or of lanes of a raked scan."""
    groups = 0
    for first in range(0, threads, width):
        last = min(first + width, threads) - 1
        if is_raked:
            running = staged(first, x)
            for k in range(first + 1, last + 1):
                running = like(op(running, staged(k, x)), x)
                put_staged(k, running)
        else:
            coop_serial_steps(first, last, x, op)
        put_cell(groups, staged(last, x))
        groups += 1
    step = 1
    while step < groups:
        for k in range(groups - 1, step - 1, -1):
            put_cell(k, like(op(cell(k - step, x), cell(k, x)), x))
        step *= 2
    put_prefix(0, staged(0, x))
    for k in range(1, min(width, threads)):
        put_prefix(k, staged(k - 1, x))
    for group in range(1, groups):
        first = group * width
        below = cell(group - 1, x)
        put_prefix(first, below)
        for k in range(first + 1, min(first + width, threads)):
            put_prefix(k, like(op(below, staged(k - 1, x)), x))
    put_cell(0, cell(groups - 1, x))


def coop_serial_preceding(x, op, is_exact: known):
    """The values before the thread's own and all: the first thread scans for all threads."""
    put_staged(coop_number(), x)
    cuda.syncthreads()
    if coop_is_first():
        if is_exact:
            coop_serial_run(x, op, block_num_threads())
        elif 32 < most_threads() and most_threads() <= 256 and most_threads() % 32 == 0:
            if coop_is_exact():
                coop_serial_scan(x, op, most_threads(), most_threads() // 32, True)
            else:
                coop_serial_scan(x, op, block_num_threads(), 32, False)
        else:
            coop_serial_scan(x, op, block_num_threads(), 32, False)
    cuda.syncthreads()
    return prefix(coop_number(), x), cell(0, x)


def coop_preceding(x, op, aggregate, is_exact: known):
    """The values before the thread's own (none for the first thread), and all if requested."""
    if is_serial():
        return coop_serial_preceding(x, op, is_exact)
    if most_threads() <= 32:
        here = coop_up(x, op, np.int32(block_thread_rank()))
        total = cuda.shfl_sync(0xFFFFFFFF, here, block_num_threads() - 1)
        return cuda.shfl_up_sync(0xFFFFFFFF, here, 1), total
    if most_threads() > 256 or most_threads() % 32 != 0:
        return coop_climb(x, op)
    before = x
    total = x
    if coop_is_exact():
        before, total = coop_rake(x, op, aggregate)
    else:
        before, total = coop_climb(x, op)
    return before, total


def coop_inclusive(x, op, aggregate, is_exact: known):
    """The values up to the thread's own, and all if requested."""
    before, total = coop_preceding(x, op, aggregate, is_exact)
    if block_thread_rank() > 0:
        x = like(op(before, x), x)
    return x, total


def coop_exclusive(x, op, initial, aggregate):
    """The initial value and the values before the thread's own; also all without the initial value if requested."""
    before, total = coop_preceding(x, op, aggregate, False)
    start = like(initial, x)
    if block_thread_rank() > 0:
        start = like(op(start, before), x)
    return start, total


def coop_exclusive_sum_of(x, aggregate):
    """The sum of the values before the thread's own, and the total if requested."""
    before, total = coop_preceding(x, coop_add, aggregate, isinstance(x, int))
    if block_thread_rank() == 0:
        before = coop_zero(x)
    return before, total


def coop_run(items, op, before, rank):
    """Inclusive scan of the items in place, starting from the values of the previous threads, if there are any."""
    running = items[0]
    if rank > 0:
        running = like(op(before, running), running)
    items[0] = running
    for k in range(1, len(items)):
        running = like(op(running, items[k]), running)
        items[k] = running


def coop_run_behind(items, op, start):
    """Exclusive scan of the items in place."""
    running = like(start, items[0])
    for k in range(len(items)):
        item = items[k]
        items[k] = running
        running = like(op(running, item), item)


def coop_block_inclusive_scan(x, op, aggregate=False):
    """The values up to the thread's own."""
    if isinstance(x, np.ndarray):
        before, total = coop_preceding(coop_one(x, op), op, aggregate, False)
        coop_run(x, op, before, block_thread_rank())
        if aggregate:
            return total
        return None
    here, total = coop_inclusive(x, op, aggregate, False)
    if aggregate:
        return here, total
    return here


def coop_block_exclusive_scan(x, op, initial, aggregate=False):
    """The initial value and the values before the thread's own."""
    start, total = coop_exclusive(coop_one(x, op), op, initial, aggregate)
    if isinstance(x, np.ndarray):
        coop_run_behind(x, op, start)
        if aggregate:
            return total
        return None
    if aggregate:
        return start, total
    return start


def coop_block_inclusive_sum(x, aggregate=False):
    """The sum up to the thread's own value."""
    if isinstance(x, np.ndarray):
        start, total = coop_exclusive_sum_of(coop_one(x, coop_add), aggregate)
        x[0] += start
        for k in range(1, len(x)):
            x[k] += x[k - 1]
        if aggregate:
            return total
        return None
    own = coop_counted(x)
    here, total = coop_inclusive(own, coop_add, aggregate, isinstance(own, int))
    if aggregate:
        return here, total
    return here


def coop_block_exclusive_sum(x, aggregate=False):
    """The sum of the values before the thread's own."""
    start, total = coop_exclusive_sum_of(coop_counted(x), aggregate)
    if isinstance(x, np.ndarray):
        coop_run_behind(x, coop_add, start)
        if aggregate:
            return total
        return None
    if aggregate:
        return start, total
    return start
