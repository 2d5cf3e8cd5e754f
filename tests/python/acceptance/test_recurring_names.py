"""Name features that programs for numba.cuda rely on: captured constants, pruned branches, alternative spellings."""

import types as python_types

import numpy as np
import pytest
import weft
from harness import module
from weft import cuda

WIDTH = 8
TILE_SHAPE = (4, WIDTH)
settings = python_types.ModuleType("settings")
settings.BLOCK, settings.SCALE = 16, 2.5


@cuda.jit(device=True)
def lanes():
    return 16


@cuda.jit(device=True)
def extents():
    return 2, lanes()


settings.LANES, settings.EXTENTS = lanes, extents


class Limits:
    """Constants in a class with a single instance."""

    rows = 4

    def __init__(self):
        self.bins = 6


limits = Limits()


@cuda.jit
def staged(x, out):
    count = 3
    i = cuda.threadIdx.x
    by_literal = cuda.local.array(count, np.int64)
    by_module = cuda.shared.array((WIDTH, 2 * WIDTH), weft.float32)
    by_tuple = cuda.shared.array(TILE_SHAPE, weft.float64)
    by_attribute = cuda.shared.array(settings.BLOCK, dtype=weft.int32)
    by_class = cuda.local.array((Limits.rows, 2), weft.int16)
    for k in range(count):
        by_literal[k] = k * i
    by_class[3, 1] = i
    by_module[i % WIDTH, i] = x[i]
    by_tuple[i // WIDTH, i % WIDTH] = x[i] * settings.SCALE
    by_attribute[i] = i + len(TILE_SHAPE)
    cuda.syncthreads()
    other = settings.BLOCK - 1 - i
    total = by_literal[0] + by_literal[count - 1] + by_class[3, 1]
    out[i] = total + by_module[other % WIDTH, other] + by_tuple[other // WIDTH, other % WIDTH] + by_attribute[other]


def test_shapes_from_locals_modules_tuples_and_attributes():
    x = np.random.default_rng(11).random(16, np.float32)
    out = np.zeros(16)
    staged[1, 16](x, out)
    i, mirrored = np.arange(16), x[::-1].astype(np.float64)
    np.testing.assert_allclose(out, 3 * i + mirrored * 3.5 + (15 - i) + 2, rtol=1e-12)


@cuda.jit
def staged_by_functions(x, out):
    i = cuda.threadIdx.x
    staged = cuda.shared.array(settings.EXTENTS(), weft.float64)
    scratch = cuda.local.array(settings.LANES() // 4, np.int64)
    for k in range(settings.LANES() // 4):
        scratch[k] = k + i
    staged[1, i] = x[i]
    cuda.syncthreads()
    out[i] = staged[1, settings.LANES() - 1 - i] + scratch[3]


def test_shapes_from_functions_that_give_constants():
    x = np.arange(16.0) * 100
    out = np.zeros(16)
    staged_by_functions[1, 16](x, out)
    np.testing.assert_array_equal(out, x[::-1] + np.arange(16) + 3)


@pytest.mark.parametrize("taps", [1, 3, 5])
def test_shapes_from_a_closure(taps):
    half = taps // 2
    extent = (taps, 2)

    @cuda.jit
    def running(x, out):
        i = cuda.grid(1)
        window = cuda.local.array(extent, np.float64)
        last = cuda.local.array(taps, np.float64)
        for k in range(taps):
            at = i + k - half
            window[k, 0] = x[at] if 0 <= at < x.size else 0.0
            window[k, 1] = window[k, 0] * 2
            last[k] = window[k, 1] / taps
        if i < x.size:
            out[i] = 0.0
            for k in range(taps):
                out[i] += last[k]

    x, out = np.arange(20.0), np.zeros(20)
    running[1, 32](x, out)
    np.testing.assert_allclose(out, 2 * np.convolve(x, np.ones(taps) / taps, "same"), rtol=1e-13)


def make_solver(damped):
    if damped:
        rate = 0.5

        def source(i):
            return i * 10

    @cuda.jit
    def solve(x):
        i = cuda.grid(1)
        if i < x.size:
            if damped:
                x[i] = x[i] * rate + len(profile)
            else:
                x[i] += 1

    if damped:
        profile = (1, 2, 3)
    return solve


def test_a_free_variable_that_nothing_assigned_in_a_branch_not_taken():
    x = np.arange(6.0)
    make_solver(True)[1, 32](x)
    np.testing.assert_array_equal(x, np.arange(6.0) * 0.5 + 3)
    make_solver(False)[1, 32](x)
    np.testing.assert_array_equal(x, np.arange(6.0) * 0.5 + 4)


def make_weighted(weights, bias=None):
    @cuda.jit
    def weighted(x, mask, out):
        i = cuda.grid(1)
        if i < x.shape[0]:
            value = x[i]
            if weights is not None:
                value = value * weights[i]
            if bias != None:  # noqa: E711
                value += bias
            if mask is None:
                out[i] = value
            elif mask[i]:
                out[i] = -value

    return weighted


def test_none_prunes_branches():
    x, mask = np.arange(1.0, 9.0), np.arange(8) % 2 == 0
    weights = np.linspace(0, 1, 8)
    for kernel, expected in [
        (make_weighted(None), x),
        (make_weighted(None, 3), x + 3),
        (make_weighted(weights), x * weights),
        (make_weighted(weights, 0.5), x * weights + 0.5),
    ]:
        out, masked = np.zeros(8), np.zeros(8)
        kernel[1, 32](x, None, out)
        kernel[1, 32](x, mask, masked)
        np.testing.assert_allclose(out, expected, rtol=1e-15)
        np.testing.assert_allclose(masked, np.where(mask, -expected, 0), rtol=1e-15)


def test_names_of_builtins_unicode_semicolons_and_indents_of_one():
    program = module('''
import math
from weft import cuda

@cuda.jit
def normal(x, μ_Q, ρ, out):
 sum = 0.0; max = -1;
 len = x.size
 i = cuda.grid(1);
 if i >= len:
  return
 for bin in range(len):
  sum += x[bin];
  if x[bin] > max: max = x[bin]
 Δ = x[i] - μ_Q; str = "unused"
 """A string that nothing reads."""
 out[i] = ρ * Δ / (sum * max);
''')
    x = np.random.default_rng(12).random(20)
    out = np.zeros(20)
    program.normal[1, 32](x, 0.25, 2, out)
    np.testing.assert_allclose(out, 2 * (x - 0.25) / (x.sum() * x.max()), rtol=1e-12)


def test_the_alias_of_a_module_is_any_name():
    program = module("""
import math as m
import numpy
import weft as numba
import weft.cuda as gpu
from weft.cuda import jit, grid, threadIdx as thread
from weft import cuda as nc, types as nt

@gpu.jit
def spelled(x, out):
    shared = numba.cuda.shared.array(32, numba.float32)
    i = nc.grid(1)
    shared[thread.x] = m.sqrt(x[i])
    gpu.syncthreads()
    out[i] = shared[numba.cuda.blockDim.x - 1 - thread.x] + numpy.float32(1) + nt.float32(grid(1))

@jit
def short(out):
    out[thread.x] += 1
""")
    x, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    program.spelled[1, 32](x, out)
    program.short[1, 32](out)
    np.testing.assert_allclose(out, np.sqrt(x)[::-1] + 2 + x, rtol=1e-6)
