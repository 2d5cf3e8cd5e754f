// Linear algebra by elimination: LU and Gaussian elimination of one matrix, Cholesky and 4x4 inverses of many.
#include <math.h>
#include <string.h>

void lud(float *restrict m, int n) {
    for (int k = 0; k < n - 1; ++k) {
#pragma omp parallel for
        for (int i = k + 1; i < n; ++i) {
            const float factor = m[i * n + k] /= m[k * n + k];
            for (int j = k + 1; j < n; ++j) m[i * n + j] -= factor * m[k * n + j];
        }
    }
}

void gaussian(float *restrict m, float *restrict a, float *restrict b, int n) {
    for (int t = 0; t < n - 1; ++t) {
#pragma omp parallel for
        for (int i = t + 1; i < n; ++i) {
            const float factor = m[i * n + t] = a[i * n + t] / a[t * n + t];
            for (int j = t; j < n; ++j) a[i * n + j] -= factor * a[t * n + j];
            b[i] -= factor * b[t];
        }
    }
}

enum { ORDER = 6 };

void cholesky(const float *restrict matrices, float *restrict out, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        const float *a = matrices + i * ORDER * ORDER;
        float *restrict factor = out + i * ORDER * ORDER;
        memset(factor, 0, ORDER * ORDER * sizeof *factor);
        for (int row = 0; row < ORDER; ++row)
            for (int column = 0; column <= row; ++column) {
                float total = a[row * ORDER + column];
                for (int k = 0; k < column; ++k) total -= factor[row * ORDER + k] * factor[column * ORDER + k];
                factor[row * ORDER + column] = row == column ? sqrtf(total) : total / factor[column * ORDER + column];
            }
    }
}

void inverse4(const float *restrict matrices, float *restrict out, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        float m[4][8] = {{0.0f}};
        for (int row = 0; row < 4; ++row) {
            memcpy(m[row], matrices + (i * 4 + row) * 4, 4 * sizeof(float));
            m[row][row + 4] = 1.0f;
        }
        for (int k = 0; k < 4; ++k) {
            int pivot = k;
            for (int row = k + 1; row < 4; ++row)
                if (fabsf(m[row][k]) > fabsf(m[pivot][k])) pivot = row;
            if (pivot != k)
                for (int column = 0; column < 8; ++column) {
                    float swap = m[k][column];
                    m[k][column] = m[pivot][column];
                    m[pivot][column] = swap;
                }
            const float scale = 1.0f / m[k][k];
            for (int column = 0; column < 8; ++column) m[k][column] *= scale;
            for (int row = 0; row < 4; ++row) {
                if (row == k) continue;
                const float factor = m[row][k];
                for (int column = 0; column < 8; ++column) m[row][column] -= factor * m[k][column];
            }
        }
        for (int row = 0; row < 4; ++row) memcpy(out + (i * 4 + row) * 4, m[row] + 4, 4 * sizeof(float));
    }
}
