"""`cuda.libdevice`: the statements of its accuracy page about functions that are not measured.

Some functions are bit-identical to other ones. Some are exact, and compared here with models in NumPy and Python
integers. test_rounding.py compares those with a rounding mode with rational numbers.
"""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from accuracy import libdevice as table
from accuracy.functions import FUNCTIONS
from harness import assert_exact, launch, module
from weft.cuda import libdevice

BITS = {np.float32: np.uint32, np.float64: np.uint64}


def of(call, args, results):
    """The results of an expression of `a0`, `a1` for arrays of arguments: one array for each result dtype."""
    params = [f"a{k}" for k in range(len(args))]
    outs = [f"r{k}" for k in range(len(results))]
    loads = "\n".join(f"                {name} = xs{name}[i]" for name in params)
    kernel = module(f"""
        import math
        from weft import cuda
        from weft.cuda import libdevice

        @cuda.jit
        def calls({", ".join([*("xs" + name for name in params), *outs])}):
            i = cuda.grid(1)
            if i < r0.size:
{loads}
                {", ".join(f"{name}[i]" for name in outs)} = {call}
    """).calls
    size = args[0].size
    got = launch(kernel, (size + 127) // 128, 128, *args, *[np.zeros(size, dtype) for dtype in results])
    return got[len(args) :]


def floats(dtype, count=3000, seed=5):
    """Edge cases of a type and adjacent numbers, ties, integers, random bits and normal numbers."""
    rng = np.random.default_rng(seed)
    info = np.finfo(dtype)
    near = [
        1.0,
        0.5,
        1.5,
        2.5,
        3.5,
        8388607.5,
        8388608.0,
        4503599627370495.5,
        2.0**31,
        2.0**32,
        2.0**63,
        2.0**64,
        2.0**53,
    ]
    near = np.array([*near, info.tiny, info.max / 2, 65504, 65519.99, 2.0**-14, 2.0**-24], dtype)
    edges = np.array([0.0, np.inf, np.nan, info.max, info.smallest_subnormal, *near], dtype)
    with np.errstate(all="ignore"):
        edges = np.concatenate([edges, np.nextafter(near, dtype(np.inf)), np.nextafter(near, dtype(0))])
        bits = rng.integers(0, np.iinfo(BITS[dtype]).max, count // 2, BITS[dtype], endpoint=True).view(dtype)
        # NumPy's functions are inconsistent for signaling NaNs.
        bits[np.isnan(bits)] = np.nan
        usual = np.concatenate([rng.normal(size=count // 4) * 100, np.rint(rng.normal(size=count // 4) * 100) / 2])
    return np.concatenate([edges, -edges, bits, usual.astype(dtype)])


def pairs_of_floats(dtype):
    """All pairs of edge cases, and random pairs, including equal numbers."""
    edges = floats(dtype, 0)
    first, second = (column.ravel() for column in np.meshgrid(edges, edges))
    more = floats(dtype, 3000, 6)
    return np.concatenate([first, more, more]), np.concatenate([second, more[::-1], more])


def integers(dtype, count, seed=9):
    """Limits of a type, powers of two and adjacent numbers, and random numbers of all magnitudes."""
    rng = np.random.default_rng(seed)
    info = np.iinfo(dtype)
    powers = [2**k + step for k in range(info.bits - 1) for step in (-1, 0, 1)]
    edges = [info.min, info.max, info.min + 1, *powers, *(-power for power in powers)]
    edges = np.array(sorted({edge for edge in edges if info.min <= edge <= info.max}), dtype)
    drawn = rng.integers(info.min, info.max, count, dtype, endpoint=True)
    return np.concatenate([edges, drawn >> rng.integers(0, info.bits, count).astype(dtype)])


def several_integers(dtype, arity):
    """Columns of integers: all for one argument, shuffled combinations for two or three."""
    columns = [integers(dtype, 2000, 9)]
    for seed in range(1, arity):
        rng = np.random.default_rng(seed)
        columns.append(rng.permutation(columns[0]))
    return columns


# ---- aliases ---------------------------------------------------------------------------------------------------------


def arguments_of(function, dtype):
    if function.arity == 1:
        return [floats(dtype)]
    return list(pairs_of_floats(dtype))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", sorted(table.OF_MATH))
def test_what_math_has_is_the_same(name, dtype):
    function = next(each for each in FUNCTIONS if each.name == table.OF_MATH[name])
    args = arguments_of(function, dtype)
    params = ", ".join(f"a{k}" for k in range(len(args)))
    called = name if dtype is np.float64 else name + "f"
    mine, maths = of(f"libdevice.{called}({params}), math.{table.OF_MATH[name]}({params})", args, [dtype, dtype])
    assert_exact(mine, maths)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", sorted(table.PAIRS))
def test_two_results_are_those_of_two_functions(name, dtype):
    suffix = "" if dtype is np.float64 or name.startswith("fast") else "f"
    if dtype is np.float64 and name.startswith("fast"):
        pytest.skip("of float32 alone")
    one, other = table.PAIRS[name]
    args = [floats(dtype)]
    first, second = of(f"libdevice.{name}{suffix}(a0)", args, [dtype, dtype])
    assert_exact(first, of(f"libdevice.{one}{suffix}(a0)", args, [dtype])[0])
    assert_exact(second, of(f"libdevice.{other}{suffix}(a0)", args, [dtype])[0])


# ---- exact functions -------------------------------------------------------------------------------------------------


def saturated(values, dtype):
    """Converts floats that are integers, NaN or infinite to the nearest integer of a type."""
    info = np.iinfo(dtype)
    found = [
        0 if math.isnan(value) else info.min if value < info.min else info.max if value > info.max else int(value)
        for value in map(float, values)
    ]
    return np.array(found, dtype)


def away(x):
    """Rounds to the nearest integer, ties away from zero."""
    whole = np.trunc(x)
    half = np.abs(x - whole) >= 0.5
    return np.copysign(np.where(np.isfinite(x), whole + np.where(half, np.copysign(1, x), 0), x), x).astype(x.dtype)


def exponent(x):
    """The floor of the binary logarithm of each finite number."""
    return np.frexp(x)[1] - 1


def ilogb(x):
    low, high = -(2**31), 2**31 - 1
    return np.where((x == 0) | np.isnan(x), low, np.where(np.isinf(x), high, exponent(x))).astype(np.int32)


def logb(x):
    found = np.where(x == 0, -np.inf, np.where(np.isfinite(x), exponent(x), np.abs(x)))
    return found.astype(x.dtype)


def fdim(x, y):
    nan = np.isnan(x) | np.isnan(y)
    return np.where(nan, np.nan, np.where(x > y, x - y, 0)).astype(x.dtype)


def remquo(x, y):
    """By exact quotients. For NaN, an infinite dividend or a zero divisor, the remainder is NaN, and the bits are 0."""
    rest, bits = np.full_like(x, np.nan), np.zeros(x.size, np.int32)
    for place, (one, other) in enumerate(zip(map(float, x), map(float, y), strict=True)):
        if not math.isfinite(one) or math.isnan(other) or other == 0:
            continue
        rest[place] = math.remainder(one, other)
        if math.isinf(other):
            continue
        quotient = Fraction(one) / Fraction(other)
        # Only the last three bits of very large quotients are needed.
        size = round(abs(quotient)) % 8
        bits[place] = -size if quotient < 0 else size
    return rest, bits


# Functions of one float: the model on an array, and the types of the results (`x`: the argument's type).
OF_ONE = {
    "ceil": (np.ceil, "x"),
    "fabs": (np.abs, "x"),
    "floor": (np.floor, "x"),
    "frexp": (lambda x: (np.frexp(x)[0], np.where(np.isfinite(x), np.frexp(x)[1], 0)), "xi"),
    "ilogb": (ilogb, "i"),
    "llrint": (lambda x: saturated(np.rint(x), np.int64), "l"),
    "llround": (lambda x: saturated(away(x), np.int64), "l"),
    "logb": (logb, "x"),
    "modf": (np.modf, "xx"),
    "nearbyint": (np.rint, "x"),
    "rint": (np.rint, "x"),
    "round": (away, "x"),
    "trunc": (np.trunc, "x"),
}
OF_TWO = {
    "copysign": (np.copysign, "x"),
    "fdim": (fdim, "x"),
    "fmax": (np.fmax, "x"),
    "fmin": (np.fmin, "x"),
    "nextafter": (np.nextafter, "x"),
    "remquo": (remquo, "xi"),
}
OF_AN_INTEGER = {"ldexp": np.ldexp, "scalbn": np.ldexp}
TYPES = {"i": np.int32, "l": np.int64}


def expected(model, *args):
    """The results of a model, as a tuple."""
    with np.errstate(all="ignore"):
        found = model(*args)
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", [*OF_ONE, *OF_TWO, *OF_AN_INTEGER])
def test_parts_of_numbers(name, dtype):
    suffix = "" if dtype is np.float64 else "f"
    if name in OF_AN_INTEGER:
        x = floats(dtype)
        model, results = OF_AN_INTEGER[name], "x"
        args = [x, np.random.default_rng(2).integers(-2200, 2200, x.size).astype(np.int32)]
        args[1][::5] //= 20
        args[1][:4] = 2**31 - 1, -(2**31), 2**30, -(2**30)
    else:
        model, results = OF_ONE.get(name) or OF_TWO[name]
        args = [floats(dtype)] if name in OF_ONE else list(pairs_of_floats(dtype))
    types = [TYPES.get(each, dtype) for each in results]
    params = ", ".join(f"a{k}" for k in range(len(args)))
    got = of(f"libdevice.{name}{suffix}({params})", args, types)
    for mine, wanted, kind in zip(got, expected(model, *args), types, strict=True):
        wanted = np.asarray(wanted).astype(kind)
        if name in ("fmax", "fmin"):
            # The result for two zeros may be either.
            mine, wanted = mine + dtype(0), wanted + dtype(0)
        assert_exact(mine, wanted)


def test_saturation():
    x = floats(np.float32)
    wanted = np.where(np.isnan(x) | (x <= 0), 0, np.where(x >= 1, 1, x)).astype(np.float32)
    assert_exact(of("libdevice.saturatef(a0)", [x], [np.float32])[0], wanted)


def whole_words(high, low):
    return ((high.astype(np.int64) << 32) | low.view(np.uint32).astype(np.int64)).view(np.float64)


F, D, N, L = np.float32, np.float64, np.int32, np.int64
BITS_AND_TESTS = {
    "double2hiint": (D, N, lambda x: (x.view(L) >> 32).astype(N)),
    "double2loint": (D, N, lambda x: x.view(L).astype(N)),
    "double_as_longlong": (D, L, lambda x: x.view(L)),
    "float_as_int": (F, N, lambda x: x.view(N)),
    "int_as_float": (N, F, lambda n: n.view(F)),
    "longlong_as_double": (L, D, lambda n: n.view(D)),
    "isfinited": (D, N, np.isfinite),
    "finitef": (F, N, np.isfinite),
    "isinfd": (D, N, np.isinf),
    "isinff": (F, N, np.isinf),
    "isnand": (D, N, np.isnan),
    "isnanf": (F, N, np.isnan),
    "signbitd": (D, N, np.signbit),
    "signbitf": (F, N, np.signbit),
}
HALVES = {
    "float2half_rn": (F, np.int16, lambda x: x.astype(np.float16).view(np.int16)),
    "half2float": (np.int16, F, lambda n: n.view(np.float16).astype(F)),
    "int2double_rn": (N, D, lambda n: n.astype(D)),
    "uint2double_rn": (N, D, lambda n: n.view(np.uint32).astype(D)),
}


@pytest.mark.parametrize("name", [*BITS_AND_TESTS, *HALVES])
def test_bits_and_tests_of_numbers(name):
    source, target, model = (BITS_AND_TESTS | HALVES)[name]
    x = floats(source) if source in (F, D) else integers(source, 20000)
    if source is F and target is np.int16:
        # Midpoints between two float16 numbers, and adjacent numbers.
        ties = np.arange(0, 0x7C00, 7, dtype=np.uint16).view(np.float16).astype(F)
        ties = (ties + np.append(ties[1:], ties[-1])) / 2
        x = np.concatenate([x, ties, np.nextafter(ties, F(9e9)), np.nextafter(ties, F(0))])
    with np.errstate(all="ignore"):
        wanted = model(x).astype(target)
    got = of(f"libdevice.{name}(a0)", [x], [target])[0]
    if target is np.int16:
        got, wanted = (bits.view(np.float16) for bits in (got, wanted))
    assert_exact(got, wanted)


def test_words_of_a_number():
    high, low = several_integers(np.int32, 2)
    got = of("libdevice.hiloint2double(a0, a1)", [high, low], [np.float64])[0]
    wanted = whole_words(high, low)
    number = ~np.isnan(wanted)
    assert (got.view(np.uint64)[number] == wanted.view(np.uint64)[number]).all()
    assert np.isnan(got[~number]).all()


def unsigned(n, bits):
    return n % 2**bits


def of_unsigned(model, bits=32):
    """A model on unsigned numbers for arguments that are passed as signed ones."""
    return lambda *args: model(*(unsigned(arg, bits) for arg in args))


def permuted(x, y, selector):
    """Selects bytes of eight, by the low three bits of each selector nibble."""
    every = unsigned(y, 32) << 32 | unsigned(x, 32)
    return sum((every >> 8 * (selector >> 4 * place & 7) & 0xFF) << 8 * place for place in range(4))


def low_24(n):
    """The lower 24 bits as a signed number."""
    return (n + 2**23) % 2**24 - 2**23


def reversed_bits(n, bits):
    return int(f"{unsigned(n, bits):0{bits}b}"[::-1], 2)


def leading(n, bits):
    return bits - unsigned(n, bits).bit_length()


def first_set(n):
    return (n & -n).bit_length()


# The widths of arguments and result, the number of arguments, and a model on Python integers; results wrap.
INTEGERS = {
    "abs": (32, 32, 1, abs),
    "llabs": (64, 64, 1, abs),
    "brev": (32, 32, 1, lambda n: reversed_bits(n, 32)),
    "brevll": (64, 64, 1, lambda n: reversed_bits(n, 64)),
    "byte_perm": (32, 32, 3, permuted),
    "clz": (32, 32, 1, lambda n: leading(n, 32)),
    "clzll": (64, 32, 1, lambda n: leading(n, 64)),
    "ffs": (32, 32, 1, first_set),
    "ffsll": (64, 32, 1, first_set),
    "popc": (32, 32, 1, lambda n: unsigned(n, 32).bit_count()),
    "popcll": (64, 32, 1, lambda n: unsigned(n, 64).bit_count()),
    "hadd": (32, 32, 2, lambda x, y: (x + y) // 2),
    "uhadd": (32, 32, 2, of_unsigned(lambda x, y: (x + y) // 2)),
    "rhadd": (32, 32, 2, lambda x, y: (x + y + 1) // 2),
    "urhadd": (32, 32, 2, of_unsigned(lambda x, y: (x + y + 1) // 2)),
    "max": (32, 32, 2, max),
    "umax": (32, 32, 2, of_unsigned(max)),
    "llmax": (64, 64, 2, max),
    "ullmax": (64, 64, 2, of_unsigned(max, 64)),
    "min": (32, 32, 2, min),
    "umin": (32, 32, 2, of_unsigned(min)),
    "llmin": (64, 64, 2, min),
    "ullmin": (64, 64, 2, of_unsigned(min, 64)),
    "mul24": (32, 32, 2, lambda x, y: low_24(x) * low_24(y)),
    "umul24": (32, 32, 2, lambda x, y: unsigned(x, 24) * unsigned(y, 24)),
    "mulhi": (32, 32, 2, lambda x, y: x * y >> 32),
    "umulhi": (32, 32, 2, of_unsigned(lambda x, y: x * y >> 32)),
    "mul64hi": (64, 64, 2, lambda x, y: x * y >> 64),
    "umul64hi": (64, 64, 2, of_unsigned(lambda x, y: x * y >> 64, 64)),
    "sad": (32, 32, 3, lambda x, y, z: abs(x - y) + z),
    "usad": (32, 32, 3, of_unsigned(lambda x, y, z: abs(x - y) + z)),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name):
    bits, result, arity, model = INTEGERS[name]
    args = several_integers(np.int32 if bits == 32 else np.int64, arity)
    params = ", ".join(f"a{k}" for k in range(arity))
    got = of(f"libdevice.{name}({params})", args, [np.int32 if result == 32 else np.int64])[0]
    for mine, numbers in zip(got.tolist(), zip(*(column.tolist() for column in args), strict=True), strict=True):
        assert unsigned(mine, result) == unsigned(model(*numbers), result), f"{name}{numbers}"


# ---- the page --------------------------------------------------------------------------------------------------------


def test_each_function_stands_on_the_page_once():
    counts = Counter(table.names())
    assert [name for name, count in counts.items() if count > 1] == []
    assert set(counts) == set(libdevice.__all__)


def test_each_function_that_the_page_calls_exact_is_held_to_a_model():
    parts = {name + end for name in (*OF_ONE, *OF_TWO, *OF_AN_INTEGER) for end in ("", "f")}
    assert parts | {"saturatef"} == set(table.EXACT["parts of numbers and neighbors"])
    assert {*BITS_AND_TESTS, "hiloint2double"} == set(table.EXACT["bits and tests"])
    assert set(INTEGERS) == set(table.EXACT["integers"])


def test_each_function_that_the_page_calls_rounded_is_held_to_rational_numbers():
    import test_rounding as rounding

    arithmetic = {
        (f"fma{'f' if dtype == 'float32' else ''}" if name == "fma" else ("f" if dtype == "float32" else "d") + name)
        for name, dtype in rounding.CASES
    }
    held = {f"{name}_{mode}" for name in arithmetic for mode in rounding.MODES}
    assert held | {"fma", "fmaf", "frsqrt_rn"} == set(table.ROUNDED["arithmetic"])
    conversions = [name for name, _, _ in rounding.CONVERSIONS + rounding.FROM_FLOATS]
    held = {f"{name}_{mode}" for name in conversions for mode in rounding.MODES}
    assert held | set(HALVES) == set(table.ROUNDED["conversions"])
