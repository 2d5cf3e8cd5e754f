"""Pieces that compute: selections, local arrays, quotients, small device functions; and atomic operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from combined.stencils import Borders

if TYPE_CHECKING:
    from combined.build import Scope


class Values(Borders):
    """Writes them."""

    def piece_select(self, scope: Scope) -> None:
        """Short branches that only compute."""
        v = self.new("v")
        one, bound = self.int_of(scope)
        two, other = self.int_of(scope)
        self.use("selection")
        self.put(f"{v} = {one}")
        if self.maybe(0.5):
            k, _ = self.int_of(scope)
            with self.block(f"if {k} % 3 == 0:"):
                self.put(f"{v} = {two} + 1")
            with self.block(f"elif {k} % 3 == 1:"):
                self.put(f"{v} = {one} - {two}")
            if self.maybe(0.5):
                with self.block("else:"):
                    self.put(f"{v} = {v} * 2")
        elif self.maybe(0.5):
            self.use("extremum")
            self.put(self.of(f"{v} = {one} if {one} < {two} else {two}", f"{v} = {two} if {one} < {two} else {one}"))
        else:
            self.put(f"{v} = {two} + 2 if {self.condition(scope)} else {v} - 1")
        self.settle(scope, v, 2 * (bound + other + 2))

    def piece_names_again(self, scope: Scope) -> None:
        """A variable that is reused with another meaning before a boundary test."""
        i, n = scope.own, self.extent(scope.count)
        v = self.new("v")
        x = self.ints_in(scope.count)
        self.use("clamp", "name used again")
        self.put(f"{v} = {i} - {self.of('1', '2')}", f"{v} = max({v}, 0)", f"{v} = {self.read(x, v)}")
        if self.maybe(0.5):
            self.put(f"{v} = {v} if {v} < {n} else {n}")
        if self.maybe(0.4):
            w = self.new("v")
            self.use("nested conditions")
            self.put(f"{w} = 3")
            with self.block(f"if {i} + 1 < {n} and {self.read(x, f'{i} + 1')} > {self.read(x, i)}:"):
                self.put(f"{w} = {self.read(x, f'{i} + 1')}")
            scope.ints.append((w, 10))
        self.settle(scope, v, 130)

    def piece_local_array(self, scope: Scope) -> None:
        """An array of the thread's own, with indices that are computed."""
        size = int(self.rng.choice((2, 3, 4, 8)))
        a, k, total = self.new("local"), self.new("k"), self.new("v")
        self.use("local array")
        self.trips(scope, 3 * size)
        self.put(f"{a} = cuda.local.array({size}, np.{self.of('int32', 'int64')})", f"{total} = 0")
        value, _ = self.int_of(scope)
        with self.block(f"for {k} in range({size}):"):
            self.put(f"{a}[{k}] = ({value} + {k} * {self.rng.randint(1, 5)}) % 23")
        if self.maybe(0.5):
            extent = self.some_extent()
            x = self.ints_in(extent)
            self.trips(scope, extent)
            with self.block(f"for {k} in range({self.extent(extent)}):"):
                self.put(f"{a}[{self.read(x, k)} % {size}] += 1")
        if self.maybe(0.4):
            self.put(f"{a}[{value} % {size}] = {a}[{self.rng.randrange(size)}] + 1")
        with self.block(f"for {k} in range({size}):"):
            self.put(f"{total} += {a}[{k}] * ({k} + 1)")
        self.settle(scope, total, 9000)

    def piece_quotient(self, scope: Scope) -> None:
        """A row and a column of a matrix, computed from the thread's index."""
        y, x, total = self.new("k"), self.new("k"), self.new("v")
        self.use("quotient")
        width = self.number("K")
        self.positive.add("K")
        a = self.ints_in(self.rng.choice((130,)), "K") if self.maybe(0.3) else self.ints_in("K")
        self.put(f"{y}, {x} = {scope.own} // {width}, {scope.own} % {width}")
        if len(self.params[a].extents) == 2:
            self.put(f"{total} = {self.read(a, f'{y}, {x}')} + {x}")
        elif self.maybe(0.5):
            self.use("clamp")
            self.put(f"{total} = {self.read(a, x)} + {self.read(a, f'min({x} + 1, {width} - 1)')} + {y}")
        else:
            self.use("modulo border")
            self.put(f"{total} = {self.read(a, x)} * 2 + {self.read(a, f'({x} + 1) % {width}')} + {y} % 3")
        self.settle(scope, total, 400)

    # Device functions.

    def piece_function(self, scope: Scope) -> None:
        """A device function that contains pieces: with an early return, a loop, or arrays as arguments."""
        called = self.new("fn")
        self.use("device function")
        kind = self.rng.random()
        result = self.new("v")
        if kind < 0.3:
            text = [f"def {called}(v, low, high):", "    if v < low:", "        return low"]
            text += ["    if v > high:", "        return high", "    return v"]
            self.functions.append(["@cuda.jit(device=True)", *text])
            x = self.ints_in(scope.count)
            i, n = scope.own, self.extent(scope.count)
            self.use("clamp")
            self.put(
                f"{result} = {self.read(x, f'{called}({i} - 1, 0, {n} - 1)')}"
                f" + {self.read(x, f'{called}({i} + 2, 0, {n} - 1)')} * 2"
            )
            self.settle(scope, result, 30)
            return
        extent = self.some_extent()
        array = self.ints_in(scope.count, extent) if kind < 0.65 else self.ints_in(extent)
        row = "i, k" if kind < 0.65 else "k"
        self.use("row traversal" if kind < 0.65 else "break")
        self.trips(scope, extent)
        element = f"np.int64(a[{row}])" if self.params[array].dtype[0] == "u" else f"a[{row}]"
        text = [f"def {called}(a, i, size, limit):", "    total = 0", "    for k in range(size):"]
        if self.maybe(0.5):
            text += ["        if total > limit:", f"            {self.of('return total', 'break')}"]
        if self.maybe(0.3):
            text += ["        if k == i:", "            continue"]
        text += [f"        total += {element}", f"    return total{self.of('', ' + i', ' * 2')}"]
        self.functions.append(["@cuda.jit(device=True)", *text])
        limit, _ = self.int_of(scope)
        self.put(f"{result} = {called}({array}, {scope.own}, {self.extent(extent)}, {limit})")
        self.settle(scope, result, 1500)

    # Atomic operations.

    def piece_histogram(self, scope: Scope) -> None:
        """Targets that many threads add to; old values are not used."""
        bins = int(self.rng.choice((1, 2, 7, 16, 64)))
        kind, dtype = self.pick(
            ("add", "int32"),
            ("add", "int64"),
            ("add", "float32"),
            ("add", "float64"),
            ("sub", "int32"),
            ("max", "int32"),
            ("min", "int64"),
            ("or_", "int32"),
            ("and_", "int32"),
            ("xor", "int64"),
            ("max", "uint32"),
            ("add", "uint32"),
        )  # type: ignore[misc]
        out = self.array("o", dtype, (bins,), ("ints", 0, 63))
        self.use("atomic", "privatized" if kind in ("add", "sub", "max", "min", "or_", "and_") else "atomic xor")
        value, _ = self.int_of(scope)
        where = (
            "0"
            if bins == 1
            else self.of(f"{value} % {bins}", f"{self.read(self.ints_in(scope.count), scope.own)} % {bins}")
        )
        amount, most = self.int_of(scope)
        if most > 300:
            amount = f"{amount} % 100"
        if kind == "add" and dtype[0] == "f" and scope.floats and self.maybe(0.5):
            amount, most = self.float_of(scope)
        elif kind == "add" and self.maybe(0.5):
            amount = "1"
        elif dtype == "uint32":
            amount = f"np.uint32({amount} & 127)"
        if kind == "add" and dtype == "uint32":
            amount = "1"
        text = f"cuda.atomic.{kind}({out}, {where}, {amount})"
        form = self.rng.random()
        if form < 0.35:
            self.use("conditional atomic")
            with self.block(f"if {self.condition(scope)}:"):
                self.put(text)
        elif form < 0.5:
            k = self.new("k")
            extent = self.some_extent()
            x = self.ints_in(extent)
            self.use("atomic in a loop")
            self.trips(scope, extent)
            with self.block(f"for {k} in range({self.extent(extent)}):"):
                self.put(f"cuda.atomic.{kind}({out}, {self.read(x, k)} % {bins}, {amount})")
        else:
            self.put(text)

    def piece_old_value(self, scope: Scope) -> None:
        """An atomic operation on an element of the thread's own, whose old value is used."""
        kind = self.of("add", "sub", "max", "min", "exch", "cas", "and_", "or_", "xor", "add")
        dtype = (
            self.of("int32", "int64")
            if kind in ("and_", "or_", "xor", "cas")
            else self.of("int32", "int64", "float32", "float64")
        )
        if kind == "exch":
            dtype = self.of("int32", "int64", "float32")
        out = self.array("o", dtype, (scope.count,), ("ints", 0, 9))
        v = self.new("v")
        value, bound = self.int_of(scope)
        if bound > 300:
            value = f"{value} % 100"
        self.use("atomic", "atomic with its old value")
        given = f"{self.rng.randint(0, 9)}, {value}" if kind == "cas" else value
        call = f"cuda.atomic.{kind}({out}, {scope.own}, {given})"
        self.put(f"{v} = int({call})" if dtype[0] == "f" else f"{v} = {call}")
        self.settle(scope, v, 700 * max(scope.work, 1))

    def piece_reserve(self, scope: Scope) -> None:
        """A slot that a thread allocates from a counter. The order is unspecified, so all slots get the same value."""
        counter = self.array("o", "int32", (1,), ("ints", 0, 0))
        v = self.new("v")
        self.use("atomic", "atomic with its old value", "ticket")
        with self.block(f"if {self.condition(scope)}:"):
            self.put(f"{v} = cuda.atomic.add({counter}, 0, 1)")
            with self.block(f"if {v} < 0:"):
                out = self.array("o", "int32", (scope.count,), ("ints", 7, 7))
                self.put(f"{out}[{scope.own}] = {v}")
