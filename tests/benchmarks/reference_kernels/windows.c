// Windows over images of bytes: Gauss and Laplace of 7x7 with constant tables, blurs of 5x5.
#include <stdint.h>
#include <string.h>

#include "constants.h"

static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }

// One pixel for which some neighbors are outside of the image.
static uint8_t gauss_at_border(const uint8_t *image, int y, int x, int height, int width) {
    float total = 0.0f, norm = 0.0f;
    for (int j = max(0, 3 - y); j < min(7, height + 3 - y); ++j)
        for (int i = max(0, 3 - x); i < min(7, width + 3 - x); ++i) {
            total += GAUSS[j * 7 + i] * image[(y + j - 3) * width + x + i - 3];
            norm += GAUSS[j * 7 + i];
        }
    return (uint8_t)(total / norm + 0.5f);
}

void gauss(const uint8_t *restrict image, uint8_t *restrict out, int height, int width) {
    float norm = 0.0f;
    for (int k = 0; k < 49; ++k) norm += GAUSS[k];
#pragma omp parallel for
    for (int y = 0; y < height; ++y) {
        const int whole = y >= 3 && y < height - 3, left = whole ? min(3, width) : width, right = max(left, width - 3);
        for (int x = 0; x < left; ++x) out[y * width + x] = gauss_at_border(image, y, x, height, width);
#pragma omp simd
        for (int x = left; x < right; ++x) {
            const uint8_t *corner = image + (y - 3) * width + x - 3;
            float total = 0.0f;
#pragma GCC unroll 7
            for (int j = 0; j < 7; ++j)
#pragma GCC unroll 7
                for (int i = 0; i < 7; ++i) total += GAUSS[j * 7 + i] * (float)corner[j * width + i];
            out[y * width + x] = (uint8_t)(total / norm + 0.5f);
        }
        for (int x = right; x < width; ++x) out[y * width + x] = gauss_at_border(image, y, x, height, width);
    }
}

static int32_t laplace_at_border(const uint8_t *image, int y, int x, int height, int width) {
    int32_t total = 0;
    for (int j = max(0, 3 - y); j < min(7, height + 3 - y); ++j)
        for (int i = max(0, 3 - x); i < min(7, width + 3 - x); ++i)
            total += LAPLACE[j * 7 + i] * image[(y + j - 3) * width + x + i - 3];
    return total;
}

void laplace(const uint8_t *restrict image, int32_t width, int32_t height, int32_t *restrict out) {
#pragma omp parallel for
    for (int y = 0; y < height; ++y) {
        const int whole = y >= 3 && y < height - 3, left = whole ? min(3, width) : width, right = max(left, width - 3);
        for (int x = 0; x < left; ++x) out[y * width + x] = laplace_at_border(image, y, x, height, width);
#pragma omp simd
        for (int x = left; x < right; ++x) {
            const uint8_t *corner = image + (y - 3) * width + x - 3;
            int32_t total = 0;
#pragma GCC unroll 7
            for (int j = 0; j < 7; ++j)
#pragma GCC unroll 7
                for (int i = 0; i < 7; ++i) total += LAPLACE[j * 7 + i] * corner[j * width + i];
            out[y * width + x] = total;
        }
        for (int x = right; x < width; ++x) out[y * width + x] = laplace_at_border(image, y, x, height, width);
    }
}

static const int BINOMIAL[5] = {1, 4, 6, 4, 1};

// One byte of the blur, with its column clamped to the image.
static uint8_t binomial_at(const uint8_t *const rows[5], int x, int width) {
    int total = 128;
    for (int j = 0; j < 5; ++j)
        for (int i = 0; i < 5; ++i) total += BINOMIAL[j] * BINOMIAL[i] * rows[j][min(max(x + i - 2, 0), width - 1)];
    return (uint8_t)(total >> 8);
}

void binomial(const uint8_t *restrict image, uint8_t *restrict out, int height, int width) {
#pragma omp parallel for
    for (int y = 0; y < height; ++y) {
        const uint8_t *rows[5];
        for (int j = 0; j < 5; ++j) rows[j] = image + min(max(y + j - 2, 0), height - 1) * width;
        uint8_t *restrict line = out + y * width;
        const int left = min(2, width), right = max(width - 2, left);
        for (int x = 0; x < left; ++x) line[x] = binomial_at(rows, x, width);
#pragma omp simd
        for (int x = left; x < right; ++x) {
            int total = 128;
#pragma GCC unroll 5
            for (int j = 0; j < 5; ++j)
#pragma GCC unroll 5
                for (int i = 0; i < 5; ++i) total += BINOMIAL[j] * BINOMIAL[i] * rows[j][x + i - 2];
            line[x] = (uint8_t)(total >> 8);
        }
        for (int x = right; x < width; ++x) line[x] = binomial_at(rows, x, width);
    }
}

static uint8_t mean_at(const uint8_t *const rows[5], int x, int c, int width) {
    float total = 0.0f;
    for (int j = 0; j < 5; ++j)
        for (int i = -2; i <= 2; ++i) total += rows[j][4 * min(max(x + i, 0), width - 1) + c];
    return (uint8_t)(total / 25.0f);
}

// The last channel is blurred, too, so that all bytes are alike, and then copied.
void blur_rgba(const uint8_t *restrict source, uint8_t *restrict target, int32_t height, int32_t width) {
#pragma omp parallel for
    for (int y = 0; y < height; ++y) {
        const uint8_t *rows[5];
        for (int j = 0; j < 5; ++j) rows[j] = source + min(max(y + j - 2, 0), height - 1) * 4 * width;
        uint8_t *restrict line = target + y * 4 * width;
        const int left = min(2, width), right = max(width - 2, left);
        for (int i = 0; i < 4 * left; ++i) line[i] = mean_at(rows, i / 4, i % 4, width);
#pragma omp simd
        for (int i = 4 * left; i < 4 * right; ++i) {
            float total = 0.0f;
#pragma GCC unroll 5
            for (int j = 0; j < 5; ++j)
#pragma GCC unroll 5
                for (int k = -2; k <= 2; ++k) total += (float)rows[j][i + 4 * k];
            line[i] = (uint8_t)(total / 25.0f);
        }
        for (int i = 4 * right; i < 4 * width; ++i) line[i] = mean_at(rows, i / 4, i % 4, width);
        for (int x = 0; x < width; ++x) line[4 * x + 3] = rows[2][4 * x + 3];
    }
}
