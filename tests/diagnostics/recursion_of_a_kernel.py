# weft: sig = "void(int64[::1], int64)"
"""A kernel that calls itself."""

from weft import cuda


@cuda.jit
def recursion_of_a_kernel(x, n):
    x[n] = n
    if n > 0:
        recursion_of_a_kernel(x, n - 1)  # error: [E0213] "itself"
