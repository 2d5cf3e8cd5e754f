# weft: sig = "void(float32[::1], float32, float32, int32)", show = ["ir"]
"""The builtins min, max, abs, round and pow."""

from weft import cuda


@cuda.jit
def min_max_abs(out, a, b, c):
    out[0] = min(a, b)
    out[1] = max(a, b, 0.0)
    out[2] = abs(a)
    out[3] = abs(c)
    out[4] = round(a)
    out[5] = pow(a, b)
