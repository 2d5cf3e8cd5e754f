// Dynamic programming on int32: cheapest paths by rows, alignment and edit distance row by row.
#include <stdint.h>
#include <string.h>

enum { ROWS = 16, STRIP = 2048, LENGTH = 64, LONGEST = 128 };

static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }

// Strips of columns with the required overlap, so that all rows of costs fit a core's cache.
void pathfinder(const int32_t *restrict wall, const int32_t *restrict start, int32_t *restrict out, int columns) {
#pragma omp parallel for
    for (int begin = 0; begin < columns; begin += STRIP) {
        const int end = min(begin + STRIP, columns), first = max(begin - ROWS, 0), last = min(end + ROWS, columns);
        int32_t costs[2][STRIP + 2 * ROWS + 2];  // with a sentinel at each end that is never the cheapest
        int32_t *old = costs[0], *next = costs[1];
        const int count = last - first;
        memcpy(old + 1, start + first, (size_t)count * sizeof *old);
        for (int row = 0; row < ROWS; ++row) {
            old[0] = old[count + 1] = INT32_MAX;
            for (int i = 1; i <= count; ++i)
                next[i] = min(old[i], min(old[i - 1], old[i + 1])) + wall[row * columns + first + i - 1];
            int32_t *other = old;
            old = next;
            next = other;
        }
        memcpy(out + begin, old + 1 + begin - first, (size_t)(end - begin) * sizeof *out);
    }
}

void alignment(const int32_t *restrict a, const int32_t *restrict b, int32_t gap, int32_t *restrict out, int pairs) {
#pragma omp parallel for
    for (int pair = 0; pair < pairs; ++pair) {
        const int32_t *one = a + pair * LENGTH, *other = b + pair * LENGTH;
        int32_t row[LENGTH + 1];
        for (int j = 0; j <= LENGTH; ++j) row[j] = -j * gap;
        for (int i = 0; i < LENGTH; ++i) {
            int32_t *restrict line = out + (pair * LENGTH + i) * LENGTH;
            int32_t diagonal = row[0], left = row[0] = -(i + 1) * gap;
            for (int j = 0; j < LENGTH; ++j) {
                int32_t best = max(diagonal + (one[i] == other[j] ? 2 : -1), row[j + 1] - gap);
                diagonal = row[j + 1];
                row[j + 1] = line[j] = left = max(best, left - gap);
            }
        }
    }
}

void edit_distance(const uint8_t *restrict a, const uint8_t *restrict b, int32_t *restrict out, int n, int pairs) {
#pragma omp parallel for
    for (int pair = 0; pair < pairs; ++pair) {
        const uint8_t *one = a + pair * n, *other = b + pair * n;
        int32_t row[LONGEST + 1];
        for (int j = 0; j <= n; ++j) row[j] = j;
        for (int i = 0; i < n; ++i) {
            int32_t diagonal = row[0], left = row[0] = i + 1;
            for (int j = 0; j < n; ++j) {
                int32_t best = min(diagonal + (one[i] != other[j]), row[j + 1] + 1);
                diagonal = row[j + 1];
                row[j + 1] = left = min(best, left + 1);
            }
        }
        out[pair] = row[n];
    }
}
