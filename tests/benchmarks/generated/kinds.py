"""Kinds of kernels: the index of a thread, its guard, the pieces, and the stores; and the launch that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from generated.blocks import BLOCK_PIECES, BLOCK_PIECES_2D, WARP_PIECES, Blocks
from generated.build import Param, Scope
from generated.pieces import FIRST

if TYPE_CHECKING:
    from generated.data import Shapes

KINDS = {"one": 24, "strided": 13, "two": 23, "three": 10, "block": 13, "block_2d": 11, "warp": 6}
BLOCKS = (32, 64, 128, 128, 192, 256, 256, 512, 1024)
POWERS = (32, 64, 128, 256, 256, 512)
BLOCKS_2D = ((16, 16), (32, 8), (32, 8), (32, 4), (8, 8), (64, 4), (32, 32), (16, 8), (128, 2))
BLOCKS_3D = ((8, 8, 4), (32, 4, 2), (16, 4, 4), (64, 2, 2))
TINY = {1: (32,), 2: (8, 4), 3: (4, 4, 2)}
"""Blocks of the tiny size, of kernels that do not depend on the block's shape."""

FULL = {
    1: (((1 << 20,), (1_200_000,)), ((1 << 21,), (2_000_000,)), ((1 << 22,), (4_000_000,)), ((1 << 23,), (7_654_400,))),
    2: (
        ((1024, 1024), (2048, 600)),
        ((2048, 1024), (1920, 1080)),
        ((4096, 1024), (2048, 2048)),
        ((4096, 2048), (3000, 2800)),
    ),
    3: (((128, 128, 64),), ((256, 128, 64),), ((256, 128, 128),), ((256, 256, 128), (250, 250, 120))),
}
"""Extents of the full size, from many operations of a thread to few."""


class Writer(Blocks):
    """Writes one kernel."""

    per_thread = 1
    """How many elements a thread has."""
    divides = False
    """Whether the block's shape must divide the extents."""
    transposed = False
    """Whether x is the row of an element."""

    def write(self) -> None:
        kind = self.rng.choices(tuple(KINDS), list(KINDS.values()))[0]
        self.use(f"kind {kind}")
        if self.numpy:
            self.use("NumPy typing")
        getattr(self, f"kernel_{kind}")()

    def axis(self, axis: str) -> str:
        self.use("index by block and thread")
        block, size, thread = f"cuda.blockIdx.{axis}", f"cuda.blockDim.{axis}", f"cuda.threadIdx.{axis}"
        return self.of(f"{block} * {size} + {thread}", f"{thread} + {size} * {block}")

    def grid(self, names: str) -> None:
        """The thread's position in the grid."""
        variables = names.split(", ")
        if self.maybe(0.6):
            self.use("cuda.grid")
            self.put(f"{names} = cuda.grid({len(variables)})")
        else:
            self.put(*(f"{name} = {self.axis(axis)}" for name, axis in zip(variables, "xyz", strict=False)))

    # Stores.

    def stores(self, scope: Scope) -> None:
        """Stores the scope's values, so that none is unused."""
        floats, ints = scope.floats[-6:], [name for name, _ in scope.ints[-6:]]
        if len(floats) > 1 and self.maybe(0.3):
            self.store(scope, floats[:1])
            floats = floats[1:]
        if floats and ints and self.maybe(0.4):
            floats, ints = floats + ints, []
        if floats:
            self.store(scope, floats)
        if ints:
            self.store(scope, ints, self.of("int32", "int64"))
        if not floats and not ints:
            self.store(scope, [f"{scope.flat} % 128"], "int32")

    def store(self, scope: Scope, terms: list[str], dtype: str | None = None) -> None:
        dtype = dtype or self.of("float32", "float32", self.widest_float)
        if self.maybe(0.15):
            self.use("in-place update")
            out = self.output(scope.shape, dtype, "in place")
            self.put(f"{out}[{scope.index}] {self.of('+=', '-=')} {' + '.join(terms)}")
        else:
            out = self.output(scope.shape, dtype)
            self.put(f"{out}[{scope.index}] = {' + '.join(terms)}")
        self.pays(scope, 4)

    def body(self, scope: Scope, count: int) -> None:
        if self.maybe(0.12):
            self.use("early return of some threads" if self.per_thread == 1 else "continue")
            self.put(f"if {self.condition(scope)}:", "    return" if self.per_thread == 1 else "    continue")
        if self.maybe(0.35):
            self.piece(scope, FIRST)
            count -= 1
        self.pieces(scope, count)
        self.stores(scope)

    def guarded_body(self, scope: Scope, inside: str, outside: str, count: int, head: tuple[str, ...] = ()) -> None:
        """The pieces of the threads that have elements."""
        form = self.of("return", "return", "if", "if", "none")
        if form == "none":
            self.use("no guard")
            self.divides = True
        elif form == "return":
            self.use("guard: return")
            self.put(f"if {outside}:", "    return")
        else:
            self.use("guard: if")
            with self.block(f"if {inside}:"):
                self.put(*head)
                self.body(scope, count)
            return
        self.put(*head)
        self.body(scope, count)

    # Kinds.

    def kernel_one(self) -> None:
        self.shape = (self.of(*BLOCKS),)
        self.grid("i")
        n = self.number("N")
        self.guarded_body(Scope(("N",), "i", "i"), f"i < {n}", f"i >= {n}", self.of(1, 2, 3, 3, 4, 5))

    def kernel_strided(self) -> None:
        self.use("grid-stride loop")
        self.shape, self.per_thread = (self.of(128, 256, 256, 512),), self.of(2, 3, 4)
        n, scope = self.number("N"), Scope(("N",), "i", "i")
        count = self.of(1, 2, 3, 4)
        if self.maybe(0.6):
            first, step = self.of(
                ("cuda.grid(1)", "cuda.gridsize(1)"),
                ("cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x", "cuda.blockDim.x * cuda.gridDim.x"),
            )
            with self.block(f"for i in range({first}, {n}, {step}):"):
                self.body(scope, count)
        else:
            self.use("while")
            self.put("i = cuda.grid(1)")
            with self.block(f"while i < {n}:"):
                self.pieces(scope, count)
                self.stores(scope)
                self.put("i += cuda.gridsize(1)")

    def kernel_two(self) -> None:
        self.use("2-D grid")
        self.shape = self.of(*BLOCKS_2D)
        self.transposed = self.maybe(0.25)
        if self.transposed:
            self.use("x along rows")
        self.grid("y, x" if self.transposed else "x, y")
        h, w = self.number("H"), self.number("W")
        inside, outside = f"x < {w} and y < {h}", f"x >= {w} or y >= {h}"
        scope = Scope(("H", "W"), "y, x", "i")
        flat = f"i = y * {w} + x"
        if self.maybe(0.15):
            self.use("guard: borders")
            self.put(flat)
            with self.block(f"if x > 0 and y > 0 and x < {w} - 1 and y < {h} - 1:"):
                self.body(scope, self.of(1, 2, 3, 4))
            return
        self.guarded_body(scope, inside, outside, self.of(1, 2, 3, 3, 4), (flat,))

    def kernel_three(self) -> None:
        self.use("3-D grid")
        self.shape = self.of(*BLOCKS_3D)
        self.grid("x, y, z")
        d, h, w = self.number("D"), self.number("H"), self.number("W")
        inside, outside = f"x < {w} and y < {h} and z < {d}", f"x >= {w} or y >= {h} or z >= {d}"
        flat = f"i = (z * {h} + y) * {w} + x"
        self.guarded_body(Scope(("D", "H", "W"), "z, y, x", "i"), inside, outside, self.of(1, 2, 3), (flat,))

    def first_value(self, scope: Scope) -> None:
        """A float for every thread of the block, also for those without an element."""
        self.use("guard: values of threads without elements")
        v = self.new("v")
        name = self.array("x", self.float_types(), scope.shape, "float")
        element = f"{name}[{scope.index}]"
        if not self.guard:
            self.put(f"{v} = {element}")
        elif self.maybe(0.5):
            self.put(f"{v} = {element} if {self.guard} else {self.zero()}")
        else:
            self.put(f"{v} = {self.zero()}", f"if {self.guard}:", f"    {v} = {element}")
        self.made(scope, v)
        self.pays(scope, 4)
        if self.guard and self.maybe(0.6):
            self.within(scope, f"if {self.guard}:", "piece before a barrier")

    def ends(self, scope: Scope) -> None:
        """The pieces after the last barrier, and the stores."""
        if self.guard:
            with self.block(f"if {self.guard}:"):
                self.pieces(scope, self.of(0, 1, 2))
                self.stores(scope)
        else:
            self.pieces(scope, self.of(0, 1, 2))
            self.stores(scope)

    def kernel_block(self) -> None:
        size = self.of(*POWERS)
        self.shape, self.constants = (size,), [f"BLOCK = {size}"]
        self.put("tid = cuda.threadIdx.x")
        self.grid("i")
        self.divides = self.maybe(0.4)
        self.guard = "" if self.divides else f"i < {self.number('N')}"
        if self.guard and self.maybe(0.4):
            self.put(f"inside = {self.guard}")
            self.guard = "inside"
        scope = Scope(("N",), "i", "i")
        self.first_value(scope)
        for _ in range(self.of(1, 2, 2)):
            self.piece(scope, BLOCK_PIECES)
        self.ends(scope)

    def kernel_block_2d(self) -> None:
        self.use("2-D grid")
        width, height = self.shape = self.of((16, 16), (16, 16), (32, 8), (8, 8), (32, 32), (32, 4))
        self.constants = [f"WIDTH = {width}", f"HEIGHT = {height}"]
        self.put("tx = cuda.threadIdx.x", "ty = cuda.threadIdx.y")
        self.grid("x, y")
        h, w = self.number("H"), self.number("W")
        self.put(f"i = y * {w} + x")
        self.divides = self.maybe(0.4)
        self.guard = "" if self.divides else f"x < {w} and y < {h}"
        scope = Scope(("H", "W"), "y, x", "i")
        self.first_value(scope)
        for _ in range(self.of(1, 2, 2)):
            self.piece(scope, BLOCK_PIECES_2D)
        self.ends(scope)

    def kernel_warp(self) -> None:
        self.shape = (self.of(32, 64, 128, 256, 256, 512),)
        self.grid("i")
        self.guard = f"i < {self.number('N')}"
        scope = Scope(("N",), "i", "i")
        self.first_value(scope)
        for _ in range(self.of(1, 2, 2)):
            self.piece(scope, WARP_PIECES)
        self.ends(scope)

    # The kernel and its launches.

    def source(self) -> str:
        """The source without its imports. Adds the extents to the parameters, or reads them from arrays."""
        head = []
        for extent in sorted(self.numbers):
            holders = [(each.name, axis) for each in self.params.values()
                       for axis, size in enumerate(each.shape) if size == extent]  # fmt: skip
            if holders and self.maybe(0.45):
                self.use("extent of a shape")
                name, axis = self.of(*holders)
                head.append(f"    {extent.lower()} = {name}.shape[{axis}]")
            else:
                self.param(Param(extent.lower(), self.of("int32", "int64", "int64"), (), extent))
        decorator = '@cuda.jit(typing="numpy")' if self.numpy else "@cuda.jit"
        kernel = [decorator, f"def kernel({', '.join(self.params)}):", *head, *self.lines]
        parts = ["\n".join(self.constants)] if self.constants else []
        return "\n\n\n".join([*parts, *self.functions, "\n".join(kernel)]) + "\n"

    def shapes(self, shapes: Shapes) -> Shapes:
        """The extents, the grid and the block of one size."""
        tiny = shapes.size == "tiny"
        fixed = bool(self.constants) or not tiny or any("kind warp" == each for each in self.features)
        block = self.shape if fixed else TINY[len(self.shape)]
        axes = ("N",) if len(block) == 1 else ("W", "H", "D")[: len(block)]
        if self.transposed:
            axes = axes[::-1]
        if tiny:
            blocks = {1: (4,), 2: (2, 2), 3: (2, 2, 2)}[len(block)]
            extents = [count * size for count, size in zip(blocks, block, strict=True)]
            if len(block) == 1:
                extents = [extents[0] * self.per_thread]
        else:
            extents = self.full_extents()
        less = 0 if self.divides else self.of(0, 0, 1, 3, 17)
        for axis, extent, size in zip(axes, extents, block, strict=True):
            full = -(-extent // size) * size
            shapes.extents[axis] = full - min(less, size - 1)
        shapes.block = block
        per_thread = (self.per_thread, 1, 1)
        shapes.grid = tuple(
            max(1, -(-shapes.extents[axis] // (size * each)))
            for axis, size, each in zip(axes, block, per_thread, strict=False)
        )
        shapes.extents["GX"] = shapes.grid[0]
        shapes.extents["M"] = self.rng.randint(5, 9) if tiny else self.rng.randint(8, 32)
        shapes.extents["T"] = self.rng.randint(60, 100) if tiny else self.of(256, 1000, 1024, 4096)
        shapes.extents["L"] = self.rng.randint(10, 20) if tiny else self.of(48, 64, 100)
        return shapes

    def full_extents(self) -> list[int]:
        """Extents of the full size, by what a thread costs: at least two waves of threads on a GPU of 132 SMs."""
        matrix = any("M" in each.shape and "N" in each.shape for each in self.params.values())
        level = 0 if matrix or self.cost > 400 else 1 if self.cost > 80 else 2 if self.cost > 30 else 3
        if self.per_thread > 1:
            return [(1 << 20 if level < 2 else 1 << 21) * self.per_thread + self.of(0, 0, 77 * 256)]
        return list(self.of(*FULL[len(self.shape)][level]))
