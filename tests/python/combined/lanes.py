"""Pieces in which the lanes of a warp, or the threads of a block, diverge around collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from combined.rows_of_blocks import RowsOfBlocks

if TYPE_CHECKING:
    from combined.build import Scope

ALL = "0xFFFFFFFF"


class Lanes(RowsOfBlocks):
    """Writes them."""

    def piece_lanes_part(self, scope: Scope) -> None:
        """Lanes take different branches, and those in one of them vote."""
        p, m, v = self.new("v"), self.new("v"), self.new("v")
        self.use("vote", "divergent vote")
        self.put(f"{p} = {self.condition(scope)}", f"{m} = cuda.ballot_sync({ALL}, {p})", f"{v} = 0")
        with self.block(f"if {p}:"):
            self.put(f"{v} = cuda.popc(cuda.ballot_sync({m}, {self.condition(scope)}))")
        if self.maybe(0.5):
            with self.block("else:"):
                self.put(f"{v} = cuda.popc(cuda.ballot_sync(~{m}, {self.condition(scope)})) + 1")
        self.settle(scope, v, 33)

    def piece_warp_loop(self, scope: Scope) -> None:
        """A loop that a warp leaves when none of its lanes has work left; other warps continue."""
        k, most, v = self.new("k"), self.new("v"), self.new("v")
        self.use("vote", "loop of a warp", "while")
        self.trips(scope, 20)
        self.put(f"{most} = {self.brought(scope)} % {self.of('5', '11', '20')}", f"{k} = 0", f"{v} = 0")
        form = self.rng.random()
        if form < 0.4:
            with self.block(f"while cuda.any_sync({ALL}, {k} < {most}):"):
                with self.block(f"if {k} < {most}:"):
                    self.put(f"{v} += {k} + 1")
                self.put(f"{k} += 1")
        elif form < 0.7:
            self.use("break")
            with self.block(f"for {k} in range(20):"):
                with self.block(f"if cuda.all_sync({ALL}, {k} >= {most}):"):
                    self.put("break")
                with self.block(f"if {k} < {most}:"):
                    self.put(f"{v} += {k} + 1")
        else:
            self.use("continue")
            with self.block(f"for {k} in range(6):"):
                with self.block(f"if cuda.any_sync({ALL}, ({most} + {k}) % 3 == 0):"):
                    self.put("continue")
                self.put(f"{v} += cuda.popc(cuda.ballot_sync({ALL}, {k} < {most}))")
        self.settle(scope, v, 300)

    def piece_warp_rows(self, scope: Scope) -> None:
        """Between two barriers each warp takes rows of its own; then all threads read the results."""
        tile, r, u, v = self.new("tile"), self.new("k"), self.new("v"), self.new("v")
        t, threads, lane = scope.tile, self.threads(), self.lane(scope)
        rows = int(self.rng.choice((3, 8, 13)))
        self.use("barrier", "shared tile", "rows of warps")
        self.trips(scope, 6 * rows)
        value = self.brought(scope)
        self.put(f"{tile} = cuda.shared.array({rows}, np.int32)", f"{v} = 0")
        if self.maybe(0.3):
            with self.block(f"if {t} < {rows}:"):
                self.put(f"{tile}[{t}] = 0")
            self.put("cuda.syncthreads()")
        head = f"for {r} in range({t} // 32, {rows}, ({threads} + 31) // 32):"
        form = self.rng.random()
        with self.block(head):
            if form < 0.5:
                self.use("vote")
                self.put(f"{u} = cuda.popc(cuda.ballot_sync({ALL}, ({value} + {r}) % 3 == 0))")
            else:
                s, other = self.new("k"), self.new("v")
                self.use("shuffle", "tree of shuffles")
                self.put(f"{u} = ({value} + {r}) % 300", f"{s} = 16")
                with self.block(f"while {s} > 0:"):
                    self.put(f"{other} = cuda.shfl_xor_sync({ALL}, {u}, {s})")
                    self.put_exchanged(scope, u, other, s)
            if self.maybe(0.4):
                with self.block(f"if {r} % 2 == 0:"):
                    self.put(f"{u} += cuda.popc(cuda.ballot_sync({ALL}, {self.condition(scope)}))")
            with self.block(f"if {lane} == {self.of('0', '0', '3')}:"):
                self.put(f"{tile}[{r}] = {u}")
            if self.maybe(0.4):
                self.put("cuda.syncwarp()", f"{u} += {r}")
            self.put(f"{v} += {u}")
        self.put("cuda.syncthreads()")
        if form < 0.25 or form > 0.75:
            with self.block(f"if {t} // 32 != 1:"):
                self.put(f"{v} += cuda.popc(cuda.ballot_sync({ALL}, {v} % 2 == 0))")
        # A block has lane 3 of each warp that takes a row only if its warps are whole.
        if self.limit % 32 == 0 and self.exact:
            self.put(f"{v} += {tile}[{t} % {rows}]")
        self.put("cuda.syncthreads()")
        self.settle(scope, v, 400 * (rows + 1))

    def piece_barrier_function(self, scope: Scope) -> None:
        """A device function with barriers, called once or twice."""
        called, tile, v = self.new("fn"), self.new("tile"), self.new("v")
        self.use("device function", "barrier", "barrier in a function")
        text = [f"def {called}(tile, t, threads, value):", "    tile[t] = value", "    cuda.syncthreads()"]
        text += [
            self.of(
                "    found = tile[threads - 1 - t]",
                "    found = tile[(t + 1) % threads]",
                "    found = tile[0] + tile[t]",
            )
        ]
        text += ["    cuda.syncthreads()", "    return found"]
        self.functions.append(["@cuda.jit(device=True)", *text])
        threads = self.threads()
        self.put(f"{tile} = cuda.shared.array({self.limit}, np.int32)")
        self.put(f"{v} = {called}({tile}, {scope.tile}, {threads}, {self.brought(scope)})")
        if self.maybe(0.4):
            self.put(f"{v} = {called}({tile}, {scope.tile}, {threads}, {v} + 1)")
        self.settle(scope, v, 2000)

    def piece_named_flag(self, scope: Scope) -> None:
        """A flag that a branch sets, and that is tested after a barrier."""
        tile, flag, v = self.new("tile"), self.new("v"), self.new("v")
        t, threads = scope.tile, self.threads()
        self.use("flag", "barrier", "shared tile")
        low, high = self.rng.randint(0, 3), self.rng.randint(0, 3)
        self.put(f"{tile} = cuda.shared.array({self.limit}, np.int32)", f"{tile}[{t}] = {self.brought(scope)}")
        self.put("cuda.syncthreads()", f"{flag} = False", f"{v} = 0")
        test = self.of(
            f"{t} > {low} and {t} < {threads} - {high + 1}", f"not ({t} <= {low} or {t} >= {threads} - {high + 1})"
        )
        with self.block(f"if {test}:"):
            self.put(f"{flag} = True", f"{v} = {tile}[{t} - 1] + {tile}[{t} + 1]")
        self.put("cuda.syncthreads()")
        with self.block(f"if {flag}:"):
            self.put(f"{tile}[{t}] = {v}")
        self.put("cuda.syncthreads()", f"{v} = {tile}[{t}]", "cuda.syncthreads()")
        self.settle(scope, v, 700)

    def piece_sparse_block(self, scope: Scope) -> None:
        """A sparse row for a block or a warp; two elements of an array delimit it."""
        starts = self.array("l", self.of("int32", "int64"), ("G+1",), ("starts M", 0, 0))
        x = self.ints_in("M")
        k, v = self.new("k"), self.new("v")
        lane, step = (self.lane(scope), "32") if self.maybe(0.5) else (scope.tile, self.threads())
        self.use("sparse row", "strided loop of a block")
        self.trips(scope, "M")
        self.put(f"{v} = 0")
        first, last = f"{starts}[cuda.blockIdx.x]", f"{starts}[cuda.blockIdx.x + 1]"
        with self.block(f"for {k} in range({first} + {lane}, {last}, {step}):"):
            self.put(f"{v} += {self.read(x, k)}")
        if self.maybe(0.5):
            u, s = self.new("v"), self.new("k")
            self.use("shuffle")
            self.put(f"{s} = 16")
            with self.block(f"while {s} > 0:"):
                self.put(f"{u} = cuda.shfl_xor_sync({ALL}, {v}, {s})")
                self.put_exchanged(scope, v, u, s)
        else:
            self.use("barrier")
            self.put("cuda.syncthreads()")
        self.settle(scope, v, 600)
