# weft: sig = "void(float64[::1], int32, float32)", show = ["ir"]
"""/ returns a float: float64 for integers, float32 for float32."""

from weft import cuda


@cuda.jit
def true_division(out, a, b):
    out[0] = a / 3
    out[1] = b / b
    out[2] = a / b
