# weft: sig = "void(float32[::1], float32[::1])"
from weft import cuda


@cuda.jit
def nest_conditions(x, y):
    i = cuda.grid(1)
    if i < x.shape[0] and x[i] > 0:
        y[i] = 1
