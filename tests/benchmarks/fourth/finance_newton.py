"""Implied volatilities of options of float64, by Newton's method within a bracket."""

from __future__ import annotations

import math

import numpy as np
from suite.case import Case, Work, blocks, sized

ROOT_HALF = math.sqrt(0.5)
INVERSE_ROOT_2PI = 1 / math.sqrt(2 * math.pi)
RATE = 0.03


def make_implied(cuda):
    @cuda.jit(device=True)
    def cumulative_normal(d):
        return 0.5 * math.erfc(-d * ROOT_HALF)

    @cuda.jit(device=True)
    def call_and_vega(spot, strike, years, rate, volatility):
        root = math.sqrt(years)
        d1 = (math.log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / (volatility * root)
        d2 = d1 - volatility * root
        call = spot * cumulative_normal(d1) - strike * math.exp(-rate * years) * cumulative_normal(d2)
        vega = spot * root * INVERSE_ROOT_2PI * math.exp(-0.5 * d1 * d1)
        return call, vega

    @cuda.jit
    def implied(price, spot, strike, years, rate, out):
        i = cuda.grid(1)
        if i < price.size:
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

    return implied


IMPLIED_CPP = f"""
__device__ double cumulative_normal(double d) {{ return 0.5 * erfc(-d * {ROOT_HALF!r}); }}

__device__ double call_and_vega(double spot, double strike, double years, double rate, double volatility,
                                double& vega) {{
    double root = sqrt(years);
    double d1 = (log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / (volatility * root);
    double d2 = d1 - volatility * root;
    vega = spot * root * {INVERSE_ROOT_2PI!r} * exp(-0.5 * d1 * d1);
    return spot * cumulative_normal(d1) - strike * exp(-rate * years) * cumulative_normal(d2);
}}

extern "C" __global__ void peer(const double* price, const double* spot, const double* strike, const double* years,
                                double rate, double* out, int n_options) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n_options) {{
        double low = 1e-3, high = 4.0, volatility = 0.5, vega;
        double call = call_and_vega(spot[i], strike[i], years[i], rate, volatility, vega);
        double error = call - price[i];
        int n = 0;
        while (fabs(error) > 1e-10 && n < 60) {{
            if (error > 0.0)
                high = volatility;
            else
                low = volatility;
            volatility -= error / vega;
            if (!(volatility > low && volatility < high)) volatility = 0.5 * (low + high);
            call = call_and_vega(spot[i], strike[i], years[i], rate, volatility, vega);
            error = call - price[i];
            ++n;
        }}
        out[i] = volatility;
    }}
}}
"""


def volatilities(n: int) -> np.ndarray:
    """The volatilities that the prices are computed from."""
    return np.random.default_rng(451).uniform(0.15, 0.9, n)


def erfc(values: np.ndarray) -> np.ndarray:
    return np.fromiter(map(math.erfc, values.tolist()), np.float64, values.size)


def implied_work(size: str) -> Work:
    n = sized(size, 1 << 20, 700, cpu=1 << 16)
    numbers, volatility = np.random.default_rng(452), volatilities(n)
    # Near the money, where the price depends on the volatility.
    spot, moneyness, years = numbers.uniform(50, 150, n), numbers.uniform(0.8, 1.25, n), numbers.uniform(0.25, 2, n)
    strike, width = spot * moneyness, volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (RATE + 0.5 * volatility**2) * years) / width
    call = spot * erfc(-d1 * ROOT_HALF) / 2 - strike * np.exp(-RATE * years) * erfc((width - d1) * ROOT_HALF) / 2
    return Work(
        grid=(blocks(n, 128),),
        block=(128,),
        args=(call, spot, strike, years, np.float64(RATE), np.empty(n)),
        outputs=(5,),
        extents=(n,),
        n_bytes=40 * n,
        flops=1000 * n,
    )


def implied_reference(xp, args):
    return (xp.asarray(volatilities(args[0].size)),)


CASES = (
    Case(
        "implied volatility by Newton",
        make_implied,
        "void(float64[::1], float64[::1], float64[::1], float64[::1], float64, float64[::1])",
        IMPLIED_CPP,
        implied_work,
        implied_reference,
        tolerance=1e-7,
    ),
)
