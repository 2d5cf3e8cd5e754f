// Points and particles after Rodinia: nearest neighbors, a particle filter, streamcluster, an Euler flux, lavaMD.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static int min(int a, int b) { return a < b ? a : b; }

void euclid(const float *restrict locations, float *restrict distances, float latitude, float longitude, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        float dx = latitude - locations[2 * i], dy = longitude - locations[2 * i + 1];
        distances[i] = sqrtf(dx * dx + dy * dy);
    }
}

void likelihood(const float *restrict array_x, const float *restrict array_y, const uint8_t *restrict image,
                const int32_t *restrict offsets, float *restrict weights, float *restrict partial, int n, int count,
                int height, int width) {
#pragma omp parallel for
    for (int block = 0; block < (n + 255) / 256; ++block) {
        float sum = 0.0f;
        for (int i = block * 256; i < min(n, (block + 1) * 256); ++i) {
            const int x0 = (int)(array_x[i] + 0.5f), y0 = (int)(array_y[i] + 0.5f);
            float total = 0.0f;
            for (int k = 0; k < count; ++k) {
                int index = abs((y0 + offsets[2 * k]) * width + x0 + offsets[2 * k + 1]);
                if (index >= height * width) index = 0;
                float pixel = image[index], dark = pixel - 100.0f, bright = pixel - 228.0f;
                total += (dark * dark - bright * bright) / 5000.0f;
            }
            weights[i] = expf(total / (float)count);
            sum += weights[i];
        }
        partial[block] = sum;
    }
}

void find_index(const float *restrict array_x, const float *restrict array_y, const float *restrict cdf,
                const float *restrict u, float *restrict x_new, float *restrict y_new, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        int index = n - 1;
        for (int k = 0; k < n; ++k)
            if (cdf[k] >= u[i]) {
                index = k;
                break;
            }
        x_new[i] = array_x[index];
        y_new[i] = array_y[index];
    }
}

void compute_cost(const float *restrict coordinates, const float *restrict weight, const float *restrict cost,
                  const int32_t *restrict assign, const int32_t *restrict table, int32_t candidate,
                  float *restrict work, int32_t *restrict switched, int dimensions, int n, int columns) {
#pragma omp parallel for
    for (int start = 0; start < n; start += 1024) {
        const int count = min(1024, n - start);
        float distances[1024] = {0.0f};
        for (int d = 0; d < dimensions; ++d) {
            const float *line = coordinates + d * n + start, center = coordinates[d * n + candidate];
            for (int i = 0; i < count; ++i) distances[i] += (line[i] - center) * (line[i] - center);
        }
        for (int i = start; i < start + count; ++i) {
            float there = distances[i - start] * weight[i], here = cost[i] * weight[i];
            if (there < here) {
                switched[i] = 1;
                work[i * columns + columns - 1] = there - here;
            } else {
                work[i * columns + table[assign[i]]] += here - there;
            }
        }
    }
}

enum { PER_BOX = 100 };

void lava(float alpha, const int32_t *restrict starts, const int32_t *restrict neighbors, const float *restrict rv,
          const float *restrict charge, float *restrict out, int boxes) {
    const float a2 = 2.0f * alpha * alpha;
#pragma omp parallel for
    for (int box = 0; box < boxes; ++box)
        for (int k = starts[box]; k < starts[box + 1]; ++k)
            for (int i = box * PER_BOX; i < (box + 1) * PER_BOX; ++i) {
                const float *a = rv + 4 * i;
                float sum = 0.0f, x = 0.0f, y = 0.0f, z = 0.0f;
                for (int j = neighbors[k] * PER_BOX; j < (neighbors[k] + 1) * PER_BOX; ++j) {
                    const float *b = rv + 4 * j;
                    float r2 = a[0] + b[0] - (a[1] * b[1] + a[2] * b[2] + a[3] * b[3]);
                    float v = charge[j] * expf(-a2 * r2), force = 2.0f * v;
                    sum += v;
                    x += force * (a[1] - b[1]);
                    y += force * (a[2] - b[2]);
                    z += force * (a[3] - b[3]);
                }
                out[4 * i] += sum;
                out[4 * i + 1] += x;
                out[4 * i + 2] += y;
                out[4 * i + 3] += z;
            }
}

typedef struct {
    float density, x, y, z, energy, vx, vy, vz, speed, pressure, sound;
} Cell;

static inline Cell cell(const float *variables, int i, int n) {
    Cell c = {variables[i], variables[n + i], variables[2 * n + i], variables[3 * n + i], variables[4 * n + i]};
    c.vx = c.x / c.density, c.vy = c.y / c.density, c.vz = c.z / c.density;
    const float squared = c.vx * c.vx + c.vy * c.vy + c.vz * c.vz;
    c.speed = sqrtf(squared);
    c.pressure = 0.4f * (c.energy - 0.5f * c.density * squared);
    c.sound = sqrtf(1.4f * c.pressure / c.density);
    return c;
}

void compute_flux(const int32_t *restrict elements, const float *restrict normals, const float *restrict variables,
                  const float *restrict far, float *restrict fluxes, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        const Cell a = cell(variables, i, n);
        float density = 0.0f, x = 0.0f, y = 0.0f, z = 0.0f, energy = 0.0f;
        for (int j = 0; j < 4; ++j) {
            const int other = elements[j * n + i];
            const float nx = normals[j * n + i], ny = normals[(4 + j) * n + i], nz = normals[(8 + j) * n + i];
            const float through = 0.5f * (nx * a.vx + ny * a.vy + nz * a.vz);
            if (other >= 0) {
                const Cell b = cell(variables, other, n);
                const float length = sqrtf(nx * nx + ny * ny + nz * nz);
                const float factor = -length * 0.1f * (a.speed + b.speed + a.sound + b.sound);
                const float back = 0.5f * (nx * b.vx + ny * b.vy + nz * b.vz), both = 0.5f * (a.pressure + b.pressure);
                density += factor * (a.density - b.density) + through * a.density + back * b.density;
                x += factor * (a.x - b.x) + through * a.x + back * b.x + nx * both;
                y += factor * (a.y - b.y) + through * a.y + back * b.y + ny * both;
                z += factor * (a.z - b.z) + through * a.z + back * b.z + nz * both;
                energy += factor * (a.energy - b.energy) + through * (a.energy + a.pressure) +
                          back * (b.energy + b.pressure);
            } else if (other == -1) {
                x += nx * a.pressure;
                y += ny * a.pressure;
                z += nz * a.pressure;
            } else {
                const float both = 0.5f * (a.pressure + far[1]);
                density += through * a.density + far[0];
                x += through * a.x + nx * both;
                y += through * a.y + ny * both;
                z += through * a.z + nz * both;
                energy += through * (a.energy + a.pressure) + far[2];
            }
        }
        fluxes[i] = density;
        fluxes[n + i] = x;
        fluxes[2 * n + i] = y;
        fluxes[3 * n + i] = z;
        fluxes[4 * n + i] = energy;
    }
}
