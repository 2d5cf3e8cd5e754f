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
