"""Derivatives of kernels of 16-bit floats, beside those of float64: adjoints have 16 bits, sums in the kernel 32."""

from __future__ import annotations

import math

import numpy as np
import pytest
from weft import cuda

N = 70


@cuda.jit
def elementwise(x, w, y):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i] * w[i] + abs(x[i]) / (w[i] + w[i])
        y[i] = math.sin(v) - v * v if v > 0.3 else math.exp(v) * math.sqrt(w[i])


@cuda.jit
def converted(x, w, y):
    """Computes in float32 what it loads and stores in 16 bits."""
    i = cuda.grid(1)
    if i < x.size:
        v = np.float32(x[i]) * np.float32(w[i])
        y[i] = math.tanh(v) + v * np.float32(w[0])


@cuda.jit
def gathered(x, k, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = x[k[i]] * x[i % 7] - x[3]


@cuda.jit
def stencil(x, w, y):
    i = cuda.grid(1)
    if 1 <= i < x.size - 1:
        total = x[i] * w[0]
        for k in range(3):
            total = total + w[k] * x[i + k - 1]
        y[i] = total


@cuda.jit
def tiled(x, y):
    tile = cuda.shared.array(32, x.dtype)
    own = cuda.local.array(3, x.dtype)
    i = cuda.threadIdx.x
    tile[i] = x[i] * x[i]
    for k in range(3):
        own[k] = x[i]
    cuda.syncthreads()
    y[i] = tile[31 - i] * own[i % 3] + tile[0] + own[2]


@cuda.jit
def iterated(x, n, y):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        for _ in range(n):
            v = math.sin(v) + x[i]
        y[i] = v


@cuda.jit
def updated(x, y):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(y, i % 5, x[i] * x[i])


CASES = [(elementwise, 2), (converted, 2), (gathered, 1), (stencil, 2), (tiled, 1), (iterated, 1), (updated, 1)]


def arguments(kernel, count, dtype, rng):
    """The arguments of a kernel."""
    drawn = rng.random((count, N)) * 0.75 + 0.25
    if kernel is tiled:
        drawn = drawn[:, :32]
    given = [row.astype(np.float16).astype(dtype) for row in drawn]
    more = {gathered: [rng.integers(0, N, N)], iterated: [5]}.get(kernel, [])
    return [*given, *more, np.zeros_like(given[0])]


def derivatives(kernel, count, dtype):
    """Adjoints and tangents for arrays of a dtype."""
    rng = np.random.default_rng(4)
    args = arguments(kernel, count, dtype, rng)
    arrays = [arg for arg in args if isinstance(arg, np.ndarray) and arg.dtype == dtype]
    shape = arrays[0].shape
    adjoints = [np.zeros(shape, dtype) for _ in arrays]
    adjoints[-1][...] = rng.random(shape).astype(np.float16).astype(dtype)
    tangents = [rng.random(shape).astype(np.float16).astype(dtype) for _ in arrays]
    grid = -(-shape[0] // 32)
    cuda.vjp(kernel)[grid, 32](*args, *adjoints)
    cuda.jvp(kernel)[grid, 32](*args, *tangents)
    cuda.synchronize()
    return [found.astype(np.float64) for found in (*adjoints, *tangents)]


@pytest.mark.parametrize(("kernel", "count"), CASES)
def test_derivatives_are_those_of_float64(kernel, count):
    halves, doubles = (derivatives(kernel, count, np.dtype(dtype)) for dtype in (np.float16, np.float64))
    for found, expected in zip(halves, doubles, strict=True):
        scale = 1 + np.abs(expected).max()
        np.testing.assert_allclose(found / scale, expected / scale, atol=6e-3)


@cuda.jit
def in_bfloat16(x, w, y):
    """Arithmetic, and arrays of the kernel, of bfloat16. Its operations on the small integers of the test are exact."""
    tile = cuda.shared.array(32, cuda.bfloat16)
    own = cuda.local.array(2, cuda.bfloat16)
    i = cuda.threadIdx.x
    v = cuda.bfloat16(x[i]) * cuda.bfloat16(w[i])
    tile[i] = v - cuda.bfloat16(x[i])
    own[i % 2] = v * cuda.bfloat16(w[0])
    cuda.syncthreads()
    y[i] = np.float32(tile[31 - i] * own[i % 2] + tile[3] * v)


def test_bfloat16():
    rng = np.random.default_rng(9)
    x, w = (rng.integers(-2, 3, 32).astype(np.float32) for _ in range(2))
    weights = rng.integers(-3, 4, 32).astype(np.float32)
    dx, dw, dy = np.zeros_like(x), np.zeros_like(w), weights.copy()
    cuda.vjp(in_bfloat16)[1, 32](x, w, np.zeros_like(x), dx, dw, dy)
    cuda.synchronize()

    def loss(x, w):
        tile, own = x * w - x, x * w * w[0]
        return weights @ (tile[::-1] * own + tile[3] * x * w)

    for number, found in enumerate((dx, dw)):
        for i in range(32):
            ahead, behind = ([x.astype(float), w.astype(float)] for _ in range(2))
            ahead[number][i] += 1e-4
            behind[number][i] -= 1e-4
            np.testing.assert_allclose(found[i], (loss(*ahead) - loss(*behind)) / 2e-4, atol=1e-2)


@cuda.jit
def summed(x, w, y):
    """Each thread adds many terms to one gradient; so do all threads of the grid."""
    i = cuda.grid(1)
    if i < y.size:
        total = np.float32(0)
        for k in range(x.size):
            total += np.float32(x[k]) * np.float32(w[0])
        y[i] = total


def test_a_thread_sums_in_float32():
    dtype = np.float16
    x, w, y = np.ones(5000, dtype), np.ones(1, dtype), np.zeros(2, dtype)
    dx, dw, dy = np.zeros(5000, dtype), np.zeros(1, dtype), np.array([1, 0]).astype(dtype)
    cuda.vjp(summed)[1, 2](x, w, y, dx, dw, dy)
    cuda.synchronize()
    assert dw[0] == 5000
    assert (dx == 1).all()
    assert not dy.any()


def test_exact_sums_are_rounded_to_16_bits():
    @cuda.jit(reproducible=True)
    def scaled(a, x, y):
        i = cuda.grid(1)
        if i < y.size:
            y[i] = a[0] * x[i]

    x = np.full(5000, 0.3, np.float16)
    a, y, da = np.ones(1, np.float16), np.zeros_like(x), np.zeros(1, np.float16)
    dx, dy = np.zeros_like(x), np.ones_like(x)
    cuda.vjp(scaled)[40, 128](a, x, y, da, dx, dy)
    cuda.synchronize()
    assert da[0] == np.float16(np.float32(np.sum(x, dtype=np.float64)))


def test_a_scalar_has_an_adjoint():
    @cuda.jit
    def scaled(a, x, y):
        i = cuda.grid(1)
        if i < y.size:
            y[i] = a * x[i]

    x, da, dx = np.array([1, 2, 3], np.float16), np.zeros(1, np.float16), np.zeros(3, np.float16)
    cuda.vjp(scaled)[1, 32](np.float16(0.5), x, np.zeros_like(x), da, dx, np.ones_like(x))
    cuda.synchronize()
    assert da[0] == 6
    assert dx.tolist() == [0.5] * 3


def test_a_rule_for_16_bit_floats():
    def backward(x, count, r, g):
        return g * r * x if count > 0 else x

    @cuda.custom_vjp(backward=backward)
    def square(x, count):
        return x * x

    @cuda.jit
    def called(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = square(x[i], i) * np.float16(0.5)

    x = np.array([2, 3, 4], np.float16)
    dx = np.zeros_like(x)
    cuda.vjp(called)[1, 4](x, x.copy(), dx, np.ones_like(x))
    cuda.synchronize()
    assert dx.tolist() == [2, 13.5, 32]
