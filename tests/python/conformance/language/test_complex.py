"""Arithmetic of complex numbers."""

import numpy as np
import pytest
from harness import run
from weft import cuda

VALUES = [0j, 1 + 0j, -1j, 2.5 - 3j, -0.5 + 0.25j, 100 + 1e-3j]


@cuda.jit
def arithmetic(x, y, out):
    i = cuda.grid(1)
    a, b = x[i], y[i]
    out[i, 0] = a + b
    out[i, 1] = a - b
    out[i, 2] = a * b
    out[i, 3] = -a
    out[i, 4] = a * 2 + b * 0.5
    out[i, 5] = a * 1j
    out[i, 6] = a.conjugate() * b
    out[i, 7] = a if a != b else 7
    out[i, 8] = +b
    out[i, 9] = complex(a.real, b.imag)
    out[i, 10] = a.real + b.imag


@pytest.mark.parametrize("left", [np.complex64, np.complex128])
@pytest.mark.parametrize("right", [np.complex64, np.complex128])
def test_arithmetic(left, right):
    x, y = np.meshgrid(np.array(VALUES, left), np.array(VALUES, right))
    rtol = 1e-6 if np.complex64 in (left, right) else 1e-14
    run(arithmetic, x.size, 1, x.ravel(), y.ravel(), np.zeros((x.size, 11), np.complex128), rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("other", ["bool", "int8", "int32", "uint64", "float32", "float64"])
def test_with_real_numbers(dtype, other):
    @cuda.jit
    def kernel(x, y, out):
        i = cuda.grid(1)
        out[i, 0] = x[i] + y[i]
        out[i, 1] = y[i] - x[i]
        out[i, 2] = x[i] * y[i]

    x = np.array(VALUES, dtype)
    y = (np.arange(6) % 2 if other == "bool" else np.arange(6)).astype(other)
    run(kernel, 1, 6, x, y, np.zeros((6, 3), np.complex128), rtol=1e-6 if dtype == np.complex64 else 1e-14)


@cuda.jit
def divides(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i] / y[i]


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_division(dtype):
    x, y = (part.ravel() for part in np.meshgrid(np.array(VALUES, dtype), np.array(VALUES[1:], dtype)))
    rtol = 1e-6 if dtype == np.complex64 else 1e-14
    run(divides, x.size, 1, x, y, np.zeros(x.size, dtype), rtol=rtol, atol=rtol)


SPECIAL = [
    complex(a, b)
    for a in (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan)
    for b in (0.0, -0.0, 1.0, -1.0, np.inf, np.nan)
]
DIVISIONS = {
    "quotient": "out[i] = x[i] / y[i]",
    "ufunc": "out[i] = np.divide(x[i], y[i])",
    "in place": "z = x[i]\n    z /= y[i]\n    out[i] = z",
    "element": "out[i] = x[i]\n    out[i] /= y[i]",
}


def assert_same_parts(found, wanted):
    """Equal, including the signs of zeros; all NaNs are equal."""
    for a, b in ((found.real, wanted.real), (found.imag, wanted.imag)):
        np.testing.assert_array_equal(a, b)
        numbers = ~np.isnan(b)
        np.testing.assert_array_equal(np.signbit(a[numbers]), np.signbit(b[numbers]))


@pytest.mark.parametrize("typing", ["numba", "numpy"])
@pytest.mark.parametrize("form", DIVISIONS)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_quotients_of_special_values_are_numpys(dtype, form, typing):
    text = f"def k(x, y, out):\n    i = cuda.grid(1)\n    {DIVISIONS[form]}\n"
    space = {"np": np, "cuda": cuda}
    exec(text, space)
    x, y = (part.ravel() for part in np.meshgrid(np.array(SPECIAL, dtype), np.array(SPECIAL, dtype)))
    out = np.zeros(x.size, dtype)
    cuda.jit(typing=typing, source=text)(space["k"])[14, 126](x, y, out)
    assert x.size == 14 * 126
    with np.errstate(all="ignore"):
        assert_same_parts(out, x / y)


@pytest.mark.parametrize("typing", ["numba", "numpy"])
@pytest.mark.parametrize(
    "zero", [np.bool_(False), np.int8(0), np.int64(0), np.uint32(0), np.float32(0), np.float64(-0.0)]
)
def test_quotients_by_real_zeros_are_numpys(zero, typing):
    @cuda.jit(typing=typing)
    def kernel(x, y, out):
        i = cuda.grid(1)
        out[i, 0] = x[i] / y[0]
        out[i, 1] = np.divide(x[i], y[0])
        out[i, 2] = x[i] / 0
        out[i, 3] = x[i] / 0.0
        out[i, 4] = x[i] / 0j

    x = np.array(SPECIAL)
    out = np.zeros((x.size, 5), complex)
    kernel[1, x.size](x, np.array([zero]), out)
    with np.errstate(all="ignore"):
        wanted = x / zero
        for column in range(5):
            assert_same_parts(out[:, column], wanted)


def test_the_reciprocal_of_zero_is_numpys():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        out[i] = np.reciprocal(x[i])

    x, out = np.array([0j, -0.0 + 0j, 2 - 1j, np.inf + 0j, 1 + np.nan * 1j]), np.zeros(5, complex)
    kernel[1, 5](x, out)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(out, np.reciprocal(x), rtol=1e-15)


@cuda.jit
def compares(x, y, out):
    i = cuda.grid(1)
    out[i, 0] = x[i] == y[i]
    out[i, 1] = x[i] != y[i]
    out[i, 2] = x[i] == 1
    out[i, 3] = 1 if x[i] else 2
    out[i, 4] = not x[i]


def test_comparisons_and_truth():
    x, y = (part.ravel() for part in np.meshgrid(VALUES, [*VALUES[:3], np.nan * 1j]))
    run(compares, x.size, 1, x, y, np.zeros((x.size, 5), np.int64))


@cuda.jit
def magnitudes(x, out):
    i = cuda.grid(1)
    out[i] = abs(x[i])


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_abs(dtype):
    x = np.array([*VALUES, 3e30 + 4e30j, 3e-30 - 4e-30j], dtype)
    run(magnitudes, 1, x.size, x, np.zeros(x.size, np.float32 if dtype == np.complex64 else np.float64), rtol=1e-6)


@cuda.jit
def iterates(c, out):
    i = cuda.grid(1)
    z = 0j
    count = 0
    while count < 50 and z.real * z.real + z.imag * z.imag < 4:
        z = z * z + c[i]
        count += 1
    out[i] = count


def test_mandelbrot_iterations():
    re, im = np.meshgrid(np.linspace(-2, 0.5, 12), np.linspace(-1.1, 1.1, 9))
    run(iterates, 9, 12, (re + 1j * im).ravel(), np.zeros(108, np.int64))


@cuda.jit
def scalar_argument(z, out):
    out[0] = z * z
    out[1] = z.imag


@pytest.mark.parametrize("z", [1 + 2j, np.complex64(1 - 0.5j), np.complex128(3j)], ids=repr)
def test_complex_arguments(z):
    run(scalar_argument, 1, 1, z, np.zeros(2, np.complex128))


@cuda.jit
def accumulates(x, out):
    tile = cuda.shared.array(8, np.complex64)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    cuda.syncthreads()
    total = tile[0]
    for k in range(1, 8):
        total += tile[k] * tile[-k]
    out[t] = total


def test_shared_and_carried():
    x = (np.arange(8) - 2j).astype(np.complex64)
    run(accumulates, 1, 8, x, np.zeros(8, np.complex64), rtol=1e-5)
