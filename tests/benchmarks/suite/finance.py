"""Black-Scholes: prices of European options, with a polynomial for the normal distribution."""

from __future__ import annotations

import math

import numpy as np

from suite.case import Case, Work, blocks, random, sized

# Abramowitz and Stegun, 26.2.17.
A1 = np.float32(0.31938153)
A2 = np.float32(-0.356563782)
A3 = np.float32(1.781477937)
A4 = np.float32(-1.821255978)
A5 = np.float32(1.330274429)
SLOPE = np.float32(0.2316419)
INVERSE_ROOT_2PI = np.float32(0.3989422804)
HALF = np.float32(0.5)
ONE = np.float32(1)
ZERO = np.float32(0)


def make(cuda):
    @cuda.jit(device=True)
    def cumulative_normal(d):
        k = ONE / (ONE + SLOPE * abs(d))
        tail = INVERSE_ROOT_2PI * math.exp(-HALF * d * d) * (k * (A1 + k * (A2 + k * (A3 + k * (A4 + k * A5)))))
        if d > ZERO:
            return ONE - tail
        return tail

    @cuda.jit
    def black_scholes(price, strike, years, rate, volatility, call, put):
        i = cuda.grid(1)
        if i < price.size:
            root = math.sqrt(years[i])
            d1 = (math.log(price[i] / strike[i]) + (rate + HALF * volatility * volatility) * years[i]) / (
                volatility * root
            )
            d2 = d1 - volatility * root
            n1 = cumulative_normal(d1)
            n2 = cumulative_normal(d2)
            discounted = strike[i] * math.exp(-rate * years[i])
            call[i] = price[i] * n1 - discounted * n2
            put[i] = discounted * (ONE - n2) - price[i] * (ONE - n1)

    return black_scholes


CPP = """
__device__ float cumulative_normal(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float tail = 0.3989422804f * expf(-0.5f * d * d) * (k * (0.31938153f + k * (-0.356563782f
        + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
    return d > 0.0f ? 1.0f - tail : tail;
}

extern "C" __global__ void peer(const float* __restrict__ price, const float* __restrict__ strike,
                                const float* __restrict__ years, float rate, float volatility,
                                float* __restrict__ call, float* __restrict__ put, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float s = price[i], x = strike[i], t = years[i];
        float root = sqrtf(t);
        float d1 = (logf(s / x) + (rate + 0.5f * volatility * volatility) * t) / (volatility * root);
        float d2 = d1 - volatility * root;
        float n1 = cumulative_normal(d1), n2 = cumulative_normal(d2);
        float discounted = x * expf(-rate * t);
        call[i] = s * n1 - discounted * n2;
        put[i] = discounted * (1.0f - n2) - s * (1.0f - n1);
    }
}
"""


def work(size: str) -> Work:
    n = sized(size, 1 << 24, 1000, cpu=1 << 20)
    price = np.float32(5) + np.float32(25) * random(10, n)
    strike = np.float32(1) + np.float32(99) * random(11, n)
    years = np.float32(0.25) + np.float32(9.75) * random(12, n)
    return Work(
        grid=(blocks(n, 256),),
        block=(256,),
        args=(
            price,
            strike,
            years,
            np.float32(0.02),
            np.float32(0.3),
            np.empty(n, np.float32),
            np.empty(n, np.float32),
        ),
        outputs=(5, 6),
        extents=(n,),
        n_bytes=20 * n,
    )


def reference(xp, args):
    price, strike, years = (array.astype(xp.float64) for array in args[:3])
    rate, volatility = float(args[3]), float(args[4])

    def normal(d):
        k = 1 / (1 + float(SLOPE) * xp.abs(d))
        polynomial = k * (float(A1) + k * (float(A2) + k * (float(A3) + k * (float(A4) + k * float(A5)))))
        tail = float(INVERSE_ROOT_2PI) * xp.exp(-0.5 * d * d) * polynomial
        return xp.where(d > 0, 1 - tail, tail)

    root = xp.sqrt(years)
    d1 = (xp.log(price / strike) + (rate + 0.5 * volatility * volatility) * years) / (volatility * root)
    n1, n2 = normal(d1), normal(d1 - volatility * root)
    discounted = strike * xp.exp(-rate * years)
    return price * n1 - discounted * n2, discounted * (1 - n2) - price * (1 - n1)


CASES = (
    Case(
        "Black-Scholes",
        make,
        "void(float32[::1], float32[::1], float32[::1], float32, float32, float32[::1], float32[::1])",
        CPP,
        work,
        reference,
    ),
)
