"""Masks of a warp's lanes."""


def lanemask_eq():
    """The mask with the thread's own lane."""
    return np.uint32(1) << np.uint32(cuda.laneid)


def lanemask_lt():
    """The mask of the lanes below."""
    return lanemask_eq() - np.uint32(1)


def lanemask_le():
    """The mask of the lanes below, and the thread's own."""
    return lanemask_lt() | lanemask_eq()


def lanemask_ge():
    """The mask of the lanes above, and the thread's own."""
    return ~lanemask_lt()


def lanemask_gt():
    """The mask of the lanes above."""
    return ~lanemask_le()


def elect_sync(mask):
    """Whether the thread is in the lowest active lane of the mask."""
    return np.uint32(cuda.ballot_sync(mask, True)) & lanemask_le() == lanemask_eq()


def lane_sum(a, b):
    """Combine the values of two lanes."""
    return a + b


def lane_min(a, b):
    """Combine the values of two lanes."""
    return min(a, b)


def lane_max(a, b):
    """Combine the values of two lanes."""
    return max(a, b)


def lanes_together(mask, x, op):
    """Combine the values of the active lanes of a mask; the result is the same in each of them."""
    here = np.uint32(cuda.ballot_sync(mask, True))
    total = x
    if here == 0xFFFFFFFF:
        for k in range(5):
            total = like(op(total, cuda.shfl_xor_sync(mask, total, 16 >> k)), x)
    else:
        is_first = True
        for lane in range(32):
            if here >> lane & 1:
                other = cuda.shfl_sync(mask, x, lane)
                total = other if is_first else like(op(total, other), x)
                is_first = False
    return total


def lanes_add(mask, x):
    """`reduce_add_sync`."""
    return lanes_together(mask, x, lane_sum)


def lanes_min(mask, x):
    """`reduce_min_sync`."""
    return lanes_together(mask, x, lane_min)


def lanes_max(mask, x):
    """`reduce_max_sync`."""
    return lanes_together(mask, x, lane_max)


def lanes_and(mask, x):
    """`reduce_and_sync` of 64 bits."""
    low, high = cuda.reduce_and_sync(mask, np.uint32(x)), cuda.reduce_and_sync(mask, np.uint32(x >> 32))
    return type(x)(np.uint64(high) << np.uint64(32) | np.uint64(low))


def lanes_or(mask, x):
    """`reduce_or_sync` of 64 bits."""
    low, high = cuda.reduce_or_sync(mask, np.uint32(x)), cuda.reduce_or_sync(mask, np.uint32(x >> 32))
    return type(x)(np.uint64(high) << np.uint64(32) | np.uint64(low))


def lanes_xor(mask, x):
    """`reduce_xor_sync` of 64 bits."""
    low, high = cuda.reduce_xor_sync(mask, np.uint32(x)), cuda.reduce_xor_sync(mask, np.uint32(x >> 32))
    return type(x)(np.uint64(high) << np.uint64(32) | np.uint64(low))
