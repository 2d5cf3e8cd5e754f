"""Random atomic operations, random numbers, and collective operations of a warp, for `random_programs.py`.

Threads apply only one kind of atomic operation to shared data, so that the result does not depend on their order; old
values are used only of a thread's own data. Lanes read only lanes that exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from generators.random_expressions import INTS, WIDTH
from generators.random_strings import TextWriter
from generators.typed_operations import BITS, DRAWS, LOADS, STEPS, STORES, TOGETHER

if TYPE_CHECKING:
    from collections.abc import Callable

    from generators.random_expressions import Scope

ALL = ("0xFFFFFFFF", "-1", "np.uint32(0xFFFFFFFF)", "np.int32(-1)")
# Atomic operations that many threads may apply to one element, if all apply the same one.
SHARED = {
    "add": (("add", "sub"), "iu"), "max": (("max",), "iuf"), "min": (("min",), "iuf"), "nanmax": (("nanmax",), "iuf"),
    "nanmin": (("nanmin",), "iuf"), "and": (("and_",), "iub"), "or": (("or_",), "iub"), "xor": (("xor",), "iub"),
    "inc": (("inc",), "u"), "dec": (("dec",), "u"),
}  # fmt: skip
TYPES_OF = {"i": INTS[::2], "u": INTS[1::2], "f": ["float32", "float64", "float16"], "b": ["bool_"]}


class OperationWriter(TextWriter):
    """Writes the module's constructs."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.functions.further_atomics = "atomics" in self.chosen
        self.stepped: dict[str, tuple[str, tuple[int, ...]]] = {}  # arrays, their atomic operation, their shapes

    def writers(self, scope: Scope, depth: int) -> dict[str, Callable[[], list[str]]]:
        return super().writers(scope, depth) | {
            "atomics": lambda: self.atomic_statement(scope),
            "draws": lambda: self.draw_statement(scope),
            "warps": lambda: self.lane_statement(scope),
            "bits": lambda: self.bits_statement(scope),
            "faults": lambda: self.fault_statement(scope),
        }

    def arguments_of_features(self) -> dict[str, object]:
        args = super().arguments_of_features()
        if "atomics" in self.chosen:
            for number in range(self.random.randint(2, 4)):
                kind = self.pick(*SHARED)
                dtype = self.pick(*TYPES_OF[self.pick(*SHARED[kind][1])])
                shape = self.pick((5,), (2, 3))
                name = f"as{number}"
                args[name] = self.laid_out(self.array(dtype, shape))
                if dtype.startswith("float"):  # the order of two zeros is unspecified
                    args[name][...] += np.asarray(0.0625, args[name].dtype)
                self.stepped[name] = kind, shape
            args["ao"] = self.laid_out(
                self.array(self.pick(*INTS, "float32", "float64", "float16"), (self.size, WIDTH))
            )
            args["az"] = self.array(self.pick("complex64", "complex128"), (self.size,))
        if "draws" in self.chosen:
            draw = np.random.default_rng(self.random.getrandbits(32))
            words = draw.integers(1, 2**64, (self.size, 2), dtype=np.uint64)
            args["rs"] = words.copy().view(np.dtype([("s0", "u8"), ("s1", "u8")], align=True)).reshape(self.size)
            args["rk"] = self.pick(7, -3, 2**40 + 5, np.uint64(2**63 + 11))
        return args

    # Atomic operations.

    def how(self) -> str:
        """Arguments for memory order and scope."""
        order = f', order="{self.pick("relaxed", "acquire", "release", "acq_rel", "seq_cst")}"' * self.maybe(0.15)
        return order + f', scope="{self.pick("block", "device", "system")}"' * (
            self.maybe(0.1) and self.size == self.threads
        )

    def atomic_statement(self, scope: Scope) -> list[str]:
        if scope.kernel and self.maybe(0.45):
            name = self.pick(*self.stepped)
            kind, shape = self.stepped[name]
            dtype = scope.type_of(name).dtype
            index = ", ".join(self.index(scope, extent) for extent in shape)
            index = f"({index})" if len(shape) > 1 else index
            value = self.expr(scope, 1)
            if dtype.kind == "f":
                value = f"{self.pick('np.int8', 'np.int32', 'np.uint16')}({value}) + 0.375"
            if kind in ("inc", "dec"):  # the result does not depend on the order
                value = str(3 + sum(shape))
            return [f"cuda.atomic.{self.pick(*SHARED[kind][0])}({name}, {index}, {value}{self.how()})"]
        if scope.kernel and self.maybe(0.15):
            if self.maybe(0.5):
                part, name = self.pick("real", "imag"), self.pick("add", "sub", "max", "exch")
                call = f"cuda.atomic.{name}(az.{part}, i, {self.expr(scope, 1)})"
                return [f"{self.target(scope)} = {call} + {self.expr(scope, 0)}"]
            value = f"{self.complex_expr(scope, 1)}{self.how()}"
            return [f"{self.fresh('z')} = cuda.atomic.{self.pick('add', 'sub')}(az, i, {value})"]
        row = "ao[i]" if scope.kernel and (self.maybe(0.5) or not (scope.rows or scope.planes)) else ""
        if not row:
            if not (scope.rows or scope.planes):
                return self.assignment(scope)
            row = self.row(scope)
        return [f"{self.target(scope)} = {self.own_step(scope, row)} {self.pick('+', '-')} {self.expr(scope, 0)}"]

    def own_step(self, scope: Scope, row: str) -> str:
        """An atomic operation on an element of the thread's own."""
        dtype = scope.type_of(row).dtype
        name = self.pick(*(each for each, kinds in STEPS.items() if dtype.kind in kinds))
        index, value = self.index(scope), self.expr(scope, 1)
        if name in ("cas", "compare_and_swap"):
            at = index if name == "cas" else "0"
            old = self.pick(
                f"{row}[{at}]", self.pick("0", "1", "2", "-1", "0.5"), *([value] if dtype.kind != "f" else [])
            )
            rest = f"{old}, {self.expr(scope, 1)}{self.how()})"
            if name == "cas":
                return f"cuda.atomic.cas({row}, {index}, {rest}"
            return f"cuda.atomic.compare_and_swap({row}, {rest}"
        return f"cuda.atomic.{name}({row}, {index}, {value}{self.how()})"

    # Random numbers.

    def draw(self, scope: Scope) -> str:
        """A number that has few values: the sums and products of others would be rounded."""
        name = self.pick(*(each for each in DRAWS if scope.kernel or each.startswith("philox")))
        if name.startswith("philox"):
            seed = self.pick("rk", "7", self.expr(scope, 0, ints=True)) if scope.kernel else "12"
            at = [
                seed,
                self.pick("i" if scope.kernel else "3", self.expr(scope, 0, ints=True)),
                self.expr(scope, 1, ints=True),
            ]
            call = f"cuda.random.{name}({', '.join(at)})"
        else:
            call = f"cuda.random.{name}(rs, {self.pick('i', 'i', 'np.int32(i)')})"
        if name.endswith("x4"):
            call += f"[{self.pick('0', '1', '2', '-1')}]"
        if "uniform" in name:
            return self.pick(f"int({call} * {self.pick('8', '16')})", f"({call} < {self.pick('0.5', '0.25')})")
        return self.pick(
            f"{call} % {self.pick('7', '100', '2')}", f"({call} >> {self.pick('3', '20')})", f"({call} & 15)"
        )

    def draw_statement(self, scope: Scope) -> list[str]:
        if self.maybe(0.2):
            return [f"{self.target(scope)} = {self.draw(scope)} + {self.draw(scope)}"]
        if self.maybe(0.2):
            return [f"if {self.draw(scope)} > 1:", f"    {self.target(scope)} = {self.expr(scope, 1)}"]
        return [f"{self.target(scope)} = {self.draw(scope)} {self.pick('+', '-')} {self.expr(scope, 1)}"]

    # Functions of bits and numbers, and cache operators.

    def bits_statement(self, scope: Scope) -> list[str]:
        kind = self.random.random()
        if kind < 0.2 and (scope.rows or scope.planes):
            row = self.row(scope)
            if kind < 0.1:
                return [f"cuda.{self.pick(*STORES)}({row}, {self.index(scope)}, {self.expr(scope, 1)})"]
            return [
                f"{self.target(scope)} = cuda.{self.pick(*LOADS)}({row}, {self.index(scope)}) + {self.expr(scope, 0)}"
            ]
        if kind < 0.3:
            cast = f"np.{self.pick('float32', 'float64')}"
            one, two = self.expr(scope, 1), self.expr(scope, 1)
            call = f"cuda.fma({cast}({one}), {cast}({self.pick('0.5', '-3', two)}), {cast}({self.expr(scope, 0)}))"
        elif kind < 0.4:
            cast = f"np.{self.pick(*INTS, 'float32', 'float64', 'float16', 'bool_')}"
            one, two = self.expr(scope, 1), self.expr(scope, 1)
            call = f"cuda.selp(bool({self.condition(scope, 1)}), {cast}({one}), {cast}({two}))"
        else:
            name = self.pick("popc", "clz", "ffs", "brev", *BITS)
            cast = f"np.{self.pick(*BITS[name])}"
            args = [f"{cast}({self.expr(scope, 1)})" for _ in range(1 if name in ("popc", "clz", "ffs", "brev") else 3)]
            call = f"cuda.{name}({', '.join(args)})"
        op = self.pick("+", "-", "^") if kind >= 0.4 else "-"
        return [f"{self.target(scope)} = {call} {op} {self.expr(scope, 0, ints=kind >= 0.4)}"]

    # Exceptions of threads.

    def options(self) -> str:
        """How much of an exception is reported to the host: nothing, or all. Indices are always in bounds."""
        if "faults" not in self.chosen:
            return ""
        # A variable without a value reads as zero unless a test for it is enabled.
        able = ["", "boundscheck=True"] + ["exceptions=True", "exceptions=True, boundscheck=True"] * (
            not self.functions.kept
        )
        return self.pick(*able)

    def fault_statement(self, scope: Scope) -> list[str]:
        """A thread that raises something ends."""
        if not self.leaves:
            return self.assignment(scope)
        what = self.pick(
            'ValueError("a fault")', "KeyError(3)", "RuntimeError", 'IndexError("no", 2)', "ArithmeticError()"
        )
        rare = f"{self.pick(*scope.inputs)} == {self.random.randint(-3, 9)}" if scope.inputs else "False"
        return [f"if {self.pick(rare, rare, self.condition(scope, 1))}:", f"    raise {what}"]

    # Warps.

    def exchange(self, scope: Scope) -> list[str]:
        if "warps" in self.chosen and scope.kernel and self.maybe(0.65):
            return self.warp_statement(scope)
        lines = super().exchange(scope)
        if "warps" in self.chosen and self.threads <= 32 and self.maybe(0.4):  # one warp: its lanes are all threads
            lines = [line.replace("cuda.syncthreads()", "cuda.syncwarp()") for line in lines]
        return lines

    def lane_statement(self, scope: Scope) -> list[str]:
        """An expression that a lane computes without the other lanes."""
        name = self.pick("lt", "le", "eq", "ge", "gt")
        op, number = self.pick("&", "+", ">>"), self.expr(scope, 0, ints=True)
        return [f"{self.target(scope)} = cuda.lanemask_{name}() {op} {number}"]

    def lanes(self) -> int:
        """The number of lanes of the warp with the fewest; all other warps are full."""
        return self.threads % 32 or 32

    def widths(self) -> list[int]:
        """The groups of a warp in which all lanes exist."""
        return [width for width in (1, 2, 4, 8, 16, 32) if self.lanes() % width == 0 and width <= self.lanes()]

    def shuffled(self, scope: Scope) -> tuple[str, str]:
        """A value that is shuffled, and a stem for the result's name."""
        kind = self.random.random()
        if kind < 0.15:
            return self.complex_expr(scope, 1), "z"
        if kind < 0.3:
            return f"({self.expr(scope, 1)}, {self.expr(scope, 0)})", "t"
        if kind < 0.45:
            return f"np.{self.pick(*INTS, 'float32', 'float16', 'float64')}({self.expr(scope, 1)})", "v"
        return self.expr(scope, 1), "v"

    def shuffle(self, scope: Scope, value: str, mask: str) -> str:
        lanes, width = self.lanes(), self.pick(*self.widths())
        number = f"{self.expr(scope, 1, ints=True)} % {{}}"
        kind = self.random.random()
        if kind < 0.2:
            return f"cuda.shfl_sync({mask}, {value}, {number.format(lanes)})"
        if kind < 0.35:
            return f"cuda.shfl_sync({mask}, {value}, {number.format(32)}, {width})"
        if kind < 0.55:
            more = self.pick("", f", {self.pick(2, 4, 8, 16, 32)}")
            by = self.pick(str(self.random.randint(0, 9)), number.format(32))
            return f"cuda.shfl_up_sync({mask}, {value}, {by}{more})"
        by = self.pick(str(self.random.randint(0, 5)), number.format(32))
        if kind < 0.75:
            return f"cuda.shfl_down_sync({mask}, {value}, {by}, {width})"
        return f"cuda.shfl_xor_sync({mask}, {value}, {number.format(width)})"

    def warp_statement(self, scope: Scope) -> list[str]:
        """Code that all lanes reach that have not returned."""
        mask, kind = self.pick(*ALL), self.random.random()
        if kind < 0.4 and not self.leaves:
            value, stem = self.shuffled(scope)
            call = self.shuffle(scope, value, mask)
            if stem == "v":
                return [f"{self.target(scope)} = {call} {self.pick('+', '-')} {self.expr(scope, 1)}"]
            return [f"{self.fresh(stem)} = {call}"]
        if kind < 0.5 and not self.leaves:  # past the last lane: the result is not used
            x, by = self.fresh("v"), self.random.randint(1, 9)
            other = self.expr(scope, 1)
            return [f"{x} = cuda.shfl_down_sync({mask}, {self.expr(scope, 1)}, {by})",
                    f"if cuda.laneid + {by} >= {self.lanes()}:", f"    {x} = {other}"]  # fmt: skip
        if kind < 0.6 and not self.leaves:
            width = self.pick(*self.widths())
            steps = [step for step in (16, 8, 4, 2, 1) if step < width]
            if steps:
                x, k = self.fresh("v"), self.fresh("k")
                op = self.pick(f"{x} + other", f"max({x}, other)", f"other - {x}", f"{x} ^ other")
                start = self.expr(scope, 1, ints="^" in op)
                call = f"cuda.shfl_xor_sync({mask}, {x}, {k})"
                return [
                    f"{x} = {start}",
                    f"for {k} in ({', '.join(map(str, steps))},):",
                    f"    {x} = {op.replace('other', call)}",
                ]
        if kind < 0.8:
            return self.divergent(scope, mask)
        return [self.vote(scope, mask)]

    def vote(self, scope: Scope, mask: str) -> str:
        target, test = self.target(scope), self.condition(scope, 1)
        few = f"({self.expr(scope, 1, ints=True)} & {self.pick('1', '3')})"
        word = f"np.{self.pick('int32', 'uint32')}({self.expr(scope, 1)})"
        call = self.pick(
            f"cuda.all_sync({mask}, {test})", f"cuda.any_sync({mask}, {test})", f"cuda.eq_sync({mask}, {test})",
            f"cuda.ballot_sync({mask}, {test})", f"cuda.match_any_sync({mask}, {few})", f"cuda.elect_sync({mask})",
            f"cuda.match_all_sync({mask}, {few})", *(f"cuda.{name}({mask}, {word})" for name in TOGETHER),
        )  # fmt: skip
        if "match_all" in call:
            return f"{target}, {self.fresh('v')} = {call}"
        return f"{target} = {call} {self.pick('+', '-')} {self.expr(scope, 1)}"

    def divergent(self, scope: Scope, mask: str) -> list[str]:
        """Lanes diverge, and those on one path run a collective."""
        kind = self.random.random()
        before: list[str] = []
        if kind < 0.5:
            m, p = self.fresh("m"), self.fresh("v")
            before = [f"{p} = {self.condition(scope, 1)}", f"{m} = cuda.ballot_sync({mask}, {p})"]
            self.accept(scope, before)
            scope.fixed |= {m, p}
            test, one, two = p, m, f"~{m}"
        elif kind < 0.75:
            test, one, two = "cuda.laneid % 2 == 0", "0x55555555", "0xAAAAAAAA"
        else:
            first = self.random.randint(1, 31)
            test, one, two = f"cuda.laneid < {first}", str((1 << first) - 1), f"-{1 << first}"
        lines = [*before, f"if {test}:", *(f"    {line}" for line in self.in_part(scope, one, kind))]
        if self.maybe(0.5):
            lines += ["else:", *(f"    {line}" for line in self.in_part(scope, two, kind))]
        return lines

    def in_part(self, scope: Scope, mask: str, kind: float) -> list[str]:
        """A collective of the lanes in a mask."""
        env, fixed = dict(scope.typer.env), set(scope.fixed)
        lines = self.assignment(scope) if self.maybe(0.5) else []
        self.accept(scope, lines)
        if 0.5 <= kind < 0.75 and not self.leaves and self.lanes() % 4 == 0 and self.maybe(0.6):
            call = f"cuda.shfl_xor_sync({mask}, {self.expr(scope, 1)}, 2)"
            lines.append(f"{self.target(scope)} = {call} + {self.expr(scope, 0)}")
        else:
            lines.append(self.vote(scope, mask))
        scope.typer.env, scope.fixed = env, fixed
        return lines
