// Images of bytes: sums of absolute differences, a blur, Sobel's edges, and the game of life on a torus.
#include <stdint.h>
#include <stdlib.h>

static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }

void sad(const uint8_t *restrict image, const uint8_t *restrict pattern, int32_t *restrict out, int height, int width,
         int rows, int columns) {
    const int out_height = height - rows + 1, out_width = width - columns + 1;
#pragma omp parallel for
    for (int y = 0; y < out_height; ++y) {
        int32_t *restrict totals = out + y * out_width;
        for (int x = 0; x < out_width; ++x) totals[x] = 0;
        for (int j = 0; j < rows; ++j)
            for (int i = 0; i < columns; ++i) {
                const uint8_t *restrict line = image + (y + j) * width + i;
                const int wanted = pattern[j * columns + i];
                for (int x = 0; x < out_width; ++x) totals[x] += abs(line[x] - wanted);
            }
    }
}

// One byte of the blur, with its coordinates clamped to the image.
static uint8_t blurred(const uint8_t *image, int x, int y, int c, int height, int width, int channels) {
    int total = 0;
    for (int dy = -2; dy <= 2; ++dy)
        for (int dx = -2; dx <= 2; ++dx) {
            int row = min(max(y + dy, 0), height - 1), column = min(max(x + dx, 0), width - 1);
            total += image[(row * width + column) * channels + c];
        }
    return (uint8_t)(total / 25);
}

void blur(const uint8_t *restrict image, uint8_t *restrict out, int height, int width, int channels) {
#pragma omp parallel for
    for (int y = 0; y < height; ++y) {
        const uint8_t *rows[5];
        for (int dy = -2; dy <= 2; ++dy) rows[dy + 2] = image + min(max(y + dy, 0), height - 1) * width * channels;
        uint8_t *restrict line = out + y * width * channels;
        const int left = min(2, width), right = max(width - 2, left);
        for (int x = 0; x < left; ++x)
            for (int c = 0; c < channels; ++c)
                line[x * channels + c] = blurred(image, x, y, c, height, width, channels);
#pragma omp simd
        for (int i = left * channels; i < right * channels; ++i) {
            int total = 0;
            for (int dy = 0; dy < 5; ++dy)
                for (int dx = -2; dx <= 2; ++dx) total += rows[dy][i + dx * channels];
            line[i] = (uint8_t)(total / 25);
        }
        for (int x = right; x < width; ++x)
            for (int c = 0; c < channels; ++c)
                line[x * channels + c] = blurred(image, x, y, c, height, width, channels);
    }
}

void sobel(const uint8_t *restrict image, uint8_t *restrict out, int height, int width) {
#pragma omp parallel for
    for (int y = 0; y < height; ++y) {
        uint8_t *restrict line = out + y * width;
        if (y == 0 || y == height - 1) {
            for (int x = 0; x < width; ++x) line[x] = 0;
            continue;
        }
        const uint8_t *here = image + y * width, *above = here - width, *below = here + width;
        line[0] = line[width - 1] = 0;
        for (int x = 1; x < width - 1; ++x) {
            int nw = above[x - 1], n = above[x], ne = above[x + 1], w = here[x - 1], e = here[x + 1];
            int sw = below[x - 1], s = below[x], se = below[x + 1];
            int gx = ne + 2 * e + se - nw - 2 * w - sw, gy = sw + 2 * s + se - nw - 2 * n - ne;
            line[x] = (uint8_t)min(abs(gx) + abs(gy), 255);
        }
    }
}

static uint8_t next(const uint8_t *north, const uint8_t *here, const uint8_t *south, int west, int x, int east) {
    uint8_t alive = (uint8_t)(north[west] + north[x] + north[east] + here[west] + here[east] + south[west] + south[x] +
                              south[east]);
    return (alive == 3) | ((alive == 2) & (here[x] == 1));
}

void life(const uint8_t *restrict cells, uint8_t *restrict out, int height, int width) {
#pragma omp parallel for
    for (int y = 0; y < height; ++y) {
        const uint8_t *here = cells + y * width, *north = cells + (y > 0 ? y - 1 : height - 1) * width;
        const uint8_t *south = cells + (y < height - 1 ? y + 1 : 0) * width;
        uint8_t *restrict line = out + y * width;
        line[0] = next(north, here, south, width - 1, 0, 1);
        for (int x = 1; x < width - 1; ++x) line[x] = next(north, here, south, x - 1, x, x + 1);
        line[width - 1] = next(north, here, south, width - 2, width - 1, 0);
    }
}
