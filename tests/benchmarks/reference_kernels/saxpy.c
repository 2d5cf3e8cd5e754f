// saxpy.
void saxpy(float a, const float *restrict x, const float *restrict y, float *restrict out, int n) {
#pragma omp parallel for simd
    for (int i = 0; i < n; ++i) out[i] = a * x[i] + y[i];
}
