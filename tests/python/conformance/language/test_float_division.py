"""`//`, `%`, `divmod` and `math.fmod` of floats are bit-identical to CPython's, for quotients of all magnitudes."""

import math

import numpy as np
import pytest
from weft import cuda

SPECIAL = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    5e-324,
    1e-45,
    2.0**-1022,
    2.0**-126,
    1e-310,
    1e-40,
    1.0,
    3.0,
    1e300,
    3e38,
]


def pairs(dtype):
    """Quotients of all magnitudes, integral quotients and those one ulp away, limits of ranges, and special numbers."""
    rng = np.random.default_rng(7)
    count, bits = 4000, 60 if dtype == "float64" else 30
    with np.errstate(all="ignore"):
        y = (rng.random(count) * 2.0 ** rng.integers(-60, 60, count)).astype(dtype)
        any_size = (y * 2.0 ** (rng.random(count) * bits * 2 - bits / 4)).astype(dtype)
        whole = (y * np.floor(2.0 ** (rng.random(count) * bits))).astype(dtype)
        steps = [np.nextafter(whole, np.asarray(end, dtype), dtype=dtype) for end in (0, np.inf)]
        beside = [np.nextafter(y, np.asarray(end, dtype), dtype=dtype) for end in (0, np.inf)]
        tiny = (rng.integers(1, 2000, count) * np.finfo(dtype).smallest_subnormal).astype(dtype)
        special = np.array([item for value in SPECIAL for item in (value, -value)], dtype)
    left, right = np.meshgrid(special, special)
    x = np.concatenate([any_size, whole, *steps, *beside, tiny, left.ravel()])
    y = np.concatenate([y, y, y, y, y, y, tiny[::-1], right.ravel()])
    signs = rng.integers(0, 4, x.size)
    return np.where(signs & 1, -x, x), np.where(signs & 2, -y, y)


def exact(x, y, dtype):
    """CPython's floor division and remainder, and C's `fmod`; for float32 with float32 operations."""
    number = np.dtype(dtype).type
    rows = np.zeros((x.size, 3), dtype)
    with np.errstate(all="ignore"):
        for i, (a, b) in enumerate(zip(x, y, strict=True)):
            if b == 0 or np.isnan(a) or np.isnan(b) or np.isinf(a):
                rows[i] = a / b if b == 0 else np.nan, np.nan, np.nan
                continue
            rest = cut = number(math.fmod(a, b))
            quotient = number(number(a - rest) / b)
            if rest and (b < 0) != (rest < 0):
                rest, quotient = number(rest + b), number(quotient - 1)
            elif not rest:
                rest = np.copysign(number(0), b)
            floor = np.floor(quotient)
            snapped = floor + 1 if quotient - floor > 0.5 else floor
            rows[i] = snapped if quotient else np.copysign(number(0), a / b), rest, cut
    return rows


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_division_is_cpythons(dtype):
    @cuda.jit
    def kernel(x, y, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i, 0] = x[i] // y[i]
            out[i, 1] = x[i] % y[i]
            out[i, 2] = math.fmod(x[i], y[i])
            q, r = divmod(x[i], y[i])
            out[i, 3] = q
            out[i, 4] = r

    x, y = pairs(dtype)
    out = np.zeros((x.size, 5), dtype)
    kernel[-(-x.size // 128), 128](x, y, out)
    want = exact(x, y, dtype)
    for column, of in enumerate([0, 1, 2, 0, 1]):
        got, expected = out[:, column], want[:, of]
        same = (got == expected) & (np.signbit(got) == np.signbit(expected)) | (np.isnan(got) & np.isnan(expected))
        wrong = np.flatnonzero(~same)[:5]
        assert not wrong.size, [(column, x[i], y[i], got[i], expected[i]) for i in wrong]
    if dtype == "float64":
        for i in range(0, x.size, 7):
            if y[i] and np.isfinite(x[i]):
                np.testing.assert_array_equal(divmod(float(x[i]), float(y[i])), want[i, :2])
