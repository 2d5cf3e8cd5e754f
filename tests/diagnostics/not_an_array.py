# weft: sig = "void(float32[::1], float64, float64, float64)"
"""A number where the kernel uses an array: the message names the argument."""

from weft import cuda


@cuda.jit(device=True)
def first(a):
    return a[0]  # error: [E0209] "argument 1 (`a`) of `first` is a float64, not an array"


@cuda.jit
def not_an_array(x, out, y, z):
    if cuda.grid(1) < out.size:  # error: [E0207] "argument 2 (`out`) of kernel `not_an_array` is a float64"
        out[0] = x[0]  # error: [E0216] "argument 2 (`out`)"
    y[0] += 1.0  # error: [E0216] "argument 3 (`y`)"
    x[0] = first(y)
    z = z * 2.0
    x[1] = z[0]  # error: [E0209] "float64 cannot be indexed"
