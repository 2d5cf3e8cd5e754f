"""Parameters, extents, and a writer of source lines: what every part of the generator needs."""

from __future__ import annotations

import contextlib
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_INPUTS = 4
FLOATS = ("float32", "float32", "float32", "float64")
INTEGERS = ("int32", "int32", "int64", "uint8", "int16")
INDICES = ("int32", "int32", "int64")
LEAST_BITS = {"uint8": 8, "int16": 15}
"""Bits of the types that sums overflow when ``typing="numpy"`` does not widen them."""


class Full(Exception):
    """The kernel has as many inputs as it may have."""


@dataclass(frozen=True)
class Param:
    """An array or a number that the kernel gets."""

    name: str
    dtype: str
    shape: tuple[str, ...]
    """Expressions of the names of extents; of a number: empty."""
    values: str
    """"float", "int", "bool", "trips", "starts", "out", "zeros", "in place", or the extent that indices are below."""
    layout: str = "C"
    """"C", "F", or "A": every second element of an array."""

    @property
    def is_output(self) -> bool:
        return self.values in ("out", "zeros", "in place")

    @property
    def type(self) -> str:
        """The parameter's type in a signature."""
        if not self.shape:
            return self.dtype
        axes = [":"] * len(self.shape)
        if self.layout != "A":
            axes[-1 if self.layout == "C" else 0] = "::1"
        return f"{'boolean' if self.dtype == 'bool' else self.dtype}[{', '.join(axes)}]"


@dataclass
class Scope:
    """The values that a statement may use."""

    shape: tuple[str, ...]
    """The extents of the arrays that have an element for each thread."""
    index: str
    """The index of a thread's own element of these."""
    flat: str
    """A variable that is different in each thread, from 0 on."""
    floats: list[str] = field(default_factory=list)
    ints: list[tuple[str, int]] = field(default_factory=list)
    """Integers, and what their absolute value is at most."""
    depth: int = 0
    trips: int = 1
    """How often a statement in this scope is executed, roughly."""

    def inner(self, trips: int = 1) -> Scope:
        return Scope(
            self.shape, self.index, self.flat, [*self.floats], [*self.ints], self.depth + 1, self.trips * trips
        )


class Build:
    """Writes lines, names variables and parameters, and records which constructs were used."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.functions: list[str] = []
        self.constants: list[str] = []
        self.params: dict[str, Param] = {}
        self.numbers: set[str] = set()
        """The extents that the kernel's code names."""
        self.features: set[str] = set()
        self.indent = 1
        self.count = 0
        self.cost = 0
        """Bytes and operations of a thread, roughly."""
        self.numpy = self.maybe(0.33)
        self.diverges = self.maybe(0.35)
        self.literals = self.of("plain", "float32", "mixed")
        self.widest_float = self.of("float32", "float32", "float64")

    # Chance.

    def maybe(self, probability: float) -> bool:
        return self.rng.random() < probability

    def of(self, *choices):
        return self.rng.choice(choices)

    # Text.

    def use(self, *features: str) -> None:
        self.features.update(features)

    def put(self, *lines: str) -> None:
        self.lines += ["    " * self.indent + line for line in lines]

    @contextlib.contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.put(head)
        self.indent += 1
        yield
        self.indent -= 1

    def new(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def number(self, extent: str) -> str:
        """The variable with an extent."""
        self.numbers.add(extent)
        return extent.lower()

    def pays(self, scope: Scope, cost: int, trips: int = 1) -> None:
        self.cost += cost * scope.trips * trips

    # Parameters.

    def inputs(self) -> list[Param]:
        return [each for each in self.params.values() if each.shape and not each.is_output]

    def array(self, prefix: str, dtypes: tuple[str, ...], shape: tuple[str, ...], values: str) -> str:
        """An input array: one that exists, or a new one."""
        found = [each for each in self.inputs() if (each.shape, each.values) == (shape, values)]
        if found and (self.maybe(0.5) or len(self.inputs()) >= MOST_INPUTS):
            return self.of(*found).name
        if len(self.inputs()) >= MOST_INPUTS:
            raise Full
        dtype, layout = self.of(*dtypes), "C"
        if values in ("float", "int") and not prefix.startswith("t") and self.maybe(0.12):
            layout = self.of("A", "F") if len(shape) > 1 else "A"
            self.use("strided array" if layout == "A" else "Fortran order")
        self.use(dtype)
        return self.param(Param(self.new(prefix), dtype, shape, values, layout))

    def param(self, param: Param) -> str:
        self.params[param.name] = param
        return param.name

    def output(self, shape: tuple[str, ...], dtype: str, values: str = "out") -> str:
        return self.param(Param(self.new("out" if values != "zeros" else "counts"), dtype, shape, values))

    # Expressions.

    def literal(self, value: float) -> str:
        """A constant; plain ones are float64 with Numba's typing."""
        style = self.literals if self.literals != "mixed" else self.of("plain", "float32")
        self.use("plain float literal" if style == "plain" else "float32 literal")
        return f"{value}" if style == "plain" else f"np.float32({value})"

    def zero(self) -> str:
        return self.literal(0.0)

    def read(self, name: str, index: str) -> str:
        """An element of an array; a small integer as int32 if sums would otherwise overflow."""
        text = f"{name}[{index}]"
        if self.numpy and self.params[name].dtype in LEAST_BITS:
            return f"np.int32({text})"
        return text

    def cyclic(self, name: str, index: str) -> str:
        """An element of a table of T elements, at any index that is not negative."""
        return self.read(name, f"({index}) % {self.number('T')}")

    def exact(self, scope: Scope) -> str:
        """A float from memory, unrounded, so that a comparison with it has the same result in all variants."""
        name = self.array("x", self.float_types(), scope.shape, "float")
        self.pays(scope, 4)
        return self.read(name, scope.index)

    def float_types(self) -> tuple[str, ...]:
        return FLOATS if self.widest_float == "float64" else ("float32",)

    def float_of(self, scope: Scope) -> str:
        if scope.floats and self.maybe(0.6):
            return self.of(*scope.floats)
        with contextlib.suppress(Full):
            return self.exact(scope)
        return self.of(*scope.floats) if scope.floats else f"({scope.flat} % 16) * {self.literal(0.125)}"

    def int_of(self, scope: Scope) -> tuple[str, int]:
        """An integer and its bound."""
        if scope.ints and self.maybe(0.5):
            return self.of(*scope.ints)
        if not self.inputs() or self.maybe(0.75):
            with contextlib.suppress(Full):
                name = self.array("k", INTEGERS, scope.shape, "int")
                self.pays(scope, 4)
                return self.read(name, scope.index), 100
        return f"{scope.flat} % {(most := self.rng.choice((7, 16, 64, 100)))}", most

    def condition(self, scope: Scope) -> str:
        """A condition that differs between threads."""
        kind = self.rng.random()
        with contextlib.suppress(Full):
            if kind < 0.2:
                self.use("bool")
                return self.read(self.array("mask", ("bool",), scope.shape, "bool"), scope.index)
            if kind < 0.55:
                return f"{self.exact(scope)} {self.of('>', '<', '>=')} {self.literal(self.of(-0.5, 0.25, 1.0, 1.5))}"
            if kind < 0.7:
                return f"{self.exact(scope)} < {self.exact(scope)}"
        value, bound = self.int_of(scope)
        if self.maybe(0.5):
            return f"({value}) % {self.rng.randint(2, 5)} == {self.rng.randint(0, 1)}"
        return f"{value} {self.of('<', '>')} {self.rng.randint(1, max(2, bound - 1))}"

    def made(self, scope: Scope, name: str, bound: int | None = None) -> None:
        """Records a new variable: a float, or an integer with this bound."""
        if bound is None:
            scope.floats.append(name)
        elif bound > 1000:
            self.put(f"{name} %= 1000")
            scope.ints.append((name, 1000))
        else:
            scope.ints.append((name, bound))
