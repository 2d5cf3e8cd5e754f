"""Python's built-in functions over tuples and arrays, those about types, and the rarer functions of `math`."""

# ruff: noqa: B009, C409, E721, UP003 (the functions themselves are tested)
import math
from enum import Enum
from typing import NamedTuple

import numpy as np
import pytest
from harness import assert_exact, launch, module, run
from weft import cuda


@cuda.jit
def over_tuples(x, out, flags):
    i = cuda.grid(1)
    t = (x[i], x[i] * 2, 3)
    out[i, 0] = sum(t)
    out[i, 1] = sum(t, 10)
    out[i, 2] = min(t)
    out[i, 3] = max(t)
    out[i, 4], out[i, 5] = divmod(x[i], 3)
    out[i, 6] = math.prod(t)
    out[i, 7] = math.prod(t, start=2)
    flags[i, 0] = any(t)
    flags[i, 1] = all(t)
    flags[i, 2] = any(())
    flags[i, 3] = all(())
    flags[i, 4] = all((True, 1, "a"))
    flags[i, 5] = any((False, 0, x[i] > 2))


@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
def test_over_tuples(dtype):
    x = np.array([-4, 0, 1, 5, 7], dtype)
    out, flags = launch(over_tuples, 1, x.size, x, np.zeros((x.size, 8)), np.zeros((x.size, 6), bool))[1:]
    for k, value in enumerate(x.tolist()):
        t = (value, value * 2, 3)
        assert out[k].tolist() == [
            sum(t),
            sum(t, 10),
            min(t),
            max(t),
            *divmod(value, 3),
            math.prod(t),
            math.prod(t, start=2),
        ]
        assert flags[k].tolist() == [any(t), all(t), False, True, True, value > 2]


@cuda.jit
def over_arrays(a, out, flags):
    out[0] = sum(a)
    out[1] = sum(a, 100)
    out[2] = min(a)
    out[3] = max(a)
    out[4] = math.prod(a)
    flags[0] = any(a)
    flags[1] = all(a)


@pytest.mark.parametrize("a", [
    np.array([3, -1, 5], np.int8), np.array([2.5, 0.0, -4.0]), np.array([7], np.uint32),
    np.array([1.5, 2.0], np.float32),
    np.arange(20.0)[::-3], np.array([np.nan, 1.0, 2.0]), np.array([1.0, np.nan, 0.5]),
])  # fmt: skip
def test_over_arrays(a):
    out, flags = launch(over_arrays, 1, 1, a, np.zeros(5), np.zeros(2, bool))[1:]
    items = a.tolist()
    np.testing.assert_array_equal(out, [sum(items), sum(items, 100), min(items), max(items), math.prod(items)])
    assert flags.tolist() == [any(items), all(items)]


def test_sums_have_the_type_of_additions():
    @cuda.jit
    def kernel(a, b, out):
        out[0] = isinstance(sum(a), np.int64)
        out[1] = isinstance(sum((b[0], b[0]), b[0]), np.float32)
        out[2] = isinstance(sum((a[0], b[0])), float)

    assert launch(kernel, 1, 1, np.ones(2, np.int16), np.ones(2, np.float32), np.zeros(3, bool))[2].all()


@cuda.jit
def kind_of(x):
    """A branch that is not taken is not typed: strings have no sine."""
    if isinstance(x, str):
        return 1
    if isinstance(x, tuple):
        return 10 + len(x)
    if isinstance(x, np.ndarray):
        return 20 + x.ndim
    if isinstance(x, bool):
        return 2
    if isinstance(x, (int, np.integer)):
        return 3
    if isinstance(x, complex):
        return 5
    return 4 + math.floor(math.sin(x) * 0)


def test_isinstance():
    @cuda.jit
    def kernel(a, z, out):
        out[0] = kind_of("text")
        out[1] = kind_of((1, 2.5))
        out[2] = kind_of(a)
        out[3] = kind_of(a[0, 0] > 1)
        out[4] = kind_of(7)
        out[5] = kind_of(a[0, 0])
        out[6] = kind_of(z[0])
        out[7] = isinstance(a[0, 0], np.float32) + 2 * isinstance(a[0, 0], np.float64)
        out[8] = isinstance(np.int32(1), np.signedinteger) + 2 * isinstance(np.uint8(1), np.signedinteger)
        out[9] = isinstance(a[0, 0], type(a[0, 1]))

    got = launch(kernel, 1, 1, np.zeros((2, 2), np.float32), np.zeros(1, complex), np.zeros(10, int))[2]
    assert got.tolist() == [1, 12, 22, 2, 3, 4, 5, 1, 1, 1]


class Point(NamedTuple):
    x: float
    y: float


class Color(Enum):
    RED = 1
    GREEN = 2


def test_isinstance_of_classes():
    @cuda.jit
    def kernel(point, color, out):
        out[0] = isinstance(point, Point)
        out[1] = isinstance(point, tuple)
        out[2] = isinstance((1.0, 2.0), Point)
        out[3] = isinstance(color, Color)
        out[4] = isinstance(point, (Color, int))

    # `launch` copies named tuples to plain tuples.
    out = np.zeros(5, bool)
    kernel[1, 1](Point(1.0, 2.0), Color.RED, out)
    assert out.tolist() == [True, True, False, True, False]


def test_types_and_attributes():
    @cuda.jit
    def kernel(a, z, out):
        out[0] = type(a[0])(2.75)
        out[1] = type(1)(2.75)
        out[2] = hasattr(a, "shape") + 2 * hasattr(a, "nothing") + 4 * hasattr(a, "sum") + 8 * hasattr(z[0], "imag")
        out[3] = getattr(a, "size") + getattr(z[0], "imag") + getattr(a, "nothing", 100)
        out[4] = ord("x")
        out[5] = callable(math.sin) + 2 * callable(a)
        out[6] = float("2.5") + float(" -1e2 ") + int("12")
        out[7] = math.isinf(float("-Infinity")) + 2 * math.isnan(float("nan"))
        out[8] = len(tuple((1, 2, 3)))

    got = launch(kernel, 1, 1, np.zeros(3, np.int16), np.array([1 + 2j]), np.zeros(9))[2]
    assert got.tolist() == [2, 2, 13, 105, 120, 1, -85.5, 3, 3]


@cuda.jit
def numbers(x, y, out):
    i = cuda.grid(1)
    out[i, 0] = x[i].conjugate().real
    out[i, 1] = x[i].item()
    out[i, 2] = y[i].bit_count()
    out[i, 3] = y[i].conj()


def test_methods_of_numbers():
    x, y = np.array([1.5, -2.0]), np.array([-7, 255], np.int16)
    got = launch(numbers, 1, 2, x, y, np.zeros((2, 4)))[2]
    assert got.tolist() == [[1.5, 1.5, 3, -7], [-2, -2, 8, 255]]


@pytest.mark.parametrize(("dtype", "to"), [
    ("float32", "int32"), ("float32", "uint32"), ("float64", "int64"), ("int64", "float64"), ("uint32", "float32"),
    ("int8", "uint8"), ("uint16", "int16"), ("int16", "float16"), ("float16", "uint16"), ("float64", "float64"),
])  # fmt: skip
def test_bits_as_another_type(dtype, to):
    kernel = module(f"""
        import numpy as np
        from weft import cuda

        @cuda.jit
        def kernel(x, out, good):
            i = cuda.grid(1)
            out[i] = x[i].view(np.{to})
            good[i] = isinstance(x[i].view(np.{to}), np.{to})
        """).kernel
    x = np.array([0, 1, 2, 100, 0.5, -0.0, 1.5], np.float64).astype(dtype)
    x = np.concatenate([x, -x])
    out, good = launch(kernel, 1, x.size, x, np.zeros(x.size, to), np.zeros(x.size, bool))[1:]
    assert out.tobytes() == x.view(to).tobytes()
    assert good.all()


def test_python_types_of_numbers():
    @cuda.jit
    def kernel(x, y, out):
        out[0] = type(x[0]) is float
        out[1] = type(x[0]) == np.float64
        out[2] = type(y[0]) is float
        out[3] = type(1) is int
        out[4] = type(y[0]) in (np.float32, int)
        out[5] = type(x[0]) is not complex

    got = launch(kernel, 1, 1, np.ones(1), np.ones(1, np.float32), np.zeros(6, bool))[2]
    assert got.tolist() == [True, True, False, True, True, True]


INTEGERS = [
    0,
    1,
    2,
    3,
    4,
    8,
    15,
    24,
    25,
    26,
    99,
    2**31,
    2**52 - 1,
    2**53 + 1,
    3037000499**2,
    3037000499**2 - 1,
    2**63 - 1,
]


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_isqrt(dtype):
    x = np.array(INTEGERS + ([2**64 - 1, 4294967295**2, 4294967295**2 - 1] if dtype == "uint64" else []), dtype)

    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        out[i] = math.isqrt(x[i])

    got = launch(kernel, 1, x.size, x, np.zeros_like(x))[1]
    assert got.tolist() == [math.isqrt(n) for n in x.tolist()]


def test_combinations():
    @cuda.jit
    def kernel(n, k, out):
        i = cuda.grid(1)
        if i < n.size:
            out[i, 0] = math.comb(n[i], k[i])
            out[i, 1] = math.perm(n[i], k[i])
            out[i, 2] = math.perm(n[i])
            out[i, 3] = math.factorial(n[i])

    n, k = (part.ravel() for part in np.meshgrid(np.arange(21), np.arange(23)))
    got = launch(kernel, 8, 64, n, k, np.zeros((n.size, 4), np.int64))[2]
    expected = [
        (math.comb(a, b), math.perm(a, b), math.perm(a), math.factorial(a))
        for a, b in zip(n.tolist(), k.tolist(), strict=True)
    ]
    assert got.tolist() == [list(row) for row in expected]
    large = launch(kernel, 1, 3, np.array([60, 62, 66]), np.array([30, 31, 5]), np.zeros((3, 4), np.int64))[2]
    assert large[:, 0].tolist() == [math.comb(60, 30), math.comb(62, 31), math.comb(66, 5)]


def test_common_divisors():
    @cuda.jit
    def kernel(a, b, out):
        i = cuda.grid(1)
        out[i, 0] = math.gcd(a[i], b[i])
        out[i, 1] = math.lcm(a[i], b[i])
        out[i, 2] = math.gcd(a[i], b[i], 6)
        out[i, 3] = math.lcm(a[i], b[i], 10, 15)

    values = np.array([-12, 0, 1, 18, 35, -7])
    a, b = (part.ravel() for part in np.meshgrid(values, values))
    got = launch(kernel, 1, a.size, a, b, np.zeros((a.size, 4), np.int64))[2]
    for row, x, y in zip(got.tolist(), a.tolist(), b.tolist(), strict=True):
        assert row == [math.gcd(x, y), math.lcm(x, y), math.gcd(x, y, 6), math.lcm(x, y, 10, 15)]


FLOATS = [
    0.0,
    -0.0,
    1.0,
    -2.5,
    3e-320,
    1e300,
    2.0**-1074,
    1.7976931348623157e308,
    math.inf,
    -math.inf,
    math.nan,
    1 + 1e-10,
]


def test_close_and_last_bits():
    @cuda.jit
    def kernel(a, b, close, ulp):
        i = cuda.grid(1)
        if i < a.size:
            close[i, 0] = math.isclose(a[i], b[i])
            close[i, 1] = math.isclose(a[i], b[i], rel_tol=0.5)
            close[i, 2] = math.isclose(a[i], b[i], abs_tol=4.0)
            ulp[i] = math.ulp(a[i])

    a, b = (part.ravel() for part in np.meshgrid(FLOATS, FLOATS))
    close, ulp = launch(kernel, 3, 64, a, b, np.zeros((a.size, 3), bool), np.zeros(a.size))[2:]
    for k, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        assert close[k].tolist() == [
            math.isclose(x, y),
            math.isclose(x, y, rel_tol=0.5),
            math.isclose(x, y, abs_tol=4.0),
        ]
    assert_exact(ulp, np.array([math.ulp(x) for x in a.tolist()]))


def test_more_arguments():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        out[i, 0] = math.hypot(x[i], 2.0, 3.0)
        out[i, 1] = math.dist((x[i], 1.0, 2.0), (0.5, 4.0, -1.0))
        out[i, 2] = math.log(x[i], 3.0)
        out[i, 3] = math.cbrt(x[i])
        out[i, 4] = math.fma(x[i], x[i], -1.0)

    x = np.array([0.5, 1.0, 4.0, 1e10])
    got = launch(kernel, 1, 4, x, np.zeros((4, 5)))[1]
    expected = [
        (math.hypot(v, 2, 3), math.dist((v, 1, 2), (0.5, 4, -1)), math.log(v, 3), math.cbrt(v), math.fsum((v * v, -1)))
        for v in x
    ]
    np.testing.assert_allclose(got, expected, rtol=1e-15)


def test_an_overload_is_asked_for_by_the_user():
    """Errors in a call of a function that weft implements in Python are reported at the call."""
    from weft import errors

    for call, words in {
        "np.sum(x[0])": "no overload of `numpy.sum` takes (float64)",
        "np.maximum(x[0], 'a')": "no overload of `numpy.maximum` takes (float64, str)",
        "np.gcd(x[0], 2)": "no overload of `numpy.gcd` takes (float64, int64)",
        "np.trace(x)": "no overload of `numpy.trace` takes (array(float64, 1d, C))",
        "np.sin(x)": "`numpy.sin` of an array needs an array for the results",
        "np.sin(x, out=x[0])": "`numpy.sin` of an array needs an array for the results",
        "math.isclose(x[0], 1.0, tolerance=2)": "`math.isclose` has no parameter `tolerance`",
        "math.factorial(x[0])": "no overload of `math.factorial` takes (float64)",
        "isinstance(x, 5)": "no overload of `isinstance` takes",
    }.items():
        kernel = module(f"""
            import math
            import numpy as np
            from weft import cuda

            @cuda.jit
            def kernel(x):
                x[0] = {call}
            """).kernel
        with pytest.raises(errors.CompileError) as caught:
            kernel[1, 1](np.ones(3))
        text = str(caught.value)
        assert words in text, text
        assert "reductions.py" not in text
        assert "numpy.py" not in text


def test_names_are_found_where_they_come_from():
    source = """
        from math import isqrt
        from operator import add
        from cmath import sqrt
        from numpy import maximum, sum as total, argmax
        import numpy
        from weft import cuda

        @cuda.jit
        def kernel(x, out):
            out[0] = add(isqrt(17), maximum(x[0], x[1]))
            out[1] = sqrt(-4.0).imag
            out[2] = total(x)
            out[3] = argmax(x) + numpy.euler_gamma
        """
    got = launch(module(source).kernel, 1, 1, np.array([1.0, 5.0, 2.0]), np.zeros(4))[1]
    np.testing.assert_allclose(got, [9, 2, 8, 1 + np.euler_gamma])


def test_local_and_shared_arrays():
    @cuda.jit
    def kernel(x, out):
        part = cuda.shared.array(8, np.float64)
        i = cuda.threadIdx.x
        part[i] = x[i]
        cuda.syncthreads()
        mine = cuda.local.array(3, np.int32)
        for k in range(3):
            mine[k] = k * i
        out[i, 0] = part.sum()
        out[i, 1] = mine.max() + part[: i + 1].min()

    x = np.array([3.0, 1.0, 4.0, 1.5, 9.0, 2.0, 6.0, 0.5])
    run(kernel, 1, 8, x, np.zeros((8, 2)))
