// Physics on regular grids: two steps of heat, lattice Boltzmann, and a stencil in three dimensions of float64.
#include <stdlib.h>

enum { STRIP = 32 };

static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }

static float cooled(float here, float source, float north, float south, float west, float east) {
    return here + (source + (south + north - 2.0f * here) * 0.15f + (east + west - 2.0f * here) * 0.1f +
                   (0.8f - here) * 0.05f);
}

// One row of a step. At the edge of the plate a cell is its own neighbor.
static void heat_row(const float *north, const float *here, const float *south, const float *power,
                     float *restrict out, int width) {
    const int last = width - 1;
    out[0] = cooled(here[0], power[0], north[0], south[0], here[0], here[min(1, last)]);
    for (int x = 1; x < last; ++x) out[x] = cooled(here[x], power[x], north[x], south[x], here[x - 1], here[x + 1]);
    out[last] = cooled(here[last], power[last], north[last], south[last], here[max(last - 1, 0)], here[last]);
}

// Strips of rows, so that the first step's result is still in a core's cache for the second.
void heat(const float *restrict temperature, const float *restrict power, float *restrict out, int height, int width) {
#pragma omp parallel
    {
        float *between = malloc((size_t)(STRIP + 2) * width * sizeof *between);
#pragma omp for
        for (int start = 0; start < height; start += STRIP) {
            const int end = min(start + STRIP, height), first = max(start - 1, 0), last = min(end + 1, height);
            for (int y = first; y < last; ++y)
                heat_row(temperature + max(y - 1, 0) * width, temperature + y * width,
                         temperature + min(y + 1, height - 1) * width, power + y * width,
                         between + (y - first) * width, width);
            for (int y = start; y < end; ++y)
                heat_row(between + (max(y - 1, 0) - first) * width, between + (y - first) * width,
                         between + (min(y + 1, height - 1) - first) * width, power + y * width, out + y * width, width);
        }
        free(between);
    }
}

static const int CX[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
static const int CY[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
static const float SHARE[9] = {4.0f / 9,  1.0f / 9,  1.0f / 9,  1.0f / 9, 1.0f / 9,
                               1.0f / 36, 1.0f / 36, 1.0f / 36, 1.0f / 36};

// One cell; `rows` has the row that each direction comes from.
static inline __attribute__((always_inline)) void collide(const float *const *rows, int west, int x, int east,
                                                          float omega, float *restrict out, int plane) {
    float g[9], rho = 0.0f, ux = 0.0f, uy = 0.0f;
#pragma GCC unroll 9
    for (int q = 0; q < 9; ++q) {
        g[q] = rows[q][CX[q] > 0 ? west : CX[q] < 0 ? east : x];
        rho += g[q];
        ux += (float)CX[q] * g[q];
        uy += (float)CY[q] * g[q];
    }
    ux /= rho;
    uy /= rho;
    float square = 1.5f * (ux * ux + uy * uy);
#pragma GCC unroll 9
    for (int q = 0; q < 9; ++q) {
        float along = (float)CX[q] * ux + (float)CY[q] * uy;
        float rest = SHARE[q] * rho * (1.0f + 3.0f * along + 4.5f * along * along - square);
        out[q * plane] = g[q] + omega * (rest - g[q]);
    }
}

void boltzmann(const float *restrict f, float omega, float *restrict out, int height, int width) {
    const int plane = height * width;
#pragma omp parallel for
    for (int y = 0; y < height; ++y) {
        const float *rows[9];
        for (int q = 0; q < 9; ++q) rows[q] = f + q * plane + (y - CY[q] + height) % height * width;
        float *restrict line = out + y * width;
        collide(rows, width - 1, 0, 1 % width, omega, line, plane);
#pragma omp simd
        for (int x = 1; x < width - 1; ++x) collide(rows, x - 1, x, x + 1, omega, line + x, plane);
        collide(rows, width - 2, width - 1, 0, omega, line + width - 1, plane);
    }
}

void stencil3d(const double *restrict a, double c0, double c1, double *restrict out, int depth, int height, int width) {
    const int plane = height * width;
#pragma omp parallel for collapse(2)
    for (int z = 1; z < depth - 1; ++z)
        for (int y = 1; y < height - 1; ++y)
            for (int i = z * plane + y * width + 1; i < z * plane + (y + 1) * width - 1; ++i)
                out[i] = c0 * a[i] + c1 * (a[i - plane] + a[i + plane] + a[i - width] + a[i + width] + a[i - 1] +
                                           a[i + 1]);
}
