"""Reductions and scans of cooperative groups: `cg.reduce`, `cg.inclusive_scan` and `cg.exclusive_scan`.

`across` is what reduces integers of 32 bits in a warp, where the function is one of `cg`'s for which there is such a
thing, else `None`; `same` says that such a function changes nothing that it is given twice. `zero(x)` is a zero of the
type of `x`.
"""

import numpy as np
from weft import cuda


def cg_is_word(x):
    """Whether it is an integer type that a warp reduces by one instruction."""
    return isinstance(x, int) and not isinstance(x, bool) and np.iinfo(type(x)).bits <= 32


def cg_block_reduce(x, op, across=None, same=True):
    """The reduction over the block's threads."""
    if across is not None and cg_is_word(x):
        if same:
            return coop_block_of(x, op, across, coop_same, None, True)
        return coop_block_of(x, op, across, coop_zero, None, True)
    return coop_block_fold(x, op, None, True)


def cg_block_inclusive_scan(x, op):
    """The scan up to the thread's own value."""
    here, _ = coop_inclusive(x, op, False, False)
    return here


def cg_block_exclusive_scan(x, op):
    """The scan before the thread's own value: zero for the first thread."""
    before, _ = coop_preceding(x, op, False, False)
    if block_thread_rank() == 0:
        before = zero(x)
    return before


def cg_tile_reduce(x, op, across=None, same=True, size=32):
    """The reduction over the threads of a tile."""
    del same
    if across is not None and cg_is_word(x):
        return coop_warp_of(x, op, across, size, None)
    return coop_warp_fold(x, op, size, None)


def cg_tile_inclusive_scan(x, op, size=32):
    """The scan up to the thread's own value."""
    here, _, _, _ = coop_warp_scan(x, op, size)
    return here


def cg_tile_exclusive_scan(x, op, size=32):
    """The scan before the thread's own value: zero for the first thread."""
    _, before, _, lane = coop_warp_scan(x, op, size)
    if lane == 0:
        before = zero(x)
    return before


def cg_above(lanes):
    """The next lane of a group; the last lane itself for the last one."""
    above = np.uint32(lanes & lanemask_gt())
    if above == 0:
        return np.int32(cuda.laneid)
    return np.int32(trailing_zeros(above))


def cg_below(lanes):
    """The previous lane; the first lane itself for the first one."""
    below = np.uint32(lanes & lanemask_lt())
    if below == 0:
        return np.int32(cuda.laneid)
    return np.int32(31 - leading_zeros(below))


def cg_coalesced_reduce(lanes, x, op, across=None, same=True):
    """Reduce over the lanes of a group by pointer doubling: each iteration doubles the number of combined lanes."""
    del same
    if across is not None and cg_is_word(x):
        if np.iinfo(type(x)).bits == 32:
            return across(lanes, x)
        return type(x)(across(lanes, np.int32(x)))
    left = np.int32(coalesced_num_threads(lanes) - coalesced_thread_rank(lanes))
    at = cg_above(lanes)
    for k in range(5):
        other = cuda.shfl_sync(lanes, x, at)
        at = cuda.shfl_sync(lanes, at, at)
        if (1 << k) < left:
            x = like(op(x, other), x)
    return cuda.shfl_sync(lanes, x, trailing_zeros(np.uint32(lanes)))


def cg_coalesced_inclusive_scan(lanes, x, op):
    """The scan up to the thread's own value."""
    rank = coalesced_thread_rank(lanes)
    at = cg_below(lanes)
    for k in range(5):
        other = cuda.shfl_sync(lanes, x, at)
        at = cuda.shfl_sync(lanes, at, at)
        if (1 << k) <= rank:
            x = like(op(other, x), x)
    return x


def cg_coalesced_exclusive_scan(lanes, x, op):
    """The scan before the thread's own value: zero for the first thread."""
    here = cg_coalesced_inclusive_scan(lanes, x, op)
    before = cuda.shfl_sync(lanes, here, cg_below(lanes))
    if coalesced_thread_rank(lanes) == 0:
        before = zero(x)
    return before
