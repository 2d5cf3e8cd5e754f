# weft: sig = "void(from_dtype(np.dtype([('t', 'f8'), ('x', 'f4'), ('y', 'f4'), ('a', 'i2', 4)], align=True))[::1], from_dtype([('a', 'i2'), ('v', 'i4')])[::1])", show = ["ptx"]
"""Copies of records and accesses to adjacent fields use as few instructions as the alignment allows."""

from weft import cuda


@cuda.jit
def records(aligned, packed):
    i = cuda.grid(1)
    aligned[i + 1] = aligned[i]
    r = aligned[i + 2]
    r.x, r.y = r.y, r.x
    a, b, c, d = r.a
    r.a[:] = (d, c, b, a)
    packed[i + 1] = packed[i]
