# weft: sig = "void(int32[::1], int32[::1])", assume = "disjoint"
from weft import cuda


@cuda.jit
def privatize(x, bins):
    i = cuda.grid(1)
    if i < x.shape[0]:
        cuda.atomic.add(bins, x[i], 1)
