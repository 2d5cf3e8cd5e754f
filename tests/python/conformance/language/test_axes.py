"""Parameters of NumPy's functions of whole arrays, and ufuncs that broadcast or have two results."""

import numpy as np
import pytest
import weft
from harness import assert_same, module
from weft import cuda

CUBE = (np.arange(24) * 7 % 11 + 1).reshape(2, 3, 4)
ORDERS = {
    "C": lambda a: a,
    "F": lambda a: np.asfortranarray(a),
    "A": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
}
REDUCTIONS = ["sum", "prod", "mean", "var", "std", "min", "max", "argmin", "argmax", "all", "any", "ptp"]
NAN_REDUCTIONS = ["nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmin", "nanmax"]


def one_call(call):
    """A kernel `k(a, out)` with one call."""
    text = f"""
        import numpy as np
        from weft import cuda

        @cuda.jit
        def k(a, out):
            {call}
    """
    return module(text).k


def close(got, expected):
    rtol = 1e-13 if got.dtype == np.float64 else 2e-3 if got.dtype == np.float16 else 2e-6
    assert_same(got, expected, rtol=rtol if got.dtype.kind in "fc" else 0)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("name", REDUCTIONS + NAN_REDUCTIONS)
def test_along_axes(name, axis, order):
    a = ORDERS[order](CUBE.astype(np.float64) % 5)
    if name.startswith("nan"):
        a[0, 1, 2] = a[1, 0, 0] = np.nan
    expected = np.asarray(getattr(np, name)(a, axis=axis))
    out = np.zeros_like(expected)
    one_call(f"np.{name}(a, axis={axis}, out=out)")[1, 1](a, out)
    close(out, expected)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.float16, np.float32, np.complex64])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "argmax", "std", "any"])
def test_types_along_axes(name, dtype):
    a = CUBE.astype(dtype)
    expected = getattr(np, name)(a, axis=1)
    out = np.zeros_like(expected)
    one_call(f"a.{name}(1, out=out)")[1, 1](a, out)
    close(out, expected)


def test_the_result_is_out_and_dimensions_may_stay():
    a, out = CUBE.astype(np.float64), np.zeros((2, 1, 4))
    one_call("np.sum(a, 1, None, out, True)[0, 0, 0] += 100")[1, 1](a, out)
    expected = a.sum(axis=1, keepdims=True)
    expected[0, 0, 0] += 100
    close(out, expected)


@pytest.mark.parametrize(
    ("call", "dtype"),
    [
        ("np.sum(a[0, 0], axis=0)", np.float64),
        ("a.sum(axis=None, keepdims=False)", np.float64),
        ("np.sum(a, dtype=np.int64)", np.int64),
        ("np.sum(a, dtype=float, initial=0.5)", np.float64),
        ("np.sum(a, initial=5)", np.float64),
        ("np.prod(a[0, 0], dtype=np.float32, initial=2)", np.float32),
        ("np.sum(a, dtype=np.complex64)", np.complex64),
        ("np.mean(a, dtype=np.float32)", np.float32),
        ("np.mean(a, dtype=int)", np.int64),
        ("a.mean(dtype=np.float16)", np.float16),
        ("np.var(a, ddof=1)", np.float64),
        ("np.std(a, ddof=0.5)", np.float64),
        ("a.var(None, np.float32, None, 2)", np.float32),
        ("np.nanvar(a, ddof=1)", np.float64),
        ("np.min(a, initial=-3)", np.float64),
        ("np.max(a, initial=100.5)", np.float64),
        ("np.max(a[:, :0], initial=7)", np.float64),
        ("a[:, :0].sum(initial=7)", np.float64),
        ("np.nanmin(a, initial=0.5)", np.float64),
    ],
)
def test_other_parameters(call, dtype):
    a, out = CUBE.astype(np.float64), np.zeros(1, dtype)
    one_call(f"out[0] = {call}")[1, 1](a, out)
    expected = eval(call, {"np": np, "a": a})
    close(out, np.asarray([expected], dtype))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.bool_, np.float32])
def test_integers_wrap_in_their_dtype(dtype):
    a, out = CUBE.astype(dtype), np.zeros(1, np.int8)
    one_call("out[0] = np.sum(a, dtype=np.int8) + np.prod(a, dtype=np.int8)")[1, 1](a, out)
    with np.errstate(all="ignore"):
        expected = np.sum(a.astype(np.int8), dtype=np.int8) + np.prod(a.astype(np.int8), dtype=np.int8)
    assert out[0] == expected


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_running_totals(name, axis, order):
    a = ORDERS[order](CUBE.astype(np.float64) % 5)
    expected = getattr(np, name)(a, axis=axis)
    out = ORDERS[order](np.zeros_like(expected))
    one_call(f"np.{name}(a, axis={axis}, out=out)")[1, 1](a, out)
    close(out, expected)
    a, out = CUBE[0].astype(np.int8), np.zeros((3, 4), np.int64)
    one_call(f"a.{name}(0, np.int16, out)")[1, 1](a, out)
    close(out, getattr(np, name)(a, 0, np.int16).astype(np.int64))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("out[:] = np.sum(a, axis=0)[0, 0]", "would return an array"),
        ("out[:] = a.max(keepdims=True)", "would return an array"),
        ("np.cumsum(a)", "would return an array"),
        ("np.sum(a, axis=3, out=out)", "no axis 3"),
        ("np.sum(a, axis=a.shape[0], out=out)", "must be a compile-time constant"),
        ("np.sum(a, axis=(0, 1), out=out)", "does not take"),
        ("np.sum(a, ddof=1)", "no parameter `ddof`"),
        ("np.argmax(a, 0, out, False, 1)", "at most 4 arguments"),
        ("np.sum(a, 0, axis=1)", "multiple values for `axis`"),
        ("np.sum(1, axis=0)", "no overload"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(weft.CompileError, match=message):
        one_call(call)[1, 1](CUBE.astype(np.float64), np.zeros((3, 4)))


@cuda.jit
def spread(a, row, column, one, out, more):
    np.add(a, row, out)
    np.multiply(out, column, out=out)
    np.subtract(out, one, out=(out,))
    np.maximum(row, column, out=more)
    np.add(a[:, :2], a[:1, :2], more[:, :2])
    np.clip(more, one, column, more)


@pytest.mark.parametrize("order", ORDERS)
def test_ufuncs_broadcast(order):
    a = ORDERS[order](np.arange(12.0).reshape(3, 4))
    args = a, np.arange(4.0), np.arange(3.0)[:, None] * 3, np.array([2.0]), np.zeros((3, 4)), np.zeros((3, 4))
    mine = [arg.copy(order="K") for arg in args]
    spread[1, 1](*mine)
    spread.py_func(*args)
    for got, expected in zip(mine, args, strict=True):
        np.testing.assert_array_equal(got, expected)


@cuda.jit
def pairs(a, b, q, r, m, n, f, e):
    np.divmod(a, b, q, r)
    np.modf(a, m, n)
    np.frexp(a, out=(f, e))
    np.divmod(7.5, b[0], out=(q[1], r[1]))


def test_ufuncs_with_two_results():
    a, b = np.linspace(-9.7, 12.3, 12).reshape(3, 4), np.array([2.5, -3, 0.7, 4])
    args = a, np.array([b, -b, b * 2]), *(np.zeros((3, 4)) for _ in range(5)), np.zeros((3, 4), np.int32)
    mine = [arg.copy() for arg in args]
    pairs[1, 1](*mine)
    pairs.py_func(*args)
    for got, expected in zip(mine, args, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_what_a_pair_needs():
    @cuda.jit
    def one(a, q):
        np.divmod(a, a, q)

    @cuda.jit
    def fewer(a, q):
        np.add(a, a, q[0])

    a = np.zeros((2, 3))
    with pytest.raises(weft.CompileError, match="needs two arrays for the results"):
        one[1, 1](a, a)
    with pytest.raises(weft.CompileError, match="no overload"):
        fewer[1, 1](a, a)
