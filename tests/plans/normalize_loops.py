# weft: sig = "void(float32[::1], int64, float32[::1])", assume = "small"
from weft import cuda


@cuda.jit
def normalize_loops(x, radius, y):
    i = cuda.grid(1)
    if i >= radius and i < x.shape[0] - radius:
        total = 0.0
        for k in range(i - radius, i + radius + 1):
            total += x[k]
        for k in range(i - 2, i + 3, 2):
            total += x[k]
        y[i] = total
