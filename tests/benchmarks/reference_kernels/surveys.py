"""Distances of many points as loops for Numba: an angular correlation, nearest centers, and the nearest eight."""

import numpy as np
from fourth.normalization import INFINITY, TOP
from fourth.surveys import BINS, BOUNDS, DIMENSIONS, ZERO
from numba import get_num_threads

from reference_kernels.jit import alone, loops, prange


@alone
def bin_of(cosine):
    low = 0
    high = BINS
    while high > low + 1:
        middle = (low + high) // 2
        if cosine >= BOUNDS[middle]:
            high = middle
        else:
            low = middle
    if cosine >= BOUNDS[low]:
        return low
    return high + 1 if cosine < BOUNDS[high] else high


@loops
def correlation(points, counts):
    n = points.shape[1]
    parts = get_num_threads()
    bins = np.zeros((parts, BINS + 2), np.int32)
    for part in prange(parts):
        for i in range(part, n, parts):
            for j in range(i + 1, n):
                cosine = points[0, i] * points[0, j] + points[1, i] * points[1, j] + points[2, i] * points[2, j]
                bins[part, bin_of(cosine)] += 1
    for part in range(parts):
        counts += bins[part]


@loops
def nearest_center(features, centers, membership, distances):
    for i in prange(membership.size):
        point = np.empty(DIMENSIONS, np.float32)
        for d in range(DIMENSIONS):
            point[d] = features[d, i]
        nearest = 0
        least = INFINITY
        for c in range(centers.shape[0]):
            distance = ZERO
            for d in range(DIMENSIONS):
                difference = point[d] - centers[c, d]
                distance += difference * difference
            if distance < least:
                least = distance
                nearest = c
        membership[i] = nearest
        distances[i] = least


@loops
def nearest_distances(distances, values, indices):
    n, queries = distances.shape
    for query in prange(queries):
        best = np.full(TOP, INFINITY, np.float32)
        index = np.full(TOP, -1, np.int32)
        for i in range(n):
            value = distances[i, query]
            if value < best[TOP - 1]:
                j = TOP - 1
                while j > 0 and best[j - 1] > value:
                    best[j] = best[j - 1]
                    index[j] = index[j - 1]
                    j -= 1
                best[j] = value
                index[j] = i
        for k in range(TOP):
            values[k, query] = best[k]
            indices[k, query] = index[k]
