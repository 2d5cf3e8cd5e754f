# weft: sig = "void(int32[::1])"
"""Expressions that have no meaning in a kernel."""

from weft import cuda


@cuda.jit
def unsupported_expression(x):
    a = [1, 2]  # error: [E0103] "list"
    b = {"a": 1}  # error: [E0103] "cannot"
    c = {y for y in (1, 2)}  # error: [E0103] "cannot"
    x[0] = 1
