"""Random calls of `cuda.coop` for `random_programs.py`: collectives of a block or of a group of lanes.

No thread of a program with these returns early, since all threads of a block must reach a call. Calls of a block occur
in uniform control flow; those of a group of lanes also in control flow that is uniform per group. The functions that
reduce values are associative unless a value is NaN; some are not commutative.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import numpy as np

from generators.random_expressions import INTS, TYPES
from generators.random_operations import OperationWriter
from generators.typed_collectives import EXTREMES

if TYPE_CHECKING:
    from collections.abc import Callable

    from generators.random_expressions import Scope
    from generators.typed_values import Type

# Functions of two numbers: of integers and truths, of all, and of pairs of integers of one type.
WHOLE = ("a + b", "a * b", "a ^ b", "a & b", "a | b", "a if a else b", "b if b != 0 else a")
ANY = ("a", "b", "a if a > b else b", "a if a <= b else b", "min(b, a)", "max(a, b)")
COUPLES = (
    "(a[0] * b[0], a[1] * b[0] + b[1])", "(a[0] | b[0], b[1] if b[0] else a[1] + b[1])", "(a[0] + b[0], a[1] ^ b[1])",
    "a if a[0] >= b[0] else b", "b if b[0] > a[0] or (b[0] == a[0] and b[1] < a[1]) else a",
)  # fmt: skip
LARGE = ((64,), (100,), (130,), (8, 9), (3, 5, 7), (256,), (260,), (31, 2), (96,), (289,))


class CollectiveWriter(OperationWriter):
    """Writes the module's constructs."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.bounds: int | None = None  # the kernel's upper bound of threads per block
        self.batches: list[tuple[str, int]] = []  # local arrays of a thread's items, and how many each has
        self.folds: list[str] = []  # device functions of two values

    def writers(self, scope: Scope, depth: int) -> dict[str, Callable[[], list[str]]]:
        return super().writers(scope, depth) | {"collectives": lambda: self.assignment(scope)}

    def large_block(self) -> tuple[int, ...] | None:
        """A larger block than most programs have: collectives use other algorithms there."""
        return self.pick(*LARGE) if "collectives" in self.chosen and self.maybe(0.2) else None

    def definitions_of_features(self) -> list[str]:
        lines = super().definitions_of_features()
        if "collectives" in self.chosen:
            sizes = [self.threads, (self.threads + 31) // 32 * 32, 1024, min(2 * self.threads + 1, 1024)]
            self.bounds = self.pick(None, *sizes, *sizes[:2])
            for _ in range(self.random.randint(0, 2)):
                name = f"cf{len(self.folds)}"
                body = self.pick(*WHOLE, *ANY, *COUPLES)
                text = [f"def {name}(a, b):", f"    return {body}"]
                if " if " in body and body[0] != "(" and self.maybe(0.5):
                    one, _, rest = body.partition(" if ")
                    test, _, two = rest.partition(" else ")
                    text = [text[0], f"    if {test}:", f"        return {one}", f"    return {two}"]
                text.insert(0, "@cuda.jit(device=True)")
                self.functions.sources[name] = ast.parse("\n".join(text)).body[0]
                self.folds.append(name)
                lines += [*text, "", ""]
        return lines

    def options(self) -> str:
        bound = f"launch_bounds={self.bounds}" if self.bounds else ""
        return ", ".join(part for part in (super().options(), bound) if part)

    def start_features(self, scope: Scope, args: dict[str, object]) -> list[str]:
        lines = super().start_features(scope, args)
        if "collectives" in self.chosen and self.bounds and self.bounds <= 320:
            for _ in range(self.random.randint(1, 2)):
                name, many = self.fresh("cl"), self.random.randint(1, 5)
                dtype = self.pick(*(each for each in TYPES if each != "bool_"))
                k = self.fresh("k")
                more = [f"{name} = cuda.local.array({many}, np.{dtype})", f"for {k} in range({many}):"]
                more += [f"    {name}[{k}] = {self.pick(*scope.inputs)} {self.pick('+', '-', '^')} {k}"]
                before = dict(scope.typer.env)
                try:
                    self.accept(scope, more)
                except TypeError:  # of a float there is no `^`
                    scope.typer.env = before
                    more[-1] = f"    {name}[{k}] = {self.pick(*scope.inputs)} - {k}"
                    self.accept(scope, more)
                lines += more
                scope.fixed |= {name, k}
                self.batches.append((name, many))
        return lines

    def exchange(self, scope: Scope) -> list[str]:
        if "collectives" not in self.chosen or self.maybe(0.35):
            return super().exchange(scope)
        return self.collective_statement(scope)

    def collective_statement(self, scope: Scope) -> list[str]:
        """Code that all threads of the block reach."""
        if scope.kernel and self.maybe(0.35):
            return self.of_lanes(scope)
        return self.together(scope, "block", "")

    # Operands of collective operations.

    def brought(self, scope: Scope) -> tuple[str, Type]:
        """A value and its type."""
        kind = self.random.random()
        if kind < 0.1:
            text = self.complex_expr(scope, 1)
        elif kind < 0.3:
            if self.maybe(0.7):
                cast = f"np.{self.pick(*INTS)}"
                text = f"({cast}({self.expr(scope, 1)}), {cast}({self.expr(scope, 0)}))"
            else:
                text = f"({self.expr(scope, 1)}, {self.expr(scope, 0)})"
        elif kind < 0.55:
            text = f"np.{self.pick(*TYPES, 'float16')}({self.expr(scope, 1)})"
        else:
            text = self.expr(scope, 1)
        return text, scope.type_of(text)

    def fold(self, ty: Type) -> str:
        """A function that reduces two values of a type to one."""
        if isinstance(ty, tuple):
            alike = len(set(ty)) == 1 and isinstance(ty[0], np.dtype) and ty[0].kind in "iu"
            body = self.pick(*(COUPLES if alike else COUPLES[3:4]), "a", "b")
        elif ty.kind == "c":
            body = self.pick("a", "b")
        elif self.maybe(0.15):
            return self.pick(*EXTREMES)
        else:
            body = self.pick(*(WHOLE if ty.kind in "iub" else ()), *ANY)
        able = [name for name in self.folds if body in ast.unparse(self.functions.sources[name])]
        return self.pick(*able) if able and self.maybe(0.7) else f"lambda a, b: {body}"

    def so_many(self, scope: Scope, most: int) -> str:
        """A uniform number that is at least 1."""
        options = [text for text in scope.uniform if scope.is_int(text)]
        if options and self.maybe(0.5):
            return f"1 + {self.pick(*options)} % {most}"
        return str(self.random.randint(1, most))

    def together(self, scope: Scope, kind: str, many: str) -> list[str]:
        """A collective of a block, or of a group of `many` lanes."""
        choice, batches = self.random.random(), self.batches if scope.kernel else []
        few = self.bounds and self.bounds <= 640  # groups of lanes have memory of their own for each kind of items
        if choice < 0.27 and (few or kind == "block"):
            return self.sorted(scope, kind, many)
        if choice < 0.45 and batches:
            return self.exchanged(scope, kind, many)
        if choice < 0.65:
            return self.reduced(scope, kind, many)
        return self.scanned(scope, kind, many)

    def batch(self, scope: Scope) -> tuple[str, Type, bool]:
        """A value or an array of items; its type, or that of an item; and whether it is an array."""
        if scope.kernel and self.batches and self.maybe(0.3):
            name, _ = self.pick(*self.batches)
            return name, scope.type_of(name).dtype, True
        return *self.brought(scope), False

    def used(self, scope: Scope, call: str, ty: Type) -> list[str]:
        """A statement that uses the result of a call."""
        if isinstance(ty, np.dtype) and ty.kind != "c":
            return [f"{self.target(scope)} = {call} {self.pick('+', '-')} {self.expr(scope, 1)}"]
        return [f"{self.fresh('z' if isinstance(ty, np.dtype) else 't')} = {call}"]

    def item(self, scope: Scope, name: str) -> str:
        """An item of a thread's."""
        many = dict(self.batches)[name]
        return f"{self.target(scope)} = {name}[{self.index(scope, many)}] + {self.expr(scope, 0)}"

    def reduced(self, scope: Scope, kind: str, many: str) -> list[str]:
        text, ty, _ = self.batch(scope)
        able = ["reduce"]
        if isinstance(ty, np.dtype):
            able += ["sum", *(EXTREMES if ty.kind != "c" else ())]
        name = self.pick(*able)
        words = f", {self.fold(ty)}" if name == "reduce" else ""
        words += many
        last = False
        if self.maybe(0.3):
            words += f", valid={self.so_many(scope, self.threads if kind == 'block' else self.fewest(many))}"
        if kind == "block" and self.maybe(0.3):
            last = self.maybe(0.7)
            words += f", broadcast={not last}"
        call = f"cuda.coop.{kind}.{name}({text}{words})"
        gives = scope.type_of(call)
        if not last:
            return self.used(scope, call, gives)
        first = "t == 0" if scope.kernel else None
        if first is None or not isinstance(gives, np.dtype) or gives.kind == "c":
            return [call]
        v, other = self.fresh("v"), self.expr(scope, 1)
        return [f"{v} = {call}", f"if not {first}:", f"    {v} = {other}"]

    def scanned(self, scope: Scope, kind: str, many: str) -> list[str]:
        text, ty, array = self.batch(scope)
        way = self.pick("inclusive", "exclusive")
        sums = isinstance(ty, np.dtype) and self.maybe(0.5)
        words = "" if sums else f", {self.fold(ty)}"
        if way == "exclusive" and not sums:
            words += f", {self.initial(scope, ty)}"
        words += many
        whole = self.maybe(0.35)
        if whole or self.maybe(0.1):
            words += f", aggregate={whole}"
        call = f"cuda.coop.{kind}.{way}_{'sum' if sums else 'scan'}({text}{words})"
        if array:
            lines = self.used(scope, call, scope.type_of(call)) if whole else [call]
            return [*lines, self.item(scope, text)]
        gives = scope.type_of(call)
        if whole and isinstance(gives[0], np.dtype) and gives[0].kind != "c" and self.maybe(0.7):
            return [f"{self.target(scope)}, {self.fresh('v')} = {call}"]
        return self.used(scope, call, gives)

    def initial(self, scope: Scope, ty: Type) -> str:
        """A uniform value that is convertible to a type."""
        if isinstance(ty, tuple):
            return f"({', '.join(self.initial(scope, item) for item in ty)},)"
        more = ("0.5j", "(1.5 - 2j)") if ty.kind == "c" else ()
        return self.pick("0", "1", *scope.uniform, *more)

    def sorted(self, scope: Scope, kind: str, many: str) -> list[str]:
        text, ty, array = self.batch(scope)
        if not isinstance(ty, np.dtype) or ty.kind == "c":
            text = f"np.{self.pick(*INTS, 'float32', 'float64')}({self.expr(scope, 1)})"
            ty, array = scope.type_of(text), False
        merges = kind == "warp" or ty.kind == "b" or self.maybe(0.5)
        pairs, values = kind == "block" and self.maybe(0.35), ""
        if pairs and array:
            length = dict(self.batches)[text]
            others = [name for name, many_items in self.batches if many_items == length and name != text]
            pairs, values = bool(others), self.pick(*others) if others else ""
        elif pairs:
            values = self.expr(scope, 1)
        name = f"{'merge' if merges else 'radix'}_sort_{'pairs' if pairs else 'keys'}"
        words = f", {values}" if pairs else ""
        if merges:
            less = self.pick("a > b", "a < b", "(a & 3) < (b & 3)" if ty.kind in "iu" else "b < a")
            words += f", {self.pick('', 'less=')}lambda a, b: {less}" if self.maybe(0.4) else ""
            words += many
            if self.maybe(0.3):
                words += f", valid={self.so_many(scope, self.threads)}"
        else:
            name += self.pick("", "_descending")
            if self.maybe(0.4):
                width = 8 * ty.itemsize
                first = self.random.randint(0, width - 1)
                words += self.pick(f", begin_bit={first}", f", end_bit={first + 1}")
        call = f"cuda.coop.{kind}.{name}({text}{words})"
        if array:
            return [call, self.item(scope, text)]
        if pairs:
            scope.type_of(call)
            return [f"{self.target(scope)}, {self.fresh('v')} = {call}"]
        return self.used(scope, call, scope.type_of(call))

    def exchanged(self, scope: Scope, kind: str, many: str) -> list[str]:
        name, length = self.pick(*self.batches)
        if kind == "warp" or self.maybe(0.5):
            way = self.pick("striped_to_blocked", "blocked_to_striped")
            return [f"cuda.coop.{kind}.{way}({name}{many})", self.item(scope, name)]
        places, k, total = self.fresh("cr"), self.fresh("k"), self.threads * length
        by = self.so_many(scope, total)
        at = f"t * {length} + {k}"
        place = self.pick(f"{total - 1} - ({at})", f"({at} + ({by})) % {total}", f"{k} * {self.threads} + t", at)
        dtype = self.pick("int32", "int64", "uint16")
        scope.fixed |= {places, k}
        way = self.pick("blocked", "striped")
        return [
            f"{places} = cuda.local.array({length}, np.{dtype})", f"for {k} in range({length}):",
            f"    {places}[{k}] = {place}", f"cuda.coop.block.scatter_to_{way}({name}, {places})",
            self.item(scope, name),
        ]  # fmt: skip

    # Groups of lanes.

    def fewest(self, many: str) -> int:
        """How many threads the smallest group has."""
        width = int(many.rpartition("=")[2]) if many else 32
        return self.threads % width or width

    def of_lanes(self, scope: Scope) -> list[str]:
        """Collectives of groups of lanes, perhaps of some groups only, or in loops of their own."""
        width = self.pick(1, 2, 4, 8, 16, 32, 32)
        many = "" if width == 32 and self.maybe(0.6) else f", threads={width}"
        before, fixed, count = dict(scope.typer.env), set(scope.fixed), self.random.random()
        lines = self.together(scope, "warp", many)
        if count < 0.4:
            return lines
        while self.maybe(0.3):
            self.accept(scope, lines)
            lines += self.together(scope, "warp", many)
        scope.typer.env, scope.fixed = before, fixed
        which = f"t // {width}"
        if count < 0.75:
            head = f"if {which} % {self.pick(2, 3)} {self.pick('==', '!=', '<')} {self.pick(0, 1)}:"
        elif count < 0.85:
            head = f"if {self.condition(scope, 0, uniform=True)}:"
        else:
            head = f"for {self.fresh('k')} in range({which} % {self.pick(2, 3)} + {self.pick(0, 1)}):"
        return [head, *(f"    {line}" for line in lines)]
