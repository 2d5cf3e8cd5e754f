"""Random kernels: source text, arguments and a launch shape, all from a seed.

What is random is the program, not whether it has a meaning: loops end, indices are in bounds, threads write to elements
of their own and read shared memory between barriers, floats are small multiples of 1/8 and are multiplied by powers of
two or by one another once, so that a fused multiply-add changes nothing. Conditions depend on an argument, since what
is known at compile time drops a branch and its types.

The generator types what it writes with `typed_rewrite.Typer` and throws away what has no type.
"""

from __future__ import annotations

import ast
import dataclasses

import numpy as np
from oracle import numeric
from random_expressions import TYPES, WIDTH, ExpressionWriter, Scope
from typed_rewrite import Array, Type, name_of

COLUMNS = 10  # of each output

HEAD = """import numpy as np
from weft import cuda

"""


@dataclasses.dataclass
class Program:
    """A kernel and how to launch it."""

    source: str
    types: dict[str, Type]  # of the parameters
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: list[object]


class Generator(ExpressionWriter):
    """Writes one program."""

    # Statements: lists of lines.

    def block(self, scope: Scope, depth: int, most: int, *, uniform: bool = False) -> list[str]:
        """Statements that have types; the scope is left as after them."""
        lines: list[str] = []
        for _ in range(self.random.randint(1, most)):
            if scope.typer.env is None:
                break
            lines += self.statement(scope, depth, uniform=uniform)
        return lines or ["pass"]

    def statement(self, scope: Scope, depth: int, *, uniform: bool) -> list[str]:
        for _ in range(8):
            before = dict(scope.typer.env)
            rows, exits = list(scope.rows), list(scope.exits)
            try:
                lines = self.any_statement(scope, depth, uniform)
                # What was written was typed piece by piece; this types it as a whole, with its loops.
                scope.typer.env = dict(before)
                scope.rows, scope.exits = rows, exits
                self.accept(scope, lines)
            except TypeError:
                scope.typer.env, scope.rows, scope.exits = before, rows, exits
                continue
            return lines
        return ["pass"]

    @staticmethod
    def accept(scope: Scope, lines: list[str]) -> None:
        """Types lines and takes over what they define."""
        wrapper = ast.parse("\n".join(lines) + "\n").body
        scope.typer.block(wrapper)

    def any_statement(self, scope: Scope, depth: int, uniform: bool) -> list[str]:
        kind = self.random.random()
        if depth > 0 and kind < 0.2:
            return self.if_statement(scope, depth)
        if depth > 0 and kind < 0.34:
            return self.for_statement(scope, depth)
        if depth > 0 and kind < 0.42:
            return self.while_statement(scope, depth)
        if uniform and kind < 0.52:
            return self.exchange(scope)
        if uniform and depth > 0 and kind < 0.57:
            return self.uniform_statement(scope, depth)
        if scope.exits and kind < 0.62:
            return [f"if {self.condition(scope, 1)}:", f"    {self.pick(*scope.exits)}"]
        if scope.rows and kind < 0.72:
            return self.row_statement(scope)
        return self.assignment(scope)

    def target(self, scope: Scope) -> str:
        names = [name for name in scope.numbers() if name not in scope.fixed]
        return self.pick(*names) if names and self.maybe(0.7) else self.fresh("v")

    def assignment(self, scope: Scope) -> list[str]:
        kind = self.random.random()
        names = [name for name in scope.numbers() if name not in scope.fixed]
        if kind < 0.25 and names:
            name = self.pick(*names)
            op = self.pick("+", "-", "+", "*", "//", "%", "&", "|", "^", "<<", ">>", "/")
            value = self.expr(scope, 1)
            if op == "*":
                value = self.pick("2", "0.5", "-1")
            return [f"{name} {op}= {value}"]
        if kind < 0.4 and len(names) >= 2:
            a, b = self.random.sample(names, 2)
            return [f"{a}, {b} = {self.pick(f'{b}, {a}', f'{b}, {self.expr(scope, 1)}')}"]
        if kind < 0.5:
            pair = self.fresh("t")
            a, b, c = (self.expr(scope, 1) for _ in range(3))
            first = f"({a}, {b})"
            if self.maybe(0.4):
                first = f"({first} if {self.condition(scope, 1)} else ({c}, {a}))"
            x, y = self.target(scope), self.fresh("v")
            return [f"{pair} = {first}", self.pick(f"{x}, {y} = {pair}", f"{x} = {pair}[1]")]
        if kind < 0.55:
            return [f"{self.target(scope)} = {self.fresh('v')} = {self.expr(scope, 2)}"]
        return [f"{self.target(scope)} = {self.expr(scope, self.random.randint(1, 3))}"]

    def row_statement(self, scope: Scope) -> list[str]:
        kind = self.random.random()
        if kind < 0.4:
            return [f"{self.element(scope)} = {self.expr(scope, 2)}"]
        if kind < 0.7:
            op = self.pick("+", "-", "+", "//", "%", "&", "|", "^", "/")
            return [f"{self.element(scope)} {op}= {self.expr(scope, 1)}"]
        if kind < 0.8:
            a, b = self.element(scope), self.element(scope)
            return [f"{a}, {b} = {b}, {a}"]
        if kind < 0.9:
            return [f"{self.pick(*scope.rows)}[{self.pick('1:', ':2', '::2', '-1:', '::-1')}] = {self.expr(scope, 1)}"]
        name, row = self.fresh("v"), self.pick(*scope.rows)
        return [f"{self.target(scope)} = 0", f"for {name} in {row}:", f"    {self.target(scope)} = {name} + 1"]

    def nested(self, scope: Scope, depth: int, *, uniform: bool = False) -> list[str]:
        """A block of its own, indented; the scope is as it was."""
        env = dict(scope.typer.env)
        fixed = set(scope.fixed)
        lines = self.block(scope, depth - 1, 3, uniform=uniform)
        scope.typer.env = env
        scope.fixed = fixed
        return [f"    {line}" for line in lines]

    def if_statement(self, scope: Scope, depth: int) -> list[str]:
        lines = [f"if {self.condition(scope, 2)}:", *self.nested(scope, depth)]
        while self.maybe(0.25):
            lines += [f"elif {self.condition(scope, 1)}:", *self.nested(scope, depth)]
        if self.maybe(0.6):
            lines += ["else:", *self.nested(scope, depth)]
        if self.maybe(0.1) and scope.kernel:
            lines += [f"    {self.pick('return', 'pass')}"]
        return lines

    def bound(self, scope: Scope, *, uniform: bool) -> str:
        """A number from 0 to 4."""
        if self.maybe(0.4):
            return str(self.random.randint(0, 4))
        options = [text for text in (scope.uniform if uniform else scope.inputs) if scope.type_of(text).kind in "iu"]
        return f"{self.pick(*options)} % {self.random.randint(1, 5)}" if options else "3"

    def range_of(self, scope: Scope, *, uniform: bool) -> str:
        a, b = self.bound(scope, uniform=uniform), self.bound(scope, uniform=uniform)
        kind = self.random.random()
        if kind < 0.35:
            text = f"range({b})"
        elif kind < 0.5:
            text = f"range({a}, {b})"
        elif kind < 0.65:
            text = f"range({a}, {self.random.randint(2, 7)}, {self.random.randint(1, 3)})"
        elif kind < 0.8:
            text = f"range({self.random.randint(0, 6)}, {a} - 2, {-self.random.randint(1, 3)})"
        elif kind < 0.9 and not uniform:
            text = f"range({a}, {b}, {self.pick('1', '2')} if {self.condition(scope, 0)} else {self.pick('-1', '-2')})"
        else:
            step = self.pick(f"{b} + 1", f"-1 - {b}", f"np.int8({a} + 1)")
            text = f"range({a}, {self.random.randint(-3, 6)}, {step})"
        if self.maybe(0.15):
            name = self.pick("int32", "uint8", "int32", "int8")
            text = f"range(np.{name}({b}))" if self.maybe(0.5) else f"range(np.{name}({a}), np.{name}({b}))"
        return text

    def loop(self, scope: Scope, depth: int, name: str, head: str, ty: Type, *, first: str = "") -> list[str]:
        """A loop around a block in which `name` counts."""
        env, fixed, exits = dict(scope.typer.env), set(scope.fixed), scope.exits
        scope.typer.env[name] = ty
        if first:
            scope.fixed.add(name)
        scope.exits = ["break", "continue", *(["return"] if scope.kernel and self.maybe(0.1) else [])]
        scope.typer.loops.append(([], []))
        body = self.nested(scope, depth)
        scope.typer.loops.pop()
        scope.typer.env, scope.fixed, scope.exits = env, fixed, exits
        lines = [head, *([f"    {first}"] if first else []), *body]
        if self.maybe(0.25):
            lines += ["else:", *self.nested(scope, depth - 1)]
        return lines

    def for_statement(self, scope: Scope, depth: int) -> list[str]:
        numbers = [name for name in scope.numbers() if name not in scope.fixed]
        name = self.pick(*numbers) if numbers and self.maybe(0.15) else self.fresh("k")
        kind = self.random.random()
        if kind < 0.12:
            items = [self.expr(scope, 1) for _ in range(self.random.randint(1, 3))]
            cast = self.pick(*(f"np.{each}" for each in TYPES))
            many = f"({', '.join(f'{cast}({item})' for item in items)},)"
            return self.loop(scope, depth, name, f"for {name} in {many}:", scope.type_of(many)[0])
        if kind < 0.24 and scope.rows:
            row = self.pick(*scope.rows)
            return self.loop(scope, depth, name, f"for {name} in {row}:", scope.type_of(row).dtype)
        text = self.range_of(scope, uniform=False)
        return self.loop(scope, depth, name, f"for {name} in {text}:", np.dtype("int64"))

    def while_statement(self, scope: Scope, depth: int) -> list[str]:
        name = self.fresh("n")
        start = f"{name} = {self.pick('0', 'np.int32(0)', 'np.uint8(0)', '0.0')}"
        self.accept(scope, [start])
        scope.typer.env[name] = np.dtype("int64" if ".0" not in start else "float64")
        test = f"{name} < {self.bound(scope, uniform=False)}"
        if self.maybe(0.4):
            test = self.pick(f"{test} and {self.condition(scope, 1)}", f"{self.condition(scope, 1)} and {test}")
        return [
            start,
            *self.loop(scope, depth, name, f"while {test}:", scope.typer.env[name], first=f"{name} += 1"),
        ]

    # Barriers.

    def exchange(self, scope: Scope) -> list[str]:
        """All threads write to shared memory, wait, read another thread's value, and wait."""
        shift = self.bound(scope, uniform=False)
        other = self.pick("t - 1", "threads - 1 - t", "(t + 3) % threads", f"(t + {shift}) % threads")
        name = self.target(scope)
        read = self.pick(f"{name} = s[{other}]", f"{name} = s[{other}] + {self.expr(scope, 1)}")
        write = self.pick(f"s[t] = {self.expr(scope, 2)}", f"s[t] += {self.expr(scope, 1)}")
        if self.maybe(0.3):
            write = f"if {self.condition(scope, 1)}:\n    {write}"
        return [*write.split("\n"), "cuda.syncthreads()", read, "cuda.syncthreads()"]

    def uniform_statement(self, scope: Scope, depth: int) -> list[str]:
        """A branch or a loop that all threads go through alike, with barriers in it."""
        if self.maybe(0.5):
            lines = [f"if {self.condition(scope, 1, uniform=True)}:", *self.nested(scope, depth, uniform=True)]
            if self.maybe(0.6):
                lines += ["else:", *self.nested(scope, depth, uniform=True)]
            return lines
        env, fixed = dict(scope.typer.env), set(scope.fixed)
        name = self.fresh("k")
        text = self.range_of(scope, uniform=True)
        scope.typer.env[name] = np.dtype("int64")
        body = self.nested(scope, depth, uniform=True)
        if self.maybe(0.3):
            leave = [f"    if {self.condition(scope, 0, uniform=True)}:", f"        {self.pick('break', 'continue')}"]
            body = [*leave, *body] if self.maybe(0.5) else [*body, *leave]
        scope.typer.env, scope.fixed = env, fixed
        return [f"for {name} in {text}:", *body]

    # Functions.

    def function(self) -> list[str]:
        """A device function; returns may differ in type, and are pairs in all places or none."""
        name = f"f{len(self.functions.sources)}"
        pair = self.maybe(0.3)
        count = self.random.randint(1, 3)
        defaults = self.random.randint(0, count - 1)
        names = [f"a{position}" for position in range(count)]
        if changes := self.maybe(0.4):  # a function that changes a row of its caller
            names[0] = "row"
        for _ in range(20):
            sizes = [self.pick(*TYPES) for _ in names]
            types: list[Type] = [np.dtype(size.rstrip("_")) for size in sizes]
            if changes:
                types[0] = Array(types[0], 1)
            scope = Scope(self.functions, dict(zip(names, types, strict=True)))
            scope.inputs = [f"row[{self.random.randrange(WIDTH)}]" if each == "row" else each for each in names]
            scope.inputs = scope.inputs[: count - defaults]
            if changes:
                scope.rows.append("row")
                scope.fixed.add("row")
            named = [f"{each}={self.literal()}" for each in names[count - defaults :]]
            parameters = [*names[: count - defaults], *named]

            def result(scope=scope):
                one, two = self.expr(scope, 2), self.expr(scope, 1)
                return f"return {one}, {two}" if pair else f"return {one}"

            scope.exits = []
            lines = self.block(scope, 2, 3)
            for _ in range(self.random.randint(0, 2)):
                if scope.typer.env is not None:
                    lines += [f"if {self.condition(scope, 1)}:", f"    {result()}"]
                    lines += self.block(scope, 1, 2)
            if scope.typer.env is None:
                continue
            lines.append(result())
            text = [f"def {name}({', '.join(parameters)}):", *(f"    {line}" for line in lines)]
            decorator = "@cuda.jit(device=True)"
            definition = ast.parse("\n".join([decorator, *text])).body[0]
            self.functions.sources[name] = definition
            try:
                self.functions.specialize(name, tuple(types))
            except TypeError:
                del self.functions.sources[name]
                continue
            return [decorator, *text, "", ""]
        return []

    def array(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        dtype = np.dtype(name.rstrip("_"))
        draw = np.random.default_rng(self.random.getrandbits(32))
        if dtype.kind == "b":
            return draw.integers(0, 2, shape).astype(bool)
        if dtype.kind == "f":
            return (draw.integers(-40, 40, shape) / 8).astype(dtype)
        low = 0 if dtype.kind == "u" else -9
        values = draw.integers(low, 12, shape).astype(dtype)
        info = np.iinfo(dtype)
        edges = draw.random(shape) < 0.08
        return np.where(edges, draw.choice(np.array([info.min, info.max], dtype), shape), values).astype(dtype)

    def scalar(self) -> object:
        return self.pick(
            self.random.randint(-9, 9),
            self.random.randint(0, 9),
            self.random.randint(-20, 20) / 8,
            np.int32(self.random.randint(-9, 9)),
            np.uint8(self.random.randint(0, 9)),
            np.float32(self.random.randint(-20, 20) / 8),
            self.maybe(0.5),
        )

    def program(self) -> Program:
        lines: list[str] = []
        for _ in range(self.random.randint(0, 2)):
            lines += self.function()
        grid, block = self.pick(((2,), (8,)), ((1,), (16,)), ((3,), (5,)), ((2,), (4, 2)), ((1,), (40,)), ((2,), (1,)))
        size = int(np.prod(grid) * np.prod(block))
        args: dict[str, object] = {}
        for position in range(self.random.randint(2, 4)):
            args[f"x{position}"] = self.array(self.pick(*TYPES), (size,))
        for position in range(self.random.randint(1, 3)):
            args[f"p{position}"] = self.scalar()
        args["w"] = self.array(self.pick(*TYPES), (size, WIDTH))
        args["oi"] = np.full((size, COLUMNS), -1, np.int64)
        args["of"] = np.full((size, COLUMNS), -1.0)
        types = {
            name: Array(arg.dtype, arg.ndim) if isinstance(arg, np.ndarray) else numeric.value(arg).dtype
            for name, arg in args.items()
        }
        scope = Scope(self.functions, dict(types))
        scope.kernel = True
        barriers = self.maybe(0.5)
        body = self.start(scope, args, block, barriers)
        target = len(body) + self.random.randint(5, 12)
        while len(body) < target and scope.typer.env is not None:
            body += self.statement(scope, 2, uniform=barriers)
            if self.maybe(0.03):
                leave = [f"if {self.condition(scope, 1)}:", "    return"]
                self.accept(scope, leave)
                body += leave
        body += self.finish(scope)
        lines += ["@cuda.jit", f"def kernel({', '.join(args)}):", *(f"    {line}" for line in body)]
        return Program(HEAD + "\n" + "\n".join(lines) + "\n", types, grid, block, list(args.values()))

    def start(self, scope: Scope, args: dict[str, object], block: tuple[int, ...], barriers: bool) -> list[str]:
        """Who this thread is, its rows, its shared and local memory."""
        threads = int(np.prod(block))
        lines = ["t = cuda.threadIdx.x"]
        if len(block) == 2:
            lines = [f"t = cuda.threadIdx.x + cuda.threadIdx.y * {block[0]}"]
        lines += [f"threads = {threads}", f"i = t + cuda.blockIdx.x * {threads}"]
        if self.maybe(0.5) and len(block) == 1:
            lines[-1] = "i = cuda.grid(1)"
        xs = [name for name in args if name.startswith("x")]
        scope.inputs = [self.pick(f"{x}[i]", f"{x}[i]", f"{x}[-1 - i]") for x in xs]
        scope.uniform = [name for name in args if name.startswith("p")]
        scope.inputs += scope.uniform
        scope.fixed = {"t", "threads", "i", *scope.uniform}
        if barriers:
            lines += [f"s = cuda.shared.array({threads}, np.{self.pick(*TYPES)})", f"s[t] = {self.pick(*scope.inputs)}"]
            lines.append("cuda.syncthreads()")
        own = name_of(args["w"].dtype)
        if self.maybe(0.4):
            dtype = self.pick(own, self.pick(*TYPES))
            lines += [f"m = cuda.local.array({WIDTH}, np.{dtype})", f"for k in range({WIDTH}):"]
            lines += [f"    m[k] = {self.pick(*scope.inputs)} + k"]
            scope.rows.append("m")
        views = {"w[i]": None, "r": "r = w[i]", "b": "b = w[i, ::-1]", "c": "c = w[i:][0]", "d": "d = w.T[:, i]"}
        chosen = self.pick(*views)
        if views[chosen]:
            lines.append(views[chosen])
        scope.rows.append(chosen)
        self.accept(scope, lines)
        scope.fixed |= set(scope.typer.env)
        if self.maybe(0.4):
            dtype, other = scope.type_of("w").dtype, None
            if scope.rows[0] == "m" and scope.type_of("m").dtype == dtype:
                other = "m"
            one, two = self.pick("w[i]", "w[i, ::-1]", "w.T[:, i]"), other or self.pick("w[i, ::-1]", "w[i:][0]")
            lines += [more := f"q = {one} if {self.condition(scope, 1)} else {two}"]
            self.accept(scope, [more])
            scope.rows.append("q")
        for _ in range(self.random.randint(2, 4)):
            lines += [more := f"{self.fresh('v')} = {self.pick(self.literal(), *scope.inputs)}"]
            self.accept(scope, [more])
        return lines

    def finish(self, scope: Scope) -> list[str]:
        """Stores the variables."""
        if scope.typer.env is None:
            return []
        lines: list[str] = []
        names = [name for name in scope.numbers() if name not in scope.fixed][-2 * COLUMNS :]
        for array, kinds in (("oi", "iub"), ("of", "f")):
            of_kind = [name for name in names if scope.typer.env[name].kind in kinds][-COLUMNS:]
            lines += [f"{array}[i, {position}] = {name}" for position, name in enumerate(of_kind)]
        return lines


def generate(seed: int) -> Program:
    """The program of a seed."""
    return Generator(seed).program()
