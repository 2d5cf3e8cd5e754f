# weft: sig = "void(float32[::1])"
"""An option of `cuda.jit` that does not take its value."""

from weft import cuda


@cuda.jit(max_registers=5)  # error: [E0206] "from 16 to 255"
def option_value(x):
    x[0] = 1
