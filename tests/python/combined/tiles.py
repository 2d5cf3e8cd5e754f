"""Pieces that all threads of a block reach: shared tiles between barriers, and collectives of a warp.

`scope.tile` is the thread's index in its block, `LIMIT` the largest block size of the program. The input of such a
piece is a variable that all threads define, including those beyond the end of the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from combined.values import Values

if TYPE_CHECKING:
    from combined.build import Scope

FULL = ("0xFFFFFFFF", "0xFFFFFFFF", "-1")


class Tiles(Values):
    """Writes them. They define variables in all threads."""

    limit = 64  # threads of a block
    exact = False  # every block has exactly this number

    def brought(self, scope: Scope) -> str:
        """A variable that all threads define."""
        text, bound = self.int_of(scope)
        return text if bound < 300 else f"{text} % 97"

    def piece_tile(self, scope: Scope) -> None:
        """Writes an element of a tile, and reads others after a barrier."""
        tile, v = self.new("tile"), self.new("v")
        t = scope.tile
        dtype = self.of("int32", "int64", "float32", "float64", "int16")
        self.use("shared tile", "barrier")
        self.put(f"{tile} = cuda.shared.array({self.limit}, np.{dtype})", f"{tile}[{t}] = {self.brought(scope)}")
        self.put("cuda.syncthreads()")
        threads = self.threads()
        read = (lambda at: f"int({tile}[{at}])") if dtype[0] == "f" else (lambda at: f"{tile}[{at}]")
        kind = self.rng.random()
        if kind < 0.3:
            self.use("tested border")
            self.put(f"{v} = {read(t)}")
            with self.block(f"if {t} > 0:"):
                self.put(f"{v} += {read(f'{t} - 1')}")
            with self.block(f"if {t} < {threads} - 1:"):
                self.put(f"{v} += {read(f'{t} + 1')} * 2")
        elif kind < 0.5:
            self.use("modulo border")
            self.put(f"{v} = {read(f'({t} + {self.rng.randint(1, 9)}) % {threads}')}")
        elif kind < 0.65:
            self.use("backwards")
            self.put(f"{v} = {read(f'{threads} - 1 - {t}')}")
        elif kind < 0.85:
            k = self.new("k")
            self.use("loop over a tile")
            self.trips(scope, min(self.limit, 48))
            self.put(f"{v} = 0")
            with self.block(f"for {k} in range({self.of(threads, t + ' + 1', f'min({threads}, 17)')}):"):
                self.put(f"{v} += {read(k)}")
        else:
            self.use("clamp")
            self.put(f"{v} = {read(f'max({t} - 1, 0)')} * 2 + {read(f'min({t} + 1, {threads} - 1)')}")
        self.put("cuda.syncthreads()")
        self.settle(scope, v, 300 * self.limit)

    def threads(self) -> str:
        """The number of threads of a block."""
        if self.flat == "2-D":
            return "(cuda.blockDim.x * cuda.blockDim.y)"
        return str(self.limit) if self.exact and self.maybe(0.5) else "cuda.blockDim.x"

    flat = "1-D"

    def piece_tree(self, scope: Scope) -> None:
        """A tree reduction; all threads read the result."""
        tile, s, v = self.new("tile"), self.new("k"), self.new("v")
        t, threads = scope.tile, self.threads()
        size = 1
        while size < self.limit:
            size *= 2
        self.use("tree", "barrier")
        dtype = self.of("int32", "int64", "float32")
        self.trips(scope, 8)
        self.put(
            f"{tile} = cuda.shared.array({size}, np.{dtype})",
            f"{tile}[{t}] = {self.brought(scope)}",
            "cuda.syncthreads()",
        )
        kind = self.rng.random()
        if kind < 0.4:
            self.put(f"{s} = {size // 2}")
            with self.block(f"while {s} > 0:"):
                with self.block(f"if {t} < {s} and {t} + {s} < {threads}:"):
                    self.put(f"{tile}[{t}] += {tile}[{t} + {s}]")
                self.put("cuda.syncthreads()", self.of(f"{s} //= 2", f"{s} >>= 1"))
        elif kind < 0.7:
            self.use("every n-th thread")
            self.put(f"{s} = 1")
            with self.block(f"while {s} < {threads}:"):
                with self.block(f"if {t} % (2 * {s}) == 0 and {t} + {s} < {threads}:"):
                    self.put(f"{tile}[{t}] += {tile}[{t} + {s}]")
                self.put("cuda.syncthreads()", f"{s} *= 2")
        else:
            self.use("multiples")
            at = self.new("k")
            self.put(f"{s} = 1")
            with self.block(f"while {s} < {threads}:"):
                self.put(f"{at} = 2 * {s} * {t}")
                with self.block(f"if {at} + {s} < {threads}:"):
                    self.put(f"{tile}[{at}] += {tile}[{at} + {s}]")
                self.put("cuda.syncthreads()", f"{s} *= 2")
        self.put(f"{v} = int({tile}[0])", "cuda.syncthreads()")
        self.settle(scope, v, 300 * self.limit)

    def piece_scan(self, scope: Scope) -> None:
        """A Hillis-Steele prefix sum."""
        tile, s, v, u = self.new("tile"), self.new("k"), self.new("v"), self.new("v")
        t, threads = scope.tile, self.threads()
        self.use("scan", "barrier")
        self.trips(scope, 8)
        self.put(
            f"{tile} = cuda.shared.array({self.limit}, np.{self.of('int32', 'int64')})",
            f"{tile}[{t}] = {self.brought(scope)}",
        )
        self.put("cuda.syncthreads()", f"{s} = 1")
        with self.block(f"while {s} < {threads}:"):
            self.put(f"{u} = 0")
            if self.maybe(0.3):
                known = self.new("v")
                self.use("flag")
                self.put(f"{known} = {t} >= {s}")
                with self.block(f"if {known}:"):
                    self.put(f"{u} = {tile}[{t} - {s}]")
                self.put("cuda.syncthreads()")
                with self.block(f"if {known}:"):
                    self.put(f"{tile}[{t}] += {u}")
            else:
                with self.block(f"if {t} >= {s}:"):
                    self.put(f"{u} = {tile}[{t} - {s}]")
                self.put("cuda.syncthreads()", f"{tile}[{t}] += {u}")
            self.put("cuda.syncthreads()", f"{s} *= 2")
        self.put(f"{v} = {tile}[{t}]", "cuda.syncthreads()")
        self.settle(scope, v, 300 * self.limit)

    def piece_sort(self, scope: Scope) -> None:
        """Some steps of an odd-even sort."""
        tile, phase, swap, v = self.new("tile"), self.new("k"), self.new("v"), self.new("v")
        t, threads = scope.tile, self.threads()
        steps = self.rng.choice((2, 3, 6))
        self.use("sort", "barrier", "every n-th thread")
        self.trips(scope, steps * 2)
        self.put(
            f"{tile} = cuda.shared.array({self.limit}, np.{self.of('int32', 'float32')})",
            f"{tile}[{t}] = {self.brought(scope)}",
            "cuda.syncthreads()",
        )
        with self.block(f"for {phase} in range({steps}):"):
            if self.maybe(0.5):
                with (
                    self.block(f"if {t} % 2 == {phase} % 2 and {t} + 1 < {threads}:"),
                    self.block(f"if {tile}[{t}] > {tile}[{t} + 1]:"),
                ):
                    self.put(f"{swap} = {tile}[{t}]", f"{tile}[{t}] = {tile}[{t} + 1]", f"{tile}[{t} + 1] = {swap}")
            else:
                with self.block(
                    f"if {t} + 1 < {threads} and {t} % 2 == {phase} % 2 and {tile}[{t}] > {tile}[{t} + 1]:"
                ):
                    self.put(f"{swap} = {tile}[{t}]", f"{tile}[{t}] = {tile}[{t} + 1]", f"{tile}[{t} + 1] = {swap}")
            self.put("cuda.syncthreads()")
        self.put(f"{v} = int({tile}[{t}])", "cuda.syncthreads()")
        self.settle(scope, v, 300)

    def piece_block_loop(self, scope: Scope) -> None:
        """The threads of a block traverse a row in a block-stride loop, and sum their results."""
        extent = self.of("M", "K")
        x = self.ints_in(extent)
        k, v, total = self.new("k"), self.new("v"), self.new("tile")
        t, threads = scope.tile, self.threads()
        self.use("strided loop of a block", "barrier", "shared atomic")
        self.trips(scope, extent)
        self.put(f"{total} = cuda.shared.array(1, np.int32)")
        with self.block(f"if {t} == 0:"):
            self.put(f"{total}[0] = 0")
        self.put("cuda.syncthreads()", f"{v} = 0")
        with self.block(f"for {k} in range({t}, {self.extent(extent)}, {threads}):"):
            self.put(f"{v} += {self.read(x, k)}")
        if self.maybe(0.3):
            self.use("break")
        self.put(f"cuda.atomic.add({total}, 0, {v})", "cuda.syncthreads()")
        u = self.new("v")
        self.put(f"{u} = {total}[0]", "cuda.syncthreads()")
        self.settle(scope, v, 600)
        self.settle(scope, u, 600 * 2)

    def piece_cells(self, scope: Scope) -> None:
        """The threads of a block share the cells of a tile, whose rows have a fixed width, for some steps."""
        width, rows = self.rng.choice((16, 17, 24, 33)), self.rng.choice((1, 2, 3, 5))
        tile, k, v = self.new("tile"), self.new("k"), self.new("v")
        j, i, cells = self.new("k"), self.new("k"), width * rows
        t, threads = scope.tile, self.threads()
        extent = self.of("M", "K")
        x = self.ints_in(extent)
        self.use("cells of a tile", "barrier", "strided loop of a block")
        self.trips(scope, cells)
        both = self.of("", f"{j}, {i} = divmod({k}, {width})")
        split = [both] if both else [f"{j} = {k} // {width}", f"{i} = {k} % {width}"]
        self.put(f"{tile} = cuda.shared.array((2, {rows}, {width}), np.{self.of('int32', 'int64', 'float32')})")
        with self.block(f"for {k} in range({t}, {cells}, {threads}):"):
            self.put(*split)
            some = self.of(f"{i} > 1", f"{j} % 2 == 0", f"0 < {i} < {width - 1} and {j} > 0")
            with self.block(f"if {some} and {j} * 7 + {i} < {self.extent(extent)}:"):
                self.put(f"{tile}[0, {j}, {i}] = {self.read(x, f'{j} * 7 + {i}')}")
            with self.block("else:"):
                self.put(f"{tile}[0, {j}, {i}] = {self.of(i, j, '3')}")
            self.put(f"{tile}[1, {j}, {i}] = {self.of(k, i)} % 9")
        self.put("cuda.syncthreads()")
        if self.maybe(0.5):
            r = self.new("r")
            self.use("barrier in a loop")
            with self.block(f"for {r} in range({self.rng.choice((1, 2, 3))}):"):
                with self.block(f"for {k} in range({t}, {cells}, {threads}):"):
                    self.put(*split)
                    with self.block(f"if {i} + 1 < {width}:"):
                        after = f"{tile}[{r} % 2, {j}, {i} + 1]"
                        self.put(f"{tile}[1 - {r} % 2, {j}, {i}] = ({tile}[{r} % 2, {j}, {i}] + {after}) % 97")
                self.put("cuda.syncthreads()")
        self.put(f"{v} = int({tile}[1, {t} % {rows}, {t} % {width}])", "cuda.syncthreads()")
        self.settle(scope, v, 300)

    def piece_shared_histogram(self, scope: Scope) -> None:
        """A shared histogram per block, which is added to the global one."""
        bins = int(self.rng.choice((4, 16, 33)))
        tile, k = self.new("tile"), self.new("k")
        t, threads = scope.tile, self.threads()
        out = self.array("o", self.of("int32", "int64"), (bins,), ("ints", 0, 0))
        self.use("shared atomic", "atomic", "barrier", "privatized")
        self.put(f"{tile} = cuda.shared.array({bins}, np.int32)")
        with self.block(f"for {k} in range({t}, {bins}, {threads}):"):
            self.put(f"{tile}[{k}] = 0")
        self.put(
            "cuda.syncthreads()", f"cuda.atomic.add({tile}, {self.brought(scope)} % {bins}, 1)", "cuda.syncthreads()"
        )
        with self.block(f"for {k} in range({t}, {bins}, {threads}):"):
            self.put(f"cuda.atomic.add({out}, {k}, {tile}[{k}])")
        self.put("cuda.syncthreads()")

    def piece_count(self, scope: Scope) -> None:
        """`syncthreads_count` and its like."""
        v = self.new("v")
        kind = self.of("count", "and", "or")
        self.use("barrier", "counting barrier")
        self.put(f"{v} = cuda.syncthreads_{kind}({self.condition(scope)})")
        self.settle(scope, v, 256)

    def piece_one_thread(self, scope: Scope) -> None:
        """One thread sums the values of all threads; the others wait."""
        tile, k, v = self.new("tile"), self.new("k"), self.new("v")
        t, threads = scope.tile, self.threads()
        self.use("shared tile", "barrier", "single thread")
        self.trips(scope, 1)
        self.put(
            f"{tile} = cuda.shared.array({self.limit + 1}, np.int32)",
            f"{tile}[{t}] = {self.brought(scope)}",
            "cuda.syncthreads()",
        )
        with self.block(f"if {t} == {self.of('0', f'{threads} - 1')}:"):
            self.put(f"{v} = 0")
            with self.block(f"for {k} in range({threads}):"):
                self.put(f"{v} += {tile}[{k}]")
                if self.maybe(0.3):
                    self.use("break")
                    with self.block(f"if {v} > {self.rng.randint(20, 300)}:"):
                        self.put("break")
            self.put(f"{tile}[{self.limit}] = {v}")
        u = self.new("v")
        self.put("cuda.syncthreads()", f"{u} = {tile}[{self.limit}]", "cuda.syncthreads()")
        self.settle(scope, u, 300 * self.limit)

    # Warps.

    def piece_shuffle(self, scope: Scope) -> None:
        """Lanes exchange a value."""
        v, u = self.new("v"), self.new("v")
        mask, by = self.of(*FULL), self.rng.choice((1, 2, 4, 8, 16))
        lane = self.lane(scope)
        self.use("shuffle")
        self.put(f"{v} = {self.brought(scope)}")
        kind = self.rng.random()
        floating = self.maybe(0.3)
        if floating:
            self.put(f"{v} = int({v})")
        if kind < 0.3:
            self.put(f"{u} = cuda.shfl_up_sync({mask}, {v}, {by})")
            with self.block(f"if {lane} >= {by}:"):
                self.put(f"{v} += {u}")
        elif kind < 0.55:
            k = self.new("k")
            self.trips(scope, 5)
            self.use("tree of shuffles")
            self.put(f"{k} = 16")
            with self.block(f"while {k} > 0:"):
                self.put(f"{u} = cuda.shfl_xor_sync({mask}, {v}, {k})")
                self.put_exchanged(scope, v, u, k)
        elif kind < 0.75:
            k = self.new("k")
            self.trips(scope, 5)
            self.use("scan of shuffles")
            self.put(f"{k} = 1")
            with self.block(f"while {k} < 32:"):
                self.put(f"{u} = cuda.shfl_up_sync({mask}, {v}, {k})")
                with self.block(f"if {lane} >= {k}:"):
                    self.put(f"{v} += {u}")
                self.put(f"{k} *= 2")
        elif kind < 0.9:
            self.put(f"{v} += cuda.shfl_sync({mask}, {v}, 0)")
        else:
            self.put(f"{u} = cuda.shfl_down_sync({mask}, {v}, {by})")
            with self.block(f"if {lane} + {by} < 32 and {scope.tile} + {by} < {self.threads()}:"):
                self.put(f"{v} -= {u}")
        self.settle(scope, v, 300 * 32)

    def put_exchanged(self, scope: Scope, v: str, u: str, k: str) -> None:
        """Uses a shuffle's result only if the source lane exists: otherwise the result is undefined."""
        if self.limit % 32 == 0 and self.exact:
            self.put(f"{v} = max({v}, {u})")
        else:
            with self.block(f"if {scope.tile} ^ {k} < {self.threads()}:"):
                self.put(f"{v} = max({v}, {u})")
        self.put(f"{k} //= 2")

    def lane(self, scope: Scope) -> str:
        if self.flat == "2-D":
            return f"{scope.tile} % 32"
        return self.of("cuda.laneid", f"{scope.tile} % 32", f"({scope.tile} & 31)")

    def piece_vote(self, scope: Scope) -> None:
        """Lanes vote."""
        v, p = self.new("v"), self.new("v")
        mask, kind = self.of(*FULL), self.rng.random()
        self.use("vote")
        self.put(f"{p} = {self.condition(scope)}")
        if kind < 0.3:
            self.put(f"{v} = 1 if cuda.{self.of('any', 'all')}_sync({mask}, {p}) else 2")
        elif kind < 0.7:
            below = f"((1 << {self.lane(scope)}) - 1)"
            self.put(f"{v} = cuda.popc(cuda.ballot_sync({mask}, {p}) & {below})")
        else:
            self.put(f"{v} = cuda.popc(cuda.ballot_sync({mask}, {p}))")
        self.settle(scope, v, 33)

    def piece_warp_sum(self, scope: Scope) -> None:
        """The lanes of a warp traverse a row with a stride, and sum their results."""
        extent = self.of("M", "K")
        x = self.ints_in(extent)
        k, v = self.new("k"), self.new("v")
        self.use("shuffle", "strided loop of a warp")
        self.trips(scope, extent)
        self.put(f"{v} = 0")
        with self.block(f"for {k} in range({self.lane(scope)}, {self.extent(extent)}, 32):"):
            self.put(f"{v} += {self.read(x, k)}")
        s, u = self.new("k"), self.new("v")
        self.put(f"{s} = 16")
        with self.block(f"while {s} > 0:"):
            self.put(f"{u} = cuda.shfl_xor_sync(0xFFFFFFFF, {v}, {s})")
            self.put_exchanged(scope, v, u, s)
        self.settle(scope, v, 600)
