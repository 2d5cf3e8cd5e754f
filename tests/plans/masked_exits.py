# weft: sig = "void(float32[::1], float32[::1])"
from weft import cuda


@cuda.jit
def masked_exits(table, y):
    i = cuda.grid(1)
    total = y[i]
    for k in range(table.shape[0]):
        if total > 10:
            break
        total += table[k]
    y[i] = total
