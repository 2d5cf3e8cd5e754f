# weft: sig = "void(float32[:, ::1], float32[:, ::1])"
from weft import cuda


@cuda.jit
def conjunction(x, y):
    i = cuda.grid(1)
    j = cuda.threadIdx.y
    if i >= x.shape[1] and j >= x.shape[0]:
        return
    x[j, i] = 1
    cuda.syncthreads()
    y[j, i] = x[j, 0]
