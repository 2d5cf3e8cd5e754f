"""Random strings, and times in the fields of records, for `random_programs.py`.

Two constant strings are never compared: the type would depend on weft's knowledge of constants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from generators.random_functions import FunctionWriter
from generators.typed_values import Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from generators.random_expressions import Scope

LETTERS = "abc"


class TextWriter(FunctionWriter):
    """Writes the module's constructs."""

    bytes_: bool = False  # whether the program's strings are `bytes`

    def writers(self, scope: Scope, depth: int) -> dict[str, Callable[[], list[str]]]:
        return super().writers(scope, depth) | {
            "texts": lambda: self.text_statement(scope, depth),
            "stamps": lambda: self.time_statement(scope),
        }

    def definitions_of_features(self) -> list[str]:
        lines = super().definitions_of_features()
        if "stamps" in self.chosen:
            at, span = self.pick("M8[s]", "M8[D]"), self.pick("m8[s]", "m8[h]")
            fields = [("at", at), ("n", self.pick("i1", "i4")), ("span", span)]
            self.define(f"STAMP = np.dtype({fields!r}{self.pick('', ', align=True')})")
        return lines

    def arguments_of_features(self) -> dict[str, object]:
        args = super().arguments_of_features()
        if "texts" in self.chosen:
            self.bytes_ = self.maybe(0.4)
            kind = "S" if self.bytes_ else "U"
            args["ta"] = self.laid_out(self.text_array(f"{kind}{self.random.randint(2, 5)}", (self.size,)))
            args["tb"] = self.laid_out(self.text_array(f"{kind}{self.random.randint(1, 6)}", (self.size,)))
            args["to_"] = self.text_array(f"{kind}{self.random.randint(1, 5)}", (self.size, 2))
            args["ts"] = "".join(self.pick(*LETTERS) for _ in range(self.random.randint(1, 4)))
            args["ts"] = args["ts"].encode() if self.bytes_ else args["ts"]
        if "stamps" in self.chosen:
            made = np.zeros(self.size, self.functions.names["STAMP"])
            for name in ("at", "span"):
                made[name] = self.times(made.dtype[name].str)
            made["n"] = np.arange(self.size)
            args["st"] = self.laid_out(made)
        return args

    def text_array(self, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        count = int(np.prod(shape))
        texts = ["".join(self.pick(*LETTERS) for _ in range(self.random.randint(0, 5))) for _ in range(count)]
        return np.array([text.encode() if dtype[0] == "S" else text for text in texts], dtype).reshape(shape)

    def start_features(self, scope: Scope, args: dict[str, object]) -> list[str]:
        lines = super().start_features(scope, args)
        if "texts" in self.chosen:
            name = self.fresh("s")
            more = [
                f"{name} = ta[i] if {self.condition(scope, 1)} else {self.pick('tb[i]', 'ts', self.text_literal())}"
            ]
            self.accept(scope, more)
            lines += more
        return lines

    # Strings.

    def text_literal(self) -> str:
        text = "".join(self.pick(*LETTERS) for _ in range(self.random.randint(0, 4)))
        return f'{"b" * self.bytes_}"{text}"'

    def text(self, scope: Scope) -> str:
        """A string that is not a constant."""
        names = [name for name, ty in scope.typer.env.items() if isinstance(ty, Text) and name != "ts"]
        kind = self.random.random()
        if names and kind < 0.4:
            return self.pick(*names)
        part = self.pick("", "", "", "[1:]", "[:2]", "[1:3]") if kind < 0.8 else ""
        return self.pick("ta[i]", "tb[-1 - i]", "tb[i]", "ta[::-1][i]", "ta[i:][0]") + part

    def text_number(self, scope: Scope) -> str:
        """A number that depends on a string."""
        one, kind = self.text(scope), self.random.random()
        other = self.pick(self.text(scope), self.text_literal(), "ts")
        if kind < 0.2:
            return f"len({one})"
        if kind < 0.5:
            left, right = (one, other) if self.maybe(0.6) else (other, one)
            return f"({left} {self.pick('==', '!=', '<', '<=', '>', '>=')} {right})"
        if kind < 0.65:
            left, right = (one, other) if self.maybe(0.4) else (other, one)
            return f"({left} {self.pick('in', 'not in')} {right})"
        at = self.pick("0", "-1", f"{self.expr(scope, 0, ints=True)} % len({one})")
        first = f"{one}[{at}]" if self.bytes_ else f"ord({one}[{at}])"
        if not self.bytes_ and kind < 0.75:
            first = f"({one}[{at}] {self.pick('==', '<')} {self.pick(one + '[0]', self.text_literal())})"
        test = self.pick(one, f"len({one}) > 0", f"{one} != {'b' * self.bytes_}''")
        return f"({first} if {test} else {self.expr(scope, 1)})"

    def text_statement(self, scope: Scope, depth: int) -> list[str]:
        if not scope.kernel:
            return self.assignment(scope)
        kind, other = self.random.random(), self.pick(self.text(scope), self.text_literal(), "ts")
        names = [name for name, ty in scope.typer.env.items() if isinstance(ty, Text) and name != "ts"]
        if kind < 0.2:
            target = self.pick(*names) if names and self.maybe(0.6) else self.fresh("s")
            return [f"{target} = {self.text(scope)} if {self.condition(scope, 1)} else {other}"]
        if kind < 0.3:
            return [f"{self.pick(*names) if names and self.maybe(0.6) else self.fresh('s')} = {self.text(scope)}"]
        if kind < 0.45:
            return [f"to_[i, {self.pick('0', '1', '-1')}] = {self.pick(other, self.text(scope))}"]
        if depth >= 0 and kind < 0.6:
            target, name = self.target(scope), self.fresh("s")
            value = name if self.bytes_ else f"ord({name})"
            return [f"{target} = 0", f"for {name} in {self.text(scope)}:", f"    {target} = {target} * 3 + {value}"]
        if depth >= 0 and kind < 0.7:
            head = self.pick(self.text(scope), f"not {self.text(scope)}", f"{self.text_number(scope)} > 1")
            return [f"if {head}:", *self.nested(scope, 0)]
        return [f"{self.target(scope)} = {self.text_number(scope)} {self.pick('+', '-')} {self.expr(scope, 1)}"]

    # Times in records.

    def date(self, scope: Scope, depth: int) -> str:
        if "stamps" in self.chosen and scope.kernel and depth <= 0 and self.maybe(0.4):
            return self.pick(
                "st[i].at", 'st[i]["at"]', "st.at[i]", "st[-1 - i:][0].at" if self.size == 1 else "st[i][0]"
            )
        return super().date(scope, depth)

    def span(self, scope: Scope, depth: int) -> str:
        if "stamps" in self.chosen and scope.kernel and depth <= 0 and self.maybe(0.4):
            return self.pick("st[i].span", 'st["span"][i]', "st[i][2]", "st.span[::-1][-1 - i]")
        return super().span(scope, depth)

    def time_statement(self, scope: Scope) -> list[str]:
        if "stamps" in self.chosen and scope.kernel and (kind := self.random.random()) < 0.4:
            if kind < 0.15:
                return [f"{self.pick('st[i].at', 'st.at[i]')} = {self.date(scope, 1)}"]
            if kind < 0.3:
                return [f"st[i].span = {self.span(scope, 1)}"]
            if kind < 0.35:
                return [f"st[i].n = {self.expr(scope, 1)}"]
            name = self.fresh("rt")
            return [
                f"{name} = st[i]",
                f"{self.target(scope)} = {name}.span {self.pick('<', '==', '>')} {self.span(scope, 1)}",
            ]
        return super().time_statement(scope)
