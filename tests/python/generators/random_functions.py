"""Random functions that call themselves and each other, values that are None on some paths, and parameters of kernels
that have to be named, for `random_programs.py`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import numpy as np

from generators.random_arrays import ArrayWriter
from generators.random_expressions import WIDTH, Scope
from generators.typed_constants import bind
from generators.typed_values import INT64, NONE, Array, Closure, Optional, Type, name_of

if TYPE_CHECKING:
    from collections.abc import Callable


class FunctionWriter(ArrayWriter):
    """Writes the module's constructs."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.searches: dict[str, list[str]] = {}  # functions that may return None, and kinds of their parameters
        self.named: list[str] = []  # parameters of the kernel that a launch names
        self.left_out: dict[str, str] = {}  # and those that it leaves out, with their values

    def writers(self, scope: Scope, depth: int) -> dict[str, Callable[[], list[str]]]:
        return super().writers(scope, depth) | {
            "recursion": lambda: self.recursive_call(scope),
            "optional": lambda: self.optional_statement(scope, depth),
            "nonlocals": lambda: self.nonlocal_statement(scope, depth),
        }

    def definitions_of_features(self) -> list[str]:
        lines = super().definitions_of_features()
        if "recursion" in self.chosen:
            for _ in range(self.random.randint(1, 2)):
                lines += self.recursive_functions()
        if "optional" in self.chosen:
            for _ in range(self.random.randint(1, 2)):
                lines += self.search()
        return lines

    def arguments_of_features(self) -> dict[str, object]:
        args = super().arguments_of_features()
        if "named" in self.chosen:
            for name in ("ka", "kb")[: self.random.randint(1, 2)]:
                args[name] = self.scalar()
                self.named.append(name)
            if self.maybe(0.5):
                args["kw"] = self.laid_out(self.array(self.dtype().name, (self.size, WIDTH)))
                self.named.append("kw")
            if self.maybe(0.6):
                self.left_out["kd"] = self.pick("2", "-0.5", "True", "np.int16(3)", "7")
        return args

    def start_features(self, scope: Scope, args: dict[str, object]) -> list[str]:
        lines = super().start_features(scope, args)
        scope.inputs += [name for name in (*self.named, *self.left_out) if name != "kw"]
        scope.uniform += [name for name in self.named if name != "kw" and scope.is_int(name)]
        if "kw" in self.named:
            scope.rows.append("kw[i]")
        return lines

    # Recursion.

    def argument(self, scope: Scope, kind: str, depth: int) -> str | None:
        if kind == "depth":
            return f"np.int8({self.bound(scope, uniform=False)})"  # the depth is never NaN, whatever type this may get
        return super().argument(scope, kind, depth)

    def recursive_functions(self) -> list[str]:
        """A function that calls itself, or two that call each other."""
        first = len(self.functions.sources)
        names = [f"rc{first}", f"rc{first + 1}"][: self.pick(1, 1, 2)]
        types = {"n": INT64, "a": self.dtype()}
        if self.maybe(0.4):
            types["row"] = Array(self.dtype(), 1)
        stub = f"def {{}}({', '.join(types)}):\n    return {{}}"
        for _ in range(12):
            for name in names:  # before the return types are inferred: the statements need types
                self.functions.sources[name] = ast.parse(stub.format(name, self.pick("a", "n", "0.5"))).body[0]
            texts = [self.recursive_function(name, names, types) for name in names]
            self.functions.special = {key: it for key, it in self.functions.special.items() if key[0] not in names}
            try:
                for name, text in zip(names, texts, strict=True):
                    self.functions.sources[name] = ast.parse("\n".join(text)).body[0]
                for name in names:
                    self.functions.specialize(name, tuple(types.values()))
            except TypeError:
                continue
            for name in names:
                self.kinds[name] = ["depth", "number", "row"][: len(types)]
            return [line for text in texts for line in (*text, "", "")]
        for name in names:
            del self.functions.sources[name]
        self.functions.special = {key: it for key, it in self.functions.special.items() if key[0] not in names}
        return []

    def recursive_function(self, name: str, names: list[str], types: dict[str, Type]) -> list[str]:
        scope = Scope(self.functions, dict(types))
        scope.inputs, scope.fixed = ["a", "n"], {"n", "row"}
        if "row" in types:
            scope.rows = ["row"]
            scope.inputs.append(f"row[{self.random.randrange(WIDTH)}]")
        result = f"np.{name_of(self.dtype())}"
        self.in_recursion = True
        try:
            lines = [f"if n {self.pick('<= 0', '< 1')}:", f"    return {self.expr(scope, 1)}"]
            if self.maybe(0.7):
                lines += self.block(scope, 1, 2)

            def call(less: int = 1) -> str:
                other = self.pick(*names, *names[-1:])
                more = ", row" if "row" in types else ""
                if other == name and len(names) > 1:
                    other = names[1 - names.index(name)]
                text = f"{other}(n - {less}, np.{name_of(types['a'])}({self.expr(scope, 1)}){more})"
                # The return types of two that call each other would depend on which is typed first: convert them.
                return f"{result}({text})" if len(names) > 1 else text

            if scope.typer.env is None:
                return self.decorated(name, types, [*lines, "return a"])
            kind = self.random.random()
            if kind < 0.3:
                lines += [f"if {self.condition(scope, 1)}:", f"    return {call()}"]
            elif kind < 0.5:
                v = self.fresh("v")
                lines += [f"{v} = {call()}", *self.typed_block(scope, f"{v} = {call()}")]
                if scope.typer.env is None:
                    return self.decorated(name, types, [*lines, "return a"])
                lines += [f"return {v} {self.pick('+', '-')} {self.expr(scope, 1)}"]
                return self.decorated(name, types, lines)
            elif kind < 0.6:
                lines += [
                    f"for k in range({self.random.randint(1, 2)}):",
                    f"    a = {self.typed_cast(types)}({call(2)})",
                ]
            two = f"{call()} {self.pick('+', '-')} {call(2)}"
            one = f"{call()} {self.pick('+', '-', '//', '%')} {self.expr(scope, 1)}"
            choice = f"{call()} if {self.condition(scope, 1)} else {self.expr(scope, 1)}"
            lines.append(f"return {self.pick(two, one, one, choice, call())}")
        finally:
            self.in_recursion = False
        return self.decorated(name, types, lines)

    @staticmethod
    def typed_cast(types: dict[str, Type]) -> str:
        return f"np.{name_of(types['a'])}"

    def typed_block(self, scope: Scope, first: str) -> list[str]:
        """Statements that follow one."""
        self.accept(scope, [first])
        return self.block(scope, 1, 2)

    @staticmethod
    def decorated(name: str, types: dict[str, Type], lines: list[str]) -> list[str]:
        return ["@cuda.jit(device=True)", f"def {name}({', '.join(types)}):", *(f"    {line}" for line in lines)]

    def recursive_call(self, scope: Scope) -> list[str]:
        names = [name for name, kinds in self.kinds.items() if kinds[0] == "depth"]
        if not names:
            return self.assignment(scope)
        kinds = self.kinds
        self.kinds = {name: kinds[name] for name in names}
        try:
            called = self.call_of_any(scope, 2)
        finally:
            self.kinds = kinds
        return [f"{self.target(scope)} = {called[0]} + {self.expr(scope, 0)}"] if called else self.assignment(scope)

    # Inner functions that assign to variables around them.

    def nonlocal_statement(self, scope: Scope, depth: int) -> list[str]:
        """One, and calls of it. The variables that it assigns are never constant, and no other function assigns
        them."""
        if self.inside or not scope.inputs or depth < 0:
            return self.assignment(scope)
        name, g, a = self.fresh("nl"), self.fresh("g"), self.fresh("a")
        lines = [f"{name} = {self.pick(*scope.inputs)} {self.pick('+', '-')} {self.expr(scope, 1)}"]
        self.accept(scope, lines)
        scope.fixed.add(name)
        env = {each: ty for each, ty in scope.typer.env.items() if not isinstance(ty, Closure)}
        inner = Scope(self.functions, env | {a: np.dtype(self.pick("int64", "float64", "int32"))})
        inner.inputs, inner.rows = [*scope.inputs, a, name], list(scope.rows)
        inner.fixed = set(scope.typer.env) | scope.fixed

        def change() -> str:
            if self.maybe(0.6):
                return f"{name} {self.pick('+=', '-=')} {self.expr(inner, 1)}"
            return f"{name} = {self.pick(*scope.inputs, a, name)} {self.pick('+', '-', '//')} {self.expr(inner, 1)}"

        self.inside = True
        try:
            body = self.block(inner, 0, 2) if self.maybe(0.5) else []
            if inner.typer.env is None:
                return self.assignment(scope)
            first = [change()]
            if self.maybe(0.4):
                first = [f"if {self.condition(inner, 1)}:", f"    {first[0]}"]
            self.accept(inner, first)
            body += first
            if self.maybe(0.3):
                body += [f"if {self.condition(inner, 1)}:", f"    return {self.expr(inner, 1)}", change()]
            body.append(f"return {self.pick(name, self.expr(inner, 1))} + {self.expr(inner, 0)}")
        finally:
            self.inside = False
        define = [f"def {g}({a}):", f"    nonlocal {name}", *(f"    {line}" for line in body)]
        self.accept(scope, define)
        scope.fixed.add(g)
        lines += define
        for _ in range(self.random.randint(1, 3)):
            call = f"{g}({self.expr(scope, 1)})"
            target = self.target(scope)
            more = self.pick(
                [f"{target} = {call} + {name}"], [f"{target} = {name} - {call}"], [f"{target} = {call} - {call} * 2"],
                [f"for {self.fresh('k')} in {self.range_of(scope, uniform=False)}:", f"    {target} = {call}"],
                [f"if {self.condition(scope, 1)}:", f"    {target} = {call}"], [call],
                [f"{name} = {self.pick(*scope.inputs)} - {self.expr(scope, 0)}"],
            )  # fmt: skip
            self.accept(scope, more)
            lines += more
        return lines

    # Values that are None on some paths.

    def search(self) -> list[str]:
        """A device function that returns a number or None."""
        name = f"so{len(self.functions.sources)}"
        types: dict[str, Type] = {"a": self.dtype()}
        if self.maybe(0.5):
            types["row"] = Array(self.dtype(), 1)
        scope = Scope(self.functions, dict(types))
        scope.inputs, scope.fixed = ["a"], {"row"}
        if "row" in types:
            scope.rows = ["row"]
            scope.inputs.append(f"row[{self.random.randrange(WIDTH)}]")
        lines = self.block(scope, 1, 1) if self.maybe(0.4) else []
        if scope.typer.env is None:
            return []
        test, value, v = self.condition(scope, 1), self.expr(scope, 1), self.fresh("v")
        forms = [
            [f"if {test}:", f"    return {value}", "return None"],
            [f"{v} = None", f"if {test}:", f"    {v} = {value}", f"return {v}"],
            [f"return {value} if {test} else None"],
        ]
        if "row" in types:
            at = self.pick("k", "row[k]", f"row[k] + {self.expr(scope, 0)}")
            forms.append(
                [f"for k in range({WIDTH}):", f"    if row[k] > {value}:", f"        return {at}", "return None"]
            )
        lines += self.pick(*forms)
        if text := self.defined(name, list(types), lines, list(types.values())):
            self.searches[name] = ["number", "row"][: len(types)]
            return text
        return []

    def optionals(self, scope: Scope) -> dict[str, Optional]:
        return {
            name: ty for name, ty in scope.typer.env.items() if isinstance(ty, Optional) and name not in scope.fixed
        }

    def maybe_none(self, scope: Scope) -> str:
        """An expression of a value that may be None."""
        kind = self.random.random()
        mine = list(self.optionals(scope))
        if mine and kind < 0.15:
            return self.pick(*mine)
        if self.searches and kind < 0.6:
            name = self.pick(*self.searches)
            args = [self.argument(scope, each, 1) for each in self.searches[name]]
            if None not in args:
                return f"{name}({', '.join(args)})"
        if kind < 0.7:
            pair = f"({self.expr(scope, 1)}, {self.expr(scope, 0)})"
            return self.pick(
                f"{pair} if {self.condition(scope, 1)} else None", f"None if {self.condition(scope, 1)} else {pair}"
            )
        one = self.expr(scope, 1)
        return self.pick(
            f"{one} if {self.condition(scope, 1)} else None", f"None if {self.condition(scope, 1)} else {one}"
        )

    def narrowed_block(self, scope: Scope, name: str, ty: Type) -> list[str]:
        """An indented block in which a variable has a type."""
        env, fixed = dict(scope.typer.env), set(scope.fixed)
        bind(scope.typer.env, name, ty)
        if isinstance(ty, np.dtype) and self.maybe(0.7):
            scope.inputs.append(name)
            lines = self.nested(scope, 0)
            scope.inputs.pop()
        else:
            lines = self.nested(scope, 0)
        scope.typer.env, scope.fixed = env, fixed
        return lines

    def optional_statement(self, scope: Scope, depth: int) -> list[str]:
        found, kind = self.optionals(scope), self.random.random()
        if not found or kind < 0.2:
            return self.new_optional(scope, depth)
        name = self.pick(*found)
        ty = found[name].of
        if kind < 0.3 and isinstance(ty, np.dtype):
            return [f"{name} = {self.maybe_none(scope)}"]
        if isinstance(ty, tuple):
            if depth < 0:
                return self.assignment(scope)
            one, two = self.fresh("v"), self.fresh("v")
            return [
                f"if {name} is not None:",
                f"    {one}, {two} = {name}",
                f"    {self.target(scope)} = {one} - {two}",
            ]
        if not isinstance(ty, np.dtype) or ty.kind not in "iufb":
            return self.assignment(scope)
        value, target = self.expr(scope, 1), self.target(scope)
        if target == name:
            target = self.fresh("v")
        is_none = self.pick(f"{name} is None", f"{name} == None", f"not ({name} is not None)")
        some = self.pick(f"{name} is not None", f"{name} != None", f"not {name} is None", name)
        if kind < 0.4 and self.leaves:  # threads may end
            return [self.pick(f"{target} = {name} + {value}", f"assert {some}", f"{target} = {value} - {name}")]
        if kind < 0.55:
            use = f"{name} {self.pick('+', '-')} {value}"
            return [f"{target} = " + self.pick(f"{value} if {is_none} else {use}", f"{use} if {some} else {value}",
                                               f"{value} if {is_none} else {name}")]  # fmt: skip
        if kind < 0.65:
            other = self.pick(*(each for each in found if isinstance(found[each].of, np.dtype)))
            return [f"{target} = {name} {self.pick('==', '!=')} {self.pick(value, other)}"]
        test = f"{name} {self.pick('<', '>', '!=')} {value}"
        if kind < 0.75:
            return [f"{target} = " + self.pick(f"{some} and {test}", f"{is_none} or {test}", is_none, f"not {name}")]
        if depth < 0:
            return self.assignment(scope)
        head = self.pick(f"{some} and {test}", some, is_none, some)
        there, gone = (ty, found[name]) if head != is_none else (NONE, ty)
        lines = [f"if {head}:", *self.narrowed_block(scope, name, there)]
        if head == some and some == name:
            gone = found[name]
        elif head == some:
            gone = NONE
        if self.maybe(0.5):
            lines += ["else:", *self.narrowed_block(scope, name, gone)]
        return lines

    def new_optional(self, scope: Scope, depth: int) -> list[str]:
        name = self.fresh("mv")
        kind = self.random.random()
        if kind < 0.4 or depth < 0:
            return [f"{name} = {self.maybe_none(scope)}"]
        if kind < 0.6:
            return [f"{name} = None", f"if {self.condition(scope, 1)}:", f"    {name} = {self.expr(scope, 1)}"]
        if kind < 0.8 and (scope.rows or scope.planes):
            v = self.fresh("k")
            test = f"{name} is None or {v} {self.pick('<', '>')} {name}"
            return [f"{name} = None", f"for {v} in {self.row(scope)}:", f"    if {test}:", f"        {name} = {v}"]
        called = self.maybe_none(scope)
        if not self.searches or "(" not in called or " if " in called:
            return [f"{name} = {called}"]
        target = self.target(scope)
        return [f"if ({name} := {called}) is not None:", f"    {target} = {name} + {self.expr(scope, 0)}"]

    def finish(self, scope: Scope) -> list[str]:
        """Stores the variables, those that may be None too."""
        more: list[str] = []
        if scope.typer.env is not None and "optional" in self.chosen:
            for name, ty in self.optionals(scope).items():
                if isinstance(ty.of, np.dtype) and ty.of.kind in "iufb":
                    more.append(f"{self.fresh('v')} = -7 if {name} is None else {name}")
            self.accept(scope, more)
        return more + super().finish(scope)
