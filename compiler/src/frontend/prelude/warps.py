"""Masks of a warp's lanes."""


def lanemask_eq():
    """The thread's own."""
    return np.uint32(1) << np.uint32(cuda.laneid)


def lanemask_lt():
    """Those below."""
    return lanemask_eq() - np.uint32(1)


def lanemask_le():
    """Those below, and the thread's own."""
    return lanemask_lt() | lanemask_eq()


def lanemask_ge():
    """Those above, and the thread's own."""
    return ~lanemask_lt()


def lanemask_gt():
    """Those above."""
    return ~lanemask_le()


def elect_sync(mask):
    """Whether the thread is in the lowest lane of the mask that is here."""
    return np.uint32(cuda.ballot_sync(mask, True)) & lanemask_le() == lanemask_eq()
