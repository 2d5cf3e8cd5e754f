// FFTs of 256 points, and a histogram of points in the plane.
#include <stdint.h>

enum { POINTS = 256, LOG2 = 8, SIDE = 32, STRIP = 1024 };

void fft(const float *restrict real, const float *restrict imaginary, const float *restrict cosines,
         const float *restrict sines, float *restrict out_real, float *restrict out_imaginary, int rows) {
    // The twiddle factors of a stage of `half` butterflies start at `half`; indices with their bits reversed.
    float c[POINTS], s[POINTS];
    uint8_t reversed[POINTS];
    for (int half = 1; half < POINTS; half *= 2)
        for (int k = 0; k < half; ++k) {
            c[half + k] = cosines[k * (POINTS / (2 * half))];
            s[half + k] = sines[k * (POINTS / (2 * half))];
        }
    for (int i = 0; i < POINTS; ++i) {
        int place = 0;
        for (int bit = 0; bit < LOG2; ++bit) place |= ((i >> bit) & 1) << (LOG2 - 1 - bit);
        reversed[i] = (uint8_t)place;
    }
#pragma omp parallel for
    for (int row = 0; row < rows; ++row) {
        float *restrict re = out_real + row * POINTS, *restrict im = out_imaginary + row * POINTS;
        for (int i = 0; i < POINTS; ++i) {
            re[i] = real[row * POINTS + reversed[i]];
            im[i] = imaginary[row * POINTS + reversed[i]];
        }
        for (int half = 1; half < POINTS; half *= 2)
            for (int start = 0; start < POINTS; start += 2 * half) {
#pragma omp simd
                for (int k = 0; k < half; ++k) {
                    int top = start + k, bottom = top + half;
                    float r = re[bottom] * c[half + k] + im[bottom] * s[half + k];
                    float t = im[bottom] * c[half + k] - re[bottom] * s[half + k];
                    re[bottom] = re[top] - r;
                    im[bottom] = im[top] - t;
                    re[top] += r;
                    im[top] += t;
                }
            }
    }
}

static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }
static int bin(float value, float scale) { return min(max((int)(value * scale), 0), SIDE - 1); }

void histogram2d(const float *restrict x, const float *restrict y, float scale, int32_t *restrict bins, int n) {
#pragma omp parallel
    {
        int32_t counts[SIDE * SIDE] = {0};
#pragma omp for nowait
        for (int start = 0; start < n; start += STRIP) {
            const int count = min(STRIP, n - start);
            int32_t places[STRIP];
            for (int i = 0; i < count; ++i)
                places[i] = bin(y[start + i], scale) * SIDE + bin(x[start + i], scale);
            for (int i = 0; i < count; ++i) ++counts[places[i]];
        }
        for (int i = 0; i < SIDE * SIDE; ++i)
#pragma omp atomic
            bins[i] += counts[i];
    }
}
