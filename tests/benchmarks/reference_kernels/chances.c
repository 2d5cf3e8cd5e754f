// Many small programs: options by Monte-Carlo, membranes by Runge-Kutta, queens, distances of words.
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static int min(int a, int b) { return a < b ? a : b; }

void options(const uint32_t *restrict seeds, const float *restrict start, const float *restrict strike, float rate,
             float volatility, float years, int32_t paths, float *restrict prices, int n) {
    const float drift = (rate - 0.5f * volatility * volatility) * years, spread = volatility * sqrtf(years);
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        uint32_t state = seeds[i];
        float total = 0.0f;
        for (int path = 0; path < paths; ++path) {
            state = state * 1664525u + 1013904223u;
            float u1 = ((float)state + 1.0f) * 0x1p-32f;
            state = state * 1664525u + 1013904223u;
            float u2 = (float)state * 0x1p-32f;
            float normal = sqrtf(-2.0f * logf(u1)) * cosf(6.2831853f * u2);
            total += fmaxf(start[i] * expf(drift + spread * normal) - strike[i], 0.0f);
        }
        prices[i] = total / (float)paths * expf(-rate * years);
    }
}

static void slope(const float *y, float *dy, float current) {
    const float v = y[0];
    dy[0] = v - v * v * v / 3.0f - y[1] + y[2] + current;
    dy[1] = 0.08f * (v + 0.7f - 0.8f * y[1]);
    dy[2] = 0.02f * (-0.775f - v - 0.7f * y[2]);
    dy[3] = 0.1f * (1.0f / (1.0f + expf(-v * 2.0f)) - y[3]);
}

void membrane(const float *restrict initial, const float *restrict currents, float dt, int32_t steps,
              float *restrict out, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        float y[4], trial[4], k1[4], k2[4], k3[4], k4[4];
        for (int d = 0; d < 4; ++d) y[d] = initial[d * n + i];
        for (int step = 0; step < steps; ++step) {
            slope(y, k1, currents[i]);
            for (int d = 0; d < 4; ++d) trial[d] = y[d] + 0.5f * dt * k1[d];
            slope(trial, k2, currents[i]);
            for (int d = 0; d < 4; ++d) trial[d] = y[d] + 0.5f * dt * k2[d];
            slope(trial, k3, currents[i]);
            for (int d = 0; d < 4; ++d) trial[d] = y[d] + dt * k3[d];
            slope(trial, k4, currents[i]);
            for (int d = 0; d < 4; ++d) y[d] += dt / 6.0f * (k1[d] + 2.0f * k2[d] + 2.0f * k3[d] + k4[d]);
        }
        for (int d = 0; d < 4; ++d) out[d * n + i] = y[d];
    }
}

static int solutions(int *columns, int row, int n) {
    if (row == n) return 1;
    int found = 0;
    for (int column = 0; column < n; ++column) {
        bool free = true;
        for (int k = 0; k < row && free; ++k) free = column != columns[k] && abs(column - columns[k]) != row - k;
        columns[row] = column;
        if (free) found += solutions(columns, row + 1, n);
    }
    return found;
}

void queens(int32_t n, int32_t *restrict counts) {
#pragma omp parallel for
    for (int start = 0; start < n * n; ++start) {
        int columns[16] = {start / n, start % n};
        counts[start] = abs(columns[0] - columns[1]) > 1 ? solutions(columns, 2, n) : 0;
    }
}

enum { LONGEST = 24 };

void levenshtein(const uint8_t *restrict words, const int32_t *restrict lengths, const uint8_t *restrict query,
                 int32_t *restrict distances, int n, int count) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        int row[LONGEST + 1];
        for (int k = 0; k <= lengths[i]; ++k) row[k] = k;
        for (int j = 0; j < count; ++j) {
            int diagonal = row[0];
            row[0] = j + 1;
            for (int k = 0; k < lengths[i]; ++k) {
                int best = min(min(row[k], row[k + 1]) + 1, diagonal + (words[i * LONGEST + k] != query[j]));
                diagonal = row[k + 1];
                row[k + 1] = best;
            }
        }
        distances[i] = row[lengths[i]];
    }
}
