// Layers of networks: Rodinia's backprop, pooling, im2col, embeddings, normalization, statistics, attention's scores.
#include <math.h>
#include <stdint.h>

enum { HIDDEN = 16 };

void layerforward(const float *restrict units, float *restrict hidden, float *restrict partial, int n) {
#pragma omp parallel for
    for (int block = 0; block < n / 16; ++block) {
        float sums[16][HIDDEN];
        for (int i = 0; i < 16; ++i)
            for (int j = 0; j < HIDDEN; ++j)
                sums[i][j] = hidden[(block * 16 + i + 1) * (HIDDEN + 1) + j + 1] * units[block * 16 + i + 1];
        for (int power = 2; power <= 16; power *= 2)
            for (int i = 0; i < 16; i += power)
                for (int j = 0; j < HIDDEN; ++j) sums[i][j] += sums[i + power / 2][j];
        for (int i = 0; i < 16; ++i)
            for (int j = 0; j < HIDDEN; ++j) hidden[(block * 16 + i + 1) * (HIDDEN + 1) + j + 1] = sums[i][j];
        for (int j = 0; j < HIDDEN; ++j) partial[block * HIDDEN + j] = sums[0][j];
    }
}

void adjust_weights(const float *restrict delta, const float *restrict units, float *restrict weights,
                    float *restrict old, int n) {
#pragma omp parallel for
    for (int i = 0; i <= n; ++i) {
        float unit = i == 0 ? 1.0f : units[i];
#pragma omp simd
        for (int j = 1; j <= HIDDEN; ++j) {
            int at = i * (HIDDEN + 1) + j;
            float change = 0.3f * delta[j] * unit + 0.3f * old[at];
            weights[at] += change;
            old[at] = change;
        }
    }
}

void max_pool(const float *restrict images, float *restrict out, int planes, int height, int width) {
#pragma omp parallel for
    for (int row = 0; row < planes * height; ++row) {
        const float *upper = images + row * 4 * width, *lower = upper + 2 * width;
        for (int x = 0; x < width; ++x) {
            float a = upper[2 * x], b = upper[2 * x + 1], c = lower[2 * x], d = lower[2 * x + 1];
            float most = a > b ? a : b, other = c > d ? c : d;
            out[row * width + x] = most > other ? most : other;
        }
    }
}

void im2col(const float *restrict image, int32_t size, int32_t pad, float *restrict columns, int channels, int height,
            int width) {
#pragma omp parallel for
    for (int line = 0; line < channels * size * size; ++line) {
        const int c = line / (size * size), i = line / size % size, j = line % size;
        for (int h = 0; h < height; ++h) {
            const int y = h - pad + i;
            float *restrict out = columns + (line * height + h) * width;
            if (y < 0 || y >= height) {
                for (int w = 0; w < width; ++w) out[w] = 0.0f;
                continue;
            }
            const float *in = image + (c * height + y) * width;
            for (int w = 0; w < width; ++w) {
                const int x = w - pad + j;
                out[w] = x >= 0 && x < width ? in[x] : 0.0f;
            }
        }
    }
}

void embedding(const float *restrict table, const int32_t *restrict words, const float *restrict positions,
               float *restrict out, int tokens, int length, int width) {
#pragma omp parallel for
    for (int token = 0; token < tokens; ++token) {
        const float *word = table + words[token] * width, *position = positions + token % length * width;
        for (int i = 0; i < width; ++i) out[token * width + i] = word[i] + position[i];
    }
}

void layer_norm(const float *restrict x, const float *restrict gamma, const float *restrict beta, float *restrict out,
                int rows, int width) {
#pragma omp parallel for
    for (int row = 0; row < rows; ++row) {
        const float *line = x + row * width;
        float total = 0.0f, squares = 0.0f;
#pragma omp simd reduction(+ : total)
        for (int i = 0; i < width; ++i) total += line[i];
        const float mean = total / (float)width;
#pragma omp simd reduction(+ : squares)
        for (int i = 0; i < width; ++i) squares += (line[i] - mean) * (line[i] - mean);
        const float scale = 1.0f / sqrtf(squares / (float)width + 1e-5f);
        for (int i = 0; i < width; ++i) out[row * width + i] = (line[i] - mean) * scale * gamma[i] + beta[i];
    }
}

void batch_statistics(const float *restrict x, float *restrict mean, float *restrict variance, int images, int channels,
                      int pixels) {
#pragma omp parallel for
    for (int channel = 0; channel < channels; ++channel) {
        float total = 0.0f, square = 0.0f;
        for (int image = 0; image < images; ++image) {
            const float *line = x + (image * channels + channel) * pixels;
#pragma omp simd reduction(+ : total, square)
            for (int i = 0; i < pixels; ++i) {
                total += line[i];
                square += line[i] * line[i];
            }
        }
        const float count = (float)(images * pixels);
        mean[channel] = total / count;
        variance[channel] = square / count - mean[channel] * mean[channel];
    }
}

void scores(const float *restrict q, const float *restrict k, float scale, float *restrict out, int heads, int n,
            int width) {
#pragma omp parallel for collapse(2)
    for (int head = 0; head < heads; ++head)
        for (int row = 0; row < n; ++row) {
            const float *one = q + (head * n + row) * width;
            float *restrict line = out + (head * n + row) * n;
            for (int column = 0; column <= row; ++column) {
                const float *other = k + (head * n + column) * width;
                float total = 0.0f;
#pragma omp simd reduction(+ : total)
                for (int d = 0; d < width; ++d) total += one[d] * other[d];
                line[column] = total * scale;
            }
            for (int column = row + 1; column < n; ++column) line[column] = -1e4f;
        }
}
