"""`cuda.stop_gradient` and `cuda.custom_vjp`."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from gradients import check, check_tangents, launched
from test_vjp import refused
from weft import cuda
from weft.errors import CompileError


def uniform(*shape):
    return np.random.default_rng(sum(shape)).random(shape)


# --- stop_gradient ---


@cuda.jit(device=True)
def constants(x, z):
    return cuda.stop_gradient((x, 2.0 * x, 3, z))


@cuda.jit
def stopped(x, z, y):
    i = cuda.grid(1)
    if i < x.size:
        a, b, c, w = constants(x[i], z[i])
        y[i] = a * x[i] + math.sin(b) * c + w.real * z[i].imag + cuda.stop_gradient(np.float32(x[i])) * x[i]


def test_stop_gradient():
    x, z = uniform(50), uniform(50) + 1j * uniform(50)
    y = np.zeros(50)
    stopped[1, 64](x, z, y)
    single = x.astype(np.float32)
    np.testing.assert_allclose(y, x * x + 3 * np.sin(2 * x) + z.real * z.imag + single * x, 1e-6)
    dx, dz, dy = np.zeros(50), np.zeros(50, complex), uniform(50)
    cuda.vjp(stopped)[1, 64](x, z, y, dx, dz, np.copy(dy))
    np.testing.assert_allclose(dx, dy * (x + single), 1e-12)
    np.testing.assert_allclose(dz, 1j * dy * z.real, 1e-12)
    tangents = [np.ones(50), np.full(50, 1j), np.zeros(50)]
    cuda.jvp(stopped)[1, 64](x, z, y, *tangents)
    np.testing.assert_allclose(tangents[2], x + single + z.real, 1e-12)


def test_stop_gradient_takes_numbers():
    @cuda.jit
    def of_array(x, y):
        y[0] = cuda.stop_gradient(x)[0]

    with pytest.raises(CompileError, match=r"no overload of `cuda.stop_gradient` takes \(array"):
        of_array[1, 1](np.zeros(1), np.zeros(1))
    assert cuda.stop_gradient(2.5) == 2.5, "on the host, it is its argument"


def test_stop_gradient_cuts_all_paths():
    @cuda.jit
    def cut(x, y):
        y[0] = cuda.stop_gradient(x[0])

    with pytest.raises(CompileError, match="the derivative by `x` reaches no array"):
        cuda.vjp(cut, "x")[1, 1](np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1))


# --- custom_vjp ---


@cuda.jit(device=True)
def powers_backward(a, z, n, first, doubled, second, g_first, g_second):
    """The adjoints of `powers`, by hand."""
    size = z.real * z.real + z.imag * z.imag
    return g_first * size + (g_second * z.conjugate()).real, 2 * a * z * g_first + g_second * a


@cuda.custom_vjp(backward=powers_backward)
@cuda.jit(device=True)
def powers(a, z, n):
    return a * (z.real * z.real + z.imag * z.imag), 2 * n, z * a


@cuda.jit
def in_loops(a, z, out, more):
    """The function in a loop and a branch, with arguments that are computed."""
    i = cuda.grid(1)
    if i < z.size:
        s = 0.0
        for n in range(z.size):
            p, m, q = powers(math.sin(a * n), z[n], n)
            if n % 3:
                s += p * m
            more[i] += q * q
        out[i] = s * z[i].real


@cuda.jit
def steps(x, out):
    """A loop that runs backward, whose values are results of the function."""
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        for _ in range(10):
            v, _m, _q = powers(v, complex(0.9, v), 2)
        out[i] = v


def test_gradients_are_those_of_differences():
    z = uniform(30) + 1j * uniform(7, 30)[0]
    args = (0.7, z, np.zeros(30), np.zeros(30, complex))
    check(in_loops, 1, 32, args, ["out", "more"])
    check(steps, 1, 32, (0.4 * uniform(30), np.zeros(30)), ["out"])


def product_backward(x, y, r, g):
    """The adjoints of both arguments, whatever their types."""
    return 3.0 * g * y, 5.0 * g * product(x, 1.0)


@cuda.custom_vjp(backward=product_backward)
def product(x, y):
    return x * y


@pytest.mark.parametrize("typing", ["numba", "numpy"])
def test_integer_arguments_have_no_adjoints(typing):
    @cuda.jit(typing=typing)
    def kernel(x, n, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = product(x[i], x[i]) + 10.0 * product(x[i], 2) + 100.0 * product(n, x[i]) + product(1, n)

    x, dx = uniform(20), np.zeros(20)
    cuda.vjp(kernel)[1, 32](x, 7, np.zeros(20), dx, np.ones(20))
    np.testing.assert_allclose(dx, 8 * x + 60 + 3500, 1e-12)


@cuda.custom_vjp(backward=lambda x, y, g: min(max(g, -1.0), 1.0))
def clipped(x):
    return x * x


@cuda.jit
def clips(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = clipped(x[i]) * 3.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_backward_function_defines_the_derivative(dtype):
    """The rule is not linear, and is no derivative: only the backward function can have given it."""
    x = np.linspace(-1, 1, 20).astype(dtype)
    (_, y) = launched(clips, 1, 32, (x, np.zeros_like(x)))
    np.testing.assert_allclose(y, 3 * x * x, 1e-6)
    dx, dy = np.zeros_like(x), x.copy()
    cuda.vjp(clips)[1, 32](x, y, dx, dy)
    np.testing.assert_allclose(dx, np.clip(3 * x, -1, 1), 1e-6)


def test_pickles_and_texts():
    assert powers.backward is powers_backward
    again = pickle.loads(pickle.dumps(cuda.custom_vjp(lambda x: x, lambda x, y, g: 7.0 * g)))

    @cuda.jit
    def kernel(x, y):
        y[0] = again(x[0])

    dx = np.zeros(1)
    cuda.vjp(kernel)[1, 1](np.ones(1), np.ones(1), dx, np.ones(1))
    assert dx[0] == 7.0


def test_wrong_functions():
    with pytest.raises(TypeError, match=r"`backward` of custom_vjp\(\) is a device function .* not 3"):
        cuda.custom_vjp(math.sin, 3)
    with pytest.raises(TypeError, match="not the kernel `steps`"):
        cuda.custom_vjp(steps, lambda x, y, g: g)
    with pytest.raises(TypeError, match="needs the function that computes the adjoints"):
        cuda.custom_vjp(lambda x: x)


@cuda.jit(device=True)
def scaled(x, k):
    return x * k


@cuda.jit(device=True)
def first_of(values):
    return values[0]


def with_rule(function, backward):
    derived = cuda.custom_vjp(function, backward)

    def kernel(x, y):
        y[0] = derived(x[0], 2)

    return kernel


@pytest.mark.parametrize(
    ("backward", "message"),
    [
        (lambda x, k, y: y, "must take 4 arguments"),
        (lambda x, k, y, g: (g, g, g), "the backward function of `scaled`, returns Tuple(float64, float64, float64)"),
        (lambda x, k, y, g: None, "the backward function of `scaled`, returns none"),
        (lambda x, k, y, g: cuda.atomic.add(cuda.local.array(1, np.float64), 0, g), "accesses memory or other threads"),
    ],
)
def test_wrong_rules_are_errors_at_the_call(backward, message):
    head, line = refused(with_rule(scaled, backward), np.ones(1), np.ones(1))
    assert message in head
    assert line == "y[0] = derived(x[0], 2)"


def test_arrays_are_errors_at_the_call():
    rule = cuda.custom_vjp(first_of, lambda values, y, g: g)

    def kernel(x, y):
        y[0] = rule(x) * x[1]

    head, line = refused(kernel, np.ones(2), np.ones(1))
    assert "`first_of` has a backward function, but takes array(float64, 1d, C)" in head
    assert line == "y[0] = rule(x) * x[1]"


@pytest.mark.parametrize("case", ["in_loops", "steps"])
def test_tangents_are_products_with_the_partial_derivatives(case):
    z = uniform(30) + 1j * uniform(7, 30)[0]
    cases = {
        "in_loops": (in_loops, 1, 32, (0.7, z, np.zeros(30), np.zeros(30, complex)), ["out", "more"]),
        "steps": (steps, 1, 32, (0.4 * uniform(30), np.zeros(30)), ["out"]),
    }
    check_tangents(*cases[case])


def test_halves_have_tangents():
    x, dx, dy = (np.full(20, value, np.float16) for value in (0.5, 2.0, 0.0))
    cuda.jvp(clips)[1, 32](x, np.zeros_like(x), dx, dy)
    assert dy.tolist() == [6.0] * 20
