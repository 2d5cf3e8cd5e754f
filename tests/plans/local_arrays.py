# weft: sig = "void(float32[:, ::1], float32[::1])"
from weft import cuda, float32


@cuda.jit
def local_arrays(a, y):
    t = cuda.grid(1)
    p = cuda.local.array(2, float32)
    p[0] = 0
    p[1] = 1
    for step in range(a.shape[0]):
        p[0] = p[0] * p[1] + a[step, t]
    y[t] = p[0]
