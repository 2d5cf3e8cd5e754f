// Rays: marches through signed distances of solids and of repeated pillars, and the nearest hits of spheres.
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum { STRIP = 256 };

static int min(int a, int b) { return a < b ? a : b; }

typedef struct { float x, y, z; } vector;

static inline float lesser(float a, float b) { return a < b ? a : b; }
static inline float larger(float a, float b) { return a > b ? a : b; }
static inline float dot(vector a, vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static inline float length(float x, float y, float z) { return sqrtf(x * x + y * y + z * z); }
static inline vector along(vector from, vector direction, float t) {
    return (vector){from.x + t * direction.x, from.y + t * direction.y, from.z + t * direction.z};
}

static inline float box(float x, float y, float z, float half) {
    const float dx = fabsf(x) - half, dy = fabsf(y) - half, dz = fabsf(z) - half;
    return length(larger(dx, 0.0f), larger(dy, 0.0f), larger(dz, 0.0f)) + lesser(larger(dx, larger(dy, dz)), 0.0f);
}

static inline float torus(float x, float y, float z, float large, float small) {
    const float q = sqrtf(x * x + z * z) - large;
    return sqrtf(q * q + y * y) - small;
}

static inline float smooth_min(float a, float b, float k) {
    const float h = larger(k - fabsf(a - b), 0.0f) / k;
    return lesser(a, b) - h * h * k * 0.25f;
}

static float scene(float x, float y, float z) {
    const float ball = length(x - 0.6f, y - 0.3f, z) - 0.7f, cube = box(x + 0.7f, y, z - 0.2f, 0.6f);
    const float ring = torus(x, y + 0.4f, z, 1.5f, 0.2f);
    return lesser(y + 1.0f, smooth_min(ring, smooth_min(ball, cube, 0.3f), 0.2f));
}

static float shade_of(vector eye, vector d) {
    float t = 0.0f;
    bool hit = false;
    for (int steps = 0; steps < 96 && t < 20.0f; ++steps) {
        const vector at = along(eye, d, t);
        const float step = scene(at.x, at.y, at.z);
        if (step < 0.001f) {
            hit = true;
            break;
        }
        t += step;
    }
    if (!hit) return 0.0f;
    const vector p = along(eye, d, t);
    const float e = 0.01f, nx = scene(p.x + e, p.y, p.z) - scene(p.x - e, p.y, p.z);
    const float ny = scene(p.x, p.y + e, p.z) - scene(p.x, p.y - e, p.z);
    const float nz = scene(p.x, p.y, p.z + e) - scene(p.x, p.y, p.z - e);
    return 0.15f + 0.85f * larger((0.5f * nx + 0.7f * ny - 0.5f * nz) / length(nx, ny, nz), 0.0f);
}

void solids(float eye_x, float eye_y, float eye_z, float *restrict out, int height, int width) {
#pragma omp parallel for schedule(dynamic, 4)
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
            vector d = {((float)x - 0.5f * (float)width) / (float)height,
                        (0.5f * (float)height - (float)y) / (float)height, 1.0f};
            const float norm = 1.0f / sqrtf(dot(d, d));
            out[y * width + x] =
                shade_of((vector){eye_x, eye_y, eye_z}, (vector){d.x * norm, d.y * norm, d.z * norm});
        }
}

static inline float repeat(float value, float period) { return value - period * floorf(value / period + 0.5f); }

static float distance(vector p, int *material) {
    const float x = repeat(p.x, 4.0f), z = repeat(p.z, 4.0f), ground = p.y + 2.0f;
    const float pillar = larger(hypotf(x, z) - 0.5f, fabsf(p.y) - 2.0f), knob = length(x, p.y - 1.5f, z) - 0.9f;
    if (ground < pillar && ground < knob) {
        *material = 0;
        return ground;
    }
    *material = pillar < knob ? 1 : 2;
    return pillar < knob ? pillar : knob;
}

void pillars(const float *restrict camera, const float *restrict light, const float *restrict colors,
             float *restrict image, int32_t limit, int height, int width) {
    const vector origin = {camera[0], camera[1], camera[2]}, sun = {light[0], light[1], light[2]};
#pragma omp parallel for schedule(dynamic, 4)
    for (int row = 0; row < height; ++row)
        for (int column = 0; column < width; ++column) {
            vector d = {camera[3] + (float)column * camera[6] / (float)width - 0.5f * camera[6],
                        camera[4] + 0.5f * camera[7] - (float)row * camera[7] / (float)height, camera[5]};
            const float scale = 1.0f / sqrtf(dot(d, d));
            d = (vector){d.x * scale, d.y * scale, d.z * scale};
            float t = 0.0f, visible = 1.0f;
            int material, other;
            float step = distance(origin, &material);
            for (int steps = 0; step > 0.002f * t && t < 40.0f && steps < limit; ++steps) {
                t += step;
                step = distance(along(origin, d, t), &material);
            }
            const vector start = along(origin, d, t - 0.01f);
            for (float s = 0.05f; s < 8.0f && visible > 0.01f;) {
                step = distance(along(start, sun, s), &other);
                visible = lesser(visible, 8.0f * step / s);
                s += larger(step, 0.05f);
            }
            const float fog = expf(-0.05f * t);
            for (int channel = 0; channel < 3; ++channel)
                image[(row * width + column) * 3 + channel] =
                    colors[material * 3 + channel] * fog * (0.2f + 0.8f * larger(visible, 0.0f));
        }
}

// Strips of rays, against one sphere after the other.
void nearest_spheres(const float *restrict origins, const float *restrict directions, const float *restrict spheres,
                     int32_t *restrict nearest, float *restrict light, int n, int n_spheres) {
#pragma omp parallel for
    for (int start = 0; start < n; start += STRIP) {
        const int count = min(STRIP, n - start);
        float o[3][STRIP], d[3][STRIP], best[STRIP];
        int32_t *restrict found = nearest + start;
        for (int i = 0; i < count; ++i) {
            for (int c = 0; c < 3; ++c) {
                o[c][i] = origins[3 * (start + i) + c];
                d[c][i] = directions[3 * (start + i) + c];
            }
            best[i] = 1e30f;
            found[i] = -1;
        }
        for (int k = 0; k < n_spheres; ++k) {
            const float *sphere = spheres + 4 * k;
            for (int i = 0; i < count; ++i) {
                const float lx = sphere[0] - o[0][i], ly = sphere[1] - o[1][i], lz = sphere[2] - o[2][i];
                const float b = lx * d[0][i] + ly * d[1][i] + lz * d[2][i];
                const float root = sqrtf(b * b - (lx * lx + ly * ly + lz * lz) + sphere[3] * sphere[3]);
                const float t = b - root > 1e-3f ? b - root : b + root;  // a NaN, for a ray that misses, is no hit
                const int hit = (t > 1e-3f) & (t < best[i]);
                best[i] = hit ? t : best[i];
                found[i] = hit ? k : found[i];
            }
        }
        for (int i = 0; i < count; ++i) {
            const float *sphere = spheres + 4 * (found[i] < 0 ? 0 : found[i]);
            float cosine = 0.0f;
            for (int c = 0; c < 3; ++c)
                cosine += (o[c][i] + best[i] * d[c][i] - sphere[c]) / sphere[3] * d[c][i];
            light[start + i] = found[i] < 0 ? 0.0f : fabsf(cosine);
        }
    }
}
