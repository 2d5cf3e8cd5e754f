// Graphs, trees and tables: BFS with masks, ELL and COO by vector, a B+ tree, Needleman-Wunsch.
#include <stdbool.h>
#include <stdint.h>

static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }

void bfs_masks(const int32_t *restrict starts, const int32_t *restrict edges, bool *restrict mask,
               bool *restrict updating, bool *restrict visited, bool *restrict over, int32_t *restrict cost, int n) {
    do {
        *over = false;
#pragma omp parallel for
        for (int i = 0; i < n; ++i)
            if (mask[i]) {
                mask[i] = false;
                for (int k = starts[i]; k < starts[i + 1]; ++k)
                    if (!visited[edges[k]]) {
                        cost[edges[k]] = cost[i] + 1;
                        updating[edges[k]] = true;
                    }
            }
#pragma omp parallel for
        for (int i = 0; i < n; ++i)
            if (updating[i]) {
                mask[i] = visited[i] = *over = true;
                updating[i] = false;
            }
    } while (*over);
}

// Strips of rows: values of adjacent rows are adjacent in memory.
void spmv_ell(const float *restrict values, const int32_t *restrict columns, const float *restrict x,
              float *restrict y, int longest, int n) {
#pragma omp parallel for
    for (int start = 0; start < n; start += 1024) {
        const int end = min(start + 1024, n);
        for (int row = start; row < end; ++row) y[row] = 0.0f;
        for (int k = 0; k < longest; ++k)
#pragma omp simd
            for (int row = start; row < end; ++row) {
                const int column = columns[k * n + row];
                if (column >= 0) y[row] += values[k * n + row] * x[column];
            }
    }
}

void spmv_coo(const int32_t *restrict rows, const int32_t *restrict columns, const float *restrict values,
              const float *restrict x, float *restrict y, int count) {
#pragma omp parallel for
    for (int i = 0; i < count; ++i) {
        const float product = values[i] * x[columns[i]];
#pragma omp atomic
        y[rows[i]] += product;
    }
}

enum { FAN_OUT = 128 };

void find(const int32_t *restrict keys, const int32_t *restrict children, int32_t height,
          const int32_t *restrict wanted, int32_t *restrict found, int queries) {
#pragma omp parallel for
    for (int query = 0; query < queries; ++query) {
        int node = 0, at = 0;
        for (int level = 0; level <= height; ++level) {
            const int32_t *line = keys + node * (FAN_OUT + 1);
            for (at = 0; at < FAN_OUT - 1 && line[at + 1] <= wanted[query]; ++at) {}
            if (level < height) node = children[node * FAN_OUT + at];
        }
        if (keys[node * (FAN_OUT + 1) + at] == wanted[query]) found[query] = children[node * FAN_OUT + at];
    }
}

void needle(const int32_t *restrict similar, int32_t *restrict items, int32_t penalty, int n) {
    const int width = n + 1;
    for (int sum = 0; sum < 2 * (n / 16) - 1; ++sum) {
#pragma omp parallel for
        for (int by = max(0, sum - n / 16 + 1); by <= (sum < n / 16 ? sum : n / 16 - 1); ++by)
            for (int i = by * 16 + 1; i <= by * 16 + 16; ++i)
                for (int j = (sum - by) * 16 + 1; j <= (sum - by) * 16 + 16; ++j)
                    items[i * width + j] =
                        max(items[(i - 1) * width + j - 1] + similar[i * width + j],
                            max(items[i * width + j - 1], items[(i - 1) * width + j]) - penalty);
    }
}
