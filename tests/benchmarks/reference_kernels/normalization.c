// Rows of layers and lines of images: RMS norm of float16, a depthwise convolution of NHWC images, the 5/3 wavelet.
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { LINE = 1024, LEAST = 32 };

static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }

#ifdef __FLT16_MAX__
typedef _Float16 half;
static inline float to_float(half value) { return (float)value; }
static inline half to_half(float value) { return (half)value; }
#else  // before gcc 12
typedef uint16_t half;

static inline float to_float(half bits) {
    const uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float value = exponent ? ldexpf((float)(fraction | 1024), (int)exponent - 25) : ldexpf((float)fraction, -24);
    return sign ? -value : value;
}

// Rounds to nearest even; neither infinities nor NaNs occur.
static inline half to_half(float value) {
    int exponent;
    frexpf(value, &exponent);
    const int scale = max(exponent - 11, -24);
    const uint32_t whole = (uint32_t)lrintf(ldexpf(fabsf(value), -scale));
    return (half)((value < 0.0f) << 15 | ((uint32_t)(scale + 24) << 10) + whole);
}
#endif

void add_rms_norm(const half *restrict x, const half *restrict residual, const half *restrict weight, float epsilon,
                  half *restrict total, half *restrict out, int n, int rows) {
#pragma omp parallel for
    for (int row = 0; row < rows; ++row) {
        const half *one = x + row * n, *other = residual + row * n;
        half *restrict sum = total + row * n, *restrict line = out + row * n;
        float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
        for (int k = 0; k < n; ++k) {
            float value = to_float(one[k]) + to_float(other[k]);
            sum[k] = to_half(value);
            squares += value * value;
        }
        const float scale = 1.0f / sqrtf(squares / (float)n + epsilon);
#pragma omp simd
        for (int k = 0; k < n; ++k) line[k] = to_half(to_float(sum[k]) * scale * to_float(weight[k]));
    }
}

void depthwise(const float *restrict images, const float *restrict weights, const float *restrict bias, int32_t stride,
               int32_t padding, float *restrict out, int height, int width, int channels, int kernel_height,
               int kernel_width, int n, int out_height, int out_width) {
#pragma omp parallel for
    for (int z = 0; z < n * out_height; ++z) {
        const int image = z / out_height, top = z % out_height * stride - padding;
        for (int column = 0; column < out_width; ++column) {
            const int left = column * stride - padding;
            float *restrict totals = out + (z * out_width + column) * channels;
            memcpy(totals, bias, (size_t)channels * sizeof *totals);
            for (int j = max(0, -top); j < min(kernel_height, height - top); ++j)
                for (int i = max(0, -left); i < min(kernel_width, width - left); ++i) {
                    const float *w = weights + (j * kernel_width + i) * channels;
                    const float *pixel = images + ((image * height + top + j) * width + left + i) * channels;
                    for (int c = 0; c < channels; ++c) totals[c] += w[c] * pixel[c];
                }
            for (int c = 0; c < channels; ++c) {
                float low = totals[c] > 0.0f ? totals[c] : 0.0f;
                totals[c] = low < 6.0f ? low : 6.0f;
            }
        }
    }
}

void lift(const int16_t *restrict samples, int32_t *restrict out, int rows) {
#pragma omp parallel for
    for (int row = 0; row < rows; ++row) {
        int32_t line[LINE + 1], *restrict result = out + row * LINE;
        for (int i = 0; i < LINE; ++i) line[i] = samples[row * LINE + i];
        for (int half = LINE / 2; 2 * half > LEAST; half /= 2) {
            int32_t *restrict high = result + half, even[LINE / 2 + 1];
            for (int i = 0; i < half; ++i) even[i] = line[2 * i];
            even[half] = even[half - 1];  // the signal is mirrored at its end
            for (int i = 0; i < half; ++i) high[i] = line[2 * i + 1] - ((even[i] + even[i + 1]) >> 1);
            line[0] = even[0] + ((2 * high[0] + 2) >> 2);
            for (int i = 1; i < half; ++i) line[i] = even[i] + ((high[i - 1] + high[i] + 2) >> 2);
        }
        memcpy(result, line, LEAST * sizeof *line);
    }
}
