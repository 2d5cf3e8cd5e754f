"""All operators on all pairs of 8-bit integers, compared with CPython's integers.

The result types are Numba's: int64, or uint64 where both are unsigned; shifts follow the left operand; `/` is float64;
comparisons are bool; min and max have the unified type. Where CPython raises, weft defines a result: a division by zero
is 0, shift counts are modulo 64, an integer to a negative power is an integer.
"""

import operator

import numpy as np
import pytest
from harness import launch, module

PAIRS = [("int8", "int8"), ("uint8", "uint8"), ("int8", "uint8"), ("uint8", "int8")]

SOURCE = """
from weft import cuda

@cuda.jit
def kernel(x, y, out):
    i, j = cuda.grid(2)
    a, b = x[i], y[j]
    out[i, j] = {expression}
"""


def power(a, b):
    if b >= 0:
        return pow(a, b, 1 << 64)
    if a == 0:
        return 1 << 63
    return a ** (b & 1) if a in (1, -1) else 0


def promoted(left, right):
    return "uint64" if left[0] == right[0] == "u" else "int64"


def left_only(left, right):
    del right
    return "uint64" if left[0] == "u" else "int64"


def joined(left, right):
    return np.promote_types(left, right).name


def always(name):
    return lambda left, right: name


BINARY = {
    "a + b": (operator.add, promoted),
    "a - b": (operator.sub, promoted),
    "a * b": (operator.mul, promoted),
    "a // b": (lambda a, b: a // b if b else 0, promoted),
    "a % b": (lambda a, b: a % b if b else 0, promoted),
    "a ** b": (power, promoted),
    "a & b": (operator.and_, promoted),
    "a | b": (operator.or_, promoted),
    "a ^ b": (operator.xor, promoted),
    "a << b": (lambda a, b: a << (b % 64), left_only),
    "a >> b": (lambda a, b: a >> (b % 64), left_only),
    "a < b": (operator.lt, always("bool")),
    "a <= b": (operator.le, always("bool")),
    "a > b": (operator.gt, always("bool")),
    "a >= b": (operator.ge, always("bool")),
    "a == b": (operator.eq, always("bool")),
    "a != b": (operator.ne, always("bool")),
    "min(a, b)": (min, joined),
    "max(a, b)": (max, joined),
    "a and b": (lambda a, b: a and b, joined),
    "a or b": (lambda a, b: a or b, joined),
    "a if a > b else b": (max, joined),
    "a / b": (lambda a, b: a / b if b else float("nan") if a == 0 else float("inf") * a, always("float64")),
}

UNARY = {
    "-a": (operator.neg, left_only),
    "+a": (operator.pos, left_only),
    "~a": (operator.invert, left_only),
    "not a": (operator.not_, always("bool")),
    "abs(a)": (abs, lambda left, right: left),
    "int(a)": (int, lambda left, right: left),
    "float(a)": (float, always("float64")),
    "bool(a)": (bool, always("bool")),
}


def everything(name):
    info = np.iinfo(name)
    return np.arange(info.min, info.max + 1).astype(name)


def wrapped(numbers, shape, dtype):
    """Python numbers as a dtype; integers modulo 2^64, then modulo the dtype's range."""
    dtype = np.dtype(dtype)
    if dtype.kind in "fb":
        return np.array(numbers, dtype).reshape(shape)
    return np.array([number % (1 << 64) for number in numbers], np.uint64).astype(dtype).reshape(shape)


def evaluate(expression, left, right, dtype):
    kernel = module(SOURCE.format(expression=expression)).kernel
    x, y = everything(left), everything(right)
    # 255 marks an element that no thread has written.
    out = np.full((256, 256), 255, np.uint8).astype(dtype)
    return launch(kernel, (8, 8), (32, 32), x, y, out)[2]


@pytest.mark.parametrize("expression", BINARY)
@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_binary(expression, left, right):
    function, rule = BINARY[expression]
    dtype = rule(left, right)
    xs, ys = everything(left).tolist(), everything(right).tolist()
    expected = wrapped([function(a, b) for a in xs for b in ys], (256, 256), dtype)
    np.testing.assert_array_equal(evaluate(expression, left, right, dtype), expected)


@pytest.mark.parametrize("expression", UNARY)
@pytest.mark.parametrize("name", ["int8", "uint8"])
def test_unary(expression, name):
    function, rule = UNARY[expression]
    dtype = rule(name, name)
    expected = wrapped([function(a) for a in everything(name).tolist()], (256, 1), dtype)
    out = evaluate(expression, name, name, dtype)
    np.testing.assert_array_equal(out, np.broadcast_to(expected, (256, 256)))


@pytest.mark.parametrize(("left", "right"), PAIRS)
@pytest.mark.parametrize("op", ["+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>"])
def test_results_stored_as_8_bits_wrap(op, left, right):
    function, _ = BINARY[f"a {op} b"]
    xs, ys = everything(left).tolist(), everything(right).tolist()
    for dtype in ("int8", "uint8"):
        expected = wrapped([function(a, b) for a in xs for b in ys], (256, 256), dtype)
        np.testing.assert_array_equal(evaluate(f"a {op} b", left, right, dtype), expected)
