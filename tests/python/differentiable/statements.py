"""Random statements of a differentiable kernel: of one thread, and phases of a block between barriers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

    from differentiable.expressions import Expressions

DEEPEST = 4  # levels of indentation
TILE = 32  # elements of shared arrays, and the most threads of a block


class Statements:
    """Writes the lines of a kernel. `params` are the parameters, of which `features` may add some."""

    def __init__(self, rng: random.Random, write: Expressions, features: set[str]) -> None:
        self.random, self.write, self.features = rng, write, features
        self.lines: list[str] = []
        self.numbers = 0
        self.repeats = False  # whether the statements are in a loop

    def line(self, depth: int, text: str) -> None:
        """Add a line."""
        self.lines.append("    " * depth + text)

    def new(self, prefix: str = "v") -> str:
        """A name that is not used yet."""
        self.numbers += 1
        return f"{prefix}{self.numbers}"

    def value(self, names: list[str], depth: int = 2) -> str:
        """An expression, bounded where it may be computed again and again."""
        return self.write.bounded(names, depth - 1) if self.repeats else self.write.value(names, depth)

    def block(self, names: list[str], depth: int, size: int) -> list[str]:
        """Statements; returns the names that have values after them."""
        names, leaves = list(names), list(self.write.leaves)
        for _ in range(size):
            kinds = ["new", "new", "again", "augment", "if", "sum", "short", "store", "add", "while"]
            kinds += [
                name
                for name in ("tuples", "local", "place", "update", "views", "complex", "extremes", "nested")
                if name in self.features
            ]
            kind = self.random.choice(kinds)
            if (
                not names
                or kind == "new"
                or (depth >= DEEPEST and kind in ("if", "sum", "short", "while", "local", "extremes", "nested"))
            ):
                name = self.new()
                self.line(depth, f"{name} = {self.value(names)}")
                names.append(name)
            else:
                getattr(self, f"add_{kind}")(names, depth)
        self.write.leaves[:] = leaves
        return names

    def inside(self, names: list[str], depth: int, size: int) -> None:
        """The body of a loop."""
        repeats, self.repeats = self.repeats, True
        self.block(names, depth, size)
        self.repeats = repeats

    def add_again(self, names: list[str], depth: int) -> None:
        self.line(depth, f"{self.random.choice(names)} = {self.value(names)}")

    def add_augment(self, names: list[str], depth: int) -> None:
        operator = self.random.choice(["+=", "-=", "*="])
        term = self.write.bounded(names, 1)
        self.line(depth, f"{self.random.choice(names)} {operator} {'0.7 * ' if self.repeats else ''}{term}")

    def add_if(self, names: list[str], depth: int) -> None:
        tests = ["i % 2:", "i > 3:", "x[i] > 0.4:", f"{self.random.choice(names)} < 0.3:", "w[0] > w[1] and i != 5:"]
        self.line(depth, f"if {self.random.choice(tests)}")
        self.block(names, depth + 1, 2)
        if self.random.random() < 0.3:
            self.line(depth, f"elif {self.random.choice(tests)}")
            self.block(names, depth + 1, 1)
        if self.random.random() < 0.6:
            self.line(depth, "else:")
            self.block(names, depth + 1, 2)

    def add_sum(self, names: list[str], depth: int) -> None:
        """A loop of any trip count that only adds."""
        name, k = self.random.choice(names), self.new("k")
        spans = ["w.size", "i", "3", "5, 0, -2", "i % 7", "1, w.size, 2", "x.size"]
        self.line(depth, f"for {k} in range({self.random.choice(spans)}):")
        if self.random.random() < 0.3:
            self.line(depth + 1, f"if {k} == 2:")
            self.line(depth + 2, self.random.choice(["continue", "break"]))
        others = [other for other in names if other != name]
        with_loads = [f"x[({k} + i) % x.size]", f"w[{k} % w.size]"]
        self.write.leaves += with_loads
        self.line(depth + 1, f"{name} {self.random.choice(['+=', '-='])} 0.2 * {self.write.bounded(others, 2)}")
        if self.random.random() < 0.3:
            self.line(depth + 1, f"cuda.atomic.add(total, {k} % 4, 0.1 * {self.write.bounded(others, 1)})")
        del self.write.leaves[-2:]

    def add_extremes(self, names: list[str], depth: int) -> None:
        """A running maximum or minimum of a loop of any trip count."""
        name, k = self.new("peak"), self.new("k")
        self.line(depth, f"{name} = {self.write.bounded(names, 1)}")
        span = self.random.choice(["w.size", "i", "5", "i % 7", "1, w.size", "x.size"])
        self.line(depth, f"for {k} in range({span}):")
        if self.random.random() < 0.2:
            self.line(depth + 1, f"if {k} == 3:")
            self.line(depth + 2, self.random.choice(["continue", "break"]))
        with_loads = [f"x[({k} + i) % x.size]", f"w[{k} % w.size]"]
        self.write.leaves += with_loads
        term = self.write.bounded(names, 2)
        del self.write.leaves[-2:]
        operands = self.random.choice([f"{name}, {term}", f"{term}, {name}"])
        self.line(depth + 1, f"{name} = {self.random.choice(['max', 'min'])}({operands})")
        names.append(name)

    def add_short(self, names: list[str], depth: int) -> None:
        """A loop of a few iterations, over numbers or the items of a tuple."""
        if "tuples" in self.features and self.random.random() < 0.3:
            items = ", ".join(self.write.value(names, 1) for _ in range(3))
            name = self.new("e")
            self.line(depth, f"for {name} in ({items}):")
            self.inside([*names, name], depth + 1, 1)
            return
        self.line(depth, f"for {self.new('k')} in range({self.random.randrange(1, 14)}):")
        self.inside(names, depth + 1, self.random.randrange(1, 3))

    def add_while(self, names: list[str], depth: int) -> None:
        """A loop with a counter that is shifted, or an exit that depends on a float."""
        k = self.new("n")
        if self.random.random() < 0.6:
            self.line(depth, f"{k} = {self.random.choice(['i + 3', '37', 'i * i'])}")
            self.line(depth, f"while {k} > 0:")
            self.line(depth + 1, f"{k} {self.random.choice(['//= 2', '>>= 1', '//= 3'])}")
            self.inside(names, depth + 1, 1)
        else:
            name = self.random.choice(names)
            self.line(depth, f"for {k} in range({self.random.randrange(3, 20)}):")
            self.line(depth + 1, f"if {name} > {self.random.choice(['0.8', '1.5', 'a'])}:")
            self.line(depth + 2, "break")
            self.line(depth + 1, f"{name} = 0.3 + {name} * 1.2 + 0.1 * {self.write.bounded(names, 1)}")

    def add_store(self, names: list[str], depth: int) -> None:
        at = self.random.choice(["0", "1", "2"])
        self.line(depth, f"out[i, {at}] = {self.value(names)}")

    def add_add(self, names: list[str], depth: int) -> None:
        index = self.random.choice(["i % 4", "0", "3", "(i * 7) % total.size", "-1"])
        self.line(
            depth, f"cuda.atomic.{self.random.choice(['add', 'add', 'sub'])}(total, {index}, {self.value(names)})"
        )

    def add_tuples(self, names: list[str], depth: int) -> None:
        """Tuples of numbers: packed, unpacked, exchanged, and returned by functions."""
        pairs = [each.name for each in self.write.helpers if each.results == 2]
        form = self.random.choice(["swap", "packed", "pair", "nested"])
        one, other = self.value(names), self.value(names)
        if form == "swap" and len(names) > 1:
            first, second = self.random.sample(names, 2)
            self.line(depth, f"{first}, {second} = {second}, {self.write.bounded([first, second], 1)}")
        elif form == "pair" and pairs:
            first, second = self.new(), self.new()
            self.line(depth, f"{first}, {second} = {self.random.choice(pairs)}({one}, {other})")
            names += [first, second]
        else:
            name = self.new("t")
            items = f"({one}, {other}), a" if form == "nested" else f"{one}, {other}"
            self.line(depth, f"{name} = ({items})")
            at = "[0][1]" if form == "nested" else self.random.choice(["[0]", "[1]", "[-1]"])
            first = self.new()
            self.line(depth, f"{first} = {name}{at} * {self.write.value(names, 1)}")
            names.append(first)

    def add_local(self, names: list[str], depth: int) -> None:
        """A local array, filled, and updated in place."""
        if self.repeats:
            self.add_again(names, depth)
            return
        array, k = self.new("q"), self.new("k")
        if self.random.random() < 0.3:
            self.line(depth, f"{array} = cuda.local.array((2, 3), np.float64)")
            self.line(depth, f"for {k} in range(6):")
            self.line(depth + 1, f"{array}[{k} // 3, {k} % 3] = {self.write.bounded(names, 1)} * {k}")
            self.write.leaves += [f"{array}[i % 2, 1]", f"{array}[1, i % 3]"]
            return
        self.line(depth, f"{array} = cuda.local.array(5, np.float64)")
        self.line(depth, f"for {k} in range(5):")
        self.line(depth + 1, f"{array}[{k}] = {k} * 0.1 + {self.write.bounded(names, 1)}")
        for _ in range(self.random.randrange(3)):
            self.line(depth, f"for {k} in range({self.random.randrange(1, 16)}):")
            at, other = f"{array}[({k} * 2 + i) % 5]", f"{array}[({k} + {self.random.randrange(5)}) % 5]"
            if self.random.random() < 0.5:
                self.line(depth + 1, f"if {k} != {self.random.randrange(4)}:")
                self.line(depth + 2, f"{at} += 0.3 * {self.write.bounded(names, 1)}")
            form = self.random.choice(["math.sin({0}) * {1}", "0.5 * {0} + 0.4 * {1}", "{0} / (1.5 + {1} * {1})"])
            self.line(depth + 1, f"{at} = {form.format(at, other)}")
        self.write.leaves += [f"{array}[(i + {self.random.randrange(5)}) % 5]", f"{array}[2]"]

    def add_nested(self, names: list[str], depth: int) -> None:
        """Loops in loops that update elements of a local array, and of what the thread has of `z`."""
        if self.repeats:
            self.add_again(names, depth)
            return
        array, t, k = self.new("q"), self.new("t"), self.new("k")
        self.line(depth, f"{array} = cuda.local.array(5, np.float64)")
        self.line(depth, f"for {k} in range(5):")
        self.line(depth + 1, f"{array}[{k}] = {k} * 0.1 + {self.write.bounded(names, 1)}")
        self.line(depth, f"for {t} in range({self.random.choice(['2', '9', 'i % 4', 'w.size'])}):")
        if self.random.random() < 0.4:
            self.line(depth + 1, f"{array}[{t} % 5] *= {self.write.bounded(names, 1)}")
        inner = depth + 1
        self.line(inner, f"for {k} in range({self.random.choice(['5', '1, 4', f'{t} + 1', 'i % 6', '10'])}):")
        if self.random.random() < 0.3:
            test = self.random.choice([f"{k} == 3", f"{array}[{k} % 5] > 0.8", f"{array}[0] < 0.1 * {t}"])
            self.line(inner + 1, f"if {test}:")
            self.line(inner + 2, self.random.choice(["continue", "break"]))
        if self.random.random() < 0.3:
            inner, k = inner + 1, self.new("k")
            self.line(inner, f"for {k} in range({self.random.choice(['2', f'{t} % 3', '9'])}):")
        at, other = f"{array}[({k} + {t}) % 5]", f"{array}[({k} * 2 + {self.random.randrange(5)}) % 5]"
        form = self.random.choice(["math.sin({0}) * {1}", "0.5 * {0} + 0.4 * {1} * {0}", "{0} / (1.5 + {1} * {1})"])
        self.line(inner + 1, f"{at} = {form.format(at, other)}")
        if self.features & {"place", "update"} and self.random.random() < 0.5:
            self.line(
                inner + 1, f"z[i, {k} % 2] = 0.6 * z[i, {t} % 2] * {other} + 0.1 * {self.write.bounded(names, 1)}"
            )
        self.write.leaves += [f"{array}[(i + {self.random.randrange(5)}) % 5]", f"{array}[2]"]

    def add_place(self, names: list[str], depth: int) -> None:
        """An update in place of what the thread has of `z`."""
        at = self.random.choice(["z[i, 0]", "z[i, 1]"])
        form = self.random.choice(
            ["{0} += {1}", "{0} = math.sin({0}) * {1}", "{0} = 0.5 * {0} + {1}", "{0} -= 0.3 * {1}", "{0} *= 0.4"]
        )
        self.line(depth, form.format(at, self.write.bounded(names, 1)))

    def add_update(self, names: list[str], depth: int) -> None:
        """A load of what the thread has written, or will write."""
        name = self.new()
        at = self.random.choice(["z[i, 0]", "z[i, 1]", "out[i, 1]", "out[i, 2]"])
        self.line(depth, f"{name} = {at} * {self.write.bounded(names, 1)}")
        names.append(name)

    def add_views(self, names: list[str], depth: int) -> None:
        """Loads from and stores to views of arguments."""
        form = self.random.choice(["row", "slice", "row_out", "reversed", "sum"])
        row = self.new("r")
        if form == "row_out":
            self.line(depth, f"{row} = out[i]")
            self.line(depth, f"{row}[{self.random.randrange(3)}] = {self.value(names)}")
            return
        view = {"row": "y[i]", "slice": "x[2:]", "reversed": "x[::-1]", "sum": "y[i, 1:]"}[form]
        self.line(depth, f"{row} = {view}")
        name = self.new()
        at = "sum()" if form == "sum" else ""
        load = f"{row}.{at}" if at else f"{row}[i % {row}.size]"
        self.line(depth, f"{name} = {load} * {self.write.value(names, 1)}")
        names.append(name)

    def add_complex(self, names: list[str], depth: int) -> None:
        """A complex number from an argument or from floats, and what becomes of it."""
        number, name = self.new("c"), self.new()
        one, other = self.write.bounded(names, 1), self.write.bounded(names, 1)
        form = self.random.choice(
            [
                "c[i] * {0}",
                "complex({0}, {1})",
                "c[i] * c[(i + 1) % c.size]",
                "np.exp(1j * {0}) * c[i]",
                "{0} + c[i] / (3.0 + {1} * 1j)",
            ]
        )
        self.line(depth, f"{number} = {form.format(one, other)}")
        part = self.random.choice([".real", ".imag"])
        self.line(depth, f"{name} = ({number}{self.random.choice(['', ' * ' + number])}){part}")
        if self.random.random() < 0.4:
            self.line(depth, f"cout[i] = {number} * {self.write.bounded(names, 1)}")
        names.append(name)

    def phases(self) -> None:
        """Phases with barriers, which all threads of the block reach. They begin and end with a value `v`."""
        self.line(1, "tid = cuda.threadIdx.x")
        self.line(1, "v = x[i] if i < x.size else 0.1")
        if "dynamic" in self.features:
            self.line(1, "tile = cuda.shared.array(0, np.float64)")
        elif "collectives" not in self.features:
            self.line(1, f"tile = cuda.shared.array({TILE}, np.float64)")
        for _ in range(self.random.randrange(1, 4)):
            if self.random.random() < 0.35:
                self.line(1, f"for {self.new('k')} in range({self.random.randrange(2, 12)}):")
                for _ in range(self.random.randrange(1, 3)):
                    self.phase(2)
            else:
                self.phase(1)

    def phase(self, depth: int) -> None:
        """Threads exchange values."""
        if "collectives" in self.features:
            form = self.random.choice(["cuda.coop.block.sum({0})", "cuda.coop.block.exclusive_sum({0})",
                                       "cuda.coop.block.inclusive_sum({0})", "cuda.coop.block.max({0})"])  # fmt: skip
            self.line(depth, f"v = math.sin({form.format(self.write.bounded(['v'], 1))} * 0.2) + 0.1 * v")
            return
        if "shuffles" in self.features:
            form = self.random.choice(["xor_sync(0xFFFFFFFF, {0}, {1})", "up_sync(0xFFFFFFFF, {0}, {1})",
                                       "down_sync(0xFFFFFFFF, {0}, {1})"])  # fmt: skip
            value = f"cuda.shfl_{form.format(self.write.bounded(['v'], 1), self.random.choice([1, 2, 4, 8, 16]))}"
            self.line(depth, self.random.choice(["v += 0.3 * {0}", "v = math.sin({0}) * v", "v = {0}"]).format(value))
            return
        self.line(depth, f"tile[tid] = {self.write.bounded(['v'], 1)} if i < x.size else 0.3")
        self.line(depth, "cuda.syncthreads()")
        changes = ["none", "none", "tree", "atomic", "first", "own"]
        change = self.random.choice(changes + ["sweeps"] * 3 * ("nested" in self.features))
        if change == "tree":
            form = self.random.choice(
                ["{0} + {1}", "math.sin({0}) * {1}", "math.hypot({0}, 0.7 + {1})", "max({0}, {1})"]
            )
            k = self.new("n")
            self.line(depth, f"{k} = 16")
            self.line(depth, f"while {k} > 0:")
            self.line(depth + 1, f"if tid < {k} and tid + {k} < cuda.blockDim.x:")
            self.line(depth + 2, f"tile[tid] = {form.format('tile[tid]', f'tile[tid + {k}]')}")
            self.line(depth + 1, "cuda.syncthreads()")
            self.line(depth + 1, f"{k} //= 2")
        elif change == "atomic":
            self.line(depth, "cuda.atomic.add(tile, (tid * 3) % cuda.blockDim.x, 0.25 * v)")
            self.line(depth, "cuda.syncthreads()")
        elif change == "first":
            self.line(depth, "if tid == 1:")
            self.line(depth + 1, f"tile[0] = {self.write.bounded(['v'], 1)} if i < x.size else 0.2")
            self.line(depth, "cuda.syncthreads()")
        elif change == "sweeps":
            t, k, near = self.new("t"), self.new("k"), self.new("s")
            self.line(depth, f"for {t} in range({self.random.choice(['2', 'w.size', '10'])}):")
            self.line(depth + 1, f"for {k} in range({self.random.choice(['2', '9', f'{t} % 3'])}):")
            self.line(depth + 2, f"{near} = tile[(tid + {k} + {t}) % cuda.blockDim.x]")
            self.line(depth + 2, "cuda.syncthreads()")
            self.line(depth + 2, f"tile[tid] = 0.5 * tile[tid] + 0.4 * math.sin({near} * v)")
            self.line(depth + 2, "cuda.syncthreads()")
        elif change == "own":
            self.line(depth, "tile[tid] = math.sin(tile[tid]) * v")
            self.line(depth, "cuda.syncthreads()")
        near = f"0.3 * tile[(tid + {self.random.randrange(4)}) % cuda.blockDim.x]"
        if self.random.random() < 0.5:
            k, t = self.new("k"), self.new("s")
            self.line(depth, f"{t} = 0.0")
            self.line(depth, f"for {k} in range({self.random.randrange(1, 14)}):")
            self.line(depth + 1, f"{t} += 0.1 * math.cos(tile[(tid + {k}) % cuda.blockDim.x] * w[{k} % w.size])")
            self.line(depth, f"v = v * 0.5 + {t} * {near}")
        else:
            self.line(depth, f"v = {self.random.choice(['v + {0}', 'math.sin(v) * {0}', '0.5 * {0}']).format(near)}")
        self.line(depth, "cuda.syncthreads()")
