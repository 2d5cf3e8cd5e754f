// Grey of a color picture, bytes in and bytes out: planar (CHW) and interleaved (HWC).
#include <stdint.h>

static uint8_t grey(uint8_t red, uint8_t green, uint8_t blue) {
    return (uint8_t)(0.299f * red + 0.587f * green + 0.114f * blue + 0.5f);
}

void grey_planar(const uint8_t *restrict rgb, uint8_t *restrict out, int height, int width) {
    const int plane = height * width;
#pragma omp parallel for simd
    for (int i = 0; i < plane; ++i) out[i] = grey(rgb[i], rgb[plane + i], rgb[2 * plane + i]);
}

void grey_interleaved(const uint8_t *restrict rgb, uint8_t *restrict out, int height, int width) {
#pragma omp parallel for simd
    for (int i = 0; i < height * width; ++i) out[i] = grey(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]);
}
