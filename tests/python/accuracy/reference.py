"""Exact results, from MPFR with far more bits than a float64 has, in several processes.

This module does not import weft: its processes need none.
"""

from __future__ import annotations

import math
import multiprocessing
import os

import gmpy2
import numpy as np

BITS = 100
# A long double's exponent; what is beyond overflows or underflows in every type.
LIMIT = 16000


def _log_of_a_base(x, base):
    return gmpy2.log(x) / gmpy2.log(base)


def _degrees(x):
    return x * 180 / gmpy2.const_pi()


def _radians(x):
    return x * gmpy2.const_pi() / 180


REFERENCES = {
    **{
        name: getattr(gmpy2, name)
        for name in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh",
                     "atanh", "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "hypot",
                     "erf", "erfc", "gamma", "fmod", "remainder")
    },
    "degrees": _degrees,
    "radians": _radians,
    "lgamma": lambda x: gmpy2.lgamma(x)[0],
    "log of a base": _log_of_a_base,
    "pow": lambda x, y: x**y,
    "quotient": lambda x, y: x / y,
    "reciprocal": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / gmpy2.sqrt(x),
}  # fmt: skip


def parts(name, *arguments):
    """Exact results as the sum of two float64s and a power of 2 that it is multiplied by."""
    function = REFERENCES[name]
    gmpy2.get_context().precision = BITS
    with np.errstate(all="ignore"):
        columns = [column.astype(np.float64).tolist() for column in arguments]
    high, low = np.empty(len(columns[0])), np.zeros(len(columns[0]))
    exponents = np.zeros(len(columns[0]), np.int32)
    for place, numbers in enumerate(zip(*columns, strict=True)):
        value = function(*map(gmpy2.mpfr, numbers))
        if gmpy2.is_zero(value) or not gmpy2.is_finite(value):
            high[place] = float(value)
            continue
        exponent, value = gmpy2.frexp(value)
        high[place] = first = float(value)
        low[place] = float(value - first)
        exponents[place] = min(max(exponent, -LIMIT), LIMIT)
    return high, low, exponents


def _long(found):
    high, low, exponents = found
    with np.errstate(all="ignore"):
        # The sum of -0 and 0 is 0.
        total = np.where(high == 0, high, high.astype(np.longdouble) + low)
        return np.ldexp(total, exponents)


class References:
    """Computes exact results in as many processes as there are cores; with one, in this one."""

    def __init__(self, processes=None):
        count = processes or len(os.sched_getaffinity(0))
        # Not forked: a process that has a CUDA context must not be.
        self.pool = multiprocessing.get_context("spawn").Pool(count) if count > 1 else None

    def submit(self, name, *arguments):
        """Starts computing; what is given gives the long doubles when it is called."""
        if self.pool is None:
            return lambda: _long(parts(name, *arguments))
        pieces = math.ceil(arguments[0].size / 4000)
        tasks = [
            self.pool.apply_async(parts, (name, *piece))
            for piece in zip(*(np.array_split(column, pieces) for column in arguments), strict=True)
        ]
        return lambda: np.concatenate([_long(task.get()) for task in tasks])

    def close(self):
        """Ends the processes."""
        if self.pool:
            self.pool.terminate()
            self.pool.join()
