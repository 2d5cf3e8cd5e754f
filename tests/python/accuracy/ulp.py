"""Errors in units in the last place of results in any of the four float types, compared with exact ones.

Exact results are long doubles, which have 64 bits and a wide exponent on x86: a float64 error is accurate to 1/2000.
"""

from __future__ import annotations

import numpy as np

# Bits of the significand, and the exponents of the smallest and the largest normal numbers.
FORMATS = {
    "float16": (11, -14, 15),
    "bfloat16": (8, -126, 127),
    "float32": (24, -126, 127),
    "float64": (53, -1022, 1023),
}

LONG = np.longdouble


def apart(got, exact, dtype, smallest=0.0):
    """The error of each result, and whether it is wrong in kind: NaN, an infinity, a zero or its sign.

    If the exact result exceeds the largest number by at least half an ulp, infinity is right. Any other infinity counts
    as the power of 2 above the largest number. Errors of results below `smallest` are in ulps of `smallest`.
    """
    bits, least, most = FORMATS[dtype]
    with np.errstate(all="ignore"):
        got, exact = np.asarray(got).astype(LONG), np.asarray(exact, LONG)
        size = np.abs(exact)
        exponent = np.clip(np.frexp(np.where(np.isfinite(size), np.maximum(size, smallest), 1))[1] - 1, least, most)
        unit = np.ldexp(LONG(1), exponent - (bits - 1))
        huge = np.ldexp(LONG(1), most + 1)
        overflows = size >= huge - np.ldexp(LONG(1), most - bits)
        errors = np.abs(np.where(np.isinf(got), np.copysign(huge, got), got) - exact) / unit
    same_sign = np.signbit(got) == np.signbit(exact)
    errors[overflows & np.isinf(got) & same_sign] = 0
    wrong = np.isnan(got) != np.isnan(exact)
    wrong |= np.isinf(exact) & ~wrong & ~(np.isinf(got) & same_sign)
    wrong |= (exact == 0) & (got != 0)
    wrong |= (got == 0) & ~np.isnan(exact) & ~same_sign
    errors[np.isnan(exact) | np.isinf(exact) | (exact == 0) | wrong] = 0
    return errors.astype(np.float64), wrong
