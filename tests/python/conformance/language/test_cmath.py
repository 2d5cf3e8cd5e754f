"""`cmath` in kernels: values, special values and branch cuts against CPython's, for complex64 and complex128."""

import cmath
import itertools
import math

import numpy as np
import pytest
from harness import launch, module
from weft import cuda

UNARY = [
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log", "log10", "sin", "sinh", "sqrt",
    "tan", "tanh",
]  # fmt: skip
PARTS = [-0.0, 0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -3.5, math.pi, -math.pi, 1e-10, 30.0, -20.25]
SPECIAL = [-0.0, 0.0, 1.0, -1.0, 1.5, -3.5, math.inf, -math.inf, math.nan]
LIMITS = np.finfo(float)
ENDS = [0.0, 1.0, -1.0, 5e-324, -1e-310, LIMITS.tiny, 1e-160, 1e150, -1e200, LIMITS.max, -LIMITS.max]


def kernel_of(name, count=1):
    params = ", ".join(f"a{k}" for k in range(count))
    items = ", ".join(f"a{k}[i]" for k in range(count))
    return module(f"""
        import cmath
        from weft import cuda

        @cuda.jit
        def kernel({params}, out):
            i = cuda.grid(1)
            if i < out.size:
                out[i] = cmath.{name}({items})
        """).kernel


def computed(name, *args, dtype):
    args = [np.asarray(arg) for arg in args]
    kernel = kernel_of(name, len(args))
    return launch(kernel, -(-args[0].size // 64), 64, *args, np.zeros(args[0].size, dtype))[-1]


def references(function, *columns):
    """CPython's results; None where it raises."""
    found = []
    for args in zip(*columns, strict=True):
        try:
            found.append(function(*args))
        except (ValueError, OverflowError, ZeroDivisionError):
            found.append(None)
    return found


def assert_parts(got, expected, ulps, z, name):
    """Each part is within `ulps` of the larger part's last bit; special values and signs of zeros are exact."""
    for mine, theirs, arg in zip(got, expected, z, strict=True):
        if theirs is None:
            continue
        theirs = np.asarray(theirs, got.dtype)
        size = max((abs(part) for part in (theirs.real, theirs.imag) if np.isfinite(part)), default=0.0)
        unit = np.spacing(np.asarray(size, theirs.real.dtype))
        for a, b in ((mine.real, theirs.real), (mine.imag, theirs.imag)):
            where = f"{name}({arg!r}) is {mine!r}, not {theirs!r}"
            if not np.isfinite(b):
                assert np.isnan(a) if np.isnan(b) else a == b, where
            else:
                assert abs(a - b) <= ulps * unit, where
                assert b != 0 or a != 0 or np.signbit(a) == np.signbit(b), where


def grid(parts):
    return np.array([complex(x, y) for x, y in itertools.product(parts, parts)])


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_values(name, dtype):
    z = grid(PARTS).astype(dtype)
    expected = references(getattr(cmath, name), z.astype(complex))
    assert_parts(computed(name, z, dtype=dtype), expected, 1 if dtype == "complex64" else 4, z, name)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_special_values(name, dtype):
    z = grid(SPECIAL).astype(dtype)
    expected = references(getattr(cmath, name), z.astype(complex))
    assert_parts(computed(name, z, dtype=dtype), expected, 1 if dtype == "complex64" else 4, z, name)


@pytest.mark.parametrize("name", UNARY)
def test_ends_of_the_range(name):
    z = grid(ENDS)
    if name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp"):
        # An overflow is an error in CPython; sines of very large numbers depend on the math library.
        z = z[(abs(z.real) <= 709.7) & (abs(z.imag) <= 709.7)]
    expected = references(getattr(cmath, name), z)
    assert_parts(computed(name, z, dtype="complex128"), expected, 4, z, name)


@pytest.mark.parametrize("name", ["cosh", "sinh", "exp"])
def test_only_the_product_is_finite(name):
    z = np.array([709.9 + 1.57j, -709.9 + 1.57j, 710.2 - 1.5707j])
    expected = references(getattr(cmath, name), z)
    assert any(value is not None for value in expected)
    assert_parts(computed(name, z, dtype="complex128"), expected, 64, z, name)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_branch_cuts(dtype):
    x = [2.5, -2.5, 1.0, -1.0, 0.5, -0.5]
    z = np.array([complex(a, y) for a in x for y in (0.0, -0.0)] + [complex(y, a) for a in x for y in (0.0, -0.0)])
    for name in ("sqrt", "log", "acos", "asin", "atan", "acosh", "asinh", "atanh"):
        expected = references(getattr(cmath, name), z)
        got = computed(name, z.astype(dtype), dtype=dtype)
        assert_parts(got, expected, 1 if dtype == "complex64" else 4, z, name)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_of_real_numbers(dtype):
    x = np.array([1, 2, 7], dtype) if dtype == "uint8" else np.array([-3, -1, 0, 2, 9], dtype)
    result = "complex64" if dtype == "float32" else "complex128"
    for name in ("sqrt", "exp", "asin", "atan", "acosh"):
        expected = references(getattr(cmath, name), x.astype(complex))
        assert_parts(computed(name, x, dtype=result), expected, 4, x, name)
    kernel = module(f"""
        import cmath
        import numpy as np
        from weft import cuda

        @cuda.jit
        def kernel(x, out):
            out[0] = isinstance(cmath.sqrt(x[0]), np.{result})
        """).kernel
    assert launch(kernel, 1, 1, x, np.zeros(1, bool))[1][0]


@pytest.mark.parametrize("name", ["isfinite", "isinf", "isnan"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float32", "float64", "int64"])
def test_questions(name, dtype):
    if dtype.startswith("complex"):
        z = grid(SPECIAL).astype(dtype)
    else:
        z = np.array(SPECIAL if dtype.startswith("f") else [0, 1, -5], dtype)
    got = computed(name, z, dtype=bool)
    assert got.tolist() == [getattr(cmath, name)(item) for item in z.tolist()]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_polar_and_phase(dtype):
    @cuda.jit
    def kernel(z, out):
        i = cuda.grid(1)
        if i < z.size:
            out[i, 0], out[i, 1] = cmath.polar(z[i])
            out[i, 2] = cmath.phase(z[i])

    z = grid(SPECIAL).astype(dtype)
    part = z.real.dtype
    got = launch(kernel, 2, 64, z, np.zeros((z.size, 3), part))[1]
    expected = np.array([(*cmath.polar(item), cmath.phase(item)) for item in z.astype(complex)], part)
    np.testing.assert_allclose(got, expected, rtol=2 * np.finfo(part).eps, atol=0)
    assert (np.signbit(got) == np.signbit(expected))[~np.isnan(expected)].all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rect(dtype):
    r, phi = (part.ravel() for part in np.meshgrid(np.array(SPECIAL, dtype), np.array(SPECIAL, dtype)))
    expected = references(cmath.rect, r.astype(float), phi.astype(float))
    got = computed("rect", r, phi, dtype="complex64" if dtype == "float32" else "complex128")
    assert_parts(got, expected, 2, list(zip(r, phi, strict=True)), "rect")


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_log_to_a_base(dtype):
    parts = [0.5, -1.5, 2.0, math.pi]
    z, base = (part.ravel() for part in np.meshgrid(grid(parts), grid(parts)))
    z, base = z.astype(dtype), base.astype(dtype)
    expected = references(cmath.log, z.astype(complex), base.astype(complex))
    assert_parts(computed("log", z, base, dtype=dtype), expected, 8, z, "log")


def test_isclose():
    @cuda.jit
    def kernel(a, b, out):
        i = cuda.grid(1)
        if i < a.size:
            out[i, 0] = cmath.isclose(a[i], b[i])
            out[i, 1] = cmath.isclose(a[i], b[i], rel_tol=0.5)
            out[i, 2] = cmath.isclose(a[i], b[i], abs_tol=1.0)

    a, b = (
        part.ravel() for part in np.meshgrid(grid([0.0, 1.0, math.inf, math.nan]), grid([0.25, 1.0 + 1e-10, math.inf]))
    )
    got = launch(kernel, 3, 64, a, b, np.zeros((a.size, 3), bool))[2]
    expected = [
        (cmath.isclose(x, y), cmath.isclose(x, y, rel_tol=0.5), cmath.isclose(x, y, abs_tol=1.0))
        for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    np.testing.assert_array_equal(got, expected)


def test_constants():
    @cuda.jit
    def kernel(out, z):
        out[0], out[1], out[2], out[3], out[4] = cmath.pi, cmath.e, cmath.tau, cmath.inf, cmath.nan
        z[0], z[1] = cmath.infj, cmath.nanj

    out, z = launch(kernel, 1, 1, np.zeros(5), np.zeros(2, complex))
    np.testing.assert_array_equal(out, [cmath.pi, cmath.e, cmath.tau, cmath.inf, cmath.nan])
    np.testing.assert_array_equal(z, np.array([cmath.infj, cmath.nanj]))


def test_parts_of_quotients_that_cancel_are_positive_zeros():
    @cuda.jit
    def kernel(z, out):
        i = cuda.grid(1)
        out[i] = z[i] / z[i]

    z = np.array([1 + 2j, 2 + 1j, -1 + 2j, 1 - 2j, -1 - 2j, -2 + 1j, 2j, 3 + 0j])
    *_, out = launch(kernel, 1, z.size, z, np.zeros_like(z))
    for got, value in zip(out, z.tolist(), strict=True):
        assert str(complex(got)) == str(value / value), value
