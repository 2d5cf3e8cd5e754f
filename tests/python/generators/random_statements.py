"""Random statements for `random_programs.py`."""

from __future__ import annotations

import ast

import numpy as np

from generators.random_expressions import INTS, TYPES, Scope
from generators.random_memory import MemoryWriter
from generators.typed_constants import bind
from generators.typed_values import NOTHING, Type


class StatementWriter(MemoryWriter):
    """Writes statements, as lists of lines."""

    extras = 0.0  # how often a statement is followed by one of the rare features

    def block(self, scope: Scope, depth: int, most: int, *, uniform: bool = False) -> list[str]:
        """Statements that have types; afterwards the scope describes the point after them."""
        lines: list[str] = []
        for _ in range(self.random.randint(1, most)):
            if scope.typer.env is None:
                break
            lines += self.statement(scope, depth, uniform=uniform)
            if self.maybe(self.extras) and scope.typer.env is not None:
                lines += self.statement(scope, depth, write=lambda each: self.extra(each, depth - 1))
        return lines or ["pass"]

    def extra(self, scope: Scope, depth: int) -> list[str]:
        """A statement of one of the program's rare features."""
        return self.assignment(scope)

    def statement(self, scope: Scope, depth: int, *, uniform: bool = False, write=None) -> list[str]:
        """A statement, of any kind unless `write(scope)` writes it."""
        for _ in range(8):
            before = dict(scope.typer.env)
            rows, exits = list(scope.rows), list(scope.exits)
            try:
                lines = write(scope) if write else self.any_statement(scope, depth, uniform)
                # The statements were typed one by one; this types them as a whole, with their loops.
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
        """Types lines and adds the names that they define to the scope."""
        wrapper = ast.parse("\n".join(lines) + "\n").body
        scope.typer.block(wrapper)

    def any_statement(self, scope: Scope, depth: int, uniform: bool) -> list[str]:
        kind = self.random.random()
        if depth > 0 and kind < 0.18:
            return self.if_statement(scope, depth)
        if depth > 0 and kind < 0.31:
            return self.for_statement(scope, depth)
        if depth > 0 and kind < 0.4:
            return self.while_statement(scope, depth)
        if uniform and kind < 0.5:
            return self.exchange(scope)
        if uniform and depth > 0 and kind < 0.56:
            return self.uniform_statement(scope, depth)
        if scope.kernel and depth > 0 and kind < 0.58:
            return self.strided_statement(scope) if self.maybe(0.5) else self.column_statement(scope)
        if scope.kernel and depth > 0 and kind < 0.6:
            return self.guard_statement(scope, depth)
        if scope.exits and kind < 0.62:
            return [f"if {self.condition(scope, 1)}:", f"    {self.pick(*scope.exits)}"]
        if (scope.rows or scope.planes) and kind < 0.7:
            return self.row_statement(scope)
        if scope.counters and kind < 0.73:
            return self.count_statement(scope)
        if self.kinds and kind < 0.75:
            return self.call_statement(scope)
        if kind < 0.81:
            return self.complex_assignment(scope)
        if kind < 0.87:
            return self.tuple_assignment(scope)
        return self.assignment(scope)

    def call_statement(self, scope: Scope) -> list[str]:
        """Calls a function, perhaps one that returns nothing."""
        called = self.call_of_any(scope, 2)
        if not called:
            return self.assignment(scope)
        text, ty = called
        if ty != NOTHING and isinstance(ty, tuple) and self.maybe(0.6):
            return self.unpack(scope, text, ty)
        return [text]

    def complex_assignment(self, scope: Scope) -> list[str]:
        names = [name for name in scope.complexes() if name not in scope.fixed]
        if len(names) > 1 and self.maybe(0.1):
            a, b = self.random.sample(names, 2)
            return [f"{a}, {b} = {b}, {self.complex_expr(scope, 1)}"]
        if names and self.maybe(0.3):
            value = self.complex_expr(scope, 1)
            return [f"{self.pick(*names)} {self.pick('+= ' + value, '-= ' + value, '*= 2', '*= 1j', '/= 2')}"]
        name = self.pick(*names) if names and self.maybe(0.6) else self.fresh("z")
        return [f"{name} = {self.complex_expr(scope, self.random.randint(1, 3))}"]

    def tuple_assignment(self, scope: Scope) -> list[str]:
        names = [name for name in scope.tuples() if name not in scope.fixed]
        if names and self.maybe(0.35):
            name = self.pick(*names)
            return self.unpack(scope, name, scope.typer.env[name])
        if names and self.maybe(0.5):  # a value of the same form, which may have other types
            name = self.pick(*names)
            again = self.like(scope, scope.typer.env[name])
            if self.maybe(0.3):
                again = f"({again} if {self.condition(scope, 1)} else {name})"
            return [f"{name} = {again}"]
        return [f"{self.fresh('t')} = {self.tuple_expr(scope, 1)}"]

    def like(self, scope: Scope, ty: Type) -> str:
        """An expression of a type's form."""
        if isinstance(ty, tuple):
            return f"({''.join(self.like(scope, item) + ', ' for item in ty)})"
        return self.complex_expr(scope, 1) if ty.kind == "c" else self.expr(scope, 1)

    def unpack(self, scope: Scope, text: str, ty: tuple) -> list[str]:
        taken: set[str] = set()

        def place(item: Type) -> str:
            if isinstance(item, tuple):
                return f"({''.join(place(each) + ', ' for each in item)})"
            if item.kind == "c":
                return self.fresh("z")
            name = self.element(scope) if scope.rows and self.maybe(0.25) else self.target(scope)
            if name in taken:
                name = self.fresh("v")
            taken.add(name)
            return name

        return [f"{place(ty)[1:-2]} = {text}"]

    def target(self, scope: Scope) -> str:
        names = scope.variables()
        return self.pick(*names) if names and self.maybe(0.7) else self.fresh("v")

    def assignment(self, scope: Scope) -> list[str]:
        kind = self.random.random()
        names = scope.variables()
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
        if kind < 0.3:
            return [f"{self.element(scope)} = {self.expr(scope, 2)}"]
        if kind < 0.5:
            return self.views_statement(scope)
        if kind < 0.8:
            op = self.pick("+", "-", "+", "//", "%", "&", "|", "^", "/")
            return [f"{self.element(scope)} {op}= {self.expr(scope, 1)}"]
        if kind < 0.9:
            a, b = self.element(scope), self.element(scope)
            return [f"{a}, {b} = {b}, {a}"]
        name, row = self.fresh("v"), self.row(scope)
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
        if self.maybe(0.2) and scope.kernel and self.leaves:
            lines += [f"    {self.pick('return', 'pass')}"]
        return lines

    def place_condition(self, scope: Scope) -> str:
        """A condition on the thread's position and uniform values. The CPU back end moves it into loop bounds."""
        parts = []
        for _ in range(self.random.randint(1, 3)):
            place, limit = self.guarded_place()
            text = f"{place} {self.pick('<', '<=', '>', '>=', '==', '!=')} {limit}"
            if self.maybe(0.4):
                text = self.condition(scope, 0, uniform=True)
            parts.append(self.pick(text, text, text, f"not {text}"))
        return self.pick(" and ", " and ", " or ").join(parts)

    def guarded_place(self) -> tuple[str, str]:
        """The thread's position, and the value that it is compared with."""
        place = self.pick("t", "i", "cuda.threadIdx.x", "cuda.threadIdx.y", "t + 1", "i - 2")
        return place, str(self.random.randint(-1, self.threads + 2))

    def guard_statement(self, scope: Scope, depth: int) -> list[str]:
        """Threads continue or return, depending on their positions."""
        condition = self.place_condition(scope)
        if self.leaves and self.maybe(0.4):
            return [f"if {condition}:", "    return"]
        return [f"if {condition}:", *self.nested(scope, depth)]

    def bound(self, scope: Scope, *, uniform: bool) -> str:
        """A number from 0 to 4."""
        if self.maybe(0.4):
            return str(self.random.randint(0, 4))
        options = [text for text in (scope.uniform if uniform else scope.inputs) if scope.is_int(text)]
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
        if self.maybe(0.3):
            one, two, three = (self.pick("int32", "uint8", *INTS) for _ in range(3))
            if self.maybe(0.6):
                two = three = one
            step = self.pick("1", "2", f"{b} + 1") if three[0] == "u" else self.pick("1", "3", "-1", "-2", f"-1 - {b}")
            text = self.pick(
                f"range(np.{one}({b}))",
                f"range(np.{one}({a}), np.{two}({b}))",
                f"range(np.{one}({a}), np.{two}({b}), np.{three}({step}))",
            )
        return text

    def loop(
        self,
        scope: Scope,
        depth: int,
        name: str,
        head: str,
        ty: Type,
        *,
        first: str = "",
        endless: bool = False,
        also: dict[str, Type] | None = None,
    ) -> list[str]:
        """A loop around a block in which `name` counts."""
        env, fixed, exits = dict(scope.typer.env), set(scope.fixed), scope.exits
        for each, its in {name: ty, **(also or {})}.items():
            bind(scope.typer.env, each, its)
        if first:
            scope.fixed.add(name)
        scope.exits = ["break", "continue", *(["return"] if scope.kernel and self.leaves and self.maybe(0.2) else [])]
        scope.typer.loops.append(([], []))
        body = self.nested(scope, depth)
        scope.typer.loops.pop()
        scope.typer.env, scope.fixed, scope.exits = env, fixed, exits
        lines = [head, *([f"    {first}"] if first else []), *body]
        if self.maybe(0.3) and not endless:
            lines += ["else:", *self.nested(scope, depth - 1)]
        return lines

    def for_statement(self, scope: Scope, depth: int) -> list[str]:
        numbers = scope.variables()
        name = self.pick(*numbers) if numbers and self.maybe(0.15) else self.fresh("k")
        kind = self.random.random()
        if kind < 0.12:
            items = [self.expr(scope, 1) for _ in range(self.random.randint(1, 3))]
            cast = self.pick(*(f"np.{each}" for each in TYPES))
            many = f"({', '.join(f'{cast}({item})' for item in items)},)"
            return self.loop(scope, depth, name, f"for {name} in {many}:", scope.type_of(many)[0])
        if kind < 0.24 and (scope.rows or scope.planes):
            row = self.row(scope)
            return self.loop(scope, depth, name, f"for {name} in {row}:", scope.type_of(row).dtype)
        text = self.range_of(scope, uniform=False)
        return self.loop(scope, depth, name, f"for {name} in {text}:", np.dtype("int64"))

    def while_statement(self, scope: Scope, depth: int) -> list[str]:
        name = self.fresh("n")
        start = f"{name} = {self.pick('0', 'np.int32(0)', 'np.uint8(0)', '0.0')}"
        self.accept(scope, [start])
        bind(scope.typer.env, name, np.dtype("int64" if ".0" not in start else "float64"))
        if self.maybe(0.25):  # left by a break at either end
            limit = self.bound(scope, uniform=False)
            if (start, limit) == (f"{name} = 0", "0"):  # the exit in the first iteration is a constant, as below
                limit = "1"
            leave = [f"    if {name} > {limit}:", "        break"]
            lines = self.loop(
                scope, depth, name, "while True:", scope.typer.env[name], first=f"{name} += 1", endless=True
            )
            after = 2 if self.maybe(0.6) or "    continue" in "\n".join(lines) else len(lines)
            return [start, *lines[:after], *leave, *lines[after:]]
        test = f"{name} < {self.bound(scope, uniform=False)}"
        if (start, test) == (f"{name} = 0", f"{name} < 0"):  # constant false: the loop would be dropped, with its types
            test = f"{name} < 1"
        if self.maybe(0.4):
            scope.fixed.add(name)
            condition = self.condition(scope, 1)
            scope.fixed.discard(name)
            test = self.pick(f"{test} and {condition}", f"{condition} and {test}")
        return [
            start,
            *self.loop(scope, depth, name, f"while {test}:", scope.typer.env[name], first=f"{name} += 1"),
        ]

    def uniform_statement(self, scope: Scope, depth: int) -> list[str]:
        """A uniform branch or loop with barriers in it."""
        if self.maybe(0.5):
            lines = [f"if {self.condition(scope, 1, uniform=True)}:", *self.nested(scope, depth, uniform=True)]
            if self.maybe(0.6):
                lines += ["else:", *self.nested(scope, depth, uniform=True)]
            return lines
        env, fixed = dict(scope.typer.env), set(scope.fixed)
        name = self.fresh("k")
        text = self.range_of(scope, uniform=True)
        bind(scope.typer.env, name, np.dtype("int64"))
        body = self.nested(scope, depth, uniform=True)
        if self.maybe(0.3):
            turns = f"{name} < {self.bound(scope, uniform=True)}"
            count, start = self.fresh("n"), self.pick("0", "np.int32(0)", "np.uint8(0)")
            if (start, turns) == ("0", f"{name} < 0"):
                turns = f"{name} < 1"
            scope.typer.env, scope.fixed = env, fixed
            lines = [f"{count} = {start}", f"while {turns.replace(name, count)}:", f"    {count} += 1"]
            return [*lines, f"    {name} = {count}", *body]
        if self.maybe(0.3):
            leave = [f"    if {self.condition(scope, 0, uniform=True)}:", f"        {self.pick('break', 'continue')}"]
            body = [*leave, *body] if self.maybe(0.5) else [*body, *leave]
        scope.typer.env, scope.fixed = env, fixed
        return [f"for {name} in {text}:", *body]
