# weft: sig = "void(float32[::1], float32[::1])"
from weft import cuda


@cuda.jit
def steady_state(x, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = x[max(i - 1, 0)]
