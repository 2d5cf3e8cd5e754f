"""Python's own functions as kernels have them, for kernels that CPython runs: by Numba's rules, and by NumPy's."""

from __future__ import annotations

import builtins
import functools

import numpy as np

from weft.cuda._cpython import native
from weft.cuda._cpython.arrays import Array, name_casts
from weft.cuda._cpython.debugger import breakpoint_here
from weft.cuda._cpython.operators import CLASSES, RULES, weakened
from weft.cuda._cpython.promotion import ARITHMETIC, BITS, SHIFTS, is_complex, is_integer
from weft.cuda._cpython.scalars import COMPARISONS, SCALARS, Truth, is_weak, number, plain, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    _Names = dict[str, Any]
else:
    _Names = dict


class _Range:
    """A range: its items are numbers of one type, or Python's with NumPy's rules."""

    def __init__(self, convert: Callable[[int], Any], whole: range) -> None:
        self._convert, self._range = convert, whole

    def __iter__(self) -> Iterator[Any]:
        return map(self._convert, self._range)

    def __reversed__(self) -> Iterator[Any]:
        return map(self._convert, reversed(self._range))

    def __len__(self) -> int:
        return len(self._range)

    def count_all(self) -> int:
        """Give how many items there are, or the largest `int64`."""
        first, last, step = self._range.start, self._range.stop, self._range.step
        return min(max(0, -((first - last) // step) if step > 0 else -((last - first) // -step)), (1 << 63) - 1)

    def __contains__(self, item: Any) -> bool:
        return plain(item) in self._range

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            convert = int if self._convert is int else SCALARS["int64"]
            return _Range(convert, self._range[index])
        return self._convert(self._range[index])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Range) and self._range == other._range

    def __hash__(self) -> int:
        return hash(self._range)

    def __getattr__(self, name: str) -> Any:
        if name == "index":
            return lambda item: SCALARS["int64"](self._range.index(item) if item in self._range else -1)
        found = getattr(self._range, name)
        return self._convert(found) if name in ("start", "stop", "step") else found

    def __repr__(self) -> str:
        return repr(self._range)


def _range(numpy: bool) -> Callable[..., Any]:
    def make(*limits: Any) -> _Range:
        names = [type_name(limit) for limit in limits]
        kind = "int64"
        if not numpy and all(name == "int32" for name in names):
            kind = "int32"
        elif not numpy and all(name is not None and name.startswith("u") for name in names):
            kind = "uint64"
        whole = range(*(int(SCALARS[kind](limit)) for limit in limits))
        return _Range(int if numpy else SCALARS[kind], whole)

    return make


class _Int:
    """`int`: returns integers unchanged and converts all other values to `int64`."""

    def __new__(cls, value: Any = 0) -> Any:
        name = type_name(value)
        return number(value) if name is not None and name != "boolean" and is_integer(name) else SCALARS["int64"](value)


class _Float:
    """`float`: returns floats unchanged and converts all other values to `float64`."""

    def __new__(cls, value: Any = 0.0) -> Any:
        return value if isinstance(value, (np.float32, np.float16)) else SCALARS["float64"](value)


class _Complex:
    """`complex`: a `complex128`, but of smaller floats."""

    def __new__(cls, *parts: Any) -> Any:
        names = [type_name(part) for part in parts]
        small = bool(parts) and all(name in ("float16", "bfloat16", "float32", "complex64") for name in names)
        return SCALARS["complex64" if small else "complex128"](*parts)


class _Bool:
    """`bool`."""

    def __new__(cls, value: Any = False) -> Any:
        return bool(value)


class _IntOfPython(_Int):
    """`int` with NumPy's rules: one of Python's."""

    def __new__(cls, value: Any = 0) -> Any:
        return weakened(_Int(value))


class _FloatOfPython(_Float):
    """`float` with NumPy's rules: one of Python's."""

    def __new__(cls, value: Any = 0.0) -> Any:
        return float(_Float(value))


class _ComplexOfPython(_Complex):
    """`complex` with NumPy's rules: one of Python's."""

    def __new__(cls, *parts: Any) -> Any:
        return complex(SCALARS["complex128"](*parts))


_INTS, _FLOATS, _COMPLEXES = (_Int, _IntOfPython), (_Float, _FloatOfPython), (_Complex, _ComplexOfPython)
_CLASSES: dict[Any, tuple[type, ...]] = {
    **dict.fromkeys(_INTS, (int, np.integer)),
    **dict.fromkeys(_FLOATS, (float, np.floating)),
    **dict.fromkeys(_COMPLEXES, (complex, np.complexfloating)),
    _Bool: (bool, Truth),
    SCALARS["boolean"]: (bool, Truth),
}
for _kind, _names in (("int64", _INTS), ("float64", _FLOATS), ("complex128", _COMPLEXES), ("bool", (_Bool,))):
    name_casts(dict.fromkeys(_names, _kind))
    CLASSES.update(dict.fromkeys(_names, SCALARS["boolean" if _kind == "bool" else _kind]))


def _isinstance(value: Any, classes: Any) -> bool:
    each = classes if isinstance(classes, tuple) else (classes,)
    return any(isinstance(value, _CLASSES.get(cls) or cls) for cls in each)


def _beyond(name: str, value: Any, found: Any) -> bool:
    """Return whether a number replaces the current extreme: it is beyond it, or the extreme is NaN."""
    if value != value:
        return False
    if found != found:
        return True
    if value == found == 0:
        return bool(
            np.signbit(value) and not np.signbit(found)
            if name == "min"
            else np.signbit(found) and not np.signbit(value)
        )
    return bool(value < found if name == "min" else value > found)


def _extreme(name: str, numpy: bool) -> Callable[..., Any]:
    rules = RULES[numpy]

    def extreme(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], (Array, _Range)) and len(args[0]) and not kwargs:
            # As in Python: a NaN is returned if it is the first.
            return getattr(builtins, name)(iter(args[0]))
        values = list(args[0]) if len(args) == 1 else list(args)
        if kwargs:
            return getattr(builtins, name)(values, **kwargs)
        if not values:
            return SCALARS["int64"](0)
        common = rules.common(values)
        if common is None:
            return getattr(builtins, name)(values)
        kind, weak = common
        converted = [rules.converted(value, kind, weak=weak) for value in values]
        result = converted[0]
        for value in converted[1:]:
            if _beyond(name, value, result):
                result = value
        return result

    return extreme


def _absolute(numpy: bool) -> Callable[[Any], Any]:
    def absolute(value: Any) -> Any:
        name = type_name(value)
        if name is None:
            return abs(value)
        if is_complex(name):
            found = native.expression("abs(a0)", (value,))
        elif name == "boolean":
            if numpy and not is_weak(value):
                return value
            found = SCALARS["int8"](value) if not numpy else int(value)
        else:
            found = abs(number(value))
        return weakened(found) if numpy and is_weak(value) else found

    return absolute


def _round(numpy: bool) -> Callable[..., Any]:
    def rounded(value: Any, ndigits: Any = None) -> Any:
        name = type_name(value)
        if name is None:
            return round(value, ndigits)
        weak = numpy and is_weak(value)
        if ndigits is None:
            found = value if is_integer(name) else native.expression("round(a0)", (value,), numpy=numpy)
            return weakened(found) if numpy else found
        found = native.expression("round(a0, a1)", (value, int(ndigits)), numpy=numpy)
        return weakened(found) if weak else found

    return rounded


def _divmod(numpy: bool) -> Callable[[Any, Any], Any]:
    rules = RULES[numpy]
    return lambda a, b: (rules.binary("floordiv", a, b), rules.binary("mod", a, b))


def _power(numpy: bool) -> Callable[..., Any]:
    rules = RULES[numpy]
    return lambda base, exp: rules.binary("pow", base, exp)


def _sum(numpy: bool) -> Callable[..., Any]:
    def total(items: Any, start: Any = 0) -> Any:
        rules = RULES[numpy and not isinstance(items, Array)]
        return functools.reduce(functools.partial(rules.binary, "add"), items, start)

    return total


def _type(*args: Any) -> Any:
    """Give the type of a number, or a new class."""
    name = type_name(args[0]) if len(args) == 1 else None
    return SCALARS[name] if name is not None else type(*args)


def _length(numpy: bool) -> Callable[[Any], Any]:
    def length(items: Any) -> Any:
        # Python's `len` fails for more items than its largest index.
        count = items.count_all() if isinstance(items, _Range) else len(items)
        return count if numpy else SCALARS["int64"](count)

    return length


def _position(numpy: bool) -> Callable[..., Any]:
    rules = RULES[numpy]

    def position(items: tuple[Any, ...], item: Any, start: Any = 0, stop: Any = None) -> Any:
        places = range(len(items))[slice(int(start), None if stop is None else int(stop))]
        return SCALARS["int64"](next((at for at in places if rules.compare("eq", item, items[at])), -1))

    return position


def _count(numpy: bool) -> Callable[..., Any]:
    rules = RULES[numpy]

    def count(items: tuple[Any, ...], item: Any) -> Any:
        return SCALARS["int64"](sum(bool(rules.compare("eq", item, each)) for each in items))

    return count


# Methods of tuples, by name.
OF_TUPLES = {numpy: {"index": _position(numpy), "count": _count(numpy)} for numpy in (False, True)}


def of_operator(name: str, *, numpy: bool) -> Any:
    """Give what a function of the module `operator` is in a kernel; None for what has no operator."""
    rules = RULES[numpy]
    plain = name.rstrip("_")
    plain = plain[1:] if plain[:1] == "i" and plain[1:] in (*ARITHMETIC, *BITS, *SHIFTS) else plain
    if plain in COMPARISONS:
        return functools.partial(rules.compare, plain)
    if plain in (*ARITHMETIC, *BITS, *SHIFTS):
        return functools.partial(rules.binary, plain)
    if plain in ("neg", "pos", "invert", "inv"):
        return functools.partial(rules.unary, "invert" if plain == "inv" else plain)
    return {
        "abs": _absolute(numpy),
        "is_": rules.same,
        "is_not": rules.other,
        "contains": lambda items, item: rules.within(item, items),
    }.get(name)


def _enumerate(numpy: bool) -> Callable[..., Any]:
    convert = int if numpy else SCALARS["int64"]
    return lambda items, start=0: ((convert(at), item) for at, item in enumerate(items, int(start)))


def _truth(function: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda items: function(items.ravel().tolist() if isinstance(items, Array) else items)


class _Builtins(_Names):
    """Python's functions as kernels have them."""

    def __getitem__(self, name: str) -> Any:
        return breakpoint_here() if name == "breakpoint" else super().__getitem__(name)


def _made(numpy: bool) -> _Builtins:
    made = _Builtins(vars(builtins))
    made.update(
        {
            "range": _range(numpy),
            "int": _IntOfPython if numpy else _Int,
            "float": _FloatOfPython if numpy else _Float,
            "complex": _ComplexOfPython if numpy else _Complex,
            "bool": _Bool,
            "isinstance": _isinstance,
            "min": _extreme("min", numpy),
            "max": _extreme("max", numpy),
            "abs": _absolute(numpy),
            "round": _round(numpy),
            "divmod": _divmod(numpy),
            "pow": _power(numpy),
            "sum": _sum(numpy),
            "enumerate": _enumerate(numpy),
            "type": _type,
            "len": _length(numpy),
            "any": _truth(any),
            "all": _truth(all),
        }
    )
    return made


BUILTINS = {numpy: _made(numpy) for numpy in (False, True)}
