// Boxes and regions of pictures: overlap masks of 64 bits, and connected components by union-find.
#include <stdbool.h>
#include <stdint.h>

enum { SIDE = 64, TILE = 16 };

static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }
static inline float lesser(float a, float b) { return a < b ? a : b; }
static inline float larger(float a, float b) { return a > b ? a : b; }

void overlap_masks(const float *restrict boxes, float threshold, uint64_t *restrict masks, int n) {
    const int columns = (n + SIDE - 1) / SIDE;
#pragma omp parallel for schedule(dynamic)
    for (int block = 0; block < columns; ++block)
        for (int column = block; column < columns; ++column) {
            const int count = min(SIDE, n - column * SIDE);
            float left[SIDE], top[SIDE], right[SIDE], bottom[SIDE], area[SIDE];
            for (int k = 0; k < count; ++k) {
                const float *b = boxes + (column * SIDE + k) * 4;
                left[k] = b[0], top[k] = b[1], right[k] = b[2], bottom[k] = b[3];
                area[k] = (b[2] - b[0]) * (b[3] - b[1]);
            }
            for (int i = block * SIDE; i < min((block + 1) * SIDE, n); ++i) {
                const float *a = boxes + i * 4, own = (a[2] - a[0]) * (a[3] - a[1]);
                uint64_t bits = 0;
#pragma omp simd reduction(| : bits)
                for (int k = 0; k < count; ++k) {
                    float width = lesser(a[2], right[k]) - larger(a[0], left[k]);
                    float height = lesser(a[3], bottom[k]) - larger(a[1], top[k]);
                    float inner = larger(width, 0.0f) * larger(height, 0.0f);
                    bits |= (uint64_t)(inner / (own + area[k] - inner) > threshold) << k;
                }
                if (block == column) bits &= ~1ull << (i - block * SIDE);  // the boxes after this one
                masks[i * columns + column] = bits;
            }
        }
}

void overlap_by_class(const int32_t *restrict x0, const int32_t *restrict y0, const int32_t *restrict x1,
                      const int32_t *restrict y1, const uint8_t *restrict label, uint64_t *restrict masks, int n) {
#pragma omp parallel for
    for (int first = 0; first < n; first += SIDE) {
        const int count = min(SIDE, n - first);
        int32_t areas[SIDE];
        for (int j = first; j < first + count; ++j) areas[j - first] = (x1[j] - x0[j] + 1) * (y1[j] - y0[j] + 1);
        for (int i = 0; i < n; ++i) {
            const int area = (x1[i] - x0[i] + 1) * (y1[i] - y0[i] + 1);
            uint64_t mask = 0;
#pragma omp simd reduction(| : mask)
            for (int j = 0; j < count; ++j) {
                const int at = first + j;
                const int w = min(x1[i], x1[at]) - max(x0[i], x0[at]) + 1;
                const int h = min(y1[i], y1[at]) - max(y0[i], y0[at]) + 1;
                const int overlaps = (at != i) & (label[at] == label[i]) & (w > 0) & (h > 0) &
                                     (2 * w * h > area + areas[j] - w * h);
                mask |= (uint64_t)overlaps << j;
            }
            masks[first / SIDE * n + i] = mask;
        }
    }
}

static int find_root(const int32_t *parents, int i) {
    while (parents[i] != i) i = parents[i];
    return i;
}

// The lesser root becomes the root of both.
static void unite(int32_t *parents, int a, int b) {
    a = find_root(parents, a);
    b = find_root(parents, b);
    parents[max(a, b)] = min(a, b);
}

void tile_components(const uint8_t *restrict picture, uint8_t threshold, int32_t *restrict out, int height,
                     int width) {
#pragma omp parallel for
    for (int top = 0; top < height; top += TILE)
        for (int left = 0; left < width; left += TILE) {
            const int rows = min(TILE, height - top), columns = min(TILE, width - left);
            int32_t parents[TILE * TILE];
            bool bright[TILE][TILE];
            for (int y = 0; y < rows; ++y)
                for (int x = 0; x < columns; ++x) {
                    const int here = y * TILE + x;
                    parents[here] = here;
                    bright[y][x] = picture[(top + y) * width + left + x] >= threshold;
                    if (bright[y][x] && x > 0 && bright[y][x - 1]) unite(parents, here, here - 1);
                    if (bright[y][x] && y > 0 && bright[y - 1][x]) unite(parents, here, here - TILE);
                }
            for (int y = 0; y < rows; ++y)
                for (int x = 0; x < columns; ++x) {
                    const int root = bright[y][x] ? find_root(parents, y * TILE + x) : 0;
                    out[(top + y) * width + left + x] =
                        bright[y][x] ? (top + root / TILE) * width + left + root % TILE : -1;
                }
        }
}

void batch_components(const uint8_t *restrict pictures, int32_t *restrict parents, int rows, int columns,
                      int n_pictures) {
    const int n = rows * columns;
#pragma omp parallel for
    for (int p = 0; p < n_pictures; ++p) {
        const uint8_t *picture = pictures + p * n;
        int32_t *parent = parents + p * n;
        for (int row = 0; row < rows; ++row)
            for (int column = 0; column < columns; ++column) {
                const int i = row * columns + column;
                parent[i] = i;
                for (int c = max(column - 1, 0); row > 0 && c <= min(column + 1, columns - 1); ++c)
                    if (picture[i - columns + c - column] == picture[i]) unite(parent, i, i - columns + c - column);
                if (column > 0 && picture[i - 1] == picture[i]) unite(parent, i, i - 1);
            }
        for (int i = 0; i < n; ++i) parent[i] = parent[parent[i]];  // a parent before i has its root already
    }
}
