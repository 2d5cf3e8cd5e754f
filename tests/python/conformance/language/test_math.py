"""The functions of `math`, in float32 and float64, and the types of their results.

Errors must be within the bounds of OpenCL C's full profile, which the math libraries of both back ends guarantee.
Results that IEEE 754 or C define exactly are compared exactly.
"""

import math

import numpy as np
import pytest
from harness import assert_exact, launch, module, ulps
from weft import cuda

PRELUDE = "import math\nfrom weft import cuda\n"

UNARY = """
@cuda.jit
def kernel(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = math.{name}(x[i])
"""
BINARY = """
@cuda.jit
def kernel(x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = math.{name}(x[i], y[i])
"""

WIDE = [
    0.0, -0.0, 1e-30, -1e-30, 1e-5, 0.1, -0.3, 0.5, 1.0, -1.0, 1.5, 2.0, 3.0, -7.25,
    10.0, 31.4, 87.0, -87.0, 1e4, -1e5, 1e30,
]  # fmt: skip
UNIT = np.linspace(-1, 1, 41)
POSITIVE = [1e-38, 1e-20, 1e-5, 0.1, 0.5, 0.999, 1.0, 1.001, 2.0, math.e, 10.0, 1000.0, 12345.678, 1e20, 3e38]
MODERATE = np.concatenate([np.linspace(-20, 20, 161), [1e-6, -1e-6, 80.0, -80.0]])
ANGLES = np.concatenate([np.linspace(-10, 10, 201), [1e-8, 100.0, -1000.0, 12345.0, 1e6]])
EDGES = [np.nan, np.inf, -np.inf]

# name: inputs, largest error in ulps by OpenCL C, reference in extended precision.
APPROXIMATE = {
    "acos": (UNIT, 4, np.arccos),
    "acosh": ([1.0, 1.0001, 1.5, 2.0, 10.0, 1e4, 1e18], 4, np.arccosh),
    "asin": (UNIT, 4, np.arcsin),
    "asinh": (WIDE, 4, np.arcsinh),
    "atan": (WIDE, 5, np.arctan),
    "atanh": (np.linspace(-0.999, 0.999, 41), 5, np.arctanh),
    "cos": (ANGLES, 4, np.cos),
    "cosh": (MODERATE, 4, np.cosh),
    "degrees": (WIDE, 4, np.degrees),
    "exp": (MODERATE, 3, np.exp),
    "exp2": (MODERATE, 3, np.exp2),
    "expm1": (MODERATE, 3, np.expm1),
    "log": (POSITIVE, 3, np.log),
    "log10": (POSITIVE, 3, np.log10),
    "log1p": ([-0.9, -0.5, -1e-10, 0.0, 1e-10, 1e-5, 0.5, 1.0, 100.0, 1e20], 3, np.log1p),
    "log2": (POSITIVE, 3, np.log2),
    "radians": (WIDE, 4, np.radians),
    "sin": (ANGLES, 4, np.sin),
    "sinh": (MODERATE, 4, np.sinh),
    "tan": (ANGLES, 5, np.tan),
    "tanh": (MODERATE, 5, np.tanh),
    "erf": (np.linspace(-4, 4, 81), 16, np.vectorize(math.erf, otypes=[np.longdouble])),
    "erfc": (np.linspace(-4, 5, 81), 16, np.vectorize(math.erfc, otypes=[np.longdouble])),
    "gamma": ([0.1, 0.5, 1.0, 1.5, 2.0, 3.7, 5.0, 10.0, 20.5, 30.0, -0.5, -1.5, -2.25], 16,
              np.vectorize(math.gamma, otypes=[np.longdouble])),
    "lgamma": ([0.1, 0.5, 1.5, 3.7, 5.0, 10.0, 20.5, 300.0, 1e5, -0.5, -1.5], 16,
               np.vectorize(math.lgamma, otypes=[np.longdouble])),
}  # fmt: skip

EXACT = {
    "ceil": np.ceil,
    "fabs": np.fabs,
    "floor": np.floor,
    "sqrt": np.sqrt,
    "trunc": np.trunc,
}
EXACT_VALUES = [*WIDE, 0.5, -0.5, 2.5, 3.5, -2.5, 0.49999997, 8388609.0, 4503599627370497.0, 1e-42, *EDGES]


def run_unary(name, x, out_dtype):
    kernel = module(PRELUDE + UNARY.format(name=name)).kernel
    return launch(kernel, (x.size + 31) // 32, 32, x, np.zeros(x.size, out_dtype))[1]


@pytest.mark.parametrize("name", APPROXIMATE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_accuracy(name, dtype):
    values, bound, reference = APPROXIMATE[name]
    x = np.array(values, np.float64).astype(dtype)
    out = run_unary(name, x, dtype)
    with np.errstate(all="ignore"):
        expected = reference(x.astype(np.longdouble))
        finite = np.abs(expected) <= np.finfo(dtype).max
    errors = ulps(out, expected)[finite]
    worst = np.argmax(errors)
    assert errors[worst] <= bound, f"{name}({x[finite][worst]!r}): {errors[worst]:.2f} ulp"
    assert np.isinf(out[~finite]).all()


@pytest.mark.parametrize("name", APPROXIMATE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_gives_nan(name, dtype):
    assert np.isnan(run_unary(name, np.array([np.nan], dtype), dtype)).all()


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exact_functions(name, dtype):
    with np.errstate(all="ignore"):
        x = np.array(EXACT_VALUES).astype(dtype)
        expected = EXACT[name](x)
    assert_exact(run_unary(name, x, dtype), expected)


POLES = [
    ("log", 0.0, -np.inf), ("log", -1.0, np.nan), ("log", np.inf, np.inf), ("log2", 0.0, -np.inf),
    ("log10", -1.0, np.nan), ("log1p", -1.0, -np.inf), ("exp", 1e9, np.inf), ("exp", -1e9, 0.0),
    ("exp", -np.inf, 0.0), ("exp", np.inf, np.inf), ("sqrt", -1.0, np.nan), ("acos", 2.0, np.nan),
    ("asin", -2.0, np.nan), ("acosh", 0.5, np.nan), ("atanh", 1.0, np.inf), ("atanh", 2.0, np.nan),
    ("sin", np.inf, np.nan), ("cos", -np.inf, np.nan), ("tan", np.inf, np.nan), ("tanh", np.inf, 1.0),
    ("tanh", -np.inf, -1.0), ("atan", np.inf, math.pi / 2), ("sinh", -np.inf, -np.inf), ("cosh", -np.inf, np.inf),
    ("erf", np.inf, 1.0), ("erfc", -np.inf, 2.0), ("gamma", 200.0, np.inf), ("lgamma", 0.0, np.inf),
    ("expm1", -np.inf, -1.0), ("exp2", 2000.0, np.inf), ("cosh", 1000.0, np.inf),
]  # fmt: skip


@pytest.mark.parametrize(("name", "x", "expected"), POLES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_edges(name, x, expected, dtype):
    out = run_unary(name, np.array([x], dtype), dtype)
    np.testing.assert_allclose(out, np.array([expected], dtype), rtol=4e-7 if dtype == np.float32 else 1e-15)


ODD = ["asin", "asinh", "atan", "atanh", "ceil", "degrees", "erf", "expm1", "floor", "log1p", "radians", "sin", "sinh",
       "sqrt", "tan", "tanh", "trunc"]  # fmt: skip


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zeros_keep_their_sign(name, dtype):
    zeros = np.array([0.0, -0.0], dtype)
    assert_exact(run_unary(name, zeros, dtype), zeros)


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_classification(name, dtype):
    with np.errstate(all="ignore"):
        x = np.array([*EDGES, 0.0, -0.0, 1e30, 1e-42, 3.5]).astype(dtype)
    out = run_unary(name, x, np.bool_)
    np.testing.assert_array_equal(out, getattr(np, name)(x))


@pytest.mark.parametrize("name", [*APPROXIMATE, *EXACT])
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int32, np.uint32, np.int64, np.uint64])
def test_integers_become_float64(name, dtype):
    low = 1 if name in ("acosh", "gamma", "lgamma") or name.startswith("log") else 0
    high = 2 if name in ("acos", "asin") else 1 if name == "atanh" else 9
    x = np.arange(low, max(high, low + 1)).astype(dtype)
    out = run_unary(name, x, np.float64)
    if name in EXACT:
        np.testing.assert_array_equal(out, EXACT[name](x.astype(np.float64)))
    else:
        errors = ulps(out, APPROXIMATE[name][2](x.astype(np.longdouble)))
        assert errors.max() <= APPROXIMATE[name][1]


@pytest.mark.parametrize("name", [*APPROXIMATE, *EXACT])
def test_float32_stays_float32(name):
    x = np.array([1.0, 1.1], np.float32) if name not in ("acos", "asin", "atanh") else np.array([0.3, 0.7], np.float32)
    out = run_unary(name, x, np.float64)
    np.testing.assert_array_equal(out, out.astype(np.float32))


def run_binary(name, x, y, out_dtype):
    kernel = module(PRELUDE + BINARY.format(name=name)).kernel
    return launch(kernel, (x.size + 31) // 32, 32, x, y, np.zeros(x.size, out_dtype))[2]


def pairs(values, dtype):
    with np.errstate(all="ignore"):
        array = np.array(values).astype(dtype)
    return tuple(part.ravel().copy() for part in np.meshgrid(array, array))


PAIRS = [*WIDE[:17], 0.75, -3.0, 5.5]


def ieee_remainder(x, y):
    return np.array([math.remainder(float(a), float(b)) if b else np.nan for a, b in zip(x, y, strict=True)]).astype(
        x.dtype
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "reference"),
    [("copysign", np.copysign), ("fmod", np.fmod), ("nextafter", np.nextafter), ("remainder", ieee_remainder)],
)
def test_exact_functions_of_two(name, reference, dtype):
    x, y = pairs(PAIRS, dtype)
    with np.errstate(all="ignore"):
        expected = reference(x, y)
    assert_exact(run_binary(name, x, y, dtype), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "bound", "reference"), [("atan2", 6, np.arctan2), ("hypot", 4, np.hypot)])
def test_accuracy_of_two(name, bound, reference, dtype):
    x, y = pairs(PAIRS, dtype)
    expected = reference(x.astype(np.longdouble), y.astype(np.longdouble))
    out = run_binary(name, x, y, dtype)
    assert ulps(out, expected).max() <= bound
    np.testing.assert_array_equal(np.signbit(out), np.signbit(expected))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pow(dtype):
    x, y = (part.ravel().astype(dtype) for part in np.meshgrid([0.1, 0.5, 1.0, 1.7, 3.0, 10.0], np.linspace(-7, 7, 29)))
    expected = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    assert ulps(run_binary("pow", x, y, dtype), expected).max() <= 16


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pow_edges(dtype):
    cases = [(0, 0, 1), (np.nan, 0, 1), (1, np.nan, 1), (-1, np.inf, 1), (0, -1, np.inf), (-2, 3, -8),
             (-2, 0.5, np.nan), (2, np.inf, np.inf), (0.5, np.inf, 0), (-0.0, 3, -0.0), (np.inf, -2, 0),
             (-8, 2, 64)]  # fmt: skip
    x, y, expected = np.array(cases, dtype).T.copy()
    np.testing.assert_allclose(run_binary("pow", x, y, dtype), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pow_with_huge_exponents(dtype):
    largest = np.finfo(dtype).max
    cases = [(0.1, 1e36, 0), (0.5, 1e38, 0), (2, -1e36, 0), (2, 1e36, np.inf), (0.5, -largest, np.inf),
             (-0.5, largest, 0), (-2, 2.0**70, np.inf), (-2, -(2.0**70), 0), (1, largest, 1), (-1, -largest, 1),
             (-0.0, -largest, np.inf), (np.nextafter(dtype(1), dtype(0)), largest, 0),
             (np.nextafter(dtype(1), dtype(2)), largest, np.inf), (np.nan, largest, np.nan)]  # fmt: skip
    if dtype == np.float64:
        cases += [(0.1, 1e50, 0), (0.5, 1e100, 0), (2, -1e300, 0)]
    x, y, expected = np.array(cases, dtype).T.copy()
    assert_exact(run_binary("pow", x, y, dtype), expected)


@pytest.mark.parametrize("name", ["atan2", "hypot", "fmod", "copysign", "pow"])
@pytest.mark.parametrize(
    ("left", "right"), [("int32", "int32"), ("int64", "int64"), ("float32", "float64"), ("float32", "int64")]
)
def test_mixed_arguments_become_float64(name, left, right):
    x, y = np.arange(1, 9).astype(left), np.arange(3, 11).astype(right)
    reference = {"atan2": np.arctan2, "pow": np.power}.get(name) or getattr(np, name)
    expected = reference(x.astype("f8"), y.astype("f8"))
    np.testing.assert_allclose(run_binary(name, x, y, np.float64), expected, rtol=2e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pow_with_an_integer_exponent(dtype):
    x, n = np.array([1.5, -2.0, 0.5, 3.0], dtype), np.array([3, -3, 0, 7], np.int32)
    np.testing.assert_allclose(run_binary("pow", x, n, dtype), x.astype("f8") ** n, rtol=1e-6)


def test_an_exponent_beyond_int32_is_no_int32():
    x, n = np.array([1 + 2.0**-33, -1.0]), np.array([2**33, 2**32 + 1])
    np.testing.assert_allclose(run_binary("pow", x, n, np.float64), [math.e, -1.0], rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ldexp(dtype):
    x = np.array([1.0, -0.75, 3.0, 0.0, 1.0, 1.5], dtype)
    n = np.array([3, -4, 100, 5, -140 if dtype == np.float32 else -1060, 5000], np.int32)
    with np.errstate(all="ignore"):
        expected = np.ldexp(x, n)
    assert_exact(run_binary("ldexp", x, n, dtype), expected)


def test_ldexp_of_nan_is_nan():
    n = np.array([0, 1, -1, 1000, -1000, 2**31 - 1, -(2**31)], np.int32)
    for dtype in (np.float32, np.float64):
        assert np.isnan(run_binary("ldexp", np.full(n.size, np.nan, dtype), n, dtype)).all()


@cuda.jit
def splits(x, fraction, whole, mantissa, exponent):
    i = cuda.grid(1)
    fraction[i], whole[i] = math.modf(x[i])
    mantissa[i], exponent[i] = math.frexp(x[i])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_modf_and_frexp(dtype):
    x = np.array([0.0, 1.0, -1.0, 3.75, -2.5, 1e10, 0.001, 1e-40], dtype)
    zeros = [np.zeros(8, dtype) for _ in range(3)]
    _, fraction, whole, mantissa, exponent = launch(splits, 1, 8, x, *zeros, np.zeros(8, np.int32))
    assert_exact(fraction, np.modf(x)[0])
    assert_exact(whole, np.modf(x)[1])
    assert_exact(mantissa, np.frexp(x)[0])
    np.testing.assert_array_equal(exponent, np.frexp(x)[1])


@cuda.jit
def constants(out):
    out[0] = math.pi
    out[1] = math.e
    out[2] = math.tau
    out[3] = math.inf
    out[4] = math.nan


def test_constants():
    out = launch(constants, 1, 1, np.zeros(5))[0]
    np.testing.assert_array_equal(out, [math.pi, math.e, math.tau, math.inf, math.nan])
