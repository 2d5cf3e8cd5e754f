"""Pieces that traverse rows: sums and stores along a thread's own row, columns, windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from combined.exits import Exits

if TYPE_CHECKING:
    from combined.build import Scope


class Walks(Exits):
    """Writes loops over a row of the thread's own."""

    def row_of(self, scope: Scope, *, floating: bool) -> tuple[str, str | int, str, str]:
        """An array with a row for each thread: name, length of a row, index before the column, index after it."""
        extent = self.some_extent()
        make = self.floats_in if floating else self.ints_in
        kind = self.rng.random()
        if kind < 0.65:
            self.use("row traversal")
            return make(scope.count, extent), extent, f"{scope.own}, ", ""
        if kind < 0.85:
            self.use("column traversal")
            return make(extent, scope.count), extent, "", f", {scope.own}"
        self.use("row traversal", "flat row")
        array = self.array(
            "f" if floating else "x",
            "float32" if floating else "int32",
            (f"{scope.count}*{extent}",),
            ("ints", -8 if floating else 0, 8),
        )
        return array, extent, f"{scope.own} * {self.extent(extent)} + ", ""

    def head(self, scope: Scope, k: str, extent: str | int) -> str:
        """A loop over a row."""
        kind = self.rng.random()
        text = self.extent(extent)
        if kind < 0.5:
            return f"for {k} in range({text}):"
        if kind < 0.75 and scope.own:
            self.use("own trip count", "uneven row")
            return f"for {k} in range({self.own_trips(scope, extent)}):"
        if kind < 0.82:
            self.use("backwards")
            return f"for {k} in range({text} - 1, -1, -1):"
        if kind < 0.9:
            return f"for {k} in range(0, {text}, {self.of('2', '3')}):"
        return f"for {k} in range({self.of('1', '2')}, {text}):"

    def piece_row_sum(self, scope: Scope) -> None:
        floating = self.maybe(0.8)
        array, extent, before, after = self.row_of(scope, floating=floating)
        k, total = self.new("k"), self.new("t" if floating else "v")
        self.trips(scope, extent)
        self.put(f"{total} = {self.of('0.0', 'np.float32(0)') if floating else '0'}")
        bound = 64 * 9
        if self.maybe(0.15) and not isinstance(extent, int):
            self.use("while")
            self.put(f"{k} = 0")
            head, last = f"while {k} < {self.extent(extent)}:", f"{k} += 1"
        else:
            head, last = self.head(scope, k, extent), ""
        with self.block(head):
            element = self.read(array, f"{before}{k}{after}")
            kind = self.rng.random()
            if kind < 0.3:
                self.put(f"{total} += {element}")
            elif kind < 0.5:
                other = (self.floats_in if floating else self.ints_in)(extent)
                self.put(f"{total} += {element} * {self.read(other, k)}")
                bound *= 9
            elif kind < 0.68:
                self.use("function of math")
                if floating:
                    self.put(
                        f"{total} += {element} * "
                        + self.of(
                            f"math.exp(0.0 * {element})",
                            f"math.sqrt(float({k} * {k}))",
                            f"math.floor({element})",
                            f"abs({element})",
                        )
                    )
                else:
                    self.put(f"{total} += int(math.sqrt(float({k} * {k})))")
                bound *= 64
            elif kind < 0.9 and not last:
                if self.maybe(0.5):
                    self.use("continue")
                    with self.block(f"if {k} == {scope.own}:"):
                        self.put("continue")
                    self.put(f"{total} += {element}")
                else:
                    with self.block(f"if {k} != {scope.own}:"):
                        self.put(f"{total} += {element}")
            else:
                self.put(f"{total} = {self.of('max', 'min')}({total}, {element})")
            if last:
                self.put(last)
        self.settle(scope, total, bound, floating=floating)

    def piece_row_exit(self, scope: Scope) -> None:
        """A loop over a row with an early exit."""
        array, extent, before, after = self.row_of(scope, floating=False)
        k, total = self.new("k"), self.new("v")
        self.trips(scope, extent)
        self.use("row with an exit")
        self.put(f"{total} = 0")
        with self.block(f"for {k} in range({self.extent(extent)}):"):
            element = self.read(array, f"{before}{k}{after}")
            self.put_leave(scope, f"if {element} == {self.rng.randint(0, 9)}:", total)
            self.put(f"{total} += {element}")
        self.settle(scope, total, 600)

    def piece_row_store(self, scope: Scope) -> None:
        """Stores along a row of the thread's own."""
        floating = self.maybe(0.8)
        array, extent, before, after = self.row_of(scope, floating=floating)
        k, total = self.new("k"), self.new("t" if floating else "v")
        self.trips(scope, extent)
        self.use("row store")
        dtype = self.params[array].dtype if self.maybe(0.7) else ("float64" if floating else "int64")
        if dtype in ("int8", "uint8", "int16", "uint16"):
            dtype = "int32"
        out = self.array("o", dtype, self.params[array].extents, ("ints", 77, 77))
        self.put(f"{total} = {self.of('0.0', 'np.float32(0)') if floating else '0'}")
        with self.block(self.head(scope, k, extent)):
            element = self.read(array, f"{before}{k}{after}")
            at = f"{before}{k}{after}"
            kind = self.rng.random()
            if kind < 0.35:
                self.growing.add(out)
                self.put(f"{total} += {element}", f"{out}[{at}] = {total}")
            elif kind < 0.45:
                self.growing.add(out)
                self.put(f"{total} += {element}", f"{out}[{at}] = {element} * 2 + {self.small(scope)}")
            elif kind < 0.6:
                self.put(f"{total} += {element}", f"{out}[{at}] = {element} + {self.small(scope)}")
            elif kind < 0.75:
                self.put(f"{out}[{at}] = {element}", f"{total} += {out}[{at}]")
            elif kind < 0.9:
                self.use("conditional store")
                with self.block(f"if {element} > {self.rng.randint(0, 4)}:"):
                    self.put(f"{out}[{at}] = {element}")
                self.put(f"{total} += {element}")
            else:
                self.use("total in memory")
                self.put(f"{out}[{at}] += {element}", f"{total} += 1")
        self.settle(scope, total, 2000, floating=floating)

    def small(self, scope: Scope) -> str:
        text, bound = self.int_of(scope)
        return text if bound < 300 else f"{text} % 100"

    def piece_in_place(self, scope: Scope) -> None:
        """A row that is read and then written, as by an in-place softmax."""
        extent = self.some_extent()
        array = self.array("o", self.of("float32", "float64", "int32"), (scope.count, extent), ("ints", 0, 8))
        k, total = self.new("k"), self.new("t")
        self.trips(scope, extent, 2)
        self.use("row traversal", "row store", "in place")
        floating = self.params[array].dtype[0] == "f"
        self.put(f"{total} = {'0.0' if floating else '0'}")
        with self.block(self.head(scope, k, extent)):
            self.put(f"{total} += {array}[{scope.own}, {k}]")
        with self.block(self.head(scope, k, extent)):
            self.put(
                self.of(
                    f"{array}[{scope.own}, {k}] = {array}[{scope.own}, {k}] + {total}",
                    f"{array}[{scope.own}, {k}] = {total}",
                    f"{array}[{scope.own}, {k}] += {k}",
                    f"{array}[{scope.own}, {k}] *= 2",
                )
            )
        self.settle(scope, total, 600, floating=floating)

    def piece_shifted(self, scope: Scope) -> None:
        """A recurrence along a row: an element is computed from earlier ones of the same row."""
        array = self.array("o", self.of("float32", "int32", "int64"), (scope.count, "M"), ("ints", 0, 3))
        k, by = self.new("k"), self.rng.choice((1, 1, 2, 3, 16, 17))
        self.trips(scope, "M")
        self.use("row traversal", "row store", "recurrence in memory")
        with self.block(f"for {k} in range({by}, {self.extent('M')}):"):
            if self.params[array].dtype == "float32":
                self.put(f"{array}[{scope.own}, {k}] = {array}[{scope.own}, {k}] + {array}[{scope.own}, {k} - {by}]")
            else:
                self.put(
                    f"{array}[{scope.own}, {k}] = "
                    f"({array}[{scope.own}, {k}] + {array}[{scope.own}, {k} - {by}] * 3) % 97"
                )

    def piece_rows_by_centers(self, scope: Scope) -> None:
        """The nearest of some centers: a loop over centers around one over a row."""
        centers = int(self.rng.choice((2, 3, 5)))
        dims = self.pick(3, 4, 8, "K")
        assert isinstance(dims, (int, str))
        points = self.ints_in(scope.count, dims)
        table = self.ints_in(centers, dims)
        c, d, t, u, best = (self.new(stem) for stem in ("k", "k", "v", "v", "v"))
        self.trips(scope, centers, dims)
        self.use("row traversal", "nested loops")
        self.put(f"{best} = 0", f"{u} = 1000000")
        with self.block(f"for {c} in range({self.extent(centers)}):"):
            self.put(f"{t} = 0")
            with self.block(f"for {d} in range({self.extent(dims)}):"):
                one, two = self.read(points, f"{scope.own}, {d}"), self.read(table, f"{c}, {d}")
                self.put(f"{t} += ({one} - {two}) * ({one} - {two})")
            with self.block(f"if {t} < {u}:"):
                self.put(f"{u} = {t}", f"{best} = {c}")
        self.settle(scope, best, 8)

    def piece_total(self, scope: Scope) -> None:
        """An accumulator that is an array element."""
        extent = self.some_extent()
        floating = self.maybe(0.5)
        x = (self.floats_in if floating else self.ints_in)(extent)
        out = self.array("o", "float32" if floating else self.of("int32", "int64"), (scope.count,), ("ints", 0, 9))
        k = self.new("k")
        self.trips(scope, extent)
        self.use("total in memory")
        with self.block(f"for {k} in range({self.extent(extent)}):"):
            self.put(f"{out}[{scope.own}] += {self.read(x, k)} * {self.of('1', '2', k)}")

    def piece_colors(self, scope: Scope) -> None:
        """A last axis of extent 3 or 4."""
        colors = self.pick(3, 4, "C")
        assert isinstance(colors, (int, str))
        array = self.ints_in(scope.count, colors)
        c, total = self.new("k"), self.new("v")
        self.use("short last extent")
        self.trips(scope, 4)
        if self.maybe(0.4) and colors != "C":
            self.put(
                f"{total} = {self.read(array, f'{scope.own}, 0')} * 2 + {self.read(array, f'{scope.own}, 1')}"
                f" - {self.read(array, f'{scope.own}, 2')}"
            )
        else:
            self.put(f"{total} = 0")
            with self.block(f"for {c} in range({self.extent(colors)}):"):
                self.put(f"{total} += {self.read(array, f'{scope.own}, {c}')} * ({c} + 1)")
        self.settle(scope, total, 100)

    def piece_sparse(self, scope: Scope) -> None:
        """A row of a sparse matrix; two elements of an array delimit it."""
        starts = self.array("l", self.of("int32", "int64"), (f"{scope.count}+1",), ("starts M", 0, 0))
        x = self.ints_in("M")
        k, total = self.new("k"), self.new("v")
        self.use("sparse row", "loaded trip count", "own trip count")
        self.trips(scope, 4)
        self.put(f"{total} = 0")
        with self.block(f"for {k} in range({starts}[{scope.own}], {starts}[{scope.own} + 1]):"):
            self.put(f"{total} += {self.read(x, k)}{self.of('', ' * 2')}")
        self.settle(scope, total, 1200)

    def piece_product(self, scope: Scope) -> None:
        """An element of a product of two matrices."""
        if not scope.column:
            return self.piece_row_sum(scope)
        extent = self.of_extents("M", "M", 16, 20, 31)
        a, b = self.ints_in("H", extent, high=5), self.ints_in(extent, "W", high=5)
        floating = self.maybe(0.7)
        if floating:
            a, b = self.floats_in("H", extent), self.floats_in(extent, "W")
        k, total = self.new("k"), self.new("t" if floating else "v")
        self.use("product", "row traversal")
        self.trips(scope, extent)
        self.put(f"{total} = {self.of('0.0', 'np.float32(0)') if floating else '0'}")
        with self.block(f"for {k} in range({self.extent(extent)}):"):
            if self.maybe(0.15):
                self.use("break")
                with self.block(f"if {total} > 90:"):
                    self.put("break")
            self.put(f"{total} += {self.read(a, f'{scope.row}, {k}')} * {self.read(b, f'{k}, {scope.column}')}")
        self.settle(scope, total, 64 * 64, floating=floating)
        return None

    def piece_math_row(self, scope: Scope) -> None:
        """Functions of many operations along a row of the thread's own, for arguments with exact results."""
        array, extent, before, after = self.row_of(scope, floating=True)
        k, total = self.new("k"), self.new("t")
        self.use("function of math")
        self.trips(scope, extent)
        self.put(f"{total} = {self.of('0.0', 'np.float32(0)')}")
        with self.block(self.head(scope, k, extent)):
            element = self.read(array, f"{before}{k}{after}")
            one = self.of(
                f"math.exp(0.0 * {element})", f"math.cos(0.0 * {element})", f"(1.0 + math.sin(0.0 * {element}))",
                f"math.log2(2.0 + 0.0 * {element})", f"math.cosh(0.0 * {element})",
            )  # fmt: skip
            self.put(f"{total} += {element} * {one}")
        self.settle(scope, total, 64 * 9, floating=True)

    def piece_signed_start(self, scope: Scope) -> None:
        """A loop of the block's threads from an element, which may have either sign as far as the compiler knows."""
        starts = self.array("l", self.of("int32", "int32", "int32", "int64"), ("G+1",), ("starts M", 0, 0))
        floating = self.maybe(0.4)
        x = self.floats_in("M") if floating else self.ints_in("M")
        k, v = self.new("k"), self.new("t" if floating else "v")
        self.use("strided loop of a block")
        self.trips(scope, "M")
        self.put(f"{v} = {'0.0' if floating else '0'}")
        first = f"{starts}[cuda.blockIdx.x]"
        if self.maybe(0.8):
            start = self.new("k")
            self.put(f"{start} = {first}")
            first = start
        step = self.of("32", "32", "16", "1", "cuda.blockDim.x")
        with self.block(f"for {k} in range({first} + cuda.threadIdx.x, {self.extent('M')}, {step}):"):
            self.put(f"{v} += {self.read(x, k)}")
            if self.maybe(0.2):
                self.use("break")
                with self.block(f"if {v} > {self.rng.randint(5, 40)}:"):
                    self.put("break")
        self.use("barrier")
        self.put("cuda.syncthreads()")
        self.settle(scope, v, 600, floating=floating)

    def piece_scattered(self, scope: Scope) -> None:
        """Stores with a stride that is an argument."""
        out = self.array("o", self.of("int32", "float32", "int64"), (f"{scope.count}*K",), ("ints", 0, 9))
        value, _ = self.int_of(scope)
        self.positive.add("K")
        self.use("scattered store")
        width = self.number("K")
        self.put(f"{out}[{scope.own} * {width}{self.of('', f' + {width} - 1')}] = {value} % 100")
