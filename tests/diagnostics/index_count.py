# weft: sig = "void(float32[:, ::1])"
"""More indices than dimensions."""

from weft import cuda


@cuda.jit
def index_count(x):
    x[0, 1, 2] = 1.0  # error: [E0208] "3"
