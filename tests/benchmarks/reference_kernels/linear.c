// Matrices: products, by rows and in tiles, and a transpose in tiles.
#include <stdlib.h>
#include <string.h>

enum { ROWS = 4, COLUMNS = 32, TILE = 16 };

void matmul(const float *restrict a, const float *restrict b, float *restrict out, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        float *restrict line = out + i * n;
        memset(line, 0, (size_t)n * sizeof *line);
        for (int k = 0; k < n; ++k)
            for (int j = 0; j < n; ++j) line[j] += a[i * n + k] * b[k * n + j];
    }
}

// Sums of a few rows and columns remain in registers, and the required columns of b are contiguous. The extents are
// multiples of the tile, as in the kernel.
void matmul_tiled(const float *restrict a, const float *restrict b, float *restrict out, int n) {
#pragma omp parallel
    {
        float(*panel)[COLUMNS] = aligned_alloc(64, (size_t)n * sizeof *panel);
#pragma omp for
        for (int column = 0; column < n; column += COLUMNS) {
            for (int k = 0; k < n; ++k) memcpy(panel[k], b + k * n + column, sizeof *panel);
            for (int row = 0; row < n; row += ROWS) {
                float sums[ROWS][COLUMNS] = {0};
                for (int k = 0; k < n; ++k)
#pragma GCC unroll 4
                    for (int i = 0; i < ROWS; ++i)
                        for (int j = 0; j < COLUMNS; ++j) sums[i][j] += a[(row + i) * n + k] * panel[k][j];
                for (int i = 0; i < ROWS; ++i) memcpy(out + (row + i) * n + column, sums[i], sizeof sums[i]);
            }
        }
        free(panel);
    }
}

// Reads and writes are contiguous rows; the transposition is within a tile.
void transpose(const float *restrict a, float *restrict out, int n) {
#pragma omp parallel for collapse(2)
    for (int row = 0; row < n; row += TILE)
        for (int column = 0; column < n; column += TILE) {
            float turned[TILE][TILE];
            for (int i = 0; i < TILE; ++i)
                for (int j = 0; j < TILE; ++j) turned[j][i] = a[(column + i) * n + row + j];
            for (int i = 0; i < TILE; ++i) memcpy(out + (row + i) * n + column, turned[i], sizeof turned[i]);
        }
}
