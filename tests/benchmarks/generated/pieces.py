"""Pieces of work that each thread does by itself.

A piece is some statements in a form that programs have: a stencil, a sum along a row, a search, a histogram. It reads
inputs and the results of earlier pieces, and adds a variable to its scope.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from generated.build import INDICES, INTEGERS, Build, Full

if TYPE_CHECKING:
    from generated.build import Scope

PIECES = {
    "arithmetic": 9, "integers": 7, "strided": 6, "transposed": 8, "neighbors": 11, "window": 6, "gather": 8,
    "short_loop": 9, "row": 18, "halving": 6, "search": 9, "bisect": 4, "ragged": 7, "sparse_row": 8, "collatz": 4,
    "halved_value": 5, "local_array": 6, "sorted_locals": 3, "functions": 8, "device_function": 6, "pair_function": 6,
    "histogram": 8, "select": 8, "newton": 3, "polynomial": 5, "several_stores": 6, "skip": 5, "nested_loops": 5,
}  # fmt: skip
WITHIN = {name: weight for name, weight in PIECES.items() if name != "several_stores"}
"""The pieces for branches and loops."""
DIVERGENT = ("search", "bisect", "ragged", "sparse_row", "collatz", "halved_value", "sorted_locals")
"""Pieces with loops that threads leave one by one. Such kernels are never coarsened, so only some have these pieces."""
FIRST = {"row": 6, "sparse_row": 3, "several_stores": 2, "gather": 2, "search": 2, "neighbors": 2}
"""Pieces with several inputs, for the start of a kernel."""


class Pieces(Build):
    """The pieces, each a method that writes it."""

    def pieces(self, scope: Scope, count: int) -> None:
        """Some pieces one after the other, some of them in a branch or in a loop of their own."""
        for _ in range(count):
            kind = self.rng.random()
            if scope.depth >= 2 or kind < 0.68:
                self.piece(scope, PIECES if scope.depth == 0 else WITHIN)
            elif kind < 0.84:
                self.within(scope, f"if {self.condition(scope)}:", "divergent branch")
            elif kind < 0.9:
                self.within(scope, f"if {self.number('M')} > {self.rng.randint(1, 30)}:", "uniform branch")
            else:
                times = self.rng.randint(2, 4)
                self.within(scope, f"for {self.new('r')} in range({times}):", "repeated piece", times)

    def piece(self, scope: Scope, table: dict[str, int]) -> None:
        """A piece at random; another one if the inputs do not suffice."""
        if not self.diverges:
            table = {name: weight for name, weight in table.items() if name not in DIVERGENT}
        for _ in range(20):
            name = self.rng.choices(tuple(table), list(table.values()))[0]
            lines, functions, indent, cost = len(self.lines), len(self.functions), self.indent, self.cost
            params, features, numbers = dict(self.params), set(self.features), set(self.numbers)
            floats, ints = [*scope.floats], [*scope.ints]
            try:
                getattr(self, f"piece_{name}")(scope)
            except Full:
                del self.lines[lines:], self.functions[functions:]
                self.indent, self.cost = indent, cost
                self.params, self.features, self.numbers = params, features, numbers
                scope.floats, scope.ints = floats, ints
            else:
                self.use(f"piece {name}")
                return

    def within(self, scope: Scope, head: str, feature: str, times: int = 1) -> None:
        """A piece in a block, whose result is added to a variable from before."""
        self.use(feature)
        total, count = self.new("s"), self.new("c")
        before, indent, zero = len(self.lines), "    " * self.indent, self.zero()
        inner = scope.inner(times)
        n_floats, n_ints = len(inner.floats), len(inner.ints)
        with self.block(head):
            self.pieces(inner, 1)
            floats, ints = inner.floats[n_floats:], inner.ints[n_ints:]
            if floats:
                self.put(f"{total} += {floats[-1]}")
            if ints:
                self.put(f"{count} += {ints[-1][0]}")
            if not floats and not ints:
                self.put(f"{count} += 1")
        if floats:
            self.lines.insert(before, f"{indent}{total} = {zero}")
            self.made(scope, total)
        if ints or not floats:
            self.lines.insert(before, f"{indent}{count} = 0")
            self.made(scope, count, times * (ints[-1][1] if ints else 1))

    # Straight code.

    def piece_arithmetic(self, scope: Scope) -> None:
        v, a, b = self.new("v"), self.float_of(scope), self.float_of(scope)
        form = self.of("{a} * {c} + {b}", "({a} + {b}) * {c}", "{a} - {b} * {c}", "{a} * {b} * {c}",
                       "{a} / (abs({b}) + {d})", "max({a}, {b}) - {c}",
                       "min({a}, {c}) + {b}", "-{a} + {c} / (abs({b}) + {d})")  # fmt: skip
        self.put(f"{v} = {form.format(a=a, b=b, c=self.literal(self.of(0.25, 0.5, 0.1, 0.3)), d=self.literal(1.0))}")
        if "{a} * {b}" in form:
            self.put(f"{v} = {v} / ({self.literal(1.0)} + abs({v}))")
        self.made(scope, v)

    def piece_integers(self, scope: Scope) -> None:
        v, (a, most_a), (b, most_b) = self.new("v"), self.int_of(scope), self.int_of(scope)
        form, bound = self.of(
            ("({a}) * 3 + ({b})", 3 * most_a + most_b), ("({a}) ^ ({b})", 2048), ("(({a}) << 2) | (({b}) & 3)", 8192),
            ("({a}) // 3 - ({b}) % 7", most_a + 7), ("({a}) * ({b})", most_a * most_b), ("({a}) & 15", 15),
            ("(({a}) >> 1) + ({b})", most_a + most_b), ("min({a}, {b})", max(most_a, most_b)),
        )  # fmt: skip
        self.put(f"{v} = {form.format(a=a, b=b)}")
        self.made(scope, v, bound)

    def piece_functions(self, scope: Scope) -> None:
        self.use("math functions")
        v, a = self.new("v"), self.float_of(scope)
        form = self.of("math.sqrt(abs({a}) + {c})", "math.exp(-abs({a}))", "math.sin({a})", "math.cos({a} * {c})",
                       "math.log(abs({a}) + {d})", "math.tanh({a})", "math.atan2({a}, {d})", "math.floor({e} * {d})",
                       "{c} / math.sqrt(abs({a}) + {d})", "math.pow(abs({a}) + {d}, {c})", "math.fabs({a}) + {c}",
                       "math.exp(-abs({a})) * math.sin({e})")  # fmt: skip
        exact = self.exact(scope) if "{e}" in form else ""
        self.put(f"{v} = {form.format(a=a, c=self.literal(0.5), d=self.literal(1.5), e=exact)}")
        self.pays(scope, 8)
        self.made(scope, v)

    def piece_select(self, scope: Scope) -> None:
        v, condition = self.new("v"), self.condition(scope)
        a, b = self.float_of(scope), self.float_of(scope)
        if self.maybe(0.5):
            self.use("conditional expression")
            self.put(f"{v} = {a} if {condition} else {b}")
        else:
            self.use("if and else")
            self.put(
                f"if {condition}:",
                f"    {v} = {a} * {self.literal(0.5)}",
                "else:",
                f"    {v} = {b} + {self.literal(1.0)}",
            )
        self.made(scope, v)

    # Accesses.

    def piece_strided(self, scope: Scope) -> None:
        self.use("strided access")
        step, v = self.of(2, 3, 4), self.new("v")
        *outer, last = scope.shape
        name = self.array("x", (*self.float_types(), "uint8"), (*outer, f"{step} * {last}"), "float")
        *before, own = scope.index.split(", ")
        parts = [", ".join([*before, f"{step} * {own}" + (f" + {k}" if k else "")]) for k in range(step)]
        chosen = parts if self.maybe(0.4) else parts[:1]
        self.put(f"{v} = " + " + ".join(self.read(name, part) for part in chosen))
        if self.params[name].dtype == "uint8":
            self.put(f"{v} = {v} * {self.literal(0.01)}")
        self.pays(scope, 4 * step)
        self.made(scope, v)

    def piece_transposed(self, scope: Scope) -> None:
        v = self.new("v")
        if len(scope.shape) == 1:
            self.use("reversed access")
            name = self.array("x", self.float_types(), scope.shape, "float")
            index = f"{self.number(scope.shape[0])} - 1 - {scope.index}"
        else:
            self.use("transposed access")
            name = self.array("x", self.float_types(), scope.shape[::-1], "float")
            index = ", ".join(scope.index.split(", ")[::-1])
        self.put(f"{v} = {self.read(name, index)} * {self.literal(0.5)}")
        self.pays(scope, 12)
        self.made(scope, v)

    def piece_neighbors(self, scope: Scope) -> None:
        """The element and its neighbors; at the borders clamped, wrapped, or left out."""
        self.use("stencil")
        axes, v = scope.index.split(", "), self.new("v")
        name = self.array("x", self.float_types(), scope.shape, "float")
        own = self.read(name, scope.index)
        form = self.of("clamped", "wrapped", "inside", "inside")
        self.use(f"stencil: {form}")
        limits = [self.number(extent) for extent in scope.shape]

        def at(axis: int, index: str) -> str:
            return self.read(name, ", ".join([*axes[:axis], index, *axes[axis + 1 :]]))

        around = []
        for axis, (var, limit) in enumerate(zip(axes, limits, strict=True)):
            below, above = {
                "clamped": (f"max({var} - 1, 0)", f"min({var} + 1, {limit} - 1)"),
                "wrapped": (f"({var} - 1) % {limit}", f"({var} + 1) % {limit}"),
                "inside": (f"{var} - 1", f"{var} + 1"),
            }[form]
            around += [at(axis, below), at(axis, above)]
        total = f"{own} * {self.literal(0.5)} + ({' + '.join(around)}) * {self.literal(0.125)}"
        self.pays(scope, 8 + 2 * len(around))
        if form != "inside":
            self.put(f"{v} = {total}")
        else:
            tests = [f"{var} > 0 and {var} < {limit} - 1" for var, limit in zip(axes, limits, strict=True)]
            with self.block(f"if {' and '.join(tests)}:"):
                self.put(f"{v} = {total}")
            self.put("else:", f"    {v} = {own}")
        self.made(scope, v)

    def piece_window(self, scope: Scope) -> None:
        """A window over a padded array, with the weights in a table or all equal."""
        self.use("window")
        radius, v = self.of(1, 2, 3), self.new("v")
        *outer, last = scope.shape
        *before, own = scope.index.split(", ")
        name = self.array("x", self.float_types(), (*outer, f"{last} + {2 * radius}"), "float")
        k, size = self.new("k"), 2 * radius + 1
        weight = self.literal(0.2)
        if self.maybe(0.5):
            weight = self.read(self.array("t", self.float_types(), (f"{size}",), "float"), k)
        self.put(f"{v} = {self.zero()}")
        with self.block(f"for {k} in range({size}):"):
            self.put(f"{v} += {self.read(name, ', '.join([*before, f'{own} + {k}']))} * {weight}")
        self.use("loop of constant trip count")
        self.pays(scope, 4, size)
        self.made(scope, v)

    def piece_gather(self, scope: Scope) -> None:
        self.use("gather")
        v, floating = self.new("v"), self.maybe(0.7)
        extent = self.of("T", "T", "N") if scope.shape == ("N",) else "T"
        at = self.array("at", INDICES, scope.shape, extent)
        types = self.float_types() if floating else INTEGERS
        name = self.array("t", types, (extent,), "float" if floating else "int")
        value = self.read(name, f"{at}[{scope.index}]")
        self.put(f"{v} = {value}{f' * {self.literal(0.5)}' if floating else ' + 1'}")
        self.pays(scope, 12 if extent == "T" else 36)
        self.made(scope, v, None if floating else 101)

    # Loops.

    def piece_short_loop(self, scope: Scope) -> None:
        self.use("loop of constant trip count")
        v, k, times = self.new("v"), self.new("k"), self.of(3, 4, 8, 10, 16)
        self.put(f"{v} = {self.zero()}")
        if self.maybe(0.5):
            name = self.array("t", self.float_types(), ("T",), "float")
            with self.block(f"for {k} in range({times}):"):
                step = self.of(1, 1, 7, 32)
                self.put(f"{v} += {self.cyclic(name, f'{scope.flat} + {k} * {step}')}")
        else:
            a = self.float_of(scope)
            with self.block(f"for {k} in range({times}):"):
                self.put(f"{v} = {v} * {self.literal(0.5)} + {a} * {k}")
            self.put(f"{v} *= {self.literal(0.1)}")
        self.pays(scope, 3, times)
        self.made(scope, v)

    def piece_row(self, scope: Scope) -> None:
        """A sum over a row or a column of a matrix, or over a table that all threads read."""
        self.use("loop of runtime trip count")
        v, k, m = self.new("v"), self.new("k"), self.number("M")
        kinds = ["table", "table"] + (["row", "column", "column"] if scope.shape == ("N",) else ["product"] * 3)
        if len(scope.shape) == 3:
            kinds = ["table"]
        kind = self.of(*kinds)
        self.use(f"sum of a {kind}")
        if kind == "table":
            term = self.read(self.array("t", self.float_types(), ("M",), "float"), k)
            term = f"{term} * {self.float_of(scope)}" if self.maybe(0.5) else f"abs({self.float_of(scope)} - {term})"
        elif kind == "product":
            y, x = scope.index.split(", ")
            h, w = scope.shape
            left = self.array("x", self.float_types(), (h, "M"), "float")
            right = self.array("x", self.float_types(), ("M", w), "float")
            term = f"{self.read(left, f'{y}, {k}')} * {self.read(right, f'{k}, {x}')}"
        else:
            dtypes = ("float32", "float32", "int16", "uint8")
            shape, index = (("N", "M"), f"{scope.index}, {k}") if kind == "row" else (("M", "N"), f"{k}, {scope.index}")
            term = self.read(self.array("x", dtypes, shape, "float"), index)
        self.put(f"{v} = {self.zero()}")
        first, step = self.of(("0", ""), ("0", ""), ("0", ""), ("0", ", 2"), ("1", ""))
        head = f"range({first}, {m}{step})" if step or first != "0" else f"range({m})"
        with self.block(f"for {k} in {head}:"):
            if self.maybe(0.25):
                self.use("branch in a loop")
                with self.block(f"if {k} % {self.of(2, 3)} == 0:"):
                    self.put(f"{v} += {term}")
            else:
                self.put(f"{v} += {term}")
        self.put(f"{v} *= {self.literal(0.05)}")
        self.pays(scope, 8 if kind == "row" else 4, 16)
        self.made(scope, v)

    def piece_halving(self, scope: Scope) -> None:
        """A loop whose counter is halved, doubled or shifted."""
        self.use("geometric loop")
        v, d, m = self.new("v"), self.new("d"), self.number("M")
        name = self.array("t", self.float_types(), ("T",), "float")
        first, test, update = self.of(
            (m, f"{d} > 0", f"{d} //= 2"), ("1", f"{d} < {m}", f"{d} *= 2"), (m, f"{d}", f"{d} >>= 1"),
            ("128", f"{d} >= 1", f"{d} //= 2"),
        )  # fmt: skip
        self.put(f"{v} = {self.zero()}", f"{d} = {first}")
        with self.block(f"while {test}:"):
            self.put(f"{v} += {self.cyclic(name, f'{scope.flat} + {d}')}", update)
        self.pays(scope, 4, 6)
        self.made(scope, v)

    def piece_search(self, scope: Scope) -> None:
        """The first element of a table, or of the thread's row, that is above a limit."""
        self.use("divergent exit")
        v, k = self.new("v"), self.new("k")
        m = self.number("M")
        if scope.shape == ("N",) and self.maybe(0.4):
            element = self.read(self.array("x", ("float32",), ("M", "N"), "float"), f"{k}, {scope.index}")
        else:
            element = self.read(self.array("t", self.float_types(), ("M",), "float"), k)
        limit = self.exact(scope) if self.maybe(0.6) else self.literal(1.0)
        form = self.of("break", "while", "flag")
        if form == "break":
            self.put(f"{v} = -1")
            with self.block(f"for {k} in range({m}):"), self.block(f"if {element} > {limit}:"):
                self.put(f"{v} = {k}", "break")
        elif form == "while":
            self.put(f"{k} = 0")
            with self.block(f"while {k} < {m} and {element} <= {limit}:"):
                self.put(f"{k} += 1")
            self.put(f"{v} = {k}")
        else:
            self.put(f"{v} = 0", f"{k} = 0", f"searching{v} = True")
            with self.block(f"while searching{v} and {k} < {m}:"):
                self.put(f"{v} += {k}", f"searching{v} = {element} <= {limit}", f"{k} += 1")
        self.pays(scope, 6, 8)
        self.made(scope, v, 2000)

    def piece_bisect(self, scope: Scope) -> None:
        self.use("binary search")
        low, high, middle = self.new("low"), self.new("high"), self.new("mid")
        name = self.array("ordered", ("float32",), ("T",), "sorted")
        value = self.exact(scope)
        self.put(f"{low} = 0", f"{high} = {self.number('T')}")
        with self.block(f"while {low} < {high}:"):
            self.put(f"{middle} = ({low} + {high}) // 2")
            self.put(f"if {name}[{middle}] < {value}:", f"    {low} = {middle} + 1", "else:", f"    {high} = {middle}")
        self.pays(scope, 8, 8)
        self.made(scope, low, 5000)

    def piece_ragged(self, scope: Scope) -> None:
        """A loop whose trip count is in an array."""
        self.use("data-dependent trip count")
        v, k = self.new("v"), self.new("k")
        trips = self.array("trips", ("int32", "uint8", "int64"), scope.shape, "trips")
        self.put(f"{v} = {self.zero()}")
        with self.block(f"for {k} in range({trips}[{scope.index}]):"):
            if self.maybe(0.5):
                name = self.array("t", self.float_types(), ("T",), "float")
                self.put(f"{v} += {self.cyclic(name, f'{scope.flat} + {k}')}")
            else:
                self.put(f"{v} = {v} * {self.literal(0.5)} + {self.float_of(scope)}")
        self.pays(scope, 5, 8)
        self.made(scope, v)

    def piece_sparse_row(self, scope: Scope) -> None:
        """A row of a sparse matrix."""
        if scope.shape != ("N",) or scope.trips > 1:
            raise Full
        self.use("data-dependent trip count", "sparse row", "gather")
        v, k = self.new("v"), self.new("k")
        starts = self.array("starts", ("int32",), ("N + 1",), "starts")
        columns = self.array("at", ("int32",), ("4 * N",), "T")
        name = self.array("t", self.float_types(), ("T",), "float")
        self.put(f"{v} = {self.zero()}")
        with self.block(f"for {k} in range({starts}[{scope.index}], {starts}[{scope.index} + 1]):"):
            self.put(f"{v} += {self.read(name, f'{columns}[{k}]')}")
        self.pays(scope, 12, 4)
        self.made(scope, v)

    def piece_collatz(self, scope: Scope) -> None:
        self.use("data-dependent trip count", "collatz")
        c, steps, (value, _) = self.new("c"), self.new("v"), self.int_of(scope)
        self.put(f"{c} = abs({value}) + 1", f"{steps} = 0")
        with self.block(f"while {c} != 1 and {steps} < 40:"):
            self.put(f"if {c} % 2 == 0:", f"    {c} //= 2", "else:", f"    {c} = 3 * {c} + 1", f"{steps} += 1")
        self.pays(scope, 6, 20)
        self.made(scope, steps, 40)

    def piece_halved_value(self, scope: Scope) -> None:
        """A loop that ends at a float; the values are exact."""
        self.use("divergent exit", "float condition")
        v, value = self.new("v"), self.new("a")
        self.put(f"{value} = abs({self.exact(scope)})", f"{v} = 0")
        with self.block(f"while {value} > {self.literal(0.03125)} and {v} < 12:"):
            self.put(f"{value} *= {self.literal(0.5)}", f"{v} += 1")
        self.pays(scope, 4, 5)
        self.made(scope, v, 12)

    def piece_newton(self, scope: Scope) -> None:
        self.use("loop of constant trip count")
        v, a, k = self.new("v"), self.new("a"), self.new("k")
        self.put(f"{a} = abs({self.float_of(scope)}) + {self.literal(1.0)}", f"{v} = {a}")
        with self.block(f"for {k} in range({self.of(3, 5, 8)}):"):
            self.put(f"{v} = {self.literal(0.5)} * ({v} + {a} / {v})")
        self.pays(scope, 12, 5)
        self.made(scope, v)

    def piece_polynomial(self, scope: Scope) -> None:
        """Horner's rule, with the coefficients in the code or in a table."""
        v, a = self.new("v"), self.new("a")
        self.put(f"{a} = {self.float_of(scope)}", f"{a} = {a} / ({self.literal(1.0)} + abs({a}))")
        if self.maybe(0.5):
            self.put(f"{v} = {self.literal(0.2)}")
            self.put(*(f"{v} = {v} * {a} + {self.literal(self.of(0.1, -0.5, 0.75))}" for _ in range(self.of(3, 6, 10))))
        else:
            size, k = self.of(4, 8), self.new("k")
            name = self.array("t", self.float_types(), (f"{size}",), "float")
            self.put(
                f"{v} = {self.zero()}", f"for {k} in range({size} - 1, -1, -1):", f"    {v} = {v} * {a} + {name}[{k}]"
            )
            self.use("loop that counts down")
        self.pays(scope, 10)
        self.made(scope, v)

    def piece_skip(self, scope: Scope) -> None:
        self.use("continue")
        v, k = self.new("v"), self.new("k")
        name = self.array("t", INTEGERS, ("M",), "int")
        value, _ = self.int_of(scope)
        self.put(f"{v} = 0")
        with self.block(f"for {k} in range({self.number('M')}):"):
            self.put(f"if ({k} + {value}) % {self.of(2, 3, 4)} == 0:", "    continue", f"{v} += {self.read(name, k)}")
        self.pays(scope, 6, 16)
        self.made(scope, v, 10000)

    def piece_nested_loops(self, scope: Scope) -> None:
        self.use("nested loops", "loop of runtime trip count")
        v, j, k = self.new("v"), self.new("j"), self.new("k")
        name = self.array("t", self.float_types(), ("T",), "float")
        self.put(f"{v} = {self.zero()}")
        inner = self.of("range(3)", f"range({j} + 1)", f"range({j}, 4)")
        few = f"min({self.number('M')}, 5)"
        with self.block(f"for {j} in range({self.of('4', '3', few)}):"), self.block(f"for {k} in {inner}:"):
            self.put(f"{v} += {self.cyclic(name, f'{scope.flat} + 4 * {j} + {k}')}")
        self.pays(scope, 4, 10)
        self.made(scope, v)

    # Memory of a thread.

    def piece_local_array(self, scope: Scope) -> None:
        self.use("local array")
        v, held, k, size = self.new("v"), self.new("held"), self.new("k"), self.of(3, 4, 8)
        self.put(f"{held} = cuda.local.array({size}, np.{self.of('float32', 'float32', 'float64')})")
        first = self.float_of(scope)
        with self.block(f"for {k} in range({size}):"):
            self.put(f"{held}[{k}] = {first} * ({k} + 1)")
        if self.maybe(0.4):
            self.use("local array with a runtime index")
            value, _ = self.int_of(scope)
            self.put(f"{v} = {held}[({value}) % {size}] * {self.literal(0.25)}")
        else:
            self.put(
                f"{v} = {self.zero()}",
                f"for {k} in range({size}):",
                f"    {v} += {held}[{size} - 1 - {k}] * {self.literal(0.1)}",
            )
        self.pays(scope, 3, size)
        self.made(scope, v)

    def piece_sorted_locals(self, scope: Scope) -> None:
        """The median of five values, sorted in a local array."""
        self.use("local array", "insertion sort")
        v, held, j, k, item = self.new("v"), self.new("held"), self.new("j"), self.new("k"), self.new("item")
        name = self.array("t", self.float_types(), ("T",), "float")
        self.put(f"{held} = cuda.local.array(5, np.{self.params[name].dtype})")
        with self.block(f"for {k} in range(5):"):
            self.put(f"{item} = {name}[({scope.flat} * 3 + {k}) % {self.number('T')}]", f"{j} = {k}")
            with self.block(f"while {j} > 0 and {held}[{j} - 1] > {item}:"):
                self.put(f"{held}[{j}] = {held}[{j} - 1]", f"{j} -= 1")
            self.put(f"{held}[{j}] = {item}")
        self.put(f"{v} = {held}[2]")
        self.pays(scope, 8, 10)
        self.made(scope, v)

    # Functions.

    def piece_device_function(self, scope: Scope) -> None:
        self.use("device function")
        v, called = self.new("v"), self.new("f")
        c, d = self.literal(self.of(0.5, 0.3)), self.literal(1.0)
        body = self.of(
            [f"return a * {c} + b"], [f"return {c} / ({d} + a * a + b * b)"],
            ["if a > b:", f"    return a * {c}", f"return b - {d}"],
            [f"t = {self.zero()}", "for k in range(4):", f"    t = t * {c} + a + b * k", "return t"],
        )  # fmt: skip
        arguments = (
            (self.exact(scope), self.exact(scope))
            if body[0].startswith("if")
            else (self.float_of(scope), self.float_of(scope))
        )
        self.functions.append("\n    ".join(["@cuda.jit(device=True)\ndef " + called + "(a, b):", *body]))
        self.put(f"{v} = {called}({', '.join(arguments)})")
        self.pays(scope, 6)
        self.made(scope, v)

    def piece_pair_function(self, scope: Scope) -> None:
        self.use("device function", "tuple of a device function")
        p, q, called = self.new("v"), self.new("v"), self.new("f")
        c = self.literal(0.5)
        if self.maybe(0.5):
            body = [f"return a * {c} - b * {c}, a * {c} + b * {c}"]
            arguments = f"{self.float_of(scope)}, {self.float_of(scope)}"
            head = "a, b"
        else:
            name = self.array("t", self.float_types(), ("T",), "float")
            head, arguments = "values, i, n", f"{name}, {scope.flat}, {self.number('T')}"
            body = ["i = i % n", f"return values[i], values[(i + 1) % n] * {c}"]
        self.functions.append("\n    ".join([f"@cuda.jit(device=True)\ndef {called}({head}):", *body]))
        self.put(f"{p}, {q} = {called}({arguments})")
        self.made(scope, p)
        self.made(scope, q)

    # Effects.

    def piece_histogram(self, scope: Scope) -> None:
        few = self.maybe(0.5)
        bins = f"{self.of(1, 4, 16, 64)}" if few else self.of("1024", "65536")
        kind = self.of("add", "add", "add", "max", "min")
        self.use(f"atomic {kind}", "few bins" if few else "many bins")
        counts = self.output((bins,), self.of("int32", "int32", "int64"), "zeros")
        key, bound = self.int_of(scope)
        if bins == "1":
            key = "0"
        elif int(bins) > bound:
            key = f"({key}) * {self.of(37, 641)} % {bins}"
        else:
            key = f"({key}) % {bins}"
        value, _ = self.int_of(scope)
        amount = self.of("1", "1", f"({value}) % 8") if kind == "add" else f"{value}"
        line = f"cuda.atomic.{kind}({counts}, {key}, {amount})"
        if self.maybe(0.4):
            self.use("conditional atomic")
            self.put(f"if {self.condition(scope)}:", f"    {line}")
        else:
            self.put(line)
        self.pays(scope, 24 if few else 12)

    def piece_several_stores(self, scope: Scope) -> None:
        """Several adjacent elements of the thread, or a column of a matrix."""
        self.use("several stores")
        if scope.shape == ("N",) and self.maybe(0.4):
            self.use("stores of a column", "loop of runtime trip count")
            dtype, k, total = self.of("float32", "float32", self.widest_float), self.new("k"), self.new("v")
            name = self.array("x", ("float32", "int16"), ("M", "N"), "float")
            out = self.output(("M", "N"), dtype)
            self.put(f"{total} = {self.zero()}")
            with self.block(f"for {k} in range({self.number('M')}):"):
                self.put(f"{total} = {total} * {self.literal(0.5)} + {self.read(name, f'{k}, {scope.index}')}")
                self.put(f"{out}[{k}, {scope.index}] = {total}")
            self.pays(scope, 8, 16)
            self.made(scope, total)
            return
        step = self.of(2, 4)
        *outer, last = scope.shape
        *before, own = scope.index.split(", ")
        out = self.output((*outer, f"{step} * {last}"), self.of("float32", "float32", "float64"))
        a = self.float_of(scope)
        for k in range(step):
            at = ", ".join([*before, f"{step} * {own}" + (f" + {k}" if k else "")])
            self.put(f"{out}[{at}] = {a} * {self.literal(0.5 + k)}")
        self.pays(scope, 4 * step)
