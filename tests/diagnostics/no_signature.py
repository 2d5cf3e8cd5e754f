# weft:
"""Nothing says what the kernel's arguments are."""

from weft import cuda


@cuda.jit
def no_signature(x):  # error: [E0302] "no_signature"
    x[0] = 1.0
