# weft: sig = "void(float32[::1], float32[::1], int64)", show = ["ir"]
"""Products, quotients, remainders and masks of nonnegative values need no wraparound."""

from weft import cuda


@cuda.jit
def no_wrap_around(x, out, k):
    i = cuda.grid(1)
    for j in range(4):
        out[i * 4 + j] = x[i // 3] + x[i % 5] + x[k & 7] + x[k % 9] + x[j]
