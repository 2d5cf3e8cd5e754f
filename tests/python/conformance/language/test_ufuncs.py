"""NumPy's ufuncs in kernels, for all types of their loops: values and result types, compared with NumPy."""

# ruff: noqa: RUF024 (nothing changes the lists)
import numpy as np
import pytest
from harness import assert_exact, launch, module, ulps
from weft import cuda

INTS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float32", "float64"]
ALL_FLOATS = ["float16", *FLOATS]
COMPLEX = ["complex64", "complex128"]
EVERY = ["bool", *INTS, *ALL_FLOATS, *COMPLEX]
REAL = ["bool", *INTS, *ALL_FLOATS]


def edges(dtype):
    """Values including the limits of a type."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        near = [limits.min, limits.min + 1, 0, 1, 2, 3, 6, 9, 64, 100, limits.max - 1, limits.max]
        return np.array(near + ([-1, -2, -7, -64] if dtype.kind == "i" else []), dtype)
    if dtype.kind == "f":
        limits = np.finfo(dtype)
        sizes = [0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 3.7, 100.25, 1e-30, 8388609.0, limits.max, limits.tiny, np.inf]
        with np.errstate(over="ignore"):
            sizes = np.array([*sizes, limits.smallest_subnormal], dtype)
        return np.concatenate([sizes, -sizes, np.array([np.nan], dtype)])
    parts = np.array([0.0, -0.0, 1.0, -2.5, 0.5, 3.0, np.inf, np.nan])
    real, imag = np.meshgrid(parts, parts)
    both = np.empty(real.size, dtype)
    both.real, both.imag = real.ravel(), imag.ravel()
    return both


def pairs(dtype):
    x = edges(dtype)
    a, b = np.meshgrid(x, x)
    return a.ravel(), b.ravel()


def kernel_of(name, count, results=1):
    """A kernel that calls a function on scalars."""
    params = [f"a{k}" for k in range(count)]
    outs = [f"r{k}" for k in range(results)]
    return module(f"""
        import numpy as np
        from weft import cuda

        @cuda.jit
        def kernel({", ".join(params + outs)}):
            i = cuda.grid(1)
            if i < a0.size:
                {", ".join(f"{out}[i]" for out in outs)} = np.{name}({", ".join(f"{param}[i]" for param in params)})
        """).kernel


def computed(name, *args, results=None):
    """A kernel's results for arrays of arguments, in arrays like `results`."""
    outs = [np.zeros_like(result) for result in results]
    kernel = kernel_of(name, len(args), len(outs))
    return launch(kernel, -(-args[0].size // 64), 64, *args, *outs)[len(args) :]


# Functions with exact results: name, types.
EXACT = {
    **dict.fromkeys(["abs", "absolute"], REAL),
    **dict.fromkeys(["negative", "positive", "conjugate", "conj"], [*INTS, *ALL_FLOATS, *COMPLEX]),
    "sign": [*INTS, *ALL_FLOATS],
    "square": [*INTS, *ALL_FLOATS],
    **dict.fromkeys(["invert", "bitwise_not"], ["bool", *INTS]),
    "logical_not": EVERY,
    "bitwise_count": INTS,
    **dict.fromkeys(["floor", "ceil", "trunc"], REAL),
    **dict.fromkeys(["rint", "fabs", "sqrt", "signbit", "reciprocal"], ALL_FLOATS),
    "spacing": FLOATS,
    **dict.fromkeys(["isnan", "isinf", "isfinite"], [*ALL_FLOATS, *COMPLEX]),
    **dict.fromkeys(["isposinf", "isneginf"], ALL_FLOATS),
    **dict.fromkeys(["isreal", "iscomplex"], [*ALL_FLOATS, *COMPLEX]),
    "nan_to_num": [*INTS, *ALL_FLOATS, *COMPLEX],
}


@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name, dtypes in EXACT.items() for dtype in dtypes])
def test_exact(name, dtype):
    x = edges(dtype)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x)
    (got,) = computed(name, x, results=[expected])
    assert got.dtype == expected.dtype
    assert_exact(got, expected, f"{name} of {dtype}")


EXACT_PAIRS = {
    **dict.fromkeys(["add", "multiply"], REAL),
    "subtract": [*INTS, *ALL_FLOATS],
    **dict.fromkeys(["divide", "true_divide"], ALL_FLOATS),
    **dict.fromkeys(["floor_divide", "remainder", "mod", "fmod"], [*INTS, *ALL_FLOATS]),
    **dict.fromkeys(["maximum", "minimum", "fmax", "fmin"], REAL),
    **dict.fromkeys(["gcd", "lcm"], INTS),
    **dict.fromkeys(["bitwise_and", "bitwise_or", "bitwise_xor"], ["bool", *INTS]),
    **dict.fromkeys(["logical_and", "logical_or", "logical_xor"], EVERY),
    **dict.fromkeys(["equal", "not_equal"], EVERY),
    **dict.fromkeys(["less", "less_equal", "greater", "greater_equal"], EVERY),
    **dict.fromkeys(["copysign", "heaviside"], ALL_FLOATS),
    "nextafter": FLOATS,
}
# IEEE 754 does not define the sign of the result if both operands are zeros.
OPEN_ZERO = ["maximum", "minimum", "fmax", "fmin"]


@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name, dtypes in EXACT_PAIRS.items() for dtype in dtypes])
def test_exact_of_two(name, dtype):
    a, b = pairs(dtype)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(a, b)
    (got,) = computed(name, a, b, results=[expected])
    if name in OPEN_ZERO and expected.dtype.kind == "f":
        got, expected = got + 0.0, expected + 0.0
    assert_exact(got, expected, f"{name} of {dtype}")


@pytest.mark.parametrize("dtype", INTS)
def test_shifts(dtype):
    # NumPy does not define negative shift counts.
    a, b = pairs(dtype)
    a, b = a[b >= 0], b[b >= 0]
    for name in ("left_shift", "right_shift"):
        expected = getattr(np, name)(a, b)
        (got,) = computed(name, a, b, results=[expected])
        assert_exact(got, expected, name)


@pytest.mark.parametrize("dtype", INTS)
def test_integer_powers(dtype):
    a, b = pairs(dtype)
    a, b = a[b >= 0], b[b >= 0]
    (got,) = computed("power", a, b, results=[a])
    assert_exact(got, np.power(a, b))


@pytest.mark.parametrize("dtype", [*INTS, *ALL_FLOATS])
def test_divmod(dtype):
    a, b = pairs(dtype)
    with np.errstate(all="ignore"):
        expected = np.divmod(a, b)
    got = computed("divmod", a, b, results=expected)
    for mine, theirs in zip(got, expected, strict=True):
        assert_exact(mine, theirs)


@pytest.mark.parametrize("dtype", FLOATS)
def test_two_results(dtype):
    x = edges(dtype)
    for name in ("modf", "frexp"):
        expected = getattr(np, name)(x)
        finite = np.isfinite(x)
        got = computed(name, x, results=expected)
        assert_exact(got[0], expected[0], name)
        # C does not define the exponent of numbers that are not finite.
        assert_exact(got[1][finite], expected[1][finite], name)


@pytest.mark.parametrize("dtype", FLOATS)
def test_ldexp(dtype):
    x = edges(dtype)
    a, b = (
        part.ravel() for part in np.meshgrid(x, np.array([-5000, -1100, -149, -20, 0, 3, 130, 1030, 2**31, -(2**31)]))
    )
    with np.errstate(all="ignore"):
        expected = np.ldexp(a, np.clip(b, -10000, 10000).astype(np.int32))
    (got,) = computed("ldexp", a, b, results=[expected])
    assert_exact(got, expected)


@pytest.mark.parametrize("dtype", REAL)
def test_clip_and_where(dtype):
    x = edges(dtype)
    low, high = np.full_like(x, x[len(x) // 3]), np.full_like(x, x[1])
    expected = np.minimum(np.maximum(x, low), high)
    assert_exact(computed("clip", x, low, high, results=[x])[0], expected)
    condition = np.arange(x.size) % 2 == 0
    assert_exact(computed("where", condition, x, low, results=[x])[0], np.where(condition, x, low))


WIDE = [0.0, -0.0, 1e-30, -1e-30, 1e-5, 0.1, -0.3, 0.5, 1.0, -1.0, 1.5, 2.0, 3.0, -7.25, 10.0, 31.4, 80.0, -80.0]
ENDS = [np.inf, -np.inf, np.nan]
UNIT = [*np.linspace(-1, 1, 41), *ENDS]
POSITIVE = [1e-38, 1e-5, 0.1, 0.999, 1.0, 1.001, 2.0, 1000.0, 1e20, 3e38, 0.0, *ENDS]
# name: values, largest error in ulps by OpenCL C.
APPROXIMATE = {
    "sin": (WIDE, 4), "cos": (WIDE, 4), "tan": (WIDE, 5), "arcsin": (UNIT, 4), "arccos": (UNIT, 4),
    "arctan": ([*WIDE, *ENDS], 5), "sinh": ([*WIDE, *ENDS], 4), "cosh": ([*WIDE, *ENDS], 4),
    "tanh": ([*WIDE, *ENDS], 5), "arcsinh": ([*WIDE, *ENDS], 4), "arccosh": ([1.0, 1.001, 1.5, 10.0, 1e18], 4),
    "arctanh": (np.linspace(-0.999, 0.999, 21), 5), "exp": ([*WIDE, *ENDS], 3), "exp2": ([*WIDE, *ENDS], 3),
    "expm1": ([*WIDE, *ENDS], 3), "log": (POSITIVE, 3), "log2": (POSITIVE, 3), "log10": (POSITIVE, 3),
    "log1p": ([-0.9, -1e-10, 0.0, 1e-10, 0.5, 100.0, 1e20, *ENDS], 3), "cbrt": ([*WIDE, *ENDS], 2),
    "degrees": (WIDE, 2), "radians": (WIDE, 2), "rad2deg": (WIDE, 2), "deg2rad": (WIDE, 2), "sinc": (WIDE, 16),
}  # fmt: skip


@pytest.mark.parametrize("name", APPROXIMATE)
@pytest.mark.parametrize("dtype", ALL_FLOATS)
def test_approximate(name, dtype):
    values, bound = APPROXIMATE[name]
    with np.errstate(all="ignore"):
        x = np.array(values, dtype)
        expected = getattr(np, name)(x.astype(np.longdouble))
        # Multiples of pi are rounded before the sine, so the error is absolute.
        distance = ulps(computed(name, x, results=[x])[0], expected)
    if name == "sinc":
        np.testing.assert_allclose(computed(name, x, results=[x])[0], np.sinc(x), rtol=0, atol=4 * np.finfo(dtype).eps)
        return
    assert distance.max() <= bound


@pytest.mark.parametrize("name", ["sin", "sqrt", "arctan", "rint", "isnan", "deg2rad"])
@pytest.mark.parametrize("dtype", ["bool", *INTS])
def test_integers_are_float64(name, dtype):
    x = edges(dtype)
    x = x[x >= 0] if name == "sqrt" else x
    expected = getattr(np, name)(x.astype(np.float64))
    (got,) = computed(name, x, results=[expected])
    assert np.all(ulps(got, expected) <= 4) if expected.dtype.kind == "f" else np.array_equal(got, expected)


APPROXIMATE_PAIRS = {
    "arctan2": 6, "hypot": 4, "power": 16, "logaddexp": 4, "logaddexp2": 4, "float_power": 16,
}  # fmt: skip


@pytest.mark.parametrize("name", APPROXIMATE_PAIRS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_approximate_of_two(name, dtype):
    x = np.array([-30.5, -2.0, -0.5, -0.0, 0.0, 0.25, 1.0, 3.0, 20.0, np.inf, -np.inf, np.nan], dtype)
    a, b = (part.ravel() for part in np.meshgrid(x, x))
    with np.errstate(all="ignore"):
        like = getattr(np, name)(a, b)
        expected = getattr(np, name)(a.astype(np.longdouble), b.astype(np.longdouble))
        (got,) = computed(name, a, b, results=[like])
        distance = ulps(got, expected)
    if name.startswith("logadd"):
        # The sum of the logarithms may be near 0.
        np.testing.assert_allclose(got, expected.astype(dtype), rtol=4 * np.finfo(dtype).eps, atol=np.finfo(dtype).eps)
        return
    assert distance.max() <= APPROXIMATE_PAIRS[name]


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", [
    "sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "exp",
    "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "square", "sign", "reciprocal", "absolute", "angle",
])  # fmt: skip
def test_complex(name, dtype):
    parts = np.array([-3.0, -1.25, -0.5, 0.25, 0.75, 2.0])
    real, imag = (part.ravel() for part in np.meshgrid(parts, parts))
    z = (real + 1j * imag).astype(dtype)
    expected = getattr(np, name)(z)
    (got,) = computed(name, z, results=[expected])
    eps = np.finfo(dtype).eps
    assert np.max(np.abs(got - expected) / np.abs(expected)) <= 8 * eps


@pytest.mark.parametrize(
    "name", ["add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "fmax", "fmin"]
)
@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_of_two(name, dtype):
    x = np.array([1 + 2j, -0.5 + 0.25j, 3 - 1j, -2 - 2j, 1 - 2j], dtype)
    a, b = (part.ravel() for part in np.meshgrid(x, x))
    expected = getattr(np, name)(a, b)
    (got,) = computed(name, a, b, results=[expected])
    np.testing.assert_allclose(got, expected, rtol=40 * np.finfo(dtype).eps, atol=np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [*INTS, *FLOATS])
@pytest.mark.parametrize("decimals", [-1, 0, 2])
def test_round(dtype, decimals):
    x = np.array([0, 1, 4, 5, 15, 25, 26, 101], dtype)
    x = np.concatenate([x, -x, x + np.array(0.125, dtype), x / 7]).astype(dtype) if dtype in FLOATS else x
    kernel = module(f"""
        import numpy as np
        from weft import cuda

        @cuda.jit
        def kernel(x, out):
            i = cuda.grid(1)
            out[i] = np.round(x[i], decimals={decimals})
        """).kernel
    got = launch(kernel, 1, x.size, x, np.zeros_like(x))[1]
    np.testing.assert_array_equal(got, np.round(x, decimals))


ARRAYS = {
    "line": np.linspace(-1, 1, 7),
    "matrix": np.linspace(-1, 1, 12).reshape(3, 4),
    "F order": np.asfortranarray(np.linspace(-1, 1, 12).reshape(3, 4)),
    "strided": np.linspace(-1, 1, 30)[::-3],
    "strided matrix": np.linspace(-1, 1, 60).reshape(6, 10)[::2, 1::3],
    "cube": np.linspace(-1, 1, 24).reshape(2, 3, 4),
    "empty": np.zeros((0, 3)),
    "none": np.array(0.5),
}


@cuda.jit
def into_arrays(a, b, sine, total, least, greater, kept):
    np.sin(a, sine)
    np.add(a, b, total)
    np.minimum(a, 0.25, least)
    np.greater(0.5, a, out=greater)
    np.clip(a, -0.5, b, kept)


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(name):
    a = ARRAYS[name]
    b = np.asfortranarray(a[::-1] * 3) if a.ndim else a * 3
    outs = [
        np.zeros(a.shape),
        np.zeros(a.shape, order="F"),
        np.zeros(a.shape),
        np.zeros(a.shape, bool),
        np.zeros(a.shape),
    ]
    got = launch(into_arrays, 1, 1, a, b, *outs)[2:]
    expected = [np.sin(a), a + b, np.minimum(a, 0.25), 0.5 > a, np.minimum(np.maximum(a, -0.5), b)]
    for mine, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-15, atol=1e-16)


def test_the_result_is_the_array():
    @cuda.jit
    def kernel(a, out, last):
        last[0] = np.sqrt(a, out)[2]

    a = np.array([1.0, 4.0, 9.0])
    got = launch(kernel, 1, 1, a, np.zeros(3), np.zeros(1))
    assert got[1].tolist() == [1, 2, 3]
    assert got[2][0] == 3


@pytest.mark.parametrize("name", [
    "add", "subtract", "multiply", "true_divide", "floor_divide", "maximum", "power", "gcd", "bitwise_and", "less",
    "hypot",
])  # fmt: skip
def test_types_of_results(name):
    """For each pair of types, the result has NumPy's type, except that integers with a float16 result have float64."""
    ufunc = getattr(np, name)
    lines, kinds = [], EVERY
    for left in range(len(kinds)):
        for right in range(len(kinds)):
            try:
                result = ufunc.resolve_dtypes((np.dtype(kinds[left]), np.dtype(kinds[right]), None))[-1]
            except TypeError:
                continue
            whole = all(np.dtype(kinds[k]).kind in "biu" for k in (left, right))
            if result.kind == "f" and whole:
                result = np.dtype("float64")
            elif name == "hypot" and np.dtype(kinds[left]).kind + np.dtype(kinds[right]).kind != "ff":
                # Integers with a float operand count as int64, as in `math`.
                result = np.dtype("float64")
            elif result == np.float16 and "uint8" in (kinds[left], kinds[right]):
                # The same for uint8 and float16.
                result = np.dtype("float32")
            elif result == np.float32 and "uint16" in (kinds[left], kinds[right]):
                # For Numba, the conversion of uint16 to float32 is not safe.
                result = np.dtype("float64")
            elif result == np.complex64 and {kinds[left], kinds[right]} & {"bool", *INTS}:
                # Integers with a complex operand count as int64.
                result = np.dtype("complex128")
            if name in ("gcd", "bitwise_and") and not whole:
                continue
            wanted = "bool_" if result.kind == "b" else result.name
            lines.append(f"out[{len(lines)}] = isinstance(np.{name}(a{left}[0], a{right}[0]), np.{wanted})")
    names = [f"a{k}" for k in range(len(kinds))]
    body = "\n            ".join(lines)
    kernel = module(f"""
        import numpy as np
        from weft import cuda

        @cuda.jit
        def kernel({", ".join(names)}, out):
            {body}
        """).kernel
    got = launch(kernel, 1, 1, *[np.ones(1, kind) for kind in kinds], np.zeros(len(lines), bool))[-1]
    assert got.all(), [line for line, good in zip(lines, got, strict=True) if not good]


def test_a_row_behind_every_public_ufunc():
    """Kernels support all ufuncs of NumPy except those for dates and matrices."""
    from weft import _weft

    lacking = {"isnat", "matmul", "matvec", "vecmat", "vecdot"}
    names = {name for name in dir(np) if isinstance(getattr(np, name), np.ufunc)}
    rows = {path for path, _ in _weft.intrinsics()}
    assert {name for name in names if f"numpy.{name}" not in rows} <= lacking
