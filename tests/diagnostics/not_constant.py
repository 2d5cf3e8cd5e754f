# weft: sig = "void(float32[::1], int64)"
"""The shape of a shared array must be a compile-time constant."""

from weft import cuda, float32


@cuda.jit
def not_constant(x, n):
    tile = cuda.shared.array(n, float32)  # error: [E0210] ""
    tile[0] = x[0]
