"""Derivatives of adjoint and tangent kernels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from weft import cuda
from weft.errors import CompileError

N = 20
STEP = 1e-6


def uniform(*shape):
    return np.random.default_rng(sum(shape)).random(shape)


@cuda.jit
def damped(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = math.exp(-a[0] * x[i]) * math.sin(x[i]) if x[i] > 0.2 else x[i] * x[i] * a[0]


@cuda.jit
def mixed(a, x, y):
    """A sum over a loop, and neighbors."""
    i = cuda.grid(1)
    if i < y.size:
        s = 0.0
        for k in range(x.size):
            s += a[0] * x[k] * x[k] * x[i]
        y[i] = s * math.cos(x[(i + 1) % x.size])


@cuda.jit
def iterated(a, x, y):
    i = cuda.grid(1)
    if i < y.size:
        v = x[i]
        for _ in range(20):
            v = math.sin(v) * a[0] + v
        y[i] = v


@cuda.jit
def through_shared(a, x, y):
    s = cuda.shared.array(32, np.float64)
    i = cuda.threadIdx.x
    s[i] = x[i] * x[i] if i < x.size else 0.0
    cuda.syncthreads()
    if i < y.size:
        y[i] = s[i] * math.sin(s[(i + 3) % x.size]) * a[0]


@cuda.jit
def grown(a, x, y):
    i = cuda.grid(1)
    if i < y.size:
        v = x[i]
        while v < 10.0:
            v = v * v * a[0] + v + 0.1
        y[i] = v


CASES = [damped, mixed, iterated, through_shared]


def gradients(kernel, a, x, weights):
    da, dx = np.zeros(1), np.zeros(N)
    cuda.vjp(kernel)[1, 32](a, x, np.zeros(N), da, dx, weights.copy())
    return da, dx


def expected(kernel, a, x, weights, along_a, along_x):
    """The Hessian of the weighted sum, times a direction, by differences of gradients."""
    ahead = gradients(kernel, a + STEP * along_a, x + STEP * along_x, weights)
    behind = gradients(kernel, a - STEP * along_a, x - STEP * along_x, weights)
    return [(one - other) / (2 * STEP) for one, other in zip(ahead, behind, strict=True)]


@pytest.mark.parametrize("kernel", CASES, ids=lambda kernel: kernel.__name__)
def test_a_tangent_kernel_of_an_adjoint_kernel(kernel):
    """Forward over reverse: products of the Hessian with a direction."""
    a, x, weights = np.array([0.7]), uniform(N), uniform(N + 1)[:N]
    along_a, along_x = np.array([0.3]), uniform(N + 2)[:N]
    second = cuda.jvp(cuda.vjp(kernel))
    da, dx, dy = np.zeros(1), np.zeros(N), weights.copy()
    found = np.zeros(1), np.zeros(N)
    tangents = (along_a.copy(), along_x.copy(), np.zeros(N), *found, np.zeros(N))
    second[1, 32](a, x, np.zeros(N), da, dx, dy, *tangents)
    for one, other in zip(found, expected(kernel, a, x, weights, along_a, along_x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
    for one, other in zip((da, dx), gradients(kernel, a, x, weights), strict=True):
        np.testing.assert_allclose(one, other)
    assert second.tangents(a, x, np.zeros(N), da, dx, dy) == (
        "a", "x", "y", "a.adjoint", "x.adjoint", "y.adjoint",
    )  # fmt: skip


@pytest.mark.parametrize("kernel", CASES, ids=lambda kernel: kernel.__name__)
def test_an_adjoint_kernel_of_an_adjoint_kernel(kernel):
    """Reverse over reverse gives the same products, since the Hessian is symmetric, and the Jacobian's."""
    a, x, weights = np.array([0.7]), uniform(N), uniform(N + 1)[:N]
    along_a, along_x = np.array([0.3]), uniform(N + 2)[:N]
    second = cuda.vjp(cuda.vjp(kernel))
    found_a, found_x, found_weights = np.zeros(1), np.zeros(N), np.zeros(N)
    adjoints = (found_a, found_x, np.zeros(N), along_a.copy(), along_x.copy(), found_weights)
    second[1, 32](a, x, np.zeros(N), np.zeros(1), np.zeros(N), weights.copy(), *adjoints)
    for one, other in zip((found_a, found_x), expected(kernel, a, x, weights, along_a, along_x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
    fwd, dy = cuda.jvp(kernel), np.zeros(N)
    fwd[1, 32](a, x, np.zeros(N), along_a, along_x, dy)
    np.testing.assert_allclose(found_weights, dy)


def test_an_adjoint_kernel_of_a_tangent_kernel():
    a, x, weights = np.array([0.7]), uniform(N), uniform(N + 1)[:N]
    along_a, along_x = np.array([0.3]), uniform(N + 2)[:N]
    found_a, found_x = np.zeros(1), np.zeros(N)
    second = cuda.vjp(cuda.jvp(damped))
    adjoints = (found_a, found_x, np.zeros(N), np.zeros(1), np.zeros(N), weights.copy())
    second[1, 32](a, x, np.zeros(N), along_a, along_x, np.zeros(N), *adjoints)
    for one, other in zip((found_a, found_x), expected(damped, a, x, weights, along_a, along_x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def test_by_some_parameters():
    second = cuda.jvp(cuda.vjp(damped, wrt="x"), wrt=("x", "y.adjoint"))
    args = np.array([0.7]), uniform(N), np.zeros(N)
    dx, dy = np.zeros(N), np.ones(N)
    assert second.tangents(*args, dx, dy) == ("x", "x.adjoint", "y.adjoint")
    with pytest.raises(ValueError, match=r"has no parameter `z`; its parameters are a, x, y, a\.adjoint"):
        cuda.jvp(cuda.vjp(damped), wrt="z")
    with pytest.raises(TypeError, match="`damped` takes 5 arguments, not 4"):
        second.tangents(*args, dx)
    assert repr(second) == "<tangent kernel of <adjoint kernel of damped(a, x, y), wrt=('x',)>, wrt=('x', 'y.adjoint')>"


def test_values_of_loops_without_a_bound_have_no_second_derivative():
    args = np.array([0.7]), uniform(N) + 0.1, np.zeros(N), np.zeros(1), np.zeros(N), np.ones(N)
    with pytest.raises(CompileError, match="the trip count has no constant bound"):
        cuda.jvp(cuda.vjp(grown))[1, 32](*args, *map(np.zeros_like, args))
