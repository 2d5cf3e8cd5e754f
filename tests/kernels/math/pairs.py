# weft: sig = "void(float64[::1], int32[::1], float64)", show = ["ir"]
"""frexp and modf return two values, ldexp takes an exponent."""

import math

from weft import cuda


@cuda.jit
def pairs(out, exponents, a):
    mantissa, exponent = math.frexp(a)
    fraction, whole = math.modf(a)
    out[0] = math.ldexp(mantissa, exponent)
    out[1] = fraction + whole
    exponents[0] = exponent
