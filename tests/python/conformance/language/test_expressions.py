"""Operators on integers and floats, comparisons, conditional expressions."""

import numpy as np
import pytest
from harness import assert_exact, launch, run
from weft import cuda


@cuda.jit
def integer_arithmetic(x, y, out):
    i = cuda.grid(1)
    a, b = x[i], y[i]
    out[i, 0] = a + b
    out[i, 1] = a - b
    out[i, 2] = a * b
    out[i, 3] = a // b
    out[i, 4] = a % b
    out[i, 5] = a & b
    out[i, 6] = a | b
    out[i, 7] = a ^ b
    out[i, 8] = a << 3
    out[i, 9] = a >> 2
    out[i, 10] = -a
    out[i, 11] = ~a
    out[i, 12] = +a
    out[i, 13] = a**3
    out[i, 14] = -a // b
    out[i, 15] = -a % b


@pytest.mark.parametrize("left", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("right", ["int32", "uint32", "int64", "uint64"])
def test_integers(left, right):
    rng = np.random.default_rng(3)
    low = -100 if left[0] == "i" else 0
    x = rng.integers(low, 100, 64).astype(left)
    y = rng.integers(1, 20, 64).astype(right)
    run(integer_arithmetic, 8, 8, x, y, np.zeros((64, 16), np.int64))


@cuda.jit
def floor_division(x, y, quotient, remainder):
    i = cuda.grid(1)
    quotient[i] = x[i] // y[i]
    remainder[i] = x[i] % y[i]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_floor_division_has_pythons_signs(dtype):
    x, y = (part.ravel().astype(dtype) for part in np.meshgrid(np.arange(-9, 10), [-4, -3, -1, 0, 1, 3, 4]))
    _, _, quotient, remainder = run(floor_division, x.size, 1, x, y, np.zeros(x.size, "i8"), np.zeros(x.size, "i8"))
    some = y != 0
    np.testing.assert_array_equal(quotient[some], [int(a) // int(b) for a, b in zip(x[some], y[some], strict=True)])
    np.testing.assert_array_equal(remainder[some], [int(a) % int(b) for a, b in zip(x[some], y[some], strict=True)])
    assert not quotient[~some].any()
    assert not remainder[~some].any()


def test_floor_division_of_the_minimum():
    x = np.array([-(2**63), -(2**63), 2**63 - 1, -(2**63)])
    y = np.array([-1, 1, -1, 3])
    _, _, quotient, remainder = launch(floor_division, 1, 4, x, y, np.ones(4, "i8"), np.ones(4, "i8"))
    assert quotient.tolist() == [0, -(2**63), -(2**63) + 1, -(2**63) // 3]
    assert remainder.tolist() == [0, 0, 0, -(2**63) % 3]


EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -7.5, 7.5, 1e300, -1e-300, np.inf, -np.inf, np.nan, 3.0, 0.1, 1e16, 5e-324]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_floor_division_is_cpythons(dtype):
    with np.errstate(all="ignore"):
        edges = np.array(EDGES).astype(dtype)
    x, y = (part.ravel() for part in np.meshgrid(edges, edges))
    zeros = np.zeros(x.size, dtype)
    _, _, quotient, remainder = launch(floor_division, x.size, 1, x, y, zeros, zeros)
    with np.errstate(all="ignore"):
        finite = np.isfinite(x) & np.isfinite(y) & (y != 0)
        assert_exact(quotient[finite], np.floor_divide(x, y)[finite])
        assert_exact(remainder[finite], np.remainder(x, y)[finite])
        assert_exact(quotient[y == 0], np.true_divide(x, y)[y == 0])
        assert np.isnan(remainder[y == 0]).all()


@cuda.jit
def float_arithmetic(x, y, out):
    i = cuda.grid(1)
    out[i, 0] = x[i] + y[i]
    out[i, 1] = x[i] - y[i]
    out[i, 2] = x[i] * y[i]
    out[i, 3] = x[i] / y[i]
    out[i, 4] = -x[i]
    out[i, 5] = +y[i]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_arithmetic_is_ieee(dtype):
    with np.errstate(all="ignore"):
        edges = np.array([*EDGES, 1 / 3, 16777217.0, 1e-40, 3.4e38]).astype(dtype)
        x, y = (part.ravel() for part in np.meshgrid(edges, edges))
        out = launch(float_arithmetic, x.size, 1, x, y, np.zeros((x.size, 6), dtype))[2]
        expected = np.stack([x + y, x - y, x * y, x / y, -x, y], axis=1)
    assert_exact(out, expected)


@cuda.jit
def true_division(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i] / y[i]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_true_division_of_integers_is_float64(dtype):
    x = np.array([1, 2, 7, 100, 0, 3], dtype)
    y = np.array([3, 3, 2, 7, 5, 0], dtype)
    out = launch(true_division, 1, 6, x, y, np.zeros(6))[2]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out, x.astype("f8") / y.astype("f8"))


@cuda.jit
def powers(x, n, out):
    i = cuda.grid(1)
    out[i, 0] = x[i] ** 2
    out[i, 1] = x[i] ** 3
    out[i, 2] = x[i] ** 0
    out[i, 3] = x[i] ** n[i]
    out[i, 4] = 2 ** n[i]
    out[i, 5] = (-x[i]) ** 5


def test_integer_powers():
    x, n = (part.ravel() for part in np.meshgrid(np.arange(-5, 6), np.arange(0, 12)))
    run(powers, x.size, 1, x, n, np.zeros((x.size, 6), np.int64))


@cuda.jit
def integer_power(x, n, out):
    i = cuda.grid(1)
    out[i] = x[i] ** n[i]


def test_integer_powers_with_negative_exponents():
    x = np.array([0, 1, -1, -1, 2, -2, 7])
    n = np.array([-3, -3, -3, -4, -1, -1, -2])
    out = launch(integer_power, 1, 7, x, n, np.zeros(7, np.int64))[2]
    assert out.tolist() == [-(2**63), 1, -1, 1, 0, 0, 0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_powers(dtype):
    x, n = (part.ravel() for part in np.meshgrid(np.array([-2.5, -1, 0.5, 1, 1.75, 3], dtype), np.arange(-4, 9)))
    rtol = 5e-6 if dtype == np.float32 else 2e-14
    run(integer_power, x.size, 1, x, n, np.zeros(x.size, dtype), rtol=rtol)


@cuda.jit
def float_power(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i] ** y[i]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_powers_of_floats(dtype):
    x, y = (part.ravel().astype(dtype) for part in np.meshgrid([0.25, 1, 1.5, 9.75], [-2.5, -1, 0, 0.5, 1, 2, 3.25]))
    rtol = 5e-6 if dtype == np.float32 else 2e-14
    run(float_power, x.size, 1, x, y, np.zeros(x.size, dtype), rtol=rtol)


@cuda.jit
def comparisons(x, y, out):
    i = cuda.grid(1)
    out[i, 0] = x[i] < y[i]
    out[i, 1] = x[i] <= y[i]
    out[i, 2] = x[i] > y[i]
    out[i, 3] = x[i] >= y[i]
    out[i, 4] = x[i] == y[i]
    out[i, 5] = x[i] != y[i]
    out[i, 6] = not x[i] < y[i]
    out[i, 7] = 0 <= x[i] < y[i]
    out[i, 8] = x[i] < y[i] == y[i] > 0
    out[i, 9] = 5 > x[i] != y[i] >= -2


@pytest.mark.parametrize("left", ["bool", "int8", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"])
@pytest.mark.parametrize("right", ["int16", "uint8", "int64", "float32", "float64"])
def test_comparisons(left, right):
    lows = [0 if name[0] in "ub" else -3 for name in (left, right)]
    x, y = np.meshgrid(np.arange(lows[0], 2 if left == "bool" else 7), np.arange(lows[1], 7))
    run(comparisons, x.size, 1, x.ravel().astype(left), y.ravel().astype(right), np.zeros((x.size, 10), np.bool_))


def test_comparisons_of_nan_and_infinities():
    edges = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0])
    x, y = (part.ravel() for part in np.meshgrid(edges, edges))
    run(comparisons, x.size, 1, x, y, np.zeros((x.size, 10), np.bool_))


@cuda.jit
def conditional(x, y, out):
    i = cuda.grid(1)
    out[i, 0] = x[i] if x[i] > y[i] else y[i]
    out[i, 1] = x[i] if x[i] > 0 else 0.5
    out[i, 2] = 1 if x[i] > 0 else 2 if y[i] > 0 else 3
    out[i, 3] = x[i] / y[i] if y[i] else -1
    out[i, 4] = (x[i] if x[i] > 0 else -x[i]) * (2 if y[i] < 0 else 3)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_conditional_expressions(dtype):
    x, y = (part.ravel().astype(dtype) for part in np.meshgrid(np.arange(-3, 4), np.arange(-3, 4)))
    run(conditional, x.size, 1, x, y, np.zeros((x.size, 5)))


@cuda.jit
def precedence(x, y, out):
    i = cuda.grid(1)
    a, b = x[i], y[i]
    out[i, 0] = a + b * 2 - a // 3 % 4
    out[i, 1] = -(a**2) + (-a) ** 2
    out[i, 2] = a | b & 6 ^ 3
    out[i, 3] = (a << 1) + (b >> 1)
    out[i, 4] = ~a & ~b
    out[i, 5] = (a, b)[1] - (a, b)[0]
    out[i, 6] = 0x10 + 0b101 + 0o17 + 1_000


def test_precedence():
    x, y = (part.ravel() for part in np.meshgrid(np.arange(-6, 7), np.arange(-6, 7)))
    run(precedence, x.size, 1, x, y, np.zeros((x.size, 7), np.int64))


@cuda.jit
def named(x, out):
    i = cuda.grid(1)
    out[i, 0] = a * 10 if (a := x[i]) else a - 1
    out[i, 1] = (b := x[i] + 1) + b
    out[i, 2] = max((c := x[i]) * 2, 3) + c
    out[i, 3] = -(d := 3) * d + 12
    for k in range(e := x[i]):
        out[i, 4] += k + e


def test_names_bound_anywhere_in_an_expression():
    x = np.arange(4)
    out = run(named, 1, 4, x, np.zeros((4, 5), np.int64))[1]
    rows = [[10 * n if n else -1, 2 * n + 2, max(2 * n, 3) + n, 3, sum(k + n for k in range(n))] for n in range(4)]
    assert out.tolist() == rows


@cuda.jit
def take(a, k):
    value = a[k]
    a[k] = value + 100
    return value


@cuda.jit
def in_order(a, out):
    i = 1
    i += (i := 10) * 2
    out[0] = i
    out[1] += 5 * (out[1] + take(out, 1))
    j = 1
    k, j = j, (j := 4)
    out[2] = 10 * k + j
    m = 1
    out[3] = a[m, (m := 2)] + m
    n = 2
    out[4] = a[1, n : (n := 4)].size * 10 + n
    p = 3
    out[5] = a[(p := 1), p] * 1000 + (p, (p := 7), p)[0] * 100 + p
    row = a[2]
    out[6] = row[(row := a[3])[0] % 4]
    q = 6
    a[3, (q := 0)] = q
    out[7] = a[3, 0] + q
    first, second = a[0, 1], take(a[0], 1)
    out[8] = first * 1000 + second + a[0, 1]
    out[9] = a[0, 2] - take(a[0], 2)
    out[10] = a[0, 3] == take(a[0], 3)
    out[11] = max(a[0, 0], take(a[0], 0), a[0, 0])


def test_operands_are_read_in_order():
    """Assignments and stores in a later operand do not change the value of an earlier one."""
    run(in_order, 1, 1, np.arange(16, dtype=np.int64).reshape(4, 4) + 1, np.full(12, -1, np.int64))


@cuda.jit
def named_where_not_always_evaluated(x, out):
    i = cuda.grid(1)
    v = x[i]
    if v > 0 and (v := 7) > 1:
        out[i, 0] = 100
    out[i, 0] += v
    w = 1
    out[i, 1] = (w := 0.5) if x[i] > 1 else 3
    out[i, 2] = w
    n = 2
    if x[i] < 2 or (n := 5) == 5:
        out[i, 3] = n
    m = 1
    out[i, 4] = 0 < x[i] < (m := 3)
    out[i, 5] = m


def test_a_conditional_name_gets_the_joined_type():
    out = run(named_where_not_always_evaluated, 1, 4, np.arange(4), np.zeros((4, 6)))[1]
    assert out.tolist() == [
        [0, 3, 1, 2, 0, 1],
        [107, 3, 1, 2, 1, 3],
        [107, 0.5, 0.5, 5, 1, 3],
        [107, 0.5, 0.5, 5, 0, 3],
    ]
