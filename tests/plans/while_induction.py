# weft: sig = "void(float32[:, ::1], float32[::1])"
from weft import cuda


@cuda.jit
def while_induction(a, y):
    i = cuda.grid(1)
    total = y[i]
    k = 0
    while k < a.shape[0]:
        total += a[k, i]
        k += 1
    y[i] = total
