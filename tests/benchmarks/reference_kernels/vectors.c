// Points and rays: the nearest center of k-means, rays against spheres, and Julia's set.
#include <math.h>
#include <stdint.h>

enum { STRIP = 256 };

static int min(int a, int b) { return a < b ? a : b; }

void assign(const float *restrict points, const float *restrict centers, int32_t *restrict labels, int n, int k,
            int dimensions) {
#pragma omp parallel for
    for (int start = 0; start < n; start += STRIP) {
        const int count = min(STRIP, n - start);
        float best[STRIP], distance[STRIP];
        int32_t *restrict label = labels + start;
        for (int i = 0; i < count; ++i) {
            best[i] = 1e30f;
            label[i] = 0;
        }
        for (int c = 0; c < k; ++c) {
            for (int i = 0; i < count; ++i) distance[i] = 0.0f;
            for (int d = 0; d < dimensions; ++d)
                for (int i = 0; i < count; ++i) {
                    float difference = points[d * n + start + i] - centers[c * dimensions + d];
                    distance[i] += difference * difference;
                }
            for (int i = 0; i < count; ++i) {
                label[i] = distance[i] < best[i] ? c : label[i];
                best[i] = distance[i] < best[i] ? distance[i] : best[i];
            }
        }
    }
}

void rays(const float *restrict spheres, int32_t *restrict nearest, int count, int height, int width) {
#pragma omp parallel for collapse(2)
    for (int y = 0; y < height; ++y)
        for (int start = 0; start < width; start += STRIP) {
            const int columns = min(STRIP, width - start);
            float dx[STRIP], dy[STRIP], dz[STRIP], best[STRIP];
            int32_t *restrict found = nearest + y * width + start;
            for (int i = 0; i < columns; ++i) {
                float x = ((float)(start + i) + 0.5f) / (float)width - 0.5f;
                float z = ((float)y + 0.5f) / (float)height - 0.5f, length = sqrtf(x * x + z * z + 1.0f);
                dx[i] = x / length;
                dy[i] = z / length;
                dz[i] = 1.0f / length;
                best[i] = 1e30f;
                found[i] = -1;
            }
            for (int s = 0; s < count; ++s) {
                const float cx = spheres[4 * s], cy = spheres[4 * s + 1], cz = spheres[4 * s + 2];
                const float radius = spheres[4 * s + 3], apart = cx * cx + cy * cy + cz * cz - radius * radius;
                for (int i = 0; i < columns; ++i) {
                    float b = dx[i] * cx + dy[i] * cy + dz[i] * cz, disc = b * b - apart;
                    float t = b - sqrtf(disc);  // a NaN, for a ray that misses, is no hit
                    int hit = (t > 1e-3f) & (t < best[i]);
                    best[i] = hit ? t : best[i];
                    found[i] = hit ? s : found[i];
                }
            }
        }
}

void julia(float step, int32_t limit, int32_t *restrict out, int n) {
#pragma omp parallel for schedule(dynamic, 4)
    for (int row = 0; row < n; ++row)
        for (int column = 0; column < n; ++column) {
            float x = -1.5f + (float)column * step, y = -1.5f + (float)row * step;
            int count = 0;
            while (count < limit && x * x + y * y < 4.0f) {
                float next = x * x - y * y - 0.8f;
                y = 2.0f * x * y + 0.156f;
                x = next;
                ++count;
            }
            out[row * n + column] = count;
        }
}
