# weft: sig = "void(float32[::1], float8_e4m3fn[::1], float8_e5m2[::1])", targets = ["sm_80", "sm_89", "sm_100"], show = ["ptx"]
"""Elements that are floats of 8 bits: conversions where they are loaded and stored."""

from weft import cuda, float32


@cuda.jit
def float8_arrays(x, a, b):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += float32(a[i]) * float32(b[i])
        a[i] = x[i]
        b[i] = cuda.fp8.float8_e5m2(x[i] * float32(0.5))
