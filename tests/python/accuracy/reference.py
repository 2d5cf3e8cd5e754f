"""Exact results from MPFR, with far more bits than float64, in several processes.

This module does not import weft, since its processes do not need it.
"""

from __future__ import annotations

import math
import multiprocessing
import os

import gmpy2
import numpy as np

BITS = 100
# The exponent range of a long double; results outside overflow or underflow in every type.
LIMIT = 16000


def _log_of_a_base(x, base):
    return gmpy2.log(x) / gmpy2.log(base)


def _degrees(x):
    return x * 180 / gmpy2.const_pi()


def _radians(x):
    return x * gmpy2.const_pi() / 180


def _sinpi(x):
    with gmpy2.context(gmpy2.get_context(), precision=3 * BITS):
        return gmpy2.sin(gmpy2.fmod(x, 2) * gmpy2.const_pi()) if gmpy2.fmod(x, 1) else x * 0


def _cospi(x):
    turn = abs(gmpy2.fmod(x, 2))
    with gmpy2.context(gmpy2.get_context(), precision=3 * BITS):
        return gmpy2.cos(turn * gmpy2.const_pi()) if gmpy2.fmod(turn, 1) != 0.5 else turn * 0


def _erfcx(x):
    # Above 1e4, four terms are exact enough. Below -200, the result overflows in every type.
    if x > 1e4:
        inverse = 1 / (2 * x * x)
        return (1 - inverse * (1 - 3 * inverse * (1 - 5 * inverse))) / (x * gmpy2.sqrt(gmpy2.const_pi()))
    if x < -200:
        return gmpy2.inf()
    with gmpy2.context(gmpy2.get_context(), precision=3 * BITS):
        return gmpy2.exp(x * x) * gmpy2.erfc(x)


def _normcdf(x):
    with gmpy2.context(gmpy2.get_context(), precision=3 * BITS):
        return gmpy2.erfc(-x / gmpy2.sqrt(gmpy2.mpfr(2))) / 2


def _erfcinv(y):
    """By Newton's method for the logarithm, with twice the digits because of cancellation."""
    if not 0 < y < 2:
        return gmpy2.inf() if y == 0 else -gmpy2.inf() if y == 2 else gmpy2.nan()
    if y > 1:
        return -_erfcinv(2 - y)
    with gmpy2.context(gmpy2.get_context(), precision=2 * BITS):
        goal = gmpy2.log(y)
        x = gmpy2.sqrt(-goal) if y < 0.1 else (1 - y) * gmpy2.sqrt(gmpy2.const_pi()) / 2
        scale = 2 / gmpy2.sqrt(gmpy2.const_pi())
        for _ in range(60):
            tail = gmpy2.erfc(x)
            step = (gmpy2.log(tail) - goal) * tail / (scale * gmpy2.exp(-x * x))
            x += step
            if abs(step) <= abs(x) * gmpy2.exp2(-BITS):
                break
        return x


def _erfinv(y):
    if not abs(y) < 1:
        return y * gmpy2.inf() if abs(y) == 1 else gmpy2.nan()
    if abs(y) < 1e-20:
        return y * gmpy2.sqrt(gmpy2.const_pi()) / 2
    with gmpy2.context(gmpy2.get_context(), precision=2 * BITS):
        return _erfcinv(1 - y)


def _normcdfinv(p):
    if not 0 < p < 1:
        return -gmpy2.inf() if p == 0 else gmpy2.inf() if p == 1 else gmpy2.nan()
    if p == 0.5:
        return gmpy2.mpfr(0)
    with gmpy2.context(gmpy2.get_context(), precision=2 * BITS):
        return -gmpy2.sqrt(gmpy2.mpfr(2)) * _erfcinv(2 * p)


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
    "rcbrt": lambda x: 1 / gmpy2.cbrt(x),
    "sinpi": _sinpi,
    "cospi": _cospi,
    "erfcx": _erfcx,
    "normcdf": _normcdf,
    "erfinv": _erfinv,
    "erfcinv": _erfcinv,
    "normcdfinv": _normcdfinv,
    "j0": gmpy2.j0,
    "j1": gmpy2.j1,
    "y0": gmpy2.y0,
    "y1": gmpy2.y1,
    "jn": lambda n, x: gmpy2.jn(int(n), x),
    "yn": lambda n, x: gmpy2.yn(int(n), x),
}  # fmt: skip


def parts(name, *arguments):
    """Exact results as the sum of two float64s, times a power of 2."""
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
    """Computes exact results in one process per core; with one core, in this process."""

    def __init__(self, processes=None):
        count = processes or len(os.sched_getaffinity(0))
        # Spawn: a process with a CUDA context must not fork.
        self.pool = multiprocessing.get_context("spawn").Pool(count) if count > 1 else None

    def submit(self, name, *arguments):
        """Starts the computation; returns a function that returns the long doubles."""
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
