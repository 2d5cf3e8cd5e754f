"""float16 against NumPy's, and bfloat16 against rounded float64: all values of both for operations with one operand.

bfloat16 values are passed as float32, which can represent all of them, so these tests need no NumPy with bfloat16.
"""

import math

import numpy as np
import pytest
import weft
from generators.halves import BITS, HALVES, all_values, blocks, middles, operands, rounded
from harness import assert_exact, launch, module
from weft import cuda

SOURCE = """
import math
import weft
from weft import cuda
half = weft.{name}

@cuda.jit
def kernel(x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        a, b = half(x[i]), half(y[i])
        out[i] = {expression}
"""


def computed(name, expression, x, y=None, out="float32"):
    """The results of an expression of `a` and `b` for all elements of two float32 arrays."""
    kernel = module(SOURCE.format(name=name, expression=expression)).kernel
    return launch(kernel, blocks(x.size), 256, x, x if y is None else y, np.zeros(x.size, out))[2]


@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize("op", ["+", "-", "*", "/"])
def test_arithmetic_rounds_once(name, op):
    x, y = operands(name)
    with np.errstate(all="ignore"):
        wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
        exact = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[op](wide_x, wide_y)
    assert_exact(computed(name, f"a {op} b", x, y), rounded(name, exact))


@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize("op", ["==", "!=", "<", "<=", ">", ">="])
def test_comparisons(name, op):
    x, y = operands(name)
    expected = eval(f"x {op} y")
    np.testing.assert_array_equal(computed(name, f"a {op} b", x, y, "bool"), expected)


@pytest.mark.parametrize("name", HALVES)
def test_signs_and_truth(name):
    x = all_values(name)
    assert_exact(computed(name, "-a", x), -x)
    assert_exact(computed(name, "+a", x), x)
    assert_exact(computed(name, "abs(a)", x), np.abs(x))
    np.testing.assert_array_equal(computed(name, "bool(a)", x, out="bool"), x != 0)
    np.testing.assert_array_equal(computed(name, "not a", x, out="bool"), x == 0)


@pytest.mark.parametrize("name", HALVES)
def test_min_and_max_pass_over_nan(name):
    x, y = operands(name)
    for function, model in (("min", np.fmin), ("max", np.fmax)):
        got = computed(name, f"{function}(a, b)", x, y)
        np.testing.assert_array_equal(got, model(x, y))


@pytest.mark.parametrize("name", HALVES)
def test_floor_division_remainder_and_power_are_float32(name):
    x, y = operands(name)
    with np.errstate(all="ignore"):
        keep = np.isfinite(x) & np.isfinite(y) & (y != 0) & (np.abs(x / y) < 2**20)
    x, y = x[keep], y[keep]
    np.testing.assert_array_equal(computed(name, "a // b", x, y, "float64"), np.floor_divide(x, y))
    np.testing.assert_array_equal(computed(name, "a % b", x, y, "float64"), np.remainder(x, y))
    third = rounded(name, np.array([1 / 3]))
    got = computed(name, "a ** 2", np.repeat(third, 4), out="float64")
    np.testing.assert_array_equal(got, np.repeat(third * third, 4))
    got = computed(name, "a ** b", np.repeat(third, 4), np.full(4, 0.75, np.float32), "float64")
    np.testing.assert_allclose(got, np.repeat(third, 4).astype(np.float64) ** 0.75, rtol=2e-7)


@cuda.jit
def convert(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i]


def converted(x, dtype):
    return launch(convert, blocks(x.size), 256, x, np.ones(x.size, dtype))[1]


@pytest.mark.parametrize("name", HALVES)
def test_floats_are_rounded_once(name):
    x = middles(name)
    with np.errstate(all="ignore"):
        single = x.astype(np.float32)
    for wide in (x, single, np.nextafter(single, np.float32(math.inf)), np.nextafter(single, -np.float32(math.inf))):
        kernel = module(SOURCE.format(name=name, expression="a")).kernel
        got = launch(kernel, blocks(wide.size), 256, wide, wide, np.zeros(wide.size, np.float32))[2]
        assert_exact(got, rounded(name, wide))


def test_float16_arrays():
    values = BITS.view(np.float16)
    for dtype in ("float32", "float64"):
        assert_exact(converted(values, dtype), values.astype(dtype))
    assert_exact(converted(values, "complex64").real, values.astype("float32"))
    x = middles("float16")
    with np.errstate(all="ignore"):
        assert_exact(converted(x, "float16"), x.astype("float16"))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers(dtype):
    info = np.iinfo(dtype)
    ties = [tie << shift for shift in range(56) for tie in (0x81, 0x101, 0x103, 0x801, 0x803, 0x1001)]
    near = [tie + step for tie in ties for step in (-1, 0, 1, tie >> 20)]
    numbers = sorted({n for each in near for n in (each, -each) if info.min <= n <= info.max} | {info.min, info.max, 0})
    x = np.array(numbers, dtype)
    # Bits that do not fit into a float64 set its last bit (round to odd), so that no tie arises.
    exact = []
    for n in numbers:
        excess = max(n.bit_length() - 53, 0)
        exact.append(float((n >> excess | (n & ((1 << excess) - 1) != 0)) << excess))
    for name in HALVES:
        kernel = module(SOURCE.format(name=name, expression="a")).kernel
        got = launch(kernel, blocks(x.size), 256, x, x, np.zeros(x.size, np.float32))[2]
        assert_exact(got, rounded(name, exact))
        # And back: truncated, saturated; to 8 and 16 bits through 32.
        values = all_values(name)
        wide = np.dtype(dtype) if info.bits > 16 else np.dtype("int32")
        limits = np.iinfo(wide)
        whole = [
            0
            if math.isnan(v)
            else max(limits.min, min(limits.max, int(v) if math.isfinite(v) else int(v > 0) * 2**65 - 2**64))
            for v in values.tolist()
        ]
        expected = np.array([w & (1 << info.bits) - 1 for w in whole], f"uint{info.bits}").view(dtype)
        np.testing.assert_array_equal(computed(name, "a", values, out=dtype), expected)


FEW_DIGITS = """import numpy as np
import weft
from weft import cuda
D = np.{dtype}

@cuda.jit
def kernel(x, out):
    i = cuda.grid(1)"""


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("wide", ["float32", "float64"])
def test_integers_of_few_digits_overflow(dtype, wide):
    bits = 8 * np.dtype(dtype).itemsize
    shifts = (5, 12, 13, 14, 15, 16, 17, 20, 24, bits - 9, bits - 1)
    # LLVM infers which bits may be nonzero, and the range of the value.
    forms = [
        *(f"{{}}(x[i] << {{}}({shift}))" for shift in shifts),
        *(f"({{}}(x[i]) & {{}}(7)) << {{}}({shift})" for shift in shifts),
        "{}(x[i] & 31) * {}(2048)",
        "{}(65536) if x[i] & 1 else {}(4096)",
    ]
    lines = [f"    out[{at}, i] = weft.float16(D({form.format(*['D'] * 3)}))" for at, form in enumerate(forms)]
    kernel = module("\n".join([FEW_DIGITS.format(dtype=dtype), *lines])).kernel
    x = np.concatenate([np.arange(40), np.arange(40) << 11, [2**31 - 1]]).astype(dtype)
    if bits == 64:
        x = np.concatenate([x, np.array([2**62, 2**62 + 2**20], dtype)])
    x = np.concatenate([x, np.negative(x)])
    out = launch(kernel, 1, x.size, x, np.zeros((len(forms), x.size), wide))[1]
    with np.errstate(over="ignore"):
        for at, form in enumerate(forms):
            ints = [eval(form.format(*["int"] * 3), {"x": [v], "i": 0}) for v in x.tolist()]
            wrapped = np.array([n & (1 << bits) - 1 for n in ints], f"uint{bits}").view(dtype)
            expected = np.array([float(n) if abs(n) < 2**20 else math.copysign(math.inf, n) for n in wrapped.tolist()])
            assert_exact(out[at], expected.astype(np.float16).astype(wide), form)


# The result of `+` with each type, for float16 and for bfloat16: api 4.3, and 3.11's rules of conversion.
PROMOTED = {
    "bool": ("half", "half"), "int8": ("half", "half"), "uint8": ("float32", "half"), "int16": ("float32", "float32"),
    "uint16": ("float64", "float64"), "int32": ("float64", "float64"), "uint32": ("float64", "float64"),
    "int64": ("float64", "float64"), "uint64": ("float64", "float64"), "float16": ("half", "float32"),
    "bfloat16": ("float32", "half"), "float32": ("float32", "float32"), "float64": ("float64", "float64"),
}  # fmt: skip

UNIFIED = PROMOTED | {"uint8": ("half", "half"), "uint16": ("float32", "float32")}

MIXED = """
import weft
from weft import cuda

@cuda.jit
def kernel(x, y, out):
    a, b = weft.{left}(x[0]), weft.{right}(y[0])
    out[0] = {expression}
"""


@pytest.mark.parametrize("other", PROMOTED)
@pytest.mark.parametrize("name", HALVES)
def test_which_type_operators_give(name, other):
    """The rounding of a third plus one shows the type of the sum."""
    column = HALVES.index(name)
    third = np.array([1 / 3], np.float64)
    one = np.ones(1, "float64" if other.startswith("bf") else other)
    operand = rounded(name, third).astype(np.float64)

    def as_type(kind, exact):
        kind = name if kind == "half" else kind
        return rounded(kind, exact) if kind in HALVES else np.asarray(exact, kind)

    cases = [
        ("a + b", "b + a", as_type(PROMOTED[other][column], operand + 1)),
        ("a * b * 1", "1 * (b * a)", as_type(PROMOTED[other][column], operand)),
        ("a / b + (a - a)", "b * a + (a - a)", as_type(PROMOTED[other][column], operand)),
        ("a if x[0] > 9 else b", "b if x[0] < 9 else a", np.ones(1)),
    ]
    spelled = {"bool": "boolean"}.get(other, other)
    for expression, swapped, expected in cases:
        for text in (expression, swapped):
            kernel = module(MIXED.format(left=name, right=spelled, expression=text)).kernel
            got = launch(kernel, 1, 1, third, one, np.zeros(1))[2]
            np.testing.assert_array_equal(got, expected.astype(np.float64), err_msg=text)
    # The unified type of two variables: the division by three shows it.
    kernel = module(MIXED.format(left=name, right=spelled, expression="max(a, b) / weft.int8(3)")).kernel
    got = launch(kernel, 1, 1, third, one, np.zeros(1))[2]
    np.testing.assert_array_equal(got, as_type(UNIFIED[other][column], np.array([1 / 3])).astype(np.float64))


FUNCTIONS = "sin cos ceil floor sqrt log log2 log10 exp exp2 fabs trunc tanh".split()


@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_of_every_value(name, function):
    """Computed in float32 and rounded: the nearest number, except near ties, where it may be the other adjacent one."""
    x = all_values(name)
    # The float32 sine of a large bfloat16 is inaccurate, and differs between libraries.
    keep = np.abs(x) < 1e5 if function in ("sin", "cos") else np.ones(x.size, bool)
    x = x[keep]
    with np.errstate(all="ignore"):
        exact = getattr(np, function)(x.astype(np.float64))
    got = computed(name, f"math.{function}(a)", x)
    expected = rounded(name, exact)
    if function in ("ceil", "floor", "trunc", "fabs", "sqrt"):
        assert_exact(got, expected)
        return
    same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    assert same.mean() > 0.999
    # Adjacent numbers of the type differ by one in their bits.
    if name == "float16":
        steps = np.abs(order(got.astype(np.float16)) - order(expected.astype(np.float16)))
    else:
        steps = np.abs((got.view(np.int32).astype(np.int64) >> 16) - (expected.view(np.int32).astype(np.int64) >> 16))
    assert steps[~same].max(initial=0) <= 1


def order(half):
    bits = half.view(np.int16).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFF), bits)


@pytest.mark.parametrize("name", HALVES)
def test_other_functions_are_float32(name):
    third = rounded(name, np.array([1 / 3]))
    for function in ("tan", "asin", "sinh", "atan", "log1p", "expm1", "erf"):
        got = computed(name, f"math.{function}(a)", third, out="float64")
        exact = getattr(math, function)(float(third[0]))
        assert got[0] == np.float32(got[0])
        np.testing.assert_allclose(got, exact, rtol=3e-7)
    np.testing.assert_allclose(
        computed(name, "math.pow(a, b)", third, out="float64"), third.astype("f8") ** third, rtol=3e-7
    )
    values = all_values(name)
    np.testing.assert_array_equal(computed(name, "math.isnan(a)", values, out="bool"), np.isnan(values))
    np.testing.assert_array_equal(computed(name, "math.isinf(a)", values, out="bool"), np.isinf(values))


CAPTURED = np.float16(1.5)


@cuda.jit(device=True)
def axpy(a, x, y):
    return a * x + y


@cuda.jit
def everywhere(a, pair, x, out):
    tile = cuda.shared.array(64, weft.float16)
    mine = cuda.local.array(2, np.float16)
    i = cuda.threadIdx.x
    tile[i] = x[i]
    cuda.syncthreads()
    mine[0] = tile[63 - i]
    mine[1] = CAPTURED
    mine[1] += np.float16(0.25)
    value = axpy(a, mine[0], mine[1])
    for _ in range(3):
        value += pair[1]
    out[i] = value


def test_float16_goes_everywhere():
    x = np.linspace(-4, 4, 64).astype(np.float16)
    # Small numbers with few digits: a fused multiply-add has the same result.
    x = np.round(x * 4) / np.float16(4)
    pair = (np.int8(1), np.float16(0.125))
    out = launch(everywhere, 1, 64, np.float16(0.5), pair, x, np.zeros(64, np.float16))[3]
    assert_exact(out, (np.float16(0.5) * x[::-1] + np.float16(1.75) + np.float16(0.375)))
    assert weft.typeof(CAPTURED) == weft.float16 == weft.types.float16 == cuda.float16
    assert weft.typeof(x) == weft.float16[::1]
    assert weft.as_dtype(weft.float16) == np.float16
    on_device = cuda.to_device(x)
    assert on_device.dtype == np.float16
    assert_exact(on_device.copy_to_host(), x)
    result = cuda.device_array(64, np.float16)
    everywhere[1, 64](np.float16(0.5), pair, on_device, result)
    assert_exact(result.copy_to_host(), out)


@cuda.jit("void(float16, float16[:])")
def declared(a, out):
    out[0] = a


def test_arguments_become_float16():
    for value in (1 / 3, 2049, np.float32(65519.0), True):
        with np.errstate(all="ignore"):
            assert_exact(
                launch(declared, 1, 1, value, np.zeros(1, np.float16))[1], np.array([value]).astype(np.float16)
            )


@cuda.jit
def with_bfloat16(x, out):
    tile = cuda.shared.array(64, weft.bfloat16)
    mine = cuda.local.array(1, weft.types.bfloat16)
    i = cuda.threadIdx.x
    tile[i] = x[i]
    cuda.syncthreads()
    mine[0] = tile[63 - i]
    mine[0] += cuda.bfloat16(1.0)
    out[i] = mine[0]


def test_bfloat16_in_shared_and_local_arrays():
    x = np.linspace(-4, 4, 64).astype(np.float32)
    out = launch(with_bfloat16, 1, 64, x, np.zeros(64, np.float32))[1]
    assert_exact(out, rounded("bfloat16", rounded("bfloat16", x[::-1]).astype(np.float64) + 1))


@cuda.jit
def doubled(a, x, out):
    i = cuda.grid(1)
    out[i] = x[i] + x[i] * a


def test_arrays_of_ml_dtypes():
    """The package that gives NumPy a bfloat16: arrays, scalars, device arrays, dtypes."""
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="NumPy needs ml_dtypes for bfloat16")
    x = np.arange(8).astype(ml_dtypes.bfloat16)
    assert weft.typeof(x) == weft.bfloat16[::1]
    assert weft.typeof(x[3]) == weft.bfloat16
    assert weft.from_dtype(x.dtype) == weft.bfloat16
    assert weft.as_dtype(weft.bfloat16) == x.dtype
    out = np.zeros(8, x.dtype)
    doubled[1, 8](ml_dtypes.bfloat16(0.5), x, out)
    np.testing.assert_array_equal(out.view(np.uint16), (x * ml_dtypes.bfloat16(1.5)).view(np.uint16))
    on_device = cuda.to_device(x)
    assert on_device.dtype == x.dtype
    result = cuda.device_array(8, weft.bfloat16)
    doubled[1, 8](x[1], on_device, result)
    np.testing.assert_array_equal(result.copy_to_host().view(np.uint16), (x + x).view(np.uint16))
    whole = np.zeros((), x.dtype)
    assert weft.typeof(whole).ndim == 0


@cuda.jit
def reduced(x, out):
    out[0] = x.sum()
    out[1] = x.mean()
    out[2] = x.max()
    out[3] = x.min()
    out[4] = x.argmax()
    out[5] = np.std(x)
    out[6] = np.count_nonzero(x)
    out[7] = max(x[0], x[1], np.float16(0.5))


def test_reductions_of_arrays():
    """Sums are computed in float32: in float16, 2048 + 1 is 2048."""
    x = np.ones(5000, np.float16)
    x[77] = 3
    out = launch(reduced, 1, 1, x, np.zeros(8))[1]
    wide = x.astype(np.float64)
    exact = [wide.sum(), wide.mean(), 3, 1, 77, wide.std(), 5000, 1]
    exact = np.array(exact).astype(np.float16).astype(np.float64)
    # The squared distances are small compared with the float32 mean.
    np.testing.assert_allclose(out[5], exact[5], rtol=2e-3)
    assert_exact(np.delete(out, 5), np.delete(exact, 5))


def test_device_arrays_are_viewed_as_bfloat16():
    pytest.importorskip("ml_dtypes", reason="NumPy needs ml_dtypes for bfloat16")
    bits = cuda.to_device(np.array([0x3F80, 0xC000], np.uint16))
    assert bits.view(weft.bfloat16).copy_to_host().astype(np.float32).tolist() == [1.0, -2.0]
