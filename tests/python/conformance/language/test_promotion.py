"""The result types of operators: the tables of Numba's rules, for all pairs of types.

A result's type shows in its value: it is stored as float64 (complex128), exactly. 1 - 2 is -1 in int64 and 2^64 - 1 in
uint64; 0.1 + 0.7 rounds differently in float32 and float64.
"""

import numpy as np
import pytest
from harness import assert_exact, launch
from oracle import numeric
from weft import cuda

INTEGERS = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()
FLOATS = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]


@cuda.jit
def all_operators(x, y, out):
    i = cuda.grid(1)
    a, b = x[i], y[i]
    out[i, 0] = a + b
    out[i, 1] = a - b
    out[i, 2] = a * b
    out[i, 3] = a / b
    out[i, 4] = a // b
    out[i, 5] = a % b
    out[i, 6] = a & b
    out[i, 7] = a | b
    out[i, 8] = a ^ b
    out[i, 9] = a << b
    out[i, 10] = a >> b
    out[i, 11] = (a - b) >> 1
    out[i, 12] = (a - b) / 2


@cuda.jit
def float_operators(x, y, out):
    i = cuda.grid(1)
    a, b = x[i], y[i]
    out[i, 0] = a + b
    out[i, 1] = a - b
    out[i, 2] = a * b
    out[i, 3] = a / b
    out[i, 4] = a // b
    out[i, 5] = a % b


@cuda.jit
def complex_operators(x, y, out):
    i = cuda.grid(1)
    out[i, 0] = x[i] + y[i]
    out[i, 1] = x[i] - y[i]


OPERATORS = ["+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>"]


def values(name, second):
    if name == "bool":
        return np.array([True, False, True])
    numbers = {True: [2, 3, 60], False: [1, 100, 7]}[second]
    if name[0] in "fc":
        numbers = [0.7, 3.3, 0.1] if second else [0.1, 7.7, 1 / 3]
    array = np.array(numbers)
    return (array * (1 + 0.3j) if name[0] == "c" else array).astype(name)


@pytest.mark.parametrize("left", INTEGERS)
@pytest.mark.parametrize("right", INTEGERS)
def test_integers(left, right):
    x, y = values(left, False), values(right, True)
    out = launch(all_operators, 1, 3, x, y, np.zeros((3, 13)))[2]
    expected = np.zeros((3, 13))
    difference = numeric.binary("-", x, y)
    for column, op in enumerate(OPERATORS):
        expected[:, column] = numeric.binary(op, x, y)
    expected[:, 11] = numeric.binary(">>", difference, 1)
    expected[:, 12] = numeric.binary("/", difference, 2)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("left", "right"),
    [pair for a in INTEGERS + FLOATS for b in FLOATS for pair in ((a, b), (b, a))],
)
def test_floats(left, right):
    x, y = values(left, False), values(right, True)
    out = launch(float_operators, 1, 3, x, y, np.zeros((3, 6)))[2]
    with np.errstate(all="ignore"):
        columns = [np.asarray(numeric.binary(op, x, y), np.float64) for op in OPERATORS[:6]]
    assert_exact(out, np.stack(columns, axis=1))


@pytest.mark.parametrize(
    ("left", "right"),
    [pair for a in INTEGERS + FLOATS + COMPLEX for b in COMPLEX for pair in ((a, b), (b, a))],
)
def test_complex(left, right):
    x, y = values(left, False), values(right, True)
    out = launch(complex_operators, 1, 3, x, y, np.zeros((3, 2), np.complex128))[2]
    expected = np.stack([np.asarray(numeric.binary(op, x, y), np.complex128) for op in "+-"], axis=1)
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def with_literals(x, out):
    i = cuda.grid(1)
    a = x[i]
    out[i, 0] = a * 2
    out[i, 1] = a + 0.1
    out[i, 2] = a - 3
    out[i, 3] = 1 / a
    out[i, 4] = a // 2
    out[i, 5] = np.float32(0.1) * a
    out[i, 6] = a + True
    out[i, 7] = -a


@pytest.mark.parametrize("name", INTEGERS[1:] + FLOATS)
def test_literals_are_int64_and_float64(name):
    x = values(name, False)
    out = launch(with_literals, 1, 3, x, np.zeros((3, 8)))[1]
    columns = [
        numeric.binary("*", x, 2),
        numeric.binary("+", x, 0.1),
        numeric.binary("-", x, 3),
        numeric.binary("/", 1, x),
        numeric.binary("//", x, 2),
        numeric.binary("*", np.float32(0.1), x),
        numeric.binary("+", x, True),
        numeric.unary("-", x),
    ]
    np.testing.assert_array_equal(out, np.stack([np.asarray(c, np.float64) for c in columns], axis=1))


@cuda.jit
def squares(x, out):
    i = cuda.grid(1)
    out[i, 0] = x[i] ** 2
    out[i, 1] = x[i] ** 3


def test_a_float32_to_an_integer_power_is_a_float32():
    x = np.array([0.1, 0.7, 1 / 3], np.float32)
    out = launch(squares, 1, 3, x, np.zeros((3, 2)))[1]
    np.testing.assert_array_equal(out, out.astype(np.float32))
    np.testing.assert_array_equal(out[:, 0], x * x)


@cuda.jit
def wide_comparisons(x, y, out):
    i = cuda.grid(1)
    out[i, 0] = x[i] < y[i]
    out[i, 1] = x[i] == y[i]
    out[i, 2] = x[i] > y[i]


def test_int64_against_uint64_compares_exactly():
    x = np.array([-1, 2**53 + 1, 2**62, -(2**63)])
    y = np.array([2**64 - 1, 2**53, 2**62, 2**63], np.uint64)
    out = launch(wide_comparisons, 1, 4, x, y, np.zeros((4, 3), np.bool_))[2]
    # Numba compares as float64, in which 2**53 + 1 equals 2**53; weft compares the integers, as Python does.
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    assert out.tolist() == [[a < b, a == b, a > b] for a, b in pairs]


@cuda.jit
def narrow_sums(x, y, out):
    i = cuda.grid(1)
    total = x[i] + y[i]
    out[i, 0] = total > 0
    out[i, 1] = total // 2


@pytest.mark.parametrize("name", ["int8", "int16", "int32"])
def test_intermediate_results_do_not_wrap_at_the_narrow_type(name):
    top = np.iinfo(name).max
    x = np.array([top, top], name)
    out = launch(narrow_sums, 1, 2, x, x, np.zeros((2, 2), np.int64))[2]
    assert out.tolist() == [[1, top]] * 2
