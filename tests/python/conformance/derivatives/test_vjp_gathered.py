"""Gradients of arrays that threads load at constant distances from their index: on the CPU, threads gather them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from gradients import adjoints, check
from weft import _weft, cuda


def uniform(*shape, seed=0):
    return np.random.default_rng(sum(shape) + seed).random(shape)


def assert_gathered(kernel, args, wrt=None, is_gathered=True):
    """Check whether an adjoint kernel leaves incoming gradients to another launch."""
    said = "threads gather gradients" in cuda.vjp(kernel, wrt).explain(*args)
    assert said == (is_gathered and _weft.device_kind() == "cpu")


def checked(kernel, grid, block, args, *, wrt=None, outputs=("out",), is_gathered=True):
    check(kernel, grid, block, args, outputs, wrt=wrt)
    assert_gathered(kernel, args, wrt, is_gathered)
    _, given = adjoints(kernel, grid, block, args, outputs, np.random.default_rng(1), wrt)
    return given


@cuda.jit
def filtered(u, w, out):
    i = cuda.grid(1)
    if 0 < i < u.size - 1:
        out[i] = w[0] * u[i - 1] + w[1] * u[i] + w[2] * u[i + 1]


@pytest.mark.parametrize("grid", [1, 2, 3])
def test_filter(grid):
    given = checked(filtered, grid, 64, [uniform(100), uniform(3), uniform(100)])
    assert not given["out"][1 : min(99, 64 * grid)].any(), "incoming gradients of overwritten elements become 0"
    assert given["out"][[0, 99]].all(), "those of other elements do not change"


def test_kinds_of_arrays():
    u, w, out = uniform(100), uniform(3), uniform(100)
    for dtype in (np.float32, np.float16):
        args = [value.astype(dtype) for value in (u, w, out)]
        _, given = adjoints(filtered, 2, 64, args, ("out",), np.random.default_rng(1))
        weights = np.random.default_rng(1).standard_normal(100)
        wide = [value.astype(np.float64) for value in args]
        _, expected = adjoints(filtered, 2, 64, wide, ("out",), np.random.default_rng(1))
        assert weights.any()
        np.testing.assert_allclose(given["u"], expected["u"], 2e-3 if dtype == np.float16 else 1e-5, 1e-2)
        assert_gathered(filtered, args)


def test_strided_arrays():
    u, w, out, dout = uniform(200)[::2], uniform(3), uniform(300)[::3], uniform(100)
    du, dw, given = np.zeros(300)[::3], np.zeros(3), np.zeros(200)[::2]
    given[...] = dout
    cuda.vjp(filtered)[2, 64](u, w, out, du, dw, given)
    expected = np.zeros(100)
    for k in range(3):
        expected[k : 98 + k] += w[k] * dout[1:99]
    np.testing.assert_allclose(du, expected, 1e-12)
    assert not given[1:99].any()
    assert_gathered(filtered, [u, w, out])


@cuda.jit
def convolved(u, w, out):
    i = cuda.grid(1)
    if i < out.size:
        s = 0.0
        for k in range(w.size):
            s += w[k] * u[i + k]
        out[i] = s


@pytest.mark.parametrize(("taps", "grid"), [(9, 2), (9, 1), (1, 2), (70, 1), (70, 2)])
def test_convolution(taps, grid):
    """With more elements than threads, the first threads have several."""
    checked(convolved, grid, 64, [uniform(99 + taps), uniform(taps), uniform(100)])


@cuda.jit
def flipped(u, w, out):
    i = cuda.threadIdx.x + cuda.blockDim.x * cuda.blockIdx.x
    if 30 <= i < out.size:
        s = 0.0
        for k in range(1, 31, 3):
            s += w[k] * u[i - k]
        out[i] = 3.0 * s


def test_counters_are_subtracted():
    checked(flipped, 2, 64, [uniform(100), uniform(31), uniform(100)])


@cuda.jit
def dilated(u, w, n, out):
    i = cuda.grid(1)
    if i < out.size:
        s = 0.0
        for k in range(w.size):
            s += w[k] * u[i + k + n]
        out[i] = s


def test_specialized_variants_decide_the_same():
    """A negative distance would be an index from the end. Launches with others have a variant without this test."""
    checked(dilated, 2, 64, [uniform(120), uniform(5), 11, uniform(100)], wrt=("u", "w"), is_gathered=False)


@cuda.jit
def stencil(u, c, out):
    x, y = cuda.grid(2)
    if 0 < x < u.shape[1] - 1 and 0 < y < u.shape[0] - 1:
        around = u[y - 1, x] + u[y + 1, x] + u[y, x - 1] + u[y, x + 1] - 4.0 * u[y, x]
        out[y, x] = u[y, x] + c[y, x] * around


@pytest.mark.parametrize("block", [(8, 8), (32, 4), (3, 5)])
def test_stencil(block):
    grid = tuple(-(-extent // of) for extent, of in zip((21, 17), block, strict=True))
    checked(stencil, grid, block, [uniform(17, 21), uniform(17, 21), uniform(17, 21)])
    fortran = [np.asfortranarray(uniform(17, 21, seed=seed)) for seed in range(3)]
    checked(stencil, grid, block, fortran)


def test_fewer_threads_than_elements():
    given = checked(stencil, (2, 1), (8, 8), [uniform(17, 21), uniform(17, 21), uniform(17, 21)])
    assert not given["u"][10:].any()
    assert given["u"][8, 15], "an element after those of the threads"


@cuda.jit
def convolved_2d(u, w, out):
    x, y = cuda.grid(2)
    if x < out.shape[1] and y < out.shape[0]:
        s = 0.0
        for i in range(w.shape[0]):
            for k in range(w.shape[1]):
                s += w[i, k] * u[y + i, x + k]
        out[y, x] = s


def test_convolution_of_two_dimensions():
    checked(convolved_2d, (3, 2), (8, 8), [uniform(15, 22), uniform(4, 3), uniform(12, 20)])
    checked(convolved_2d, (1, 1), (8, 8), [uniform(15, 22), uniform(4, 3), uniform(12, 20)])


@cuda.jit
def transposed(u, out):
    x, y, z = cuda.grid(3)
    if 0 < x < u.shape[0] - 1 and y < u.shape[2] and 0 < z < u.shape[1]:
        out[x, y, z] = u[x + 1, z - 1, y] - 2.0 * u[x - 1, z, y]


def test_three_dimensions():
    checked(transposed, (2, 2, 2), (4, 4, 4), [uniform(7, 6, 5), uniform(7, 5, 6)])


@cuda.jit
def upwind(u, v, out):
    i = cuda.grid(1)
    if 0 < i < u.size - 1:
        if v[i] > 0.5:
            d = u[i] - u[i - 1]
        else:
            d = u[i + 1] - u[i]
        out[i] = u[i] - v[i] * d


def test_conditions_of_other_threads():
    checked(upwind, 2, 64, [uniform(100), uniform(100), uniform(100)])


@cuda.jit
def products(u, out):
    i = cuda.grid(1)
    if i < u.size - 2:
        v = u[i + 1] * u[i + 1]
        out[i] = v * u[i + 2] + v


def test_values_with_several_uses():
    checked(products, 2, 64, [uniform(100), uniform(100)])


@cuda.jit
def two_outputs(u, out, other):
    i = cuda.grid(1)
    if i < u.size - 2:
        out[i] = u[i + 1] + u[i + 2]
    if i < u.size - 1:
        other[i] = 2.0 * u[i + 1]


def test_several_outputs():
    args = [uniform(100), uniform(100), uniform(100)]
    given = checked(two_outputs, 2, 64, args, outputs=("out", "other"))
    assert not given["out"][:98].any()
    assert not given["other"][:99].any()


def refused_kernels():
    @cuda.jit
    def overwritten(u, out):
        i = cuda.grid(1)
        if i < u.size - 1:
            out[i] = u[i + 1]
            out[i] = u[i] + u[i + 1]

    @cuda.jit
    def sums(u, out):
        x, y = cuda.grid(2)
        if x < out.size and y < 4:
            cuda.atomic.add(out, x, y * u[x + 1])

    @cuda.jit
    def other_axis(u, out):
        x, y = cuda.grid(2)
        if x < out.shape[1] and y < out.shape[0]:
            out[y, x] = u[x + 1] * y

    @cuda.jit
    def expensive(u, out):
        i = cuda.grid(1)
        if i < u.size - 1:
            out[i] = math.sin(math.exp(u[i] * math.cos(u[i + 1]))) * math.tan(u[i])

    @cuda.jit
    def by_index(u, n, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = u[n[i]] + u[i + 1]

    @cuda.jit
    def with_barrier(u, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = u[i + 1] + u[i]
        cuda.syncthreads()

    @cuda.jit
    def by_lane(u, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = u[i + 1] * cuda.laneid + u[i]

    @cuda.jit
    def strided(u, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = u[2 * i] + u[2 * i + 1]

    u, out = uniform(101), uniform(100)
    yield overwritten, 2, 64, [u, uniform(101)]
    yield sums, (2, 4), (64, 1), [u, out]
    yield other_axis, (1, 4), (64, 1), [uniform(33), uniform(4, 32)]
    yield expensive, 2, 64, [u, uniform(101)]
    yield by_index, 2, 64, [u, np.random.default_rng(1).integers(0, 101, 100), out]
    yield with_barrier, 2, 64, [u, out]
    yield by_lane, 2, 64, [u, out]
    yield strided, 2, 64, [uniform(200), out]


@pytest.mark.parametrize("case", list(refused_kernels()), ids=lambda case: case[0].__name__)
def test_additions_remain(case):
    kernel, grid, block, args = case
    checked(kernel, grid, block, args, is_gathered=False)


def test_axes_without_an_index():
    """Threads of other axes have the same index: additions to `out` by all of them are no races."""

    @cuda.jit
    def added(u, out):
        i = cuda.grid(1)
        if i < out.size:
            cuda.atomic.add(out, i, u[i + 1])

    checked(added, (2, 2), (64, 2), [uniform(101), uniform(100)], is_gathered=False)


def test_second_derivatives():
    @cuda.jit
    def pairs(u, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = u[i] * u[i + 1]

    u, v = uniform(33), uniform(33, seed=1)
    out, dout = np.zeros(32), uniform(32, seed=2)
    hvp = cuda.jvp(cuda.vjp(pairs))
    du, given = np.zeros(33), np.copy(dout)
    tangents = [np.copy(v), np.zeros(32), np.zeros(33), np.zeros(32)]
    hvp[1, 32](u, out, du, given, *tangents)
    expected = np.zeros(33)
    expected[:-1] += dout * v[1:]
    expected[1:] += dout * v[:-1]
    np.testing.assert_allclose(tangents[2], expected, 1e-12)


def test_reproducible_kernels_need_no_exact_sums():
    kernel = cuda.jit(reproducible=True)(convolved.py_func)
    args = [uniform(107), uniform(8), uniform(100)]
    checked(kernel, 2, 64, args, wrt=("u",))
    needs_sums = "exact sums" in cuda.vjp(kernel, "u").explain(*args)
    assert needs_sums == (_weft.device_kind() != "cpu")
    assert "exact sums" in cuda.vjp(kernel, ("u", "w")).explain(*args)
    checked(kernel, 2, 64, args, wrt=("u", "w"))
