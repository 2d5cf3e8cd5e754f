"""Writes a program from a seed: a kernel that combines pieces, and launches of different shapes.

Kinds of kernels: one element per thread in one or two dimensions, grid-stride loops, kernels with barriers, one warp
per row.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from combined.build import Param, Scope
from combined.lanes import Lanes
from combined.launches import Launch, launches

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = "import math\n\nimport numpy as np\nfrom weft import cuda\n"

# Pieces by how often they are taken.
FLAT = {
    "collatz": 5, "search": 8, "ragged": 6, "escape": 4, "bisect": 3, "chase": 2, "skip": 4,
    "row_sum": 18, "row_exit": 5, "row_store": 14, "in_place": 6, "shifted": 3, "rows_by_centers": 5, "total": 8,
    "colors": 4, "neighbors": 7, "window": 6, "image": 7, "table": 6, "every": 6, "partner": 3, "gather": 4,
    "select": 5, "names_again": 4, "local_array": 4, "quotient": 6, "function": 6, "histogram": 9, "old_value": 4,
    "reserve": 2, "sparse": 5, "product": 9, "scattered": 4, "math_row": 6,
}  # fmt: skip
# In loops that run several times: pieces whose result does not depend on their previous result.
REPEATED = tuple(name for name in FLAT if name not in ("in_place", "shifted"))
BLOCK = {
    "tile": 8, "tree": 6, "scan": 5, "sort": 4, "block_loop": 6, "shared_histogram": 5, "count": 3, "one_thread": 4,
    "shuffle": 6, "vote": 5, "warp_sum": 3, "block_row": 6, "bitonic": 5, "leaders": 4, "first_warp": 4,
    "local_across": 4, "lanes_part": 5, "warp_loop": 6, "warp_rows": 6, "barrier_function": 5, "named_flag": 6,
    "sparse_block": 5, "flag_loop": 5, "stride_sum": 5, "reversed_block": 4, "signed_start": 5, "cells": 7,
}  # fmt: skip
BLOCK_2D = {"tile2": 10, "product_tiles": 8, "diagonal": 5}  # besides those of BLOCK that assume one-dimensional blocks
# Work of a thread on its own data: other threads may have returned.
ALONE = {"count": 4, "local_across": 5, "vote": 3, "lanes_part": 3, "warp_loop": 3}
BLOCKS = (1, 5, 16, 17, 32, 33, 48, 64, 96, 100, 128)
BLOCKS_OF_TILES = ((16, 16), (8, 8), (16, 4), (8, 4), (32, 2), (4, 4), (16, 8), (5, 7), (17, 3))
BLOCKS_2D = ((16, 16), (33, 2), (5, 7), (8, 4), (17, 3), (32, 2), (1, 9), (64, 1), (7, 16))
KINDS = {"one": 22, "strided": 13, "two": 16, "plane": 6, "block": 24, "block two": 14, "warp": 5}


@dataclass
class Program:
    """A kernel and how it is launched."""

    seed: int
    source: str
    params: dict[str, Param]
    launches: list[Launch]
    features: set[str]
    missing_lanes: bool = False  # shuffles may read from lanes that do not exist
    outcome: str = ""
    planned: tuple[str, ...] = ()  # the features that the planner reports
    options: dict[str, object] = field(default_factory=dict)


class Writer(Lanes):
    """Writes one kernel."""

    blocks: tuple[tuple[int, ...], ...] = ()
    asked: tuple[str, ...] = ()  # pieces that come first
    asked_block: tuple[str, ...] = ()
    alone = False  # some threads return before barriers
    plain = False  # pieces follow one another without nesting

    def next_piece(self, names: tuple[str, ...]) -> str:
        """The requested piece, or one of those named."""
        if self.asked:
            name, *rest = self.asked
            self.asked = tuple(rest)
            return name
        return self.rng.choices(names, [FLAT[name] for name in names])[0]

    def pieces(self, scope: Scope, count: int, *, repeated: bool = False) -> None:
        """Some pieces, one after the other, some of them in a branch or a loop of their own."""
        names = REPEATED if repeated else tuple(FLAT)
        for _ in range(max(count, len(self.asked))):
            kind = self.rng.random()
            name = self.next_piece(names)
            if scope.column and not self.plain and self.maybe(0.3):
                name = self.of("product", "product", "image")
            if self.plain or scope.depth >= 2 or kind < 0.62:
                self.piece(scope, name)
            elif kind < 0.76:
                self.use("branch")
                total = self.collected(scope)
                with self.block(f"if {self.condition(scope)}:"):
                    self.collect(scope, total, name)
                if self.maybe(0.35):
                    with self.block("else:"):
                        self.collect(scope, total, self.next_piece(names))
                scope.ints.append((total, 400))
            elif kind < 0.9:
                self.use("nested loops")
                total, r = self.collected(scope), self.new("r")
                times = self.rng.choice((1, 2, 3))
                head = f"for {r} in range({times}):"
                if self.maybe(0.25):
                    low, _ = self.int_of(scope)
                    self.use("own trip count")
                    head, times = f"for {r} in range({low} % 4):", 3
                inner_name = name if name in REPEATED else "row_sum"
                with self.block(head):
                    self.collect(scope, total, inner_name, work=scope.work * times, variable=(r, times))
                scope.ints.append((total, 400))
            else:
                self.use("branch", "uniform branch")
                total = self.collected(scope)
                key = self.of("M", "K")
                with self.block(f"if {self.number(key)} > {self.rng.randint(1, 20)}:"):
                    self.collect(scope, total, name)
                scope.ints.append((total, 400))

    def collected(self, scope: Scope) -> str:
        total = self.new("v")
        self.put(f"{total} = {self.of('0', '1')}")
        return total

    def collect(
        self, scope: Scope, total: str, name: str, *, work: int | None = None, variable: tuple[str, int] | None = None
    ) -> None:
        """A piece inside of a block, whose result is added to a variable from outside."""
        inner = scope.inner(work=work or scope.work)
        if variable:
            inner.ints.append(variable)
        known = len(inner.ints)
        floats = len(inner.floats)
        self.piece(inner, name)
        if len(inner.ints) > known:
            value, bound = inner.ints[-1]
            self.put(f"{total} += {value}{'' if bound <= 100 else ' % 100'}")
        elif len(inner.floats) > floats:
            self.put(f"{total} += int({inner.floats[-1][0]}) % 100")
        else:
            self.put(f"{total} += 1")

    def piece(self, scope: Scope, name: str) -> None:
        make: Callable[[Scope], None] = getattr(self, f"piece_{name}")
        make(scope)

    def stores(self, scope: Scope) -> None:
        """Stores some of the thread's values."""
        values = [(name, bound, False) for name, bound in scope.ints if not name.startswith(("r", "k"))]
        values += [(name, bound, True) for name, bound in scope.floats]
        self.rng.shuffle(values)
        for name, bound, floating in values[: self.rng.choice((2, 3, 4))]:
            self.store(scope, name, bound, floating=floating)
        if not values:
            self.store(scope, scope.own, 130)

    # Kinds of kernels.

    def number_of_thread(self, axis: str = "x") -> str:
        if axis == "x":
            return self.of(
                "cuda.grid(1)", "cuda.grid(1)", "cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x",
                "cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x",
            )  # fmt: skip
        return f"cuda.blockIdx.{axis} * cuda.blockDim.{axis} + cuda.threadIdx.{axis}"

    def kernel_one(self) -> None:
        """One thread per element."""
        scope = Scope("i", "N")
        self.put(f"i = {self.number_of_thread()}")
        n = self.number("N")
        guard = self.rng.random()
        count = self.rng.choice((2, 2, 2, 3, 3))
        if guard < 0.4:
            self.use("guard: return")
            with self.block(self.of(f"if i >= {n}:", f"if i >= {n}:", f"if not i < {n}:", f"if i > {n} - 1:")):
                self.put("return")
        elif guard < 0.75:
            self.use("guard: if")
            limit = self.of(n, n, f"{n} and i >= 0", f"{n} and i != 3")
            with self.block(f"if i < {limit}:"):
                self.pieces(scope, count)
                self.stores(scope)
            return
        elif guard < 0.85:
            self.use("guard: none")
            self.exact = True
        else:
            self.use("guard: if", "guard: return")
            with self.block(f"if i >= {n}:"):
                self.put("return")
            with self.block(f"if i {self.of('>', '!=')} {self.rng.randint(0, 20)}:"):
                self.pieces(scope, count)
                self.stores(scope)
            if self.maybe(0.5):
                after = Scope("i", "N")
                self.pieces(after, 1)
                self.stores(after)
            return
        self.pieces(scope, count)
        self.stores(scope)

    def kernel_strided(self) -> None:
        """A grid-stride loop, with pieces inside of it."""
        n = self.number("N")
        self.use("grid-stride loop")
        scope = Scope("i", "N")
        count = self.rng.choice((1, 2, 2, 3))
        kind = self.rng.random()
        if kind < 0.5:
            first, step = "cuda.grid(1)", "cuda.gridsize(1)"
            if self.maybe(0.4):
                self.put(f"start = {self.number_of_thread()}", "stride = cuda.gridDim.x * cuda.blockDim.x")
                first, step = "start", "stride"
            with self.block(f"for i in range({first}, {n}, {step}):"):
                if self.maybe(0.2):
                    self.use("continue")
                    with self.block(f"if i % {self.rng.randint(2, 5)} == 1:"):
                        self.put("continue")
                self.pieces(scope, count, repeated=True)
                self.stores(scope)
                if self.maybe(0.1):
                    self.use("break")
                    with self.block(f"if {self.condition(scope)}:"):
                        self.put("break")
        elif kind < 0.8:
            self.use("while")
            self.put(f"i = {self.number_of_thread()}", "step = cuda.gridsize(1)")
            with self.block(f"while i < {n}:"):
                self.pieces(scope, count, repeated=True)
                self.stores(scope)
                self.put("i += step")
        else:
            # A thread adds the values of all its iterations to one element.
            self.use("sum over a grid-stride loop")
            self.put("first = cuda.grid(1)", "total = 0")
            with self.block(f"for i in range(first, {n}, cuda.gridsize(1)):"):
                self.pieces(scope.inner(returns=False), count, repeated=True)
                value, bound = self.int_of(scope)
                self.put(f"total += {value}{'' if bound < 300 else ' % 100'}")
            out = self.array("o", "int64", (1,), ("ints", 0, 0))
            self.use("atomic")
            self.put(f"cuda.atomic.add({out}, 0, total)")

    def kernel_two(self) -> None:
        """Two dimensions."""
        w, h, n = self.number("W"), self.number("H"), self.number("N")
        del n
        self.use("2-D block")
        if self.maybe(0.7):
            self.put(f"x, y = {self.of('cuda.grid(2)', 'cuda.grid(2)')}")
        else:
            self.put(f"x = {self.number_of_thread()}", f"y = {self.number_of_thread('y')}")
        if self.maybe(0.35):
            self.use("axes exchanged")
            w, h = h, w  # rows run along x
            scope = Scope("i", "N", "x", "y")
        else:
            scope = Scope("i", "N", "y", "x")
        flat = f"i = {scope.row} * {self.params['w'].name} + {scope.column}"
        limit_x, limit_y = ("w", "h") if scope.row == "y" else ("h", "w")
        count = self.rng.choice((1, 2, 2, 3))
        guard = self.rng.random()
        if guard < 0.4:
            self.use("guard: return")
            with self.block(f"if x >= {limit_x} or y >= {limit_y}:"):
                self.put("return")
        elif guard < 0.75:
            self.use("guard: if")
            with self.block(f"if x < {limit_x} and y < {limit_y}:"):
                self.put(flat)
                self.pieces(scope, count)
                self.stores(scope)
            return
        else:
            self.use("guard: corner", "guard: if")
            with self.block(f"if x >= {limit_x} and y >= {limit_y}:"):
                self.put("return")
            with self.block(f"if y < {limit_y}:"), self.block(f"if x < {limit_x}:"):
                self.put(flat)
                self.pieces(scope, count)
                self.stores(scope)
            return
        self.put(flat)
        self.pieces(scope, count)
        self.stores(scope)

    def kernel_plane(self) -> None:
        """Loops along y, over a plane, or over all elements, in blocks of two dimensions."""
        w, h, n = self.number("W"), self.number("H"), self.number("N")
        self.use("2-D block", "loop along y")
        scope = Scope("i", "N", "y", "x")
        count = self.rng.choice((1, 1, 2))
        kind = self.rng.random()
        if kind < 0.7:
            self.put("first_x, first_y = cuda.grid(2)", "step_x, step_y = cuda.gridsize(2)")
            of_y = f"for y in range(first_y, {h}, step_y):"
            of_x = f"for x in range(first_x, {w}, step_x):"
            if kind < 0.35:
                of_x = f"if x < {w}:"
                self.put("x = first_x")
            with self.block(of_y), self.block(of_x):
                self.put(f"i = y * {w} + x")
                self.pieces(scope, count, repeated=True)
                self.stores(scope)
            return
        self.put(
            "t = cuda.threadIdx.y * cuda.blockDim.x + cuda.threadIdx.x",
            "number = cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x",
            "threads = cuda.blockDim.x * cuda.blockDim.y",
        )
        with self.block(f"for i in range(number * threads + t, {n}, threads * cuda.gridDim.x * cuda.gridDim.y):"):
            scope = Scope("i", "N")
            self.pieces(scope, count, repeated=True)
            self.stores(scope)

    def kernel_block(self, *, two: bool = False) -> None:
        """Barriers: pieces of threads guarded by a condition, and pieces of the block between them."""
        if two:
            self.use("2-D block")
            width, height = self.rng.choice(BLOCKS_OF_TILES)
            self.width, self.height = width, height
            self.limit, self.flat = width * height, "2-D"
            self.blocks = ((width, height),)
            w, h = self.number("W"), self.number("H")
            self.number("N")
            self.put(
                "x, y = cuda.grid(2)", "tx = cuda.threadIdx.x", "ty = cuda.threadIdx.y", "t = ty * cuda.blockDim.x + tx"
            )
            if self.maybe(0.35):
                self.use("axes exchanged")
                self.put(f"i = x * {w} + y")
                guard = f"x < {h} and y < {w}"
                scope = Scope("i", "N", "x", "y", tile="t", returns=False)
            else:
                self.put(f"i = y * {w} + x")
                guard = f"x < {w} and y < {h}"
                scope = Scope("i", "N", "y", "x", tile="t", returns=False)
        else:
            self.limit = self.rng.choice((16, 32, 33, 48, 64, 64, 100, 128))
            self.exact = self.maybe(0.6)
            self.blocks = ((self.limit,),)
            self.put(f"i = {self.number_of_thread()}", "t = cuda.threadIdx.x")
            guard = f"i < {self.number('N')}"
            scope = Scope("i", "N", tile="t", returns=False)
        if self.maybe(0.5):
            self.put(f"inside = {guard}")
            guard = self.of("inside", guard)
        outer = Scope("", "N", tile="t", returns=False)
        if self.maybe(0.25 if two else 0.15) and not self.asked_block:
            self.use("return before a barrier")
            self.alone = True
            if two and self.maybe(0.7):
                self.use("guard: corner")
                head = f"if {guard.replace(' < ', ' >= ')}:"
            else:
                head = self.of(f"if not ({guard}):", f"if t % {self.of('3', '5')} == 1:", f"if {guard} and i % 7 == 3:")
            with self.block(head):
                self.put("return")
        for _ in range(self.rng.choice((1, 2, 2))):
            total = self.collected(scope)
            with self.block(f"if {guard}:"):
                self.use("guard: if")
                self.collect(scope, total, self.next_piece(tuple(FLAT)))
            outer.ints.append((total, 200))
            scope.ints.append((total, 200))
            self.block_pieces(outer, self.rng.choice((1, 1, 2)))
            scope.ints += [each for each in outer.ints if each not in scope.ints]
        with self.block(f"if {guard}:"):
            if self.maybe(0.5):
                self.pieces(scope, 1)
            self.stores(scope)

    def block_pieces(self, outer: Scope, count: int) -> None:
        flat = {
            name: weight
            for name, weight in BLOCK.items()
            if self.flat != "2-D" or name not in ("block_row", "reversed_block", "sparse_block")
        }
        weights = ALONE if self.alone else {**flat, **BLOCK_2D} if self.flat == "2-D" else flat
        for _ in range(count):
            if self.asked_block:
                name, *rest = self.asked_block
                self.asked_block = tuple(rest)
            else:
                name = self.rng.choices(tuple(weights), list(weights.values()))[0]
            if self.maybe(0.2):
                self.use("barrier in a loop")
                r, times = self.new("r"), self.rng.choice((2, 3))
                total = self.collected(outer)
                with self.block(f"for {r} in range({times}):"):
                    inner = outer.inner(work=outer.work * times)
                    inner.ints.append((r, times))
                    known = len(inner.ints)
                    self.piece(inner, name)
                    if len(inner.ints) > known:
                        self.put(f"{total} += {inner.ints[-1][0]} % 100")
                outer.ints.append((total, 400))
            elif self.maybe(0.1):
                self.use("barrier in a branch", "uniform branch")
                total = self.collected(outer)
                with self.block(f"if {self.number('M')} > {self.rng.randint(1, 10)}:"):
                    inner = outer.inner()
                    known = len(inner.ints)
                    self.piece(inner, name)
                    if len(inner.ints) > known:
                        self.put(f"{total} += {inner.ints[-1][0]} % 100")
                outer.ints.append((total, 400))
            else:
                self.piece(outer, name)

    def piece_block_row(self, scope: Scope) -> None:
        """One block per row: its threads traverse it with a stride, and store along another row."""
        a = self.ints_in("G", "M") if self.maybe(0.5) else self.floats_in("G", "M")
        k, v = self.new("k"), self.new("v")
        self.use("block per row", "strided loop of a block")
        self.trips(scope, "M")
        self.put(f"{v} = 0")
        store = self.maybe(0.5)
        out = self.array("o", self.of("int32", "float32"), ("G", "M"), ("ints", 77, 77)) if store else ""
        with self.block(f"for {k} in range(t, {self.extent('M')}, {self.threads()}):"):
            element = f"int({a}[cuda.blockIdx.x, {k}])"
            self.put(f"{v} += {element}")
            if store:
                self.use("row store")
                self.put(f"{out}[cuda.blockIdx.x, {k}] = {element} + {k} % 5")
        self.settle(scope, v, 600)

    def kernel_warp(self) -> None:
        """One warp per row, as by `cuda.grid(1) // 32`."""
        self.blocks = tuple((size,) for size in self.rng.choice(((32,), (64,), (128,), (32, 64))))
        if self.maybe(0.4):
            self.put("w = cuda.grid(1) // 32", "lane = cuda.grid(1) % 32")
        else:
            self.put("w = (cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) // 32", "lane = cuda.threadIdx.x % 32")
        n = self.number("N")
        self.use("warp per row", "shuffle")
        guard = self.maybe(0.5)
        if guard:
            with self.block(f"if w >= {n}:"):
                self.put("return")
            self.use("guard: return")
            self.warp_row()
            return
        with self.block(f"if w < {n}:"):
            self.use("guard: if")
            self.warp_row()

    def warp_row(self) -> None:
        scope = Scope("w", "N", returns=False)
        extent = self.of("M", "M", "K")
        a = self.ints_in("N", extent)
        k, v, s = self.new("k"), self.new("v"), self.new("k")
        self.trips(scope, extent)
        self.trips(scope, 5)
        self.put(f"{v} = 0")
        with self.block(f"for {k} in range(lane, {self.extent(extent)}, 32):"):
            self.put(f"{v} += {self.read(a, f'w, {k}')}")
            if self.maybe(0.3):
                self.use("break")
                with self.block(f"if {v} > {self.rng.randint(5, 40)}:"):
                    self.put("break")
        self.put(f"{s} = 16")
        u = self.new("v")
        with self.block(f"while {s} > 0:"):
            self.put(
                f"{u} = cuda.shfl_{self.of('xor', 'down')}_sync(0xFFFFFFFF, {v}, {s})", f"{v} += {u}", f"{s} //= 2"
            )
        if "shfl_down" in self.lines[-3]:
            self.put(f"{v} = cuda.shfl_sync(0xFFFFFFFF, {v}, 0)")
        scope.ints.append((v, 600 * 32))
        if self.maybe(0.6):
            inner = Scope("w", "N", returns=False, ints=list(scope.ints))
            total = self.collected(inner)
            self.collect(
                inner,
                total,
                self.rng.choice(
                    ("row_sum", "search", "ragged", "collatz", "row_exit", "neighbors", "select", "bisect")
                ),
            )
            scope.ints.append((total, 400))
        if self.maybe(0.4):
            out = self.out("int32", "N", extent)
            self.use("row store")
            with self.block(f"for {k} in range(lane, {self.extent(extent)}, 32):"):
                self.put(f"{out}[w, {k}] = {self.read(a, f'w, {k}')} - {v}")
            self.trips(scope, extent)
        with self.block("if lane == 0:"):
            self.stores(scope)

    def kernel(self, seed: int, kind: str = "") -> Program:
        """The whole program."""
        kind = kind or self.rng.choices(tuple(KINDS), list(KINDS.values()))[0]
        match kind:
            case "one":
                self.kernel_one()
            case "strided":
                self.kernel_strided()
            case "two":
                self.kernel_two()
            case "plane":
                self.kernel_plane()
            case "block":
                self.kernel_block()
            case "block two":
                self.kernel_block(two=True)
            case _:
                self.kernel_warp()
        options = ""
        chance = self.rng.random()
        if chance < 0.03 and kind in ("one", "strided"):
            options = f"(coarsen={self.of('2', '4')})"
            self.use("coarsened")
        elif chance < 0.05:
            options = "(boundscheck=True)"
        elif chance < 0.06:
            options = "(opt=False)"
        order = sorted(self.params)
        if self.maybe(0.5):
            self.rng.shuffle(order)
        head = [f"@cuda.jit{options}", f"def kernel({', '.join(order)}):"]
        parts = [HEAD.rstrip("\n"), *self.tables]
        parts += ["\n\n" + "\n".join(text) for text in [*self.functions, head + self.lines]]
        params = {name: self.params[name] for name in order}
        program = Program(seed, "\n".join(parts) + "\n", params, [], set(self.features))
        launches(self, kind, program)
        return program


def generate(seed: int) -> Program:
    """The program of a seed."""
    return Writer(random.Random(seed)).kernel(seed)


def generate_with(seed: int, pieces: tuple[str, ...], kind: str = "one", *, plain: bool = True) -> Program:
    """A program of some pieces in this order; with `plain`, without code around them."""
    writer = Writer(random.Random(seed))
    writer.asked = tuple(piece for piece in pieces if piece in FLAT)
    writer.plain = plain
    writer.asked_block = tuple(piece for piece in pieces if piece not in FLAT)
    return writer.kernel(seed, kind)
