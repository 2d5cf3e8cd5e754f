// Handwritten random numbers: pi by Monte Carlo with a 32-bit xorshift, and random walks with a linear congruence.
#include <stdint.h>

enum { STRIP = 64 };

static int min(int a, int b) { return a < b ? a : b; }

static inline uint32_t shifted(uint32_t state) {
    state ^= state << 13;
    state ^= state >> 17;
    return state ^ state << 5;
}

void pi(const uint32_t *restrict seeds, int32_t samples, int32_t *restrict hits, int n) {
#pragma omp parallel for
    for (int start = 0; start < n; start += STRIP) {
        const int count = min(STRIP, n - start);
        uint32_t states[STRIP];
        int32_t counts[STRIP];
        for (int i = 0; i < count; ++i) {
            states[i] = seeds[start + i];
            counts[i] = 0;
        }
        for (int k = 0; k < samples; ++k)
            for (int i = 0; i < count; ++i) {
                uint32_t first = shifted(states[i]), second = shifted(first);
                float x = (float)(int32_t)(first >> 8) * 0x1p-24f, y = (float)(int32_t)(second >> 8) * 0x1p-24f;
                states[i] = second;
                counts[i] += x * x + y * y <= 1.0f;
            }
        for (int i = 0; i < count; ++i) hits[start + i] = counts[i];
    }
}

void walk(const uint32_t *restrict seeds, int32_t steps, int32_t *restrict out, int n) {
#pragma omp parallel for
    for (int start = 0; start < n; start += STRIP) {
        const int count = min(STRIP, n - start);
        uint32_t states[STRIP];
        int32_t x[STRIP], y[STRIP];
        for (int i = 0; i < count; ++i) {
            states[i] = seeds[start + i];
            x[i] = y[i] = 0;
        }
        for (int k = 0; k < steps; ++k)
            for (int i = 0; i < count; ++i) {
                uint32_t state = states[i] = 1664525u * states[i] + 1013904223u, direction = state >> 30;
                x[i] += (direction == 0) - (direction == 1);
                y[i] += (direction == 2) - (direction == 3);
            }
        for (int i = 0; i < count; ++i) out[start + i] = x[i] * x[i] + y[i] * y[i];
    }
}
