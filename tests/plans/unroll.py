# weft: sig = "void(int32[::1])"
from weft import cuda


@cuda.jit
def unroll(y):
    t = cuda.threadIdx.x
    total = y[t]
    distance = 2
    while distance > 0:
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, distance)
        distance //= 2
    y[t] = total
