// Softmax of each row: its maximum, the sum of the exponentials, and the quotients.
#include <math.h>
#include <stddef.h>

void softmax(const float *restrict a, float *restrict out, int columns, int rows) {
#pragma omp parallel for
    for (int row = 0; row < rows; ++row) {
        const float *line = a + (size_t)row * columns;
        float *restrict shares = out + (size_t)row * columns, largest = line[0], total = 0.0f;
#pragma omp simd reduction(max : largest)
        for (int i = 0; i < columns; ++i) largest = line[i] > largest ? line[i] : largest;
#pragma omp simd reduction(+ : total)
        for (int i = 0; i < columns; ++i) total += shares[i] = expf(line[i] - largest);
        for (int i = 0; i < columns; ++i) shares[i] /= total;
    }
}
