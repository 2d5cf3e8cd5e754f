# weft: sig = "void(int32[::1])"
"""Statements that have no meaning in a kernel; each is reported."""

from weft import cuda


@cuda.jit
def unsupported_statement(x):
    with open("file"):  # error: [E0102] "cannot have"
        x[0] = 1
    try:  # error: [E0102] "cannot have"
        x[0] = 2
    finally:
        x[0] = 3
