// Attention with a running maximum: of all keys one after the other, and causal by chunks of keys.
#include <math.h>
#include <stddef.h>

enum { FEATURES = 64, SHORT = 32, CHUNK = 32 };

static int min(int a, int b) { return a < b ? a : b; }
static inline float larger(float a, float b) { return a > b ? a : b; }

void attention(const float *restrict queries, const float *restrict keys, const float *restrict values, float scale,
               float *restrict out, int heads, int n) {
#pragma omp parallel for
    for (int line = 0; line < heads * n; ++line) {
        const size_t head = (size_t)(line / n) * n * FEATURES;
        float query[FEATURES], sums[FEATURES] = {0.0f}, highest = -1e30f, norm = 0.0f;
        for (int i = 0; i < FEATURES; ++i) query[i] = queries[(size_t)line * FEATURES + i] * scale;
        for (int k = 0; k < n; ++k) {
            const float *key = keys + head + k * FEATURES, *value = values + head + k * FEATURES;
            float score = 0.0f;
#pragma omp simd reduction(+ : score)
            for (int i = 0; i < FEATURES; ++i) score += query[i] * key[i];
            const float higher = larger(highest, score), correction = expf(highest - higher), p = expf(score - higher);
            norm = norm * correction + p;
            for (int i = 0; i < FEATURES; ++i) sums[i] = sums[i] * correction + p * value[i];
            highest = higher;
        }
        for (int i = 0; i < FEATURES; ++i) out[(size_t)line * FEATURES + i] = sums[i] / norm;
    }
}

void causal_attention(const float *restrict q, const float *restrict k, const float *restrict v, float *restrict out,
                      int n) {
#pragma omp parallel for schedule(dynamic, 8)
    for (int row = 0; row < n; ++row) {
        const float *query = q + row * SHORT;
        float totals[SHORT] = {0.0f}, highest = -1e30f, norm = 0.0f;
        for (int start = 0; start <= row; start += CHUNK) {
            const int count = min(CHUNK, row - start + 1);
            float p[CHUNK], largest = highest;
            for (int j = 0; j < count; ++j) {
                const float *key = k + (start + j) * SHORT;
                float score = 0.0f;
#pragma omp simd reduction(+ : score)
                for (int i = 0; i < SHORT; ++i) score += query[i] * key[i];
                p[j] = score * 0.17677669f;
                largest = larger(largest, p[j]);
            }
            const float scale = expf(highest - largest);
            norm *= scale;
            for (int j = 0; j < count; ++j) norm += p[j] = expf(p[j] - largest);
            for (int i = 0; i < SHORT; ++i) totals[i] *= scale;
            for (int j = 0; j < count; ++j)
                for (int i = 0; i < SHORT; ++i) totals[i] += p[j] * v[(start + j) * SHORT + i];
            highest = largest;
        }
        for (int i = 0; i < SHORT; ++i) out[row * SHORT + i] = totals[i] / norm;
    }
}
