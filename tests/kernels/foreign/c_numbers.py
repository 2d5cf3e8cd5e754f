# weft: sig = "int16(int8, boolean, float16, uint16, float32)", abi = "c", show = ["ptx", "nvvm"]
"""Numbers are passed as in CUDA C++: small integers in 32 bits, a 16-bit float as the struct that it is."""

from weft import cuda


@cuda.jit
def c_numbers(a, b, h, u, x):
    return a * u + x * h if b else a
