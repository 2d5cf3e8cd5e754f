"""Pieces that the threads of a block or of a warp do together: shared tiles with barriers, and warp operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from generated.build import Full
from generated.pieces import Pieces

if TYPE_CHECKING:
    from generated.build import Scope

BLOCK_PIECES = {"tile": 6, "mirrored": 4, "tree": 6, "scan": 3, "shared_histogram": 5, "staged_table": 5, "counted": 3}
BLOCK_PIECES_2D = {"halo": 6, "exchanged": 6, "product_tiles": 7, "row_sums": 3}
WARP_PIECES = {"warp_sum": 5, "butterfly": 4, "ballot": 3, "rotated": 3}


class Blocks(Pieces):
    """Pieces that every thread of the block takes part in: `tid` of `BLOCK` threads, or `tx` and `ty`."""

    shape: tuple[int, ...] = ()
    """The shape of the block, in kernels that depend on it."""
    guard = ""
    """The condition of the threads that have elements; empty if all have."""

    def shared(self, shape: str, dtype: str) -> str:
        self.use("shared tile", "barrier")
        name = self.new("tile")
        self.put(f"{name} = cuda.shared.array({shape}, np.{dtype})")
        return name

    def tile_type(self) -> str:
        return self.of("float32", "float32", self.widest_float)

    def barrier(self) -> None:
        self.put("cuda.syncthreads()")

    def guarded(self, scope: Scope, *lines: str) -> None:
        """Statements of the threads that have elements."""
        if self.guard:
            with self.block(f"if {self.guard}:"):
                self.put(*lines)
        else:
            self.put(*lines)

    def piece_tile(self, scope: Scope) -> None:
        """Each thread stores its value, and reads those of its neighbors in the block."""
        v, tile, distance = self.new("v"), self.shared("BLOCK", self.tile_type()), self.of(1, 1, 2, 5)
        self.put(f"{tile}[tid] = {self.of(*scope.floats)}")
        self.barrier()
        before, after = self.of(
            (f"max(tid - {distance}, 0)", f"min(tid + {distance}, BLOCK - 1)"),
            (f"(tid - {distance}) % BLOCK", f"(tid + {distance}) % BLOCK"),
        )
        self.put(f"{v} = ({tile}[{before}] + {tile}[{after}]) * {self.literal(0.5)} - {tile}[tid]")
        self.pays(scope, 10)
        self.made(scope, v)

    def piece_mirrored(self, scope: Scope) -> None:
        v, tile = self.new("v"), self.shared("BLOCK", self.tile_type())
        self.put(f"{tile}[tid] = {self.of(*scope.floats)}")
        self.barrier()
        self.put(f"{v} = {tile}[BLOCK - 1 - tid]")
        self.pays(scope, 6)
        self.made(scope, v)

    def piece_tree(self, scope: Scope) -> None:
        """A reduction of the block, which its first thread stores."""
        self.use("reduction in shared memory", "geometric loop")
        tile, d, dtype = "", self.new("d"), self.tile_type()
        tile = self.shared("BLOCK", dtype)
        self.put(f"{tile}[tid] = {self.of(*scope.floats)}", f"{d} = BLOCK // 2")
        self.barrier()
        update = self.of("{a} += {b}", "{a} = max({a}, {b})").format(a=f"{tile}[tid]", b=f"{tile}[tid + {d}]")
        with self.block(f"while {d} > 0:"):
            with self.block(f"if tid < {d}:"):
                self.put(update)
            self.barrier()
            self.put(f"{d} //= 2" if self.maybe(0.7) else f"{d} >>= 1")
        if self.maybe(0.5):
            out = self.output(("GX",), dtype)
            self.put("if tid == 0:", f"    {out}[cuda.blockIdx.x] = {tile}[0]")
        else:
            v = self.new("v")
            self.put(f"{v} = {tile}[0] * {self.literal(0.01)}")
            self.made(scope, v)
        self.pays(scope, 40)

    def piece_scan(self, scope: Scope) -> None:
        """The sums of the block's values up to each thread."""
        self.use("scan")
        v, d, tile = self.new("v"), self.new("d"), self.shared("BLOCK", "int32")
        value = f"{scope.flat} % {self.of(5, 7)}"
        self.put(f"{tile}[tid] = {value}", f"{d} = 1")
        self.barrier()
        with self.block(f"while {d} < BLOCK:"):
            self.put(f"{v} = {tile}[tid]", f"if tid >= {d}:", f"    {v} += {tile}[tid - {d}]")
            self.barrier()
            self.put(f"{tile}[tid] = {v}")
            self.barrier()
            self.put(f"{d} *= 2")
        self.put(f"{v} = {tile}[tid]")
        self.pays(scope, 80)
        self.made(scope, v, 10000)

    def piece_shared_histogram(self, scope: Scope) -> None:
        self.use("atomic add", "few bins", "histogram in shared memory")
        bins, k = self.of(4, 32, 64), self.new("k")
        tile = self.shared(f"{bins}", "int32")
        counts = self.output((f"{bins}",), self.of("int32", "int64"), "zeros")
        with self.block(f"for {k} in range(tid, {bins}, BLOCK):"):
            self.put(f"{tile}[{k}] = 0")
        self.barrier()
        key = f"{scope.ints[-1][0]}" if scope.ints else f"{scope.flat} * 7"
        self.guarded(scope, f"cuda.atomic.add({tile}, ({key}) % {bins}, 1)")
        self.barrier()
        with self.block(f"for {k} in range(tid, {bins}, BLOCK):"):
            self.put(f"cuda.atomic.add({counts}, {k}, {tile}[{k}])")
        self.pays(scope, 20)

    def piece_staged_table(self, scope: Scope) -> None:
        """A table that the block reads tile by tile, as in an n-body kernel."""
        self.use("loop of barriers", "loop of runtime trip count")
        tile = self.shared("BLOCK", "float32")
        v, start, k = self.new("v"), self.new("start"), self.new("k")
        name, t = self.param_table(), self.number("T")
        value = self.of(*scope.floats)
        self.put(f"{v} = {self.zero()}")
        with self.block(f"for {start} in range(0, {t}, BLOCK):"):
            self.put(f"if {start} + tid < {t}:", f"    {tile}[tid] = {name}[{start} + tid]")
            self.barrier()
            with self.block(f"for {k} in range(min(BLOCK, {t} - {start})):"):
                self.put(f"{v} += abs({tile}[{k}] - {value})")
            self.barrier()
        self.put(f"{v} *= {self.literal(0.01)}")
        self.pays(scope, 400)
        self.made(scope, v)

    def param_table(self) -> str:
        return self.array("t", ("float32",), ("T",), "float")

    def piece_counted(self, scope: Scope) -> None:
        """How many threads of the block have a property, or whether any or all have."""
        self.use("counting barrier", "barrier")
        v, test = self.new("v"), f"{scope.flat} % {self.of(3, 7)} {self.of('==', '<')} {self.of(0, 1, 2)}"
        name = self.of("syncthreads_count", "syncthreads_count", "syncthreads_or", "syncthreads_and")
        self.put(f"{v} = int(cuda.{name}({test}))")
        self.pays(scope, 10)
        self.made(scope, v, 1024)

    # Blocks of two dimensions: `tx` and `ty`, of `WIDTH` and `HEIGHT`.

    def piece_halo(self, scope: Scope) -> None:
        """A tile with a border: a stencil whose values at the border of the block come from memory."""
        self.use("halo", "stencil")
        h, w = self.number("H"), self.number("W")
        name = self.array("x", ("float32", self.widest_float), ("H", "W"), "float")
        tile = self.shared("(HEIGHT + 2, WIDTH + 2)", self.params[name].dtype)
        j, k, y, x, v = self.new("j"), self.new("k"), self.new("row"), self.new("column"), self.new("v")
        with (
            self.block(f"for {j} in range(ty, HEIGHT + 2, HEIGHT):"),
            self.block(f"for {k} in range(tx, WIDTH + 2, WIDTH):"),
        ):
            self.put(
                f"{y} = min(max(cuda.blockIdx.y * HEIGHT + {j} - 1, 0), {h} - 1)",
                f"{x} = min(max(cuda.blockIdx.x * WIDTH + {k} - 1, 0), {w} - 1)",
                f"{tile}[{j}, {k}] = {name}[{y}, {x}]",
            )
        self.barrier()
        around = f"{tile}[ty, tx + 1] + {tile}[ty + 2, tx + 1] + {tile}[ty + 1, tx] + {tile}[ty + 1, tx + 2]"
        self.put(f"{v} = {tile}[ty + 1, tx + 1] * {self.literal(0.5)} + ({around}) * {self.literal(0.125)}")
        self.pays(scope, 20)
        self.made(scope, v)

    def piece_exchanged(self, scope: Scope) -> None:
        """A transposition through shared memory: of the block's square tile, or within the block."""
        self.use("transposed tile")
        v = self.new("v")
        dtype = self.tile_type()
        if self.shape[0] == self.shape[1]:
            self.use("transposed access")
            tile = self.shared(f"(HEIGHT, WIDTH + {self.of(0, 1, 1)})", dtype)
            out = self.output(("W", "H"), dtype)
            self.put(f"{tile}[ty, tx] = {self.of(*scope.floats)}")
            self.barrier()
            y, x, h, w = self.new("row"), self.new("column"), self.number("H"), self.number("W")
            self.put(f"{y} = cuda.blockIdx.x * WIDTH + ty", f"{x} = cuda.blockIdx.y * HEIGHT + tx")
            self.put(f"if {y} < {w} and {x} < {h}:", f"    {out}[{y}, {x}] = {tile}[tx, ty]")
        else:
            tile = self.shared("(HEIGHT, WIDTH)", dtype)
            self.put(f"{tile}[ty, tx] = {self.of(*scope.floats)}")
            self.barrier()
            self.put(f"{v} = {tile}[HEIGHT - 1 - ty, WIDTH - 1 - tx]")
            self.made(scope, v)
        self.pays(scope, 12)

    def piece_product_tiles(self, scope: Scope) -> None:
        """A product of matrices with square tiles."""
        if self.shape[0] != self.shape[1] or len(self.inputs()) > 2:
            raise Full
        self.use("loop of barriers", "product by tiles", "loop of runtime trip count")
        h, w, m = self.number("H"), self.number("W"), self.number("L")
        left = self.array("x", ("float32",), ("H", "L"), "float")
        right = self.array("x", ("float32",), ("L", "W"), "float")
        one, two = self.shared("(HEIGHT, WIDTH)", "float32"), self.shared("(HEIGHT, WIDTH)", "float32")
        v, start, k = self.new("v"), self.new("start"), self.new("k")
        zero = "np.float32(0)"
        self.put(f"{v} = {self.zero()}")
        with self.block(f"for {start} in range(0, {m}, WIDTH):"):
            self.put(f"{one}[ty, tx] = {left}[y, {start} + tx] if y < {h} and {start} + tx < {m} else {zero}")
            self.put(f"{two}[ty, tx] = {right}[{start} + ty, x] if {start} + ty < {m} and x < {w} else {zero}")
            self.barrier()
            with self.block(f"for {k} in range(WIDTH):"):
                self.put(f"{v} += {one}[ty, {k}] * {two}[{k}, tx]")
            self.barrier()
        self.put(f"{v} *= {self.literal(0.05)}")
        self.pays(scope, 150)
        self.made(scope, v)

    def piece_row_sums(self, scope: Scope) -> None:
        """The sum of each row of the block, by its first thread."""
        self.use("reduction in shared memory", "idle threads")
        v, tile, k = self.new("v"), self.shared("(HEIGHT, WIDTH)", self.tile_type()), self.new("k")
        self.put(f"{tile}[ty, tx] = {self.of(*scope.floats)}")
        self.barrier()
        with self.block("if tx == 0:"):
            self.put(f"{v} = {self.zero()}", f"for {k} in range(WIDTH):", f"    {v} += {tile}[ty, {k}]")
            self.put(f"{tile}[ty, 0] = {v}")
        self.barrier()
        self.put(f"{v} = {tile}[ty, 0] * {self.literal(0.1)}")
        self.pays(scope, 40)
        self.made(scope, v)

    # Warps: all lanes take part.

    def piece_warp_sum(self, scope: Scope) -> None:
        self.use("shuffle", "geometric loop")
        v, d = self.new("v"), self.new("d")
        self.put(f"{v} = {self.of(*scope.floats)}", f"{d} = 16")
        with self.block(f"while {d} > 0:"):
            self.put(f"{v} += cuda.shfl_down_sync(0xFFFFFFFF, {v}, {d})", f"{d} //= 2")
        self.put(f"{v} = cuda.shfl_sync(0xFFFFFFFF, {v}, 0) * {self.literal(0.05)}")
        self.pays(scope, 30)
        self.made(scope, v)

    def piece_butterfly(self, scope: Scope) -> None:
        self.use("shuffle")
        v, k = self.new("v"), self.new("k")
        self.put(f"{v} = {scope.flat} % 9")
        with self.block(f"for {k} in (16, 8, 4, 2, 1):"):
            self.put(f"{v} {self.of('+=', '^=')} cuda.shfl_xor_sync(0xFFFFFFFF, {v}, {k})")
        self.pays(scope, 30)
        self.made(scope, v, 600)

    def piece_ballot(self, scope: Scope) -> None:
        self.use("vote")
        v = self.new("v")
        self.put(f"{v} = int(cuda.popc(cuda.ballot_sync(0xFFFFFFFF, {scope.flat} % {self.of(3, 5)} == 1)))")
        self.pays(scope, 8)
        self.made(scope, v, 32)

    def piece_rotated(self, scope: Scope) -> None:
        """The value of another lane."""
        self.use("shuffle")
        v, value = self.new("v"), self.of(*scope.floats)
        call = self.of("shfl_up_sync(0xFFFFFFFF, {}, 1)", "shfl_sync(0xFFFFFFFF, {}, (cuda.laneid + 5) % 32)")
        self.put(f"{v} = {value} - cuda.{call.format(value)}")
        self.pays(scope, 6)
        self.made(scope, v)
