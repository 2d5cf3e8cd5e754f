"""Random library functions for `random_programs.py`: those added by `cuda.extending`, and those written in PTX."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import numpy as np

from generators.random_collectives import CollectiveWriter
from generators.random_expressions import INTS, TYPES, WIDTH, Scope
from generators.typed_values import Array

if TYPE_CHECKING:
    from collections.abc import Callable

    from generators.typed_values import Type

IMPORTS = [
    "from weft import types",
    "from weft.cuda.extending import overload, overload_attribute, overload_method, register_jitable",
    "",
    "",
]
TESTS = {
    "isinstance(a, types.Integer)": INTS, "isinstance(a, types.Float)": ["float32", "float64"],
    "isinstance(a, types.Boolean)": ["bool"], "isinstance(a, types.Complex)": ["complex128"],
    "a == types.float64": ["float64"], "a == types.int64 or a == types.uint8": ["int64"],
    "isinstance(a, types.Integer) and not isinstance(b, types.Float)": INTS,
}  # fmt: skip
# Operations on 32-bit integers whose results do not depend on the upper bits: in Python, and in PTX.
WORDS = {"+": "add.s32", "-": "sub.s32", "*": "mul.lo.s32", "&": "and.b32", "|": "or.b32", "^": "xor.b32"}

DECLARED = """@cuda.declare_device("{name}", "int32(int32, int32)", link=cuda.PTXSource(\"\"\"
.version 6.3
.target sm_70
.address_size 64
.visible .func (.param .b32 status) {name}(.param .b64 result, .param .b32 a, .param .b32 b)
{{
    .reg .b64 %at;
    .reg .b32 %r<9>;
    ld.param.u64 %at, [result];
    ld.param.b32 %r0, [a];
    ld.param.b32 %r1, [b];
    {ptx}
    st.b32 [%at], %r{last};
    st.param.b32 [status], 0;
    ret;
}}
\"\"\"))"""


class LibraryWriter(CollectiveWriter):
    """Writes the module's constructs."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.number = self.seed % 10**9  # methods are added to arrays of all programs of a process
        self.chooses: list[str] = []  # functions that have implementations by type
        self.words: list[str] = []  # functions of two integers that are PTX on a GPU

    def writers(self, scope: Scope, depth: int) -> dict[str, Callable[[], list[str]]]:
        return super().writers(scope, depth) | {
            "libraries": lambda: self.library_statement(scope),
            "foreign": lambda: self.foreign_statement(scope),
        }

    def definitions_of_features(self) -> list[str]:
        lines = super().definitions_of_features()
        if "libraries" in self.chosen:
            lines += IMPORTS
            for _ in range(self.random.randint(1, 2)):
                lines += self.overloaded()
            lines += self.added("method")
            lines += self.added("attribute")
        if "foreign" in self.chosen:
            for _ in range(self.random.randint(1, 2)):
                lines += self.foreign()
        return lines

    def defined(self, name: str, parameters: list[str], lines: list[str], types: list[Type]) -> list[str]:
        text = super().defined(name, parameters, lines, types)
        if text and "libraries" in self.chosen and self.maybe(0.5):
            text[0] = "@register_jitable"
        return text

    def body(self, types: dict[str, Type]) -> list[str]:
        """The statements of an implementation."""
        scope = Scope(self.functions, dict(types))
        scope.inputs = [name for name, ty in types.items() if isinstance(ty, np.dtype) and ty.kind != "c"]
        scope.inputs += [f"{name}.imag" for name, ty in types.items() if ty == np.dtype("complex128")]
        scope.rows = [name for name, ty in types.items() if isinstance(ty, Array)]
        scope.inputs += [f"{name}[{self.random.randrange(WIDTH)}]" for name in scope.rows]
        scope.fixed = set(scope.rows)
        lines = self.block(scope, 1, 2) if self.maybe(0.6) else []
        if scope.typer.env is None:
            return ["return 1"]
        return [*(line for line in lines if line != "pass"), f"return {self.expr(scope, 2)}"]

    def choice(self, name: str, head: str, arms: dict[str, dict[str, Type]], last: dict[str, Type]) -> list[str]:
        """A function that returns the implementation for its argument types; `arms` has their conditions."""
        lines = [f"def {name}({head}):"]
        for test, types in arms.items():
            lines += [f"    if {test}:", "", f"        def of_it({head}):"]
            lines += [*(f"            {line}" for line in self.body(types)), "", "        return of_it"]
        lines += ["", f"    def of_it({head}):", *(f"        {line}" for line in self.body(last)), ""]
        return [*lines, "    return of_it", "", ""]

    def keep(self, lines: list[str]) -> list[str]:
        self.functions.library.takes(ast.parse("\n".join(lines)).body[0])
        return lines

    def overloaded(self) -> list[str]:
        name = f"ov{len(self.chooses)}"
        tests = self.random.sample(list(TESTS), self.random.randint(1, 3))
        more = {"b": np.dtype(self.pick("int64", "float64")), "c": np.dtype("int64")}
        arms = {test: {"a": np.dtype(self.pick(*TESTS[test])), **more} for test in tests}
        head = f"a, b, c={self.random.randint(-2, 5)}"
        chosen = self.choice(f"{name}_choice", head, arms, {"a": np.dtype("int64"), **more})
        self.chooses.append(name)
        return [f"def {name}({head}):", "    return None", "", "", *self.keep([f"@overload({name})", *chosen])]

    def added(self, kind: str) -> list[str]:
        """A method or an attribute of arrays."""
        name = {"method": "om", "attribute": "oa"}[kind] + str(self.number)
        head = "a, k" if kind == "method" else "a"
        more = {"k": np.dtype("int64")} if kind == "method" else {}
        floats, whole = ({"a": Array(np.dtype(each), 1), **more} for each in ("float64", self.pick(*INTS)))
        test = self.pick("isinstance(a.dtype, types.Float)", "not isinstance(a.dtype, types.Integer)")
        chosen = self.choice(f"{name}_choice", head, {test: floats}, whole)
        return self.keep([f'@overload_{kind}(types.Array, "{name}")', *chosen])

    def library_statement(self, scope: Scope) -> list[str]:
        kind = self.random.random()
        if not self.chooses:  # while the first is written
            return self.assignment(scope)
        if kind < 0.6 or not (scope.rows or scope.planes):
            first = self.pick(self.expr(scope, 1), f"np.{self.pick(*TYPES)}({self.expr(scope, 0)})", "1.5j")
            third = self.pick("", f", {self.expr(scope, 0)}", f", c={self.expr(scope, 0)}")
            call = f"{self.pick(*self.chooses)}({first}, {self.expr(scope, 1)}{third})"
        elif kind < 0.8:
            call = f"{self.row(scope)}.om{self.number}({self.expr(scope, 1)})"
        else:
            call = f"{self.row(scope)}.oa{self.number}"
        return [f"{self.target(scope)} = {call} {self.pick('+', '-')} {self.expr(scope, 1)}"]

    # Functions that are PTX.

    def foreign(self) -> list[str]:
        """Steps of two integers, in Python and in PTX."""
        name, first = f"fw{len(self.words)}", self.maybe(0.5)
        values, steps, lines = ["a", "b"], [], []
        register = (lambda at: f"%{at + 1}" if at < 2 else f"t{at}") if first else (lambda at: f"%r{at}")
        if self.maybe(0.4):
            of = self.pick("min", "max")
            lines.append(f"v2 = {of}(a, b)")
            steps.append(f"{of}.s32 {register(2)}, {register(0)}, {register(1)};")
            values.append("v2")
        for at in range(len(values), len(values) + self.random.randint(1, 4)):
            op, one = self.pick(*WORDS), self.random.randrange(at)
            two, number = self.random.randrange(at), self.random.randint(-9, 99)
            known = self.maybe(0.3)
            lines.append(f"v{at} = {values[one]} {op} {number if known else values[two]}")
            steps.append(f"{WORDS[op]} {register(at)}, {register(one)}, {number if known else register(two)};")
            values.append(f"v{at}")
        last = len(values) - 1
        python = [f"def {name}(a, b):", *(f"    {line}" for line in lines), f"    return {values[last]}"]
        if first:
            names = ", ".join(register(at) for at in range(2, last + 1))
            ptx = f"{{ .reg .b32 {names}; {' '.join(steps)} mov.b32 %0, {register(last)}; }}"
            head = [f'@cuda.intrinsic("int32(int32, int32)", "{ptx}"{self.pick("", ", pure=True")})']
        else:
            head = DECLARED.format(name=name, ptx="\n    ".join(steps), last=last).split("\n")
        node = ast.parse("\n".join([*head, *python])).body[0]
        self.functions.library.takes(node)
        self.functions.sources[name] = node
        self.words.append(name)
        return [*head, *python, "", ""]

    def foreign_statement(self, scope: Scope) -> list[str]:
        cast = [f"np.{self.pick(*INTS[:7])}" for _ in range(2)]
        args = ", ".join(f"{each}({self.expr(scope, 1)})" for each in cast)
        if not self.words:
            return self.assignment(scope)
        return [f"{self.target(scope)} = {self.pick(*self.words)}({args}) {self.pick('+', '^')} "
                f"{self.expr(scope, 0, ints=True)}"]  # fmt: skip
