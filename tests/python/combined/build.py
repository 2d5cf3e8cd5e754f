"""Helpers to write pieces of kernels: names, parameters, extents, small expressions, blocks of lines.

A `Scope` has the values that statements at one point may use: the index of the thread's own element, its row and
column, and variables with bounds of their values. Every value has a bound, so that nothing wraps and every float is
exact.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

SIGNED = ("int32", "int64", "int16", "int8")
UNSIGNED = ("uint8", "uint16", "uint32")
FLOATS = ("float32", "float32", "float64")
MOST = 1 << 20  # the largest value; sums are exact in float32 up to 2**24
NARROW = {"int8": 63, "uint8": 127, "int16": 8191, "uint16": 8191}


@dataclass
class Param:
    """An array or a number that a launch passes."""

    name: str
    dtype: str
    extents: tuple[str | int, ...]  # keys of a launch's dimensions, or constants; none for a number
    values: tuple[str, int, int]  # how elements are drawn: "ints", low, high; "key" for a dimension
    layout: str = "C"  # C, F, or A: rows with padding
    key: str = ""  # of a number: the dimension


@dataclass
class Scope:
    """The values that statements may use."""

    own: str  # the index of the thread's own element; below `count`
    count: str  # the dimension that has the number of elements
    row: str = ""  # the element's row and column, in two dimensions
    column: str = ""
    ints: list[tuple[str, int]] = field(default_factory=list)  # variables with bounds of their sizes
    floats: list[tuple[str, int]] = field(default_factory=list)
    work: int = 1  # how often statements run for each element
    returns: bool = True  # a thread may return here
    depth: int = 0
    fixed: set[str] = field(default_factory=set)  # variables that may not be assigned
    tile: str = ""  # the thread's number in its block, in kernels with barriers
    function: bool = False  # a device function's body

    def inner(self, **changes: object) -> Scope:
        """The scope of a nested block: variables first assigned there do not exist outside."""
        return replace(self, ints=list(self.ints), floats=list(self.floats), depth=self.depth + 1, **changes)


class Build:
    """A kernel that is being written."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.params: dict[str, Param] = {}
        self.lines: list[str] = []
        self.functions: list[list[str]] = []
        self.tables: list[str] = []
        self.indent = 1
        self.numbers = 0
        self.features: set[str] = set()
        self.positive: set[str] = set()  # dimensions that may not be 0
        self.growing: set[str] = set()  # arrays whose elements would grow without bounds if they were also read
        self.cost: dict[tuple[str, ...], int] = {}  # factors of a trip count, and how often they occur

    # Chance.

    def maybe(self, chance: float) -> bool:
        return self.rng.random() < chance

    def pick(self, *items: object) -> object:
        return items[int(self.rng.random() * len(items))]

    def of(self, *items: str) -> str:
        """One of several strings."""
        return items[int(self.rng.random() * len(items))]

    # Lines.

    def put(self, *lines: str) -> None:
        self.lines += ["    " * self.indent + line for line in lines]

    @contextlib.contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.put(head)
        self.indent += 1
        size = len(self.lines)
        yield
        if len(self.lines) == size:
            self.put("pass")
        self.indent -= 1

    def new(self, stem: str) -> str:
        self.numbers += 1
        return f"{stem}{self.numbers}"

    def use(self, *features: str) -> None:
        self.features.update(features)

    # Parameters.

    def array(
        self, stem: str, dtype: str, extents: tuple[str | int, ...], values: tuple[str, int, int] = ("ints", 0, 9)
    ) -> str:
        """A new array. Its name is arbitrary; its type is the same in all launches."""
        name = self.new(stem)
        layout = "C"
        if self.maybe(0.16):
            layout = self.of("A", "F") if len(extents) > 1 else "A"
            self.use(f"layout {layout}")
        self.use(dtype)
        if dtype.startswith("u"):
            values = (values[0], max(values[1], 0), values[2])
        self.params[name] = Param(name, dtype, extents, values, layout)
        return name

    def ints_in(self, *extents: str | int, low: int = 0, high: int = 9, like: str = "") -> str:
        """An array of integers that is read; sometimes one that is there already."""
        for param in self.params.values():
            same = param.extents == extents and param.values == ("ints", low, high) and param.dtype[0] in "iu"
            if same and param.name[0] in "xa" and self.maybe(0.6):
                return param.name
        dtype = like or (self.of(*UNSIGNED) if low >= 0 and self.maybe(0.25) else self.of(*SIGNED))
        return self.array("a" if len(extents) > 1 else "x", dtype, extents, ("ints", low, high))

    def floats_in(self, *extents: str | int) -> str:
        """An array of floats that is read."""
        for param in self.params.values():
            if param.extents == extents and param.dtype[0] == "f" and param.name[0] in "fg" and self.maybe(0.6):
                return param.name
        return self.array("g" if len(extents) > 1 else "f", self.of(*FLOATS), extents, ("ints", -8, 8))

    def out(self, dtype: str, *extents: str | int) -> str:
        """An array that is written. Its initial values show whether an element was written."""
        return self.array("o", dtype, extents, ("ints", 77, 77))

    def number(self, key: str) -> str:
        """A parameter for a dimension."""
        for param in self.params.values():
            if param.key == key:
                return param.name
        name = {"N": "n", "M": "m", "W": "w", "H": "h", "K": "q"}.get(key, key.lower())
        self.params[name] = Param(name, "int64", (), ("key", 0, 0), key=key)
        return name

    def extent(self, key: str | int) -> str:
        """How the kernel writes an extent."""
        if isinstance(key, int):
            return str(key)
        shaped = [
            f"{param.name}.shape[{axis}]"
            for param in self.params.values()
            for axis, each in enumerate(param.extents)
            if each == key
        ]
        if shaped and self.maybe(0.2):
            return self.of(*shaped)
        return self.number(key)

    def of_extents(self, *extents: str | int) -> str | int:
        """One of some extents."""
        return self.rng.choice(extents)

    def some_extent(self) -> str | int:
        """The length of rows: a dimension, or a constant."""
        if self.maybe(0.15):
            self.use("constant trip count")
            return int(self.pick(2, 3, 4, 8, 16, 17, 20))  # type: ignore[call-overload]
        return self.of("M", "M", "M", "K")

    def trips(self, scope: Scope, *extents: str | int) -> None:
        """Records the cost of a loop, for the choice of a launch's dimensions."""
        size = scope.work
        keys: list[str] = []
        for extent in extents:
            if isinstance(extent, int):
                size *= extent
            else:
                keys.append(extent)
        key = tuple(sorted(keys))
        self.cost[key] = self.cost.get(key, 0) + size

    # Expressions.

    def read(self, array: str, index: str) -> str:
        """An element. Sums of unsigned ones are uint64, which with an int64 is a float: so they are converted first."""
        if self.params[array].dtype.startswith("u"):
            return f"np.{self.of('int32', 'int64')}({array}[{index}])"
        return f"{array}[{index}]"

    def int_of(self, scope: Scope) -> tuple[str, int]:
        """A small integer: the expression and a bound of its absolute value."""
        choices: list[tuple[str, int]] = [(scope.own, 130)] if scope.own else []
        choices += scope.ints[-4:]
        if scope.column:
            choices += [(scope.row, 130), (scope.column, 130)]
        if scope.tile and self.maybe(0.3):
            choices.append((scope.tile, 256))
        if not choices or self.maybe(0.2):
            value = self.rng.randint(1, 9)
            return str(value), value
        text, bound = choices[int(self.rng.random() * len(choices))]
        if bound > 300 or self.maybe(0.4):
            modulus = int(self.rng.choice((2, 3, 4, 5, 7, 8, 16, 31, 64, 100)))
            if self.maybe(0.3) and modulus & (modulus - 1) == 0:
                return f"({text} & {modulus - 1})", modulus
            return f"({text} % {modulus})", modulus
        return text, bound

    def float_of(self, scope: Scope) -> tuple[str, int]:
        """A float expression."""
        if scope.floats and self.maybe(0.7):
            text, bound = scope.floats[int(self.rng.random() * len(scope.floats))]
            if bound <= 4096:
                return text, bound
        text, bound = self.int_of(scope)
        return f"{self.of('np.float32', 'np.float64')}({text})", bound

    def condition(self, scope: Scope) -> str:
        """A condition that some threads meet."""
        one, _ = self.int_of(scope)
        kind = self.rng.random()
        if kind < 0.25:
            return f"{one} % {self.rng.randint(2, 4)} == {self.of('0', '1')}"
        if kind < 0.35:
            return f"({one} & 1) != 0"
        if kind < 0.5 and scope.own:
            return f"{scope.own} % {self.of('2', '3', '4', '32')} {self.of('==', '!=')} 0"
        if kind < 0.65 and scope.own:
            self.use("part of a row")
            return self.of(
                f"{scope.own} > 0",
                f"{scope.own} < {self.extent(scope.count)} - 1",
                f"{scope.own} >= {self.rng.randint(1, 40)}",
                f"{scope.own} == {self.rng.randint(0, 5)}",
                f"0 < {scope.own} < {self.extent(scope.count)} - 1",
                f"not ({scope.own} > {self.rng.randint(0, 9)} and {scope.own} < {self.extent(scope.count)} - 1)",
            )
        other, _ = self.int_of(scope)
        text = f"{one} {self.of('<', '<=', '>', '!=')} {other}"
        if self.maybe(0.2):
            text += f" {self.of('and', 'or')} {self.condition(scope)}"
        return text

    def index(self, scope: Scope, extent: str | int) -> str:
        """An index that is in bounds for any thread."""
        text, _ = self.int_of(scope)
        if isinstance(extent, str):
            self.positive.add(extent)
        return f"{text} % {self.extent(extent)}"

    def settle(self, scope: Scope, name: str, bound: int, *, floating: bool = False) -> None:
        """Adds a new value to the scope. A value that may be large is reduced first."""
        if floating:
            if bound > 4096:
                small = self.new("v")
                self.put(f"{small} = int({name}) % 509")
                scope.ints.append((small, 509))
                return
            scope.floats.append((name, bound))
            return
        if bound > MOST:
            self.put(f"{name} = {name} % 1021")
            bound = 1021
        scope.ints.append((name, bound))

    def store(self, scope: Scope, name: str, bound: int, *, floating: bool = False) -> None:
        """Stores a value into the thread's own element of a new array."""
        dtype = self.of(*FLOATS) if floating else self.of(*SIGNED, *FLOATS, *UNSIGNED)
        two = bool(scope.column) and self.maybe(0.6)
        array = self.out(dtype, *(("H", "W") if two else (scope.count,)))
        index = f"{scope.row}, {scope.column}" if two else scope.own
        text = name
        if dtype in NARROW and bound > NARROW[dtype]:
            text = f"{name} & {NARROW[dtype]}"
        elif dtype[0] == "u":
            text = f"{name} & {NARROW.get(dtype, 65535)}"
        self.put(f"{array}[{index}] = {text}")
