# weft: sig = "void(int64[::1], int64[:, ::1], int32, int32, int64)", show = ["ptx"]
"""Wrap-around indices and remainders of counters need no division; int32 operands use a 32-bit one."""

from weft import cuda


@cuda.jit
def division_by_what_is_known(out, a, n, m, wide):
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        w = a.shape[1]
        out[0] = a[y, (x + 1) % w] + a[y, (x - 1) % w]
        head = 0
        for _ in range(n):
            out[head] = x
            head = (head + 1) % w
        total = 0
        for d in range(wide):
            total += out[d % 3]
        out[1] = total
        out[2] = n % m
        out[3] = n // m
