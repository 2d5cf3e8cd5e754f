// Grids after Rodinia: heat in three dimensions, and the two loops of SRAD, whose rows are contiguous.
#include <stdint.h>

static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }

void hotspot3d(const float *restrict power, const float *restrict t, float *restrict out, float sdc, float ce, float cn,
               float ct, float cc, int nz, int ny, int nx) {
#pragma omp parallel for collapse(2)
    for (int z = 0; z < nz; ++z)
        for (int y = 0; y < ny; ++y) {
            const float *here = t + (z * ny + y) * nx, *p = power + (z * ny + y) * nx;
            const float *north = t + (z * ny + max(y - 1, 0)) * nx, *south = t + (z * ny + min(y + 1, ny - 1)) * nx;
            const float *below = t + (max(z - 1, 0) * ny + y) * nx, *above = t + (min(z + 1, nz - 1) * ny + y) * nx;
            float *restrict line = out + (z * ny + y) * nx;
#define CELL(x, west, east)                                                                         \
    line[x] = cc * here[x] + ce * (here[west] + here[east]) + cn * (south[x] + north[x]) +          \
              ct * (below[x] + above[x]) + sdc * p[x] + ct * 80.0f
            CELL(0, 0, min(1, nx - 1));
            for (int x = 1; x < nx - 1; ++x) CELL(x, x - 1, x + 1);
            CELL(nx - 1, max(nx - 2, 0), nx - 1);
#undef CELL
        }
}

static inline float coefficient(float here, float n, float s, float w, float e, float q0sqr) {
    float g2 = (n * n + s * s + w * w + e * e) / (here * here), laplace = (n + s + w + e) / here;
    float num = 0.5f * g2 - 1.0f / 16 * (laplace * laplace), den = 1.0f + 0.25f * laplace;
    float qsqr = num / (den * den), c = 1.0f / (1.0f + (qsqr - q0sqr) / (q0sqr * (1.0f + q0sqr)));
    return c < 0.0f ? 0.0f : c > 1.0f ? 1.0f : c;
}

void srad1(const float *restrict image, const int32_t *i_n, const int32_t *i_s, const int32_t *j_w, const int32_t *j_e,
           float q0sqr, float *restrict d_n, float *restrict d_s, float *restrict d_w, float *restrict d_e,
           float *restrict c, int32_t rows, int columns) {
#pragma omp parallel for
    for (int col = 0; col < columns; ++col) {
        const float *line = image + col * rows, *west = image + j_w[col] * rows, *east = image + j_e[col] * rows;
        const int base = col * rows;
#define CELL(row, north, south)                                                               \
    do {                                                                                      \
        float here = line[row], n = line[north] - here, s = line[south] - here;               \
        float w = west[row] - here, e = east[row] - here;                                     \
        d_n[base + row] = n, d_s[base + row] = s, d_w[base + row] = w, d_e[base + row] = e;   \
        c[base + row] = coefficient(here, n, s, w, e, q0sqr);                                 \
    } while (0)
        CELL(0, i_n[0], i_s[0]);
#pragma omp simd
        for (int row = 1; row < rows - 1; ++row) CELL(row, row - 1, row + 1);
        CELL(rows - 1, i_n[rows - 1], i_s[rows - 1]);
#undef CELL
    }
}

void srad2(const float *restrict d_n, const float *restrict d_s, const float *restrict d_w, const float *restrict d_e,
           const float *restrict c, const int32_t *i_s, const int32_t *j_e, float strength, float *restrict image,
           int32_t rows, int columns) {
#pragma omp parallel for
    for (int col = 0; col < columns; ++col) {
        const float *east = c + j_e[col] * rows;
        for (int row = 0; row < rows; ++row) {
            const int i = col * rows + row;
            float south = c[row < rows - 1 ? i + 1 : i];
            float divergence = c[i] * d_n[i] + south * d_s[i] + c[i] * d_w[i] + east[row] * d_e[i];
            image[i] += 0.25f * strength * divergence;
        }
    }
}
