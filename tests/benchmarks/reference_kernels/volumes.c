// Grids and volumes: damped waves of fourth order, projections with trilinear samples, shallow water.
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { STRIP = 64 };

static int min(int a, int b) { return a < b ? a : b; }

// The second derivative of fourth order.
static inline float second(float center, float before, float after, float far_before, float far_after) {
    return -5.0f / 2 * center + 4.0f / 3 * (before + after) + -1.0f / 12 * (far_before + far_after);
}

void acoustic_step(const float *restrict previous, const float *restrict now, const float *restrict speed,
                   const float *restrict taper_z, const float *restrict taper_y, const float *restrict taper_x,
                   float *restrict future, int depth, int height, int width) {
    const int plane = height * width;
#pragma omp parallel for collapse(2)
    for (int z = 2; z < depth - 2; ++z)
        for (int y = 2; y < height - 2; ++y) {
            const float *n = now + z * plane + y * width, *p = previous + z * plane + y * width;
            const float *s = speed + z * plane + y * width, across = taper_z[z] * taper_y[y];
            float *restrict line = future + z * plane + y * width;
#pragma omp simd
            for (int x = 2; x < width - 2; ++x) {
                const float *c = n + x;
                float laplacian = second(*c, c[-plane], c[plane], c[-2 * plane], c[2 * plane]);
                laplacian += second(*c, c[-width], c[width], c[-2 * width], c[2 * width]);
                laplacian += second(*c, c[-1], c[1], c[-2], c[2]);
                float taper = across * taper_x[x];
                line[x] = taper * (2.0f * *c - taper * p[x] + s[x] * laplacian);
            }
        }
}

void wave64(const double *restrict u, const double *restrict previous, const double *restrict velocity, double factor,
            double *restrict out, int depth, int height, int width) {
    const int plane = height * width;
#pragma omp parallel for collapse(2)
    for (int z = 2; z < depth - 2; ++z)
        for (int y = 2; y < height - 2; ++y) {
            const int row = z * plane + y * width;
#pragma omp simd
            for (int i = row + 2; i < row + width - 2; ++i) {
                double laplacian = -7.5 * u[i];
                laplacian += 4.0 / 3.0 * (u[i - 1] + u[i + 1]);
                laplacian += 4.0 / 3.0 * (u[i - width] + u[i + width]);
                laplacian += 4.0 / 3.0 * (u[i - plane] + u[i + plane]);
                laplacian -= (u[i - 2] + u[i + 2]) / 12.0;
                laplacian -= (u[i - 2 * width] + u[i + 2 * width]) / 12.0;
                laplacian -= (u[i - 2 * plane] + u[i + 2 * plane]) / 12.0;
                out[i] = 2.0 * u[i] - previous[i] + factor * (velocity[i] * velocity[i]) * laplacian;
            }
        }
}

static inline float mix(float a, float b, float t) { return a + t * (b - a); }

// Strips of pixels, whose rays advance together.
void projection(const float *restrict volume, const float *restrict axes, int32_t n_steps, float *restrict total,
                float *restrict brightest, int depth, int height, int width, int rows, int columns) {
    const int plane = height * width;
#pragma omp parallel for collapse(2) schedule(dynamic)
    for (int row = 0; row < rows; ++row)
        for (int start = 0; start < columns; start += STRIP) {
            const int count = min(STRIP, columns - start);
            const float v = (float)(row - rows / 2);
            float x[STRIP], y[STRIP], z[STRIP], integral[STRIP] = {0.0f}, highest[STRIP] = {0.0f};
            for (int i = 0; i < count; ++i) {
                const float u = (float)(start + i - columns / 2);
                x[i] = axes[0] + u * axes[3] + v * axes[6];
                y[i] = axes[1] + u * axes[4] + v * axes[7];
                z[i] = axes[2] + u * axes[5] + v * axes[8];
            }
            for (int step = 0; step < n_steps; ++step) {
                const float s = (float)(step - n_steps / 2);
#pragma omp simd
                for (int i = 0; i < count; ++i) {
                    const float px = x[i] + s * axes[9], py = y[i] + s * axes[10], pz = z[i] + s * axes[11];
                    const float fx = floorf(px), fy = floorf(py), fz = floorf(pz);
                    const int column = (int)fx, line = (int)fy, slice = (int)fz;
                    const int inside = (column >= 0) & (line >= 0) & (slice >= 0) & (column < width - 1) &
                                       (line < height - 1) & (slice < depth - 1);
                    const float *a = volume + (inside ? slice * plane + line * width + column : 0);
                    const float *b = a + width, *c = a + plane, *d = c + width;
                    const float tx = px - fx, ty = py - fy, tz = pz - fz;
                    float front = mix(mix(a[0], a[1], tx), mix(b[0], b[1], tx), ty);
                    float back = mix(mix(c[0], c[1], tx), mix(d[0], d[1], tx), ty);
                    float value = inside ? mix(front, back, tz) : 0.0f;
                    integral[i] += value;
                    highest[i] = highest[i] > value ? highest[i] : value;
                }
            }
            memcpy(total + row * columns + start, integral, (size_t)count * sizeof *integral);
            memcpy(brightest + row * columns + start, highest, (size_t)count * sizeof *highest);
        }
}

typedef struct { float h, hu, hv; } state;
typedef struct { float h, hu, hv, speed; } flux;

static inline float larger(float a, float b) { return a > b ? a : b; }

static inline flux flux_x(state s) {
    float h = larger(s.h, 1e-4f), u = s.hu / h;
    return (flux){s.hu, s.hu * u + 0.5f * 9.81f * s.h * s.h, s.hv * u, fabsf(u) + sqrtf(9.81f * h)};
}

static inline flux flux_y(state s) {
    float h = larger(s.h, 1e-4f), v = s.hv / h;
    return (flux){s.hv, s.hu * v, s.hv * v + 0.5f * 9.81f * s.h * s.h, fabsf(v) + sqrtf(9.81f * h)};
}

// The flux between two cells after Rusanov.
static inline state face(state left, state right, flux a, flux b) {
    float speed = 0.5f * larger(a.speed, b.speed);
    return (state){0.5f * (a.h + b.h) - speed * (right.h - left.h), 0.5f * (a.hu + b.hu) - speed * (right.hu - left.hu),
                   0.5f * (a.hv + b.hv) - speed * (right.hv - left.hv)};
}

void shallow_water(const float *restrict h, const float *restrict hu, const float *restrict hv,
                   const float *restrict bed, float dt, float dx, float *restrict h_new, float *restrict hu_new,
                   float *restrict hv_new, int rows, int columns) {
    const float r = dt / dx, friction = 1.0f / (1.0f + 0.01f * dt);
#pragma omp parallel for
    for (int j = 1; j < rows - 1; ++j)
#pragma omp simd
        for (int c = j * columns + 1; c < (j + 1) * columns - 1; ++c) {
            const int w = c - 1, e = c + 1, s = c - columns, n = c + columns;
            const state here = {h[c], hu[c], hv[c]}, west = {h[w], hu[w], hv[w]}, east = {h[e], hu[e], hv[e]};
            const state south = {h[s], hu[s], hv[s]}, north = {h[n], hu[n], hv[n]};
            const flux along = flux_x(here), up = flux_y(here);
            const state f_west = face(west, here, flux_x(west), along), f_east = face(here, east, along, flux_x(east));
            const state f_south = face(south, here, flux_y(south), up), f_north = face(here, north, up, flux_y(north));
            float slope_x = (bed[e] - bed[w]) / (2.0f * dx), slope_y = (bed[n] - bed[s]) / (2.0f * dx);
            float depth = here.h - r * (f_east.h - f_west.h + f_north.h - f_south.h);
            float momentum_x = here.hu - r * (f_east.hu - f_west.hu + f_north.hu - f_south.hu);
            float momentum_y = here.hv - r * (f_east.hv - f_west.hv + f_north.hv - f_south.hv);
            h_new[c] = larger(depth, 0.0f);
            hu_new[c] = (momentum_x - dt * 9.81f * here.h * slope_x) * friction;
            hv_new[c] = (momentum_y - dt * 9.81f * here.h * slope_y) * friction;
        }
}
