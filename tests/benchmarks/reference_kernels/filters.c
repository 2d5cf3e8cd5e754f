// Images: two filters, running sums, a bilateral filter, a median, thin edges.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "constants.h"

static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }

// One pixel for which some taps are outside of the image.
static float at_border(const float *image, int y, int x, int height, int width) {
    float total = 0.0f;
    for (int i = max(0, 3 - y); i < min(7, height + 3 - y); ++i)
        for (int j = max(0, 3 - x); j < min(7, width + 3 - x); ++j)
            total += MASK[i * 7 + j] * image[(y + i - 3) * width + x + j - 3];
    return total;
}

void convolution_shared(const float *restrict image, float *restrict out, int height, int width) {
#pragma omp parallel for
    for (int y = 0; y < height; ++y) {
        float *restrict line = out + y * width;
        memset(line, 0, (size_t)width * sizeof *line);
        for (int i = max(0, 3 - y); i < min(7, height + 3 - y); ++i)
            for (int x = 3; x < width - 3; ++x) {
                float total = line[x];
#pragma GCC unroll 7
                for (int j = 0; j < 7; ++j) total += MASK[i * 7 + j] * image[(y + i - 3) * width + x + j - 3];
                line[x] = total;
            }
        for (int x = 0; x < 3; ++x) line[x] = at_border(image, y, x, height, width);
        for (int x = width - 3; x < width; ++x) line[x] = at_border(image, y, x, height, width);
    }
}

void convolution_columns(const float *restrict image, float *restrict out, int height, int width) {
#pragma omp parallel for
    for (int y = 0; y < height; ++y) {
        float *restrict line = out + y * width;
        memset(line, 0, (size_t)width * sizeof *line);
        for (int j = max(-8, -y); j <= min(8, height - 1 - y); ++j)
            for (int x = 0; x < width; ++x) line[x] += TAPS[8 - j] * image[(y + j) * width + x];
    }
}

// Strips of columns: the running sums of a strip's columns advance together.
void box_columns(const float *restrict image, int32_t radius, float *restrict out, int height, int width) {
    const float scale = 1.0f / (float)(2 * radius + 1);
#pragma omp parallel for
    for (int start = 0; start < width; start += 256) {
        const int count = min(256, width - start);
        float totals[256];
        for (int x = 0; x < count; ++x) totals[x] = image[start + x] * (float)(radius + 1);
        for (int y = 0; y < radius; ++y)
            for (int x = 0; x < count; ++x) totals[x] += image[y * width + start + x];
        for (int y = 0; y < height; ++y) {
            const float *in = image + min(y + radius, height - 1) * width + start;
            const float *gone = image + max(y - radius - 1, 0) * width + start;
            for (int x = 0; x < count; ++x) {
                totals[x] += in[x] - (y ? gone[x] : image[start + x]);
                out[y * width + start + x] = totals[x] * scale;
            }
        }
    }
}

void bilateral(const float *restrict image, const float *restrict spatial, int32_t radius, float scale,
               float *restrict out, int height, int width) {
#pragma omp parallel for
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
            const float center = image[y * width + x];
            float total = 0.0f, weights = 0.0f;
            for (int j = -radius; j <= radius; ++j)
                for (int i = -radius; i <= radius; ++i) {
                    float value = image[min(max(y + j, 0), height - 1) * width + min(max(x + i, 0), width - 1)];
                    float difference = value - center;
                    float weight = spatial[j + radius] * spatial[i + radius] * expf(-difference * difference * scale);
                    total += weight * value;
                    weights += weight;
                }
            out[y * width + x] = total / weights;
        }
}

#define ORDERED(a, b)                                                      \
    do {                                                                   \
        uint8_t least = a < b ? a : b, most = a < b ? b : a;               \
        a = least, b = most;                                               \
    } while (0)

void median(const uint8_t *restrict image, uint8_t *restrict out, int height, int width) {
#pragma omp parallel for
    for (int y = 0; y < height; ++y) {
        uint8_t *restrict line = out + y * width;
        if (y == 0 || y == height - 1) {
            memcpy(line, image + y * width, (size_t)width);
            continue;
        }
        const uint8_t *p = image + (y - 1) * width, *q = image + y * width, *r = image + (y + 1) * width;
        line[0] = q[0];
        line[width - 1] = q[width - 1];
        for (int x = 1; x < width - 1; ++x) {
            uint8_t a = p[x - 1], b = p[x], c = p[x + 1], d = q[x - 1], e = q[x], f = q[x + 1];
            uint8_t g = r[x - 1], h = r[x], i = r[x + 1];
            ORDERED(b, c); ORDERED(e, f); ORDERED(h, i); ORDERED(a, b); ORDERED(d, e); ORDERED(g, h);
            ORDERED(b, c); ORDERED(e, f); ORDERED(h, i); ORDERED(a, d); ORDERED(f, i); ORDERED(e, h);
            ORDERED(d, g); ORDERED(b, e); ORDERED(c, f); ORDERED(e, h); ORDERED(e, c); ORDERED(g, e);
            ORDERED(e, c);
            line[x] = e;
        }
    }
}

void suppress(const float *restrict magnitude, const uint8_t *restrict direction, float *restrict out, int height,
              int width) {
    memset(out, 0, (size_t)width * sizeof *out);
    memset(out + (height - 1) * width, 0, (size_t)width * sizeof *out);
#pragma omp parallel for
    for (int y = 1; y < height - 1; ++y) {
        const float *p = magnitude + (y - 1) * width, *q = magnitude + y * width, *r = magnitude + (y + 1) * width;
        float *restrict line = out + y * width;
        line[0] = line[width - 1] = 0.0f;
        for (int x = 1; x < width - 1; ++x) {
            uint8_t angle = direction[y * width + x];
            float before = angle == 0 ? q[x - 1] : angle == 1 ? p[x + 1] : angle == 2 ? p[x] : p[x - 1];
            float behind = angle == 0 ? q[x + 1] : angle == 1 ? r[x - 1] : angle == 2 ? r[x] : r[x + 1];
            line[x] = q[x] >= before && q[x] >= behind ? q[x] : 0.0f;
        }
    }
}
