"""Pieces that read neighbors, with clamped, tested or wrapped boundaries; and pieces for a subset of the threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from combined.row_loops import Walks

if TYPE_CHECKING:
    from combined.build import Scope


class Borders(Walks):
    """Writes loads of neighbors, which no thread writes."""

    def piece_neighbors(self, scope: Scope) -> None:
        """Neighbors along one axis."""
        i, n = scope.own, self.extent(scope.count)
        x = self.ints_in(scope.count)
        total = self.new("v")
        by = self.rng.choice((1, 1, 2, 5))
        kind = self.rng.random()
        self.trips(scope, 3)
        if kind < 0.25:
            self.use("clamp")
            self.put(
                f"{total} = {self.read(x, f'max({i} - {by}, 0)')} + {self.read(x, f'min({i} + {by}, {n} - 1)')} * 3"
            )
        elif kind < 0.4:
            self.use("clamp")
            d = self.new("k")
            self.put(f"{total} = 0")
            with self.block(f"for {d} in range({self.of('-1, 2', '-2, 3', '-3, 4')}):"):
                self.put(f"{total} += {self.read(x, f'min(max({i} + {d}, 0), {n} - 1)')} * ({d} + 4)")
        elif kind < 0.6:
            self.use("tested border")
            self.put(f"{total} = {self.read(x, i)}")
            with self.block(f"if {i} >= {by}:" if by > 1 else f"if {i} > 0:"):
                self.put(f"{total} += {self.read(x, f'{i} - {by}')}")
            with self.block(f"if {i} + {by} < {n}:" if by > 1 else f"if {i} < {n} - 1:"):
                self.put(f"{total} += {self.read(x, f'{i} + {by}')} * 2")
        elif kind < 0.72:
            self.use("interior")
            self.put(f"{total} = 1")
            with self.block(f"if {by} <= {i} < {n} - {by}:"):
                self.put(f"{total} = {self.read(x, f'{i} - {by}')} + {self.read(x, f'{i} + {by}')}")
        elif kind < 0.86:
            self.use("modulo border")
            self.positive.add(scope.count)
            self.put(f"{total} = {self.read(x, f'({i} + {by}) % {n}')} * 2 + {self.read(x, f'({i} - {by}) % {n}')}")
        else:
            self.use("negative index")
            self.put(f"{total} = {self.read(x, i)}")
            with self.block(f"if {i} < {n}:"):
                self.put(f"{total} += {self.read(x, f'{i} - {n}')}")
        self.settle(scope, total, 150)

    def piece_window(self, scope: Scope) -> None:
        """A window whose radius is an argument or a constant, each neighbor tested."""
        i, n = scope.own, self.extent(scope.count)
        x = self.floats_in(scope.count)
        d, total = self.new("k"), self.new("t")
        radius: str
        if self.maybe(0.5):
            radius = "r"
            self.params.setdefault("r", self.number_param("r", 0, 4))
        else:
            radius = self.of("1", "2", "3")
        self.use("window", "tested border")
        self.trips(scope, 9)
        self.put(f"{total} = {self.of('0.0', 'np.float32(0)')}")
        with self.block(f"for {d} in range(-{radius}, {radius} + 1):"):
            at = self.new("k")
            self.put(f"{at} = {i} + {d}")
            form = self.rng.random()
            if form < 0.4:
                with self.block(f"if 0 <= {at} < {n}:"):
                    self.put(f"{total} += {x}[{at}]")
            elif form < 0.7:
                with self.block(f"if {at} < 0 or {at} >= {n}:"):
                    self.put("continue")
                self.put(f"{total} += {x}[{at}]")
                self.use("continue")
            else:
                with self.block(f"if {at} >= 0 and {at} < {n} and {d} != 0:"):
                    self.put(f"{total} += {x}[{at}]")
        self.settle(scope, total, 80, floating=True)

    def number_param(self, name: str, low: int, high: int) -> object:
        from combined.build import Param

        return Param(name, "int64", (), ("ints", low, high))

    def piece_image(self, scope: Scope) -> None:
        """Neighbors in two dimensions."""
        if not scope.column:
            return self.piece_neighbors(scope)
        y, x, h, w = scope.row, scope.column, self.extent("H"), self.extent("W")
        image = self.ints_in("H", "W")
        total, dy, dx = self.new("v"), self.new("k"), self.new("k")
        self.use("image")
        self.trips(scope, 9)
        self.put(f"{total} = 0")
        kind = self.rng.random()
        if kind < 0.4:
            self.use("clamp")
            around = "-1, 2"
            if self.maybe(0.5):
                self.use("window")
                self.params.setdefault("r", self.number_param("r", 0, 4))
                self.trips(scope, 30)
                around = "-r, r + 1"
            with self.block(f"for {dy} in range({around}):"), self.block(f"for {dx} in range({around}):"):
                at = f"min(max({y} + {dy}, 0), {h} - 1), min(max({x} + {dx}, 0), {w} - 1)"
                self.put(f"{total} += {self.read(image, at)}")
        elif kind < 0.7:
            self.use("tested border")
            yy, xx = self.new("k"), self.new("k")
            with self.block(f"for {dy} in range(-1, 2):"), self.block(f"for {dx} in range(-1, 2):"):
                self.put(f"{yy} = {y} + {dy}", f"{xx} = {x} + {dx}")
                with self.block(f"if 0 <= {yy} < {h} and 0 <= {xx} < {w}:"):
                    self.put(f"{total} += {self.read(image, f'{yy}, {xx}')} * ({dx} + 2)")
        elif kind < 0.85:
            self.use("interior")
            with self.block(f"if {y} > 0 and {y} < {h} - 1 and {x} > 0 and {x} < {w} - 1:"):
                self.put(
                    f"{total} = {self.read(image, f'{y} - 1, {x}')} + {self.read(image, f'{y} + 1, {x}')}"
                    f" + {self.read(image, f'{y}, {x} - 1')} * 2"
                )
        else:
            self.use("modulo border")
            self.positive.update(("H", "W"))
            with self.block(f"for {dx} in range({self.of('3', '2')}):"):
                self.put(f"{total} += {self.read(image, f'({y} + {h} - 1) % {h}, ({x} + {dx}) % {w}')}")
        self.settle(scope, total, 900)
        return None

    def piece_table(self, scope: Scope) -> None:
        """Neighbors at offsets in a constant table."""
        size = self.rng.randint(2, 9)
        table = self.new("TABLE")
        self.tables.append(f"{table} = np.array({[self.rng.randint(-3, 3) for _ in range(size)]})")
        i, n = scope.own, self.extent(scope.count)
        x = self.ints_in(scope.count)
        k, total = self.new("k"), self.new("v")
        self.use("constant table")
        self.trips(scope, size)
        self.put(f"{total} = 0")
        with self.block(f"for {k} in range({size}):"):
            if self.maybe(0.5):
                self.positive.add(scope.count)
                self.put(f"{total} += {self.read(x, f'({i} + {table}[{k}]) % {n}')} * ({k} + 1)")
            else:
                self.use("clamp")
                self.put(f"{total} += {self.read(x, f'min(max({i} + {table}[{k}], 0), {n} - 1)')}")
        self.settle(scope, total, 500)

    # Work of a subset of the threads.

    def piece_every(self, scope: Scope) -> None:
        """Every n-th thread: in steps, or by multiples."""
        i, n = scope.own, self.extent(scope.count)
        out = self.array("o", self.of("int32", "float32", "int64"), (scope.count,), ("ints", 0, 9))
        x = self.ints_in(scope.count)
        kind = self.rng.random()
        value, _ = self.int_of(scope)
        if kind < 0.4:
            self.use("every n-th thread")
            s = self.of("2", "3", "4", "8")
            with self.block(f"if {i} % {s} == {self.of('0', '1')}:"):
                self.put(f"{out}[{i}] = {self.read(x, i)} + {value} % 50")
        elif kind < 0.75:
            self.use("multiples")
            k = self.new("k")
            by, plus = self.rng.choice((2, 3, 4)), self.rng.choice((0, 1))
            self.put(f"{k} = {self.of(f'{by} * {i} + {plus}', f'{i} * {by} + {plus}')}")
            with self.block(f"if {k} < {n}:"):
                self.put(f"{out}[{k}] = {self.read(x, k)} * 2 + {value} % 50")
        else:
            self.use("single thread")
            with self.block(f"if {i} == {self.of('0', f'{n} - 1', '5')}:"):
                self.put(f"{out}[{i}] = {value} % 100 + 1")

    def piece_partner(self, scope: Scope) -> None:
        """The element whose index differs in one bit."""
        i, n = scope.own, self.extent(scope.count)
        x = self.ints_in(scope.count)
        j, total = self.new("k"), self.new("v")
        self.use("partner")
        bit = self.of("1", "2", "4", "8", "16", "32")
        self.put(f"{total} = 0", f"{j} = {i} ^ {bit}")
        with self.block(f"if {j} < {n}{self.of('', f' and {j} > {i}')}:"):
            self.put(f"{total} = {self.read(x, i)} - {self.read(x, j)} * 2")
        self.settle(scope, total, 30)

    def piece_gather(self, scope: Scope) -> None:
        """An element whose index is in an array (gather), also in a loop along a row of that array."""
        columns = self.array(
            "x",
            self.of("int32", "int64", "uint16"),
            (scope.count, "K") if self.maybe(0.5) else (scope.count,),
            ("below M", 0, 0),
        )
        self.positive.add("M")
        x = self.ints_in("M")
        total = self.new("v")
        self.use("gather")
        self.put(f"{total} = 0")
        if len(self.params[columns].extents) == 1:
            self.put(f"{total} += {self.read(x, f'{columns}[{scope.own}]')}")
        else:
            k = self.new("k")
            self.trips(scope, "K")
            with self.block(f"for {k} in range({self.extent('K')}):"):
                self.put(f"{total} += {self.read(x, f'{columns}[{scope.own}, {k}]')}")
        self.settle(scope, total, 600)
