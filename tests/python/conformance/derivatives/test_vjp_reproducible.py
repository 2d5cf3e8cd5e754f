"""Gradients of reproducible kernels: sums of which the order of the threads changes no bit."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gradients import check
from weft import cuda
from weft.errors import CompileError

N = 1000


@cuda.jit(reproducible=True)
def scaled(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i]


@cuda.jit(reproducible=True)
def gathered(x, k, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = x[k[i]] * x[k[i]] + x[0]


@cuda.jit(reproducible=True)
def filtered(x, w, y):
    i, j = cuda.grid(2)
    if i < y.shape[0] and j < y.shape[1]:
        total = y.dtype.type(0)
        for a in range(w.shape[0]):
            for b in range(w.shape[1]):
                total += w[a, b] * x[i + a, j + b]
        y[i, j] = total


@cuda.jit(reproducible=True)
def rotated(x, k, w, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = w * abs(x[k[i]]) + x[k[i]].real * x[0] * x[k[i]]


@cuda.jit(reproducible=True)
def iterated(x, n, rate, out):
    """Takes scratch memory and exact sums."""
    i = cuda.grid(1)
    if i < out.size:
        v = x[i % x.size]
        for _ in range(n[i]):
            v = rate * math.sin(v) + 0.1 * x[0]
        out[i] = v


def adjoint_of_scale(dtype, terms):
    """The gradient by `a`, whose terms are given."""
    x = np.array(terms, dtype)
    da, dx, dy = np.zeros(1, dtype), np.zeros_like(x), np.ones_like(x)
    cuda.vjp(scaled)[-(-x.size // 32), 32](dtype(1), x, np.zeros_like(x), da, dx, dy)
    cuda.synchronize()
    return da[0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_sum_is_rounded_once(dtype):
    rng = np.random.default_rng(3)
    limits = np.finfo(dtype)
    for low, high in ((-3, 3), (-30, 30), (limits.minexp - limits.nmant, limits.maxexp - 12)):
        terms = np.ldexp(rng.standard_normal(N), rng.integers(low, high, N)).astype(dtype)
        assert adjoint_of_scale(dtype, terms) == dtype(math.fsum(terms)), (low, high)
        close = np.concatenate([terms, -terms[::-1], terms[:1]])
        assert adjoint_of_scale(dtype, close) == terms[0]
    assert adjoint_of_scale(dtype, [1, limits.eps / 2]) == 1
    assert adjoint_of_scale(dtype, [1, limits.eps / 2, limits.smallest_subnormal]) == 1 + limits.eps
    assert adjoint_of_scale(dtype, [limits.smallest_subnormal] * 3) == 3 * limits.smallest_subnormal
    assert adjoint_of_scale(dtype, [limits.max, limits.max, -limits.max]) == limits.max


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ([1.0, math.inf], math.inf),
        ([-math.inf, 1.0], -math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.nan, 1.0, math.inf], math.nan),
        (["max", "max"], math.inf),
        (["-max", "-max"], -math.inf),
        ([], 0.0),
        ([0.0, -0.0], 0.0),
    ],
)
def test_sums_that_are_not_finite(dtype, terms, expected):
    most = np.finfo(dtype).max
    given = [{"max": most, "-max": -most}.get(term, term) for term in terms]
    np.testing.assert_array_equal(adjoint_of_scale(dtype, given or [0.0]), dtype(expected))


def test_gathers():
    rng = np.random.default_rng(1)
    x, k = rng.standard_normal(17), rng.integers(0, 17, N)
    given = check(gathered, -(-N // 64), 64, [x, k, np.zeros(N)], ["y"])
    assert np.count_nonzero(given["x"]) > 10


def strided(kernel, x, w, y, order):
    """Gradients by arrays of an order, or with gaps."""
    if order == "gaps":
        x, w, y = (np.repeat(np.repeat(value, 2, 0), 3, 1)[::2, ::3] for value in (x, w, y))
    else:
        x, w, y = (np.asarray(value, order=order) for value in (x, w, y))
    dx, dw, dy = (np.zeros_like(value) for value in (x, w, y))
    if order == "gaps":
        dx, dw, dy = (np.zeros((2 * v.shape[0], 3 * v.shape[1]), v.dtype)[::2, ::3] for v in (x, w, y))
    dy[...] = np.arange(dy.size).reshape(dy.shape) / 7
    dw[...] = 0.5
    cuda.vjp(kernel)[(3, 4), (8, 4)](x, w, y, dx, dw, dy)
    cuda.synchronize()
    return dx, dw


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_layouts_have_the_same_bits(dtype):
    rng = np.random.default_rng(2)
    x, w, y = (rng.standard_normal(shape).astype(dtype) for shape in ((22, 15), (3, 2), (20, 14)))
    expected = strided(filtered, x, w, y, "C")
    dy = (np.arange(y.size).reshape(y.shape) / 7).astype(dtype)
    for a in range(3):
        for b in range(2):
            own = np.sum(np.conj(x[a : a + 20, b : b + 14]) * dy)
            np.testing.assert_allclose(expected[1][a, b] - 0.5, own, rtol=1e-4 if dtype == np.float32 else 1e-11)
    for order in ("F", "gaps"):
        for found, one in zip(strided(filtered, x, w, y, order), expected, strict=True):
            assert found.tobytes() == one.tobytes(), order


def test_complex_numbers():
    rng = np.random.default_rng(5)
    x = rng.standard_normal(9) + 1j * rng.standard_normal(9)
    check(rotated, 4, 64, [x, rng.integers(0, 9, 200), 0.7, np.zeros(200, complex)], ["y"])


def test_stored_values_and_sums():
    rng = np.random.default_rng(7)
    args = [rng.standard_normal(5), rng.integers(0, 9, 100), 0.8, np.zeros(100)]
    check(iterated, 4, 32, args, ["out"])
    said = cuda.vjp(iterated).explain(*args)
    assert "scratch memory" in said
    assert "exact sums of the gradients of `x`, `rate`" in said


def test_device_arrays_and_a_tape():
    rng = np.random.default_rng(8)
    host = rng.standard_normal(9)
    x, k, y = (cuda.to_device(value) for value in (host, rng.integers(0, 9, 200), np.zeros(200)))
    dx = cuda.to_device(np.ones(9))
    cuda.vjp(gathered)[4, 64](x, k, y, dx, cuda.to_device(np.ones(200)))
    with cuda.tape() as tape:
        gathered[4, 64](x, k, y)
    tape.backward(y, cuda.to_device(np.ones(200)))
    expected = 2 * host * np.bincount(k.copy_to_host(), minlength=9) + 200 * (np.arange(9) == 0)
    np.testing.assert_allclose(tape.gradient(x).copy_to_host(), expected, rtol=1e-13)
    np.testing.assert_allclose(dx.copy_to_host(), 1 + expected, rtol=1e-13)


BITS = """
import numpy as np
from weft import cuda

@cuda.jit
def spread(a, w, x, k, y):
    i = cuda.grid(1)
    if i < y.size:
        total = a * x[i]
        for j in range(w.size):
            total += w[j] * x[k[i] + j]
        y[i] = total * total

rng = np.random.default_rng(4)
n = 20000
for dtype in (np.float32, np.float64):
    x = (rng.standard_normal(n + 8) * 10.0 ** rng.integers(-9, 9, n + 8)).astype(dtype)
    w, k = rng.standard_normal(5).astype(dtype), rng.integers(0, n, n)
    da, dw, dx = np.zeros(1, dtype), np.zeros_like(w), np.zeros_like(x)
    dy = rng.standard_normal(n).astype(dtype)
    cuda.vjp(spread)[-(-n // 64), 64](dtype(0.3), w, x, k, np.zeros(n, dtype), da, dw, dx, dy)
    cuda.synchronize()
    print(da.tobytes().hex(), dw.tobytes().hex(), hash(dx.tobytes()))
"""


@pytest.mark.cpu
def test_bits_do_not_depend_on_the_threads_of_the_cpu():
    def bits(threads, strategy):
        added = {
            "WEFT_REPRODUCIBLE": "1",
            "WEFT_CPU_THREADS": str(threads),
            "WEFT_CPU_STRATEGY": strategy,
            "PYTHONHASHSEED": "0",
        }
        run = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", BITS],
            env=os.environ | added,
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parent,
        )
        return run.stdout

    expected = bits(1, "loops")
    assert len(expected.splitlines()) == 2
    for threads, strategy in ((2, "loops"), (5, "loops"), (5, "loops"), (3, "fibers")):
        assert bits(threads, strategy) == expected, (threads, strategy)


@cuda.jit(reproducible=True)
def shared_sums(x, y):
    tile = cuda.shared.array(32, np.float64)
    i = cuda.threadIdx.x
    tile[i] = x[i]
    cuda.syncthreads()
    y[i] = tile[i] * tile[0]  # the line


@cuda.jit(reproducible=True)
def updated(x, k, y):
    i = cuda.grid(1)
    y[i] = x[i] * y[k[i]]  # the line


@pytest.mark.parametrize("kernel", [shared_sums, updated])
def test_a_sum_without_an_order_is_an_error_at_its_line(kernel):
    k = [np.arange(32)] if kernel is updated else []
    x = np.ones(32)
    args = [x, *k, x.copy()]
    with pytest.raises(CompileError, match=r"E0404.*an order that is not fixed") as raised:
        cuda.vjp(kernel)[1, 32](*args, x.copy(), x.copy())
    found = raised.value.diagnostics[0]
    source = Path(__file__).read_text().splitlines()
    assert "# the line" in source[found["line"] - 1]


def test_tangents_of_sums_are_an_error():
    x, k, y = np.ones(3), np.zeros(4, np.int64), np.zeros(4)
    along = [x, y, x, y]
    with pytest.raises(CompileError, match="E0404"):
        cuda.jvp(cuda.vjp(gathered))[1, 32](x, k, y, x.copy(), y.copy(), *(np.copy(one) for one in along))


def test_second_derivatives():
    x, k, y = np.array([0.5, 2.0, 3.0]), np.array([0, 1, 1, 2]), np.zeros(4)
    dx, dy = np.zeros(3), np.ones(4)
    ddx, ddy = np.zeros(3), np.zeros(4)
    # The gradient of `(dx * weights).sum()`: `dx` is `2 x[k] dy`, and `dy` for `x[0]`.
    weights = np.array([1.0, 10.0, 100.0])
    cuda.vjp(cuda.vjp(gathered))[1, 32](x, k, y, dx, dy, ddx, y.copy(), weights, ddy)
    cuda.synchronize()
    np.testing.assert_allclose(ddx, 2 * weights * np.bincount(k))
