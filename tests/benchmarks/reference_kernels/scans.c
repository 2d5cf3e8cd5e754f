// Order within a block or an array: inclusive and exclusive sums, compaction, and a step of a bitonic sort.
#include <stdint.h>
#include <string.h>

enum { SUMS = 512, KEPT = 256 };

static int min(int a, int b) { return a < b ? a : b; }

void inclusive_sums(const int32_t *restrict x, int32_t *restrict out, int n) {
#pragma omp parallel for
    for (int start = 0; start < n; start += SUMS) {
        int32_t total = 0;
        for (int i = start; i < min(start + SUMS, n); ++i) out[i] = total += x[i];
    }
}

void exclusive_sums(const float *restrict x, float *restrict out, float *restrict totals, int blocks) {
#pragma omp parallel for
    for (int block = 0; block < blocks; ++block) {
        float total = 0.0f;
        for (int i = block * SUMS; i < (block + 1) * SUMS; ++i) {
            out[i] = total;
            total += x[i];
        }
        totals[block] = total;
    }
}

void compact(const float *restrict x, float threshold, float *restrict out, int32_t *restrict counts, int n) {
#pragma omp parallel for
    for (int start = 0; start < n; start += KEPT) {
        float kept[KEPT];
        int count = 0;
        for (int i = start; i < min(start + KEPT, n); ++i) {
            kept[count] = x[i];
            count += x[i] > threshold;
        }
        memcpy(out + start, kept, (size_t)count * sizeof *kept);
        counts[start / KEPT] = count;
    }
}

void bitonic(const float *restrict x, int32_t j, int32_t k, float *restrict out, int n) {
#pragma omp parallel for
    for (int start = 0; start < n; start += 2 * j) {
        const int ascending = (start & k) == 0;
        for (int i = start; i < min(start + j, n - j); ++i) {
            float a = x[i], b = x[i + j], least = b < a ? b : a, most = b < a ? a : b;
            out[i] = ascending ? least : most;
            out[i + j] = ascending ? most : least;
        }
    }
}
