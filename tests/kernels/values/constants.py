# weft: sig = "void(float64[::1])", show = ["ir"]
"""Numbers and tuples of the module are constants in the kernel."""

from weft import cuda

SIZE = 4
WEIGHTS = (0.25, 0.5, 0.25)
OFFSET = -1.5
FLAG = SIZE > 3


@cuda.jit
def constants(out):
    i = cuda.grid(1)
    if FLAG:
        out[i * SIZE] = WEIGHTS[1] + OFFSET
