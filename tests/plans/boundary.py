# weft: sig = "void(int64[:, :, ::1], int64[:, :, ::1])"
from weft import cuda


@cuda.jit
def boundary(a, out):
    x, y = cuda.grid(2)
    if x >= a.shape[2] or y >= a.shape[1]:
        return
    total = 0
    for z in range(a.shape[0]):
        total = total * 2 + a[z, y, max(x - 1, 0)]
        out[z, y, x] = total
