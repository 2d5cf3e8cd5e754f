"""Device arrays: operators, NumPy ufuncs, matrix products, compared with NumPy."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from weft import cuda

DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128".split()
FEW = "bool int8 uint16 int64 uint64 float16 float64 complex64".split()
"""One of each kind and width."""
BINARY = {
    name: getattr(operator, name)
    for name in "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift eq ne lt le gt ge".split()
}
IN_PLACE = "iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift".split()
UNARY = {"neg": operator.neg, "pos": operator.pos, "invert": operator.invert, "abs": abs}

pytestmark = pytest.mark.filterwarnings(
    "ignore:divide by zero", "ignore:invalid value", "ignore:overflow", "ignore:Casting complex"
)


def sample(dtype, shape=(3, 4), low=0):
    """Small numbers, including zero and, if the dtype has them, negative ones."""
    kind = np.dtype(dtype).kind
    values = np.arange(np.prod(shape, dtype=int)) % 11 + low
    if kind in "ifc":
        values = values - 4 if not low else values
    if kind in "fc":
        values = values * 0.75
    if kind == "c":
        values = values * (1 - 0.5j)
    return values.astype(dtype).reshape(shape)


def outcome(function, *operands):
    """The result of an operation, or the kind of its error."""
    try:
        return function(*operands)
    except (TypeError, ValueError, OverflowError) as error:
        return type(error) if not isinstance(error, TypeError) else TypeError


def check(found, expected, note="", exact=False) -> None:
    if isinstance(expected, type):
        assert found is expected, (note, found)
        return
    assert isinstance(found, cuda.DeviceNDArray), (note, found)
    expected = np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), note
    kind = expected.dtype.kind
    if kind in "fc" and not exact:
        tolerance = {2: 2e-3, 4: 1e-5, 8: 1e-5 if kind == "c" else 1e-12, 16: 1e-12}[expected.dtype.itemsize]
        np.testing.assert_allclose(found.copy_to_host(), expected, rtol=tolerance, atol=tolerance, err_msg=note)
    else:
        np.testing.assert_array_equal(found.copy_to_host(), expected, err_msg=note)


@pytest.mark.parametrize("dtype", FEW)
@pytest.mark.parametrize("name", BINARY)
def test_operators_of_two_arrays(name, dtype) -> None:
    function = BINARY[name]
    a, b = sample(dtype), sample(dtype)[::-1, ::-1].copy()
    if name in ("pow", "lshift", "rshift") and a.dtype.kind in "iu":
        b = np.abs(b) % 8
    if name in ("pow", "truediv") and a.dtype.kind == "c":  # 0 / 0 differs between languages.
        a, b = a + 3, b + 3
    x, y = cuda.to_device(a), cuda.to_device(b)
    exact = name in ("add", "sub") or a.dtype.kind in "biu"
    expected = outcome(function, a, b)
    for one, other in ((x, y), (x, b), (a, y)):
        check(outcome(function, one, other), expected, name, exact)
    column, row = a[:, :1], b[0]
    check(outcome(function, x[:, :1], y[0]), outcome(function, column, row), name, exact)
    check(outcome(function, x[:, ::-2], y[::-1, 1::2]), outcome(function, a[:, ::-2], b[::-1, 1::2]), name, exact)


@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_of_one_array(dtype) -> None:
    for name, function in UNARY.items():
        a = sample(dtype)
        for key in (np.s_[:], np.s_[::-1, ::2], np.s_[0], np.s_[:0], np.s_[1, 2, ...]):
            check(outcome(function, cuda.to_device(a)[key]), outcome(function, a[key]), name)


NUMBERS = [True, 2, -3, 300, 2.5, 1 + 2j, np.int8(3), np.uint16(7), np.float32(1.5), np.float64(0.1), np.complex64(1j)]


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "uint64", "float16", "float32", "complex64"])
def test_operators_of_an_array_and_a_number(dtype, number) -> None:
    a = sample(dtype, low=1)
    x = cuda.to_device(a)
    for name in "add mul truediv floordiv mod and_ lshift eq lt ge".split():
        function = BINARY[name]
        check(outcome(function, x, number), outcome(function, a, number), f"{name} {number!r}")
        check(outcome(function, number, x), outcome(function, number, a), f"{number!r} {name}")


@pytest.mark.parametrize("other", FEW)
@pytest.mark.parametrize("dtype", ["bool", "uint32", "uint64", "float32", "complex64"])
def test_dtypes_of_mixed_operands(dtype, other) -> None:
    a, b = sample(dtype, low=1), sample(other, low=2)
    for function in (operator.add, operator.truediv, operator.lt):
        check(function(cuda.to_device(a), cuda.to_device(b)), function(a, b), function.__name__)


def test_comparisons_of_all_64_bits() -> None:
    signed = np.array([-(2**63), -1, 0, 1, 2**63 - 1, 2**62 + 1, 2**53 + 1])
    unsigned = np.array([2**63, 2**64 - 1, 0, 1, 2**63 - 1, 2**62 + 2, 2**53], np.uint64)
    for name in "eq ne lt le gt ge".split():
        function = BINARY[name]
        check(function(cuda.to_device(signed), cuda.to_device(unsigned)), function(signed, unsigned), name)
        check(function(cuda.to_device(unsigned), cuda.to_device(signed)), function(unsigned, signed), name)
        for number in (2**63, 2**64, -1, -(2**63) - 1, 10**30, 300, -129):
            for array in (signed, unsigned, np.arange(3, dtype="i1"), np.arange(3, dtype="u1")):
                check(function(cuda.to_device(array), number), function(array, number), f"{name} {number}")
                check(function(number, cuda.to_device(array)), function(number, array), f"{number} {name}")


def test_numbers_beyond_a_dtype_are_errors() -> None:
    device = cuda.to_device(np.arange(3, dtype="u1"))
    for number in (256, -1):
        with pytest.raises(OverflowError):
            device + number
    with pytest.raises(ValueError, match="Integers to negative integer powers are not allowed"):
        device.astype("i4") ** -2
    with pytest.raises(ValueError, match="does not broadcast"):
        device + cuda.to_device(np.zeros(2))


@pytest.mark.parametrize("dtype", FEW)
@pytest.mark.parametrize("name", IN_PLACE)
def test_operators_in_place(name, dtype) -> None:
    function = getattr(operator, name)
    for value in (
        np.abs(sample(dtype, low=1)) % 5 if dtype != "bool" else sample(dtype),
        sample(dtype, (4,), low=1),
        2,
        1.5,
    ):
        if name in ("ipow", "ilshift", "irshift") and isinstance(value, np.ndarray) and dtype[0] in "iu":
            value = value % 8
        a = sample(dtype, low=1)
        x = cuda.to_device(a)
        expected = outcome(function, a, value)
        found = outcome(function, x, cuda.to_device(value) if isinstance(value, np.ndarray) else value)
        if isinstance(expected, type):
            assert found is expected, (name, value)
            continue
        assert found is x
        check(x, a, f"{name} {value!r}")


def test_operators_in_place_with_the_array_itself() -> None:
    for dtype in ("i4", "f8", "c16"):
        for operation in (
            lambda a: operator.iadd(a, a.T), lambda a: operator.imul(a, a), lambda a: operator.isub(a, a[::-1]),
            lambda a: operator.iadd(a, a[0]),
            lambda a: operator.iadd(a[1:], a[:-1]), lambda a: operator.iadd(a[:-1], a[1:]),
            lambda a: operator.iadd(a[:, ::2], a[:, 1::2]), lambda a: operator.iadd(a, a[:, 3:4]),
        ):  # fmt: skip
            a = np.arange(64).reshape(8, 8).astype(dtype)
            x = cuda.to_device(a)
            operation(x)
            operation(a)
            np.testing.assert_array_equal(x.copy_to_host(), a)
    with pytest.raises(ValueError, match="has shape"):
        operator.iadd(cuda.to_device(np.zeros(3)), np.zeros((2, 3)))
    host = np.arange(3.0)
    host += cuda.to_device(np.ones(3))
    assert host.tolist() == [1, 2, 3]


def test_what_is_no_operand() -> None:
    device = cuda.to_device(np.arange(3))
    assert (device == None) is False  # noqa: E711
    assert (device != "text") is True
    for function in (operator.add, operator.lt, operator.matmul):
        for other in (None, "text", object()):
            with pytest.raises(TypeError, match=r"not supported|unsupported"):
                function(device, other)
            with pytest.raises(TypeError, match=r"not supported|unsupported|concatenate"):
                function(other, device)
    assert operator.add(device, [1, 2, 3]).copy_to_host().tolist() == [1, 3, 5]
    assert ([1, 2, 3] == device).copy_to_host().tolist() == [False, False, False]
    assert 2 in device
    assert 7 not in device


def test_dates_and_texts_have_no_operators() -> None:
    dates = cuda.to_device(np.array(["2020-01-01", "2020-02-03"], "M8[D]"))
    texts = cuda.to_device(np.array(["ab", "c"]))
    for call in (
        lambda: dates - dates, lambda: dates < dates, lambda: dates.min(), lambda: dates.argmax(), lambda: dates.mean(),
        lambda: texts == "ab", lambda: texts != texts, lambda: texts + "a", lambda: dates.astype("M8[s]"),
        lambda: cuda.to_device(np.arange(3)) + np.array([1, 2, None]),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"[Cc]opy|copy them to the host|copy to the host|a mean needs numbers"):
            call()


def test_operators_of_mapped_arrays_and_records() -> None:
    mapped = cuda.mapped_array(3)
    mapped[:] = 1
    device = cuda.to_device(np.arange(3.0))
    check(device + mapped, np.arange(3.0) + 1)
    check(mapped + device, np.arange(3.0) + 1)
    device += mapped
    device[[0]] = mapped[:1] * 5
    device[1:] = mapped[1:]
    check(device, np.array([5.0, 1, 1]))
    mapped += device
    assert mapped.tolist() == [6, 2, 2]
    records = cuda.to_device(np.zeros(2, [("a", "f4"), ("b", "i2")]))
    check(records["a"] + 1, np.ones(2, "f4"))
    packed = cuda.to_device(np.array([(1, 2.5), (3, 4.5)], [("b", "i1"), ("a", "f8")]))
    check(packed["a"] * packed["b"], np.array([2.5, 13.5]))
    check(packed["a"].sum(), np.float64(7))
    check(packed["a"].var(), np.float64(1))
    check(packed["a"].argmax(), np.int64(1))
    check(packed["a"] @ packed["b"], np.float64(16))
    packed["a"][...] = cuda.to_device(np.array([7, 8]))
    check(packed["a"].astype("i4"), np.array([7, 8], "i4"))
    with pytest.raises(TypeError, match=r"[Cc]opy"):
        records == records  # noqa: B015


@pytest.mark.parametrize(
    "ufunc", [getattr(np, name) for name in sorted(set(dir(np))) if isinstance(getattr(np, name), np.ufunc)], ids=str
)
def test_all_ufuncs_of_numpy(ufunc) -> None:
    if ufunc.signature or ufunc.nin > 2:
        return
    for dtype in ("bool", "int32", "uint8", "float32", "float64", "complex128"):
        a, b = sample(dtype, low=1), sample(dtype, low=1)[::-1].copy()
        if dtype[0] in "fc" and ufunc in (np.arccos, np.arcsin, np.arctanh):
            a = a / 16
        operands = [a, b][: ufunc.nin]
        if dtype[0] == "f" and ufunc is np.ldexp:
            operands = [a, np.arange(12).reshape(3, 4) % 3]
        expected = outcome(ufunc, *operands)
        found = outcome(ufunc, *map(cuda.to_device, operands))
        if isinstance(expected, tuple):
            for one, other in zip(found, expected, strict=True):
                check(one, other, f"{ufunc} {dtype}")
            continue
        if found is TypeError and ufunc is np.rint:  # Not supported for complex numbers in kernels.
            continue
        if found is TypeError and ufunc in (np.spacing, np.nextafter) and dtype in ("bool", "uint8"):
            continue  # Not supported for float16 either.
        check(found, expected, f"{ufunc} {dtype}")


def test_keywords_of_ufuncs() -> None:
    a = np.arange(12, dtype="f4").reshape(3, 4)
    x = cuda.to_device(a)
    out = cuda.to_device(np.full((3, 4), -1.0))
    assert np.add(x, 1, out=out) is out
    check(out, a.astype("f8") + 1)
    assert np.add(x, 1, out, where=cuda.to_device(a > 5)) is out
    np.multiply(x, 2, out=out, where=a < 3)
    check(out, np.where(a < 3, a * 2, a + 1).astype("f8"))
    check(np.add(x, 1, dtype="f8"), np.add(a, 1, dtype="f8"))
    check(np.less(x, a), np.less(a, a))
    assert np.add(x.T, 1).is_f_contiguous()
    assert np.add(x.T, 1, order="C").is_c_contiguous()
    target = np.zeros((3, 4))
    assert np.add(x, x, out=target) is target
    np.testing.assert_array_equal(target, a + a)
    check(np.multiply.outer(x, cuda.to_device(a[0])), np.multiply.outer(a, a[0]))
    check(np.add.accumulate(x, axis=1), np.add.accumulate(a, axis=1))
    check(np.subtract.accumulate(x), np.subtract.accumulate(a))
    np.add.at(x, ([0, 0, 1], [1, 1, 2]), 5)
    np.add.at(a, ([0, 0, 1], [1, 1, 2]), 5)
    check(x, a)
    with pytest.raises(TypeError, match="cannot hold"):
        np.add(x, 1.5, out=cuda.device_array((3, 4), "i4"))


def test_what_ufuncs_do_not_do_on_the_device() -> None:
    device = cuda.to_device(np.arange(4.0))
    for call in (
        lambda: np.add.reduceat(device, [0, 2]),
        lambda: np.subtract.reduce(device),
        lambda: np.vecdot(device, device),
        lambda: np.rint(device.astype("c16")),
        lambda: np.add(device, 1, signature="dd->d"),
        lambda: np.matmul(device, device, axes=[0, 0, 0]),
    ):
        with pytest.raises(TypeError, match=r"Copy the arrays to the host first"):
            call()

    class Other:
        def __array_ufunc__(self, *args, **keywords) -> str:
            return "other"

    assert np.add(device, Other()) == "other"


@pytest.mark.parametrize("dtype", FEW)
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3, 4), (4, 5)), ((1, 1), (1, 1)), ((17, 33), (33, 70)), ((64, 16), (16, 130)), ((4,), (4,)), ((3, 4), (4,)),
        ((4,), (4, 3)), ((0, 4), (4, 2)), ((3, 0), (0, 2)), ((0,), (0,)), ((40, 1), (1, 3)),
    ],
)  # fmt: skip
def test_products_of_matrices(left, right, dtype) -> None:
    a, b = sample(dtype, left), sample(dtype, right)
    x, y = cuda.to_device(a), cuda.to_device(b)
    expected = a @ b
    check(x @ y, expected)
    check(x @ b, expected)
    check(a @ y, expected)
    check(np.matmul(x, y), expected)
    check(cuda.to_device(np.asfortranarray(a)) @ y[::-1][::-1], expected)
    check(x[..., ::-1] @ y[::-1], a[..., ::-1] @ b[::-1])
    if a.ndim == b.ndim == 2:
        check(y.T @ x.T, b.T @ a.T)


def test_products_of_other_dtypes_and_into_arrays() -> None:
    a, b = np.arange(6).reshape(2, 3), np.arange(6.0, dtype="f4").reshape(3, 2)
    x, y = cuda.to_device(a), cuda.to_device(b)
    check(x @ y, a @ b)
    out = cuda.device_array((2, 2))
    assert np.matmul(x, y, out=out) is out
    check(out, a @ b)
    host = np.zeros((2, 2))
    assert np.matmul(x, y, out=host) is host
    np.testing.assert_array_equal(host, a @ b)
    check(np.matmul(x, y, dtype="c16"), np.matmul(a, b, dtype="c16"))
    square = np.arange(9.0).reshape(3, 3)
    z = cuda.to_device(square)
    z @= z
    square = square @ square
    check(z, square)
    bools = np.ones((2, 300), bool)
    check(cuda.to_device(bools) @ cuda.to_device(bools.T), bools @ bools.T)
    with pytest.raises(ValueError, match=r"shapes \(2, 3\) and \(2, 3\) do not fit"):
        x @ x
    for operand in (cuda.to_device(np.zeros((2, 2, 2))), cuda.to_device(np.array(1.0)), 3):
        with pytest.raises(ValueError, match=r"argument 2 has . dimensions"):
            x @ operand
    with pytest.raises(ValueError, match="the array for it, `out`, has"):
        np.matmul(x, y, out=cuda.device_array((3, 3)))
    with pytest.raises(TypeError, match="cannot hold"):
        np.matmul(x, y, out=cuda.device_array((2, 2), "i4"))


def test_kernels_are_compiled_once_for_all_shapes() -> None:
    from weft.cuda._ufunc.elements import Elements
    from weft.cuda._ufunc.numpy_ufuncs import on_device

    for shape in ((3,), (2, 5), (2, 3, 4), (1, 7), (1000,)):
        x = cuda.to_device(np.ones(shape, "i2"))
        x + x
    loops = [*on_device(np.add)._loops.values(), *on_device(np.add)._of_all.values()]
    for loop in loops:
        assert isinstance(loop, Elements)
        if loop.inputs == (np.dtype("i2"),) * 2:
            assert len(loop._kernels) >= 1
            assert len([key for key in loop._kernels if key[2] == ((0,), (0,)) and key[0] and not key[1]]) == 1
            break
    else:
        pytest.fail("no loop of int16")
