# weft: sig = "void(float32[::1], float64[::1], uint8[::1], uint8[::1])", targets = ["sm_80", "sm_89", "sm_100"], show = ["ptx"]
"""Floats of 8 bits: an instruction on the SMs that have it, else integers."""

from weft import cuda


@cuda.jit
def float8(x, y, a, b):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = cuda.fp8.from_e4m3(a[i]) + cuda.fp8.from_e5m2(b[i])
        a[i] = cuda.fp8.to_e4m3(x[i])
        b[i] = cuda.fp8.to_e5m2(y[i])
