"""Adjoint kernels of written kernels: values, and what has no derivative."""

from __future__ import annotations

import inspect
import math
import pickle

import numpy as np
import pytest
from gradients import check
from weft import cuda
from weft.errors import CompileError

N = 40


def uniform(*shape):
    return np.random.default_rng(sum(shape)).random(shape)


@cuda.jit(device=True)
def scaled_sine(x, a):
    if x < 0.1:
        return a * x
    return a * math.sin(x)


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i >= x.size:
        return
    y[i] = a * x[i] + y[i]


@cuda.jit
def called(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = scaled_sine(x[i], a) * scaled_sine(x[i] * x[i], 2.0)


@cuda.jit
def convolved(u, w, out):
    i = cuda.grid(1)
    if i < out.size:
        s = 0.0
        for k in range(w.size):
            s += w[k] * u[i + k]
        out[i] = s * s


@cuda.jit
def iterated(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        for _ in range(5):
            v = math.sin(v) * x[i] + v
        out[i] = v


@cuda.jit
def branches(x, out):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        v = x[i]
        if v > 0.5:
            v = v * v
            if v > 0.7:
                v = math.exp(-v)
        elif i % 2:
            v = math.sqrt(1.0 - v)
        out[i] = v if v < 0.9 else 2.0 * v


@cuda.jit
def in_place(a, x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] += a * x[i]
        y[i] = 2.0 * y[i]


@cuda.jit
def halving(x, out):
    i = cuda.grid(1)
    if i < x.size:
        s, t, n = 0.0, 1.0, 0
        while n < 6 and t > 0.001:
            s += x[i] * t
            t = t * 0.5
            n += 1
        out[i] = s * s


@cuda.jit
def stops(x, out):
    i = cuda.grid(1)
    if i < x.size:
        s = 0.0
        for k in range(10):
            v = x[(i + k) % x.size]
            if v > 0.9:
                continue
            s += v * v
            if s > 1.5:
                break
        out[i] = s


@cuda.jit
def powers(u, w, out):
    i, j = cuda.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        s = 0.0
        for k in range(u.shape[1]):
            t = 0.0
            for n in range(3):
                t += u[i, k] * w[k, j] ** n
            s += math.tanh(t)
        out[i, j] = s


@cuda.jit
def histogram(x, w, h):
    i = cuda.grid(1)
    if i < x.size:
        position = x[i] * (h.size - 1)
        b = int(position)
        f = position - b
        cuda.atomic.add(h, b, w[i] * (1 - f))
        cuda.atomic.sub(h, b + 1, w[i] * f)


@cuda.jit
def stencil(u, k, out):
    y, x = cuda.grid(2)
    h, w = u.shape
    if 0 < y < h - 1 and 0 < x < w - 1:
        laplacian = u[y - 1, x] + u[y + 1, x] + u[y, x - 1] + u[y, x + 1] - 4.0 * u[y, x]
        out[y, x] = u[y, x] + k[y, x] * laplacian


@cuda.jit
def forces(p, m, eps, a):
    i = cuda.grid(1)
    if i < p.shape[0]:
        x = y = z = 0.0
        for j in range(p.shape[0]):
            dx, dy, dz = p[j, 0] - p[i, 0], p[j, 1] - p[i, 1], p[j, 2] - p[i, 2]
            r = dx * dx + dy * dy + dz * dz + eps
            f = m[j] / (r * math.sqrt(r))
            x, y, z = x + f * dx, y + f * dy, z + f * dz
        a[i, 0], a[i, 1], a[i, 2] = x, y, z


@cuda.jit
def prefixes(x, out):
    i = cuda.grid(1)
    if i < out.shape[0]:
        s = 1.0
        for k in range(8):
            s = s * x[i, k] + math.cos(s)
            out[i, k] = s


@cuda.jit
def overwritten(x, out):
    i = cuda.grid(1)
    if i < x.size:
        for k in range(4):
            out[i] = x[i] * k
            out[i] = x[i] * x[i] * k


@cuda.jit
def rows(x, out):
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        s = 0.0
        for v in x[i]:
            s += v * v
        out[i] = math.sqrt(s)


@cuda.jit
def singular(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = math.sqrt(x[i] - 0.5) if x[i] > 0.5 else math.log(1.5 - x[i])


@cuda.jit
def exchanged(x, out):
    i = cuda.grid(1)
    if i < x.size:
        a, b = x[i], 2.0
        for _ in range(3):
            a, b = b, a * b
        out[i] = a + b


@cuda.jit
def downward(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        for k in range(6, 0, -2):
            v = v * x[(i + k) % x.size]
        out[i] = v


@cuda.jit
def functions(x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        a, b = x[i], y[i]
        s = max(a, b) * 2 + min(a, 0.5) + abs(a - b) + a % 0.3 + math.fmod(a, 0.4)
        s += np.arctan2(a, b) + np.hypot(a, b) + a**b + math.pow(a, 3) + np.clip(a, 0.2, 0.8)
        s += math.tan(a) + math.asin(a * 0.5) + math.acos(b * 0.5) + math.atan(a) + math.sinh(a) + math.cosh(b)
        s += math.asinh(a) + math.acosh(1.5 + b) + math.atanh(a * 0.5) + math.exp(a) + math.expm1(b) + np.exp2(a)
        s += math.log(a) + math.log2(b) + math.log10(a) + math.log1p(b) + math.erf(a) + math.erfc(b) + np.cbrt(a)
        out[i] = s + math.copysign(a, b - 0.6) + math.ldexp(a, 2) + math.floor(a) + np.float32(b) * 0.0


@cuda.jit
def complex_numbers(z, out):
    i = cuda.grid(1)
    if i < z.size:
        v = z[i] * z[i] / (z[i] + 2.0) + 1j
        out[i] = v * v.real


@cuda.jit
def elements(x, out):
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] ** 2 + x[i, 0]


@cuda.jit
def gathered(x, index, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[index[i]] * x[index[i] // 2]


@cuda.jit
def fortran(x, out):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        out[j, i] = x[i, j] * x[i, j]


@cuda.jit
def adjacent(u, out):
    """On a GPU, lanes of a warp add to adjacent elements together."""
    x, y = cuda.grid(2)
    if 0 < x < u.shape[1] - 3 and 0 < y < u.shape[0] - 1:
        out[y, x] = u[y, x - 1] + u[y, x] ** 2 + u[y, x + 3] * u[y + 1, x] + u[y, 2 * (x // 4)] * u[y, 2 * (x // 4) + 1]


@cuda.jit
def filtered(a, b, u, w, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = a * (w[0] * u[i] + w[1] * u[i + 1]) + b * w[0] * u[i] if u[i] > 0.3 else w[2] * u[i + 1]


@cuda.jit
def matvec(a, x, y):
    i = cuda.grid(1)
    if i < a.shape[0]:
        s = 0.0
        for j in range(a.shape[1]):
            if a[i, j] < 0.9:
                s += a[i, j] * x[j] * x[0]
        y[i] = s


@cuda.jit
def convolved_2d(u, w, out):
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        s = 0.0
        for k in range(w.shape[0]):
            for j in range(w.shape[1]):
                s += w[k, j] * u[y + k, x + j]
        out[y, x] = s


@cuda.jit
def row_factors(f, x, out):
    i, j = cuda.grid(2)
    if j < x.shape[0] and i < x.shape[1]:
        out[j, i] = f[j] * x[j, i] if x[j, i] > 0.1 else f[j] * f[j]


@cuda.jit
def crossed(a, y):
    """Another thread loads `a[j, i]`, too."""
    i = cuda.grid(1)
    if i < a.shape[0]:
        s = 0.0
        for j in range(a.shape[1]):
            s += a[i, j] * a[j, i]
        y[i] = s


@cuda.jit
def both(x, out):
    i = cuda.grid(1)
    if i < x.size:
        if i % 3 == 0:
            s = x[i // 2] * 2
        else:
            s = math.sin(x[i // 2])
        for k in range(i % 4):
            s += x[i // 2] * x[k]
            x_k = x[k]
            if x_k < 0.5:
                break
        out[i] = s * x[i // 2]


CASES = {
    "saxpy": (saxpy, 2, 32, (1.7, uniform(N), uniform(N + 1)[:N]), ["y"]),
    "called": (called, 2, 32, (1.7, uniform(N), np.zeros(N)), ["y"]),
    "convolved": (convolved, 2, 32, (uniform(N + 6), uniform(7), np.zeros(N)), ["out"]),
    "iterated": (iterated, 2, 32, (uniform(N), np.zeros(N)), ["out"]),
    "branches": (branches, 1, 8, (uniform(N), np.zeros(N)), ["out"]),
    "in_place": (in_place, 2, 32, (1.3, uniform(N), uniform(N)), ["y"]),
    "halving": (halving, 2, 32, (uniform(N), np.zeros(N)), ["out"]),
    "stops": (stops, 2, 32, (uniform(N), np.zeros(N)), ["out"]),
    "powers": (powers, 1, (8, 8), (uniform(5, 6), uniform(6, 7), np.zeros((5, 7))), ["out"]),
    "histogram": (histogram, 2, 32, (uniform(N), uniform(N), np.zeros(9)), ["h"]),
    "stencil": (stencil, (2, 2), (8, 8), (uniform(9, 11), uniform(9, 11), np.zeros((9, 11))), ["out"]),
    "adjacent": (adjacent, (3, 5), (32, 2), (uniform(9, 70), np.zeros((9, 70))), ["out"]),
    "forces": (forces, 1, 32, (uniform(20, 3), uniform(20), 0.1, np.zeros((20, 3))), ["a"]),
    "prefixes": (prefixes, 1, 16, (uniform(10, 8), np.zeros((10, 8))), ["out"]),
    "overwritten": (overwritten, 2, 32, (uniform(N), np.zeros(N)), ["out"]),
    "rows": (rows, 1, 8, (uniform(30, 5), np.zeros(30)), ["out"]),
    "singular": (singular, 2, 32, (uniform(N), np.zeros(N)), ["out"]),
    "exchanged": (exchanged, 2, 32, (uniform(N), np.zeros(N)), ["out"]),
    "downward": (downward, 2, 32, (uniform(N), np.zeros(N)), ["out"]),
    "functions": (functions, 2, 32, (uniform(N) * 0.8 + 0.1, uniform(N + 1)[1:] * 0.8 + 0.1, np.zeros(N)), ["out"]),
    "complex": (complex_numbers, 2, 32, (uniform(N) + 1j * uniform(N + 1)[1:], np.zeros(N, complex)), ["out"]),
    "elements": (elements, 1, 8, (uniform(30, 5), np.zeros((30, 5))), ["out"]),
    "gathered": (gathered, 2, 32, (uniform(N), np.arange(N) * 7 % N, np.zeros(N)), ["out"]),
    "filtered": (filtered, 2, 48, (0.7, 1.1, uniform(141), uniform(3), np.zeros(140)), ["out"]),
    "matvec": (matvec, 3, 64, (uniform(150, 90), uniform(90), np.zeros(150)), ["y"]),
    "convolved_2d": (convolved_2d, (1, 5), (32, 2), (uniform(12, 34), uniform(3, 3), np.zeros((10, 32))), ["out"]),
    "row_factors": (row_factors, (2, 3), (32, 4), (uniform(11), uniform(11, 50), np.zeros((11, 50))), ["out"]),
    "crossed": (crossed, 3, 32, (uniform(80, 80), np.zeros(80)), ["y"]),
    "both": (both, 2, 64, (uniform(100), np.zeros(100)), ["out"]),
    "fortran": (fortran, 1, (8, 8), (np.asfortranarray(uniform(5, 6)), np.zeros((6, 5))), ["out"]),
}


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_differences(case):
    # All together: 14 s.
    kernel, grid, block, args, outputs = CASES[case]
    given = check(kernel, grid, block, args, outputs)
    if case not in {"histogram", "saxpy", "in_place", "stencil", "adjacent"}:
        assert not any(given[name].any() for name in outputs), "adjoints of overwritten elements are 0"


@cuda.jit
def halves(x, out):
    i = cuda.grid(1)
    if i < out.shape[0]:
        every = x[:, ::2]
        for j in range(out.shape[1]):
            out[i, j] = every[i, j] ** 2 + x[i, 0]


@pytest.mark.parametrize("place", [np.copy, cuda.to_device])
def test_strided_arrays(place):
    """An array and its adjoint may have different strides: launches pack arrays that they copy."""
    memory, dx_memory = uniform(30, 20), np.zeros((30, 30))
    x, dx = place(memory)[:, ::2], dx_memory[:, ::3]
    out, dout = np.zeros((30, 10))[:, ::2], np.ones((30, 15))[:, ::3]
    cuda.vjp(halves)[1, 32](x, out, dx, dout)
    expected = np.zeros((30, 10))
    expected[:, ::2] = 2 * memory[:, ::4]
    expected[:, 0] += 5
    np.testing.assert_allclose(dx, expected)
    assert not dout.any()
    assert not dx_memory[:, 1::3].any()


def test_an_accumulated_element_keeps_its_adjoint():
    h, x, w = np.zeros(9), uniform(N), uniform(N)
    weights = uniform(9)
    dh = weights.copy()
    cuda.vjp(histogram)[2, 32](x, w, h, np.zeros(N), np.zeros(N), dh)
    np.testing.assert_array_equal(dh, weights)


def test_additions_of_many_threads():
    """Sums over warps, blocks and the grid, with a last warp that has fewer lanes."""
    n = 3000
    a, x, y = 2.0, uniform(n), np.zeros(n)
    for block in (1, 31, 32, 100, 128, 1024):
        da, dx, dy = np.zeros(1), np.zeros(n), np.ones(n)
        cuda.vjp(saxpy)[(n + block - 1) // block, block](a, x, y, da, dx, dy)
        np.testing.assert_allclose(da, x.sum())
    u, w = uniform(n + 6), uniform(7)
    du, dw = np.zeros(n + 6), np.zeros(7)
    cuda.vjp(convolved)[24, 128](u, w, np.zeros(n), du, dw, np.ones(n))
    s = np.convolve(u, w[::-1], "valid")
    np.testing.assert_allclose(dw, [(2 * s * u[k : k + n]).sum() for k in range(7)])


def test_gradients_are_added():
    x, y, dx = uniform(N), np.zeros(N), np.ones(N)
    for _ in range(2):
        cuda.vjp(saxpy, "x")[2, 32](3.0, x, y, dx, np.ones(N))
    np.testing.assert_array_equal(dx, np.full(N, 7.0))


def test_float32():
    x, w = uniform(N).astype(np.float32), uniform(7).astype(np.float32)
    out, dx, dw = np.zeros(N - 6, np.float32), np.zeros_like(x), np.zeros_like(w)
    cuda.vjp(convolved)[2, 32](x, w, out, dx, dw, np.ones_like(out))
    s = np.convolve(x.astype(float), w[::-1].astype(float), "valid")
    np.testing.assert_allclose(dx, np.convolve(2 * s, w), rtol=1e-5)


def test_only_some_arguments():
    bwd = cuda.vjp(convolved, wrt="w")
    args = uniform(N + 6), uniform(7), np.zeros(N)
    assert bwd.adjoints(*args) == ("w", "out")
    check(convolved, 2, 32, args, ["out"], wrt="w")
    assert cuda.vjp(convolved).adjoints(*args) == ("u", "w", "out")


def test_infinite_derivatives_of_arms_that_are_not_taken_add_nothing():
    x = np.array([0.5, 0.0, 1.0, 1.5])
    dx = np.zeros(4)
    cuda.vjp(singular)[1, 4](x, np.zeros(4), dx, np.ones(4))
    np.testing.assert_allclose(dx, [-1.0, -2 / 3, 0.5 / math.sqrt(0.5), 0.5])


def test_a_pickle_and_a_text():
    bwd = cuda.vjp(saxpy, wrt=("x",))
    assert repr(bwd) == "<adjoint kernel of saxpy(a, x, y), wrt=('x',)>"
    assert bwd.kernel is saxpy
    copy = pickle.loads(pickle.dumps(bwd))
    assert copy.adjoints(1.0, np.zeros(3), np.zeros(3)) == ("x", "y")
    code = bwd.dispatcher(1.0, np.zeros(3), np.zeros(3))
    assert "x.adjoint" in repr(code)


def test_wrong_calls():
    with pytest.raises(TypeError, match=r"vjp\(\) takes a kernel, not <weft device function"):
        cuda.vjp(scaled_sine)
    with pytest.raises(ValueError, match="`saxpy` has no parameter `z`; its parameters are a, x, y"):
        cuda.vjp(saxpy, wrt="z")
    bwd, x = cuda.vjp(saxpy), np.zeros(4)
    with pytest.raises(TypeError, match="`saxpy` takes 3 arguments, not 1"):
        bwd[1, 4](x)
    with pytest.raises(TypeError, match="its 3 arguments and 3 adjoints, of `a`, `x`, `y`: got 1 adjoints"):
        bwd[1, 4](1.0, x, x, x)
    with pytest.raises(ValueError, match=r"the adjoint of `x` has shape \(3,\), but `x` has shape \(4,\)"):
        bwd[1, 4](1.0, x, x, np.zeros(1), np.zeros(3), x)
    with pytest.raises(ValueError, match="the adjoint of the scalar `a` is an array of one element"):
        bwd[1, 4](1.0, x, x, np.zeros(2), x, x)
    with pytest.raises(ValueError, match="launch it with a configuration"):
        bwd(1.0, x)


def refused(function, *args, wrt=None):
    """The code, the line relative to the function, and the message of the error for a kernel."""
    kernel = cuda.jit(function)
    bwd = cuda.vjp(kernel, wrt)
    params = kernel.py_func.__code__.co_varnames
    adjoints = [np.zeros(np.shape(args[params.index(name)]) or 1) for name in bwd.adjoints(*args)]
    with pytest.raises(CompileError) as raised:
        bwd[1, 1](*args, *adjoints)
    text = str(raised.value)
    head, place = text.splitlines()[:2]
    lines, first = inspect.getsourcelines(function)
    return head, lines[int(place.split(":")[-2]) - first].strip()


def test_what_has_no_derivative_is_an_error_at_its_line():
    x, y = np.zeros(8), np.zeros(8)

    def gamma(x, y):
        y[0] = math.gamma(x[0])

    head, line = refused(gamma, x, y)
    assert "the derivative of the gamma function is not supported" in head
    assert line == "y[0] = math.gamma(x[0])"

    def old(x, y):
        y[0] = cuda.atomic.add(x, 0, 1.0)

    head, line = refused(old, x, y)
    assert "this atomic operation" in head
    assert line == "y[0] = cuda.atomic.add(x, 0, 1.0)"

    def chosen(x, y):
        z = x if x[0] > 0 else y
        y[1] = z[1]

    head, line = refused(chosen, x, y)
    assert "one of several arrays" in head


def test_what_cannot_be_computed_again_is_an_error_at_its_line():
    x, y = np.zeros(8), np.zeros(8)

    def slot(count, x, y):
        at = cuda.atomic.add(count, 0, 1)
        y[at] = x[at]

    head, line = refused(slot, np.zeros(1, np.int64), x, y)
    assert "depends on the order of the threads" in head
    assert line == "at = cuda.atomic.add(count, 0, 1)"


def test_arguments_without_derivative():
    x, y, n = np.zeros(8), np.zeros(8), np.zeros(8, np.int64)

    def steps(x, n, y):
        y[0] = int(x[0]) + n[0]

    head, _ = refused(steps, x, n, y, wrt="x")
    assert "E0402" in head
    assert "the derivative by `x` reaches no array that the kernel writes" in head
    head, _ = refused(steps, x, n, y, wrt="n")
    assert "E0401" in head
    assert "`n` is array(int64, 1d, C), which has no derivative" in head

    def integers(x, n):
        n[0] = int(x[0])

    head, _ = refused(integers, x, n)
    assert "E0402" in head
    assert "the kernel writes no array of floats" in head
