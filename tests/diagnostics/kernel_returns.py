# weft: sig = "void(float32[::1])"
"""A kernel gives nothing back."""

from weft import cuda


@cuda.jit
def kernel_returns(x):
    return x[0]  # error: [E0212] "float32"
