# weft: sig = "void(Array(float32, 1, 'C', readonly=True))"
"""A store into a read-only array."""

from weft import cuda


@cuda.jit
def readonly(x):
    x[0] = 1.0  # error: [E0215] ""
