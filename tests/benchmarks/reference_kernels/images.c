// Images of float32: a 7x7 convolution and one pass of a separable one with constant filters, and a rotation.
#include <math.h>

#include "constants.h"

static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }

// One pixel of the convolution for which some taps are outside of the image.
static float at_border(const float *image, int x, int y, int height, int width) {
    float total = 0.0f;
    for (int j = max(0, 3 - y); j < min(7, height + 3 - y); ++j)
        for (int i = max(0, 3 - x); i < min(7, width + 3 - x); ++i)
            total += FILTER[j * 7 + i] * image[(y + j - 3) * width + x + i - 3];
    return total;
}

void convolution(const float *restrict image, float *restrict out, int height, int width) {
#pragma omp parallel for
    for (int y = 0; y < height; ++y) {
        float *restrict line = out + y * width;
        const int left = min(3, width), right = max(width - 3, left);
        for (int x = 0; x < width; ++x) line[x] = 0.0f;
        for (int j = max(0, 3 - y); j < min(7, height + 3 - y); ++j) {
            const float *restrict row = image + (y + j - 3) * width;
            for (int x = left; x < right; ++x) {
                float total = line[x];
#pragma GCC unroll 7
                for (int i = 0; i < 7; ++i) total += FILTER[j * 7 + i] * row[x + i - 3];
                line[x] = total;
            }
        }
        for (int x = 0; x < left; ++x) line[x] = at_border(image, x, y, height, width);
        for (int x = right; x < width; ++x) line[x] = at_border(image, x, y, height, width);
    }
}

enum { RADIUS = 8 };

void rows_pass(const float *restrict image, float *restrict out, int height, int width) {
#pragma omp parallel for
    for (int y = 0; y < height; ++y) {
        const float *line = image + y * width;
        const int left = min(RADIUS, width), right = max(width - RADIUS, left);
        for (int x = left; x < right; ++x) {
            float total = 0.0f;
#pragma GCC unroll 17
            for (int k = 0; k <= 2 * RADIUS; ++k) total += WEIGHTS[k] * line[x + k - RADIUS];
            out[y * width + x] = total;
        }
        for (int x = 0; x < width; x = x == left - 1 ? right : x + 1) {
            float total = 0.0f;
            for (int k = max(0, RADIUS - x); k < min(2 * RADIUS + 1, width + RADIUS - x); ++k)
                total += WEIGHTS[k] * line[x + k - RADIUS];
            out[y * width + x] = total;
        }
    }
}

void rotate(const float *restrict image, float cosine, float sine, float *restrict out, int height, int width) {
#pragma omp parallel for
    for (int y = 0; y < height; ++y) {
#pragma omp simd
        for (int x = 0; x < width; ++x) {
            float dx = (float)(x - width / 2), dy = (float)(y - height / 2);
            float sx = cosine * dx - sine * dy + (float)(width / 2), sy = sine * dx + cosine * dy + (float)(height / 2);
            float left = floorf(sx), top = floorf(sy), fx = sx - left, fy = sy - top;
            int x0 = min(max((int)left, 0), width - 1), x1 = min(max((int)left + 1, 0), width - 1);
            int y0 = min(max((int)top, 0), height - 1), y1 = min(max((int)top + 1, 0), height - 1);
            float upper = (1.0f - fx) * image[y0 * width + x0] + fx * image[y0 * width + x1];
            float lower = (1.0f - fx) * image[y1 * width + x0] + fx * image[y1 * width + x1];
            out[y * width + x] = (1.0f - fy) * upper + fy * lower;
        }
    }
}
