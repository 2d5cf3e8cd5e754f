// A sum, and a histogram of bytes.
#include <stdint.h>

enum { BINS = 256 };

void sum(const float *restrict x, float *restrict out, int n) {
    float total = 0.0f;
#pragma omp parallel for simd reduction(+ : total)
    for (int i = 0; i < n; ++i) total += x[i];
    out[0] += total;
}

void histogram(const uint8_t *restrict data, uint32_t *restrict bins, int n) {
#pragma omp parallel
    {
        uint32_t counts[BINS] = {0};
#pragma omp for nowait
        for (int i = 0; i < n; ++i) ++counts[data[i]];
        for (int i = 0; i < BINS; ++i)
#pragma omp atomic
            bins[i] += counts[i];
    }
}
