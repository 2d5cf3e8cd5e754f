"""Collective operations of the lanes of a warp, or of groups of `threads` lanes: `cuda.coop`.

The same as in `coop.py`, but only with shuffles. A mask has the group's lanes; a block may lack some of them.
"""

import numpy as np
from weft import cuda


def coop_group(threads):
    """The mask of the lane's group of `threads` lanes, and the lane's index in it."""
    lane = np.int32(block_thread_rank() & 31)
    own = np.int32(lane & (threads - 1))
    if threads == 32:
        return np.uint32(0xFFFFFFFF), own
    return np.uint32(((1 << threads) - 1) << (lane - own)), own


def coop_left(threads, lane):
    """The number of lanes of the thread's group, from its own lane on."""
    return np.int32(min(threads - lane, block_num_threads() - block_thread_rank()))


def coop_warp_down(lanes, x, op, left, threads):
    """The combined values of a group from the thread's own lane on."""
    for k in range(5):
        step = 1 << k
        if step < threads:
            other = cuda.shfl_down_sync(lanes, x, step)
            if step < left:
                x = like(op(x, other), x)
    return x


def coop_warp_up(lanes, x, op, lane, threads):
    """The combined values of a group up to the thread's own lane."""
    for k in range(5):
        step = 1 << k
        if step < threads:
            other = cuda.shfl_up_sync(lanes, x, step)
            if lane >= step:
                x = like(op(other, x), x)
    return x


def coop_warp_fold(x, op, threads, valid):
    """The combined values of a group, or of its first lanes."""
    lanes, lane = coop_group(threads)
    left = coop_left(threads, lane)
    if valid is not None:
        left = min(left, np.int32(valid - lane))
    x = coop_warp_down(lanes, x, op, left, threads)
    return cuda.shfl_sync(lanes, x, 0, threads)


def coop_warp_of(x, op, across, threads, valid):
    """The same by a function with an instruction for integers."""
    if valid is None and isinstance(x, int) and not isinstance(x, bool):
        lanes, _ = coop_group(threads)
        if np.iinfo(type(x)).bits == 32:
            return across(lanes, x)
        if np.iinfo(type(x)).bits < 32:
            return type(x)(across(lanes, np.int32(x)))
    return coop_warp_fold(x, op, threads, valid)


def coop_warp_reduce(x, op, threads=32, valid=None):
    """The reduction over all lanes, or over the first `valid`."""
    return coop_warp_fold(coop_one(x, op), op, threads, valid)


def coop_warp_sum(x, threads=32, valid=None):
    """The sum."""
    return coop_warp_of(coop_counted(x), coop_add, cuda.reduce_add_sync, threads, valid)


def coop_warp_min(x, threads=32, valid=None):
    """The minimum."""
    return coop_warp_of(coop_one(x, coop_smaller), coop_smaller, cuda.reduce_min_sync, threads, valid)


def coop_warp_max(x, threads=32, valid=None):
    """The maximum."""
    return coop_warp_of(coop_one(x, coop_larger), coop_larger, cuda.reduce_max_sync, threads, valid)


def coop_warp_scan(x, op, threads):
    """The values up to the thread's own, those before it (none for the first lane), and all of the group."""
    lanes, lane = coop_group(threads)
    here = coop_warp_up(lanes, x, op, lane, threads)
    total = cuda.shfl_sync(lanes, here, lane + coop_left(threads, lane) - 1, threads)
    before = cuda.shfl_up_sync(lanes, here, 1, threads)
    return here, before, total, lane


def coop_warp_inclusive_scan(x, op, threads=32, aggregate=False):
    """The values up to the thread's own."""
    here, before, total, lane = coop_warp_scan(coop_one(x, op), op, threads)
    if isinstance(x, np.ndarray):
        coop_run(x, op, before, lane)
        if aggregate:
            return total
        return None
    if aggregate:
        return here, total
    return here


def coop_warp_exclusive_scan(x, op, initial, threads=32, aggregate=False):
    """The initial value and the values before the thread's own."""
    here, before, total, lane = coop_warp_scan(coop_one(x, op), op, threads)
    start = like(initial, here)
    if lane > 0:
        start = like(op(start, before), here)
    if isinstance(x, np.ndarray):
        coop_run_behind(x, op, start)
        if aggregate:
            return total
        return None
    if aggregate:
        return start, total
    return start


def coop_warp_inclusive_sum(x, threads=32, aggregate=False):
    """The sum up to the thread's own value."""
    if isinstance(x, np.ndarray):
        _, before, total, lane = coop_warp_scan(coop_one(x, coop_add), coop_add, threads)
        coop_run(x, coop_add, before, lane)
        if aggregate:
            return total
        return None
    here, before, total, lane = coop_warp_scan(coop_counted(x), coop_add, threads)
    if aggregate:
        return here, total
    return here


def coop_warp_exclusive_sum(x, threads=32, aggregate=False):
    """The sum of the values before the thread's own."""
    here, before, total, lane = coop_warp_scan(coop_counted(x), coop_add, threads)
    if lane == 0:
        before = coop_zero(here)
    if isinstance(x, np.ndarray):
        coop_run_behind(x, coop_add, before)
        if aggregate:
            return total
        return None
    if aggregate:
        return before, total
    return before
