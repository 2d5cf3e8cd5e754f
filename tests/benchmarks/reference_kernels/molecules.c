// Forces between particles: Lennard-Jones from neighbor lists, Coulomb from binned atoms, gravity from an octree.
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { STRIP = 128, BIN = 8, DEPTH = 8, REACH = 2, DEEPEST = 10, STACK = 7 * DEEPEST + 8 };

static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }

static inline float nearest_image(float d, float box) {
    return d > box / 2.0f ? d - box : d < -box / 2.0f ? d + box : d;
}

// Strips of atoms, as a row of the lists has the k-th neighbor of each atom.
void lennard_jones(const float *restrict positions, const int32_t *restrict counts, const int32_t *restrict neighbors,
                   float box, float cutoff, float *restrict forces, float *restrict energies, int n) {
    const float cutoff_squared = cutoff * cutoff;
#pragma omp parallel for
    for (int start = 0; start < n; start += STRIP) {
        const int count = min(STRIP, n - start);
        float fx[STRIP] = {0.0f}, fy[STRIP] = {0.0f}, fz[STRIP] = {0.0f}, energy[STRIP] = {0.0f};
        int most = 0;
        for (int i = 0; i < count; ++i) most = max(most, counts[start + i]);
        for (int k = 0; k < most; ++k) {
            const int32_t *line = neighbors + k * n + start;
#pragma omp simd
            for (int i = 0; i < count; ++i) {
                const int exists = k < counts[start + i], at = start + i, j = exists ? line[i] : at;
                float dx = nearest_image(positions[3 * at] - positions[3 * j], box);
                float dy = nearest_image(positions[3 * at + 1] - positions[3 * j + 1], box);
                float dz = nearest_image(positions[3 * at + 2] - positions[3 * j + 2], box);
                float squared = dx * dx + dy * dy + dz * dz, inverse = 1.0f / squared;
                float sixth = inverse * inverse * inverse;
                float force = 24.0f * sixth * (2.0f * sixth - 1.0f) * inverse;
                const int near = exists & (squared < cutoff_squared);
                force = near ? force : 0.0f;
                fx[i] += force * dx;
                fy[i] += force * dy;
                fz[i] += force * dz;
                energy[i] += near ? 2.0f * sixth * (sixth - 1.0f) : 0.0f;
            }
        }
        for (int i = 0; i < count; ++i) {
            forces[3 * (start + i)] = fx[i];
            forces[3 * (start + i) + 1] = fy[i];
            forces[3 * (start + i) + 2] = fz[i];
            energies[start + i] = energy[i];
        }
    }
}

// Adds one atom's potential to the lattice points of a bin, of which (x, y, z) is the first; skips lines out of reach.
static void add_atom(const float *atom, float x, float y, float z, float spacing, float cutoff_squared,
                     float energy[BIN][BIN][BIN]) {
    const float inverse_cutoff = 1.0f / cutoff_squared;
    for (int k = 0; k < BIN; ++k)
        for (int j = 0; j < BIN; ++j) {
            const float dz = z + (float)k * spacing - atom[2], dy = y + (float)j * spacing - atom[1];
            const float across = dz * dz + dy * dy;
            if (across >= cutoff_squared) continue;
#pragma omp simd
            for (int i = 0; i < BIN; ++i) {
                float dx = x + (float)i * spacing - atom[0], squared = across + dx * dx;
                float s = 1.0f - squared * inverse_cutoff, term = atom[3] * s * s / sqrtf(squared);
                energy[k][j][i] += squared < cutoff_squared ? term : 0.0f;
            }
        }
}

void coulomb(const float *restrict bins, float spacing, float cutoff, float *restrict potential, int planes, int rows,
             int columns, int bins_y, int bins_x) {
#pragma omp parallel for collapse(3) schedule(dynamic)
    for (int bz = 0; bz < (planes + BIN - 1) / BIN; ++bz)
        for (int by = 0; by < (rows + BIN - 1) / BIN; ++by)
            for (int bx = 0; bx < (columns + BIN - 1) / BIN; ++bx) {
                const int plane = bz * BIN, row = by * BIN, column = bx * BIN;
                float energy[BIN][BIN][BIN];
                memset(energy, 0, sizeof energy);
                for (int z = bz; z <= bz + 2 * REACH; ++z)
                    for (int y = by; y <= by + 2 * REACH; ++y)
                        for (int x = bx; x <= bx + 2 * REACH; ++x) {
                            const float *atoms = bins + ((z * bins_y + y) * bins_x + x) * 4 * DEPTH;
                            for (int a = 0; a < DEPTH && atoms[4 * a + 3] != 0.0f; ++a)
                                add_atom(atoms + 4 * a, (float)column * spacing, (float)row * spacing,
                                         (float)plane * spacing, spacing, cutoff * cutoff, energy);
                        }
                for (int k = 0; k < min(BIN, planes - plane); ++k)
                    for (int j = 0; j < min(BIN, rows - row); ++j)
                        memcpy(potential + ((plane + k) * rows + row + j) * columns + column, energy[k][j],
                               (size_t)min(BIN, columns - column) * sizeof(float));
            }
}

typedef struct { float x, y, z; } vector;

static inline void pull(float dx, float dy, float dz, float squared, float mass, vector *sum) {
    float inverse = 1.0f / sqrtf(squared + 1e-4f), strength = mass * inverse * inverse * inverse;
    sum->x += strength * dx;
    sum->y += strength * dy;
    sum->z += strength * dz;
}

void gravity(const float *restrict bodies, const float *restrict nodes, const float *restrict widths,
             const int32_t *restrict children, const int32_t *restrict ranges, float theta,
             float *restrict accelerations, int n) {
#pragma omp parallel for schedule(dynamic, 64)
    for (int i = 0; i < n; ++i) {
        int32_t stack[STACK];
        const float x = bodies[4 * i], y = bodies[4 * i + 1], z = bodies[4 * i + 2];
        vector sum = {0.0f, 0.0f, 0.0f};
        int top = 0;
        stack[top++] = 0;
        while (top > 0) {
            const int node = stack[--top], first = ranges[2 * node], last = ranges[2 * node + 1];
            const float *mean = nodes + 4 * node;
            float dx = mean[0] - x, dy = mean[1] - y, dz = mean[2] - z, squared = dx * dx + dy * dy + dz * dz;
            if (widths[node] * widths[node] < theta * theta * squared) {
                pull(dx, dy, dz, squared, mean[3], &sum);
            } else if (last > first) {
                for (int j = first; j < last; ++j) {  // the body itself is at distance 0 and adds nothing
                    dx = bodies[4 * j] - x, dy = bodies[4 * j + 1] - y, dz = bodies[4 * j + 2] - z;
                    pull(dx, dy, dz, dx * dx + dy * dy + dz * dz, bodies[4 * j + 3], &sum);
                }
            } else {
                for (int c = 0; c < 8; ++c)
                    if (children[8 * node + c] >= 0) stack[top++] = children[8 * node + c];
            }
        }
        accelerations[3 * i] = sum.x;
        accelerations[3 * i + 1] = sum.y;
        accelerations[3 * i + 2] = sum.z;
    }
}
