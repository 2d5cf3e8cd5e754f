"""Adjoint kernels of kernels in which some threads return before barriers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from gradients import check, check_tangents
from test_vjp import refused
from weft import cuda


def uniform(*shape):
    return np.random.default_rng(sum(shape)).random(shape)


@cuda.jit
def returns(x, out):
    tile = cuda.shared.array(32, np.float64)
    i, tid = cuda.grid(1), cuda.threadIdx.x
    if i >= x.size:
        return
    v = x[i] * x[i]
    tile[tid] = v
    cuda.syncthreads()
    near = tile[tid - 1] if tid > 0 else 0.3
    out[i] = math.sin(near) * v


@cuda.jit
def in_loops(x, w, out):
    """A sum by a tree in a loop over weights, after a return."""
    tile = cuda.shared.array(32, np.float64)
    i, tid = cuda.grid(1), cuda.threadIdx.x
    here = min(cuda.blockDim.x, x.size - cuda.blockIdx.x * cuda.blockDim.x)
    if i >= x.size:
        return
    total = 0.0
    for k in range(w.size):
        tile[tid] = math.sin(x[i] * w[k]) + 0.1 * total
        cuda.syncthreads()
        n = 16
        while n > 0:
            if tid < n and tid + n < here:
                tile[tid] += tile[tid + n] * w[k]
            cuda.syncthreads()
            n //= 2
        total = total * 0.5 + tile[0] * tile[0]
        cuda.syncthreads()
    out[i] = total * x[i]


@cuda.jit
def guarded(x, n, out, others):
    """Guards in guards, with something to do for the others; one of them is the same for the block."""
    tile = cuda.shared.array(32, np.float64)
    i, tid = cuda.grid(1), cuda.threadIdx.x
    if i < x.size:
        v = x[i]
        tile[tid] = v
        cuda.syncthreads()
        if n > 2:
            v += tile[tid ^ 1] * tile[tid]
            cuda.syncthreads()
            tile[tid] = math.cos(v)
            cuda.syncthreads()
        else:
            v = v * v
        if x[0] > 0.0:
            out[i] = v * tile[tid ^ 1]
            cuda.syncthreads()
        else:
            out[i] = v
    else:
        cuda.atomic.add(others, 0, 0.5 * x[0] * x[1])


CASES = {
    "returns": (returns, 2, 32, (uniform(41), np.zeros(41)), ["out"]),
    "in_loops": (in_loops, 2, 32, (uniform(41), uniform(5), np.zeros(41)), ["out"]),
    "guarded": (guarded, 2, 32, (uniform(42), 3, np.zeros(42), np.zeros(1)), ["out", "others"]),
    "guarded_otherwise": (guarded, 2, 32, (uniform(42), 2, np.zeros(42), np.zeros(1)), ["out", "others"]),
}


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_differences(case):
    kernel, grid, block, args, outputs = CASES[case]
    check(kernel, grid, block, args, outputs)


@pytest.mark.parametrize("case", CASES)
def test_tangents_agree_with_gradients(case):
    check_tangents(*CASES[case])


def test_loops_of_unknown_length_are_errors_at_the_barrier():
    """A thread outside of the guard must not read the trip count, which may be past the end of the array."""

    def unknown(x, n, out):
        i = cuda.grid(1)
        if i < x.size:
            for _ in range(n[cuda.blockIdx.x]):
                cuda.syncthreads()
                out[i] += x[i]

    head, line = refused(unknown, np.ones(4), np.ones(1, np.int64), np.ones(4))
    assert "a barrier under a condition that may differ in the block" in head
    assert line == "cuda.syncthreads()"
