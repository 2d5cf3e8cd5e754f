"""`libdevice`'s arithmetic and conversions with a rounding mode, against exact rational numbers."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest
from harness import assert_exact, launch, module

MODES = ["rn", "rz", "rd", "ru"]


def neighbors(exact, dtype):
    """The largest float that is not above a rational number, and the smallest that is not below it."""
    info = np.finfo(dtype)
    most = Fraction(float(info.max)) if dtype != np.float64 else Fraction(*float(info.max).as_integer_ratio())
    if exact > most:
        return info.max, dtype(np.inf)
    if exact < -most:
        return dtype(-np.inf), info.min
    size = abs(exact)
    least = Fraction(*float(info.smallest_subnormal).as_integer_ratio())
    if size == 0:
        return dtype(0), dtype(0)
    # The exponent of the leading digit: 2 ** power <= size.
    power = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** power > size:
        power -= 1
    unit = max(Fraction(2) ** (power - info.nmant), least)
    low = exact // unit * unit
    high = low if low == exact else low + unit

    def exactly(value):
        if value == 0:
            return dtype(math.copysign(0.0, exact))
        return (
            dtype(np.inf)
            if value > most
            else dtype(-np.inf)
            if value < -most
            else dtype(value.numerator / value.denominator)
        )

    return exactly(low), exactly(high)


def rounded(exact, mode, dtype):
    """A rational number that is not 0, rounded."""
    info = np.finfo(dtype)
    low, high = neighbors(exact, dtype)
    if low == high:
        return low
    if mode == "rd":
        return low
    if mode == "ru":
        return high
    if mode == "rz":
        return low if exact > 0 else high
    # To nearest: infinity counts as the next number after the largest.
    beyond = Fraction(2) ** int(np.ceil(np.log2(float(info.max)) if dtype != np.float64 else 1024))

    def value(number):
        number = float(number)
        return Fraction(number) if math.isfinite(number) else (beyond if number > 0 else -beyond)

    below, above = exact - value(low), value(high) - exact
    if below != above:
        return low if below < above else high
    even = int(low.view(f"u{dtype().itemsize}")) % 2 == 0
    return low if even else high


def zero_of(values, mode, dtype):
    """The zero of a sum: negative if all numbers are, or if it is rounded down and they are not all positive."""
    signs = [math.copysign(1, value) for value in values]
    minus = all(sign < 0 for sign in signs) or (mode == "rd" and not all(sign > 0 for sign in signs))
    return dtype(-0.0) if minus else dtype(0.0)


def special(name, values, dtype):
    """The results for infinities, NaN and zero divisors, which do not depend on the mode."""
    values = [dtype(value) for value in values]
    with np.errstate(all="ignore"):
        if name == "add":
            return values[0] + values[1]
        if name == "sub":
            return values[0] - values[1]
        if name == "mul":
            return values[0] * values[1]
        if name == "div":
            return values[0] / values[1]
        if name == "rcp":
            return dtype(1) / values[0]
        if name == "sqrt":
            return np.sqrt(values[0])
        # If the product is finite, an infinite addend is the result.
        if all(math.isfinite(value) for value in values[:2]):
            return values[2]
        return values[0] * values[1] + values[2]


def root(exact, mode, dtype):
    """The rounded square root of a positive rational number, computed with integers."""
    shift = 2 * 1200
    scaled = (exact.numerator << shift) // exact.denominator
    whole = math.isqrt(scaled)
    inexact = whole * whole != scaled or (exact.numerator << shift) % exact.denominator
    # The error is far below the last digit.
    close = Fraction(2 * whole + bool(inexact), 2 << (shift // 2))
    return rounded(close, mode, dtype)


def expected(name, values, mode, dtype):
    """The exact result of finite numbers, rounded once."""
    if not all(math.isfinite(value) for value in values):
        return special(name, values, dtype)
    exact = [Fraction(float(value)) for value in values]
    if name in ("add", "sub"):
        if name == "sub":
            exact[1], values = -exact[1], (values[0], -values[1])
        total = exact[0] + exact[1]
        return rounded(total, mode, dtype) if total else zero_of(values, mode, dtype)
    if name == "mul":
        product = exact[0] * exact[1]
        return rounded(product, mode, dtype) if product else special(name, values, dtype)
    if name == "fma":
        total = exact[0] * exact[1] + exact[2]
        if total:
            return rounded(total, mode, dtype)
        product = math.copysign(1, values[0]) * math.copysign(1, values[1])
        if exact[2]:
            return zero_of((1.0, -1.0), mode, dtype)
        return zero_of((product, values[2]), mode, dtype)
    if name in ("div", "rcp"):
        top, bottom = (Fraction(1), exact[0]) if name == "rcp" else exact
        if not bottom or not top:
            return special(name, values, dtype)
        return rounded(top / bottom, mode, dtype)
    if exact[0] <= 0:
        return special(name, values, dtype)
    return root(exact[0], mode, dtype)


ARITY = {"add": 2, "sub": 2, "mul": 2, "div": 2, "rcp": 1, "sqrt": 1, "fma": 3}
CASES = [(name, dtype) for name in ARITY for dtype in ("float32", "float64") if (name, dtype) != ("sub", "float64")]


def arguments(arity, dtype):
    """Limits, numbers next to powers, subnormal numbers, ties, and random bits."""
    rng = np.random.default_rng(7)
    info = np.finfo(dtype)
    one, tiny, least, most = dtype(1), info.tiny, info.smallest_subnormal, info.max
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, one, -one, np.nextafter(one, dtype(2)), np.nextafter(one, dtype(0))]
    edges += [tiny, -tiny, least, -least, most, -most, info.eps, info.eps / 2, dtype(3), -dtype(7), most / 2]
    edges = np.array(edges, dtype)
    word = np.dtype(f"u{dtype().itemsize}")
    bits = rng.integers(0, np.iinfo(word).max, (400, arity), word)
    near = rng.normal(size=(400, arity)).astype(dtype)
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*[edges] * min(arity, 2))], 1)
    if arity == 3:
        grid = np.concatenate([grid, rng.choice(edges, (len(grid), 1))], 1)
    with np.errstate(invalid="ignore"):
        rows = np.concatenate([grid, bits.view(dtype), near])
    return [np.ascontiguousarray(rows[:, column]) for column in range(arity)]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_arithmetic(name, dtype):
    dtype = getattr(np, dtype)
    single = dtype == np.float32
    letter = ("fma" + "f" * single) if name == "fma" else ("f" if single else "d") + name
    values = arguments(ARITY[name], dtype)
    taken = ", ".join(f"a{k}[i]" for k in range(ARITY[name]))
    params = ", ".join(f"a{k}" for k in range(ARITY[name]))
    stores = "\n".join(
        f"                out[{row}, i] = libdevice.{letter}_{mode}({taken})" for row, mode in enumerate(MODES)
    )
    kernel = module(f"""
        from weft import cuda
        from weft.cuda import libdevice

        @cuda.jit
        def every_mode({params}, out):
            i = cuda.grid(1)
            if i < a0.size:
{stores}
    """).every_mode
    out = launch(kernel, (values[0].size + 63) // 64, 64, *values, np.zeros((4, values[0].size), dtype))[-1]
    for row, mode in enumerate(MODES):
        for number, got in enumerate(out[row]):
            args = tuple(column[number] for column in values)
            want = expected(name, args, mode, dtype)
            assert_exact(got, want, f"{letter}_{mode}{args}")


def integers(dtype):
    rng = np.random.default_rng(3)
    info = np.iinfo(dtype)
    edges = [info.min, info.max, info.max - 1, info.max // 2, 0, 1, 2**24 + 1, 2**24 - 1, 2**25 + 3]
    if info.bits == 64:
        edges += [2**53 + 1, 2**53 - 1, 2**54 + 3, 2**62 + 1, info.max - 1023, info.max - 512]
    some = rng.integers(info.min, info.max, 300, dtype, endpoint=True)
    return np.concatenate([np.array(edges, dtype), some, some >> rng.integers(0, info.bits - 1, 300).astype(dtype)])


CONVERSIONS = [
    ("int2float", "int32", "float32"),
    ("uint2float", "uint32", "float32"),
    ("ll2float", "int64", "float32"),
    ("ull2float", "uint64", "float32"),
    ("ll2double", "int64", "float64"),
    ("ull2double", "uint64", "float64"),
    ("double2float", "float64", "float32"),
]


@pytest.mark.parametrize(("name", "source", "target"), CONVERSIONS)
def test_conversions(name, source, target):
    target = getattr(np, target)
    if source == "float64":
        with np.errstate(invalid="ignore"):
            values = np.concatenate([arguments(1, np.float64)[0], arguments(1, np.float32)[0].astype(np.float64) * 1.1])
        values = np.concatenate(
            [values, np.ldexp(np.random.default_rng(1).normal(size=200), -140), [3.4028235677973366e38]]
        )
    else:
        values = integers(source)
    stores = "\n".join(
        f"                out[{row}, i] = libdevice.{name}_{mode}(x[i])" for row, mode in enumerate(MODES)
    )
    kernel = module(f"""
        from weft import cuda
        from weft.cuda import libdevice

        @cuda.jit
        def every_mode(x, out):
            i = cuda.grid(1)
            if i < x.size:
{stores}
    """).every_mode
    out = launch(kernel, (values.size + 63) // 64, 64, values, np.zeros((4, values.size), target))[-1]
    for row, mode in enumerate(MODES):
        for got, value in zip(out[row], values, strict=True):
            if (source == "float64" and not math.isfinite(value)) or value == 0:
                want = target(value)
            else:
                want = rounded(Fraction(value.item()), mode, target)
            assert_exact(got, want, f"{name}_{mode}({value!r})")


FROM_FLOATS = [
    (f"{source}2{short}", dtype, target)
    for source, dtype in (("float", "float32"), ("double", "float64"))
    for short, target in (("int", "int32"), ("uint", "uint32"), ("ll", "int64"), ("ull", "uint64"))
]


@pytest.mark.parametrize(("name", "source", "target"), FROM_FLOATS)
def test_integers_of_floats(name, source, target):
    source, info = getattr(np, source), np.iinfo(target)
    signed = np.int32 if info.bits == 32 else np.int64
    rng = np.random.default_rng(2)
    edges = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, 1e30, -1e30, np.inf, -np.inf, np.nan]
    edges += [float(info.max), float(info.min), float(info.max // 2), 8388609.5, 4503599627370497.5]
    values = np.concatenate([edges, rng.normal(size=100) * 100, rng.normal(size=100) * 2.0**info.bits]).astype(source)
    stores = "\n".join(
        f"                out[{row}, i] = libdevice.{name}_{mode}(x[i])" for row, mode in enumerate(MODES)
    )
    kernel = module(f"""
        from weft import cuda
        from weft.cuda import libdevice

        @cuda.jit
        def every_mode(x, out):
            i = cuda.grid(1)
            if i < x.size:
{stores}
    """).every_mode
    out = launch(kernel, 4, 64, values, np.zeros((4, values.size), signed))[-1]
    to = {"rn": round, "rz": math.trunc, "rd": math.floor, "ru": math.ceil}
    for row, mode in enumerate(MODES):
        for got, value in zip(out[row].view(target), values, strict=True):
            if math.isnan(value):
                want = 0
            elif math.isinf(value):
                want = info.max if value > 0 else info.min
            else:
                want = min(max(to[mode](Fraction(float(value))), info.min), info.max)
            assert got == want, f"{name}_{mode}({value!r})"


def test_reciprocal_roots_are_rounded_to_nearest():
    rng = np.random.default_rng(4)
    values = np.abs(rng.integers(1, 0x7F800000, 3000, np.uint32).view(np.float32))
    kernel = module("""
        from weft import cuda
        from weft.cuda import libdevice

        @cuda.jit
        def roots(x, out):
            i = cuda.grid(1)
            if i < x.size:
                out[i] = libdevice.frsqrt_rn(x[i])
    """).roots
    out = launch(kernel, 47, 64, values, np.zeros_like(values))[1]
    for got, value in zip(out, values, strict=True):
        assert got == root(1 / Fraction(float(value)), "rn", np.float32)


@pytest.mark.parametrize("text", ["round(x[0])", "int(math.floor(x[0]))", "int(math.ceil(x[0]))"])
def test_nan_is_looked_for_before_the_rounding(text):
    """The conversion is then the only use of the rounded value, and ptxas fuses both to one instruction."""
    source = f"import math\nfrom weft import cuda\n\n@cuda.jit\ndef kernel(x, out):\n    out[0] = {text}\n"
    ptx = module(source).kernel.inspect_asm("void(float64[::1], int64[::1])", target="sm_90")
    rounded, given = re.search(r"cvt\.r[nmp]i\.f64\.f64\s+(%\w+), (%\w+);", ptx).groups()
    assert re.search(rf"setp\.nan\.f64\s+%\w+, {given}, {given};", ptx), ptx
    assert len(re.findall(rf"{rounded}\b", ptx)) == 2, ptx
