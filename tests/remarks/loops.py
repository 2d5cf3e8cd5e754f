# weft: assume = ["small", "disjoint"]
from weft import cuda


@cuda.jit(device=True)
def power(x, n):
    return 1.0 if n <= 0 else x * power(x, n - 1)


@cuda.jit("void(float32[:, ::1], float32[::1])")
def strip_mined(a, y):
    i = cuda.grid(1)
    total = y[i]
    for k in range(a.shape[0] - 1):
        total += a[k, i] * a[k + 1, i]
    y[i] = total


@cuda.jit("void(float32[:, ::1], float32[::1])")
def along_rows(a, y):
    i = cuda.grid(1)
    total = y[i]
    for k in range(a.shape[0]):
        total += a[k, i]
    y[i] = total


@cuda.jit("void(float32[:, ::1], float32[::1])")
def transposed(a, y):
    i = cuda.grid(1)
    total = y[i]
    for k in range(a.shape[1]):
        total += a[i, k]
    y[i] = total


@cuda.jit("void(float32[:, ::1], float32[::1])")
def interchanged_only(a, y):
    i = cuda.grid(1)
    for k in range(a.shape[0]):
        a[k, i] = y[i]


@cuda.jit("void(float32[:, ::1], float32[::1])")
def strided_without_recurrence(a, y):
    i = cuda.grid(1)
    for k in range(a.shape[1]):
        a[i, k] = y[k]


@cuda.jit("void(float32[::1], float32[::1])")
def few_iterations(a, y):
    i = cuda.grid(1)
    for k in range(4):
        y[i] += a[k]


@cuda.jit("void(float32[::1], float32[::1])")
def recursive_call(a, y):
    i = cuda.grid(1)
    for k in range(a.shape[0]):
        y[i] += power(a[k], k)


@cuda.jit("void(float32[::1], int32[::1])")
def atomic_operation(a, y):
    i = cuda.grid(1)
    for k in range(a.shape[0]):
        cuda.atomic.add(y, i, int(a[k]))


@cuda.jit("void(float32[::1], float32[::1])")
def local_array(a, y):
    i = cuda.grid(1)
    kept = cuda.local.array(8, "float32")
    for k in range(a.shape[0]):
        kept[k % 8] += a[k]
    y[i] = kept[int(y[i]) % 8]


@cuda.jit("void(float32[::1], float32[::1])")
def escaping_array(a, y):
    i = cuda.grid(1)
    kept = cuda.local.array(8, "float32")
    part = kept[int(y[i]) % 4 :]
    for k in range(a.shape[0]):
        kept[k % 8] += part[k % 4]
    y[i] = kept[0]


@cuda.jit("void(float32[::1], float32[::1])")
def large_array(a, y):
    i = cuda.grid(1)
    kept = cuda.local.array(800, "float32")
    for k in range(a.shape[0]):
        kept[k % 800] += a[k]
    y[i] = kept[0]


@cuda.jit("void(float32[::1], float32[::1])")
def divergent_branch(a, y):
    i = cuda.grid(1)
    if y[i] > 0:
        for k in range(a.shape[0]):
            y[i] += a[k]


@cuda.jit("void(float32[::1], float32[::1])")
def grid_stride(x, y):
    for i in range(cuda.grid(1), y.shape[0], cuda.gridsize(1)):
        y[i] = x[i] * 2
