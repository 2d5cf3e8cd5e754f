# weft: sig = "void(float32[:, ::1], float32[::1])"
from weft import cuda


@cuda.jit
def interchange(a, y):
    i = cuda.grid(1)
    total = y[i]
    for k in range(a.shape[0]):
        total += a[k, i]
    y[i] = total
