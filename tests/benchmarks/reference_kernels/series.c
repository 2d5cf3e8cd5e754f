// Sums of waves: the matrix Q of MRI gridding, and structure factors of a crystal.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static const float TWO_PI = 6.2831853071795864769f;

void gridding(const float *restrict samples, const float *restrict phi, const float *restrict x,
              const float *restrict y, const float *restrict z, float *restrict q_real, float *restrict q_imaginary,
              int n, int n_samples) {
    float *magnitudes = malloc((size_t)n_samples * sizeof *magnitudes);
    for (int k = 0; k < n_samples; ++k)
        magnitudes[k] = phi[2 * k] * phi[2 * k] + phi[2 * k + 1] * phi[2 * k + 1];
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        float real = 0.0f, imaginary = 0.0f;
        for (int k = 0; k < n_samples; ++k) {
            float angle = TWO_PI * (samples[3 * k] * x[i] + samples[3 * k + 1] * y[i] + samples[3 * k + 2] * z[i]);
            real += magnitudes[k] * cosf(angle);
            imaginary += magnitudes[k] * sinf(angle);
        }
        q_real[i] = real;
        q_imaginary[i] = imaginary;
    }
    free(magnitudes);
}

void structure_factors(const int32_t *restrict reflections, const float *restrict positions,
                       const float *restrict factors, float *restrict amplitude, float *restrict phase, int n,
                       int n_atoms) {
#pragma omp parallel for
    for (int r = 0; r < n; ++r) {
        const float h = (float)reflections[3 * r], k = (float)reflections[3 * r + 1];
        const float l = (float)reflections[3 * r + 2];
        float real = 0.0f, imaginary = 0.0f;
        for (int atom = 0; atom < n_atoms; ++atom) {
            const float *position = positions + 3 * atom;
            float angle = TWO_PI * (h * position[0] + k * position[1] + l * position[2]);
            real += factors[atom] * cosf(angle);
            imaginary += factors[atom] * sinf(angle);
        }
        amplitude[r] = sqrtf(real * real + imaginary * imaginary);
        phase[2 * r] = real;
        phase[2 * r + 1] = imaginary;
    }
}
