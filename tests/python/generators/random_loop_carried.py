"""Random loops that carry variables, for `random_programs.py`: variables that are first assigned in the loop, chains of
variables that pass their types on, and chains of calls in which each call takes the result of the last.

A variable that has no value on some path reads zero there; a view is not read there.
"""

from __future__ import annotations

import itertools

import numpy as np

from generators.random_expressions import TYPES, Scope
from generators.random_statements import StatementWriter
from generators.typed_values import Array


class CarriedWriter(StatementWriter):
    """Writes loops that carry variables."""

    # Variables that are first assigned in a loop: those in `functions.kept`.

    def carried_statement(self, scope: Scope, depth: int) -> list[str]:
        """A loop whose first iteration initializes a variable that later iterations use."""
        name = self.fresh("r")
        self.functions.kept.add(name)
        first, later, use = self.carried_values(scope, name)
        array = isinstance(scope.type_of(first), Array)
        env, fixed, exits = dict(scope.typer.env), set(scope.fixed), scope.exits
        before, heads, is_first, sure = self.carried_head(scope)
        seen = f"{self.fresh('s')}"
        flagged = is_first == "" or self.maybe(0.3)
        if flagged:
            before, is_first = [*before, f"{seen} = False"], f"not {seen}"
        give, again = [f"{name} = {first}"], [f"{name} = {later}"]
        if flagged:
            give.insert(self.random.randint(0, 1), f"{seen} = True")
        lines = self.chosen_turn(scope, is_first, give, again)
        # The rest of the iteration reads and writes the variable as any other.
        scope.typer.env |= {name: scope.type_of(first), **{text.split()[1]: np.dtype("int64") for text in heads}}
        if flagged:
            scope.typer.env[seen] = np.dtype("bool")
            scope.fixed.add(seen)
        if self.maybe(0.5):
            scope.fixed.add(name)
        scope.fixed |= {text.split()[1] for text in heads if text.startswith("while")}
        scope.exits = ["break", "continue"] if self.maybe(0.3) else []
        scope.typer.loops.append(([], []))
        try:
            if self.maybe(0.5):
                lines.append(f"{self.target(scope)} = {use} + {self.expr(scope, 1)}")
            if depth > 0 and self.maybe(0.5):
                lines += [line.removeprefix("    ") for line in self.nested(scope, depth)]
        finally:
            scope.typer.loops.pop()
            scope.typer.env, scope.fixed, scope.exits = env, fixed, exits
        for head in reversed(heads):
            step = [f"    {head.split()[1]} += 1"] if head.startswith("while") else []
            lines = [head, *step, *(f"    {line}" for line in lines)]
        target = self.target(scope)
        after = [f"{target} = {use}"] if sure or (not array and self.maybe(0.5)) else []
        if flagged and not after:
            after = [f"if {seen}:", f"    {target} = {use}"]
            scope.fixed.add(seen)
        return [*before, *lines, *after]

    def chosen_turn(self, scope: Scope, is_first: str, give: list[str], again: list[str]) -> list[str]:
        """The start of an iteration: one of two blocks, depending on whether it is the first."""

        def block(lines):
            return [f"    {line}" for line in lines]

        kind = self.random.random()
        if kind < 0.4:
            return [f"if {is_first}:", *block(give), "else:", *block(again)]
        if kind < 0.6:
            return [f"if not ({is_first}):", *block(again), "else:", *block(give)]
        if kind < 0.8:
            return [f"if {is_first}:", *block(give), f"elif {self.condition(scope, 1)}:", *block(again)]
        return [f"if {is_first} or {self.condition(scope, 0)}:", *block(give), "else:", *block(again)]

    def carried_values(self, scope: Scope, name: str) -> tuple[str, str, str]:
        """A variable's first value, a later one that may use it, and a number in it."""
        kind = self.random.random()
        if kind < 0.15 and (scope.rows or scope.planes):
            views = self.pick(f"{name}[::-1]", f"{name}[:]", name)
            other = self.row(scope) if self.maybe(0.3) else views
            return self.row(scope), other, f"{name}[{self.random.randint(-4, 3)}]"
        if kind < 0.3:
            first = f"({self.expr(scope, 1)}, {self.expr(scope, 0)})"
            item = self.random.randint(0, 1)
            later = self.pick(f"({name}[1], {name}[0])", f"({name}[0] + {self.expr(scope, 0)}, {name}[1])",
                              f"({self.expr(scope, 0)}, {name}[0])")  # fmt: skip
            return first, later, f"{name}[{item}]"
        if kind < 0.4:
            later = self.pick(f"{name} + {self.complex_expr(scope, 0)}", f"{name} * 2", f"{name} - 1j")
            return self.complex_expr(scope, 1), later, f"{name}.{self.pick('real', 'imag')}"
        first, other = self.expr(scope, self.random.randint(0, 2)), self.expr(scope, 1)
        later = self.pick(
            f"{name} + {other}", f"{name} - {other}", f"{other} - {name}", f"min({name}, {other})", f"{name} + 1",
            f"max({name}, {other})", f"({other} if {self.condition(scope, 0)} else {name})", f"{name} // 2",
        )  # fmt: skip
        return first, later, name

    def carried_head(self, scope: Scope) -> tuple[list[str], list[str], str, bool]:
        """The code before loops, their heads, a test for the first iteration, and whether one is certain."""
        k, sure = self.fresh("k"), self.maybe(0.6)
        turns = str(self.random.randint(1, 4)) if sure else self.bound(scope, uniform=False)
        if turns == "0":  # a constant 0 drops the loop, and with it the variable
            turns, sure = "1", True
        zero = self.pick(f"{k} == 0", f"{k} < 1", f"{k} <= 0", f"0 == {k}")
        kind = self.random.random()
        if kind < 0.4:
            return [], [f"for {k} in range({turns}):"], zero, sure
        if kind < 0.55:
            start = self.random.randint(-2, 3)
            return [], [f"for {k} in range({start}, {start} + {turns}):"], f"{k} == {start}", sure
        if kind < 0.75:
            return [f"{k} = 0"], [f"while {k} < {turns}:"], self.pick(f"{k} == 1", f"{k} < 2"), sure
        if kind < 0.85 and (scope.rows or scope.planes):
            return [], [f"for {k} in {self.row(scope)}:"], "", True
        j, inner = self.fresh("k"), self.random.randint(1, 3)
        test = self.pick("", f"{k} == 0 and {j} == 0", f"{k} + {j} == 0")
        return [], [f"for {k} in range({turns}):", f"for {j} in range({inner}):"], test, sure

    # Chains.

    def chain_statement(self, scope: Scope, depth: int) -> list[str]:
        """A loop in which each of many variables takes the next one's value, and, after some iterations, its type."""
        length = self.pick(2, 3, 5, 9, 12, 14, 17)
        names = [self.fresh("a") for _ in range(length)]
        start = self.pick("{}", "{}", "np.int8({})", "np.int32({})", "np.uint8({})")
        lines = [f"{name} = {start.format(self.random.randint(0, 9))}" for name in names]
        last = self.pick(
            "0.5", "0.5", "np.float32(1.5)", f"np.{self.pick(*TYPES)}({self.expr(scope, 0)})", self.expr(scope, 1), "-3"
        )
        turns = [f"{one} = {two}" for one, two in itertools.pairwise([*names, last])]
        for _ in range(self.random.randint(0, 2)):
            place = self.random.randrange(length)
            turns[place] = f"{names[place]} = {names[place]} + {turns[place].split(' = ')[1]}"
        if self.maybe(0.25):
            turns.reverse()
        if self.maybe(0.2):
            self.random.shuffle(turns)
        if self.maybe(0.2):
            place = self.random.randrange(length)
            turns[place : place + 1] = [f"if {self.condition(scope, 0)}:", f"    {turns[place]}"]
        count, n = max(1, length + self.random.randint(-2, 3)), self.fresh("n")
        head = [f"for {n} in range({count}):"]
        if self.maybe(0.5):
            head = [f"{n} = 0", f"while {n} < {count}:", f"    {n} += 1"]
        scope.fixed |= set(names[2:])
        return [*lines, *head, *(f"    {line}" for line in turns)]

    # Calls.

    def calls_statement(self, scope: Scope, depth: int) -> list[str]:
        """A chain of calls of one function: each takes the result of the last."""
        able = [name for name, kinds in self.kinds.items() if "number" in kinds]
        if not able:
            return self.assignment(scope)
        name = self.pick(*able)
        place = self.pick(*(place for place, kind in enumerate(self.kinds[name]) if kind == "number"))
        value = self.fresh("v")
        lines = [f"{value} = {self.expr(scope, 0)}"]
        self.accept(scope, lines)
        for _ in range(self.pick(2, 3, 4, 6, 8)):
            fed = self.pick(value, f"{value} + {self.expr(scope, 0)}", f"{value} - 1")
            kinds = [None if at == place else kind for at, kind in enumerate(self.kinds[name])]
            args = [self.argument(scope, kind, 0) if kind else fed for kind in kinds]
            if None in args:
                return self.assignment(scope)
            call = f"{name}({', '.join(args)})"
            found = self.paths(call, scope.type_of(call), "iufb")
            if not found:
                return [*lines, call]
            line = f"{value} {self.pick('=', '=', '+=', '-=')} {self.pick(*found)}"
            self.accept(scope, [line])
            lines.append(line)
        if self.maybe(0.25):
            lines[1:] = [
                f"for {self.fresh('k')} in range({self.random.randint(1, 3)}):",
                *(f"    {x}" for x in lines[1:]),
            ]
        return lines
