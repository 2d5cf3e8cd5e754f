"""Random accesses to memory for `random_programs.py`: views, copies of views, atomics, and exchanges between threads.

A sum that all threads add to is never read, or read after a barrier. Between two barriers, a thread writes its own
cell of a shared array or reads the cells of others.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from generators.random_expressions import WIDTH, Scope
from generators.random_values import ValueWriter
from generators.typed_values import name_of

SLICES = (":", "::-1", "1:", ":-1", "::2", "1::2", "::-2", "-2::-1", "-3:", ":-3:-1", "1:-1", "2::-1")


@dataclasses.dataclass
class Shared:
    """A shared array with a cell for each thread."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    own: tuple[str, ...]  # the thread's indices


class MemoryWriter(ValueWriter):
    """Writes accesses to memory."""

    def row(self, scope: Scope) -> str:
        """A writable row of WIDTH elements."""
        if not scope.planes or (scope.rows and self.maybe(0.6)):
            return self.pick(*scope.rows)
        plane, rows = self.pick(*scope.planes)
        at = self.index(scope, rows)
        return plane + self.pick(f"[{at}]", f"[{at}, ::-1]", f"[{at}][::-1]", f".T[:, {at}]", f"[::-1][{at}]")

    def element(self, scope: Scope) -> str:
        """An element of a row or a plane, perhaps through more views."""
        if scope.planes and (not scope.rows or self.maybe(0.3)):
            plane, rows = self.pick(*scope.planes)
            row, column = self.index(scope, rows), self.index(scope)
            return plane + self.pick(
                f"[{row}, {column}]", f"[{row}, {column}]", f".T[{column}, {row}]", f"[{row}][{column}]"
            )
        row, length = self.row(scope), WIDTH
        while self.maybe(0.2):
            part = self.pick(*SLICES)
            if left := len(self.cut(length, part)):
                row, length = f"{row}[{part}]", left
        if self.maybe(0.05) and not self.in_index:
            start = self.index(scope, length)
            return self.pick(f"{row}[{start}:][0]", f"{row}[{start}::-1][-1]", f"{row}[{start}:][::-1][-1]")
        return f"{row}[{self.index(scope, length)}]"

    @staticmethod
    def cut(length: int, part: str) -> range:
        """The indices that a slice selects."""
        return range(length)[slice(*(int(bound) if bound else None for bound in part.split(":")))]

    def own_atomic(self, scope: Scope, depth: int) -> str:
        """An atomic addition to an element of the thread's own, so that the old value is known."""
        plane = bool(scope.planes) and (not scope.rows or self.maybe(0.3))
        if plane:
            array, rows = self.pick(*scope.planes)
            index = f"({self.index(scope, rows)}, {self.index(scope)})"
        else:
            array, index = self.row(scope), self.index(scope)
        if scope.type_of(array).dtype.kind not in "iu":
            return self.element(scope)
        return f"cuda.atomic.add({array}, {index}, {self.expr(scope, depth - 1)})"

    # Statements.

    def views_statement(self, scope: Scope) -> list[str]:
        """Copies a view into one of another array, or fills one."""
        planes = len(scope.planes) > 0 and self.maybe(0.5)
        if planes:
            target, rows = self.pick(*scope.planes)
            other = [(text, count) for text, count in scope.planes if self.apart(text, target)]
            source, count = self.pick(*other) if other else ("", 0)
        else:
            target, rows = self.row(scope), 0
            other = [text for text in (self.row(scope), *scope.sources) if self.apart(text, target)]
            source, count = self.pick(*other) if other else "", 0
        into, extents = self.part_of(target, rows)
        if not source or self.maybe(0.25):
            return [f"{into} = {self.expr(scope, 1)}"]
        for _ in range(30):
            what, same = self.part_of(source, count)
            if same == extents:
                return [f"{into} = {what}"]
        return [f"{into} = {self.expr(scope, 1)}"]

    def part_of(self, text: str, rows: int) -> tuple[str, list[int]]:
        """A view of a row (0 rows) or a plane, and its extents."""
        one = self.pick(*SLICES)
        if not rows:
            return f"{text}[{one}]", [len(self.cut(WIDTH, one))]
        two = self.pick(*SLICES)
        extents = [len(self.cut(rows, one)), len(self.cut(WIDTH, two))]
        return self.pick(f"{text}[{one}, {two}]", f"{text}[{one}][:, {two}]", f"{text}.T[{two}].T[{one}]"), extents

    @staticmethod
    def apart(one: str, two: str) -> bool:
        """Whether two expressions are views of different arrays. False if a name may refer to several arrays."""
        names = [text.split("[")[0].split(".")[0] for text in (one, two)]
        root = [name if name[:1] in "mgyu" or name in ("w", "row", "plane") else "w" for name in names]
        return root[0] != root[1] and "q" not in names and not set(root) <= {"row", "plane"}

    def count_statement(self, scope: Scope) -> list[str]:
        """Adds to a sum that all threads add to."""
        name, shape = self.pick(*scope.counters)
        index = ", ".join(self.index(scope, extent) for extent in shape)
        return [f"cuda.atomic.add({name}, {f'({index})' if len(shape) > 1 else index}, {self.expr(scope, 2)})"]

    # Loops that the CPU may interchange with a thread loop.

    def strided_statement(self, scope: Scope) -> list[str]:
        """A grid-stride loop over `ob`: each element belongs to one thread."""
        name, size = self.fresh("e"), self.size
        start, step = "i", self.pick(str(size), f"threads * {size // self.threads}")
        if len(self.grid) == len(self.block_dim) == 1:
            start = self.pick("i", "cuda.grid(1)", "t + cuda.blockIdx.x * cuda.blockDim.x")
            step = self.pick(step, "cuda.gridsize(1)", "cuda.blockDim.x * cuda.gridDim.x")
        bound = self.pick(
            "ob.size", "ob.size", f"{2 * size + 1}", f"ob.size - {self.bound(scope, uniform=True)}", "len(ob)"
        )
        # All loops of a program go in one direction: else two loops would assign an element to different threads.
        if self.backwards is None:
            self.backwards = self.maybe(0.2)
        head = f"range(ob.size - 1 - i, -1, -({step}))" if self.backwards else f"range({start}, {bound}, {step})"
        body = self.cell_loop(scope, f"ob[{name}]", name)
        if not self.backwards and self.maybe(0.25) and not any("continue" in line for line in body):
            return [f"{name} = {start}", f"while {name} < {bound}:", *body, f"    {name} += {step}"]
        return [f"for {name} in {head}:", *body]

    def column_statement(self, scope: Scope) -> list[str]:
        """A loop along a column of `cw`, in the same direction for all threads."""
        name = self.fresh("e")
        cell = self.pick(f"cw[{name}, i]", f"cw[{name}, i]", f"cw[{name}][i]", f"cw[::-1, i][{name}]")
        text = self.pick(f"range({self.bound(scope, uniform=True)})", f"range({self.bound(scope, uniform=True)}, 5)")
        return [f"for {name} in {text}:", *self.cell_loop(scope, cell, name)]

    def cell_loop(self, scope: Scope, cell: str, name: str) -> list[str]:
        """The body of a loop over cells, indented."""
        env, fixed, exits = dict(scope.typer.env), set(scope.fixed), scope.exits
        scope.typer.env[name] = np.dtype("int64")
        scope.fixed.add(name)
        scope.exits = ["break", "continue"] if self.maybe(0.3) else []
        scope.inputs.append(cell)
        scope.typer.loops.append(([], []))
        try:
            lines = self.statement(scope, 0) if self.maybe(0.5) else []
            target = self.target(scope)
            if self.maybe(0.7):
                lines += [self.pick(f"{cell} = ", f"{cell} += ", f"{cell} = {cell} ^ ") + self.expr(scope, 1)]
            lines += [f"{target} = {cell} + {self.expr(scope, 1)}"] if self.maybe(0.7) else []
            if self.maybe(0.3):
                lines = [f"if {self.condition(scope, 1)}:", *(f"    {line}" for line in lines or ["pass"])]
            if self.maybe(0.2):
                lines += self.statement(scope, 0)
        finally:
            scope.typer.loops.pop()
            scope.inputs.pop()
            scope.typer.env, scope.fixed, scope.exits = env, fixed, exits
        return [f"    {line}" for line in lines or ["pass"]]

    # Barriers. `self.shared` are the kernel's shared arrays, `self.tallies` the shared counters.

    def other_cell(self, scope: Scope, cell: Shared) -> str:
        """An expression of another thread's cell."""
        indices = []
        for index, extent in zip(cell.own, cell.shape, strict=True):
            shift = self.bound(scope, uniform=False)
            indices.append(
                self.pick(
                    f"{index} - 1", f"{extent - 1} - {index}", f"({index} + 3) % {extent}", index,
                    f"({index} + {shift}) % {extent}", f"-1 - {index}",
                )
            )  # fmt: skip
        name = cell.name
        if len(indices) == 1:
            return self.pick(f"{name}[{indices[0]}]", f"{name}[{indices[0]}]", f"{name}[::-1][{indices[0]}]")
        turned = ", ".join(reversed(indices))
        chained = "".join(f"[{index}]" for index in indices)
        reverse = f"[{indices[0]}, ::-1][{', '.join(indices[1:])}]"
        return name + self.pick(f"[{', '.join(indices)}]", f".T[{turned}]", chained, reverse)

    def exchange(self, scope: Scope) -> list[str]:
        """All threads write to shared memory, wait, read another thread's value, and wait."""
        if self.tallies and self.maybe(0.3):
            return self.tally(scope)
        if self.exchangers and self.maybe(0.35):
            return self.call_exchanger(scope)
        cell = self.pick(*self.shared)
        own = f"{cell.name}[{', '.join(cell.own)}]"
        read = self.other_cell(scope, cell)
        if cell.dtype.kind == "c":
            complexes = [each for each in scope.complexes() if each not in scope.fixed]
            name = self.pick(*complexes) if complexes else self.fresh("z")
            reads = self.pick(f"{name} = {read}", f"{name} = {read} + {self.complex_expr(scope, 1)}")
            write = f"{own} = {self.complex_expr(scope, 2)}"
        else:
            name = self.target(scope)
            more = self.pick("", "", f" + {self.expr(scope, 1)}", f" - {self.other_cell(scope, cell)}")
            reads = f"{name} = {read}{more}"
            if len(cell.shape) == 2 and self.maybe(0.2):
                each = self.fresh("v")
                reads = f"{name} = {cell.name}[0, 0]\nfor {each} in {cell.name}[{cell.own[0]}]:"
                reads += f"\n    {name} = {name} + {each}"
            write = self.pick(f"{own} = {self.expr(scope, 2)}", f"{own} += {self.expr(scope, 1)}")
        if self.maybe(0.3):
            write = f"if {self.condition(scope, 1)}:\n    {write}"
        return [*write.split("\n"), "cuda.syncthreads()", *reads.split("\n"), "cuda.syncthreads()"]

    def tally(self, scope: Scope) -> list[str]:
        """All threads add to shared counters, wait, and read them."""
        name, extent = self.pick(*self.tallies)
        lines = [f"cuda.atomic.add({name}, {self.index(scope, extent)}, {self.expr(scope, 1)})"]
        kind = self.random.random()
        if kind < 0.3:
            lines = [f"if {self.condition(scope, 1)}:", f"    {lines[0]}"]
        elif kind < 0.5:
            lines = [f"for {self.fresh('k')} in {self.range_of(scope, uniform=False)}:", f"    {lines[0]}"]
        read = f"{self.target(scope)} = {name}[{self.index(scope, extent)}]"
        return [*lines, "cuda.syncthreads()", read, "cuda.syncthreads()"]

    def call_exchanger(self, scope: Scope) -> list[str]:
        """Calls a device function with barriers, where all threads reach it."""
        name, kinds = self.pick(*self.exchangers.items())
        args = [kind if kind != "number" else self.expr(scope, 1) for kind in kinds]
        args = [self.bound(scope, uniform=True) if arg == "turns" else arg for arg in args]
        call = f"{name}({', '.join(args)})"
        before, after = self.expr(scope, 1), self.expr(scope, 1)
        value = self.pick(call, f"{call} - {after}", f"{before} + {call}", f"min({before}, {call}, {after})")
        if self.maybe(0.15) and scope.rows:
            return [f"{self.row(scope)}[{self.index(scope)}] += {value}"]
        return [f"{self.target(scope)} = {value}"]

    @staticmethod
    def dtype_text(dtype: np.dtype) -> str:
        return f"np.{name_of(dtype)}"
