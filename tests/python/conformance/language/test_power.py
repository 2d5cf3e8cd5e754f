"""`**` with an integer exponent: exponentiation by squaring, bit-exact, for constant and other exponents."""

import operator

import numpy as np
import pytest
from weft import cuda

EXPONENTS = [0, 1, 2, 3, 8, 9, 12, 31, 100, 65535, 65536, -1, -2, -3, -6, -12, -100, -65536]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 5e-324, 1e-45, -1e-40, 3e-30, 2e19, 1e200, -1e-200]


def bases(dtype):
    rng = np.random.default_rng(3)
    many = rng.random(300) * 4 - 2
    near = 1 + (rng.random(200) - 0.5) * 2.0 ** -rng.integers(1, 20, 200)
    with np.errstate(over="ignore"):
        return np.concatenate([many, near, SPECIAL]).astype(dtype)


def products(x, exponent, dtype):
    """The result of exponentiation by squaring, with each product rounded to the type."""
    result, square, left = np.ones(x.shape, dtype), x.astype(dtype), abs(exponent)
    with np.errstate(all="ignore"):
        while left:
            if left & 1:
                result = result * square
            left >>= 1
            square = square * square
        return result if exponent >= 0 else dtype.type(1) / result


def same(got, want):
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    number = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]))


def run(kernel, x, out, *args):
    kernel[-(-x.size // 64), 64](x, out, *args)
    return out


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_known_exponents_of_floats_multiply(dtype, exponent):
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = x[i] ** exponent

    wide = np.dtype("float32" if dtype == "float16" else dtype)
    x = bases(dtype)
    same(run(kernel, x, np.zeros(x.size, wide)), products(x, exponent, wide))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent_type", ["int8", "int32", "int64", "uint64"])
def test_exponents_that_are_not_known_multiply_in_the_same_order(dtype, exponent_type):
    @cuda.jit
    def kernel(x, out, n):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = x[i] ** n[0]

    dtype, x = np.dtype(dtype), bases(dtype)
    info = np.iinfo(exponent_type)
    for exponent in EXPONENTS:
        if info.min <= exponent <= info.max:
            n = np.array([exponent], exponent_type)
            same(run(kernel, x, np.zeros(x.size, dtype), n), products(x, exponent, dtype))


@pytest.mark.parametrize("exponent", [65537, -65537, 2**31, -(2**31), 2**63 - 1, -(2**63)])
def test_beyond_the_largest_exponent_it_is_the_power_of_floats(exponent):
    @cuda.jit
    def known(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = x[i] ** exponent

    @cuda.jit
    def read(x, out, n):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = x[i] ** n[0]

    x = np.array([1 + 2.0**-33, -1 - 2.0**-20, 0.5, -1.0, 0.0, -0.0, np.inf, np.nan])
    with np.errstate(all="ignore"):
        want = np.power(x, np.float64(exponent))
    for got in (run(known, x, np.zeros(8)), run(read, x, np.zeros(8), np.array([exponent]))):
        np.testing.assert_allclose(got, want, rtol=1e-14)


def test_all_ways_to_write_it():
    twelve = 12

    @cuda.jit(device=True)
    def power(x, n):
        return x**n

    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        if i < x.size:
            n = 12
            out[i, 0] = x[i] ** twelve
            out[i, 1] = x[i] ** n
            out[i, 2] = pow(x[i], 12)
            out[i, 3] = operator.pow(x[i], 12)
            y = x[i]
            y **= 12
            out[i, 4] = y
            out[i, 5] = power(x[i], 12)
            out[i, 6] = 1 / power(x[i], -12)
            out[i, 7] = operator.ipow(x[i], 12)

    x = 0.5 + np.random.default_rng(4).random(500)
    out = run(kernel, x, np.zeros((500, 8)))
    want = products(x, 12, np.dtype("f8"))
    for column in (0, 1, 2, 3, 4, 5, 7):
        np.testing.assert_array_equal(out[:, column], want)
    np.testing.assert_array_equal(out[:, 6], 1 / (1 / want))


def test_integers_wrap_and_have_no_fractions():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i, 0] = x[i] ** 12
            out[i, 1] = x[i] ** 65536
            out[i, 2] = x[i] ** 100003
            out[i, 3] = x[i] ** -1
            out[i, 4] = x[i] ** -12

    x = np.array([0, 1, -1, 2, -3, 7, 10**9, 2**62 + 1, -(2**63), 2**63 - 1])
    out = run(kernel, x, np.zeros((x.size, 5), "i8"))
    for base, row in zip(x.tolist(), out.tolist(), strict=True):
        want = [(pow(base, n, 2**64) + 2**63) % 2**64 - 2**63 for n in (12, 65536, 100003)]
        # The largest odd numbers are their own inverses modulo 2^64, but the quotient is still 0.
        fractions = [-(2**63)] * 2 if base == 0 else [base, abs(base)] if abs(base) == 1 else [0, 0]
        assert row == want + fractions
