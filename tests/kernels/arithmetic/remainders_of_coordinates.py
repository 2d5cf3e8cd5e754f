# weft: sig = "void(int64[::1], int64[::1], int64)", assume = ["disjoint", "small"], show = ["ptx"]
"""A remainder of a dividend that may be negative has 32 bits where it fits; the divisor is an extent, or anything."""

from weft import cuda


@cuda.jit
def remainders_of_coordinates(x, out, n):
    i = cuda.grid(1)
    out[i] = x[i] % x.shape[0]
    out[i] += x[i] // x.shape[0]
    out[i] += x[i] % x[0]
