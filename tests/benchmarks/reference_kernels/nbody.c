// n-body: accelerations of all pairs.
#include <math.h>

void nbody(const float *restrict x, const float *restrict y, const float *restrict z, const float *restrict mass,
           float *restrict ax, float *restrict ay, float *restrict az, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        float sx = 0.0f, sy = 0.0f, sz = 0.0f;
#pragma omp simd reduction(+ : sx, sy, sz)
        for (int j = 0; j < n; ++j) {
            float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
            float scale = mass[j] * inverse * inverse * inverse;
            sx += dx * scale;
            sy += dy * scale;
            sz += dz * scale;
        }
        ax[i] = sx;
        ay[i] = sy;
        az[i] = sz;
    }
}
