"""Random expressions for `random_programs.py`."""

from __future__ import annotations

import ast
import functools
import random
import re
from typing import TYPE_CHECKING

import numpy as np

from generators.random_constants import spelled
from generators.typed_rewrite import Functions, Typer
from generators.typed_values import Named

if TYPE_CHECKING:
    from generators.typed_values import Type

INTS = "int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()
TYPES = [*INTS, "float32", "float64", "bool_"]
CASTS = [*(f"np.{name}" for name in TYPES), "int", "float", "bool", "abs", "round"]
WIDTH = 4  # of the rows that each thread owns
PLANE_ROWS = 3  # of the planes that functions take


@functools.cache
def parsed(text: str) -> tuple[ast.expr, tuple[str, ...]]:
    """An expression and the names in it."""
    return ast.parse(text, mode="eval").body, tuple(dict.fromkeys(re.findall(r"[A-Za-z_]\w*", text)))


class Scope:
    """Data that the statements of one function can use, and its types at this point."""

    def __init__(self, functions: Functions, env: dict[str, Type]) -> None:
        self.typer = Typer(functions, env)
        self.types: dict[tuple, Type | TypeError] = {}  # of expressions where variables have some types
        self.inputs: list[str] = []  # expressions of numbers that are unknown before the launch
        self.uniform: list[str] = []  # those of them that are uniform
        self.rows: list[str] = []  # expressions of writable rows of WIDTH elements
        self.planes: list[tuple[str, int]] = []  # of writable planes of some rows of WIDTH elements
        self.sources: list[str] = []  # of rows of WIDTH elements that are never written
        self.counters: list[tuple[str, tuple[int, ...]]] = []  # integer arrays that all threads add to; shapes
        self.fixed: set[str] = set()  # names that are not assigned
        self.kernel = False
        self.exits: list[str] = []  # statements that leave the current iteration of the innermost loop

    def type_of(self, text: str) -> Type:
        """The type of an expression. Names that it binds are not added to the scope."""
        before = self.typer.env
        tree, names = parsed(text)
        key = text, tuple([before.get(name) for name in names]), tuple([before.get(f"={name}") for name in names])
        if key not in self.types:
            self.typer.env = dict(before)
            try:
                self.types[key] = self.typer.expr(tree)[0]
            except TypeError as error:
                self.types[key] = error
            finally:
                self.typer.env = before
        if isinstance(found := self.types[key], TypeError):
            raise found
        return found

    def is_int(self, text: str) -> bool:
        """Whether an expression is an integer."""
        ty = self.type_of(text)
        return isinstance(ty, np.dtype) and ty.kind in "iu"

    def numbers(self) -> list[str]:
        return [name for name, ty in self.typer.env.items() if isinstance(ty, np.dtype) and ty.kind in "iufb"]

    def complexes(self) -> list[str]:
        return [name for name, ty in self.typer.env.items() if isinstance(ty, np.dtype) and ty.kind == "c"]

    def tuples(self) -> list[str]:
        return [name for name, ty in self.typer.env.items() if isinstance(ty, tuple) and not isinstance(ty, Named)]

    def objects(self) -> list[str]:
        """Named tuples, dataclasses and vectors."""
        return [name for name, ty in self.typer.env.items() if isinstance(ty, Named)]

    def variables(self) -> list[str]:
        """Real numbers that may be assigned."""
        return [name for name in self.numbers() if name not in self.fixed]


class ExpressionWriter:
    """Writes expressions; the device functions that they may call are `functions`."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.spelling = random.Random(seed ^ 0x1F83D9ABFB41BD6B)  # separate: spelling does not change the program
        self.functions = Functions({})
        self.count = 0
        self.in_index = False  # nested indices are constants only
        self.kinds: dict[str, list[str]] = {}  # of the parameters of each function: number, complex, row, ...
        self.calling = self.pick(0.02, 0.05, 0.25)  # how often an operation is a call

    def pick(self, *options):
        return self.random.choice(options)

    def maybe(self, chance: float) -> bool:
        return self.random.random() < chance

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def literal(self) -> str:
        kind = self.random.random()
        if kind < 0.55:
            return self.spelled(self.random.randint(-3, 9))
        if kind < 0.85:
            return self.spelled(self.random.randint(-20, 40) / 8)
        if kind < 0.9:
            return self.spelled(self.pick(True, False))
        return self.typed_literal()

    def spelled(self, value: bool | int | float) -> str:
        """A literal, or a constant expression that Python's compiler folds to one."""
        return spelled(self.spelling, value) if self.spelling.random() < 0.15 else repr(value)

    def constant(self) -> str:
        """A literal, or a constant expression."""
        return self.literal()

    def typed_literal(self) -> str:
        name = self.pick(*TYPES)
        if name == "bool_":
            return f"np.bool_({self.pick('True', 'False')})"
        if name.startswith("float"):
            return f"np.{name}({self.random.randint(-20, 40) / 8!r})"
        return f"np.{name}({self.random.randint(0, 9)})"

    def leaf(self, scope: Scope) -> str:
        if self.maybe(0.5) and (numbers := scope.variables() if self.maybe(0.8) else scope.numbers()):
            return self.pick(*numbers)
        if self.maybe(0.15) and (parts := self.parts(scope)):
            return self.pick(*parts)
        if (scope.rows or scope.planes) and self.maybe(0.25):
            return self.element(scope)
        if scope.inputs and self.maybe(0.6):
            return self.pick(*scope.inputs)
        return self.constant()

    def index(self, scope: Scope, extent: int = WIDTH) -> str:
        """An index into this number of elements: from either end, constant or not."""
        if self.maybe(0.6) or self.in_index:
            return str(self.random.randint(-extent, extent - 1))
        self.in_index = True
        number = self.expr(scope, 1, ints=True)
        self.in_index = False
        text = self.pick(f"{number} % {extent}", f"-({number} % {extent}) - 1")
        if extent == WIDTH and self.maybe(0.3):
            text = f"{number} & {WIDTH - 1}"
        name = self.pick(*INTS)
        if text.startswith("-"):
            name = name.removeprefix("u")
        return self.pick(text, f"np.{name}({text})")

    def expr(self, scope: Scope, depth: int, *, ints: bool = False) -> str:
        """The text of a number, in parentheses if it needs them."""
        for _ in range(20):
            text = self.leaf(scope) if depth <= 0 else self.operation(scope, depth, ints)
            try:
                ty = scope.type_of(text)
            except TypeError:
                continue
            if isinstance(ty, np.dtype) and ty.kind in ("iu" if ints else "iufb"):
                return text
        return f"np.int32({self.random.randint(0, 9)})" if ints else self.literal()

    def operation(self, scope: Scope, depth: int, ints: bool) -> str:
        def sub(**kinds):
            return self.expr(scope, depth - 1 - self.maybe(0.3), **kinds)

        if self.kinds and self.maybe(self.calling):
            return self.call(scope, depth)
        kind = self.random.random()
        if kind < 0.03:
            return self.leaf(scope)
        if kind < 0.05:
            return self.from_complex(scope, depth)
        if kind < 0.08:
            names = scope.variables()
            return f"({self.pick(*names)} := {sub(ints=ints)})" if names else self.leaf(scope)
        if kind < 0.42:
            op = self.pick("+", "-", "+", "-", "*", "//", "%", *([] if ints else ["/"]))
            left, right = sub(ints=ints), sub(ints=ints)
            if op == "*" and not ints:
                right = self.pick("2.0", "0.5", "np.float32(0.25)", "-1", "4", "np.float32(-2.0)", right)
                product = scope.type_of(f"({left}) * ({right})")
                if product.kind == "f" and right == left:
                    right = "2"
            return f"({left} {op} {right})"
        if kind < 0.52:
            left, right = sub(ints=True), sub(ints=True)
            return f"({left} {self.pick('&', '|', '^', '<<', '>>')} {right})"
        if kind < 0.57:
            if ints or self.maybe(0.6):
                return f"({sub(ints=True)} ** {self.pick('0', '1', '2', '3', f'({sub(ints=True)} & 3)')})"
            known = self.pick("0", "1", "2", "3", "-1", "-2", "9", "-3")
            return f"({self.leaf(scope)} ** {self.pick(known, known, f'({sub(ints=True)} & 3)')})"
        if kind < 0.65:
            op = self.pick("-", "+", "~")
            return f"({op}{sub(ints=ints or op == '~')})"
        if kind < 0.73:
            return f"({sub(ints=ints)} if {self.condition(scope, depth - 1)} else {sub(ints=ints)})"
        if kind < 0.83:
            cast = self.pick(*(f"np.{name}" for name in INTS), "abs", "int") if ints else self.pick(*CASTS)
            return f"{cast}({sub()})"
        if kind < 0.89:
            more = [sub(ints=ints) for _ in range(self.random.randint(2, 3))]
            return f"{self.pick('min', 'max')}({', '.join(more)})"
        if kind < 0.93 and scope.inputs:
            return f"({self.pick(*scope.inputs)} {self.pick('and', 'or')} {sub(ints=ints)})"
        if kind < 0.95 and (scope.rows or scope.planes):
            return self.own_atomic(scope, depth)
        if kind < 0.97:
            return self.from_tuple(scope, depth)
        return f"({self.condition(scope, depth - 1)})" if not ints else sub(ints=True)

    def argument(self, scope: Scope, kind: str, depth: int) -> str | None:
        """An argument for a parameter; None if there is nothing of its kind."""
        match kind:
            case "row":
                return self.row(scope) if scope.rows or scope.planes else None
            case "plane":
                planes = [text for text, rows in scope.planes if rows == PLANE_ROWS]
                return self.pick(*planes) if planes else None
            case "counters":
                counters = [name for name, shape in scope.counters if len(shape) == 1]
                return self.pick(*counters) if counters else None
            case "complex":
                return self.complex_expr(scope, depth)
            case "pair":
                pairs = [name for name in scope.tuples() if self.is_pair(scope.typer.env[name])]
                if pairs and self.maybe(0.5):
                    return self.pick(*pairs)
                return f"({self.expr(scope, depth)}, {self.expr(scope, depth)})"
        return self.expr(scope, depth)

    @staticmethod
    def is_pair(ty: Type) -> bool:
        return isinstance(ty, tuple) and [isinstance(item, np.dtype) and item.kind != "c" for item in ty] == [True] * 2

    def call_of_any(self, scope: Scope, depth: int) -> tuple[str, Type] | None:
        """A call of a device function and its type."""
        name = self.pick(*self.kinds)
        definition = self.functions.sources[name]
        parameters = [arg.arg for arg in definition.args.args]
        required = len(parameters) - len(definition.args.defaults)
        given = parameters[: self.random.randint(required, len(parameters))]
        args = [self.argument(scope, kind, depth - 1) for _, kind in zip(given, self.kinds[name], strict=False)]
        if None in args:
            return None
        positional = self.random.randint(0, len(given))
        named = [f"{key}={value}" for key, value in zip(given[positional:], args[positional:], strict=True)]
        self.random.shuffle(named)
        text = f"{name}({', '.join([*args[:positional], *named])})"
        try:
            return text, scope.type_of(text)
        except (TypeError, RecursionError):
            return None

    def call(self, scope: Scope, depth: int, kinds: str = "iufb") -> str:
        """A call of a device function, by itself a number if it returns a tuple; or a leaf."""
        called = self.call_of_any(scope, depth)
        paths = self.paths(*called, kinds) if called else []
        return self.pick(*paths) if paths else self.leaf(scope) if "i" in kinds else self.complex_leaf(scope)

    @staticmethod
    def link(leaf: str, left: str, op: str, right: str) -> str:
        """A comparison in a chain. If it were constant, the whole chain would be, and a type would be dropped."""
        return f"{left} {op} {right if leaf in left or leaf in right else leaf}"

    def condition(self, scope: Scope, depth: int, *, uniform: bool = False) -> str:
        """A bool that depends on an argument."""
        inputs = scope.uniform if uniform else scope.inputs

        def number():
            return self.literal() if uniform else self.expr(scope, depth)

        kind = self.random.random()
        leaf = self.pick(*inputs)
        if kind < 0.15 and depth > 0:
            op = self.pick("and", "or")
            again = [self.condition(scope, depth - 1, uniform=uniform) for _ in range(self.random.randint(2, 3))]
            return f"({f' {op} '.join(again)})"
        if kind < 0.22:
            return f"not {self.pick(leaf, '(' + self.condition(scope, depth - 1, uniform=uniform) + ')')}"
        if kind < 0.27:
            one, link = self.pick("<", "<=", "!=", ">"), self.link(leaf, number(), self.pick("<", ">=", "=="), number())
            return f"({leaf} {one} {link})"
        if kind < 0.3:
            first, one = number(), self.pick("<", "!=", ">")
            return f"({first} <= {leaf} {one} {self.link(leaf, number(), self.pick('<', '>='), number())})"
        if kind < 0.34 and not uniform:
            return self.truth(scope, leaf, depth)
        comparison = self.pick("<", "<=", ">", ">=", "==", "!=")
        if self.maybe(0.5):
            return f"{leaf} {comparison} {number()}"
        return f"{number()} {comparison} {leaf}"
