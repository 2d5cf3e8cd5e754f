// Photons in layers of tissue by Monte Carlo; each core sums what is absorbed in arrays of its own.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { RINGS = 64, SLICES = 80 };

typedef struct { float x, y, z; } vector;

static int min(int a, int b) { return a < b ? a : b; }

// The next number of a xorshift, in (0, 1).
static inline float uniform(uint32_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return (float)(*state >> 8) * 0x1p-24f + 0x1p-25f;
}

static vector scattered(vector u, float g, float r1, float r2) {
    float ratio = (1.0f - g * g) / (1.0f - g + 2.0f * g * r1);
    float cosine = (1.0f + g * g - ratio * ratio) / (2.0f * g);
    float sine = sqrtf(fmaxf(1.0f - cosine * cosine, 0.0f));
    float azimuth = 6.2831853071795864769f * r2, cp = cosf(azimuth), sp = sinf(azimuth);
    if (fabsf(u.z) > 0.99999f) return (vector){sine * cp, sine * sp, u.z > 0.0f ? cosine : -cosine};
    float across = sqrtf(1.0f - u.z * u.z);
    return (vector){sine * (u.x * u.z * cp - u.y * sp) / across + u.x * cosine,
                    sine * (u.y * u.z * cp + u.x * sp) / across + u.y * cosine, -sine * cp * across + u.z * cosine};
}

static void follow(uint32_t state, const float *layers, int n_layers, int most_steps, float *absorbed,
                   float *escaped) {
    vector at = {0.0f, 0.0f, 0.0f}, u = {0.0f, 0.0f, 1.0f};
    float weight = 1.0f;
    int layer = 0;
    for (int k = 0; k < most_steps; ++k) {
        float top = layer > 0 ? layers[4 * (layer - 1)] : 0.0f, bottom = layers[4 * layer];
        float absorption = layers[4 * layer + 1], total = absorption + layers[4 * layer + 2];
        float step = -logf(uniform(&state)) / total;
        if (at.z + step * u.z >= bottom || at.z + step * u.z < top) {
            float face = u.z > 0.0f ? bottom : top;
            step = (face - at.z) / u.z;
            at = (vector){at.x + step * u.x, at.y + step * u.y, face};
            layer += u.z > 0.0f ? 1 : -1;
            if (layer < 0 || layer >= n_layers) {
                escaped[layer >= 0] += weight;
                return;
            }
            continue;
        }
        at = (vector){at.x + step * u.x, at.y + step * u.y, at.z + step * u.z};
        float lost = weight * absorption / total;
        weight -= lost;
        int ring = min((int)(sqrtf(at.x * at.x + at.y * at.y) / 0.0125f), RINGS - 1);
        int cut = min((int)(at.z / 0.01f), SLICES - 1);
        absorbed[cut * RINGS + ring] += lost;
        float r1 = uniform(&state), r2 = uniform(&state);
        u = scattered(u, layers[4 * layer + 3], r1, r2);
        if (weight < 1e-3f) {
            if (uniform(&state) > 0.1f) return;
            weight /= 0.1f;
        }
    }
}

void photons(const uint32_t *restrict seeds, const float *restrict layers, int32_t most_steps,
             float *restrict absorbed, float *restrict escaped, int n, int n_layers) {
#pragma omp parallel
    {
        float *own = calloc(SLICES * RINGS, sizeof *own), left[2] = {0.0f, 0.0f};
#pragma omp for schedule(dynamic, 16) nowait
        for (int i = 0; i < n; ++i) follow(seeds[i], layers, n_layers, most_steps, own, left);
#pragma omp critical
        {
            for (int i = 0; i < SLICES * RINGS; ++i) absorbed[i] += own[i];
            for (int i = 0; i < 2; ++i) escaped[i] += left[i];
        }
        free(own);
    }
}
