# weft: sig = "void(uint8[:, ::1], float32[:, ::1])", targets = ["sm_89", "sm_90a", "sm_100"], without = ["sm_80"], show = ["ptx"]
"""Products of floats of 8 bits in a warp."""

from weft import cuda, float32

BOTH = cuda.mma.tile(16, 8, 64, a="e4m3", b="e4m3", c=float32)
MIXED = cuda.mma.tile(16, 8, 32, a="e5m2", b="e4m3", c=float32)


@cuda.jit
def matrix_bytes(a, c):
    BOTH.store(c, 0, 0, BOTH.mma(BOTH.a(a, 0, 0), BOTH.b(a.T, 0, 0), BOTH.zeros()))
    MIXED.store(c, 0, 8, MIXED.mma(MIXED.a(a, 0, 0), MIXED.b(a.T, 0, 0), MIXED.zeros()))
