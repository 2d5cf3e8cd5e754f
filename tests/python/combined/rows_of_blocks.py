"""More pieces that all threads of a block reach: sorts by exchanges, warp sums, loops with flags, 2-D tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from combined.tiles import Tiles

if TYPE_CHECKING:
    from combined.build import Scope


class RowsOfBlocks(Tiles):
    """Writes them."""

    def guarded(self, scope: Scope, array: str) -> str:
        """An element of an array with one for each thread, or zero beyond its end."""
        return f"{self.read(array, 'i')} if i < {self.number(scope.count)} else 0"

    def piece_bitonic(self, scope: Scope) -> None:
        """Steps of a bitonic sort, or butterflies: partners differ in one bit."""
        tile, j, other, swap, v = (self.new(stem) for stem in ("tile", "k", "k", "v", "v"))
        t, threads = scope.tile, self.threads()
        first = int(self.rng.choice((1, 2, 4, 8, 16)))
        self.use("partner", "sort", "barrier")
        self.trips(scope, 10)
        self.put(f"{tile} = cuda.shared.array({self.limit}, np.{self.of('int32', 'float32', 'int64')})")
        self.put(f"{tile}[{t}] = {self.brought(scope)}", "cuda.syncthreads()", f"{j} = {first}")
        with self.block(f"while {j} > 0:"):
            if self.maybe(0.6):
                self.put(f"{other} = {t} ^ {j}")
                with (
                    self.block(f"if {other} > {t} and {other} < {threads}:"),
                    self.block(f"if {tile}[{t}] > {tile}[{other}]:"),
                ):
                    self.put(f"{swap} = {tile}[{t}]", f"{tile}[{t}] = {tile}[{other}]", f"{tile}[{other}] = {swap}")
            else:
                self.put(f"{swap} = {tile}[{t}]")
                with self.block(f"if {t} ^ {j} < {threads}:"):
                    self.put(f"{swap} += {tile}[{t} ^ {j}]")
                self.put("cuda.syncthreads()", f"{tile}[{t}] = {swap}")
            self.put("cuda.syncthreads()", f"{j} //= 2")
        self.put(f"{v} = int({tile}[{t}])", "cuda.syncthreads()")
        self.settle(scope, v, 300 * 32)

    def piece_leaders(self, scope: Scope) -> None:
        """The first lane of each warp stores a value; each thread sums the values of all earlier warps."""
        tile, w, base, v = self.new("tile"), self.new("k"), self.new("v"), self.new("v")
        t = scope.tile
        self.use("barrier", "first lanes", "loop over warps")
        self.trips(scope, 4)
        self.put(f"{tile} = cuda.shared.array(16, np.int32)", f"{v} = {self.brought(scope)}")
        with self.block(self.of(f"if {t} % 32 == 0:", f"if {self.lane(scope)} == 0:")):
            self.put(f"{tile}[{t} // 32] = {v}")
        self.put("cuda.syncthreads()", f"{base} = 0")
        with self.block(f"for {w} in range({t} // 32):"):
            self.put(f"{base} += {tile}[{w}]")
        self.put("cuda.syncthreads()")
        self.settle(scope, base, 300 * 16)

    def piece_first_warp(self, scope: Scope) -> None:
        """Warp sums, which the first warp reduces."""
        tile, k, u, v = self.new("tile"), self.new("k"), self.new("v"), self.new("v")
        t = scope.tile
        self.use("barrier", "shuffle", "first lanes", "bound by a quotient")
        self.trips(scope, 10)
        self.put(f"{tile} = cuda.shared.array(32, np.int32)", f"{v} = {self.brought(scope)}", f"{k} = 1")
        with self.block(f"while {k} < 32:"):
            self.put(f"{u} = cuda.shfl_up_sync(0xFFFFFFFF, {v}, {k})")
            with self.block(f"if {t} % 32 >= {k}:"):
                self.put(f"{v} += {u}")
            self.put(f"{k} *= 2")
        with self.block(f"if {t} % 32 == 31 or {t} == {self.threads()} - 1:"):
            self.put(f"{tile}[{t} // 32] = {v}")
        self.put("cuda.syncthreads()")
        with self.block(f"if {t} // 32 == 0:"):
            self.put(f"{v} = {tile}[{t}] if {t} < ({self.threads()} + 31) // 32 else 0")
        self.put("cuda.syncthreads()")
        self.settle(scope, v, 300 * 64)

    def piece_local_across(self, scope: Scope) -> None:
        """A local array that is live across a barrier."""
        a, k, v = self.new("local"), self.new("k"), self.new("v")
        size = int(self.rng.choice((2, 3, 4, 8)))
        self.use("barrier", "local array")
        self.trips(scope, 2 * size)
        value = self.brought(scope)
        self.put(f"{a} = cuda.local.array({size}, np.int32)")
        with self.block(f"for {k} in range({size}):"):
            self.put(f"{a}[{k}] = {value} + {k}")
        self.put("cuda.syncthreads()", f"{v} = 0")
        with self.block(f"for {k} in range({size}):"):
            self.put(f"{v} += {a}[{k}] * ({k} + 1)")
        if self.maybe(0.4):
            self.put(f"{v} += {a}[({value}) % {size}]")
        self.settle(scope, v, 300 * 64)

    def piece_flag_loop(self, scope: Scope) -> None:
        """Steps with fewer and fewer active threads, and a flag for the threads of the last one."""
        tile, k, v, flag = self.new("tile"), self.new("k"), self.new("v"), self.new("v")
        t, threads = scope.tile, self.threads()
        steps = self.of("2", "3", "4")
        self.use("flag", "barrier", "barrier in a loop")
        self.trips(scope, 4)
        self.put(f"{tile} = cuda.shared.array({self.limit}, np.int32)", f"{tile}[{t}] = {self.brought(scope)}")
        self.put("cuda.syncthreads()", f"{v} = 0", f"{flag} = False")
        with self.block(f"for {k} in range({steps}):"):
            if self.maybe(0.5):
                self.put(f"{flag} = {t} > {k} and {t} < {threads} - 1 - {k}")
            else:
                self.put(f"{flag} = False")
                with self.block(f"if {t} > {k} and {t} < {threads} - 1 - {k}:"):
                    self.put(f"{flag} = True")
            with self.block(f"if {flag}:"):
                self.put(f"{v} = min({tile}[{t} - 1], {tile}[{t}], {tile}[{t} + 1]) + 1")
            self.put("cuda.syncthreads()")
            with self.block(f"if {flag}:"):
                self.put(f"{tile}[{t}] = {v}")
            self.put("cuda.syncthreads()")
        out = self.new("v")
        self.put(f"{out} = 1")
        with self.block(f"if {flag}:"):
            self.put(f"{out} = {tile}[{t}]")
        self.put("cuda.syncthreads()")
        self.settle(scope, out, 400)

    def piece_stride_sum(self, scope: Scope) -> None:
        """A grid-stride loop in a kernel with barriers."""
        x = self.ints_in("N", high=9)
        k, v = self.new("k"), self.new("v")
        n = self.number("N")
        self.use("grid-stride loop", "barrier")
        self.trips(scope, 2)
        self.put(f"{v} = 0")
        with self.block(
            f"for {k} in range(i, {n}, cuda.gridsize(1)):"
            if self.flat == "1-D"
            else f"for {k} in range({scope.tile}, {n}, {self.threads()}):"
        ):
            self.put(f"{v} += {self.read(x, k)}")
        self.put("cuda.syncthreads()")
        self.settle(scope, v, 1200)

    def piece_reversed_block(self, scope: Scope) -> None:
        """Loads a row of the block into a tile, and reads it in another order after a barrier."""
        x = self.ints_in("N")
        tile, v = self.new("tile"), self.new("v")
        t = scope.tile
        self.use("shared tile", "barrier", "backwards")
        self.put(f"{tile} = cuda.shared.array({self.limit}, np.int32)", f"{tile}[{t}] = {self.guarded(scope, x)}")
        self.put("cuda.syncthreads()", f"{v} = {tile}[{self.threads()} - 1 - {t}]", "cuda.syncthreads()")
        self.settle(scope, v, 10)

    # In two dimensions: (ty, tx) in a block of `width` by `height`.

    width, height = 1, 1

    def exchanged(self) -> bool:
        """Whether rows of the matrices run along the block's `x`."""
        return "axes exchanged" in self.features

    def piece_tile2(self, scope: Scope) -> None:
        """A two-dimensional tile whose neighbors are read under conditions."""
        tile, v = self.new("tile"), self.new("v")
        w, h = self.width, self.height
        self.use("shared tile", "barrier", "tested border", "2-D tile")
        wide = w + int(self.rng.choice((0, 0, 1)))
        dtype = self.of("int32", "float32", "int64")
        self.put(f"{tile} = cuda.shared.array(({h}, {wide}), np.{dtype})", f"{tile}[ty, tx] = {self.brought(scope)}")
        self.put("cuda.syncthreads()", f"{v} = int({tile}[ty, tx])")
        kind = self.rng.random()
        if kind < 0.4:
            with self.block(f"if tx > 0 and tx < {w} - 1 and ty > 0 and ty < {h} - 1:"):
                self.put(f"{v} += int({tile}[ty, tx - 1] + {tile}[ty, tx + 1] + {tile}[ty - 1, tx] * 2)")
        elif kind < 0.7:
            with self.block(f"if ty < {h} - 1:"):
                self.put(f"{v} += int({tile}[ty + 1, tx])")
            with self.block("if tx > 0:"):
                self.put(f"{v} += int({tile}[ty, tx - 1]) * 3")
        elif w == h:
            self.use("transposed tile")
            self.put(f"{v} += int({tile}[tx, ty]) * 2")
        else:
            k = self.new("k")
            self.trips(scope, w)
            with self.block(f"for {k} in range({w}):"):
                self.put(f"{v} += int({tile}[ty, {k}])")
        self.put("cuda.syncthreads()")
        self.settle(scope, v, 300 * 48)

    def piece_product_tiles(self, scope: Scope) -> None:
        """A tiled matrix product."""
        w, h = self.width, self.height
        if w > 16 or self.exchanged():
            return self.piece_tile2(scope)
        one, two = self.new("tile"), self.new("tile")
        k, start, total = self.new("k"), self.new("k"), self.new("v")
        a, b = self.ints_in("H", "M", high=5), self.ints_in("M", "W", high=5)
        m = self.extent("M")
        self.use("shared tile", "barrier", "barrier in a loop", "2-D tile", "product")
        self.trips(scope, "M")
        self.put(
            f"{one} = cuda.shared.array(({h}, {w}), np.int32)",
            f"{two} = cuda.shared.array(({w}, {w}), np.int32)",
            f"{total} = 0",
        )
        with self.block(f"for {start} in range(0, {m}, {w}):"):
            self.put(
                f"{one}[ty, tx] = {self.read(a, f'y, {start} + tx')}"
                f" if y < {self.number('H')} and {start} + tx < {m} else 0"
            )
            rows = f" if x < {self.number('W')} and {start} + {{row}} < {m} else 0"
            if w == h:
                load = self.read(b, f"{start} + ty, x")
                self.put(f"{two}[ty, tx] = {load}{rows.format(row='ty')}")
            else:
                load = self.read(b, f"{start} + {k}, x")
                with self.block(f"for {k} in range(ty, {w}, {h}):"):
                    self.put(f"{two}[{k}, tx] = {load}{rows.format(row=k)}")
            self.put("cuda.syncthreads()")
            with self.block(f"for {k} in range({w}):"):
                self.put(f"{total} += {one}[ty, {k}] * {two}[{k}, tx]")
            self.put("cuda.syncthreads()")
        self.settle(scope, total, 25 * 64)
        return None

    def piece_diagonal(self, scope: Scope) -> None:
        """Steps in which only the threads of one row or column of a tile are active."""
        tile, k, v = self.new("tile"), self.new("k"), self.new("v")
        w, h = self.width, self.height
        steps = min(w, h, 4)
        self.use("shared tile", "barrier", "barrier in a loop", "2-D tile", "single thread")
        self.trips(scope, steps)
        self.put(
            f"{tile} = cuda.shared.array(({h}, {w}), np.int32)",
            f"{tile}[ty, tx] = {self.brought(scope)}",
            "cuda.syncthreads()",
        )
        with self.block(f"for {k} in range({steps}):"):
            with self.block(self.of(f"if tx == {k}:", f"if tx == {k} and ty > {k}:", f"if ty == {k}:")):
                self.put(f"{tile}[ty, tx] = {tile}[ty, tx] + {k} + 1")
            self.put("cuda.syncthreads()")
        self.put(f"{v} = {tile}[ty, tx]")
        self.settle(scope, v, 400)
