# weft: sig = "void(float64[::1], int64, int64, float32)", show = ["ir"]
"""** of integers multiplies, and of floats calls pow; a small constant power is unrolled."""

from weft import cuda


@cuda.jit
def power(out, a, b, c):
    out[0] = a**b
    out[1] = a**2
    out[2] = c**0.5
    out[3] = c**3
