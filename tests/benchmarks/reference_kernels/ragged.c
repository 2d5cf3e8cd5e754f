// Rows of different lengths: a residual in CSR, a softmax of segments, PageRank by pushes, and finite elements. Sums
// that the kernels make by atomics are those of each core, added at the end.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

void residual(const int32_t *restrict starts, const int32_t *restrict columns, const double *restrict values,
              const double *restrict x, const double *restrict b, double *restrict r, double *restrict norm, int n) {
    double squares = 0.0;
#pragma omp parallel for schedule(static, 64) reduction(+ : squares)
    for (int row = 0; row < n; ++row) {
        double total = 0.0;
#pragma omp simd reduction(+ : total)
        for (int k = starts[row]; k < starts[row + 1]; ++k) total += values[k] * x[columns[k]];
        r[row] = b[row] - total;
        squares += r[row] * r[row];
    }
    *norm += squares;
}

void segment_softmax(const int32_t *restrict offsets, const float *restrict scores, float *restrict out,
                     float *restrict totals, int n) {
#pragma omp parallel for schedule(static, 64)
    for (int segment = 0; segment < n; ++segment) {
        const int begin = offsets[segment], end = offsets[segment + 1];
        float highest = -INFINITY, total = 0.0f;
#pragma omp simd reduction(max : highest)
        for (int i = begin; i < end; ++i) highest = scores[i] > highest ? scores[i] : highest;
        for (int i = begin; i < end; ++i) total += out[i] = expf(scores[i] - highest);
        for (int i = begin; i < end; ++i) out[i] /= total;
        totals[segment] = total;
    }
}

void push(const int32_t *restrict offsets, const int32_t *restrict targets, const float *restrict rank, float damping,
          float *restrict following, float *restrict dangling, int n) {
    float unlinked = 0.0f;
#pragma omp parallel reduction(+ : unlinked)
    {
        float *own = calloc((size_t)n, sizeof *own);
#pragma omp for schedule(static, 1024) nowait
        for (int node = 0; node < n; ++node) {
            const int begin = offsets[node], end = offsets[node + 1];
            own[node] += (1.0f - damping) / (float)n;
            if (begin == end) {
                unlinked += rank[node];
                continue;
            }
            const float share = damping * rank[node] / (float)(end - begin);
            for (int k = begin; k < end; ++k) own[targets[k]] += share;
        }
#pragma omp critical
        for (int i = 0; i < n; ++i) following[i] += own[i];
        free(own);
    }
    *dangling += unlinked;
}

// Adds one triangle's terms to the residual and the diagonal.
static void add_triangle(const double *points, const int32_t *nodes, double conductivity, const double *u,
                         double *residual, double *diagonal) {
    double x[3], y[3];
    for (int k = 0; k < 3; ++k) x[k] = points[2 * nodes[k]], y[k] = points[2 * nodes[k] + 1];
    const double b[3] = {y[1] - y[2], y[2] - y[0], y[0] - y[1]}, c[3] = {x[2] - x[1], x[0] - x[2], x[1] - x[0]};
    const double twice_area = (x[1] - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (y[1] - y[0]);
    const double scale = conductivity / (2.0 * twice_area);
    for (int i = 0; i < 3; ++i) {
        double flow = 0.0;
        for (int j = 0; j < 3; ++j) flow += scale * (b[i] * b[j] + c[i] * c[j]) * u[nodes[j]];
        residual[nodes[i]] += flow;
        diagonal[nodes[i]] += scale * (b[i] * b[i] + c[i] * c[i]);
    }
}

// The mesh's number of nodes is no argument: it is one more than the largest node.
void assemble(const double *restrict points, const int32_t *restrict triangles, const double *restrict conductivity,
              const double *restrict u, double *restrict residual, double *restrict diagonal, int n) {
    int last = 0;
#pragma omp parallel for simd reduction(max : last)
    for (int i = 0; i < 3 * n; ++i) last = triangles[i] > last ? triangles[i] : last;
#pragma omp parallel
    {
        double *own = calloc(2 * (size_t)(last + 1), sizeof *own), *other = own + last + 1;
#pragma omp for nowait
        for (int e = 0; e < n; ++e) add_triangle(points, triangles + 3 * e, conductivity[e], u, own, other);
#pragma omp critical
        for (int i = 0; i <= last; ++i) {
            residual[i] += own[i];
            diagonal[i] += other[i];
        }
        free(own);
    }
}
