"""A transposed matrix by a vector, ADI along columns, and implied volatilities by Newton, as loops for Numba."""

import math

import numpy as np
from fourth.finance_newton import INVERSE_ROOT_2PI, ROOT_HALF
from fourth.polybench import CHUNK

from reference_kernels.jit import alone, loops, prange

STRIP = 256
NARROW = 64


@loops
def bicg_transposed(a, r, s):
    rows, columns = a.shape
    for strip in prange((columns + STRIP - 1) // STRIP):
        start = strip * STRIP
        end = min(start + STRIP, columns)
        totals = np.empty(STRIP, np.float32)
        for first in range(0, rows, CHUNK):
            totals[:] = 0
            for i in range(first, min(first + CHUNK, rows)):
                for j in range(start, end):
                    totals[j - start] += a[i, j] * r[i]
            for j in range(start, end):
                s[j] += totals[j - start]


@loops
def adi_columns(u, a, b, d, f, p, q, v):
    n_rows, n = u.shape
    for j in range(n_rows):
        v[j, 0] = u[j, 0]
        v[j, n - 1] = u[j, n - 1]
    for strip in prange((n - 3 + NARROW) // NARROW):
        start = 1 + strip * NARROW
        end = min(start + NARROW, n - 1)
        for i in range(start, end):
            p[0, i] = 0.0
            q[0, i] = 1.0
            v[0, i] = 1.0
            v[n_rows - 1, i] = 1.0
        for j in range(1, n_rows - 1):
            for i in range(start, end):
                divisor = a * p[j - 1, i] + b
                flow = -d * u[j, i - 1] + (1.0 + d + f) * u[j, i] - f * u[j, i + 1]
                p[j, i] = -a / divisor
                q[j, i] = (flow - a * q[j - 1, i]) / divisor
        for j in range(n_rows - 2, 0, -1):
            for i in range(start, end):
                v[j, i] = p[j, i] * v[j + 1, i] + q[j, i]


@alone
def cumulative_normal(d):
    return 0.5 * math.erfc(-d * ROOT_HALF)


@alone
def call_and_vega(spot, strike, years, rate, volatility):
    root = math.sqrt(years)
    d1 = (math.log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / (volatility * root)
    d2 = d1 - volatility * root
    call = spot * cumulative_normal(d1) - strike * math.exp(-rate * years) * cumulative_normal(d2)
    return call, spot * root * INVERSE_ROOT_2PI * math.exp(-0.5 * d1 * d1)


@loops
def implied(price, spot, strike, years, rate, out):
    for i in prange(price.size):
        low = 1e-3
        high = 4.0
        volatility = 0.5
        call, vega = call_and_vega(spot[i], strike[i], years[i], rate, volatility)
        error = call - price[i]
        n = 0
        while abs(error) > 1e-10 and n < 60:
            if error > 0.0:
                high = volatility
            else:
                low = volatility
            volatility -= error / vega
            if not (volatility > low and volatility < high):
                volatility = 0.5 * (low + high)
            call, vega = call_and_vega(spot[i], strike[i], years[i], rate, volatility)
            error = call - price[i]
            n += 1
        out[i] = volatility
