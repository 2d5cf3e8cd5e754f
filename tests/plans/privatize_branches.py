# weft: sig = "void(uint8[::1], int32[::1])", assume = "disjoint"
from weft import cuda


@cuda.jit
def privatize_branches(x, bins):
    i = cuda.grid(1)
    if i < x.shape[0] and x[i] == 3:
        cuda.atomic.add(bins, 0, 1)
