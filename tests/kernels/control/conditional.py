# weft: sig = "void(float32[::1], float32)", show = ["ir"]
"""The conditional expression evaluates one side, and joins both types."""

from weft import cuda


@cuda.jit
def conditional(out, a):
    i = cuda.grid(1)
    out[i] = a if a > 0.0 else out[i - 1]
