"""abs, min, max, round, pow, len, int, float, bool and complex."""

import numpy as np
import pytest
from harness import assert_exact, launch, run
from weft import cuda


@cuda.jit
def absolute(x, out):
    i = cuda.grid(1)
    out[i] = abs(x[i])


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint64", "float32", "float64"])
def test_abs(dtype):
    x = np.arange(-4, 4).astype(dtype)
    run(absolute, 1, 8, x, np.zeros(8, dtype))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_abs_of_the_minimum_wraps(dtype):
    x = np.array([np.iinfo(dtype).min], dtype)
    assert launch(absolute, 1, 1, x, np.zeros(1, np.int64))[1][0] == x[0]


def after_absolute(type_of_x):
    @cuda.jit
    def kernel(x, ints, floats):
        i = cuda.grid(1)
        a = abs(x[i])
        ints[i, 0] = a < 0
        ints[i, 1] = a >= -5
        ints[i, 2] = a >> 3
        ints[i, 3] = a // 3
        ints[i, 4] = a % 7
        ints[i, 5] = max(a, -7)
        floats[i, 0] = -0.5 % a
        floats[i, 1] = -0.5 // a
        floats[i, 2] = np.float32(a) < 0
        floats[i, 3] = float(a)
        b = x[i]
        if b < 0:
            b = type_of_x(-b)
        ints[i, 6] = b // 3
        floats[i, 4] = 0.5 % b

    return kernel


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_what_follows_abs_sees_its_sign(dtype):
    """`abs` of the minimum is negative, so later code must not assume a nonnegative value."""
    low = int(np.iinfo(dtype).min)
    x = [low, low + 1, -1, 1, low + 7, -low - 1]
    ints, floats = [], []
    for value in x:
        a = value if value == low else abs(value)
        ints.append([a < 0, a >= -5, a >> 3, a // 3, a % 7, max(a, -7), a // 3])
        floats.append([-0.5 % a, -0.5 // a, a < 0, float(a), 0.5 % a])
    _, got_ints, got_floats = launch(
        after_absolute(np.dtype(dtype).type), 1, 6, np.array(x, dtype), np.zeros((6, 7), np.int64), np.zeros((6, 5))
    )
    assert_exact(got_ints, np.array(ints, np.int64))
    assert_exact(got_floats, np.array(floats))


def test_abs_of_signed_zero_and_infinity():
    x = np.array([-0.0, -np.inf, np.nan, -1e-320])
    assert_exact(launch(absolute, 1, 4, x, np.ones(4))[1], np.abs(x))


@cuda.jit
def extremes(x, y, out):
    i = cuda.grid(1)
    a, b = x[i], y[i]
    out[i, 0] = min(a, b)
    out[i, 1] = max(a, b)
    out[i, 2] = min(a, b, 2)
    out[i, 3] = max(a, b, 2, -1)
    out[i, 4] = min(a, 0.5)
    out[i, 5] = max(0, a)


@pytest.mark.parametrize("left", ["int8", "uint8", "int32", "uint32", "int64", "float32", "float64"])
@pytest.mark.parametrize("right", ["int32", "int64", "float32", "float64"])
def test_min_and_max(left, right):
    x, y = (part.ravel() for part in np.meshgrid(np.arange(-4, 5), np.arange(-4, 5)))
    x = np.abs(x) if left[0] == "u" else x
    run(extremes, x.size, 1, x.astype(left), y.astype(right), np.zeros((x.size, 6)))


@cuda.jit
def rounds(x, out):
    i = cuda.grid(1)
    out[i] = round(x[i])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_round_is_half_to_even(dtype):
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, 3.2, -3.7, 1e6 + 0.5, 8388609.0], dtype)
    out = launch(rounds, 1, x.size, x, np.zeros(x.size, np.int64))[1]
    assert out.tolist() == [round(float(item)) for item in x]


def test_round_of_integers():
    x = np.array([-5, 0, 7])
    assert launch(rounds, 1, 3, x, np.zeros(3, np.int64))[1].tolist() == [-5, 0, 7]


@cuda.jit
def round_digits(x, out):
    i = cuda.grid(1)
    out[i, 0] = round(x[i], 2)
    out[i, 1] = round(x[i], 0)
    out[i, 2] = round(x[i], -1)


def test_round_to_digits():
    x = np.array([1.234, -2.717, 3.14159, 10.0, 15.0, 0.126, -99.994, 1234.5678])
    out = launch(round_digits, 1, x.size, x, np.zeros((x.size, 3)))[1]
    for column, digits in enumerate((2, 0, -1)):
        np.testing.assert_allclose(out[:, column], [round(item, digits) for item in x.tolist()], rtol=1e-15)


@cuda.jit
def powers(x, y, out):
    i = cuda.grid(1)
    out[i, 0] = pow(x[i], y[i])
    out[i, 1] = pow(x[i], 2)


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_pow(dtype):
    x, y = (part.ravel().astype(dtype) for part in np.meshgrid(np.arange(1, 6), np.arange(0, 6)))
    run(powers, x.size, 1, x, y, np.zeros((x.size, 2), dtype), rtol=1e-14)


@cuda.jit
def lengths(x, y, out):
    out[0] = len(x)
    out[1] = len(y)
    out[2] = len((1, 2.5, 3))
    out[3] = len(x[1:])
    out[4] = len(y[0])


def test_len():
    out = run(lengths, 1, 1, np.zeros(5), np.zeros((3, 4)), np.zeros(5, np.int64))[2]
    assert out.tolist() == [5, 3, 3, 4, 4]


@cuda.jit
def conversions(x, out):
    i = cuda.grid(1)
    out[i, 0] = int(x[i])
    out[i, 1] = int(x[i]) // 2
    out[i, 2] = float(x[i]) / 2
    out[i, 3] = bool(x[i])
    out[i, 4] = float(int(x[i])) + int(bool(x[i]))
    out[i, 5] = int(-x[i])


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.float32, np.float64])
def test_int_float_and_bool(dtype):
    x = np.array([-3.7, -1, -0.5, 0, 0.5, 1, 2.9, 100]).astype(dtype)
    run(conversions, 1, 8, x, np.zeros((8, 6)))


@cuda.jit
def float_keeps_float32(x, out):
    i = cuda.grid(1)
    out[i] = float(x[i]) * np.float32(0.1)


def test_float_of_a_float32_stays_a_float32():
    x = np.array([0.7, 1.3, 3.3], np.float32)
    out = launch(float_keeps_float32, 1, 3, x, np.zeros(3))[1]
    np.testing.assert_array_equal(out, (x * np.float32(0.1)).astype(np.float64))


@cuda.jit
def literals(out):
    out[0] = float("inf")
    out[1] = -float("inf")
    out[2] = float("nan")


def test_float_of_a_string_literal():
    np.testing.assert_array_equal(launch(literals, 1, 1, np.zeros(3))[0], [np.inf, -np.inf, np.nan])


@cuda.jit
def makes_complex(x, y, out):
    i = cuda.grid(1)
    out[i, 0] = complex(x[i], y[i])
    out[i, 1] = complex(x[i])


def test_complex():
    run(makes_complex, 1, 4, np.arange(4.0), np.arange(4), np.zeros((4, 2), np.complex128))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_min_and_max_pass_over_nan(dtype):
    x, y = np.array([[1, np.nan, np.nan, -np.inf], [np.nan, 2, np.nan, 3]], dtype)
    out = launch(extremes, 1, 4, x, y, np.zeros((4, 6)))[2]
    np.testing.assert_array_equal(out[:, 0], np.fmin(x, y))
    np.testing.assert_array_equal(out[:, 1], np.fmax(x, y))
