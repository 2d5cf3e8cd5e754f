"""The arguments of a launch: types of all kinds of arguments, defaults, names, and messages about rejected ones."""

from __future__ import annotations

import enum
import pickle
from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
import weft
from weft import cuda, types

Point = namedtuple("Point", ["x", "y"])


class Cell(NamedTuple):
    where: Point
    values: Any


@dataclass
class Body:
    kind: ClassVar[str] = "body"
    mass: float
    place: Any = None


@dataclass(frozen=True, slots=True)
class Frozen:
    a: int
    b: tuple[int, ...] = field(default=(1, 2))


class Color(enum.Enum):
    RED = 1
    DARK = 2.5
    SPAN = range(3)


class Planet(enum.Enum):
    EARTH = (5.976e24, 6.37814e6)


class Shape(enum.IntEnum):
    ROUND = 3


class Flat(int):
    pass


PACKED = np.dtype([("a", "i1"), ("b", "f8"), ("c", "f4", (2, 3)), ("d", [("x", "c8")])])
ALIGNED = np.dtype([("a", "i1"), ("b", "f8")], align=True)
PACKED_TEXT = (
    "Record(a[type=int8;offset=0],b[type=float64;offset=1],c[type=nestedarray(float32, (2, 3));offset=9],"
    "d[type=Record(x[type=complex64;offset=0];8;False);offset=33];41;False)"
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "none"),
        ((None, 1), "Tuple(none, int64)"),
        (Point(1, 2), "Point(int64 x 2)"),
        (Point(1, np.float32(2)), "Point(int64, float32)"),
        (Cell(Point(1, 2), np.zeros(3)), "Cell(Point(int64 x 2), array(float64, 1d, C))"),
        (Body(1.0), "Body(float64, none)"),
        (Body(1.0, Body(2, True)), "Body(float64, Body(int64, boolean))"),
        (Frozen(1), "Frozen(int64, UniTuple(int64 x 2))"),
        (Color.RED, "Enum<int64>(Color)"),
        (Color.DARK, "Enum<float64>(Color)"),
        (Shape.ROUND, "IntEnum<int64>(Shape)"),
        (Planet.EARTH, "Enum<UniTuple(float64 x 2)>(Planet)"),
        (Flat(3), "int64"),
        (np.zeros(2, PACKED), f"array({PACKED_TEXT}, 1d, C)"),
        (np.zeros(2, PACKED)[0], PACKED_TEXT),
        (np.zeros(2, PACKED).view(np.recarray)[0], PACKED_TEXT),
        (np.zeros((), PACKED), f"array({PACKED_TEXT}, 0d, C)"),
        (np.zeros(2, ALIGNED)[::2], "array(Record(a[type=int8;offset=0],b[type=float64;offset=8];16;True), 1d, C)"),
        (np.zeros(4, ALIGNED)[::2], "array(Record(a[type=int8;offset=0],b[type=float64;offset=8];16;True), 1d, A)"),
        (np.zeros((1,) * 7, "i4"), "array(int32, 7d, C)"),
    ],
)
def test_types_of_values(value: Any, text: str) -> None:
    ty = weft.typeof(value)
    assert str(ty) == text
    copy = pickle.loads(pickle.dumps(ty))
    assert copy == ty == weft.typeof(value)
    assert hash(copy) == hash(ty)


def test_a_dtype_is_read_for_what_it_is() -> None:
    # NumPy counts these as equal.
    packed, aligned = (np.dtype([("a", "i4"), ("b", "f4")], align=align) for align in (False, True))
    assert packed == aligned
    assert weft.from_dtype(packed) != weft.from_dtype(aligned)
    assert weft.from_dtype(packed) == weft.from_dtype(np.dtype([("a", "i4"), ("b", "f4")]))
    for dtype in (PACKED, ALIGNED, packed, aligned):
        back = weft.as_dtype(weft.from_dtype(dtype))
        assert back == dtype
        assert back.isalignedstruct == dtype.isalignedstruct
    # More dtype objects than the cache can hold.
    for number in range(600):
        dtype = np.dtype([("a", "i4"), (f"n{number}", "f4")])
        assert weft.from_dtype(dtype).fields == ("a", f"n{number}")


def test_types_tell_of_themselves() -> None:
    record = weft.from_dtype(PACKED)
    assert record.fields == ("a", "b", "c", "d")
    assert (record.size, record.aligned, record.offset("c")) == (41, False, 9)
    assert record.typeof("b") == weft.float64
    assert str(record.typeof("c")) == "nestedarray(float32, (2, 3))"
    assert record.typeof("c") == types.NestedArray(weft.float32, (2, 3))
    assert pickle.loads(pickle.dumps(record.typeof("c"))) == record.typeof("c")
    assert str(record[::1]) == f"array({PACKED_TEXT}, 1d, C)"
    assert record[::1].dtype == record
    with pytest.raises(KeyError, match="no field `e`"):
        record.offset("e")
    with pytest.raises(AttributeError, match="float32 is not a record type"):
        _ = weft.float32.fields
    point = weft.typeof(Point(1, 2.0))
    assert point == types.NamedTuple([weft.int64, weft.float64], Point)
    assert (point.fields, point.types, point.instance_class) == (("x", "y"), [weft.int64, weft.float64], Point)
    assert weft.typeof(Point(1, 2)) == types.NamedUniTuple(weft.int64, 2, Point)
    assert weft.typeof(Point(1, 2)) != types.UniTuple(weft.int64, 2)
    assert weft.typeof(Color.RED) == types.EnumMember(Color, weft.int64)
    assert weft.typeof(Color.RED).dtype == weft.int64
    fields = [("a", {"type": weft.int8, "offset": 0}), ("b", {"type": weft.float64, "offset": 8})]
    assert types.Record(fields, 16, aligned=True) == weft.from_dtype(ALIGNED)
    with pytest.raises(TypeError, match="Point has 2 fields, not 1"):
        types.NamedTuple([weft.int64], Point)
    with pytest.raises(TypeError, match="neither a named tuple class nor a dataclass"):
        types.NamedTuple([weft.int64], Color)
    with pytest.raises(TypeError, match="is not an enum class"):
        types.EnumMember(Point, weft.int64)


def test_vectors_have_types() -> None:
    assert cuda.float32x4 == cuda.float4 == weft.Type("float32x4")
    assert cuda.long2 == cuda.longlong2 == cuda.int64x2
    assert str(cuda.uchar1) == "uint8x1"
    assert str(cuda.float4[::1]) == "array(float32x4, 1d, C)"
    assert pickle.loads(pickle.dumps(cuda.double3)) == cuda.double3
    with pytest.raises(ValueError, match="there is no type `float32x5`"):
        weft.Type("float32x5")


def test_classes_that_are_alike_are_one() -> None:
    def made(fields: str, name: str = "Made") -> Any:
        return namedtuple(name, fields)

    assert weft.typeof(made("a b")(1, 2)) == weft.typeof(made("a b")(1, 2))
    assert weft.typeof(made("a b")(1, 2)) != weft.typeof(made("b a")(1, 2))
    assert weft.typeof(made("a b")(1, 2)) != weft.typeof(made("a b", "Other")(1, 2))

    def color(value: Any) -> Any:
        return enum.Enum("Color", {"RED": value})

    assert weft.typeof(color(1).RED) == weft.typeof(color(1).RED)
    assert weft.typeof(color(1).RED) != weft.typeof(color(2).RED)


@cuda.jit
def take(value):
    pass


LINKED = Body(1.0)
LINKED.place = LINKED


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Color.SPAN, r"the value of Color.SPAN: a range cannot be passed"),
        (Point(1, {}), r"`y` of Point: a dict cannot be passed to a kernel"),
        (Body(Point([], 1)), r"`mass` of Body: `x` of Point: a list cannot be passed"),
        (LINKED, r"nested more than 100 levels deep"),
        (np.array([], "O"), r"arrays of dtype object are not supported"),
        (np.zeros(1, [("a", "O")]), r"not supported"),
        (np.zeros(1, [("a", ">i4")]), r"not supported"),
        (np.zeros((1,) * 8), r"arrays of 8 dimensions are not supported; a kernel's array has at most 7"),
    ],
)
def test_refused_arguments_are_named(value: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=r"argument 1 \(`value`\) of kernel `take`: .*" + message):
        take[1, 1](value)
    # A launch that failed has no lasting effects.
    take[1, 1](1)


@cuda.jit
def weighted(r, x, n=3, w=0.5):
    r[0] = x + n * w


def test_parameters_have_defaults_and_names() -> None:
    r = np.zeros(1)

    def result(*args: Any, **kwargs: Any) -> float:
        r[0] = 0
        weighted[1, 1](r, *args, **kwargs)
        return float(r[0])

    assert result(1) == 2.5
    assert result(1, 5) == 3.5
    assert result(1, 5, 1.0) == 6.0
    assert result(1, w=1.0) == 4.0
    assert result(w=2.0, n=1, x=0) == 2.0
    weighted.forall(1)(r, 2, w=0.0)
    assert r[0] == 2
    assert weighted.kernel_for(r, 1) is not None
    # The type is that of the passed value, not that of the default.
    assert len(weighted.overloads) == 1
    with pytest.raises(TypeError, match=r"takes 4 arguments \(r, x, n, w\) but 1 was given"):
        weighted[1, 1](r)
    with pytest.raises(TypeError, match=r"takes 4 arguments .* but 5 were given"):
        weighted[1, 1](r, 1, 2, 3, 4)
    with pytest.raises(TypeError, match="kernel `weighted` needs a value for `x`"):
        weighted[1, 1](r, n=1)
    with pytest.raises(TypeError, match="kernel `weighted` has no parameter `m`"):
        weighted[1, 1](r, 1, m=1)
    with pytest.raises(TypeError, match="kernel `weighted` got multiple values for `x`"):
        weighted[1, 1](r, 1, x=1)


def test_parameters_by_name_only() -> None:
    @cuda.jit
    def kernel(out: Any, a: Any = 1, *, b: Any, c: Any = 3) -> None:
        out[0] = a
        out[1] = b
        out[2] = c

    out = np.zeros(3)
    kernel[1, 1](out, b=2)
    assert out.tolist() == [1, 2, 3]
    kernel[1, 1](out, 5, c=7, b=6)
    assert out.tolist() == [5, 6, 7]
    kernel.forall(1)(out, b=8)
    assert out.tolist() == [1, 8, 3]
    with pytest.raises(TypeError, match="needs a value for `b`"):
        kernel[1, 1](out, a=2)
    with pytest.raises(TypeError, match="takes `b` only as a keyword argument: `b=…`"):
        kernel[1, 1](out, 1, 2)
    with pytest.raises(TypeError, match="has no parameter `d`"):
        kernel[1, 1](out, b=1, d=2)


def test_types_are_arguments() -> None:
    @cuda.jit
    def kernel(out: Any, dtype: Any) -> None:
        values = cuda.local.array(4, dtype)
        values[0] = 3.75
        out[0] = values[0]
        out[1] = dtype(300.5)

    out = np.zeros(2)
    for dtype in (np.float32, np.dtype("f4"), types.float32, weft.float32):
        kernel[1, 1](out, dtype)
        assert out.tolist() == [3.75, 300.5]
    kernel[1, 1](out, np.int8)
    assert out.tolist() == [3, 44]
    kernel[1, 1](out, np.int64)
    assert out.tolist() == [3, 300]
    assert len(kernel.overloads) == 3
    ty = weft.typeof(np.float32)
    assert str(ty) == "class(float32)"
    assert ty.dtype == types.float32
    assert ty == weft.typeof(np.dtype("f4")) != weft.typeof(np.float64)
    assert pickle.loads(pickle.dumps(ty)) == ty
