// Sparse matrices and graphs in CSR: products with a vector, of short and of long rows, and one step of a BFS.
#include <stdint.h>

void spmv(const int32_t *restrict starts, const int32_t *restrict columns, const float *restrict values,
          const float *restrict x, float *restrict y, int n) {
#pragma omp parallel for
    for (int row = 0; row < n; ++row) {
        float total = 0.0f;
        for (int k = starts[row]; k < starts[row + 1]; ++k) total += values[k] * x[columns[k]];
        y[row] = total;
    }
}

void spmv_long(const int32_t *restrict starts, const int32_t *restrict columns, const float *restrict values,
               const float *restrict x, float *restrict y, int n) {
#pragma omp parallel for
    for (int row = 0; row < n; ++row) {
        float total = 0.0f;
#pragma omp simd reduction(+ : total)
        for (int k = starts[row]; k < starts[row + 1]; ++k) total += values[k] * x[columns[k]];
        y[row] = total;
    }
}

// Several threads may reach a node; all of them write the same value.
void bfs(const int32_t *restrict starts, const int32_t *restrict neighbors, const int32_t *restrict level,
         int32_t depth, int32_t *restrict out, int32_t *restrict changed, int n) {
#pragma omp parallel for
    for (int node = 0; node < n; ++node) {
        if (level[node] != depth) continue;
        for (int k = starts[node]; k < starts[node + 1]; ++k) {
            int other = neighbors[k];
            if (level[other] < 0) {
                __atomic_store_n(&out[other], depth + 1, __ATOMIC_RELAXED);
                __atomic_store_n(&changed[0], 1, __ATOMIC_RELAXED);
            }
        }
    }
}
