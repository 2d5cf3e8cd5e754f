# weft: sig = "void(complex64[::1], complex64, complex128)", show = ["ir"]
"""A complex number is a pair of floats."""

from weft import cuda


@cuda.jit
def complex_numbers(out, a, b):
    out[0] = a * a + b
    out[1] = complex(a.real, -a.imag)
    out[2] = a / 2
    out[3] = abs(a)
    out[4] = 1j
