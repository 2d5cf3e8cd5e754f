"""The types of `typed_rewrite.py`: their classes, joins, and conversions of values."""

from __future__ import annotations

import ast
import dataclasses
import functools
import itertools
from typing import TypeAlias

import numpy as np
from oracle import numeric

from generators.typed_constants import Known, common

BOOL, INT32, INT64, UINT64, FLOAT64 = (np.dtype(name) for name in ("bool", "int32", "int64", "uint64", "float64"))
FLOAT32, COMPLEX64, COMPLEX128 = (np.dtype(name) for name in ("float32", "complex64", "complex128"))
NOTHING = ()  # the type of a call that returns nothing


@dataclasses.dataclass(frozen=True)
class Array:
    """The type of an array."""

    dtype: np.dtype
    ndim: int


class Named(tuple):
    """The type of a named tuple, an object of a dataclass or a vector: those of its fields."""

    def __new__(cls, items: tuple, of: str, fields: tuple[str, ...], kind: str) -> Named:
        """`kind` is `tuple`, `dataclass` or `vector`."""
        made = super().__new__(cls, items)
        made.of, made.fields, made.kind = of, fields, kind
        return made

    def like(self, items: tuple) -> Named:
        """One with other types of fields."""
        return Named(items, self.of, self.fields, self.kind)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and self.of == other.of and tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.of, tuple(self)))

    def __getnewargs__(self) -> tuple:
        return tuple(self), self.of, self.fields, self.kind

    def __repr__(self) -> str:
        return f"{self.of}{tuple.__repr__(self)}"


@dataclasses.dataclass(frozen=True)
class Record:
    """The type of a reference to a record."""

    dtype: np.dtype

    def field(self, name: str) -> Type:
        """The type of a field; TypeError if there is none."""
        if name not in self.dtype.names:
            raise TypeError(name)
        return of_field(self.dtype[name])

    def items(self) -> list[Type]:
        """The types of all fields."""
        return [of_field(self.dtype[name]) for name in self.dtype.names]


def of_field(dtype: np.dtype) -> Type:
    """The type of a field's value."""
    inner = Record(dtype.base) if dtype.base.names else dtype.base
    return Array(inner, len(dtype.shape)) if dtype.shape else inner


@dataclasses.dataclass(frozen=True)
class Member:
    """The type of the members of an enum."""

    of: str
    is_int: bool
    base: Type  # of their values


class Only:
    """A type that is equal to itself only, also if it is copied."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __copy__(self) -> Only:
        return self

    def __deepcopy__(self, memo: object) -> Only:
        return self

    def __reduce__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name


NONE = Only("NONE")  # the type of None
BRAIN = Only("BRAIN")  # bfloat16


def number_of(ty: Type) -> Type:
    """A member of an `IntEnum` is a number."""
    return ty.base if isinstance(ty, Member) and ty.is_int else ty


@dataclasses.dataclass(frozen=True)
class Sequence:
    """The type of a `range`, `enumerate`, `zip` or `reversed`, from those of its arguments."""

    kind: str
    parts: tuple[Type, ...]


@dataclasses.dataclass(frozen=True)
class Closure:
    """The type of a lambda or an inner function: its definition, captured variables, and the types of its defaults."""

    name: str
    source: object
    own: tuple[str, ...]
    rest: str  # the parameter that takes further arguments as a tuple
    captures: tuple[str, ...]
    defaults: tuple[tuple[str, tuple[str, Type]], ...]  # a parameter, a variable that holds its default, and the type
    assigned: tuple[str, ...] = ()  # variables of the function around it that it assigns


@dataclasses.dataclass(frozen=True)
class Optional:
    """The type of a value that is None on some paths."""

    of: Type


@dataclasses.dataclass(frozen=True)
class Text:
    """The type of a string: `U` for a `str`, `S` for `bytes`."""

    kind: str


ATOMIC = {np.dtype(name) for name in ("int32", "uint32", "int64", "uint64", "float32", "float64")}


@dataclasses.dataclass(frozen=True)
class Maybe:
    """The type of a variable that has no value on some of the paths that lead here."""

    type: Type | None


class Unknown(TypeError):
    """The variable has no type yet: a later iteration of inference over the loop adds one."""


UNKNOWN = Maybe(None)  # the type of an expression that depends on such a variable
Type: TypeAlias = (
    "np.dtype | Array | Record | Member | Only | Sequence | Closure | Maybe | Optional | Text | tuple[Type, ...]"
)
# None: this point is not reached. The variables' values are stored with their types, under `typed_known.key`.
Env: TypeAlias = "dict[str, Type] | None"


def unify(*types: Type) -> Type:
    """The common type of one or more; TypeError if there is none, or if it depends on their order."""
    distinct = list(dict.fromkeys(types))
    if len(distinct) == 1:
        return distinct[0]
    if NONE in distinct or any(isinstance(ty, Optional) for ty in distinct):
        rest = [ty.of if isinstance(ty, Optional) else ty for ty in distinct if ty is not NONE]
        if not all(isinstance(ty, np.dtype) or type(ty) is tuple for ty in rest):
            raise TypeError(f"None or one of {distinct}")
        return Optional(unify(*rest))
    if all(isinstance(ty, tuple) for ty in distinct) and len({len(ty) for ty in distinct}) == 1:
        items = tuple(unify(*items) for items in zip(*distinct, strict=True))
        first = distinct[0]
        if not any(isinstance(ty, Named) for ty in distinct):
            return items
        if any(not isinstance(ty, Named) or ty.of != first.of or ty.kind == "vector" for ty in distinct):
            raise TypeError(f"no common type of {distinct}")
        return first.like(items)
    if BRAIN in distinct and len(distinct) == 2:
        (other,) = (ty for ty in distinct if ty is not BRAIN)
        if isinstance(other, np.dtype) and other.kind in "iufb":
            keeps = other.kind == "b" or other.name in ("int8", "uint8")
            return BRAIN if keeps else np.promote_types(FLOAT32, other)
    if any(isinstance(ty, np.dtype) and ty.kind in "mM" for ty in distinct):
        raise TypeError(f"no common type of {distinct}")
    if not all(isinstance(ty, np.dtype) for ty in distinct):
        raise TypeError(f"no common type of {distinct}")
    found = set()
    for order in itertools.permutations(distinct):
        joined = order[0]
        for ty in order[1:]:
            joined = numeric.unify(joined, ty)
        found.add(joined)
    if len(found) > 1:
        raise TypeError(f"{distinct} unify differently in another order")
    return found.pop()


def merge(*types: Type) -> Type:
    """The joined type of a variable. Unknown types are ignored."""
    first = types[0]
    for ty in types:
        if ty is not first:
            break
    else:
        return first
    if isinstance(first, Known):
        value = functools.reduce(common, (ty.value for ty in types))
        return Known(value, repr(value))
    known = [ty for ty in types if ty is not UNKNOWN]
    if not known:
        return UNKNOWN
    plain = unify(*(ty.type if isinstance(ty, Maybe) else ty for ty in known))
    return Maybe(plain) if any(isinstance(ty, Maybe) for ty in known) else plain


def join(kept: set[str], *envs: Env) -> Env:
    """The variables of all reached points with their common types; those in `kept` need only be at one point."""
    reached = [env for env in envs if env is not None]
    if not reached:
        return None
    names = [name for name in reached[0] if all(name in env for env in reached)]
    joined = {name: merge(*(env[name] for env in reached)) for name in names}
    return joined | sometimes(kept - joined.keys(), reached)


def sometimes(names: set[str], envs: list[dict[str, Type]]) -> dict[str, Type]:
    """The variables among some names that at least one point has."""
    if not names:
        return {}
    found = {name: [env[name] for env in envs if name in env] for name in sorted(names)}
    types = {name: merge(*types) for name, types in found.items() if types}
    return {name: ty if isinstance(ty, Maybe) else Maybe(ty) for name, ty in types.items()}


def name_of(dtype: np.dtype) -> str:
    """The dtype's name in a kernel."""
    return "bool_" if dtype == BOOL else dtype.name


def comparable(op: ast.cmpop, left: Type, right: Type) -> None:
    """TypeError if these are not compared."""
    order = isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE))
    if isinstance(left, Member) and left == right and not (order and not left.is_int):
        return
    left, right = number_of(left), number_of(right)
    left, right = (FLOAT32 if ty is BRAIN else ty for ty in (left, right))
    if any(isinstance(ty, Named) and ty.kind != "tuple" for ty in (left, right)):
        raise TypeError("comparison of objects")
    if isinstance(op, (ast.Is, ast.IsNot)):
        raise TypeError("`is` of what is no member")
    times = [ty.kind for ty in (left, right) if isinstance(ty, np.dtype) and ty.kind in "mM"]
    if times and (len(times) != 2 or len(set(times)) != 1):
        raise TypeError("comparison of a time and a number")
    if isinstance(left, tuple) and isinstance(right, tuple):
        if len(left) != len(right):
            raise TypeError("tuples of different lengths")
        for pair in zip(left, right, strict=True):
            comparable(op, *pair)
    elif not (isinstance(left, np.dtype) and isinstance(right, np.dtype)):
        raise TypeError("comparison of arrays")
    elif order and "c" in (left.kind, right.kind):
        raise TypeError("order of complex numbers")


def builtin(target: str, types: tuple[np.dtype, ...]) -> np.dtype:
    """The result type of a cast or a function of numbers."""
    first = types[0]
    if target.startswith("np."):
        return np.dtype(target.removeprefix("np.").rstrip("_"))
    match target:
        case "int":
            return first if first.kind in "iu" else INT64
        case "float":
            return first if first.kind == "f" else FLOAT64
        case "bool":
            return BOOL
        case "abs":
            return {BOOL: np.dtype("int8"), COMPLEX64: FLOAT32, COMPLEX128: FLOAT64}.get(first, first)
        case "complex" if np.dtype("float16") in types:
            raise TypeError("complex of float16")
        case "complex":
            return COMPLEX64 if set(types) == {FLOAT32} else COMPLEX128
        case "min" | "max":
            return unify(*types)
        case "round":
            return first if numeric.is_int(first) else INT64
    raise TypeError(target)


def converted(node: ast.expr, have: Type, want: Type) -> ast.expr:
    """An expression for `node`, of type `have`, as a `want`."""
    if have == want or (have is NONE and isinstance(want, Optional)):
        return node
    if isinstance(want, Optional):
        if not isinstance(have, Optional):
            return converted(node, have, want.of)
        held, name = node, node
        if not isinstance(node, ast.Name):
            name = ast.Name(f"_p{next(_names)}", ast.Load())
            held = ast.NamedExpr(ast.Name(name.id, ast.Store()), node)
        none = ast.Compare(held, [ast.Is()], [ast.Constant(None)])
        return ast.IfExp(none, ast.Constant(None), converted(name, have.of, want.of))
    if want is BRAIN:
        return ast.Call(ast.Attribute(ast.Name("cuda", ast.Load()), "bfloat16", ast.Load()), [node], [])
    if isinstance(want, np.dtype) and want.kind not in "mM":
        return ast.Call(ast.Attribute(ast.Name("np", ast.Load()), name_of(want), ast.Load()), [node], [])
    if not isinstance(want, tuple):
        raise TypeError(f"{have} does not become {want}")
    items = []
    for position, (before, after) in enumerate(zip(have, want, strict=True)):
        item = node.elts[position] if isinstance(node, ast.Tuple) else None
        if item is None:
            item = ast.Subscript(node, ast.Constant(position), ast.Load())
            if not position and not isinstance(node, ast.Name):  # evaluated once: it may have effects
                name = f"_p{next(_names)}"
                item.value = ast.NamedExpr(ast.Name(name, ast.Store()), node)
                node = ast.Name(name, ast.Load())
        items.append(converted(item, before, after))
    return ast.Tuple(items, ast.Load())


_names = itertools.count()


def conversions(have: Env, want: Env) -> list[ast.stmt]:
    """Statements that convert variables to the types of another environment, and initialize missing ones with zero."""
    if have is None or want is None:
        return []
    lines = []
    for name, ty in want.items():
        if have.get(name) is ty or isinstance(ty, Known):
            continue
        after = ty.type if isinstance(ty, Maybe) else ty
        if name not in have:
            value = zero(after)
        elif ty is UNKNOWN or have[name] is UNKNOWN or ty == Maybe(have[name]):
            continue
        else:
            before = have[name].type if isinstance(have[name], Maybe) else have[name]
            value = converted(ast.Name(name, ast.Load()), before, after) if before != after else None
        if value is not None:
            lines.append(ast.Assign([ast.Name(name, ast.Store())], value))
    return lines


def zero(ty: Type) -> ast.expr | None:
    """An expression of a zero; an array has none."""
    if ty is BRAIN:
        return ast.parse("cuda.bfloat16(0)", mode="eval").body
    if isinstance(ty, np.dtype) and ty.kind in "mM":
        raise TypeError("a time without a value")
    if isinstance(ty, np.dtype):
        return ast.parse(f"np.{name_of(ty)}(0)", mode="eval").body
    items = [zero(item) for item in ty] if isinstance(ty, tuple) else [None]
    return None if None in items else ast.Tuple(items, ast.Load())


def load(name: str) -> ast.expr:
    """A variable that is read."""
    return ast.Name(name, ast.Load())


def read_of(target: ast.expr) -> ast.expr:
    """The expression that reads a target."""
    match target:
        case ast.Name(id=name):
            return load(name)
        case ast.Subscript(value=value, slice=index):
            return ast.Subscript(value, index, ast.Load())
        case ast.Attribute(value=value, attr=name):
            return ast.Attribute(value, name, ast.Load())
    raise TypeError("an update of an expression that is no target")


def dotted(node: ast.expr) -> str:
    """`a.b.c`, or nothing."""
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        return owner and f"{owner}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def flattened(statements: list) -> list[ast.stmt]:
    """Statements of which some are lists of statements, and so on in their bodies."""
    out: list[ast.stmt] = []
    for statement in statements:
        if isinstance(statement, list):
            out += flattened(statement)
            continue
        if hasattr(statement, "body"):
            statement.body = flattened(statement.body) or [ast.Pass()]
        if hasattr(statement, "orelse"):
            statement.orelse = flattened(statement.orelse)
        out.append(statement)
    return out
