"""Random kernels: source text, arguments and a launch shape, all from a seed.

Programs are random, but always valid: loops end, indices are in bounds, threads write to elements of their own and read
shared memory between barriers, sums of all threads are integers, floats are small multiples of 1/8 and are multiplied
by powers of two or by one another once, so that a fused multiply-add changes nothing. Conditions mostly depend on an
argument, since a constant condition drops a branch and its types.

The generator types each statement with `typed_rewrite.Typer` and discards those without a type. Its parts:
`random_expressions.py`, `random_values.py` (complex numbers, tuples), `random_memory.py` (views, atomics, barriers),
`random_statements.py`, `random_loop_carried.py`, `random_integer_limits.py` and `random_sequences.py` (rare
features, of which each program has some). This module writes functions and the kernel.
"""

from __future__ import annotations

import ast
import dataclasses

import numpy as np

from generators.random_expressions import PLANE_ROWS, TYPES, WIDTH, Scope
from generators.random_integer_limits import FEATURES
from generators.random_library import LibraryWriter
from generators.random_memory import Shared
from generators.random_objects import instantiate
from generators.typed_objects import type_of_value
from generators.typed_values import INT64, NONE, Array, Type, name_of

COLUMNS = 10  # of each output

HEAD = """import numpy as np
from weft import cuda

"""
IMPORTS = """import dataclasses
import enum
from collections import namedtuple

"""  # of programs that define something


@dataclasses.dataclass
class Program:
    """A kernel and how to launch it."""

    source: str
    types: dict[str, Type]  # of the parameters
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: list[object]
    kept: set[str]  # variables that have no value at some points
    features: list[str]
    named: tuple[str, ...] = ()  # the parameters that a launch names: the last of the arguments
    faults: int = 0  # threads that ended with a fault when the oracle last ran it


BLOCKS = ((8,), (16,), (5,), (40,), (1,), (33,), (4, 2), (3, 2), (2, 3), (2, 2, 2), (3, 1, 2), (2, 3, 4))
GRIDS = ((1,), (2,), (3,), (2,), (2, 2), (1, 2), (2, 1, 2))
COUNTERS = {"ai": (5,), "aj": (2, 3)}
COUNTER_TYPES = ("int32", "uint32", "int64", "uint64")


class Generator(LibraryWriter):
    """Writes one program."""

    def __init__(self, seed: int, features: tuple[str, ...] = FEATURES) -> None:
        super().__init__(seed, features)
        self.leaves = self.maybe(0.5) and "collectives" not in self.chosen  # whether threads may return early
        self.grid, self.block_dim = self.pick(*GRIDS), self.pick(*BLOCKS)
        while int(np.prod(self.grid) * np.prod(self.block_dim)) > 48:
            self.grid = self.pick(*GRIDS)
        if large := self.large_block():
            self.grid, self.block_dim = self.pick((1,), (2,)), large
        self.threads = int(np.prod(self.block_dim))
        self.size = int(np.prod(self.grid)) * self.threads
        self.barriers = self.maybe(0.5) or bool({"warps", "collectives"} & set(self.chosen))
        self.shared: list[Shared] = []
        self.tallies: list[tuple[str, int]] = []
        self.backwards: bool | None = None
        self.exchangers: dict[str, list[str]] = {}
        self.front = 0  # the number of lines that compute indices and declare shared arrays

    # Functions.

    def parameters(self) -> list[tuple[str, str, Type]]:
        """Name, kind and a possible type of each."""
        found: list[tuple[str, str, Type]] = []
        kind = self.random.random()
        if kind < 0.45:
            found.append(("row", "row", Array(self.dtype(), 1)))
        elif kind < 0.55:
            found.append(("plane", "plane", Array(self.dtype(), 2)))
        elif kind < 0.65:
            found.append(("bins", "counters", Array(np.dtype(self.pick(*COUNTER_TYPES)), 1)))
        for position in range(self.random.randint(1, 3)):
            kind = self.random.random()
            if kind < 0.7:
                found.append((f"a{position}", "number", self.dtype()))
            elif kind < 0.85:
                found.append((f"c{position}", "complex", np.dtype(self.pick("complex64", "complex128"))))
            else:
                found.append((f"b{position}", "pair", (self.dtype(), self.dtype())))
        return found

    def dtype(self) -> np.dtype:
        return np.dtype(self.pick(*TYPES).rstrip("_"))

    def function(self) -> list[str]:
        """A device function; returns may differ in type, and have one form."""
        name = f"f{len(self.functions.sources)}"
        form = self.pick("{0}", "{0}", "{0}", "{0}, {1}", "{0}, {1}", "{2}", "({0}, {1}), {2}", "")
        for _ in range(20):
            parameters = self.parameters()
            kinds = [kind for _, kind, _ in parameters]
            if form == "" and kinds[0] == "number":
                form = "{0}"
            scope = Scope(self.functions, {each: ty for each, _, ty in parameters})
            inputs = {
                "row": f"[{self.random.randrange(WIDTH)}]",
                "plane": f"[1, {self.random.randrange(WIDTH)}]",
                "complex": f".{self.pick('real', 'imag')}",
                "pair": f"[{self.random.randrange(2)}]",
                "number": "",
            }
            scope.inputs = [each + inputs[kind] for each, kind, _ in parameters if kind in inputs]
            scope.rows = [each for each, kind, _ in parameters if kind == "row"]
            scope.planes = [(each, PLANE_ROWS) for each, kind, _ in parameters if kind == "plane"]
            scope.counters = [(each, COUNTERS["ai"]) for each, kind, _ in parameters if kind == "counters"]
            scope.fixed = {each for each, kind, _ in parameters if kind in ("row", "plane", "counters")}
            last = 0  # parameters with defaults: numbers at the end
            while last + 1 < len(kinds) and kinds[-1 - last] == "number" and self.maybe(0.4):
                last += 1
            texts = [each if place < len(kinds) - last else f"{each}={self.literal()}"
                     for place, (each, _, _) in enumerate(parameters)]  # fmt: skip

            def result(scope=scope, form=form):
                one, two = self.expr(scope, 2), self.expr(scope, 1)
                return f"return {form}".format(one, two, self.complex_expr(scope, 1)).rstrip()

            lines: list[str] = []
            if self.maybe(0.15):
                lines = self.local_plane(scope)
            if "asserts" in self.chosen and self.maybe(0.4):
                lines += self.statement(scope, 0, write=self.assertion)
            lines += self.block(scope, self.random.randint(1, 2), 3)
            for _ in range(self.random.randint(0, 2)):
                if scope.typer.env is not None:
                    lines += [f"if {self.condition(scope, 1)}:", f"    {result()}"]
                    lines += self.block(scope, 1, 2)
            if scope.typer.env is None:
                continue
            lines.append(result())
            types = [ty for _, _, ty in parameters]
            if text := self.defined(name, texts, lines, types):
                self.kinds[name] = kinds
                return text
        return []

    def defined(self, name: str, parameters: list[str], lines: list[str], types: list[Type]) -> list[str]:
        """The text of a device function, if it has types."""
        text = [f"def {name}({', '.join(parameters)}):", *(f"    {line}" for line in lines)]
        decorator = "@cuda.jit(device=True)"
        self.functions.sources[name] = ast.parse("\n".join([decorator, *text])).body[0]
        try:
            self.functions.specialize(name, tuple(types))
        except TypeError:
            del self.functions.sources[name]
            return []
        return [decorator, *text, "", ""]

    def exchanger(self) -> list[str]:
        """A device function with barriers, which all threads call. Its shared array is the caller's or its own."""
        name, cell = f"e{len(self.functions.sources)}", self.pick(*self.shared)
        mine = not self.leaves and self.maybe(0.4)  # a thread that has returned would leave its cell uninitialized
        shared, self.shared = self.shared, [dataclasses.replace(cell, name="s")]
        tallies, self.tallies = self.tallies, []
        exchangers, self.exchangers = self.exchangers, {}
        names = [*([] if mine else ["s"]), *cell.own, "a", "n"]
        array = Array(cell.dtype, len(cell.shape))
        types = [*([] if mine else [array]), *(INT64 for _ in cell.own), self.dtype(), INT64]
        found: list[str] = []
        while not found:
            scope = Scope(self.functions, {**dict(zip(names, types, strict=True)), "s": array})
            scope.inputs, scope.uniform, scope.fixed = ["a"], ["n"], {"s", "n", *cell.own}
            lines = []
            if mine:
                shape = cell.shape if len(cell.shape) > 1 else cell.shape[0]
                lines = [f"s = cuda.shared.array({shape}, {self.dtype_text(cell.dtype)})"]
                lines += [f"s[{', '.join(cell.own)}] = a", "cuda.syncthreads()"]
            if self.maybe(0.3):
                more = [f"ml = cuda.local.array({WIDTH}, np.{self.pick(*TYPES)})"]
                more += [f"for k in range({WIDTH}):", "    ml[k] = a + k"]
                lines += more
                self.accept(scope, more)
                scope.rows.append("ml")
                scope.fixed.add("ml")
            lines += self.block(scope, 1, 2)
            for _ in range(self.random.randint(1, 2)):
                lines += self.statement(scope, 1, write=self.exchange)
                if self.maybe(0.3):
                    lines += self.statement(scope, 1, uniform=True)
            lines += [f"return {self.expr(scope, 1)}"]
            found = self.defined(name, names, lines, types)
        self.shared, self.tallies, self.exchangers = shared, tallies, exchangers
        kinds = ["number" if each == "a" else "turns" if each == "n" else each for each in names]
        self.exchangers[name] = [cell.name if kind == "s" else kind for kind in kinds]
        return found

    # The kernel.

    def array(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        dtype = np.dtype(name.rstrip("_"))
        draw = np.random.default_rng(self.random.getrandbits(32))
        if dtype.kind == "b":
            return draw.integers(0, 2, shape).astype(bool)
        if dtype.kind == "f":
            return (draw.integers(-40, 40, shape) / 8).astype(dtype)
        if dtype.kind == "c":
            return (draw.integers(-8, 8, shape) / 2 + draw.integers(-8, 8, shape) * 0.5j).astype(dtype)
        low = 0 if dtype.kind == "u" else -9
        values = draw.integers(low, 12, shape).astype(dtype)
        info = np.iinfo(dtype)
        edges = draw.random(shape) < 0.08
        return np.where(edges, draw.choice(np.array([info.min, info.max], dtype), shape), values).astype(dtype)

    def laid_out(self, array: np.ndarray) -> np.ndarray:
        """The array in some layout."""
        kind = self.random.random()
        if kind < 0.45:
            return array
        if kind < 0.65 and array.ndim > 1:
            return np.asfortranarray(array)
        if kind < 0.8:  # every other element of a larger one
            wide = np.zeros([2 * extent for extent in array.shape], array.dtype)[(slice(None, None, 2),) * array.ndim]
            wide[...] = array
            return wide
        axes = tuple(self.pick(slice(None), slice(None, None, -1)) for _ in array.shape)
        return array[axes].copy(order=self.pick("C", "F"))[axes]

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

    def arguments(self) -> dict[str, object]:
        size = self.size
        args: dict[str, object] = {}
        for position in range(self.random.randint(2, 4)):
            args[f"x{position}"] = self.laid_out(self.array(self.pick(*TYPES), (size,)))
        for position in range(self.random.randint(1, 3)):
            args[f"p{position}"] = self.scalar()
        args["w"] = self.laid_out(self.array(self.pick(*TYPES), (size, WIDTH)))
        if self.maybe(0.4):
            args["y"] = self.laid_out(self.array(self.pick(*TYPES), (size, WIDTH)))
        if self.maybe(0.4):
            args["g"] = self.laid_out(self.array(self.pick(*TYPES), (size, PLANE_ROWS, WIDTH)))
        if self.maybe(0.4):
            args["zx"] = self.laid_out(self.array(self.pick("complex64", "complex128"), (size,)))
        if self.maybe(0.3):
            args["pz"] = self.pick(1 - 2j, np.complex64(0.5 + 1j), 3j)
        for name, shape in COUNTERS.items():
            if self.maybe(0.35):
                args[name] = self.laid_out(self.array(self.pick(*COUNTER_TYPES), shape))
        args["ob"] = self.array(self.pick(*TYPES), (2 * self.size + 3,))
        args["cw"] = self.array(self.pick(*TYPES), (5, self.size))
        args |= self.arguments_of_edges()
        args |= self.arguments_of_features()
        args["oi"] = np.full((size, COLUMNS), -1, np.int64)
        args["of"] = np.full((size, COLUMNS), -1.0)
        args["oc"] = np.full((size, COLUMNS // 2), -1j)
        return args

    def plan_shared(self) -> None:
        """The shared arrays of a kernel with barriers, and its counters."""
        self.shared.append(Shared("s", self.dtype(), (self.threads,), ("t",)))
        if len(self.block_dim) > 1 and self.maybe(0.6):
            own = ("tz", "ty", "tx")[-len(self.block_dim) :]
            self.shared.append(Shared("u", self.shared_dtype(), self.block_dim[::-1], own))
        if self.maybe(0.5):
            columns = self.pick(*(count for count in (1, 2, 3, 4, 5, 8, 11) if self.threads % count == 0))
            self.shared.append(Shared("h", self.shared_dtype(), (self.threads // columns, columns), ("sr", "sc")))
        if self.maybe(0.5):
            self.tallies.append(("n", self.random.randint(1, 6)))

    def shared_dtype(self) -> np.dtype:
        return np.dtype(self.pick("complex64", "complex128")) if self.maybe(0.25) else self.dtype()

    def program(self) -> Program:
        lines = self.definitions_of_features()
        for _ in range(self.random.randint(0, 3)):
            lines += self.function()
        if self.barriers:
            self.plan_shared()
            if self.maybe(0.5):
                lines += self.exchanger()
        args = self.arguments()
        names = self.functions.names
        args |= {name: args.pop(name) for name in self.named}
        types = {name: type_of_value(instantiate(arg, names)) for name, arg in args.items()}
        parameters = [name for name in args if name not in self.named]
        if "nones" in self.chosen:
            types |= {"dn": NONE, "dk": INT64}
            parameters += ["dn=None", f"dk={self.random.randint(-3, 9)}"]
        if self.named:
            parameters += ["*", *self.named, *(f"{name}={value}" for name, value in self.left_out.items())]
            types |= {name: Scope(self.functions, {}).type_of(value) for name, value in self.left_out.items()}
        scope = Scope(self.functions, dict(types))
        scope.kernel = True
        body = self.start(scope, args)
        target = len(body) + self.random.randint(14, 24)
        for _ in range(self.random.randint(5, 8)):
            if len(body) > target or scope.typer.env is None:
                break
            if self.barriers and self.maybe(0.3):
                body += self.statement(scope, 2, write=self.exchange)
            if "collectives" in self.chosen and scope.typer.env is not None:
                body += self.statement(scope, 2, write=self.collective_statement)
            if self.maybe(0.15):
                body += self.statement(scope, 1, write=lambda each: self.guard_statement(each, 1))
            if self.maybe(0.12):
                together = self.pick(self.strided_statement, self.column_statement)
                body += self.statement(scope, 2, write=together)
            body += self.statement(scope, 2, uniform=self.barriers)
            if self.leaves and self.maybe(0.06):
                body += self.statement(scope, 1, write=lambda s: [f"if {self.condition(s, 1)}:", "    return"])
            if self.maybe(self.extras) and scope.typer.env is not None:
                body += self.statement(scope, 2, write=lambda each: self.extra(each, 1))
        reached = scope.typer.env is not None
        body += self.finish(scope)
        if "returned" in self.chosen and reached:
            body += self.tail()
        if not self.barriers and self.maybe(0.5 if "guards" in self.chosen else 0.05):
            rest = [f"    {line}" for line in body[self.front :]]
            body = [*body[: self.front], f"if {self.front_condition(scope)}:", *rest]
        options = self.options()
        lines += [
            f"@cuda.jit({options})" if options else "@cuda.jit",
            f"def kernel({', '.join(parameters)}):",
            *(f"    {line}" for line in body),
        ]
        head = IMPORTS + HEAD + "\n".join([*self.definitions, "", ""]) if self.definitions else HEAD
        text = head + "\n" + "\n".join(lines) + "\n"
        values = list(args.values())
        named = tuple(self.named)
        return Program(text, types, self.grid, self.block_dim, values, self.functions.kept, self.chosen, named)

    def position(self) -> list[str]:
        """Lines that compute the thread's index: `t` in its block, `i` in the grid."""
        block, many = self.block_dim, max(len(self.grid), len(self.block_dim))
        terms = [
            "cuda.threadIdx.x",
            f"cuda.threadIdx.y * {block[0]}",
            "cuda.threadIdx.z * cuda.blockDim.x * cuda.blockDim.y",
        ]
        lines = [f"t = {' + '.join(terms[: len(block)])}", f"threads = {self.threads}"]
        if many == 1:
            return [*lines, self.pick("i = cuda.grid(1)", "i = t + cuda.blockIdx.x * threads")]
        if self.maybe(0.4):
            terms = [
                "cuda.blockIdx.x",
                "cuda.blockIdx.y * cuda.gridDim.x",
                f"cuda.blockIdx.z * {int(np.prod(self.grid[:2]))}",
            ]
            return [*lines, f"i = t + ({' + '.join(terms[: len(self.grid)])}) * threads"]
        if many == 2:
            width = self.pick("cuda.gridsize(2)[0]", "cuda.gridDim.x * cuda.blockDim.x")
            return [*lines, "gx, gy = cuda.grid(2)", f"i = gx + gy * {width}"]
        lines += ["gx, gy, gz = cuda.grid(3)", "ax, ay, az = cuda.gridsize(3)"]
        return [*lines, self.pick("i = gx + gy * ax + gz * ax * ay", "i = gx + ax * (gy + ay * gz)")]

    def start(self, scope: Scope, args: dict[str, object]) -> list[str]:
        """The start of the kernel: the thread's index, its rows, its shared and local memory."""
        lines = self.position()
        xs = [name for name in args if name.startswith("x") and name != "xh"]  # that one is written
        scope.inputs = [self.pick(f"{x}[i]", f"{x}[i]", f"{x}[-1 - i]", f"{x}[::-1][i]", f"{x}[i:][0]") for x in xs]
        scope.uniform = [name for name in args if name.startswith("p") and name != "pz"]
        scope.inputs += scope.uniform
        if "y" in args:
            column = self.random.randrange(WIDTH)
            scope.inputs.append(
                self.pick(f"y[i, {column}]", f"y[i][::-1][{column}]", f"y.T[{column}, i]", f"y[:, {column}][i]")
            )
            scope.sources = [self.pick("y[i]", "y[i, :]", "y.T[:, i]", "y[i:][0]")]
        scope.counters = [(name, shape) for name, shape in COUNTERS.items() if name in args]
        scope.fixed = {*args, "dn", "dk", *self.left_out}
        if self.barriers:
            lines += self.declare_shared(scope)
        self.front = len(lines)
        if self.leaves and self.maybe(0.5 if "guards" in self.chosen else 0.05):
            lines += [f"if {self.front_condition(scope)}:", "    return"]
        own = name_of(args["w"].dtype)
        if self.maybe(0.35):
            dtype = self.pick(own, self.pick(*TYPES))
            lines += [f"m = cuda.local.array({WIDTH}, np.{dtype})", f"for k in range({WIDTH}):"]
            lines += [f"    m[k] = {self.pick(*scope.inputs)} + k"]
            scope.rows.append("m")
        views = {"w[i]": None, "r": "r = w[i]", "b": "b = w[i, ::-1]", "c": "c = w[i:][0]", "d": "d = w.T[:, i]"}
        chosen = self.pick(*views)
        if views[chosen]:
            lines.append(views[chosen])
        scope.rows.append(chosen)
        if "g" in args:
            plane = self.pick("g[i]", "g[i, :]", "g[i, ::-1]", "g[i:, :, ::-1][0]", "g.T[:, :, i].T", "g[::-1][-1 - i]")
            if self.maybe(0.4):
                lines, plane = [*lines, f"gi = {plane}"], "gi"
            scope.planes.append((plane, PLANE_ROWS))
        self.accept(scope, lines)
        if self.maybe(0.4):
            more = self.local_plane(scope)
            lines += more
        scope.fixed |= set(scope.typer.env)
        if self.maybe(0.3):
            dtype, other = scope.type_of("w").dtype, None
            if scope.rows[0] == "m" and scope.type_of("m").dtype == dtype:
                other = "m"
            one, two = self.pick("w[i]", "w[i, ::-1]", "w.T[:, i]"), other or self.pick("w[i, ::-1]", "w[i:][0]")
            lines += [more := f"q = {one} if {self.condition(scope, 1)} else {two}"]
            self.accept(scope, [more])
            scope.rows.append("q")
            scope.fixed.add("q")
        news = [
            f"{self.fresh('v')} = {self.pick(self.literal(), *scope.inputs)}" for _ in range(self.random.randint(2, 4))
        ]
        if "zx" in args:
            news.append(f"{self.fresh('z')} = {self.pick('zx[i]', 'zx[-1 - i]', 'zx[i::-1][0]')}")
        for more in news:
            lines.append(more)
            self.accept(scope, [more])
        return lines + self.start_features(scope, args)

    def declare_shared(self, scope: Scope) -> list[str]:
        lines: list[str] = []
        for cell in self.shared:
            own = ", ".join(cell.own)
            match cell.name:
                case "u":
                    lines += [f"{name} = cuda.threadIdx.{name[1]}" for name in cell.own]
                case "h":
                    lines.append(f"sr, sc = t // {cell.shape[1]}, t % {cell.shape[1]}")
            shape = cell.shape if len(cell.shape) > 1 else cell.shape[0]
            lines.append(f"{cell.name} = cuda.shared.array({shape}, {self.dtype_text(cell.dtype)})")
            lines.append(f"{cell.name}[{own}] = {self.pick(*scope.inputs)}")
        for name, extent in self.tallies:
            dtype = self.pick(*COUNTER_TYPES)
            lines.append(f"{name} = cuda.shared.array({extent}, np.{dtype})")
            lines += [f"for k in range(t, {extent}, threads):", f"    {name}[k] = k"]
        if "records" in self.chosen:
            lines += [f"sx = cuda.shared.array({self.threads}, REC)", "sx[t] = ra[i]"]
        return [*lines, "cuda.syncthreads()"]

    def local_plane(self, scope: Scope) -> list[str]:
        """A local array of two dimensions with values."""
        rows, dtype = self.random.randint(1, PLANE_ROWS), self.pick(*TYPES)
        lines = [f"m2 = cuda.local.array(({rows}, {WIDTH}), np.{dtype})", f"for j in range({rows}):"]
        value = f"{self.pick(*scope.inputs)} + j * {WIDTH} + k"
        lines += [
            f"    for k in range({WIDTH}):",
            f"        {self.pick('m2[j, k]', 'm2[j][k]', 'm2.T[k, j]')} = {value}",
        ]
        self.accept(scope, lines)
        scope.planes.append(("m2", rows))
        scope.fixed |= {"m2"}
        return lines

    def finish(self, scope: Scope) -> list[str]:
        """Stores the variables."""
        if scope.typer.env is None:
            return []
        lines: list[str] = []
        numbers = [name for name in (*scope.numbers(), *scope.complexes()) if name not in scope.fixed]
        values = [*self.parts(scope, "iufbc"), *numbers]
        for array, kinds in (("oi", "iub"), ("of", "f"), ("oc", "c")):
            many = COLUMNS // 2 if array == "oc" else COLUMNS
            of_kind = [text for text in values if scope.type_of(text).kind in kinds][-many:]
            lines += [f"{array}[i, {position}] = {text}" for position, text in enumerate(of_kind)]
        return lines


def generate(seed: int, features: tuple[str, ...] = FEATURES) -> Program:
    """The program of a seed, with the rare features that are named."""
    for attempt in range(5):  # the start of the kernel may have no type
        try:
            return Generator(seed + (attempt << 40), features).program()
        except TypeError:
            if attempt == 4:
                raise
    raise AssertionError
