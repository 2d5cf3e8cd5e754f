// Fields in steps: FDTD, Jacobi with two buffers, red-black SOR, Gray-Scott, a wave, Ising's spins, and a rule of cells.
#include <stdint.h>

void fdtd(float *restrict ex, float *restrict ey, float *restrict hz, int32_t steps, int nx, int ny) {
    for (int step = 0; step < steps; ++step) {
#pragma omp parallel for
        for (int i = 0; i < nx; ++i)
            for (int j = 0; j < ny; ++j)
                ey[i * ny + j] =
                    i ? ey[i * ny + j] - 0.5f * (hz[i * ny + j] - hz[(i - 1) * ny + j]) : (float)step / 4.0f;
#pragma omp parallel for
        for (int i = 0; i < nx; ++i)
            for (int j = 1; j < ny; ++j) ex[i * (ny + 1) + j] -= 0.5f * (hz[i * ny + j] - hz[i * ny + j - 1]);
#pragma omp parallel for
        for (int i = 0; i < nx; ++i)
            for (int j = 0; j < ny; ++j)
                hz[i * ny + j] -= 0.7f * (ex[i * (ny + 1) + j + 1] - ex[i * (ny + 1) + j] + ey[(i + 1) * ny + j] -
                                          ey[i * ny + j]);
    }
}

static void relax(const float *restrict old, float *restrict new, int height, int width) {
#pragma omp parallel for
    for (int y = 1; y < height - 1; ++y)
        for (int x = 1; x < width - 1; ++x) {
            const int i = y * width + x;
            new[i] = 0.25f * (old[i - 1] + old[i + 1] + old[i - width] + old[i + width]);
        }
}

void jacobi_two_buffers(float *restrict a, float *restrict b, int32_t steps, int height, int width) {
    for (int step = 0; step < steps / 2; ++step) {
        relax(a, b, height, width);
        relax(b, a, height, width);
    }
}

void sor(float *restrict u, int32_t steps, int height, int width) {
    for (int step = 0; step < 2 * steps; ++step) {
#pragma omp parallel for
        for (int y = 1; y < height - 1; ++y)
            for (int x = 1 + (1 + y + step) % 2; x < width - 1; x += 2) {
                const int i = y * width + x;
                u[i] = -0.5f * u[i] + 1.5f * (0.25f * (u[i - 1] + u[i + 1] + u[i - width] + u[i + width]));
            }
    }
}

void gray_scott(const float *restrict u, const float *restrict v, float du, float dv, float feed, float kill,
                float *restrict u_new, float *restrict v_new, int height, int width) {
#pragma omp parallel for
    for (int y = 0; y < height; ++y) {
        const int row = y * width, north = (y + height - 1) % height * width, south = (y + 1) % height * width;
#define CELL(x, west, east)                                                                                     \
    do {                                                                                                        \
        float a = u[row + x], b = v[row + x], reaction = a * b * b;                                             \
        float laplace_u = u[row + west] + u[row + east] + u[north + x] + u[south + x] - 4.0f * a;               \
        float laplace_v = v[row + west] + v[row + east] + v[north + x] + v[south + x] - 4.0f * b;               \
        u_new[row + x] = a + du * laplace_u - reaction + feed * (1.0f - a);                                     \
        v_new[row + x] = b + dv * laplace_v + reaction - (feed + kill) * b;                                     \
    } while (0)
        CELL(0, width - 1, 1);
#pragma omp simd
        for (int x = 1; x < width - 1; ++x) CELL(x, x - 1, x + 1);
        CELL(width - 1, width - 2, 0);
#undef CELL
    }
}

void wave(const float *restrict previous, const float *restrict now, const float *restrict speed,
          const float *restrict c, float *restrict future, int height, int width) {
#pragma omp parallel for
    for (int y = 4; y < height - 4; ++y)
#pragma omp simd
        for (int x = 4; x < width - 4; ++x) {
            const int i = y * width + x;
#define RING(r) c[r] * (now[i - r] + now[i + r] + now[i - r * width] + now[i + r * width])
            float total = 2.0f * c[0] * now[i] + RING(1) + RING(2) + RING(3) + RING(4);
#undef RING
            future[i] = 2.0f * now[i] - previous[i] + speed[i] * total;
        }
}

void ising(int8_t *restrict spins, uint32_t *restrict states, const uint32_t *restrict thresholds, int height,
           int width) {
    for (int color = 0; color < 2; ++color) {
#pragma omp parallel for
        for (int y = 0; y < height; ++y) {
            const int row = y * width, north = (y + height - 1) % height * width, south = (y + 1) % height * width;
            for (int x = (y + color) % 2; x < width; x += 2) {
                const uint32_t state = states[row + x] = states[row + x] * 1664525u + 1013904223u;
                const int west = x ? x - 1 : width - 1, east = x < width - 1 ? x + 1 : 0;
                const int agreement =
                    spins[row + x] * (spins[row + east] + spins[row + west] + spins[south + x] + spins[north + x]);
                if (agreement <= 0 || state < thresholds[agreement]) spins[row + x] = (int8_t)-spins[row + x];
            }
        }
    }
}

static void step(const uint8_t *restrict old, uint8_t *restrict new, int32_t rule, int n) {
    new[0] = (rule >> (4 * old[n - 1] + 2 * old[0] + old[1])) & 1;
    new[n - 1] = (rule >> (4 * old[n - 2] + 2 * old[n - 1] + old[0])) & 1;
#pragma omp parallel for
    for (int i = 1; i < n - 1; ++i) new[i] = (rule >> (4 * old[i - 1] + 2 * old[i] + old[i + 1])) & 1;
}

void cells(uint8_t *restrict a, uint8_t *restrict b, int32_t rule, int n) {
    for (int turn = 0; turn < 10; ++turn) {
        step(a, b, rule, n);
        step(b, a, rule, n);
    }
}
