"""Rows of different lengths as loops for Numba: a residual in CSR, softmax of segments, PageRank, finite elements."""

import math

import numpy as np
from fourth.ragged import LOWEST, ONE, ZERO
from numba import get_num_threads

from reference_kernels.jit import alone, loops, prange, sums


@sums
def residual(starts, columns, values, x, b, r, norm):
    squares = 0.0
    for row in prange(r.size):
        total = 0.0
        for k in range(starts[row], starts[row + 1]):
            total += values[k] * x[columns[k]]
        difference = b[row] - total
        r[row] = difference
        squares += difference * difference
    norm[0] += squares


@loops
def segment_softmax(offsets, scores, out, totals):
    for segment in prange(totals.size):
        highest = LOWEST
        for i in range(offsets[segment], offsets[segment + 1]):
            highest = max(highest, scores[i])
        total = ZERO
        for i in range(offsets[segment], offsets[segment + 1]):
            out[i] = math.exp(scores[i] - highest)
            total += out[i]
        for i in range(offsets[segment], offsets[segment + 1]):
            out[i] /= total
        totals[segment] = total


@loops
def push(offsets, targets, rank, damping, following, dangling):
    n = rank.size
    parts = get_num_threads()
    own = np.zeros((parts, n), np.float32)
    unlinked = np.zeros(parts, np.float32)
    for part in prange(parts):
        for node in range(part * n // parts, (part + 1) * n // parts):
            begin = offsets[node]
            end = offsets[node + 1]
            own[part, node] += (ONE - damping) / np.float32(n)
            if begin == end:
                unlinked[part] += rank[node]
            else:
                share = damping * rank[node] / np.float32(end - begin)
                for k in range(begin, end):
                    own[part, targets[k]] += share
    for node in prange(n):
        for part in range(parts):
            following[node] += own[part, node]
    dangling[0] += unlinked.sum()


@alone
def add_triangle(points, nodes, conductivity, u, residual, diagonal):
    x0, x1, x2 = points[nodes[0], 0], points[nodes[1], 0], points[nodes[2], 0]
    y0, y1, y2 = points[nodes[0], 1], points[nodes[1], 1], points[nodes[2], 1]
    b = (y1 - y2, y2 - y0, y0 - y1)
    c = (x2 - x1, x0 - x2, x1 - x0)
    twice_area = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
    scale = conductivity / (2.0 * twice_area)
    for i in range(3):
        flow = 0.0
        for j in range(3):
            flow += scale * (b[i] * b[j] + c[i] * c[j]) * u[nodes[j]]
        residual[nodes[i]] += flow
        diagonal[nodes[i]] += scale * (b[i] * b[i] + c[i] * c[i])


@loops
def assemble(points, triangles, conductivity, u, residual, diagonal):
    n = conductivity.size
    parts = get_num_threads()
    own = np.zeros((parts, 2, residual.size))
    for part in prange(parts):
        for e in range(part * n // parts, (part + 1) * n // parts):
            add_triangle(points, triangles[e], conductivity[e], u, own[part, 0], own[part, 1])
    for node in prange(residual.size):
        for part in range(parts):
            residual[node] += own[part, 0, node]
            diagonal[node] += own[part, 1, node]
