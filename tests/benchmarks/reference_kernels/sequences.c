// Alignments of sequences, row by row: Smith-Waterman with affine gaps on two alphabets, and dynamic time warping in a
// band on float and int32.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "constants.h"

enum { LETTERS = 24, MOST = 512, NONE = -10000, LOWEST = -(1 << 28), LONGEST = 256, PAIRS = 16, FAR = 1 << 30 };

static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }

// The best score of a pair; `scores` has a row of the letters' scores for each letter of the query.
static int local_score(const uint8_t *query, int m, const uint8_t *target, int n, const int32_t *scores, int letters,
                       int first_gap, int next_gap, int none) {
    int32_t h[MOST + 1] = {0}, f[MOST + 1];
    int best = 0;
    for (int j = 0; j <= n; ++j) f[j] = none;
    for (int i = 0; i < m; ++i) {
        const int32_t *row = scores + query[i] * letters;
        int e = none, left = 0, diagonal = 0;
        for (int j = 1; j <= n; ++j) {
            e = max(e - next_gap, left - first_gap);
            f[j] = max(f[j] - next_gap, h[j] - first_gap);
            left = max(max(diagonal + row[target[j - 1]], 0), max(e, f[j]));
            diagonal = h[j];
            h[j] = left;
            best = max(best, left);
        }
    }
    return best;
}

void local_alignment(const uint8_t *restrict queries, const int32_t *restrict lengths, const uint8_t *restrict targets,
                     const int8_t *restrict table, int32_t first_gap, int32_t next_gap, int32_t *restrict scores,
                     int longest, int n, int pairs) {
    int32_t wide[LETTERS * LETTERS];
    for (int i = 0; i < LETTERS * LETTERS; ++i) wide[i] = table[i];
#pragma omp parallel for schedule(dynamic)
    for (int pair = 0; pair < pairs; ++pair)
        scores[pair] = local_score(queries + pair * longest, lengths[pair], targets + pair * n, n, wide, LETTERS,
                                   first_gap, next_gap, NONE);
}

void affine_gaps(const uint8_t *restrict queries, const uint8_t *restrict targets, int32_t gap_open,
                 int32_t gap_extend, int32_t *restrict best, int rows, int columns, int pairs) {
#pragma omp parallel for
    for (int pair = 0; pair < pairs; ++pair)
        best[pair] = local_score(queries + pair * rows, rows, targets + pair * columns, columns, NUCLEOTIDES, 4,
                                 gap_open, gap_extend, LOWEST);
}

void warping(const float *restrict a, const float *restrict b, int32_t band, float *restrict distances, int n,
             int pairs) {
#pragma omp parallel for
    for (int pair = 0; pair < pairs; ++pair) {
        const float *one = a + pair * n, *other = b + pair * n;
        float cost[LONGEST + 1];
        for (int j = 0; j <= n; ++j) cost[j] = 1e30f;
        cost[0] = 0.0f;
        for (int i = 0; i < n; ++i) {
            const int first = max(i - band, 0), last = min(i + band, n - 1);
            float diagonal = cost[first], left = cost[first] = 1e30f;
            for (int j = first; j <= last; ++j) {
                float difference = one[i] - other[j], above = cost[j + 1];
                float least = above < left ? above : left;
                least = diagonal < least ? diagonal : least;
                diagonal = above;
                cost[j + 1] = left = difference * difference + least;
            }
        }
        distances[pair] = cost[n];
    }
}

// Strips of pairs, as a row of the series has an element of each pair. The band moves to the right: cells on its left
// are never read again, and those on its right are still out of reach.
void warping_columns(const int32_t *restrict first, const int32_t *restrict second, int32_t window,
                     int32_t *restrict distance, int n, int pairs) {
#pragma omp parallel for
    for (int start = 0; start < pairs; start += PAIRS) {
        const int count = min(PAIRS, pairs - start);
        int32_t cost[LONGEST + 1][PAIRS];
        for (int j = 0; j <= n; ++j)
            for (int b = 0; b < PAIRS; ++b) cost[j][b] = j ? FAR : 0;
        for (int i = 0; i < n; ++i) {
            const int low = max(i - window, 0), high = min(i + window, n - 1);
            int32_t diagonal[PAIRS], left[PAIRS];
            for (int b = 0; b < PAIRS; ++b) {
                diagonal[b] = cost[low][b];
                cost[low][b] = left[b] = FAR;
            }
            for (int j = low; j <= high; ++j) {
                const int32_t *one = first + i * pairs + start, *other = second + j * pairs + start;
                for (int b = 0; b < count; ++b) {
                    const int32_t above = cost[j + 1][b], least = min(diagonal[b], min(above, left[b]));
                    diagonal[b] = above;
                    cost[j + 1][b] = left[b] = min(abs(one[b] - other[b]) + least, FAR);
                }
            }
        }
        for (int b = 0; b < count; ++b) distance[start + b] = cost[n][b];
    }
}
