# weft: sig = "void(int32[::1], int32[::1])"
from weft import cuda


@cuda.jit
def unroll(x, y):
    t = cuda.threadIdx.x
    total = y[t]
    for k in range(4):
        at = t + k % 2 - k // 2
        if at >= 0:
            total += (3, 0, -2, 1)[k] * x[at]
    distance = 2
    while distance > 0:
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, distance)
        distance //= 2
    y[t] = total
