"""Named tuples, dataclasses, enums, `None`, records, vectors, bfloat16 and times, for `typed_rewrite.py`.

Most are lowered: an object or a vector to a tuple, a member of an enum to its value, an array of vectors to an array
with one more dimension. A record remains a reference into NumPy's memory, and its fields become subscripts. A bfloat16
is a float32 that is rounded after each operation (`cuda.bfloat16`, which only the oracle has).
"""

from __future__ import annotations

import ast
import dataclasses
import enum
from typing import TYPE_CHECKING

import numpy as np
from oracle import numeric

from generators.typed_constants import known
from generators.typed_values import (
    BOOL,
    BRAIN,
    FLOAT32,
    INT64,
    NONE,
    Array,
    Member,
    Named,
    Record,
    Sequence,
    Text,
    dotted,
    load,
    number_of,
    unify,
)

if TYPE_CHECKING:
    from generators.typed_values import Type

LANES = ("x", "y", "z", "w")
# operations that remain bfloat16 with a bfloat16 operand
BRAIN_KEEPS = (BRAIN, BOOL, np.dtype("int8"), np.dtype("uint8"))
ARRAY_SUMS = ("sum", "prod")
REDUCTIONS = {f"np.{name}" for name in ("sum", "min", "max", "argmin", "argmax", "any", "all", "count_nonzero")}
ARRAY_METHODS = (*ARRAY_SUMS, "min", "max", "argmin", "argmax", "any", "all")


def vector_of(name: str) -> Named | None:
    """The type of `cuda.float32x4` and its like."""
    base, _, count = name.removeprefix("cuda.").rpartition("x")
    if not name.startswith("cuda.") or count not in ("1", "2", "3", "4"):
        return None
    dtype = np.dtype(base)
    return Named((dtype,) * int(count), name, LANES[: int(count)], "vector")


def type_of_value(item: object) -> Type:
    """The type of an argument or of a captured object."""
    if item is None:
        return NONE
    if isinstance(item, (str, bytes)):
        return Text("U" if isinstance(item, str) else "S")
    if isinstance(item, np.ndarray):
        if item.dtype.kind in "US":
            return Array(Text(item.dtype.kind), item.ndim)
        return Array(Record(item.dtype) if item.dtype.names else item.dtype, item.ndim)
    if isinstance(item, np.void):
        return Record(item.dtype)
    if isinstance(item, enum.Enum):
        return member_of(type(item))
    if (fields := fields_of(type(item))) is not None:
        items = [type_of_value(getattr(item, name)) for name in fields]
        return Named(items, type(item).__name__, tuple(fields), kind_of(type(item)))
    if isinstance(item, tuple):
        return tuple(type_of_value(part) for part in item)
    return numeric.value(item).dtype


def fields_of(cls: type) -> dict[str, object] | None:
    """The fields of a named tuple or a dataclass, with their defaults if there are any."""
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return {name: cls._field_defaults.get(name, dataclasses.MISSING) for name in cls._fields}
    if dataclasses.is_dataclass(cls):
        return {field.name: field.default for field in dataclasses.fields(cls)}
    return None


def kind_of(cls: type) -> str:
    return "tuple" if issubclass(cls, tuple) else "dataclass"


def member_of(cls: type[enum.Enum]) -> Member:
    """The type of an enum's members."""
    return Member(cls.__name__, issubclass(cls, int), unify(*(type_of_value(each.value) for each in cls)))


def plain(item: object) -> object:
    """A lowered argument: objects become tuples, members become values, and arrays are the same objects."""
    if isinstance(item, enum.Enum):
        base = member_of(type(item)).base  # the common type of all members' values
        return numeric.cast(item.value, base) if isinstance(base, np.dtype) else plain(item.value)
    if (fields := fields_of(type(item))) is not None:
        return tuple(plain(getattr(item, name)) for name in fields)
    if isinstance(item, tuple):
        return tuple(plain(part) for part in item)
    return item


def constant(item: object) -> ast.expr:
    """An expression of a captured object as `plain` lowers it."""
    if isinstance(item, tuple):
        return ast.Tuple([constant(part) for part in item], ast.Load())
    if isinstance(item, np.generic):
        text = f"np.{item.dtype.name.replace('bool', 'bool_')}({item.item()!r})"
        return ast.parse(text, mode="eval").body
    if isinstance(item, (int, float)) and item < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-item))
    return ast.Constant(item)


def of_times(op: str, left: np.dtype, right: np.dtype) -> np.dtype:
    """The type of an operator on dates and spans, by NumPy."""
    try:
        with np.errstate(all="ignore"):
            one, two = np.ones((), left)[()], np.ones((), right)[()]
            return numeric.binary(op, one, two).dtype
    except TypeError as error:
        raise TypeError(f"{left} {op} {right}") from error


class ObjectTyper:
    """The part of `typed_rewrite.Typer` for the module's constructs."""

    def captured(self, name: str) -> tuple[Type, ast.expr]:
        """A name of the module that holds an object."""
        item = self.functions.names[name]
        ty = type_of_value(item)
        if isinstance(ty, np.dtype) and ty.kind in "mM":
            return ty, load(name)
        if isinstance(ty, (Array, Record)):
            raise TypeError("a captured array")
        node = constant(plain(item))
        self.expr(node)  # known constants of its parts
        return ty, node

    # Operators.

    def object_binary(self, op: str, left: tuple, right: tuple, node: ast.BinOp) -> tuple[Type, ast.expr] | None:
        """An operator with an operand that is neither a number nor a plain tuple; None if there is no such operand."""
        (one, a), (two, b) = left, right
        for ty in (one, two):
            if isinstance(ty, Named) and ty.kind == "vector":
                return self.vector_binary(node, left, right)
        if BRAIN in (one, two):
            return self.brain_binary(op, left, right, node)
        if isinstance(one, np.dtype) and isinstance(two, np.dtype) and {one.kind, two.kind} & set("mM"):
            return of_times(op, one, two), ast.BinOp(a, node.op, b)
        for ty in (one, two):
            if isinstance(ty, (Named, Record, Member)) or ty is NONE:
                raise TypeError(f"{op} of {ty}")
        return None

    def vector_binary(self, node: ast.BinOp, left: tuple, right: tuple) -> tuple[Type, ast.expr]:
        """Elementwise; the result has the first vector's type."""
        vector = next(ty for ty, _ in (left, right) if isinstance(ty, Named))
        held, lanes = [], []
        for ty, value in (left, right):
            if isinstance(ty, Named):
                if ty.kind != "vector" or len(ty) != len(vector):
                    raise TypeError("vectors of different lengths")
            elif not isinstance(ty, np.dtype) or ty.kind not in "iufb":
                raise TypeError(f"a vector and {ty}")
            name = self.temporary("q")
            held.append(ast.NamedExpr(ast.Name(name, ast.Store()), value))
            lanes.append((name, ty))
        out: list[ast.expr] = []
        for number, dtype in enumerate(vector):
            parts, env = [], {}
            for place, (name, ty) in enumerate(lanes):
                each = load(name)
                if number == 0:
                    each = held[place]
                parts.append(ast.Subscript(each, ast.Constant(number), ast.Load()) if isinstance(ty, Named) else each)
                env[place] = ty[number] if isinstance(ty, Named) else ty
            numeric.result_type(_SYMBOLS[type(node.op)], env[0], env[1])
            out.append(cast(ast.BinOp(parts[0], node.op, parts[1]), dtype))
        return vector, ast.Tuple(out, ast.Load())

    def brain_binary(self, op: str, left: tuple, right: tuple, node: ast.BinOp) -> tuple[Type, ast.expr]:
        (one, a), (two, b) = left, right
        if op == "*" and one in BRAIN_KEEPS and two in BRAIN_KEEPS:  # exact, or it may be fused with a sum
            product = ast.Attribute(load("cuda"), "bfloat16_product", ast.Load())
            return BRAIN, ast.Call(product, [ast.BinOp(cast(a, FLOAT32), node.op, cast(b, FLOAT32))], [])
        if op not in ("+", "-", "*", "/", "//", "%"):
            raise TypeError(f"{op} of bfloat16")
        if one in BRAIN_KEEPS and two in BRAIN_KEEPS:
            value = ast.BinOp(cast(a, FLOAT32), node.op, cast(b, FLOAT32))
            return (BRAIN, rounded(value)) if op in ("+", "-", "*", "/") else (FLOAT32, value)
        types = [FLOAT32 if ty is BRAIN else ty for ty in (one, two)]
        if not all(isinstance(ty, np.dtype) and ty.kind in "iufb" for ty in types):
            raise TypeError(f"{op} of bfloat16 and what is no real number")
        return numeric.result_type(op, *types), ast.BinOp(wide(one, a), node.op, wide(two, b))

    def object_links(self, op: ast.cmpop, one: Type, two: Type) -> bool | None:
        """Whether operands that are no plain numbers may be compared; None for numbers and tuples."""
        if NONE in (one, two):
            if not isinstance(op, (ast.Is, ast.IsNot)):
                raise TypeError("None is compared by `is`")
            return (one is NONE and two is NONE) == isinstance(op, ast.Is)
        return None

    # Attributes and subscripts.

    def object_attribute(self, node: ast.Attribute) -> tuple[Type, ast.expr] | None:
        """A member of an enum, a field of an object or a record; None for anything else."""
        if isinstance(node.value, ast.Name) and node.value.id not in self.env:
            cls = self.functions.names.get(node.value.id)
            if isinstance(cls, type) and issubclass(cls, enum.Enum):
                value = cls[node.attr].value
                new = constant(plain(value))
                ty = member_of(cls)
                if type_of_value(value) != ty.base:
                    return ty, cast(new, ty.base)
                self.expr(new)
                node.known = known(new)
                return ty, new
        return None

    def field(self, ty: Type, value: ast.expr, name: str) -> tuple[Type, ast.expr] | None:
        """A field by its name."""
        if isinstance(ty, Member):
            if name != "value":
                raise TypeError(name)
            return ty.base, value
        if isinstance(ty, Named):
            if name not in ty.fields:
                raise TypeError(name)
            at = ty.fields.index(name)
            return ty[at], ast.Subscript(value, ast.Constant(at), ast.Load())
        inner = ty.dtype if isinstance(ty, Array) else ty
        if isinstance(inner, Record):
            found = inner.field(name)
            new = ast.Subscript(value, ast.Constant(name), ast.Load())
            if not isinstance(ty, Array):
                return found, new
            if isinstance(found, Array):
                return Array(found.dtype, found.ndim + ty.ndim), new
            return Array(found, ty.ndim), new
        return None

    def object_subscript(self, ty: Type, value: ast.expr, index: ast.expr) -> tuple[Type, ast.expr] | None:
        """A field of a record by name or position, an element of an array of vectors."""
        if isinstance(index, ast.Constant) and isinstance(index.value, str):
            return self.field(ty, value, index.value)
        if isinstance(ty, Named) and ty.kind != "tuple":
            raise TypeError("an item of an object")
        if isinstance(ty, Record):
            return self.field(ty, value, ty.dtype.names[ast.literal_eval(index)])
        if isinstance(ty, Array) and isinstance(ty.dtype, Named):
            places = self.lane_places(ty, value, index)
            return ty.dtype, ast.Tuple([ast.Subscript(*place, ast.Load()) for place in places], ast.Load())
        return None

    def lane_places(self, ty: Array, value: ast.expr, index: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
        """The indices of the numbers of an element of an array of vectors."""
        taken, index = self.index(index)
        if taken != 1 or ty.ndim != 1 or not isinstance(value, ast.Name):
            raise TypeError("a part of an array of vectors")
        name = self.temporary("q")
        first: ast.expr = ast.NamedExpr(ast.Name(name, ast.Store()), index)
        firsts = [first, *(load(name) for _ in ty.dtype[1:])]
        return [(value, ast.Tuple([each, ast.Constant(at)], ast.Load())) for at, each in enumerate(firsts)]

    # Calls.

    def object_call(self, target: str, node: ast.Call) -> tuple[Type, ast.expr] | None:
        """A class, a vector, a method of an array; None for other functions."""
        cls = self.functions.names.get(target)
        if isinstance(cls, type) and (fields := fields_of(cls)) is not None:
            return self.construct(cls, fields, node)
        if target.startswith("cuda."):
            if vector := vector_of(target):
                return self.vector(vector, node)
            if target != "cuda.bfloat16":
                return None
            ty, value = self.expr(node.args[0])
            return BRAIN, rounded(self.real_of(ty, value))
        if isinstance(node.func, ast.Attribute) and not target.startswith("np."):
            return self.method(node.func, node)
        if target in REDUCTIONS or target in ("np.mean", "np.cumsum"):
            ty, value = self.expr(node.args[0])
            if node.args[1:] or node.keywords or target in ("np.mean", "np.cumsum") or self.sums_differ(target, ty):
                return self.reduced(target.removeprefix("np."), ty, value, node, node.args[1:])
            return self.reduction(target.removeprefix("np."), ty, value)
        if target in ("any", "all", "sum", "min", "max") and len(node.args) == 1:
            return self.of_items(target, node.args[0])
        return None

    @staticmethod
    def cast_brain(target: str, value: ast.expr) -> tuple[Type, ast.expr]:
        """A cast of a bfloat16; `float` returns it unchanged."""
        if target == "float":
            return BRAIN, value
        dtype = {"bool": BOOL, "int": INT64}.get(target) or np.dtype(target.removeprefix("np.").rstrip("_"))
        return dtype, cast(wide(BRAIN, value), dtype)

    def real_of(self, ty: Type, value: ast.expr) -> ast.expr:
        if ty is BRAIN or (isinstance(ty, np.dtype) and ty.kind in "iufb"):
            return value
        raise TypeError(f"{ty} is no real number")

    def construct(self, cls: type, fields: dict[str, object], node: ast.Call) -> tuple[Type, ast.expr]:
        given = dict(zip(fields, (self.given(arg) for arg in node.args), strict=False))
        order = [(name, arg) for name, arg in zip(fields, node.args, strict=False)]
        if len(node.args) > len(fields):
            raise TypeError("too many fields")
        for keyword in node.keywords:
            if keyword.arg in given or keyword.arg not in fields:
                raise TypeError(keyword.arg)
            given[keyword.arg] = self.given(keyword.value)
            order.append((keyword.arg, keyword.value))
        values = {name: known(arg) for name, arg in order}
        for name, default in fields.items():
            if name not in given:
                if default is dataclasses.MISSING:
                    raise TypeError(f"{name} has no value")
                new = constant(plain(default))
                given[name] = type_of_value(default), new
                self.expr(new)
                values[name] = known(new)
        ty = Named([given[name][0] for name in fields], cls.__name__, tuple(fields), kind_of(cls))
        node.known = tuple(values[name] for name in fields)
        positions = [name for name, _ in order]
        items = [given[name][1] for name in fields]
        if positions != sorted(positions, key=list(fields).index):  # evaluated in the order in which they are written
            name = self.temporary("q")
            more = [given[each][1] for each in fields if each not in positions]
            written = ast.Tuple([*(given[each][1] for each in positions), *more], ast.Load())
            places = [*positions, *(each for each in fields if each not in positions)]
            held = ast.NamedExpr(ast.Name(name, ast.Store()), written)
            items = []
            for number, each in enumerate(fields):
                base: ast.expr = held if number == 0 else load(name)
                items.append(ast.Subscript(base, ast.Constant(places.index(each)), ast.Load()))
        return ty, ast.Tuple(items, ast.Load())

    def vector(self, vector: Named, node: ast.Call) -> tuple[Type, ast.expr]:
        lanes: list[tuple[Type, ast.expr]] = []
        for arg in node.args:
            ty, value = self.expr(arg)
            if not isinstance(ty, tuple):
                lanes.append((number_of(ty), value))
                continue
            name = self.temporary("q")
            held: ast.expr = ast.NamedExpr(ast.Name(name, ast.Store()), value)
            for at, each in enumerate(ty):
                lanes.append((each, ast.Subscript(held if at == 0 else load(name), ast.Constant(at), ast.Load())))
        if len(node.args) == 1 and len(lanes) == 1:
            name = self.temporary("q")
            lanes = [(lanes[0][0], ast.NamedExpr(ast.Name(name, ast.Store()), lanes[0][1]))]
            lanes += [(lanes[0][0], load(name))] * (len(vector) - 1)
        if len(lanes) != len(vector):
            raise TypeError("another number of lanes")
        if any(not isinstance(ty, np.dtype) or ty.kind not in "iufb" for ty, _ in lanes):
            raise TypeError("a lane is a real number")
        return vector, ast.Tuple([cast(value, vector[0]) for _, value in lanes], ast.Load())

    def method(self, func: ast.Attribute, node: ast.Call) -> tuple[Type, ast.expr] | None:
        """A method of an array."""
        ty, value = self.expr(func.value)
        if isinstance(ty, Sequence):
            return self.range_method(ty, value, func.attr, node.args)
        if not isinstance(ty, Array):
            raise TypeError(f"{func.attr} of {ty}")
        if func.attr in (*ARRAY_METHODS, "mean", "cumsum"):
            more = node.args or node.keywords or func.attr not in ARRAY_METHODS
            if more or self.sums_differ(func.attr, ty):
                return self.reduced(func.attr, ty, value, node, node.args)
        new = ast.Attribute(value, func.attr, ast.Load())
        if func.attr in ARRAY_METHODS and not node.args:
            return self.reduction(func.attr, ty, value)
        match func.attr:
            case "view":
                name = dotted(node.args[0])
                if vector := vector_of(name):
                    if ty != Array(vector[0], 1):
                        raise TypeError("vectors of another type")
                    shape = [ast.UnaryOp(ast.USub(), ast.Constant(1)), ast.Constant(len(vector))]
                    return Array(vector, 1), ast.Call(ast.Attribute(value, "reshape", ast.Load()), shape, [])
                if name == "cuda.bfloat16":
                    return Array(BRAIN, ty.ndim), ast.Call(ast.parse("cuda.brains", mode="eval").body, [value], [])
                return Array(np.dtype(name.removeprefix("np.").rstrip("_")), ty.ndim), ast.Call(new, node.args, [])
            case "reshape":
                shape = ast.literal_eval(ast.Tuple(node.args, ast.Load()))
                shape = shape[0] if isinstance(shape[0], tuple) else shape
                return Array(ty.dtype, len(shape)), ast.Call(new, node.args, [])
            case "ravel":
                return Array(ty.dtype, 1), ast.Call(new, [], [])
            case "transpose":
                return ty, ast.Call(new, node.args, [])
            case "item":
                _, index = self.index(node.args[0])
                return ty.dtype, ast.Call(new, [index], [])
            case "fill":
                self.real(node.args[0])
                _, item = self.real(node.args[0])
                return (), ast.Call(new, [cast(item, ty.dtype)], [])
        raise TypeError(func.attr)

    def sums_differ(self, name: str, ty: Type) -> bool:
        """Whether the oracle has its own function for a sum: of complex numbers, and of float16, added as float32."""
        if not isinstance(ty, Array) or not isinstance(ty.dtype, np.dtype) or not self.functions.further_sums:
            return False
        return ty.dtype.kind == "c" or ty.dtype == np.dtype("float16")

    def reduction(self, name: str, ty: Type, value: ast.expr) -> tuple[Type, ast.expr]:
        """`a.sum()` and its like."""
        if not isinstance(ty, Array) or not isinstance(ty.dtype, np.dtype) or ty.dtype.kind not in "iufb":
            raise TypeError(f"{name} of {ty}")
        if ty.dtype == np.dtype("float16"):
            raise TypeError("sums of float16 are rounded in another way")
        dtype = ty.dtype
        if name in ARRAY_SUMS:
            if dtype.kind in "iub":
                dtype = np.dtype("uint64" if dtype.kind == "u" else "int64")
        elif name in ("argmin", "argmax", "count_nonzero"):
            dtype = INT64
        elif name in ("any", "all"):
            dtype = BOOL
        return dtype, ast.Call(ast.parse(f"np.{name}", mode="eval").body, [value], [])

    def of_items(self, target: str, node: ast.expr) -> tuple[Type, ast.expr] | None:
        """`any`, `all`, `sum`, `min` and `max` of a tuple or a comprehension."""
        if isinstance(node, ast.GeneratorExp) and target in ("any", "all"):
            return self.first_that(node, lambda item: item, ends=target == "any")
        if isinstance(node, ast.GeneratorExp):
            ty, value = self.comprehension(node)
        else:
            ty, value = self.expr(node)
        if not isinstance(ty, tuple) or not ty:
            raise TypeError(f"{target} of {ty}")
        if any(not isinstance(each, np.dtype) or each.kind not in "iufb" for each in ty):
            raise TypeError(f"{target} of what is no number")
        name = self.temporary("q")
        held = ast.NamedExpr(ast.Name(name, ast.Store()), value)
        items: list[ast.expr] = [
            ast.Subscript(held if at == 0 else load(name), ast.Constant(at), ast.Load()) for at in range(len(ty))
        ]
        if target in ("min", "max"):
            if len(ty) == 1:
                return ty[0], items[0]
            return unify(*ty), ast.Call(load(target), items, [])
        if target == "sum":
            total: np.dtype = INT64
            new: ast.expr = ast.Constant(0)
            for each, item in zip(ty, items, strict=True):
                total, new = numeric.result_type("+", total, each), ast.BinOp(new, ast.Add(), item)
            return total, new
        # All items are evaluated before.
        truths = [cast(item, BOOL) for item in items]
        new = truths[0]
        op = ast.BitOr() if target == "any" else ast.BitAnd()
        for each in truths[1:]:
            new = ast.BinOp(new, op, each)
        return BOOL, new

    # Statements.

    def stores_object(self, target: ast.expr, place: Type, ty: Type) -> bool:
        """Whether a store of a value that is no number was handled; TypeError if the element cannot hold it."""
        if self.stores_text(place, ty):
            return True
        if isinstance(place, Record):
            if isinstance(ty, Record):
                if ty != place:
                    raise TypeError("a record of another type")
                return True
            if isinstance(ty, tuple):
                items = place.items()
                if len(items) != len(ty):
                    raise TypeError("a tuple of another length")
                for one, two in zip(items, ty, strict=True):
                    if not (isinstance(one, np.dtype) and isinstance(two, np.dtype)):
                        raise TypeError("a field takes a number")
                    if (two.kind == "c" and one.kind != "c") or {one.kind, two.kind} & set("mM"):
                        raise TypeError(f"{two} into {one}")
                return True
            raise TypeError(f"{ty} into a record")
        if place is BRAIN:
            if ty is BRAIN or (isinstance(ty, np.dtype) and ty.kind in "iufb"):
                return True
            raise TypeError(f"{ty} into a bfloat16")
        if isinstance(place, Array) and place.dtype is BRAIN:
            if ty is BRAIN or ty == place or (isinstance(ty, np.dtype) and ty.kind in "iufb"):
                return True
            raise TypeError(f"{ty} into bfloat16")
        if isinstance(place, Named):
            if ty != place:
                raise TypeError(f"{ty} into {place}")
            return True
        if ty is BRAIN:
            one = place.dtype if isinstance(place, Array) else place
            if not isinstance(one, np.dtype) or one.kind not in "iufbc":
                raise TypeError(f"bfloat16 into {one}")
            return True
        times = [isinstance(each, np.dtype) and each.kind in "mM" for each in (place, ty)]
        if any(times):
            if not all(times) or place.kind != ty.kind or np.promote_types(place, ty) != place:
                raise TypeError(f"{ty} into {place}")
            return True
        return False

    def store_vector(self, target: ast.Subscript, value: ast.expr) -> list | None:
        """`a[i] = v` of an array of vectors, as statements."""
        ty, base = self.expr(target.value)
        if not (isinstance(ty, Array) and isinstance(ty.dtype, Named)):
            return None
        name = self.temporary("q")
        out: list = [ast.Assign([ast.Name(name, ast.Store())], value)]
        for at, (array, index) in enumerate(self.lane_places(ty, base, target.slice)):
            place = ast.Subscript(array, index, ast.Store())
            out.append(ast.Assign([place], ast.Subscript(load(name), ast.Constant(at), ast.Load())))
        return out

    def object_array(self, node: ast.Call, shape: object) -> tuple[Type, ast.expr] | None:
        """A shared or local array of records, vectors or bfloat16."""
        name = dotted(node.args[1])
        ndim = len(shape) if isinstance(shape, tuple) else 1
        if name == "cuda.bfloat16":
            return Array(BRAIN, ndim), node
        if vector := vector_of(name):
            whole = (*shape, len(vector)) if isinstance(shape, tuple) else (shape, len(vector))
            dtype = ast.parse(f"np.{vector[0].name}", mode="eval").body
            return Array(vector, ndim), ast.Call(node.func, [ast.parse(repr(whole), mode="eval").body, dtype], [])
        if isinstance(dtype := self.functions.names.get(name), np.dtype):
            return Array(Record(dtype) if dtype.names else dtype, ndim), node
        return None


def cast(node: ast.expr, dtype: np.dtype | str) -> ast.expr:
    """A call of a type of numbers."""
    name = dtype if isinstance(dtype, str) else dtype.name
    name = "bool_" if name == "bool" else name
    return ast.Call(ast.Attribute(load("np"), name, ast.Load()), [node], [])


def rounded(node: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(load("cuda"), "bfloat16", ast.Load()), [node], [])


def wide(ty: Type, node: ast.expr) -> ast.expr:
    return cast(node, FLOAT32) if ty is BRAIN else node


_SYMBOLS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.Pow: "**",
}  # fmt: skip
