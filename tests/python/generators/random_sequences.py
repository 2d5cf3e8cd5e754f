"""Random loops over `enumerate`, `zip`, `reversed` and ranges that are values, loops over tuples of several types,
functions inside of functions, starred targets and items, comprehensions, `match` and float16, for `random_programs.py`.
"""

from __future__ import annotations

import numpy as np

from generators.random_expressions import TYPES, Scope
from generators.random_integer_limits import EdgeWriter
from generators.typed_sequences import item_type
from generators.typed_values import Closure, Sequence, Type


class SequenceWriter(EdgeWriter):
    """Writes the module's constructs."""

    chosen: tuple[str, ...] | list[str] = ()
    inside = False  # of a function that is inside of another

    def writers(self, scope: Scope, depth: int) -> dict:
        blocks = {
            "sequences": lambda: self.sequence_statement(scope, depth),
            "mixed": lambda: self.mixed_statement(scope),
            "closures": lambda: self.closure_statement(scope),
            "matches": lambda: self.match_statement(scope),
        }
        if depth < 0:
            blocks = dict.fromkeys(blocks, lambda: self.assignment(scope))
        return super().writers(scope, depth) | blocks | {"stars": lambda: self.star_statement(scope)}

    def pick(self, *options):
        found = super().pick(*options)
        if isinstance(found, str) and found in ("float32", "np.float32") and "halves" in self.chosen:
            return found.replace("32", "16") if self.maybe(0.6) else found
        return found

    def leaf(self, scope: Scope) -> str:
        closures = [(name, ty) for name, ty in scope.typer.env.items() if isinstance(ty, Closure)]
        if closures and self.maybe(0.12):
            return self.closure_call(scope, *self.pick(*closures))
        return super().leaf(scope)

    # Loops.

    def one_sequence(self, scope: Scope, depth: int = 1) -> str:
        """An iterable whose items have one type."""
        kind = self.random.random()
        ranges = [name for name, ty in scope.typer.env.items() if isinstance(ty, Sequence) and ty.kind == "range"]
        if depth > 0 and kind < 0.2:
            start = self.pick("", "", f", {self.expr(scope, 0, ints=True)}", f", start={self.random.randint(-3, 9)}")
            return f"enumerate({self.one_sequence(scope, depth - 1)}{start})"
        if depth > 0 and kind < 0.4:
            parts = [self.one_sequence(scope, depth - 1) for _ in range(self.pick(1, 2, 2, 2, 3))]
            return f"zip({', '.join(parts)})"
        if kind < 0.5:
            return f"reversed({self.plain_sequence(scope, ranges)})"
        return self.plain_sequence(scope, ranges)

    def plain_sequence(self, scope: Scope, ranges: list[str]) -> str:
        kind = self.random.random()
        if ranges and kind < 0.3:
            return self.pick(*ranges)
        if (scope.rows or scope.planes) and kind < 0.55:
            return f"{self.row(scope)}{self.pick('', '', '[1:]', '[::-1]', '[::2]')}"
        if kind < 0.75:
            cast = self.pick(*(f"np.{each}" for each in TYPES))
            return f"({', '.join(f'{cast}({self.expr(scope, 1)})' for _ in range(self.random.randint(2, 4)))})"
        return self.range_of(scope, uniform=False)

    def pattern(self, scope: Scope, ty: Type, names: dict[str, Type]) -> str:
        """A target for a type."""
        if isinstance(ty, tuple) and self.maybe(0.85):
            parts = [self.pattern(scope, item, names) for item in ty]
            if len(parts) > 1 and self.maybe(0.15):
                name, at = self.fresh("t"), self.random.randrange(len(parts))
                names[name] = ty[at:]
                parts[at:] = [f"*{name}"]
            return f"({''.join(part + ', ' for part in parts)})"
        numbers = [name for name in scope.variables() if name not in names]
        real = isinstance(ty, np.dtype) and ty.kind != "c"
        name = self.pick(*numbers) if numbers and real and self.maybe(0.15) else self.fresh("k" if real else "t")
        names[name] = ty
        return name

    def sequence_statement(self, scope: Scope, depth: int) -> list[str]:
        if self.maybe(0.2):
            return [f"{self.fresh('rg')} = {self.range_of(scope, uniform=False)}"]
        text = self.one_sequence(scope, 2)
        ty = item_type(scope.type_of(text))
        return self.loop_over(scope, depth, text, ty)

    def loop_over(self, scope: Scope, depth: int, text: str, ty: Type) -> list[str]:
        names: dict[str, Type] = {}
        head = f"for {self.pattern(scope, ty, names)} in {text}:"
        first = next(iter(names))
        use = [name for name, each in names.items() if isinstance(each, np.dtype) and each.kind != "c"]
        lines = self.loop(scope, depth, first, head, names[first], also=names)
        if use and self.maybe(0.7):
            target = self.target(scope)
            value = (
                f"{target} {self.pick('+', '-')} {self.pick(*use)}" if target in scope.typer.env else self.pick(*use)
            )
            lines.insert(1, f"    {target} = {value}")
        return lines

    def mixed_tuple(self, scope: Scope) -> tuple[str, Type]:
        """A tuple of several types, and the type of one of its items."""
        if self.maybe(0.4) and (names := scope.tuples()):
            text = self.pick(*names)
        else:
            casts = ["", "", *(f"np.{each}" for each in TYPES)]
            items = [f"{self.pick(*casts)}({self.expr(scope, 1)})" for _ in range(self.random.randint(2, 3))]
            text = f"({', '.join(items)})"
        return text, self.pick(*scope.type_of(text))

    def mixed_statement(self, scope: Scope) -> list[str]:
        text, ty = self.mixed_tuple(scope)
        kind = self.random.random()
        if kind < 0.2:
            text, ty = f"enumerate({text}{self.pick('', ', 2', ', ' + self.leaf_int(scope))})", (np.dtype("int64"), ty)
        elif kind < 0.4:
            other, second = self.mixed_tuple(scope)
            text, ty = f"zip({text}, {other})", (ty, second)
        elif kind < 0.5:
            text = f"reversed({text})"
        elif kind < 0.6:
            text, ty = f"zip({text}, enumerate(reversed({text})))", (ty, (np.dtype("int64"), ty))
        return self.loop_over(scope, 1, text, ty)

    def leaf_int(self, scope: Scope) -> str:
        return self.expr(scope, 0, ints=True)

    # Functions in functions.

    def closure_statement(self, scope: Scope) -> list[str]:
        if self.inside:
            return self.assignment(scope)
        name = self.fresh("g")
        names = [self.fresh("a") for _ in range(self.random.randint(1, 3))]
        env = {each: ty for each, ty in scope.typer.env.items() if not isinstance(ty, Closure)}
        env |= {each: np.dtype(self.pick("int64", "float64", "int32", "float32")) for each in names}
        rest = self.fresh("t") if self.maybe(0.25) else ""
        inner = Scope(self.functions, env | ({rest: (np.dtype("int64"),) * 2} if rest else {}))
        inner.inputs = [*scope.inputs, *names]
        inner.rows, inner.planes, inner.sources = list(scope.rows), list(scope.planes), list(scope.sources)
        inner.fixed = set(scope.typer.env) | scope.fixed
        known = self.random.randint(0, len(names) - 1) if not rest else 0
        defaults = {each: self.expr(scope, 1) for each in names[len(names) - known :]}
        texts = [f"{each}={defaults[each]}" if each in defaults else each for each in names]
        texts += [f"*{rest}"] if rest else []
        self.inside = True
        try:
            if self.maybe(0.5):
                value = self.expr(inner, 2)
                lines = [f"{name} = lambda {', '.join(texts)}: {self.pick(value, f'{names[0]} + {value}')}"]
            else:
                lines = [f"def {name}({', '.join(texts)}):"]
                for line in self.block(inner, 1, 2):
                    lines.append(f"    {line}")
                if inner.typer.env is None:
                    return self.assignment(scope)
                if self.maybe(0.3):
                    lines += [f"    if {self.condition(inner, 1)}:", f"        return {self.expr(inner, 1)}"]
                lines.append(f"    return {self.expr(inner, 2)}")
        finally:
            self.inside = False
        self.accept(scope, lines)
        scope.fixed.add(name)
        # The variables that it reads may change before it is called.
        if self.maybe(0.7):
            more = self.assignment(scope)
            self.accept(scope, more)
            lines += more
        if not isinstance(scope.typer.env.get(name), Closure):
            raise TypeError("a default that has no type yet")
        for _ in range(self.random.randint(1, 2)):
            call = f"{self.target(scope)} = {self.closure_call(scope, name, scope.typer.env[name])}"
            self.accept(scope, [call])
            lines.append(call)
        return lines

    def closure_call(self, scope: Scope, name: str, ty: Closure) -> str:
        own = list(ty.own)
        numbers = [each for each in scope.numbers() if each not in ("t", "threads")] or ["2"]

        def argument() -> str:
            return self.pick(self.literal(), self.pick(*numbers), *scope.inputs)

        required = len(own) - len(ty.defaults)
        given = self.random.randint(required, len(own))
        if ty.rest:
            tuples = [f"*{each}" for each in scope.tuples()]
            more = [argument() for _ in range(self.random.randint(0, 2))]
            more += [self.pick(*tuples)] if tuples and self.maybe(0.4) else []
            return f"{name}({', '.join([*(argument() for _ in own), *more])})"
        positional = self.random.randint(0, given)
        named = [f"{each}={argument()}" for each in own[positional:given]]
        self.random.shuffle(named)
        return f"{name}({', '.join([*(argument() for _ in range(positional)), *named])})"

    # Tuples.

    def star_statement(self, scope: Scope) -> list[str]:
        names = scope.tuples()
        if not names or self.maybe(0.2):
            return [f"{self.fresh('t')} = {self.tuple_expr(scope, 1)}"]
        one, two, out = self.pick(*names), self.pick(*names), self.fresh("t")
        kind = self.random.random()
        if kind < 0.3:
            parts = [f"*{one}", self.pick(f"*{two}", self.expr(scope, 1)), self.expr(scope, 0)]
            self.random.shuffle(parts)
            return [f"{out} = ({', '.join(parts)})"]
        if kind < 0.55:
            many = len(scope.typer.env[one])
            stay = self.random.randint(0, many - 1)
            targets = [self.fresh("v") for _ in range(stay)]
            targets.insert(self.random.randint(0, stay), f"*{out}")
            return [f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {one}"]
        if kind < 0.7:
            return [f"{out} = {one}[{self.pick('::-1', '::2', '1:', ':-1', '-2:', '::-2', '1::1')}]"]
        if kind < 0.85:
            e = self.fresh("k")
            inner = dict(scope.typer.env)
            scope.typer.env[e] = self.pick(*inner[one])
            scope.fixed.add(e)
            try:
                number = isinstance(scope.typer.env[e], np.dtype) and scope.typer.env[e].kind != "c"
                value = f"{self.expr(scope, 1)} + {e}" if number and self.maybe(0.5) else self.pick(e, f"({e}, 1)")
            finally:
                scope.typer.env = inner
            return [f"{out} = tuple({value} for {e} in {one})"]
        order = self.pick("<", "<=", ">", ">=", "==")
        leaf = self.pick(*scope.inputs)
        return [f"{self.target(scope)} = ({leaf}, {self.expr(scope, 1)}) {order} ({self.expr(scope, 0)}, {leaf})"]

    # `match`.

    def match_statement(self, scope: Scope) -> list[str]:
        leaf = self.pick(*scope.inputs)
        many = self.pick(1, 1, 2, 3)
        subject = leaf if many == 1 else f"({leaf}, {', '.join(self.expr(scope, 1) for _ in range(many - 1))})"
        types = scope.type_of(subject)

        def number() -> str:
            return self.pick(str(self.random.randint(-3, 9)), str(self.random.randint(0, 3)), "2.5", "-0.5")

        lines = [f"match {subject}:"]
        for _ in range(self.random.randint(1, 3)):
            env, fixed = dict(scope.typer.env), set(scope.fixed)
            kind = self.random.random()
            if many == 1:
                name = self.fresh("v")
                text = self.pick(number(), f"{number()} | {number()}", f"{number()} | {number()} | {number()}", name)
                if text == name:
                    scope.typer.env[name] = types
                    text += f" if {self.condition(scope, 1)}"
            elif kind < 0.2:
                name = self.fresh("t")
                scope.typer.env[name] = types[1:]
                text = f"(_, *{name}) if {self.condition(scope, 1)}"
            else:
                # A value in the rest would be tested before names are bound, and its constants would be lost.
                names = [self.fresh("v") for _ in range(self.pick(0, 1, 1, many))]
                scope.typer.env |= dict(zip(names, types, strict=False))
                rest = [self.pick(number(), "_", f"({number()} | {number()})") for _ in range(many - len(names))]
                text = f"({', '.join([*names, *rest])})"
                if self.maybe(0.4) or not rest or set(rest) == {"_"}:
                    text += f" if {self.condition(scope, 0)}"
            lines += [f"    case {text}:", *(f"    {line}" for line in self.nested(scope, 1))]
            scope.typer.env, scope.fixed = env, fixed
        if self.maybe(0.6):
            lines += ["    case _:", *(f"    {line}" for line in self.nested(scope, 1))]
        return lines
