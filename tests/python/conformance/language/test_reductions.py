"""NumPy's functions of whole arrays and the methods of arrays, in kernels: values against NumPy."""

# ruff: noqa: RUF024 (nothing changes the lists)
import numpy as np
import pytest
from harness import launch, module
from weft import cuda

INTS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
EVERY = ["bool", *INTS, *FLOATS, *COMPLEX]


def values(dtype, shape=(4, 6)):
    """Unsorted numbers with duplicates."""
    count = int(np.prod(shape))
    x = np.array([(k * 37 + 11) % 23 - 9 for k in range(count)], np.float64).reshape(shape)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return x > 0
    if dtype.kind == "u":
        return np.abs(x).astype(dtype)
    if dtype.kind == "c":
        return (x / 4 + 1j * x[::-1] / 8).astype(dtype)
    return (x / 4 if dtype.kind == "f" else x).astype(dtype)


SHAPES = {
    "line": lambda x: x.ravel(),
    "matrix": lambda x: x,
    "F order": np.asfortranarray,
    "transposed": lambda x: x.T,
    "strided": lambda x: x[::-1, ::2],
    "cube": lambda x: x.reshape(2, 3, 4),
}


def applied(call, *arrays, dtype):
    """The result of an expression of `a`, `b` in a kernel, stored as a type."""
    params = ["a", "b", "c"][: len(arrays)]
    kernel = module(f"""
        import numpy as np
        from weft import cuda

        @cuda.jit
        def kernel({", ".join(params)}, out):
            out[0] = {call}
        """).kernel
    return launch(kernel, 1, 1, *arrays, np.zeros(1, dtype))[-1][0]


def close(got, expected):
    dtype = np.asarray(expected).dtype
    if dtype.kind in "fc":
        # The order of the additions differs: NumPy uses pairwise summation.
        np.testing.assert_allclose(got, expected, rtol=64 * np.finfo(dtype).eps, atol=16 * np.finfo(dtype).eps)
    else:
        assert got == expected


REDUCTIONS = {
    **dict.fromkeys(
        ["sum", "mean", "var", "std", "argmin", "argmax", "all", "any", "count_nonzero", "min", "max"], EVERY
    ),
    **dict.fromkeys(["prod"], [*FLOATS, *COMPLEX]),
    **dict.fromkeys(["amin", "amax"], ["int32", "float32"]),
    **dict.fromkeys(["ptp"], [*INTS, *FLOATS]),
    **dict.fromkeys(["nansum", "nanmean", "nanvar", "nanstd", "nanmin", "nanmax", "nanprod"], FLOATS),
    **dict.fromkeys(["average", "size", "ndim"], ["int32", *FLOATS]),
}


@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name, dtypes in REDUCTIONS.items() for dtype in dtypes])
def test_of_a_matrix(name, dtype):
    x = values(dtype)
    if name.startswith("nan"):
        x[0, 0] = x[2, 3] = np.nan
    expected = getattr(np, name)(x)
    got = applied(f"np.{name}(a)", x, dtype=expected.dtype if hasattr(expected, "dtype") else np.int64)
    close(got, expected)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["sum", "var", "argmax", "min", "any"])
def test_of_all_layouts(name, shape):
    x = SHAPES[shape](values("float64"))
    close(applied(f"np.{name}(a)", x, dtype=np.float64), np.float64(getattr(np, name)(x)))


@pytest.mark.parametrize("dtype", INTS)
def test_products_of_integers_wrap(dtype):
    x = values(dtype) | np.array(3, dtype)
    expected = np.prod(x)
    assert applied("a.prod()", x, dtype=expected.dtype) == expected


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "std", "var", "min", "max", "argmin", "argmax", "all", "any"])
def test_methods(name):
    x = values("float64")
    close(applied(f"a.{name}()", x, dtype=np.float64), np.float64(getattr(x, name)()))


@pytest.mark.parametrize(
    "name", ["sum", "prod", "mean", "max", "min", "argmin", "argmax", "nanmax", "nansum", "count_nonzero"]
)
@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values(name, dtype):
    for special in ([1, np.nan, 3, np.nan], [np.inf, 1, 2], [-np.inf, 5, np.inf], [0.0, -0.0, 1], [np.nan, 7], [3]):
        x = np.array(special, dtype)
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(x)
        got = applied(f"np.{name}(a)", x, dtype=expected.dtype if hasattr(expected, "dtype") else np.int64)
        np.testing.assert_array_equal(got, expected)


def test_of_nothing():
    x = np.zeros((0, 3))
    assert applied("a.sum()", x, dtype=np.float64) == 0
    assert applied("a.prod()", x, dtype=np.float64) == 1
    assert applied("a.all()", x, dtype=bool)
    assert not applied("a.any()", x, dtype=bool)
    assert np.isnan(applied("a.mean()", x, dtype=np.float64))


def test_of_complex_numbers():
    x = np.array([3 + 1j, 1 + 5j, 1 + 2j, 3 + 7j])
    for name in ("min", "max", "argmin", "argmax"):
        expected = getattr(np, name)(x)
        assert applied(f"np.{name}(a)", x, dtype=expected.dtype) == expected


@pytest.mark.parametrize("dtype", ["int32", "float32", "complex64"])
def test_trace(dtype):
    for shape in ((3, 3), (2, 5), (6, 4)):
        x = values(dtype, shape)
        expected = np.trace(x)
        close(applied("np.trace(a)", x, dtype=expected.dtype), expected)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", ["int8", "uint64", "float32", "float64"])
def test_searchsorted(side, dtype):
    x = np.sort(values(dtype).ravel())
    if dtype.startswith("f"):
        x = np.append(x, np.array([np.nan, np.nan], dtype))
    kernel = module(f"""
        import numpy as np
        from weft import cuda

        @cuda.jit
        def kernel(a, v, out):
            i = cuda.grid(1)
            out[i] = np.searchsorted(a, v[i], side="{side}")
        """).kernel
    wanted = np.concatenate([x, x + np.array(1, dtype)])
    got = launch(kernel, 1, wanted.size, x, wanted, np.zeros(wanted.size, np.int64))[-1]
    np.testing.assert_array_equal(got, np.searchsorted(x, wanted, side=side))


def test_comparing_arrays():
    x = values("float64")
    other = x.copy()
    other[3, 5] += 1e-9
    assert applied("np.array_equal(a, b)", x, x.copy(), dtype=bool)
    assert not applied("np.array_equal(a, b)", x, other, dtype=bool)
    assert not applied("np.array_equal(a, b)", x, x[:, :5], dtype=bool)
    assert not applied("np.array_equal(a, b)", x, x.ravel(), dtype=bool)
    assert applied("np.allclose(a, b)", x, other, dtype=bool)
    assert not applied("np.allclose(a, b, rtol=0.0, atol=1e-12)", x, other, dtype=bool)
    assert applied("np.allclose(a, b, equal_nan=True)", x * np.nan, x * np.nan, dtype=bool)


def test_weighted_average():
    x, weights = values("float64"), np.abs(values("float64")) + 1
    close(applied("np.average(a, weights=b)", x, weights, dtype=np.float64), np.average(x, weights=weights))


def test_fill_and_item():
    @cuda.jit
    def kernel(a, b, c, out):
        a.fill(7)
        b.fill(2.5)
        c.fill(1 + 2j)
        out[0] = a.item(5)
        local = cuda.local.array((2, 3), "float32")
        local.fill(1.5)
        local[1, 1] = 4
        out[1] = local.sum()
        out[2] = a[0].item(1) + a[0, 0].item()

    a, b, c = np.zeros((3, 4), "int8"), np.zeros((6, 8))[::2, ::-2], np.zeros(3, complex)
    got = launch(kernel, 1, 1, a, b, c, np.zeros(3))
    assert (got[0] == 7).all()
    assert (got[1] == 2.5).all()
    assert (got[2] == 1 + 2j).all()
    assert got[3].tolist() == [7, 11.5, 14]


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float32", "complex128", "bool"])
def test_in(dtype):
    @cuda.jit
    def kernel(a, wanted, out):
        i = cuda.grid(1)
        out[i, 0] = wanted[i] in a
        out[i, 1] = wanted[i] not in a

    x = values(dtype)[:2]
    wanted = values(dtype).ravel()
    got = launch(kernel, 1, wanted.size, x, wanted, np.zeros((wanted.size, 2), bool))[-1]
    assert got[:, 0].tolist() == [item in x for item in wanted]
    assert (got[:, 0] != got[:, 1]).all()


@cuda.jit
def questions(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i, 0] = np.isclose(x[i], 1.0)
        out[i, 1] = np.isclose(x[i], 1.0, rtol=0.0, atol=0.5)
        out[i, 2] = np.isclose(x[i], np.nan, equal_nan=True)
        out[i, 3] = np.all(x[i])
        out[i, 4] = np.count_nonzero(x[i])
        out[i, 5] = np.isscalar(x[i])
        out[i, 6] = np.isscalar(x)
        out[i, 7] = np.isclose(x[i], np.inf)


def test_questions():
    x = np.array([1.0, 1 + 1e-9, 1.4, np.nan, np.inf, 0.0])
    got = launch(questions, 1, x.size, x, np.zeros((x.size, 8), bool))[-1]
    columns = [
        np.isclose(x, 1.0), np.isclose(x, 1.0, rtol=0, atol=0.5), np.isnan(x), x != 0, x != 0, x == x, x != x,
        x == np.inf,
    ]  # fmt: skip
    columns[5], columns[6] = np.ones(x.size, bool), np.zeros(x.size, bool)
    np.testing.assert_array_equal(got, np.transpose(columns))


def test_limits():
    attributes = {
        "iinfo": (INTS, ["min", "max", "bits"]),
        "finfo": (FLOATS, [
            "min", "max", "eps", "tiny", "smallest_normal", "smallest_subnormal", "epsneg", "resolution", "precision",
            "bits", "nmant", "nexp", "maxexp", "minexp", "machep", "negep", "iexp",
        ]),
    }  # fmt: skip
    for function, (dtypes, names) in attributes.items():
        for dtype in dtypes:
            lines = [f"out[{k}] = np.{function}(np.{dtype}).{name}" for k, name in enumerate(names)]
            lines.append(f"kept = np.{function}(np.{dtype})")
            lines.append(f"out[{len(names)}] = kept.max")
            body = "\n                    ".join(lines)
            kernel = module(f"""
                import numpy as np
                from weft import cuda

                @cuda.jit
                def kernel(out):
                    {body}
                """).kernel
            kind = np.dtype(dtype if function == "iinfo" else "float64")
            if kind == np.int8:
                kind = np.dtype("int64")
            got = launch(kernel, 1, 1, np.zeros(len(names) + 1, kind))[0]
            info = getattr(np, function)(dtype)
            expected = [getattr(info, name) for name in names] + [info.max]
            np.testing.assert_array_equal(got, np.array(expected, kind))
