"""`cuda.libdevice`: values of all kinds of functions, except those with a rounding mode (test_rounding.py)."""

import math
from fractions import Fraction

import numpy as np
import pytest
from harness import assert_exact, launch, module, ulps
from special_values import ORDERS, VALUES
from weft.cuda import libdevice


def of(call, args, results):
    """The results of a call for arrays of arguments `a0`, `a1`: one array for each result dtype."""
    params = [f"a{k}" for k in range(len(args))]
    outs = [f"r{k}" for k in range(len(results))]
    for name in reversed(params):
        call = call.replace(name, f"{name}[i]")
    kernel = module(f"""
        from weft import cuda
        from weft.cuda import libdevice

        @cuda.jit
        def calls({", ".join(params + outs)}):
            i = cuda.grid(1)
            if i < a0.size:
                {", ".join(f"{name}[i]" for name in outs)} = libdevice.{call}
    """).calls
    size = args[0].size
    got = launch(kernel, (size + 63) // 64, 64, *args, *[np.zeros(size, dtype) for dtype in results])
    return got[len(args) :]


# The largest error of a function in units in the last place. For Bessel functions, the error is absolute near their
# zeros, where the relative error is unbounded.
ULPS = {"erfcinv": 4, "normcdfinv": 5, "erfcx": 9, "normcdf": 8, "sinpi": 2, "cospi": 2, "exp10": 2}


@pytest.mark.parametrize("name", sorted(VALUES))
@pytest.mark.parametrize("single", [False, True])
def test_special_functions(name, single):
    x, want = (np.array([float.fromhex(pair[k]) for pair in VALUES[name]]) for k in range(2))
    if single:
        # On float32 these functions are computed in float64 and rounded.
        near = x[(np.abs(x) > 1e-30) & (np.abs(x) < 1e30)].astype(np.float32)
        exact = of(f"{name}(a0)", [near.astype(np.float64)], [np.float64])[0]
        near, exact = near[np.abs(exact) < 1e38], exact[np.abs(exact) < 1e38]
        got = of(f"{name}f(a0)", [near], [np.float32])[0]
        assert ulps(got, exact).max(initial=0) <= 2
        return
    got = of(f"{name}(a0)", [x], [np.float64])[0]
    if name[0] in "jy":
        off = np.abs(got - want) / np.maximum(np.abs(want), 1e-1 if name[0] == "j" else 1)
        assert off.max() <= 4e-15, (x[off.argmax()], off.max())
    else:
        off = ulps(got, want)
        assert off.max() <= ULPS.get(name, 3), (x[off.argmax()], got[off.argmax()], off.max())


@pytest.mark.parametrize("name", ["jn", "yn"])
def test_bessel_functions_of_an_order(name):
    order = np.array([row[0] for row in ORDERS[name]], np.int32)
    x, want = (np.array([float.fromhex(row[k]) for row in ORDERS[name]]) for k in (1, 2))
    got = of(f"{name}(a0, a1)", [order, x], [np.float64])[0]
    np.testing.assert_allclose(got, want, rtol=3e-13, atol=1e-16)
    minus = of(f"{name}(a0, a1)", [-order, x], [np.float64])[0]
    assert_exact(minus, np.where(order % 2, -got, got))
    if name == "jn":
        assert_exact(of("jn(a0, a1)", [order, -x], [np.float64])[0], minus)


SPECIAL = {
    "erfinv": [(1, np.inf), (-1, -np.inf), (2, np.nan), (-0.0, -0.0), (np.nan, np.nan)],
    "erfcinv": [(0, np.inf), (2, -np.inf), (-1, np.nan), (1, 0.0), (3, np.nan)],
    "erfcx": [(np.inf, 0.0), (-np.inf, np.inf), (0.0, 1.0), (np.nan, np.nan)],
    "normcdf": [(np.inf, 1.0), (-np.inf, 0.0), (0.0, 0.5), (np.nan, np.nan)],
    "normcdfinv": [(0.0, -np.inf), (1.0, np.inf), (0.5, 0.0), (-1.0, np.nan)],
    "sinpi": [(-0.0, -0.0), (1.0, 0.0), (-1.0, -0.0), (0.5, 1.0), (-2.5, -1.0), (np.inf, np.nan), (1e300, 0.0)],
    "cospi": [(-0.0, 1.0), (1.0, -1.0), (0.5, 0.0), (-1.5, 0.0), (1e300, 1.0), (np.nan, np.nan)],
    "j0": [(0.0, 1.0), (np.inf, 0.0), (-np.inf, 0.0), (np.nan, np.nan)],
    "j1": [(0.0, 0.0), (-0.0, -0.0), (np.inf, 0.0), (np.nan, np.nan)],
    "y0": [(0.0, -np.inf), (-1.0, np.nan), (np.inf, 0.0), (np.nan, np.nan)],
    "y1": [(0.0, -np.inf), (-1.0, np.nan), (np.inf, 0.0), (np.nan, np.nan)],
    "logb": [(0.0, -np.inf), (-np.inf, np.inf), (10.0, 3.0), (-0.25, -2.0), (5e-324, -1074.0), (np.nan, np.nan)],
    "round": [(0.5, 1.0), (-0.5, -1.0), (2.5, 3.0), (-0.3, -0.0), (0.49999999999999994, 0.0), (np.inf, np.inf)],
    "rsqrt": [(0.0, np.inf), (np.inf, 0.0), (-1.0, np.nan), (4.0, 0.5)],
    "rcbrt": [(-8.0, -0.5), (np.inf, 0.0), (0.0, np.inf)],
    "exp10": [(400.0, np.inf), (-400.0, 0.0), (2.0, 100.0), (np.nan, np.nan)],
    "nearbyint": [(0.5, 0.0), (1.5, 2.0), (-2.5, -2.0)],
    "rint": [(0.5, 0.0), (1.5, 2.0), (-2.5, -2.0)],
    "fabs": [(-0.0, 0.0), (-2.0, 2.0)],
}


@pytest.mark.parametrize("name", sorted(SPECIAL))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_special_values(name, dtype):
    pairs = np.array(SPECIAL[name], np.float64)
    if dtype is np.float32:
        # Values that float32 represents.
        kept = (
            np.isnan(pairs[:, 0])
            | np.isinf(pairs[:, 0])
            | (pairs[:, 0] == 0)
            | (np.abs(np.log2(np.abs(pairs[:, 0]) + 1e-300)) < 100)
        )
        pairs = pairs[kept & (pairs[:, 0] != 0.49999999999999994)]
    with np.errstate(all="ignore"):
        x, want = pairs[:, 0].astype(dtype), pairs[:, 1].astype(dtype)
    suffix = "" if dtype is np.float64 else "f"
    assert_exact(of(f"{name}{suffix}(a0)", [x], [dtype])[0], want)


def test_integers_of_an_exponent():
    x = np.array([0.0, np.nan, np.inf, -np.inf, 1.0, 0.75, -1e300, 5e-324])
    want = [-(2**31), -(2**31), 2**31 - 1, 2**31 - 1, 0, -1, 996, -1074]
    assert of("ilogb(a0)", [x], [np.int32])[0].tolist() == want


def test_two_results():
    x = np.concatenate([np.random.default_rng(1).normal(size=60) * 9, [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324]])
    for suffix, dtype, rtol in (("", np.float64, 4e-15), ("f", np.float32, 2e-6)):
        y = x.astype(dtype)
        with np.errstate(all="ignore"):
            sine, cosine = of(f"sincos{suffix}(a0)", [y], [dtype, dtype])
            np.testing.assert_allclose(sine, np.sin(y), rtol=rtol, atol=1e-30)
            np.testing.assert_allclose(cosine, np.cos(y), rtol=rtol)
            sine, cosine = of(f"sincospi{suffix}(a0)", [y], [dtype, dtype])
            assert_exact(sine, of(f"sinpi{suffix}(a0)", [y], [dtype])[0])
            assert_exact(cosine, of(f"cospi{suffix}(a0)", [y], [dtype])[0])
            fraction, whole = of(f"modf{suffix}(a0)", [y], [dtype, dtype])
            assert_exact(fraction, np.modf(y)[0])
            assert_exact(whole, np.modf(y)[1])
            fraction, power = of(f"frexp{suffix}(a0)", [y], [dtype, np.int32])
        finite = np.isfinite(y)
        assert_exact(fraction, np.frexp(y)[0])
        assert (power[finite] == np.frexp(y)[1][finite]).all()
    sine, cosine = of("fast_sincosf(a0)", [x[:20].astype(np.float32)], [np.float32, np.float32])
    np.testing.assert_allclose(sine, np.sin(x[:20]), atol=2e-5)
    np.testing.assert_allclose(cosine, np.cos(x[:20]), atol=2e-5)


def test_remquo():
    rng = np.random.default_rng(8)
    x = np.concatenate(
        [rng.normal(size=80) * 50, rng.normal(size=20) * 1e300, [5.0, 7.0, -5.0, 0.0, -0.0, 3.5, 5e-323, 1e-320]]
    )
    y = np.concatenate(
        [rng.normal(size=80), rng.normal(size=20) * 1e300, [2.0, 2.0, 2.0, 3.0, 3.0, 1.0, 3.5e-323, 3e-323]]
    )
    rest, quotient = of("remquo(a0, a1)", [x, y], [np.float64, np.int32])
    for a, b, got, bits in zip(x, y, rest, quotient, strict=True):
        assert got == math.remainder(a, b)
        assert math.copysign(1, got) == math.copysign(1, math.remainder(a, b))
        exact = round(Fraction(a) / Fraction(b))
        assert abs(int(bits)) == abs(exact) % 8
        assert bits == 0 or (bits < 0) == (exact < 0)
    bad = [np.array([np.nan, 1.0, np.inf, 1.0, 3.0]), np.array([1.0, np.nan, 1.0, 0.0, np.inf])]
    rest = of("remquo(a0, a1)", bad, [np.float64, np.int32])[0]
    assert np.isnan(rest[:4]).all()
    assert rest[4] == 3.0


def word(call, *args, result=np.int32):
    arrays = [np.array([arg], np.int64 if abs(int(arg)) >= 2**31 else np.int32) for arg in args]
    return int(of(call, arrays, [result])[0][0])


def test_integers():
    top = 2**31 - 1
    assert word("abs(a0)", -5) == 5
    assert word("abs(a0)", -top - 1) == -top - 1
    assert word("brev(a0)", 1) == -top - 1
    assert word("brevll(a0)", 1, result=np.int64) == -(2**63)
    assert word("clz(a0)", 1) == 31
    assert word("clz(a0)", 0) == 32
    assert word("clzll(a0)", 1) == 63
    assert word("ffs(a0)", 12) == 3
    assert word("ffs(a0)", 0) == 0
    assert word("ffsll(a0)", 2**40) == 41
    assert word("popc(a0)", -1) == 32
    assert word("popcll(a0)", -1) == 64
    assert word("byte_perm(a0, a1, a2)", 0x33221100, 0x77665544, 0x7531) == 0x77553311
    assert word("byte_perm(a0, a1, a2)", 0x33221100, 0x77665544, 0x89AB) == 0x00112233
    assert word("sad(a0, a1, a2)", -5, 7, 100) == 112
    assert word("usad(a0, a1, a2)", -1, 1, 0) == -2
    assert word("hadd(a0, a1)", top, top - 1) == top - 1
    assert word("hadd(a0, a1)", -3, 0) == -2
    assert word("uhadd(a0, a1)", -1, -3) == -2
    assert word("rhadd(a0, a1)", -3, 0) == -1
    assert word("urhadd(a0, a1)", -1, -2) == -1
    assert word("max(a0, a1)", -1, 1) == 1
    assert word("umax(a0, a1)", -1, 1) == -1
    assert word("min(a0, a1)", -1, 1) == -1
    assert word("umin(a0, a1)", -1, 1) == 1
    assert word("llmax(a0, a1)", -1, 2**40, result=np.int64) == 2**40
    assert word("ullmin(a0, a1)", -1, 2**40, result=np.int64) == 2**40
    assert word("mul24(a0, a1)", 0x00FFFFFF, 5) == -5
    assert word("umul24(a0, a1)", 0x01FFFFFF, 5) == 0xFFFFFF * 5
    assert word("mulhi(a0, a1)", -1, 5) == -1
    assert word("umulhi(a0, a1)", -1, 5) == 4
    assert word("mul64hi(a0, a1)", -1, 5, result=np.int64) == -1
    assert word("umul64hi(a0, a1)", -1, 5, result=np.int64) == 4
    assert word("llabs(a0)", -(2**40), result=np.int64) == 2**40


def test_bits():
    x = np.array([1.5, -0.0, np.inf, -2.25e-310])
    bits = x.view(np.int64)
    assert (of("double_as_longlong(a0)", [x], [np.int64])[0] == bits).all()
    assert_exact(of("longlong_as_double(a0)", [bits], [np.float64])[0], x)
    high = of("double2hiint(a0)", [x], [np.int32])[0]
    low = of("double2loint(a0)", [x], [np.int32])[0]
    assert (high == (bits >> 32)).all()
    assert (low == bits.astype(np.int32)).all()
    assert_exact(of("hiloint2double(a0, a1)", [high, low], [np.float64])[0], x)
    y = x.astype(np.float32)
    assert (of("float_as_int(a0)", [y], [np.int32])[0] == y.view(np.int32)).all()
    assert_exact(of("int_as_float(a0)", [y.view(np.int32)], [np.float32])[0], y)
    halves = np.array([1.5, 65504, 1e-7, 3.0001, 1e6], np.float32)
    with np.errstate(over="ignore"):
        wanted = halves.astype(np.float16)
    got = of("float2half_rn(a0)", [halves], [np.int16])[0]
    assert (got == wanted.view(np.int16)).all()
    assert_exact(of("half2float(a0)", [got], [np.float32])[0], wanted.astype(np.float32))
    z = np.array([1.0, -0.0, -3.0, np.inf, -np.inf, np.nan])
    assert of("signbitd(a0)", [z[:5]], [np.int32])[0].tolist() == [0, 1, 1, 0, 1]
    assert of("isinfd(a0)", [z], [np.int32])[0].tolist() == [0, 0, 0, 1, 1, 0]
    assert of("isnand(a0)", [z], [np.int32])[0].tolist() == [0, 0, 0, 0, 0, 1]
    assert of("isfinited(a0)", [z], [np.int32])[0].tolist() == [1, 1, 1, 0, 0, 0]
    assert of("finitef(a0)", [z.astype("f4")], [np.int32])[0].tolist() == [1, 1, 1, 0, 0, 0]


def test_of_two_numbers():
    x, y = np.meshgrid([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan], [0.0, -0.0, 1.5, 3.0, np.inf, np.nan])
    x, y = x.ravel(), y.ravel()
    with np.errstate(all="ignore"):
        dim = np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(x > y, x - y, 0.0))
    assert_exact(of("fdim(a0, a1)", [x, y], [np.float64])[0], dim)
    for name in ("fmax", "fmin"):
        got = of(f"{name}(a0, a1)", [x, y], [np.float64])[0]
        np.testing.assert_array_equal(got, getattr(np, name)(x, y))
    assert_exact(of("copysign(a0, a1)", [x, y], [np.float64])[0], np.copysign(x, y))
    n = np.array([0, 3, -2, 2000, -2000, 7], np.int32)
    base = np.array([np.nan, 1.5, 4.0, 1.5, 1.5, -2.0])
    with np.errstate(all="ignore"):
        power, scaled = np.float64(base) ** n, np.ldexp(base, n)
    np.testing.assert_allclose(of("powi(a0, a1)", [base, n], [np.float64])[0], power, rtol=1e-15)
    assert_exact(of("scalbn(a0, a1)", [base, n], [np.float64])[0], scaled)


def test_saturation_and_rounding_to_integers():
    x = np.array([-1.0, -0.0, 0.25, 1.0, 7.0, np.nan, np.inf, -np.inf], np.float32)
    assert_exact(of("saturatef(a0)", [x], [np.float32])[0], np.array([0, 0, 0.25, 1, 1, 0, 1, 0], np.float32))
    y = np.array([0.5, -0.5, 2.5, 1e30, np.nan, -1e30])
    assert of("llround(a0)", [y], [np.int64])[0].tolist() == [1, -1, 3, 2**63 - 1, 0, -(2**63)]
    assert of("llrint(a0)", [y], [np.int64])[0].tolist() == [0, 0, 2, 2**63 - 1, 0, -(2**63)]


def test_approximations():
    x = np.linspace(0.1, 3.0, 50).astype(np.float32)
    y = x[::-1].copy()
    for name, exact in (
        ("cosf", np.cos), ("sinf", np.sin), ("expf", np.exp), ("exp10f", lambda v: 10.0**v), ("log10f", np.log10),
        ("log2f", np.log2), ("logf", np.log), ("tanf", np.tan),
    ):  # fmt: skip
        got = of(f"fast_{name}(a0)", [x], [np.float32])[0]
        # Near the pole of the tangent, the error of the cosine dominates.
        wide = 1e-3 if name == "tanf" else 1e-5
        np.testing.assert_allclose(got, exact(x.astype(np.float64)), rtol=wide, atol=2e-6)
    np.testing.assert_allclose(of("fast_powf(a0, a1)", [x, y], [np.float32])[0], x.astype("f8") ** y, rtol=1e-5)
    np.testing.assert_allclose(of("fast_fdividef(a0, a1)", [x, y], [np.float32])[0], x / y, rtol=1e-6)


def test_names_are_numbas():
    assert len(libdevice.__all__) == 317
    assert "erfcinvf" in libdevice.__all__
    with pytest.raises(AttributeError):
        _ = libdevice.nan
