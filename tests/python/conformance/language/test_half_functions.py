"""`cuda.fp16` and `cuda.bf16`: unary functions for all values, compared with exact results in the stated rounding."""

import math

import numpy as np
import pytest
from generators.halves import HALVES, all_values, blocks, middles, operands, rounded
from harness import assert_exact, launch, module

MODULES = {"float16": "fp16", "bfloat16": "bf16"}
INTEGERS = {"short": "int16", "ushort": "uint16", "int": "int32", "uint": "uint32", "ll": "int64", "ull": "uint64"}
MODES = ["rn", "rz", "rd", "ru"]

SOURCE = """
import weft
from weft import cuda
from weft.cuda import {module} as m
half = weft.{name}

@cuda.jit
def kernel(x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        a, b = half(x[i]), half(y[i])
{stores}
"""


def named(name, plain):
    """A function's name in its module: float16's has underscores where Numba has no short name."""
    return f"__{plain}" if name == "float16" else plain


def results(name, calls, x, y, dtype="float32"):
    """One column per call of a function of `a` and `b`."""
    stores = "\n".join(f"        out[i, {column}] = m.{call}" for column, call in enumerate(calls))
    kernel = module(SOURCE.format(module=MODULES[name], name=name, stores=stores)).kernel
    out = launch(kernel, blocks(x.size), 256, x, y, np.zeros((x.size, len(calls)), dtype))[2]
    return dict(zip(calls, out.T, strict=True))


@pytest.mark.parametrize("name", HALVES)
def test_arithmetic(name):
    x, y = operands(name)
    with np.errstate(all="ignore"):
        a, b = x.astype(np.float64), y.astype(np.float64)
        exact = {"hadd": a + b, "hsub": a - b, "hmul": a * b, "hdiv": a / b}
        saturated = {op: np.fmin(np.fmax(rounded(name, value), 0), 1) + np.float32(0) for op, value in exact.items()}
    expected = {f"{op}(a, b)": rounded(name, value) for op, value in exact.items()}
    expected |= {"hneg(a)": -x, "habs(a)": np.abs(x)}
    for op in ("hadd", "hsub", "hmul"):
        expected[f"{named(name, op + '_rn')}(a, b)"] = rounded(name, exact[op])
        expected[f"{named(name, op + '_sat')}(a, b)"] = saturated[op]
    got = results(name, list(expected), x, y)
    for call, value in expected.items():
        assert_exact(got[call], value, call)


def exact_fma(a, b, c):
    """For float64s whose product is exact: rounded to odd, so that a second rounding does no harm."""
    with np.errstate(all="ignore"):
        product = a * b
        total = product + c
        part = total - product
        error = (product - (total - part)) + (c - part)
        bits = total.view(np.int64)
        move = np.isfinite(error) & (error != 0) & (bits & 1 == 0)
        step = np.where((error < 0) == (total < 0), 1, -1)
    return np.where(move, bits + step, bits).view(np.float64)


@pytest.mark.parametrize("name", HALVES)
def test_fused_products(name):
    x, y = operands(name)
    kernel = module(f"""
import weft
from weft import cuda
from weft.cuda import {MODULES[name]} as m
half = weft.{name}

@cuda.jit
def kernel(x, y, z, out):
    i = cuda.grid(1)
    if i < x.size:
        a, b, c = half(x[i]), half(y[i]), half(z[i])
        out[i, 0] = m.hfma(a, b, c)
        out[i, 1] = m.{named(name, "hfma_sat")}(a, b, c)
        out[i, 2] = m.{named(name, "hfma_relu")}(a, b, c)
""").kernel
    with np.errstate(all="ignore"):
        near = rounded(name, -(x.astype(np.float64) * y.astype(np.float64)))
    for z in (np.roll(x, 12345), near, np.full(x.size, 2.0**-20, np.float32), np.full(x.size, -1.75, np.float32)):
        out = launch(kernel, blocks(x.size), 256, x, y, z, np.zeros((x.size, 3), np.float32))[3]
        with np.errstate(all="ignore"):
            exact = exact_fma(*(each.astype(np.float64) for each in (x, y, z)))
        expected = rounded(name, exact)
        assert_exact(out[:, 0], expected)
        assert_exact(out[:, 1], np.fmin(np.fmax(expected, 0), 1) + np.float32(0))
        assert_exact(out[:, 2], np.where(expected <= 0, np.float32(0), expected))


@pytest.mark.parametrize("name", HALVES)
def test_comparisons_and_extremes(name):
    x, y = operands(name)
    nan = np.isnan(x) | np.isnan(y)
    ordered = {"heq": x == y, "hne": (x != y) & ~nan, "hlt": x < y, "hle": x <= y, "hgt": x > y, "hge": x >= y}
    expected = {f"{op}(a, b)": value for op, value in ordered.items()}
    expected |= {f"{named(name, op + 'u')}(a, b)": value | nan for op, value in ordered.items()}
    expected[f"{named(name, 'hisnan')}(a)"] = np.isnan(x)
    got = results(name, list(expected), x, y, "bool")
    for call, value in expected.items():
        np.testing.assert_array_equal(got[call], value, call)
    expected = {f"{named(name, 'hisinf')}(a)": np.where(np.isinf(x), np.sign(x), 0)}
    for op, model in (("hmax", np.fmax), ("hmin", np.fmin)):
        # The signs of zeros differ.
        with np.errstate(all="ignore"):
            zero = x + y if op == "hmax" else -(-x - y)
        value = np.where((x == 0) & (y == 0), zero, model(x, y))
        expected[f"{op}(a, b)"] = value
        expected[f"{named(name, op + '_nan')}(a, b)"] = np.where(nan, np.float32(np.nan), value)
    got = results(name, list(expected), x, y)
    for call, value in expected.items():
        np.testing.assert_array_equal(got[call], value.astype(np.float32), call)
        kept = ~np.isnan(value) & ("hisinf" not in call)
        np.testing.assert_array_equal(np.signbit(got[call])[kept], np.signbit(value)[kept], call)


@pytest.mark.parametrize("name", HALVES)
def test_functions(name):
    x = all_values(name)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        exact = {
            "hsqrt": np.sqrt(wide), "hrcp": 1 / wide, "hfloor": np.floor(wide), "hceil": np.ceil(wide),
            "htrunc": np.trunc(wide), "hrint": np.rint(wide),
        }  # fmt: skip
        near = {
            "hlog": np.log(wide), "hlog2": np.log2(wide), "hlog10": np.log10(wide), "hexp": np.exp(wide),
            "hexp2": np.exp2(wide), "hexp10": np.power(10.0, wide), "htanh": np.tanh(wide),
            "htanh_approx": np.tanh(wide), "hrsqrt": 1 / np.sqrt(wide), "hsin": np.sin(wide), "hcos": np.cos(wide),
        }  # fmt: skip
    got = results(name, [f"{function}(a)" for function in (*exact, *near)], x, x)
    for function, value in exact.items():
        assert_exact(got[f"{function}(a)"], rounded(name, value), function)
    for function, value in near.items():
        expected, mine = rounded(name, value), got[f"{function}(a)"]
        # Sines of large bfloat16 values differ between libraries.
        keep = np.abs(wide) < 1e5 if function in ("hsin", "hcos") else np.ones(x.size, bool)
        same = (mine == expected) | (np.isnan(mine) & np.isnan(expected))
        assert same[keep].mean() > 0.999, function
        apart = keep & ~same
        unit = np.abs(expected[apart]) * 2.0 ** (-10 if name == "float16" else -7)
        least = float(all_values(name)[1])
        assert np.all(np.abs(mine[apart] - expected[apart]) <= np.maximum(unit, least)), function


def stepped(name, near, upward):
    """The next number of a type, up or down."""
    values = np.unique(all_values(name)[~np.isnan(all_values(name))])
    place = np.searchsorted(values, np.float32(near)) + (1 if upward else -1)
    # `np.unique` has merged both zeros.
    return values[place]


def directed(name, number, mode):
    """A Python float or int rounded with a mode, as float32."""
    if isinstance(number, int):
        excess = max(number.bit_length() - 53, 0)
        exact = float((number >> excess | (number & ((1 << excess) - 1) != 0)) << excess)
    else:
        exact = number
    near = rounded(name, np.array([exact]))[0]
    upward = {"rn": None, "rz": number < 0, "rd": False, "ru": True}[mode]
    # Python compares integers and floats exactly.
    if upward is None or math.isnan(near) or (float(near) >= number if upward else float(near) <= number):
        return near
    found = stepped(name, near, upward)
    return np.float32(math.copysign(found, number)) if found == 0 else found


def spelled(name, source, mode):
    """The name of a conversion to the type."""
    if name == "float16":
        return f"__{source}2half_{mode}"
    return f"{source}2bfloat16_{mode}"


@pytest.mark.parametrize("name", HALVES)
def test_floats_rounded_as_told(name):
    with np.errstate(all="ignore"):
        every = middles(name).astype(np.float32)
    x = np.concatenate([every[::331], every[-20:]])
    x = np.concatenate([x, -x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(-np.inf))])
    stores = "\n".join(
        f"        out[i, {column}] = m.{spelled(name, 'float', mode)}(x[i])" for column, mode in enumerate(MODES)
    )
    kernel = module(SOURCE.format(module=MODULES[name], name=name, stores=stores)).kernel
    out = launch(kernel, blocks(x.size), 256, x, x, np.zeros((x.size, 4), np.float32))[2]
    for column, mode in enumerate(MODES):
        expected = np.array([directed(name, number, mode) for number in x.tolist()], np.float32)
        assert_exact(out[:, column], expected, mode)


def ties(dtype):
    info = np.iinfo(dtype)
    near = [
        (tie << shift) + step
        for shift in range(56)
        for tie in (0x80, 0x81, 0x101, 0x801)
        for step in (-1, 0, 1, (tie << shift) >> 20)
    ]
    return sorted({n for each in near for n in (each, -each) if info.min <= n <= info.max} | {info.min, info.max, 0})


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("name", HALVES)
def test_integers_rounded_as_told(name, source):
    numbers = ties(INTEGERS[source])
    x = np.array(numbers, INTEGERS[source])
    stores = "\n".join(
        f"        out[i, {column}] = m.{spelled(name, source, mode)}(x[i])" for column, mode in enumerate(MODES)
    )
    kernel = module(SOURCE.format(module=MODULES[name], name=name, stores=stores)).kernel
    out = launch(kernel, blocks(x.size), 256, x, x, np.zeros((x.size, 4), np.float32))[2]
    for column, mode in enumerate(MODES):
        expected = np.array([directed(name, number, mode) for number in numbers], np.float32)
        np.testing.assert_array_equal(out[:, column], expected, mode)


ROUND = {"rn": round, "rz": math.trunc, "rd": math.floor, "ru": math.ceil}


@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize("target", [*INTEGERS, "char", "uchar"])
def test_halves_to_integers(name, target):
    dtype = (INTEGERS | {"char": "int8", "uchar": "uint8"})[target]
    info = np.iinfo(dtype)
    modes = ["rz"] if "char" in target else MODES
    prefix = "__half2" if name == "float16" else "bfloat162"
    x = all_values(name)
    got = results(name, [f"{prefix}{target}_{mode}(a)" for mode in modes], x, x, dtype)
    of_nan = {"ll": int(info.min), "ull": 1 << 63}.get(target, 0)
    for mode in modes:
        expected = [
            of_nan
            if math.isnan(value)
            else max(
                info.min, min(info.max, ROUND[mode](value) if math.isfinite(value) else int(value > 0) * 2**65 - 2**64)
            )
            for value in x.tolist()
        ]
        np.testing.assert_array_equal(got[f"{prefix}{target}_{mode}(a)"], np.array(expected, dtype), mode)


@pytest.mark.parametrize("name", HALVES)
def test_other_conversions(name):
    """Bits in both directions, float64 rounded once, float32 exactly; aliases of a function have the same results."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    values = all_values(name)
    if name == "float16":
        out = ["__half_as_ushort(m.__ushort_as_half(x[i]))", "__half_as_short(m.__short_as_half(weft.int16(x[i])))"]
        names = ["__double2half(y[i])", "__half2float(m.__double2half(y[i]))"]
    else:
        out = [
            "bfloat16_as_ushort(m.ushort_as_bfloat16(x[i]))",
            "bfloat16_as_int16(m.int16_as_bfloat16(weft.int16(x[i])))",
        ]
        names = [
            "double2bfloat16(y[i])", "float64_to_bfloat16(y[i])", "bfloat16_to_float32(m.double2bfloat16(y[i]))",
            "bfloat162float(m.double2bfloat16(y[i]))",
        ]  # fmt: skip
    got = results(name, out, bits, bits, "uint16")
    np.testing.assert_array_equal(got[out[0]], bits)
    np.testing.assert_array_equal(got[out[1]], bits)
    wide = middles(name)
    got = results(name, names, wide, wide)
    for call in names:
        assert_exact(got[call], rounded(name, wide), call)
    assert not np.isnan(values[0])


def test_names_of_bfloat16_conversions_are_aliases():
    x = np.array([1.00390625, -3.3, 1e30, 0.1], np.float32)
    pairs = [
        ("float2bfloat16(x[i])", "float32_to_bfloat16(x[i])"),
        ("float2bfloat16_ru(x[i])", "float32_to_bfloat16_ru(x[i])"),
        ("int2bfloat16_rz(weft.int32(x[i]))", "int32_to_bfloat16_rz(weft.int32(x[i]))"),
        ("ull2bfloat16_ru(weft.uint64(x[i]))", "uint64_to_bfloat16_ru(weft.uint64(x[i]))"),
        ("bfloat162short_rd(a)", "bfloat16_to_int16_rd(a)"),
        ("bfloat162uchar_rz(a)", "bfloat16_to_uint8_rz(a)"),
    ]
    got = results("bfloat16", [call for pair in pairs for call in pair], x, x)
    for first, second in pairs:
        np.testing.assert_array_equal(got[first], got[second])
