// Black-Scholes: prices of European options.
#include <math.h>

static float cumulative_normal(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float tail = 0.3989422804f * expf(-0.5f * d * d) *
                 (k * (0.31938153f +
                       k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
    return d > 0.0f ? 1.0f - tail : tail;
}

void black_scholes(const float *restrict price, const float *restrict strike, const float *restrict years, float rate,
                   float volatility, float *restrict call, float *restrict put, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        float s = price[i], x = strike[i], t = years[i], root = sqrtf(t);
        float d1 = (logf(s / x) + (rate + 0.5f * volatility * volatility) * t) / (volatility * root);
        float d2 = d1 - volatility * root, n1 = cumulative_normal(d1), n2 = cumulative_normal(d2);
        float discounted = x * expf(-rate * t);
        call[i] = s * n1 - discounted * n2;
        put[i] = discounted * (1.0f - n2) - s * (1.0f - n1);
    }
}
