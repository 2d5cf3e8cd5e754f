# weft: sig = "void(float32[::1])"
"""A captured value that a kernel cannot use."""

from weft import cuda


table = {"a": 1}


@cuda.jit
def unsupported_value(x):
    x[0] = table  # error: [E0202] "table"
    x[1] = table  # an error at the first use only
