"""All functions of `math` at special values, and functions of two arguments at all pairs of them.

The values are zeros of both signs, infinities, NaN, subnormals, one and adjacent numbers, half-integers, integers near
the limits of significands and of integer types, and huge numbers. The expected results are those of C's Annex F (IEEE
754): NaN where CPython raises ValueError, infinity where it raises OverflowError. Signs of zeros and infinities are
compared, that of NaN is not. Ordinary results are compared with a tolerance: `test_math.py` measures accuracy.
"""

import math

import numpy as np
import pytest
from harness import assert_exact, launch, module
from test_math import BINARY, PRELUDE, run_binary, run_unary

MAGNITUDES = [
    0.0, 5e-324, 1e-45, 3e-310, 1e-40, 2.0**-1022, 2.0**-126, 1e-300, 1e-30, 1e-20, 1e-9, 0.1, 0.25,
    1 - 2.0**-53, 1 - 2.0**-24, 0.49999999999999994, 0.49999997, 0.5, 1.0, 1 + 2.0**-52, 1 + 2.0**-23,
    1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 7.25, 9.6, 10.0, 22.5, 34.5, 50.5, 88.0, 89.0, 100.0, 127.0, 128.0, 149.0, 150.0,
    171.5, 172.0, 200.5, 709.0, 710.0, 745.0, 746.0, 1023.0, 1024.0, 1074.0, 1075.0, 8388607.5, 8388608.0, 8388609.0,
    2.0**24 + 1, 2.0**31, 2.0**32, 2.0**52 - 0.5, 2.0**52, 2.0**52 + 1, 2.0**53 - 1, 2.0**53, 2.0**62, 2.0**63,
    2.0**64, 1e30, 3.4e38, 1e50, 1e100, 1e300, 1.7976931348623157e308, np.inf,
]  # fmt: skip


def special(dtype):
    with np.errstate(all="ignore"):
        magnitudes = np.array([*MAGNITUDES, np.finfo(dtype).max]).astype(dtype)
    return np.unique(np.concatenate([magnitudes, -magnitudes, [dtype(np.nan)]]).view(f"u{dtype().nbytes}")).view(dtype)


def all_pairs(dtype):
    return tuple(part.ravel().copy() for part in np.meshgrid(special(dtype), special(dtype)))


def gamma(x):
    if x == -math.inf or (x < 0 and x == math.floor(x)):
        return math.nan
    try:
        return math.gamma(x)
    except ValueError:
        return math.copysign(math.inf, x)
    except OverflowError:
        return math.inf if x > 0 or math.floor(x) % 2 == 0 else -math.inf


def lgamma(x):
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf


def remainder(x, y):
    try:
        return math.remainder(x, y)
    except ValueError:
        return math.nan


def in_float64(function):
    """Converts a function of Python floats to one of arrays."""
    return np.vectorize(lambda *args: function(*map(float, args)), otypes=[np.float64])


def long(function):
    """NumPy's function in extended precision, which does not raise."""
    return lambda *args: function(*(arg.astype(np.longdouble) for arg in args))


UNARY = {
    **{
        name: long(getattr(np, {"acos": "arccos", "asin": "arcsin", "atan": "arctan"}.get(name, name)))
        for name in ("acos", "asin", "atan", "ceil", "cos", "cosh", "degrees", "exp", "exp2", "expm1", "fabs", "floor",
                     "log", "log10", "log1p", "log2", "radians", "sin", "sinh", "sqrt", "tan", "tanh", "trunc")
    },
    "acosh": long(np.arccosh),
    "asinh": long(np.arcsinh),
    "atanh": long(np.arctanh),
    "erf": in_float64(math.erf),
    "erfc": in_float64(math.erfc),
    "gamma": in_float64(gamma),
    "lgamma": in_float64(lgamma),
}  # fmt: skip

BINARY_EXACT = {
    "copysign": np.copysign,
    "fmod": np.fmod,
    "nextafter": np.nextafter,
    "remainder": in_float64(remainder),
}
BINARY_NEAR = {"atan2": long(np.arctan2), "hypot": long(np.hypot), "pow": long(np.power)}


def assert_near(got, expected, inputs, *, slack=0.0, any_zero=False):
    """NaN, zeros, infinities and signs as expected, and other numbers within some units in the last place."""
    with np.errstate(all="ignore"):
        expected = expected.astype(got.dtype)
        limits = np.finfo(got.dtype)
        room = np.maximum(64 * limits.eps * np.abs(expected), 16 * limits.smallest_subnormal) + slack
        near = (got == expected) | (np.abs(got - expected) <= room)
        # Near the overflow limit, libdevice's hypot may return infinity.
        near |= np.isinf(got) & (np.abs(expected) > limits.max * (1 - 64 * limits.eps))
    signs = (np.signbit(got) == np.signbit(expected)) | (slack > 0) | (any_zero & (expected == 0))
    bad = ~np.where(np.isnan(expected), np.isnan(got), near & signs)
    worst = [(*(arg[bad][0] for arg in inputs), got[bad][0], expected[bad][0])] if bad.any() else []
    assert not worst, f"{bad.sum()} of {bad.size}, as (arguments, result, expected): {worst}"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one(name, dtype):
    x = special(dtype)
    with np.errstate(all="ignore"):
        expected = UNARY[name](x)
    # lgamma is small near its zeros, and C does not define the sign of a gamma that underflows.
    slack = 32 * np.finfo(dtype).eps if name == "lgamma" else 0.0
    assert_near(run_unary(name, x, dtype), expected, [x], slack=slack, any_zero=name == "gamma")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["isfinite", "isinf", "isnan"])
def test_classes(name, dtype):
    x = special(dtype)
    np.testing.assert_array_equal(run_unary(name, x, np.bool_), getattr(np, name)(x))


@pytest.mark.parametrize("name", ["fmod", "remainder"])
def test_remainders_of_the_largest_numbers(name):
    """The multiple of the divisor that is just above the dividend is not representable."""
    rng = np.random.default_rng(12)
    count = 20000
    most = np.finfo(np.float64).max
    x = np.where(rng.uniform(size=count) < 0.7, most, np.ldexp(rng.uniform(0.5, 1, count), 1024))
    x *= rng.choice([-1.0, 1.0], count)
    with np.errstate(over="ignore"):
        y = np.ldexp(rng.uniform(0.5, 1, count), rng.integers(-1074, 1025, count))
        part = rng.choice([1, 1 / 2, 1 / 3, 1 / 4, 2 / 3, 2 / 5], count)
        near = most * part * (1 + rng.integers(-2, 3, count) * 2.0**-53)
    y = np.where(rng.uniform(size=count) < 0.2, near, y)
    y[:3], x[:3] = 524032.0, (most, -most, most / 2)
    assert_exact(run_binary(name, x, y, np.float64), BINARY_EXACT[name](x, y))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", BINARY_EXACT)
def test_exact_functions_of_two(name, dtype):
    x, y = all_pairs(dtype)
    with np.errstate(all="ignore"):
        expected = BINARY_EXACT[name](x, y).astype(dtype)
    assert_exact(run_binary(name, x, y, dtype), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", BINARY_NEAR)
def test_functions_of_two(name, dtype):
    x, y = all_pairs(dtype)
    with np.errstate(all="ignore"):
        expected = BINARY_NEAR[name](x, y)
    assert_near(run_binary(name, x, y, dtype), expected, [x, y])


EXPONENTS = [
    0, 1, -1, 10, -10, 24, 53, 126, 127, 128, -126, -149, -150, 1000, -1000, 1023, 1024, -1022, -1074, -1075, 2000,
    -2000, 2098, 5000, -5000, 2**31 - 1, -(2**31),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ldexp(dtype):
    x, n = (part.ravel().copy() for part in np.meshgrid(special(dtype), np.array(EXPONENTS, np.int32)))
    with np.errstate(all="ignore"):
        expected = np.ldexp(x, n)
    assert_exact(run_binary("ldexp", x, n, dtype), expected)


SPLITS = """
@cuda.jit
def kernel(x, fraction, whole, mantissa, exponent):
    i = cuda.grid(1)
    if i < x.size:
        fraction[i], whole[i] = math.modf(x[i])
        mantissa[i], exponent[i] = math.frexp(x[i])
"""


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_modf_and_frexp(dtype):
    x = special(dtype)
    places = [np.zeros(x.size, kind) for kind in (dtype, dtype, dtype, np.int32)]
    _, fraction, whole, mantissa, exponent = launch(
        module(PRELUDE + SPLITS).kernel, (x.size + 31) // 32, 32, x, *places
    )
    with np.errstate(all="ignore"):
        (whole_expected, fraction_expected), (mantissa_expected, exponent_expected) = np.modf(x)[::-1], np.frexp(x)
    assert_exact(fraction, fraction_expected)
    assert_exact(whole, whole_expected)
    assert_exact(mantissa, mantissa_expected)
    finite = np.isfinite(x)
    np.testing.assert_array_equal(exponent[finite], exponent_expected[finite])


POWER = BINARY.replace("math.{name}(x[i], y[i])", "{expression}")


@pytest.mark.parametrize("expression", ["x[i] ** y[i]", "pow(x[i], y[i])"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_operator_and_builtin(expression, dtype):
    x, y = all_pairs(dtype)
    kernel = module(PRELUDE + POWER.format(expression=expression)).kernel
    out = launch(kernel, (x.size + 31) // 32, 32, x, y, np.zeros(x.size, dtype))[2]
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    assert_near(out, expected, [x, y])
