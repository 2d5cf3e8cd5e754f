"""Pieces with divergent exits: loops that threads leave in different iterations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from combined.build import Build

if TYPE_CHECKING:
    from combined.build import Scope


class Exits(Build):
    """Writes such loops. Each stores its result in a variable."""

    def leave(self, scope: Scope, name: str) -> str:
        """An exit from a loop: `break`, or `return` after storing the thread's results."""
        if scope.returns and not scope.function and self.maybe(0.25):
            self.use("return in a loop")
            array = self.out(self.of("int32", "int64"), scope.count)
            return f"{array}[{scope.own}] = {name}; return"
        self.use("break")
        return "break"

    def put_leave(self, scope: Scope, head: str, name: str) -> None:
        with self.block(head):
            for part in self.leave(scope, name).split("; "):
                self.put(part)

    def piece_collatz(self, scope: Scope) -> None:
        """A `while` whose trip count cannot be computed before the loop."""
        start, bound = self.int_of(scope)
        v, count = self.new("v"), self.new("v")
        self.use("while")
        self.trips(scope, 30)
        if self.maybe(0.5) or bound > 40:
            self.put(f"{v} = {start} % {self.of('30', '27', '16')} + 1")
        else:
            self.put(f"{v} = abs({start}) + 1")  # the loop does not end for a value below 1
        self.put(f"{count} = 0")
        with self.block(f"while {v} != 1{self.of('', f' and {count} < 25')}:"):
            self.put(f"{v} = {v} // 2 if {v} % 2 == 0 else 3 * {v} + 1", f"{count} += 1")
        self.settle(scope, count, 130)

    def piece_search(self, scope: Scope) -> None:
        """A loop that exits at the first element that is large enough."""
        extent = self.some_extent()
        x = self.ints_in(extent)
        k, limit = self.new("k"), self.int_of(scope)[0]
        self.trips(scope, extent)
        total, known = self.new("v"), self.new("v")
        self.put(f"{total} = 0")
        test = f"{total} > {limit} % 37" if limit.isidentifier() else f"{total} > {self.rng.randint(5, 60)}"
        form = self.rng.random()
        if form < 0.35:
            with self.block(f"for {k} in range({self.extent(extent)}):"):
                if self.maybe(0.5):
                    self.put_leave(scope, f"if {test}:", total)
                    self.put(f"{total} += {self.read(x, k)}")
                else:
                    self.put(f"{total} += {self.read(x, k)}")
                    self.put_leave(scope, f"if {test}:", total)
        elif form < 0.65:
            self.use("while")
            self.put(f"{k} = 0")
            with self.block(f"while {k} < {self.extent(extent)} and not ({test}):"):
                self.put(f"{total} += {self.read(x, k)}", f"{k} += 1")
            self.settle(scope, k, 64)
        elif form < 0.8:
            self.use("while")
            self.put(f"{k} = 0")
            with self.block("while True:"):
                self.put_leave(scope, f"if {k} >= {self.extent(extent)} or {test}:", k)
                self.put(f"{total} += {self.read(x, k)}", f"{k} += 1")
        else:
            self.use("flag")
            self.put(f"{known} = False")
            with self.block(f"for {k} in range({self.extent(extent)}):"):
                with self.block(f"if not {known}:"):
                    self.put(f"{total} += {self.read(x, k)}")
                    with self.block(f"if {test}:"):
                        self.put(f"{known} = True")
            with self.block(f"if {known}:"):
                self.put(f"{total} += 3")
        self.settle(scope, total, 600)

    def piece_ragged(self, scope: Scope) -> None:
        """Each thread has its own trip count over a shared array."""
        extent = self.some_extent()
        x = self.floats_in(extent)
        k, total = self.new("k"), self.new("t")
        self.trips(scope, extent)
        self.use("own trip count")
        self.put(f"{total} = {self.of('0.0', '0.0', 'np.float32(0)')}")
        with self.block(f"for {k} in range({self.own_trips(scope, extent)}):"):
            if self.maybe(0.3):
                self.use("continue")
                with self.block(f"if ({k} + {scope.own or 1}) % {self.rng.randint(2, 5)} == 0:"):
                    self.put("continue")
            self.put(f"{total} += {x}[{k}]")
        self.settle(scope, total, 520, floating=True)

    def own_trips(self, scope: Scope, extent: str | int) -> str:
        """A trip count of the thread's own, at most an extent."""
        if isinstance(extent, str) and scope.own and self.maybe(0.5):
            lengths = self.array(
                "l", self.of("int32", "int64", "int16", "uint8"), (scope.count,), (f"up to {extent}", 0, 0)
            )
            self.use("loaded trip count")
            return f"{lengths}[{scope.own}]"
        if scope.own and self.maybe(0.5):
            self.use("triangular")
            return f"min({scope.own}{self.of('', ' + 1', ' + 2')}, {self.extent(extent)})"
        text, _ = self.int_of(scope)
        return f"min({text}, {self.extent(extent)})"

    def piece_escape(self, scope: Scope) -> None:
        """An iteration of integers until they are large, as Mandelbrot's."""
        a, b, k = self.new("v"), self.new("v"), self.new("k")
        most = self.rng.choice((8, 20, 33))
        start, _ = self.int_of(scope)
        other, _ = self.int_of(scope)
        self.use("while" if most == 20 else "break")
        self.trips(scope, most)
        self.put(f"{a} = {start} % 7", f"{b} = {other} % 5", f"{k} = 0")
        step = f"{a}, {b} = ({a} * 3 - {b}) % 61, ({a} + {b} * 2 + {scope.own or 1}) % 53"
        test = f"{a} + {b} > {self.rng.randint(60, 110)}"
        if most == 20:
            with self.block(f"while {k} < {most} and not ({test}):"):
                self.put(step, f"{k} += 1")
        else:
            with self.block(f"for {k} in range({most}):"):
                self.put(step)
                self.put_leave(scope, f"if {test}:", a)
        self.settle(scope, a, 61)

    def piece_bisect(self, scope: Scope) -> None:
        """A binary search in a sorted array: adjacent threads load distant elements."""
        x = self.array("x", self.of("int32", "int64", "float32"), ("M",), ("sorted", 0, 90))
        low, high, middle = self.new("v"), self.new("v"), self.new("k")
        wanted, _ = self.int_of(scope)
        self.use("while", "bisection")
        self.trips(scope, 7)
        self.put(f"{low} = 0", f"{high} = {self.extent('M')}")
        with self.block(f"while {low} < {high}:"):
            self.put(f"{middle} = ({low} + {high}) // 2")
            with self.block(f"if {x}[{middle}] < {wanted}:"):
                self.put(f"{low} = {middle} + 1")
            with self.block("else:"):
                self.put(f"{high} = {middle}")
        self.settle(scope, low, 64)

    def piece_chase(self, scope: Scope) -> None:
        """A linked list: each element has the index of the next one."""
        following = self.array("x", self.of("int32", "int64"), ("M",), ("next", 0, 0))
        at, count = self.new("v"), self.new("v")
        self.positive.add("M")
        self.use("while", "gather")
        self.trips(scope, "M")
        self.put(f"{at} = {self.index(scope, 'M')}", f"{count} = 0")
        with self.block(f"while {at} >= 0:"):
            self.put(f"{at} = {following}[{at}]", f"{count} += 1")
        self.settle(scope, count, 64)

    def piece_skip(self, scope: Scope) -> None:
        """`continue` in a loop over a shared array, or over a row."""
        extent = self.some_extent()
        k, total = self.new("k"), self.new("v")
        x = self.ints_in(extent)
        self.use("continue")
        self.trips(scope, extent)
        self.put(f"{total} = 0")
        with self.block(f"for {k} in range({self.extent(extent)}):"):
            with self.block(
                self.of(
                    f"if {self.read(x, k)} % 3 == 0:",
                    f"if ({k} + {scope.own or 2}) % 3 == 1:",
                    f"if {k} == {scope.own or 3}:",
                )
            ):
                self.put("continue")
            self.put(f"{total} += {self.read(x, k)}")
            if self.maybe(0.25):
                self.put_leave(scope, f"if {total} > {self.rng.randint(30, 90)}:", total)
        self.settle(scope, total, 600)
