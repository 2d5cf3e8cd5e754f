"""Types and signatures: `weft.float32`, …."""

from __future__ import annotations

import collections
import enum
import pickle

import numpy as np
import pytest
import weft
from weft import cuda, types


@pytest.mark.parametrize(
    ("ty", "text"),
    [
        (weft.float32, "float32"),
        (weft.boolean, "boolean"),
        (weft.void, "none"),
        (weft.int32[:], "array(int32, 1d, A)"),
        (weft.int32[::1], "array(int32, 1d, C)"),
        (weft.float32[:, :], "array(float32, 2d, A)"),
        (weft.float32[:, ::1], "array(float32, 2d, C)"),
        (weft.float32[::1, :, :], "array(float32, 3d, F)"),
        (types.Array(weft.float64, 0, "C"), "array(float64, 0d, C)"),
        (types.Array(weft.uint8, 1, "C", readonly=True), "Array(uint8, 1d, C)"),
        (types.UniTuple(weft.int64, 3), "UniTuple(int64 x 3)"),
        (types.Tuple([weft.int64]), "UniTuple(int64 x 1)"),
        (types.Tuple(()), "Tuple()"),
        (types.Optional(weft.int64), "OptionalType(int64)"),
        (types.literal(3), "Literal[int](3)"),
        (types.literal("a"), "Literal[str](a)"),
        (types.Tuple([weft.int64, weft.float32[:]]), "Tuple(int64, array(float32, 1d, A))"),
    ],
)
def test_texts_are_numbas(ty: weft.Type, text: str) -> None:
    assert str(ty) == repr(ty) == text
    copy = pickle.loads(pickle.dumps(ty))
    assert copy == ty
    assert hash(copy) == hash(ty)


POINT = collections.namedtuple("POINT", "x y")


class Color(enum.Enum):
    RED = 1


class Shape(enum.IntEnum):
    ROUND = 1


@pytest.mark.parametrize(
    ("ty", "kinds"),
    [
        (weft.boolean, "Boolean"),
        (weft.int8, "Number Integer"),
        (weft.uint64, "Number Integer"),
        (weft.float16, "Number Float"),
        (weft.bfloat16, "Number Float"),
        (weft.complex64, "Number Complex"),
        (weft.void, "NoneType"),
        (weft.float32[:, ::1], "Array"),
        (types.Tuple((weft.int8, weft.int16)), "BaseTuple Tuple"),
        (types.Tuple((weft.int8, weft.int8)), "BaseTuple UniTuple"),
        (types.Tuple(()), "BaseTuple Tuple"),
        (types.NamedTuple((weft.int8, weft.int16), POINT), "BaseTuple NamedTuple"),
        (types.NamedUniTuple(weft.int8, 2, POINT), "BaseTuple NamedUniTuple"),
        (types.EnumMember(Color, weft.int64), "EnumMember"),
        (types.IntEnumMember(Shape, weft.int64), "EnumMember IntEnumMember"),
        (types.NPDatetime("s"), "NPDatetime"),
        (types.NPTimedelta(""), "NPTimedelta"),
        (types.CharSeq(4), "CharSeq"),
        (types.UnicodeCharSeq(4), "UnicodeCharSeq"),
        (types.NestedArray(weft.int8, (2, 3)), "NestedArray"),
        (types.Record([("x", {"type": weft.int8, "offset": 0})], 1, False), "Record"),
        (types.CPointer(weft.int8), "CPointer"),
        (weft.typeof(np.float32), ""),
        (cuda.float32x4, ""),
        (types.Optional(weft.int8), "Optional"),
        (types.literal(True), "Literal BooleanLiteral"),
        (types.literal(3), "Literal IntegerLiteral"),
        (types.literal("3"), "Literal StringLiteral"),
    ],
)
def test_kinds_of_types(ty: object, kinds: str) -> None:
    known = (
        "Array BaseTuple Boolean BooleanLiteral CPointer CharSeq Complex EnumMember Float IntEnumMember Integer "
        "IntegerLiteral Literal NPDatetime NPTimedelta NamedTuple NamedUniTuple NestedArray NoneType Number Optional "
        "Record StringLiteral Tuple UniTuple UnicodeCharSeq"
    ).split()
    assert {name for name in known if isinstance(ty, getattr(types, name))} == set(kinds.split())
    assert not any(isinstance(3, getattr(types, name)) for name in known)


def test_tuple_types_have_items() -> None:
    ty = types.Tuple((weft.int8, weft.float32[:]))
    assert (len(ty), list(ty), ty[0], ty[-1]) == (2, [weft.int8, weft.float32[:]], weft.int8, weft.float32[:])
    for wrong in (2, -3):
        with pytest.raises(IndexError):
            ty[wrong]
    with pytest.raises(TypeError, match="int8 is not a tuple type"):
        len(weft.int8)
    with pytest.raises(TypeError, match="int8 is not a tuple type"):
        iter(weft.int8)
    assert weft.int8
    assert types.Tuple(())
    assert cuda.jit("(UniTuple(int64 x 2),)", device=True)(lambda x: x).declared_signatures[0].args[0].count == 2


def test_literals_and_optionals() -> None:
    assert types.literal(1) != types.literal(True)
    assert types.literal(1) == types.IntegerLiteral(1)
    assert types.literal(types.literal(1)).literal_type == weft.int64
    assert types.Optional(types.Optional(weft.int8)) == types.Optional(weft.int8) != types.Optional(weft.int16)
    with pytest.raises(TypeError, match=r"1\.5 cannot be used as a literal"):
        types.literal(1.5)


def test_names_of_one_type_are_equal() -> None:
    assert weft.i4 == weft.int32 == types.intc == cuda.int32
    assert weft.intp == weft.int64 == types.int_
    assert weft.int32 != weft.uint32
    assert weft.float32 != "float32"


def test_a_type_is_called_with_types_or_a_value() -> None:
    signature = weft.void(weft.float32[:], weft.int32)
    assert str(signature) == "(array(float32, 1d, A), int32) -> none"
    assert signature.args == (weft.float32[:], weft.int32)
    assert signature.return_type == weft.void
    assert pickle.loads(pickle.dumps(signature)) == signature
    assert str(weft.void()) == "() -> none"
    value = weft.float32(1.1)
    assert type(value) is np.float32
    assert value == np.float32(1.1)
    assert type(weft.boolean(3)) is np.bool_


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: weft.float32[0],
        lambda: weft.float32[::2],
        lambda: weft.float32[1:],
        lambda: weft.float32[:, ::1, :],
        lambda: weft.float32[::1, ::1],
        lambda: weft.float32[:, :, :, :, :, :, :, :],
        lambda: weft.float32[:][:],
        lambda: weft.void[:],
        lambda: weft.void(3),
        lambda: weft.float32(weft.int32, 3),
    ],
)
def test_what_makes_no_type(wrong) -> None:
    with pytest.raises(TypeError):
        wrong()


def test_parts_of_an_array_type() -> None:
    ty = weft.complex64[::1, :]
    assert (ty.dtype, ty.ndim, ty.layout, ty.mutable) == (weft.complex64, 2, "F", True)
    assert weft.float64.bitwidth == 64
    with pytest.raises(AttributeError, match="float64 is not an array type"):
        _ = weft.float64.ndim


def test_every_name_of_a_number_is_its_type() -> None:
    for module in (weft, types, cuda):
        assert module.byte == module.uchar == module.uint8
        assert module.char == module.int8
        assert module.long_ == module.ssize_t == module.int64
    # NumPy's `byte` is signed, Numba's is unsigned.
    assert weft.from_dtype(np.byte) == weft.int8
    assert weft.typeof(np.byte(1)) == weft.int8

    @cuda.jit("void(byte[:], np.byte)")
    def kernel(x, y):
        pass

    assert list(kernel.overloads) == [(weft.uint8[:], weft.int8)]


def test_every_scalar_type_of_numpy_is_known() -> None:
    signed, unsigned = "byte short intc int_ long longlong", "ubyte ushort uintc uint ulong ulonglong"
    for name in f"bool_ {signed} {unsigned} single double csingle cdouble".split():
        ty = getattr(np, name, None)
        if ty is not None:
            assert weft.as_dtype(weft.typeof(ty(1))) == np.dtype(ty)


def test_dtypes_and_types() -> None:
    for name in ("bool", "int8", "uint64", "float16", "float32", "complex128"):
        dtype = np.dtype(name)
        assert weft.as_dtype(weft.from_dtype(dtype)) == dtype
    with pytest.raises(TypeError, match=r"longdouble|float128"):
        weft.from_dtype(np.longdouble)
    for text in ("S3", "U5"):
        assert weft.as_dtype(weft.from_dtype(text)) == np.dtype(text)
        assert weft.from_dtype(text) == weft.typeof(np.zeros(2, text)).dtype
    assert weft.typeof("text") == weft.types.UnicodeCharSeq(4)
    assert weft.typeof(b"text") == weft.types.CharSeq(4)
    with pytest.raises(TypeError, match=r"array.* is not a NumPy dtype"):
        weft.as_dtype(weft.int8[:])
    for wrong in (np.dtype([("a", "O")]), np.dtype("f4,>i4"), np.dtype("V4"), np.dtype(">f4"), np.dtype(">U3")):
        with pytest.raises(TypeError, match="not supported"):
            weft.from_dtype(wrong)
        with pytest.raises(TypeError, match="not supported"):
            cuda.device_array(3, wrong)
    # NumPy converts a subarray dtype to dimensions of the array.
    with pytest.raises(TypeError, match="not supported"):
        cuda.device_array(3, np.dtype(("f4", 2)))


@pytest.mark.parametrize(
    ("value", "ty"),
    [
        (True, weft.boolean),
        (3, weft.int64),
        (-(2**63), weft.int64),
        (2**63, weft.uint64),
        (1.5, weft.float64),
        (1j, weft.complex128),
        (np.int16(3), weft.int16),
        (np.longlong(3), weft.int64),
        (np.float64(3), weft.float64),
        (np.bool_(1), weft.boolean),
        ((1, 2.0), types.Tuple([weft.int64, weft.float64])),
        ((), types.Tuple([])),
        (np.zeros((2, 3), np.float32), weft.float32[:, ::1]),
        (np.zeros((2, 3), np.float32).T, weft.float32[::1, :]),
        (np.zeros((4, 6), np.float32)[::2], weft.float32[:, :]),
        (np.zeros(3, np.complex64), weft.complex64[::1]),
        (np.zeros((), np.int8), types.Array(weft.int8, 0, "C")),
        (np.zeros((0, 3), np.int8), weft.int8[:, ::1]),
        (np.zeros((1, 3), np.int8)[:, ::-1][:, :1], weft.int8[:, ::1]),
        (np.broadcast_to(np.int8(1), (3,)), types.Array(weft.int8, 1, "A", readonly=True)),
        (memoryview(bytearray(3)), weft.uint8[::1]),
    ],
)
def test_typeof(value, ty) -> None:
    assert weft.typeof(value) == ty


def test_typeof_device_arrays() -> None:
    assert weft.typeof(cuda.device_array((2, 3), np.int16, order="F")) == weft.int16[::1, :]


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (2**64, ValueError, "Int value is too large: 18446744073709551616"),
        ([1], TypeError, "list cannot be passed to a kernel"),
        (np.longdouble(1), TypeError, "NumPy scalars of type longdouble"),
        (np.zeros(3, np.longdouble), TypeError, "arrays of dtype (longdouble|float128)"),
        (np.zeros(3, ">i4"), TypeError, "arrays of dtype >i4"),
        (np.zeros(3, [("a", "O")]), TypeError, "arrays of dtype"),
        (np.zeros((1,) * 8), TypeError, "arrays of 8 dimensions"),
        (np.ma.masked_array([1, 2]), TypeError, "masked arrays"),
    ],
)
def test_what_has_no_type(value, error, text) -> None:
    with pytest.raises(error, match=text):
        weft.typeof(value)


def test_attributes_that_overloads_read() -> None:
    for ty in types.integer_domain:
        info = np.iinfo(str(ty))
        assert (ty.minval, ty.maxval, ty.bitwidth) == (info.min, info.max, info.bits)
        assert ty.signed is (info.min < 0)
    for ty in (weft.float32, weft.boolean, weft.float32[:], types.NPDatetime("s")):
        for name in ("signed", "minval", "maxval"):
            with pytest.raises(AttributeError, match=f"only an integer type has `{name}`"):
                getattr(ty, name)
    layouts = [
        (weft.float64[::1], (True, True, True)),
        (weft.float64[:], (False, False, False)),
        (weft.float64[:, ::1], (True, True, False)),
        (weft.float64[::1, :], (True, False, True)),
        (weft.float64[:, :], (False, False, False)),
        (types.Array(weft.float64, 0, "C"), (True, True, True)),
    ]
    for ty, expected in layouts:
        assert (ty.is_contig, ty.is_c_contig, ty.is_f_contig) == expected
        assert ty.aligned
    assert (types.NPDatetime("s").unit, types.NPTimedelta("ns").unit, types.NPTimedelta("").unit) == ("s", "ns", "")
    with pytest.raises(AttributeError, match="only a datetime64 or a timedelta64 has a unit"):
        _ = weft.int64.unit
    assert (types.UnicodeCharSeq(5).count, types.CharSeq(3).count, types.UniTuple(weft.int8, 4).count) == (5, 3, 4)
    record = weft.from_dtype(
        np.dtype({"names": ["b", "a"], "formats": ["i4", "f8"], "offsets": [8, 0], "itemsize": 16})
    )
    assert record.members == [("a", weft.float64), ("b", weft.int32)]


def test_classes_that_overloads_ask_for() -> None:
    assert isinstance("text", types.UnicodeType)
    assert not any(isinstance(ty, types.UnicodeType) for ty in (3, weft.int8, types.UnicodeCharSeq(3)))
    assert types.Omitted(3).value == 3
    assert types.Omitted(3) == types.Omitted(3) != types.Omitted(True)
    assert repr(types.Omitted(None)) == "omitted(default=None)"
    assert not isinstance(weft.int8, (types.Omitted, types.Dispatcher))
    function = cuda.jit(device=True)(lambda x: x)
    assert types.Dispatcher(function).dispatcher is function
    assert types.Dispatcher(function) == types.Dispatcher(function)
    assert types.unliteral(types.literal(3)) == weft.int64 == types.unliteral(weft.int64)


def test_an_overload_reads_them() -> None:
    from weft.cuda.extending import overload

    def describe(x, mode):
        raise NotImplementedError

    @overload(describe)
    def choose(x, mode):
        if isinstance(mode, types.UnicodeType) and isinstance(x, types.Integer):
            largest = x.maxval if x.signed else x.bitwidth
            return lambda x, mode: largest
        if isinstance(x, types.Array) and x.is_c_contig and isinstance(x.dtype, types.NPTimedelta):
            unit = len(x.dtype.unit)
            return lambda x, mode: unit
        return None

    @cuda.jit
    def kernel(a, b, t, out):
        out[0] = describe(a[0], "largest")
        out[1] = describe(b[0], "largest")
        out[2] = describe(t, 0)

    out = np.zeros(3, np.int64)
    kernel[1, 1](np.ones(1, np.int16), np.ones(1, np.uint32), np.ones(2, "m8[ms]"), out)
    assert out.tolist() == [2**15 - 1, 32, 2]
