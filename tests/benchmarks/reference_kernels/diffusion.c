// Several steps of heat, by strips of rows with the rows around them that the steps need: hotspot with three steps,
// and diffusion with two.
#include <stdlib.h>

enum { STRIP = 32, STEPS = 3, HALO = 2 };

static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }

typedef struct { float factor, rx, ry, rz, ambient; } plate;

static inline float hotter(plate p, float power, float center, float north, float south, float west, float east) {
    return center + p.factor * (power + (south + north - center - center) / p.ry +
                                (east + west - center - center) / p.rx +
                                (p.ambient - center) / p.rz);
}

// One row of a step. At the edge of the plate a cell is its own neighbor.
static void hotspot_row(plate p, const float *restrict power, const float *north, const float *here,
                        const float *south, float *restrict out, int width) {
    const int last = width - 1;
    out[0] = hotter(p, power[0], here[0], north[0], south[0], here[0], here[min(1, last)]);
#pragma omp simd
    for (int x = 1; x < last; ++x)
        out[x] = hotter(p, power[x], here[x], north[x], south[x], here[x - 1], here[x + 1]);
    out[last] = hotter(p, power[last], here[last], north[last], south[last], here[max(last - 1, 0)], here[last]);
}

void hotspot(const float *restrict power, const float *restrict temperature, float *restrict out, float cap, float rx,
             float ry, float rz, float step, float ambient, int rows, int columns) {
    const plate p = {step / cap, rx, ry, rz, ambient};
#pragma omp parallel
    {
        float *both = malloc(2 * (size_t)(STRIP + 2 * STEPS) * columns * sizeof *both);
#pragma omp for
        for (int start = 0; start < rows; start += STRIP) {
            const float *old = temperature;
            int base = 0;  // the row that `old` begins with
            for (int k = 1; k <= STEPS; ++k) {
                const int first = max(start - STEPS + k, 0), end = min(start + STRIP + STEPS - k, rows);
                float *new = k == STEPS ? out + first * columns : both + k % 2 * (STRIP + 2 * STEPS) * columns;
                for (int y = first; y < end; ++y)
                    hotspot_row(p, power + y * columns, old + (max(y - 1, 0) - base) * columns,
                                old + (y - base) * columns, old + (min(y + 1, rows - 1) - base) * columns,
                                new + (y - first) * columns, columns);
                old = new;
                base = first;
            }
        }
        free(both);
    }
}

// One row of a step; outside of the field it has 20 degrees.
static void diffusion_row(const float *restrict conductivity, const float *north, const float *here,
                          const float *south, float *restrict out, int width) {
    const int last = width - 1;
#pragma omp simd
    for (int x = 0; x < width; ++x) {
        float west = x > 0 ? here[x - 1] : 20.0f, east = x < last ? here[x + 1] : 20.0f;
        out[x] = here[x] + 0.2f * conductivity[x] * (north[x] + south[x] + (west + east) - 4.0f * here[x]);
    }
}

void diffusion(const float *restrict field, const float *restrict conductivity, float *restrict out, int n_steps,
               int rows, int columns) {
#pragma omp parallel
    {
        const size_t size = (size_t)(STRIP + 2 * HALO) * columns;
        float *both = malloc((2 * size + columns) * sizeof *both), *outside = both + 2 * size;
        for (int x = 0; x < columns; ++x) outside[x] = 20.0f;
#pragma omp for
        for (int start = 0; start < rows; start += STRIP) {
            const float *old = field;
            int base = 0;  // the row that `old` begins with
            for (int k = 1; k <= n_steps; ++k) {
                const int first = max(start - n_steps + k, 0), end = min(start + STRIP + n_steps - k, rows);
                float *new = k == n_steps ? out + first * columns : both + k % 2 * size;
                for (int y = first; y < end; ++y)
                    diffusion_row(conductivity + y * columns, y > 0 ? old + (y - 1 - base) * columns : outside,
                                  old + (y - base) * columns,
                                  y < rows - 1 ? old + (y + 1 - base) * columns : outside,
                                  new + (y - first) * columns, columns);
                old = new;
                base = first;
            }
        }
        free(both);
    }
}
