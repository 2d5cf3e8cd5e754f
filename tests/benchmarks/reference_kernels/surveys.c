// Distances of many points: an angular correlation, the nearest centers of k-means, and the nearest eight of many.
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "constants.h"

enum { BINS = 20, SIDE = 256, DIMENSIONS = 24, STRIP = 64, TOP = 8, CHUNK = 128 };

static int min(int a, int b) { return a < b ? a : b; }

static int bin_of(float cosine) {
    int low = 0, high = BINS;
    while (high > low + 1) {
        const int middle = (low + high) / 2;
        if (cosine >= BOUNDS[middle])
            high = middle;
        else
            low = middle;
    }
    return cosine >= BOUNDS[low] ? low : cosine < BOUNDS[high] ? high + 1 : high;
}

void correlation(const float *restrict points, int32_t *restrict counts, int n) {
    const float *x = points, *y = points + n, *z = points + 2 * n;
#pragma omp parallel
    {
        int32_t bins[BINS + 2] = {0};
#pragma omp for schedule(dynamic, 16) nowait
        for (int i = 0; i < n; ++i)
            for (int start = i + 1; start < n; start += SIDE) {
                const int count = min(SIDE, n - start);
                float cosines[SIDE];
                for (int j = 0; j < count; ++j)
                    cosines[j] = x[i] * x[start + j] + y[i] * y[start + j] + z[i] * z[start + j];
                for (int j = 0; j < count; ++j) ++bins[bin_of(cosines[j])];
            }
        for (int b = 0; b < BINS + 2; ++b)
#pragma omp atomic
            counts[b] += bins[b];
    }
}

void nearest_center(const float *restrict features, const float *restrict centers, int32_t *restrict membership,
                    float *restrict distances, int n, int n_centers) {
#pragma omp parallel for
    for (int start = 0; start < n; start += STRIP) {
        const int count = min(STRIP, n - start);
        float points[DIMENSIONS][STRIP], least[STRIP];
        int32_t nearest[STRIP] = {0};
        for (int d = 0; d < DIMENSIONS; ++d)
            memcpy(points[d], features + d * n + start, (size_t)count * sizeof(float));
        for (int i = 0; i < STRIP; ++i) least[i] = INFINITY;
        for (int c = 0; c < n_centers; ++c) {
            const float *center = centers + c * DIMENSIONS;
#pragma omp simd
            for (int i = 0; i < count; ++i) {
                float distance = 0.0f;
#pragma GCC unroll 24
                for (int d = 0; d < DIMENSIONS; ++d) {
                    float difference = points[d][i] - center[d];
                    distance += difference * difference;
                }
                nearest[i] = distance < least[i] ? c : nearest[i];
                least[i] = distance < least[i] ? distance : least[i];
            }
        }
        memcpy(membership + start, nearest, (size_t)count * sizeof *nearest);
        memcpy(distances + start, least, (size_t)count * sizeof *least);
    }
}

// Puts a value that is less than the last one at its position in an ascending list.
static inline void place(float value, int32_t index, float best[TOP], int32_t indices[TOP]) {
    int j = TOP - 1;
    for (; j > 0 && best[j - 1] > value; --j) {
        best[j] = best[j - 1];
        indices[j] = indices[j - 1];
    }
    best[j] = value;
    indices[j] = index;
}

// Strips of queries, as a row of the distances has one of each query.
void nearest_distances(const float *restrict distances, float *restrict values, int32_t *restrict indices, int n,
                       int queries) {
#pragma omp parallel for
    for (int start = 0; start < queries; start += STRIP) {
        const int count = min(STRIP, queries - start);
        float best[STRIP][TOP], worst[STRIP];
        int32_t found[STRIP][TOP];
        for (int q = 0; q < STRIP; ++q) {
            worst[q] = INFINITY;
            for (int k = 0; k < TOP; ++k) best[q][k] = INFINITY, found[q][k] = -1;
        }
        for (int i = 0; i < n; ++i) {
            const float *line = distances + i * queries + start;
            for (int q = 0; q < count; ++q)
                if (line[q] < worst[q]) {
                    place(line[q], i, best[q], found[q]);
                    worst[q] = best[q][TOP - 1];
                }
        }
        for (int k = 0; k < TOP; ++k)
            for (int q = 0; q < count; ++q) {
                values[k * queries + start + q] = best[q][k];
                indices[k * queries + start + q] = found[q][k];
            }
    }
}

void nearest_points(const float *restrict queries, const float *restrict points, float *restrict distances,
                    int32_t *restrict indices, int n_queries, int n_points) {
#pragma omp parallel for
    for (int q = 0; q < n_queries; ++q) {
        const float x = queries[3 * q], y = queries[3 * q + 1], z = queries[3 * q + 2];
        float *best = distances + q * TOP, squares[CHUNK];
        int32_t *found = indices + q * TOP;
        for (int k = 0; k < TOP; ++k) best[k] = 1e30f, found[k] = -1;
        for (int start = 0; start < n_points; start += CHUNK) {
            const int count = min(CHUNK, n_points - start);
            for (int i = 0; i < count; ++i) {
                const float *point = points + 3 * (start + i);
                float dx = x - point[0], dy = y - point[1], dz = z - point[2];
                squares[i] = dx * dx + dy * dy + dz * dz;
            }
            for (int i = 0; i < count; ++i)
                if (squares[i] < best[TOP - 1]) place(squares[i], start + i, best, found);
        }
    }
}
