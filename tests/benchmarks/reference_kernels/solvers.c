// A transposed matrix by a vector, ADI of float64 along columns, cyclic reduction, and implied volatilities by Newton.
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { CHUNK = 64, STRIP = 256, NARROW = 64, MOST = 256 };

static int min(int a, int b) { return a < b ? a : b; }

// Strips of columns; as in the kernel, a chunk of rows has a sum of its own.
void bicg_transposed(const float *restrict a, const float *restrict r, float *restrict s, int rows, int columns) {
#pragma omp parallel for
    for (int start = 0; start < columns; start += STRIP) {
        const int count = min(STRIP, columns - start);
        for (int first = 0; first < rows; first += CHUNK) {
            float totals[STRIP] = {0.0f};
            for (int i = first; i < min(first + CHUNK, rows); ++i) {
                const float *line = a + i * columns + start;
                for (int j = 0; j < count; ++j) totals[j] += line[j] * r[i];
            }
            for (int j = 0; j < count; ++j) s[start + j] += totals[j];
        }
    }
}

// The inner columns of a strip: forward to coefficients p and q, and back to the solution.
static void solve_columns(const double *restrict u, double a, double b, double d, double f, double *restrict p,
                          double *restrict q, double *restrict v, int rows, int n, int first, int last) {
    for (int i = first; i < last; ++i) p[i] = 0.0, q[i] = 1.0;
    for (int j = 1; j < rows - 1; ++j) {
        const double *line = u + j * n, *old_p = p + (j - 1) * n, *old_q = q + (j - 1) * n;
        double *new_p = p + j * n, *new_q = q + j * n;
#pragma omp simd
        for (int i = first; i < last; ++i) {
            double divisor = a * old_p[i] + b;
            double flow = -d * line[i - 1] + (1.0 + d + f) * line[i] - f * line[i + 1];
            new_p[i] = -a / divisor;
            new_q[i] = (flow - a * old_q[i]) / divisor;
        }
    }
    for (int i = first; i < last; ++i) v[i] = v[(rows - 1) * n + i] = 1.0;
    for (int j = rows - 2; j > 0; --j) {
#pragma omp simd
        for (int i = first; i < last; ++i) v[j * n + i] = p[j * n + i] * v[(j + 1) * n + i] + q[j * n + i];
    }
}

void adi_columns(const double *restrict u, double a, double b, double d, double f, double *restrict p,
                 double *restrict q, double *restrict v, int rows, int n) {
    for (int j = 0; j < rows; ++j) {
        v[j * n] = u[j * n];
        v[j * n + n - 1] = u[j * n + n - 1];
    }
#pragma omp parallel for
    for (int start = 1; start < n - 1; start += NARROW)
        solve_columns(u, a, b, d, f, p, q, v, rows, n, start, min(start + NARROW, n - 1));
}

typedef struct { float a[MOST], b[MOST], c[MOST], d[MOST]; } equations;

// Eliminates the unknown before equation i, and the one after it.
static inline void eliminate_lower(const equations *old, equations *new, int i, int stride) {
    const float k = -old->a[i] / old->b[i - stride];
    new->a[i] = k * old->a[i - stride];
    new->b[i] += k * old->c[i - stride];
    new->d[i] += k * old->d[i - stride];
}

static inline void eliminate_upper(const equations *old, equations *new, int i, int stride) {
    const float k = -old->c[i] / old->b[i + stride];
    new->c[i] = k * old->c[i + stride];
    new->b[i] += k * old->a[i + stride];
    new->d[i] += k * old->d[i + stride];
}

static void reduce(const equations *restrict old, equations *restrict new, int stride, int n) {
    const size_t bytes = (size_t)n * sizeof(float);
    memset(new->a, 0, bytes);
    memcpy(new->b, old->b, bytes);
    memset(new->c, 0, bytes);
    memcpy(new->d, old->d, bytes);
#pragma omp simd
    for (int i = stride; i < n; ++i) eliminate_lower(old, new, i, stride);
#pragma omp simd
    for (int i = 0; i < n - stride; ++i) eliminate_upper(old, new, i, stride);
}

void cyclic_reduction(const float *restrict lower, const float *restrict diagonal, const float *restrict upper,
                      const float *restrict right, float *restrict x, int n, int systems) {
    const size_t bytes = (size_t)n * sizeof(float);
#pragma omp parallel for
    for (int system = 0; system < systems; ++system) {
        equations both[2], *old = &both[0], *new = &both[1];
        memcpy(old->a, lower + system * n, bytes);
        memcpy(old->b, diagonal + system * n, bytes);
        memcpy(old->c, upper + system * n, bytes);
        memcpy(old->d, right + system * n, bytes);
        for (int stride = 1; stride < n; stride *= 2) {
            reduce(old, new, stride, n);
            equations *other = old;
            old = new;
            new = other;
        }
        for (int i = 0; i < n; ++i) x[system * n + i] = old->d[i] / old->b[i];
    }
}

static double cumulative_normal(double d) { return 0.5 * erfc(-d * 0.7071067811865476); }

static double call_and_vega(double spot, double strike, double years, double rate, double volatility, double *vega) {
    double root = sqrt(years);
    double d1 = (log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / (volatility * root);
    double d2 = d1 - volatility * root;
    *vega = spot * root * 0.3989422804014327 * exp(-0.5 * d1 * d1);
    return spot * cumulative_normal(d1) - strike * exp(-rate * years) * cumulative_normal(d2);
}

void implied(const double *restrict price, const double *restrict spot, const double *restrict strike,
             const double *restrict years, double rate, double *restrict out, int n_options) {
#pragma omp parallel for
    for (int i = 0; i < n_options; ++i) {
        double low = 1e-3, high = 4.0, volatility = 0.5, vega;
        double error = call_and_vega(spot[i], strike[i], years[i], rate, volatility, &vega) - price[i];
        for (int n = 0; fabs(error) > 1e-10 && n < 60; ++n) {
            if (error > 0.0)
                high = volatility;
            else
                low = volatility;
            volatility -= error / vega;
            if (!(volatility > low && volatility < high)) volatility = 0.5 * (low + high);
            error = call_and_vega(spot[i], strike[i], years[i], rate, volatility, &vega) - price[i];
        }
        out[i] = volatility;
    }
}
