# weft: sig = "void(float32[:, ::1], int64, float32[::1])"
from weft import cuda, float32


@cuda.jit
def lane_arrays(x, n, y):
    i = cuda.grid(1)
    a = cuda.local.array(12, float32)
    for k in range(12):
        a[k] = x[k, i]
    for p in range(n):
        if a[p] < 0:
            for q in range(p, 12):
                a[q] += a[p]
    y[i] = a[11]
