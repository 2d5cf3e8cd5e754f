# weft: sig = "void(float32[:, ::1], float32[::1])", show = ["ir"]
"""Device functions take arrays and views; their reads and writes count as those of the kernel."""

from weft import cuda


@cuda.jit(device=True)
def fill(row, value):
    for i in range(row.size):
        row[i] = value


@cuda.jit
def arrays(out, values):
    i = cuda.grid(1)
    fill(out[i], values[i])
