# weft: sig = "void(int32[::1], uint64[::1], float32[::1], float32)", show = ["ir", "ptx"]
"""Each atomic operation: a PTX instruction if there is one, else a compare-and-swap loop."""

from weft import cuda


@cuda.jit
def operations(i, u, f, x):
    cuda.atomic.sub(i, 0, 2)
    cuda.atomic.and_(i, 1, 3)
    cuda.atomic.or_(i, 2, 4)
    cuda.atomic.xor(u, 0, 5)
    cuda.atomic.inc(u, 1, 6)
    u[2] = cuda.atomic.cas(u, 3, 7, 8)
    f[0] = cuda.atomic.exch(f, 1, x)
    cuda.atomic.max(f, 2, x)
    cuda.atomic.nanmin(f, 3, x)
