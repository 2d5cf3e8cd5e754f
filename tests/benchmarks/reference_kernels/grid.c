// Two-dimensional grids: a 5-point stencil and the Mandelbrot set.
#include <stdint.h>
#include <string.h>

void stencil(const float *restrict a, float *restrict out, int height, int width) {
#pragma omp parallel for
    for (int y = 0; y < height; ++y) {
        const float *here = a + y * width;
        float *restrict line = out + y * width;
        if (y == 0 || y == height - 1) {
            memcpy(line, here, (size_t)width * sizeof *line);
            continue;
        }
        line[0] = here[0];
        for (int x = 1; x < width - 1; ++x)
            line[x] = 0.5f * here[x] + 0.125f * (here[x - width] + here[x + width] + here[x - 1] + here[x + 1]);
        line[width - 1] = here[width - 1];
    }
}

void mandelbrot(float left, float top, float step, int32_t limit, int32_t *restrict out, int n) {
#pragma omp parallel for schedule(dynamic, 4)
    for (int row = 0; row < n; ++row)
        for (int column = 0; column < n; ++column) {
            float cx = left + (float)column * step, cy = top + (float)row * step, zx = 0.0f, zy = 0.0f;
            int count = 0;
            while (count < limit) {
                float xx = zx * zx, yy = zy * zy;
                if (xx + yy > 4.0f) break;
                float xy = zx * zy;
                zx = xx - yy + cx;
                zy = xy + xy + cy;
                ++count;
            }
            out[row * n + column] = count;
        }
}
