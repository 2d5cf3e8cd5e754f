# weft: sig = "void(int64[::1])"
"""Tuples that double with each call."""

from weft import cuda


@cuda.jit
def twice(t):
    return (t, t)


@cuda.jit
def more(t):
    return twice(twice(twice(twice((t, t, t, t)))))  # error: [E0202] "10000"


@cuda.jit
def tuple_too_large(x):
    t = more(more(x[0]))
    x[1] = more(t)[0][0][0][0][0][0][0][0][0][0]
