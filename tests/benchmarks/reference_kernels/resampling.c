// Between pixels: a motion search by half pixels, an affine map of a color image, local binary patterns, and cubic
// B-splines in a volume.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16, REACH = 4, CHOICES = 4 * REACH + 1, WINDOW = BLOCK + 2 * REACH + 1, CELL = 32 };

static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }

// The sum of absolute differences to a window that begins half a pixel lower or to the right, or both.
static inline int difference(const uint8_t current[BLOCK][BLOCK], const uint8_t window[WINDOW][WINDOW], int row,
                             int column, int down, int right) {
    int total = 0;
    for (int y = 0; y < BLOCK; ++y) {
        const uint8_t *upper = window[row + y] + column, *lower = window[row + y + 1] + column;
#pragma omp simd reduction(+ : total)
        for (int x = 0; x < BLOCK; ++x) {
            int above = upper[x] * (2 - right) + upper[x + 1] * right;
            int below = lower[x] * (2 - right) + lower[x + 1] * right;
            total += abs(current[y][x] - ((above * (2 - down) + below * down + 2) >> 2));
        }
    }
    return total;
}

void motion(const uint8_t *restrict frame, const uint8_t *restrict previous, uint16_t *restrict sads,
            int8_t *restrict vectors, int height, int width) {
    const int columns = width / BLOCK;
#pragma omp parallel for
    for (int block = 0; block < height / BLOCK * columns; ++block) {
        const int top = block / columns * BLOCK, left = block % columns * BLOCK;
        uint8_t current[BLOCK][BLOCK], window[WINDOW][WINDOW];
        for (int y = 0; y < BLOCK; ++y) memcpy(current[y], frame + (top + y) * width + left, BLOCK);
        for (int y = 0; y < WINDOW; ++y) {
            const uint8_t *line = previous + min(max(top - REACH + y, 0), height - 1) * width;
            for (int x = 0; x < WINDOW; ++x) window[y][x] = line[min(max(left - REACH + x, 0), width - 1)];
        }
        int best = INT32_MAX;
        for (int choice = 0; choice < CHOICES * CHOICES; ++choice) {
            const int row = choice / CHOICES, column = choice % CHOICES;
            const int total = difference(current, window, row / 2, column / 2, row % 2, column % 2);
            sads[block * CHOICES * CHOICES + choice] = (uint16_t)total;
            best = min(best, total * 512 + choice);
        }
        vectors[2 * block] = (int8_t)(best % 512 % CHOICES - 2 * REACH);
        vectors[2 * block + 1] = (int8_t)(best % 512 / CHOICES - 2 * REACH);
    }
}

static int source_index(int i, int n, int mode) {
    if (mode == 0) return min(max(i, 0), n - 1);
    if (mode == 1) {
        i %= n;
        return i < 0 ? i + n : i;
    }
    if (mode == 2) {
        i %= 2 * n;
        if (i < 0) i += 2 * n;
        return i < n ? i : 2 * n - 1 - i;
    }
    return i >= 0 && i < n ? i : -1;
}

void affine(const uint8_t *restrict image, const float *restrict matrix, int32_t mode, float background,
            uint8_t *restrict out, int height, int width, int channels, int out_height, int out_width) {
#pragma omp parallel for
    for (int y = 0; y < out_height; ++y)
        for (int x = 0; x < out_width; ++x) {
            const float column = matrix[0] * (float)x + matrix[1] * (float)y + matrix[2];
            const float row = matrix[3] * (float)x + matrix[4] * (float)y + matrix[5];
            const int left = (int)floorf(column), top = (int)floorf(row);
            const float fx = column - (float)left, fy = row - (float)top;
            int x0 = left, x1 = left + 1, y0 = top, y1 = top + 1;
            if (x0 < 0 || y0 < 0 || x1 >= width || y1 >= height) {
                x0 = source_index(x0, width, mode), x1 = source_index(x1, width, mode);
                y0 = source_index(y0, height, mode), y1 = source_index(y1, height, mode);
            }
            const uint8_t *a = y0 < 0 || x0 < 0 ? NULL : image + (y0 * width + x0) * channels;
            const uint8_t *b = y0 < 0 || x1 < 0 ? NULL : image + (y0 * width + x1) * channels;
            const uint8_t *c = y1 < 0 || x0 < 0 ? NULL : image + (y1 * width + x0) * channels;
            const uint8_t *d = y1 < 0 || x1 < 0 ? NULL : image + (y1 * width + x1) * channels;
            for (int k = 0; k < channels; ++k) {
                float above = (1.0f - fx) * (a ? a[k] : background) + fx * (b ? b[k] : background);
                float below = (1.0f - fx) * (c ? c[k] : background) + fx * (d ? d[k] : background);
                float value = (1.0f - fy) * above + fy * below;
                out[(y * out_width + x) * channels + k] = (uint8_t)(value + 0.5f);
            }
        }
}

// The bits of the eight neighbors that are not less than the pixel, clockwise from the upper left one.
static inline uint8_t pattern(const uint8_t *upper, const uint8_t *here, const uint8_t *lower, int west, int x,
                              int east) {
    const uint8_t center = here[x];
    return (uint8_t)((upper[west] >= center) | (upper[x] >= center) << 1 | (upper[east] >= center) << 2 |
                     (here[east] >= center) << 3 | (lower[east] >= center) << 4 | (lower[x] >= center) << 5 |
                     (lower[west] >= center) << 6 | (here[west] >= center) << 7);
}

void patterns(const uint8_t *restrict image, uint8_t *restrict codes, int32_t *restrict histograms, int height,
              int width) {
    const int columns = (width + CELL - 1) / CELL, last = width - 1;
#pragma omp parallel for
    for (int top = 0; top < height; top += CELL) {
        int32_t *restrict counts = histograms + top / CELL * columns * 256;
        memset(counts, 0, (size_t)columns * 256 * sizeof *counts);
        for (int y = top; y < min(top + CELL, height); ++y) {
            const uint8_t *upper = image + max(y - 1, 0) * width, *here = image + y * width;
            const uint8_t *lower = image + min(y + 1, height - 1) * width;
            uint8_t *restrict line = codes + y * width;
            line[0] = pattern(upper, here, lower, 0, 0, min(1, last));
            for (int x = 1; x < last; ++x) line[x] = pattern(upper, here, lower, x - 1, x, x + 1);
            line[last] = pattern(upper, here, lower, max(last - 1, 0), last, last);
            for (int x = 0; x < width; ++x) ++counts[x / CELL * 256 + line[x]];
        }
    }
}

static inline int split(float coordinate, float *t) {
    float whole = floorf(coordinate);
    *t = coordinate - whole;
    return (int)whole;
}

static inline void spline_weights(float t, float w[4]) {
    float s = 1.0f - t;
    w[0] = 1.0f / 6 * s * s * s;
    w[1] = 2.0f / 3 - 0.5f * t * t * (2.0f - t);
    w[2] = 2.0f / 3 - 0.5f * s * s * (2.0f - s);
    w[3] = 1.0f / 6 * t * t * t;
}

void spline(const float *restrict volume, const float *restrict m, float *restrict out, int depth, int height,
            int width, int out_depth, int out_height, int out_width) {
#pragma omp parallel for collapse(2)
    for (int z = 0; z < out_depth; ++z)
        for (int y = 0; y < out_height; ++y) {
            float *restrict line = out + (z * out_height + y) * out_width;
            const float fy = (float)y, fz = (float)z;
#pragma omp simd
            for (int x = 0; x < out_width; ++x) {
                float tx, ty, tz, wx[4], wy[4], wz[4], total = 0.0f;
                const float fx = (float)x;
                const int x0 = split(m[0] * fx + m[1] * fy + m[2] * fz + m[3], &tx) - 1;
                const int y0 = split(m[4] * fx + m[5] * fy + m[6] * fz + m[7], &ty) - 1;
                const int z0 = split(m[8] * fx + m[9] * fy + m[10] * fz + m[11], &tz) - 1;
                spline_weights(tx, wx);
                spline_weights(ty, wy);
                spline_weights(tz, wz);
#pragma GCC unroll 4
                for (int k = 0; k < 4; ++k) {
                    const int plane = min(max(z0 + k, 0), depth - 1) * height;
#pragma GCC unroll 4
                    for (int j = 0; j < 4; ++j) {
                        const int row = (plane + min(max(y0 + j, 0), height - 1)) * width;
                        float sum = 0.0f;
#pragma GCC unroll 4
                        for (int i = 0; i < 4; ++i) sum += wx[i] * volume[row + min(max(x0 + i, 0), width - 1)];
                        total += wz[k] * wy[j] * sum;
                    }
                }
                line[x] = total;
            }
        }
}
