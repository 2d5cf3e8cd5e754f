# weft: sig = "void(float32[::1])"
"""A float is no index."""

from weft import cuda


@cuda.jit
def bad_index(x):
    x[0.5] = 1.0  # error: [E0209] "float64"
