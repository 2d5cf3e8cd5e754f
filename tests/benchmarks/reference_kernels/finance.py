"""Black-Scholes as a loop for Numba."""

import math

from suite.finance import A1, A2, A3, A4, A5, HALF, INVERSE_ROOT_2PI, ONE, SLOPE, ZERO

from reference_kernels.jit import alone, loops, prange


@alone
def cumulative_normal(d):
    k = ONE / (ONE + SLOPE * abs(d))
    tail = INVERSE_ROOT_2PI * math.exp(-HALF * d * d) * (k * (A1 + k * (A2 + k * (A3 + k * (A4 + k * A5)))))
    return ONE - tail if d > ZERO else tail


@loops
def black_scholes(price, strike, years, rate, volatility, call, put):
    for i in prange(price.size):
        s = price[i]
        x = strike[i]
        t = years[i]
        root = math.sqrt(t)
        d1 = (math.log(s / x) + (rate + HALF * volatility * volatility) * t) / (volatility * root)
        d2 = d1 - volatility * root
        n1 = cumulative_normal(d1)
        n2 = cumulative_normal(d2)
        discounted = x * math.exp(-rate * t)
        call[i] = s * n1 - discounted * n2
        put[i] = discounted * (ONE - n2) - s * (ONE - n1)
