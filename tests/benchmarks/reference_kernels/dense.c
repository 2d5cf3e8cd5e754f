// Dense matrices: products of ints, with a vector, Jacobi, small inverses, LU of small ones, and Floyd-Warshall.
#include <stdint.h>
#include <string.h>

void int_matmul(const int32_t *restrict a, const int32_t *restrict b, int32_t *restrict c, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        int32_t *restrict line = c + i * n;
        memset(line, 0, (size_t)n * sizeof *line);
        for (int k = 0; k < n; ++k)
            for (int j = 0; j < n; ++j) line[j] += a[i * n + k] * b[k * n + j];
    }
}

// Not inlined: if two are in one function, gcc 12 vectorizes only one of them.
static __attribute__((noinline)) float dot(const float *restrict a, const float *restrict b, int n) {
    float total = 0.0f;
#pragma omp simd reduction(+ : total)
    for (int i = 0; i < n; ++i) total += a[i] * b[i];
    return total;
}

void matvec(const float *restrict a, const float *restrict x, float *restrict y, int columns, int rows) {
#pragma omp parallel for
    for (int row = 0; row < rows; ++row) y[row] = dot(a + (size_t)row * columns, x, columns);
}

void jacobi(const float *restrict a, const float *restrict b, const float *restrict x, float *restrict out, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        const float *line = a + i * n;
        float total = dot(line, x, i) + dot(line + i + 1, x + i + 1, n - i - 1);
        out[i] = (b[i] - total) / line[i];
    }
}

void inverse(const float *restrict m, float *restrict out, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        const float *p = m + 9 * i;
        float *q = out + 9 * i;
        float a = p[0], b = p[1], c = p[2], d = p[3], e = p[4], f = p[5], g = p[6], h = p[7], k = p[8];
        float ca = e * k - f * h, cb = f * g - d * k, cc = d * h - e * g;
        float scale = 1.0f / (a * ca + b * cb + c * cc);
        q[0] = ca * scale;
        q[1] = (c * h - b * k) * scale;
        q[2] = (b * f - c * e) * scale;
        q[3] = cb * scale;
        q[4] = (a * k - c * g) * scale;
        q[5] = (c * d - a * f) * scale;
        q[6] = cc * scale;
        q[7] = (b * g - a * h) * scale;
        q[8] = (a * e - b * d) * scale;
    }
}

void lu(const float *restrict matrices, float *restrict out, int n) {
#pragma omp parallel for
    for (int matrix = 0; matrix < n; ++matrix) {
        float m[16][16];
        memcpy(m, matrices + 256 * matrix, sizeof m);
        for (int k = 0; k < 15; ++k)
            for (int i = k + 1; i < 16; ++i) {
                m[i][k] /= m[k][k];
                for (int j = k + 1; j < 16; ++j) m[i][j] -= m[i][k] * m[k][j];
            }
        memcpy(out + 256 * matrix, m, sizeof m);
    }
}

void floyd(const int32_t *restrict distance, int32_t k, int32_t *restrict out, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        const int32_t to_k = distance[i * n + k];
        for (int j = 0; j < n; ++j) {
            int32_t direct = distance[i * n + j], through = to_k + distance[k * n + j];
            out[i * n + j] = direct < through ? direct : through;
        }
    }
}
