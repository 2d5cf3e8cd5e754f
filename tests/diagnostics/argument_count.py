# weft: sig = "void(float32[::1])"
"""Calls with too few, too many and unknown arguments."""

from weft import cuda


@cuda.jit(device=True)
def area(width, height):
    return width * height


@cuda.jit
def argument_count(x):
    x[0] = area(1.0)  # error: [E0206] "area"
    x[1] = area(1.0, 2.0, 3.0)  # error: [E0206] "area"
    x[2] = area(1.0, heigth=2.0)  # error: [E0206] "heigth"
