# weft: sig = "void(float32[::1], float32[::1])"
from weft import cuda


@cuda.jit
def residue_constant(x, y):
    t = cuda.threadIdx.x
    if t % 64 == 0:
        y[t] = x[t]
