// Many small matrices: eigenvalues by Jacobi's rotations, least squares by QR, Kalman filters, and Gram-Schmidt.
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { STRIP = 32, ORDER = 5, SWEEPS = 10, SAMPLES = 8, TERMS = 3, STATE = 4, LENGTH = 64, VECTORS = 16 };

static int min(int a, int b) { return a < b ? a : b; }

// One rotation in each matrix of a strip that has not converged yet.
static inline void rotate_all(float a[ORDER][ORDER][STRIP], const int32_t active[STRIP], int p, int q) {
#pragma omp simd
    for (int i = 0; i < STRIP; ++i) {
        const int rotates = active[i] & (a[p][q][i] != 0.0f);
        float theta = (a[q][q][i] - a[p][p][i]) / (2.0f * a[p][q][i]);
        float t = 1.0f / (fabsf(theta) + sqrtf(theta * theta + 1.0f));
        t = theta < 0.0f ? -t : t;
        float c = 1.0f / sqrtf(t * t + 1.0f), s = rotates ? t * c : 0.0f;
        c = rotates ? c : 1.0f;
#pragma GCC unroll 5
        for (int k = 0; k < ORDER; ++k) {
            float akp = a[k][p][i], akq = a[k][q][i];
            a[k][p][i] = c * akp - s * akq;
            a[k][q][i] = s * akp + c * akq;
        }
#pragma GCC unroll 5
        for (int k = 0; k < ORDER; ++k) {
            float apk = a[p][k][i], aqk = a[q][k][i];
            a[p][k][i] = c * apk - s * aqk;
            a[q][k][i] = s * apk + c * aqk;
        }
    }
}

// Marks the matrices of a strip that have not converged; returns how many these are.
static int find_active(float a[ORDER][ORDER][STRIP], int32_t active[STRIP]) {
    int count = 0;
#pragma omp simd reduction(+ : count)
    for (int i = 0; i < STRIP; ++i) {
        float outside = 0.0f, diagonal = 0.0f;
#pragma GCC unroll 5
        for (int p = 0; p < ORDER; ++p) {
            diagonal += a[p][p][i] * a[p][p][i];
#pragma GCC unroll 5
            for (int q = p + 1; q < ORDER; ++q) outside += a[p][q][i] * a[p][q][i];
        }
        active[i] = !(outside <= 1e-12f * diagonal);
        count += active[i];
    }
    return count;
}

void eigenvalues(const float *restrict matrices, float *restrict out, int n) {
#pragma omp parallel for
    for (int start = 0; start < n; start += STRIP) {
        const int count = min(STRIP, n - start);
        float a[ORDER][ORDER][STRIP];
        int32_t active[STRIP];
        memset(a, 0, sizeof a);
        for (int p = 0, element = 0; p < ORDER; ++p)
            for (int q = p; q < ORDER; ++q, ++element)
                for (int i = 0; i < count; ++i) a[p][q][i] = a[q][p][i] = matrices[element * n + start + i];
        for (int sweep = 0; sweep < SWEEPS && find_active(a, active); ++sweep)
            for (int p = 0; p < ORDER - 1; ++p)
                for (int q = p + 1; q < ORDER; ++q) rotate_all(a, active, p, q);
        for (int p = 1; p < ORDER; ++p)  // a sort by exchanges of neighbors, for all matrices of the strip
            for (int k = p - 1; k >= 0; --k)
                for (int i = 0; i < count; ++i) {
                    float one = a[k][k][i], other = a[k + 1][k + 1][i];
                    a[k][k][i] = other < one ? other : one;
                    a[k + 1][k + 1][i] = other < one ? one : other;
                }
        for (int p = 0; p < ORDER; ++p) memcpy(out + p * n + start, a[p][p], (size_t)count * sizeof(float));
    }
}

// Eliminates a column by a reflection, which also transforms the right-hand side in the last column.
static inline __attribute__((always_inline)) void reflect(float a[SAMPLES][TERMS + 1], int c) {
    float squares = 0.0f;
#pragma GCC unroll 8
    for (int r = c; r < SAMPLES; ++r) squares += a[r][c] * a[r][c];
    float length = sqrtf(squares), alpha = a[c][c] > 0.0f ? -length : length, head = a[c][c] - alpha;
    a[c][c] = alpha;
    float scale = 1.0f / (-alpha * head);
#pragma GCC unroll 4
    for (int k = c + 1; k < TERMS + 1; ++k) {
        float product = head * a[c][k];
#pragma GCC unroll 8
        for (int r = c + 1; r < SAMPLES; ++r) product += a[r][c] * a[r][k];
        product *= scale;
        a[c][k] -= product * head;
#pragma GCC unroll 8
        for (int r = c + 1; r < SAMPLES; ++r) a[r][k] -= product * a[r][c];
    }
}

void fit(const float *restrict times, const float *restrict values, float *restrict coefficients,
         float *restrict residuals, int n) {
#pragma omp parallel for simd
    for (int i = 0; i < n; ++i) {
        float a[SAMPLES][TERMS + 1], rest = 0.0f;
#pragma GCC unroll 8
        for (int r = 0; r < SAMPLES; ++r) {
            float t = times[r * n + i];
            a[r][0] = 1.0f;
            a[r][1] = t;
            a[r][2] = t * t;
            a[r][TERMS] = values[r * n + i];
        }
        reflect(a, 0);
        reflect(a, 1);
        reflect(a, 2);
        float x2 = a[2][TERMS] / a[2][2], x1 = (a[1][TERMS] - a[1][2] * x2) / a[1][1];
        coefficients[2 * n + i] = x2;
        coefficients[n + i] = x1;
        coefficients[i] = (a[0][TERMS] - a[0][1] * x1 - a[0][2] * x2) / a[0][0];
#pragma GCC unroll 8
        for (int r = TERMS; r < SAMPLES; ++r) rest += a[r][TERMS] * a[r][TERMS];
        residuals[i] = sqrtf(rest);
    }
}

typedef struct {
    float x[STATE][STRIP], p[STATE][STATE][STRIP], f[STATE][STATE], noise[STATE][STATE];
} filter;

// The states of a strip of tracks a time step later.
static void predict(filter *all) {
#pragma omp simd
    for (int t = 0; t < STRIP; ++t) {
        float x[STATE], work[STATE][STATE];
#pragma GCC unroll 4
        for (int i = 0; i < STATE; ++i) {
            x[i] = 0.0f;
#pragma GCC unroll 4
            for (int j = 0; j < STATE; ++j) {
                x[i] += all->f[i][j] * all->x[j][t];
                work[i][j] = 0.0f;
#pragma GCC unroll 4
                for (int k = 0; k < STATE; ++k) work[i][j] += all->f[i][k] * all->p[k][j][t];
            }
        }
#pragma GCC unroll 4
        for (int i = 0; i < STATE; ++i) {
            all->x[i][t] = x[i];
#pragma GCC unroll 4
            for (int j = 0; j < STATE; ++j) {
                float total = 0.0f;
#pragma GCC unroll 4
                for (int k = 0; k < STATE; ++k) total += work[i][k] * all->f[j][k];
                all->p[i][j][t] = total + all->noise[i][j];
            }
        }
    }
}

// Corrects the states by measured positions, those of tracks that have one.
static void correct(filter *all, const float *restrict z0, const float *restrict z1, float noise) {
#pragma omp simd
    for (int t = 0; t < STRIP; ++t) {
        const int known = z0[t] == z0[t];
        const float s00 = all->p[0][0][t] + noise, s01 = all->p[0][1][t], s11 = all->p[1][1][t] + noise;
        const float scale = 1.0f / (s00 * s11 - s01 * s01);
        const float r0 = known ? z0[t] - all->x[0][t] : 0.0f, r1 = known ? z1[t] - all->x[1][t] : 0.0f;
        float upper[2][STATE];
#pragma GCC unroll 4
        for (int j = 0; j < STATE; ++j) upper[0][j] = all->p[0][j][t], upper[1][j] = all->p[1][j][t];
#pragma GCC unroll 4
        for (int i = 0; i < STATE; ++i) {
            const float a = all->p[i][0][t], b = all->p[i][1][t];
            const float k0 = known ? (a * s11 - b * s01) * scale : 0.0f;
            const float k1 = known ? (b * s00 - a * s01) * scale : 0.0f;
            all->x[i][t] += k0 * r0 + k1 * r1;
#pragma GCC unroll 4
            for (int j = 0; j < STATE; ++j) all->p[i][j][t] -= k0 * upper[0][j] + k1 * upper[1][j];
        }
    }
}

void kalman(const float *restrict measured, const float *restrict motion, const float *restrict process_noise,
            float noise, float *restrict filtered, float *restrict covariance, int steps, int tracks) {
#pragma omp parallel for
    for (int start = 0; start < tracks; start += STRIP) {
        const size_t bytes = (size_t)min(STRIP, tracks - start) * sizeof(float);
        filter all = {0};
        memcpy(all.f, motion, sizeof all.f);
        memcpy(all.noise, process_noise, sizeof all.noise);
        for (int i = 0; i < STATE; ++i)
            for (int t = 0; t < STRIP; ++t) all.p[i][i][t] = 1.0f;
        for (int step = 0; step < steps; ++step) {
            float z[2][STRIP] = {{0.0f}};
            for (int k = 0; k < 2; ++k) memcpy(z[k], measured + (2 * step + k) * tracks + start, bytes);
            predict(&all);
            correct(&all, z[0], z[1], noise);
            for (int k = 0; k < 2; ++k) memcpy(filtered + (2 * step + k) * tracks + start, all.x[k], bytes);
        }
        for (int i = 0; i < STATE; ++i)
            for (int j = 0; j < STATE; ++j)
                memcpy(covariance + (i * STATE + j) * tracks + start, all.p[i][j], bytes);
    }
}

static float product(const float *restrict a, const float *restrict b) {
    float total = 0.0f;
#pragma omp simd reduction(+ : total)
    for (int i = 0; i < LENGTH; ++i) total += a[i] * b[i];
    return total;
}

void gram_schmidt(const float *restrict matrices, float *restrict q, float *restrict r, int n) {
#pragma omp parallel for
    for (int m = 0; m < n; ++m) {
        const float *matrix = matrices + m * LENGTH * VECTORS;
        float *restrict upper = r + m * VECTORS * VECTORS, a[VECTORS][LENGTH];
        for (int i = 0; i < LENGTH; ++i)
            for (int k = 0; k < VECTORS; ++k) a[k][i] = matrix[i * VECTORS + k];
        memset(upper, 0, VECTORS * VECTORS * sizeof *upper);
        for (int k = 0; k < VECTORS; ++k) {
            const float norm = sqrtf(product(a[k], a[k])), scale = 1.0f / norm;
            upper[k * VECTORS + k] = norm;
            for (int i = 0; i < LENGTH; ++i) a[k][i] *= scale;
            for (int j = k + 1; j < VECTORS; ++j) {
                const float dot = product(a[k], a[j]);
                for (int i = 0; i < LENGTH; ++i) a[j][i] -= dot * a[k][i];
                upper[k * VECTORS + j] = dot;
            }
        }
        for (int i = 0; i < LENGTH; ++i)
            for (int k = 0; k < VECTORS; ++k) q[(m * LENGTH + i) * VECTORS + k] = a[k][i];
    }
}
