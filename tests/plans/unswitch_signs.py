# weft: sig = "void(int32[::1], float32[::1], float32[::1])", assume = ["warps", "disjoint"]
from weft import cuda


@cuda.jit
def unswitch_signs(starts, x, y):
    row = cuda.grid(1) // 32
    total = y[row]
    for k in range(starts[row] + cuda.laneid, starts[row + 1], 32):
        total += x[k]
    y[row * 32 + cuda.laneid] = total
