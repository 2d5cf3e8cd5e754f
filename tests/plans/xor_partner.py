# weft: sig = "void(float32[::1], int64)"
from weft import cuda


@cuda.jit
def xor_partner(x, j):
    t = cuda.threadIdx.x
    partner = t ^ j
    if partner > t:
        x[t] = x[partner]
