// Order and search: a pattern in bytes, merging, radix counts, sorts of blocks, a segmented scan, a dot product.
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static int min(int a, int b) { return a < b ? a : b; }

void match(const uint8_t *restrict text, const uint8_t *restrict pattern, bool *restrict found,
           int32_t *restrict count, int n, int length) {
    int total = 0;
#pragma omp parallel for reduction(+ : total)
    for (int i = 0; i <= n - length; ++i) {
        bool same = true;
        for (int j = 0; j < length && same; ++j) same = text[i + j] == pattern[j];
        found[i] = same;
        total += same;
    }
    *count += total;
}

static int rank_of(const float *values, int n, float wanted, bool behind_equals) {
    int low = 0, high = n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (behind_equals ? values[middle] <= wanted : values[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void merge(const float *restrict a, const float *restrict b, float *restrict out, int n, int m) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i) out[i + rank_of(b, m, a[i], false)] = a[i];
#pragma omp parallel for
    for (int i = 0; i < m; ++i) out[i + rank_of(a, n, b[i], true)] = b[i];
}

void radix_count(const uint32_t *restrict keys, int32_t shift, int32_t *restrict counts, int n) {
    const int blocks = (n + 2047) / 2048;
#pragma omp parallel for
    for (int block = 0; block < blocks; ++block) {
        int32_t bins[16] = {0};
        for (int i = block * 2048; i < min(n, (block + 1) * 2048); ++i) ++bins[(keys[i] >> shift) & 15];
        for (int digit = 0; digit < 16; ++digit) counts[digit * blocks + block] = bins[digit];
    }
}

void odd_even(const int32_t *restrict x, int32_t *restrict out, int blocks) {
#pragma omp parallel for
    for (int block = 0; block < blocks; ++block) {
        int32_t values[256];
        memcpy(values, x + block * 256, sizeof values);
        for (int phase = 0; phase < 256; ++phase)
            for (int i = phase % 2; i < 255; i += 2) {
                int32_t a = values[i], b = values[i + 1];
                values[i] = a < b ? a : b;
                values[i + 1] = a < b ? b : a;
            }
        memcpy(out + block * 256, values, sizeof values);
    }
}

void bitonic_block(const float *restrict x, float *restrict out, int blocks) {
#pragma omp parallel for
    for (int block = 0; block < blocks; ++block) {
        float values[512];
        memcpy(values, x + block * 512, sizeof values);
        for (int k = 2; k <= 512; k *= 2)
            for (int j = k / 2; j > 0; j /= 2)
                for (int start = 0; start < 512; start += 2 * j) {
                    const bool ascending = (start & k) == 0;
                    for (int i = start; i < start + j; ++i) {
                        float a = values[i], b = values[i + j], least = b < a ? b : a, most = b < a ? a : b;
                        values[i] = ascending ? least : most;
                        values[i + j] = ascending ? most : least;
                    }
                }
        memcpy(out + block * 512, values, sizeof values);
    }
}

void segmented(const float *restrict x, const int32_t *restrict heads, float *restrict out, int blocks) {
#pragma omp parallel for
    for (int block = 0; block < blocks; ++block) {
        float total = 0.0f;
        for (int i = block * 256; i < (block + 1) * 256; ++i) out[i] = total = heads[i] ? x[i] : total + x[i];
    }
}

void dot_product(const float *restrict a, const float *restrict b, float *restrict result, int n) {
    float total = 0.0f;
#pragma omp parallel for simd reduction(+ : total)
    for (int i = 0; i < n; ++i) total += a[i] * b[i];
    *result += total;
}
