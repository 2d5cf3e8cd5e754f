// Blocks of a signal and messages: DCT of 8x8, Haar's wavelet, an AES-like cipher by tables, SHA-256.
#include <stdint.h>
#include <stdlib.h>

#include "constants.h"

static int min(int a, int b) { return a < b ? a : b; }

void dct(const float *restrict image, const float *restrict cosines, float *restrict out, int height, int width) {
#pragma omp parallel for
    for (int y = 0; y < height; y += 8)
        for (int x = 0; x < width; x += 8) {
            float between[8][8] = {{0.0f}}, result[8][8] = {{0.0f}}, turned[8][8];
            for (int i = 0; i < 8; ++i)
                for (int k = 0; k < 8; ++k) turned[k][i] = cosines[i * 8 + k];
            for (int i = 0; i < 8; ++i)
                for (int k = 0; k < 8; ++k)
                    for (int j = 0; j < 8; ++j) between[i][j] += cosines[i * 8 + k] * image[(y + k) * width + x + j];
            for (int i = 0; i < 8; ++i)
                for (int k = 0; k < 8; ++k)
                    for (int j = 0; j < 8; ++j) result[i][j] += between[i][k] * turned[k][j];
            for (int i = 0; i < 8; ++i)
                for (int j = 0; j < 8; ++j) out[(y + i) * width + x + j] = result[i][j];
        }
}

void haar(const float *restrict signal, float *restrict details, float *restrict approximation, int32_t levels, int n) {
    const float root = 0.70710678f;
    const int length = 1 << levels;
#pragma omp parallel for
    for (int block = 0; block < n / length; ++block) {
        float data[1024];
        for (int i = 0; i < length; ++i) data[i] = signal[block * length + i];
        for (int count = length / 2, start = n / 2; count > 0; count /= 2, start /= 2)
            for (int i = 0; i < count; ++i) {
                float left = data[2 * i], right = data[2 * i + 1];
                details[start + block * count + i] = (left - right) * root;
                data[i] = (left + right) * root;
            }
        approximation[block] = data[0];
    }
}

void cipher(const uint32_t *restrict words, const uint32_t *restrict tables, const uint32_t *restrict keys,
            uint32_t *restrict out, int n) {
    const uint32_t *t = tables, *u = tables + 256, *v = tables + 512, *w = tables + 768;
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        uint32_t a = words[4 * i] ^ keys[0], b = words[4 * i + 1] ^ keys[1];
        uint32_t c = words[4 * i + 2] ^ keys[2], d = words[4 * i + 3] ^ keys[3];
        for (int turn = 1; turn < 10; ++turn) {
            const uint32_t *key = keys + 4 * turn;
            uint32_t e = t[a >> 24] ^ u[(b >> 16) & 255] ^ v[(c >> 8) & 255] ^ w[d & 255] ^ key[0];
            uint32_t f = t[b >> 24] ^ u[(c >> 16) & 255] ^ v[(d >> 8) & 255] ^ w[a & 255] ^ key[1];
            uint32_t g = t[c >> 24] ^ u[(d >> 16) & 255] ^ v[(a >> 8) & 255] ^ w[b & 255] ^ key[2];
            uint32_t h = t[d >> 24] ^ u[(a >> 16) & 255] ^ v[(b >> 8) & 255] ^ w[c & 255] ^ key[3];
            a = e, b = f, c = g, d = h;
        }
        out[4 * i] = a, out[4 * i + 1] = b, out[4 * i + 2] = c, out[4 * i + 3] = d;
    }
}

static uint32_t rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

void sha256(const uint32_t *restrict messages, uint32_t *restrict digests, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        uint32_t w[64], s[8];
        for (int t = 0; t < 16; ++t) w[t] = messages[16 * i + t];
        for (int t = 16; t < 64; ++t)
            w[t] = w[t - 16] + (rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3) + w[t - 7] +
                   (rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10);
        for (int k = 0; k < 8; ++k) s[k] = SHA_START[k];
        for (int t = 0; t < 64; ++t) {
            uint32_t a = s[0], e = s[4];
            uint32_t t1 = s[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & s[5]) ^ (~e & s[6])) +
                          SHA_ROUNDS[t] + w[t];
            uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
            for (int k = 7; k > 0; --k) s[k] = s[k - 1];
            s[4] += t1;
            s[0] = t1 + t2;
        }
        for (int k = 0; k < 8; ++k) digests[8 * i + k] = SHA_START[k] + s[k];
    }
}
