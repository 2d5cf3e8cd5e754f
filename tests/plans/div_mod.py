# weft: sig = "void(float32[:, ::1])"
from weft import cuda


@cuda.jit
def div_mod(a):
    i = cuda.grid(1)
    if i < a.size:
        a[i // a.shape[1], i % a.shape[1]] = i
