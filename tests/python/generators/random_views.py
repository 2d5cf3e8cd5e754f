"""Random views, reductions, comprehensions, inner functions of inner functions, further patterns, times and bfloat16,
for `random_programs.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from oracle.bfloat16 import to_bits

from generators.random_expressions import INTS, TYPES, WIDTH, Scope
from generators.random_objects import ObjectWriter
from generators.typed_values import BRAIN, Array, Closure

if TYPE_CHECKING:
    from collections.abc import Callable

LONG = 12  # elements of reshaped arrays: three rows of WIDTH
VIEWS = (
    "{0}[:4]", "{0}.reshape(3, 4)[-1]", "{0}.reshape(-1, 4)[0, ::-1]", "{0}.reshape((4, 3)).T[2]", "{0}.ravel()[4:8]",
    "{0}[np.newaxis, 8:][0]", "{0}[:, None][4:8, 0]", "{0}.reshape(3, 4).ravel()[2:6]", "{0}[None, ::-3][0]",
    "{0}.reshape(2, 6)[..., 1:5][-1]", "{0}.reshape(3, 1, 4)[1, 0]", "{0}.reshape(3, 4, 1).T[0, ::-1, 1]",
    "{0}[::-1].T[:4]", "{0}.reshape(1, 3, 4)[..., ::-1][0, 2]", "{0}[-2:-10:-2]", "{0}[...][5:9]",
    "{0}.reshape(3, 4)[1:].reshape(-1)[:4]", "{0}.reshape(3, 4)[:, np.newaxis, :][2, 0]", "{0}.reshape(4, 3)[:, 1]",
)  # fmt: skip
PLANES = (
    "{0}.reshape(3, 4)", "{0}.reshape(4, 3).T", "{0}.reshape(3, 4)[::-1]", "{0}.reshape(1, 3, 4)[0]",
    "{0}.reshape(3, 4)[:, ::-1]", "{0}.reshape((-1, 4))", "{0}.reshape(4, 3).transpose()", "{0}[None].reshape(3, 4)",
)  # fmt: skip
RECAST = {"int16": ("[:8]", "int32"), "uint16": ("[4:]", "uint32"), "int32": ("[2:4]", "int16"),
          "uint32": ("[:2]", "int16"), "int64": ("[10:]", "int32"), "uint64": ("[:2]", "uint32"),
          "int8": ("[:4]", "uint8"), "uint8": ("[8:]", "int8")}  # fmt: skip


class ViewWriter(ObjectWriter):
    """Writes the module's constructs."""

    deep = False  # in a function that is inside of an inner function

    def writers(self, scope: Scope, depth: int) -> dict[str, Callable[[], list[str]]]:
        blocks = {"nested": lambda: self.nested_function(scope), "patterns": lambda: self.pattern_statement(scope)}
        if depth < 0:
            blocks = dict.fromkeys(blocks, lambda: self.assignment(scope))
        return super().writers(scope, depth) | blocks | {
            "views": lambda: self.row_statement(scope) if scope.rows else self.assignment(scope),
            "reductions": lambda: self.reduction_statement(scope),
            "turns": lambda: self.turns_statement(scope),
            "times": lambda: self.time_statement(scope),
            "brains": lambda: self.brain_statement(scope),
        }  # fmt: skip

    def definitions_of_features(self) -> list[str]:
        lines = super().definitions_of_features()
        if "times" in self.chosen:
            self.define(
                'EPOCH = np.datetime64("1970-01-03")', f'HOUR = np.timedelta64({self.random.randint(-3, 5)}, "h")'
            )
        return lines

    def arguments_of_features(self) -> dict[str, object]:
        args = super().arguments_of_features()
        if "views" in self.chosen:
            args["vv"] = self.array(self.pick(*(name for name in TYPES if name != "bool_")), (self.size, LONG))
            if self.maybe(0.5):
                args["zv"] = self.laid_out(self.array(self.pick("complex64", "complex128"), (self.size, WIDTH)))
        if "times" in self.chosen:
            for name in ("da", "db"):
                args[name] = self.laid_out(self.times(f"M8[{self.pick('D', 'h', 's')}]"))
            for name in ("sa", "sb"):
                args[name] = self.laid_out(self.times(f"m8[{self.pick('D', 'h', 's', 'm')}]"))
            args["do_"], args["so"] = self.times("M8[s]"), self.times("m8[s]")
            args["sp"] = np.timedelta64(self.random.randint(-9, 9), self.pick("D", "h"))
        if "brains" in self.chosen:
            values = np.random.default_rng(self.random.getrandbits(32)).integers(-40, 40, self.size) / 8
            args["xh"] = np.array([to_bits(value) for value in values], np.uint16)
        return args

    def times(self, dtype: str) -> np.ndarray:
        draw = np.random.default_rng(self.random.getrandbits(32))
        values = draw.integers(-2, 3, self.size) if self.maybe(0.4) else draw.integers(-60, 99, self.size)
        made = values.astype(dtype)
        made[draw.random(self.size) < 0.1] = np.array("NaT", dtype)
        return made

    def start_features(self, scope: Scope, args: dict[str, object]) -> list[str]:
        lines = super().start_features(scope, args)
        if "views" in self.chosen:
            lines += self.start_views(scope, args)
        if "times" in self.chosen:
            lines += self.start_times(scope)
        if "brains" in self.chosen:
            lines += self.start_brains(scope)
        return lines

    # Views.

    def start_views(self, scope: Scope, args: dict[str, object]) -> list[str]:
        lines: list[str] = []
        bases = ["vv[i]", "vv[i, :]", "vv[i:][0]", "vv.reshape(-1)[i * 12:i * 12 + 12]"]
        if self.maybe(0.6):
            lines = [f"lv = cuda.local.array({LONG}, np.{self.pick(*TYPES)})", f"for k in range({LONG}):"]
            lines += [f"    lv[k] = {self.pick(*scope.inputs)} - k"]
            bases += ["lv", "lv"]
            self.accept(scope, lines)
            scope.fixed.add("lv")
        for _ in range(3):
            row = self.pick(*VIEWS).format(self.pick(*bases))
            if self.maybe(0.3):
                name = self.fresh("b")
                lines.append(f"{name} = {row}")
                self.accept(scope, lines[-1:])
                scope.fixed.add(name)
                row = name
            scope.rows.append(row)
        scope.planes += [(self.pick(*PLANES).format(self.pick(*bases)), 3) for _ in range(2)]
        dtype = args["vv"].dtype.name
        if dtype in RECAST and self.maybe(0.7):
            part, other = RECAST[dtype]
            scope.rows.append(f"vv[i]{part}.view(np.{other})")
        if "zv" in args:
            scope.rows.append(
                self.pick("zv[i].real", "zv[i].imag", "zv.imag[i]", "zv[i, ::-1].real", "zv.real.T[:, i]")
            )
        return lines

    # Reductions.

    def reduction_statement(self, scope: Scope) -> list[str]:
        if not (scope.rows or scope.planes):
            return self.assignment(scope)
        whole = self.row(scope) if scope.rows and self.maybe(0.7) else ""
        if not whole and scope.planes:
            whole = self.pick(*scope.planes)[0]
        elif whole and self.maybe(0.4):
            whole += self.pick("[1:]", "[::-1]", "[::2]", "[:-1]", "[2::-1]")
        dtype, kind = scope.type_of(whole or self.row(scope)).dtype, self.random.random()
        whole = whole or self.row(scope)
        if kind < 0.12 and "[1:]" not in whole:
            return [f"{whole}.fill({self.expr(scope, 1)})"]
        if kind < 0.3 and scope.type_of(whole).ndim == 1:
            return [f"{self.target(scope)} = {self.expr(scope, 1)} {self.pick('in', 'not in')} {whole}"]
        name = self.pick(
            "sum", "sum", "min", "max", "argmin", "argmax", "any", "all", *(["prod"] * (dtype.kind in "iub"))
        )
        call = self.pick(
            f"{whole}.{name}()", f"{whole}.{name}()", f"np.{name}({whole})" if name != "prod" else f"{whole}.prod()"
        )
        if name == "any" and self.maybe(0.3):
            call = f"np.count_nonzero({whole})"
        # The order of zeros of different signs is unspecified.
        zero = " + 0.0" if dtype.kind == "f" else self.pick("", f" + {self.expr(scope, 0)}")
        return [f"{self.target(scope)} = {call}{zero}"]

    # Comprehensions.

    def turn_source(self, scope: Scope, depth: int = 1) -> tuple[str, str, list[str]]:
        """A comprehension's iterable, its target, and the names in the target that hold constant numbers."""
        kind, name = self.random.random(), self.fresh("k")
        names = [each for each in scope.tuples() if all(isinstance(item, np.dtype) and item.kind in "iufb"
                                                         for item in scope.typer.env[each])]  # fmt: skip
        if depth > 0 and kind < 0.2:
            source, target, known = self.turn_source(scope, 0)
            start = self.pick("", "", ", 3")
            return f"enumerate({source}{start})", f"({name}, {target})", [name, *known]
        if depth > 0 and kind < 0.35:
            one, first, known = self.turn_source(scope, 0)
            two, second, more = self.turn_source(scope, 0)
            return f"zip({one}, {two})", f"({first}, {second})", known + more
        if depth > 0 and kind < 0.45:
            source, target, known = self.turn_source(scope, 0)
            return f"reversed({source})", target, known
        if names and kind < 0.7:
            return self.pick(*names), name, []
        low, high = self.random.randint(-2, 1), self.random.randint(2, 5)
        return self.pick(f"range({high})", f"range({low}, {high})", f"range({high}, {low}, -2)"), name, [name]

    def lazy_statement(self, scope: Scope) -> list[str]:
        """A generator whose iterations change a variable: it runs one iteration for each item that is consumed."""
        inputs = [text for text in scope.inputs if scope.is_int(text)]
        if not inputs:
            return self.assignment(scope)
        count, leaf = self.fresh("v"), self.pick(*inputs)
        lines = [f"{count} = np.int64({leaf}) % 5"]
        source, target, known = self.turn_source(scope)
        name = self.pick(*known) if known else "2"
        by = self.pick("1", "2", name, f"{name} * 2", f"{name} - 1")
        test = f" if {name} {self.pick('!= 1', '> 0', '% 2 == 0')}" if known and self.maybe(0.3) else ""
        loops = f"for {target} in {source}{test}"
        if self.maybe(0.2):
            loops += f" for {self.fresh('k')} in range({self.random.randint(1, 2)})"
        item, limit = f"({count} := {count} + {by})", self.random.randint(0, 9)
        out, kind = self.target(scope), self.random.random()
        if kind < 0.3:
            lines.append(f"{out} = {self.pick('any', 'all')}({item} {self.pick('<', '>', '!=')} {limit} {loops})")
        elif kind < 0.5:
            lines.append(f"{out} = {leaf} {self.pick('in', 'not in')} ({item} {loops})")
        elif kind < 0.6:
            lines.append(f"{out} = next(({item} {loops}), {limit})")
        elif kind < 0.65:
            lines.append(f"{out} = sum({item} {loops})")
        else:
            each = self.fresh("v")
            leave = self.pick(f"{each} > {limit}", f"{each} % 3 == {limit % 3}", f"{count} < {limit}")
            lines += [f"for {each} in ({item} {loops}):", f"    {out} = {each} + {self.expr(scope, 0)}"]
            lines += [f"    if {leave}:", f"        {self.pick('break', 'break', 'continue', f'{count} += 3')}"]
            if self.maybe(0.3):
                lines += ["else:", f"    {count} -= 7"]
        return [*lines, f"{self.target(scope)} = {count} + {self.pick(leaf, '1')}"]

    def turns_statement(self, scope: Scope) -> list[str]:
        if self.maybe(0.4):
            return self.lazy_statement(scope)
        source, target, known = self.turn_source(scope)
        test = ""
        if known and self.maybe(0.5):
            name = self.pick(*known)
            test = " if " + self.pick(
                f"{name} % 2 == 0", f"{name} != 1", f"{name} > 0", f"{name} % 3", f"not {name} == 2"
            )
        names = [each for each in target.replace("(", " ").replace(")", " ").replace(",", " ").split() if each]
        name, leaf = self.pick(*names), self.expr(scope, 0)
        if scope.rows and known and self.maybe(0.3):
            value = f"{self.row(scope)}[{self.pick(*known)} % {WIDTH}]"
        else:
            value = self.pick(f"{name} + {leaf}", f"{leaf} - {name}", f"({name}, {leaf})[{self.pick('0', '1')}]",
                              f"{name} * 2", f"min({name}, {leaf})")  # fmt: skip
        inner = f"{value} for {target} in {source}{test}"
        if not test and self.maybe(0.15):
            more = self.fresh("k")
            inner = f"{value} + {more} for {target} in {source} for {more} in range({self.random.randint(1, 2)})"
        kind = self.random.random()
        if kind < 0.4:
            return [f"{self.fresh('t')} = tuple({inner})"]
        if kind < 0.55:
            return [f"{self.target(scope)} = sum({inner})"]
        if kind < 0.7:
            compared = f"{value} {self.pick('<', '==', '>=')} {self.expr(scope, 0)} for {target} in {source}{test}"
            return [f"{self.target(scope)} = {self.pick('any', 'all')}({compared})"]
        if kind < 0.8:
            return [f"{self.target(scope)} = len(tuple({inner}))"]
        return [f"{self.target(scope)} = {self.pick('min', 'max')}(tuple({inner}))"]

    # Functions in inner functions.

    def nested_function(self, scope: Scope) -> list[str]:
        """An inner function with one inside of it, or one that calls another."""
        if self.inside:
            return self.assignment(scope)
        outer, inner, a, b = self.fresh("g"), self.fresh("g"), self.fresh("a"), self.fresh("a")
        closures = [(name, ty) for name, ty in scope.typer.env.items() if isinstance(ty, Closure)]
        env = {name: ty for name, ty in scope.typer.env.items() if not isinstance(ty, Closure)}
        within = Scope(self.functions, env | {a: np.dtype(self.pick("int64", "float64"))})
        within.inputs = [*scope.inputs, a]
        within.fixed = set(scope.typer.env) | scope.fixed
        within.rows = list(scope.rows)
        self.inside = True
        try:
            first = self.block(within, 0, 2) if self.maybe(0.6) else []
            if within.typer.env is None:
                return self.assignment(scope)
            most = Scope(self.functions, dict(within.typer.env) | {b: np.dtype("int64")})
            most.inputs, most.fixed, most.rows = [*within.inputs, b], set(most.typer.env), within.rows
            value = self.expr(most, 2)
            if self.maybe(0.5):
                default = f"={self.expr(within, 0)}" if self.maybe(0.4) else ""
                lines = [f"{inner} = lambda {b}{default}: {b} + {value}"]
            else:
                lines = [f"def {inner}({b}):", *(f"    {line}" for line in self.block(most, 0, 1))]
                if most.typer.env is None:
                    return self.assignment(scope)
                lines.append(f"    return {self.expr(most, 1)}")
            body = [*first, *lines]
            if self.maybe(0.4) and first:
                body += self.assignment(within)
            call = f"{inner}({self.expr(within, 1)})"
            if closures and self.maybe(0.6):
                call += f" - {self.closure_call(within, *self.pick(*closures))}"
            body.append(f"return {call} + {self.expr(within, 0)}")
        finally:
            self.inside = False
        lines = [f"def {outer}({a}):", *(f"    {line}" for line in body)]
        self.accept(scope, lines)
        scope.fixed.add(outer)
        more = self.assignment(scope) if self.maybe(0.6) else []
        if more:
            self.accept(scope, more)
        last = f"{self.target(scope)} = {outer}({self.expr(scope, 1)})"
        return [*lines, *more, last]

    # Patterns.

    def pattern_statement(self, scope: Scope) -> list[str]:
        kind = self.random.random()
        leaf, other = self.pick(*scope.inputs), self.expr(scope, 1)

        def block() -> list[str]:
            return [f"    {line}" for line in self.nested(scope, 1)]

        if kind < 0.25:  # nested, and of other lengths
            subject, a, b = f"({leaf}, ({other}, {self.expr(scope, 0)}))", self.fresh("v"), self.fresh("v")
            types = scope.type_of(subject)
            env, fixed = dict(scope.typer.env), set(scope.fixed)
            number = self.random.randint(-2, 4)
            lines = [f"match {subject}:", f"    case ({number}, (_, {self.random.randint(-2, 4)})):", *block()]
            lines += ["    case (_, _, _):", "        pass"] if self.maybe(0.3) else []
            scope.typer.env |= {a: types[0], b: types[1][1]}
            lines += [f"    case ({a}, (_, {b})) if {a} {self.pick('<', '!=', '>=')} {self.expr(scope, 0)}:", *block()]
            scope.typer.env, scope.fixed = env, fixed
        elif kind < 0.5:  # a choice with a name
            name = self.fresh("v")
            one, two = self.random.randint(-3, 4), self.random.randint(-3, 9)
            env, fixed = dict(scope.typer.env), set(scope.fixed)
            lines = [f"match {leaf}:"]
            scope.typer.env[name] = scope.type_of(leaf)
            lines += [f"    case ({one} | {two}) as {name}:", *block()]
            scope.typer.env, scope.fixed = env, fixed
        elif kind < 0.65 and "nones" in self.chosen and scope.kernel:
            lines = [f"match {self.pick('nn', 'dn')}:", "    case None:", *block()]
        elif kind < 0.8 and "objects" in self.chosen and self.objects(scope, "Point"):
            subject = self.pick(*self.objects(scope, "Point"))
            parts = ["_"] * len(scope.typer.env[subject])
            parts[self.random.randrange(len(parts))] = str(self.random.randint(-2, 4))
            lines = [f"match {subject}:", f"    case ({', '.join(parts)}):", *block()]
        elif kind < 0.9 and "enums" in self.chosen:
            lines = [f"match {self.member(scope, 'Color')}:", "    case Color.RED | Color.GREEN:", *block()]
        else:
            name = self.fresh("t")
            lines = [f"match ({leaf}, {other}, {self.expr(scope, 0)}):"]
            lines += [f"    case (*_, {self.random.randint(-2, 4)}):", *block()]
            lines += [f"    case ({self.random.randint(-2, 4)}, *_):", *block()]
        if self.maybe(0.6):
            lines += ["    case _:", *block()]
        return lines

    # Times.

    def start_times(self, scope: Scope) -> list[str]:
        lines = [f"{self.fresh('d')} = {self.pick('da[i]', 'db[-1 - i]', 'EPOCH')}", f"{self.fresh('u')} = sa[i]"]
        self.accept(scope, lines)
        return lines

    def timed(self, scope: Scope, kind: str) -> list[str]:
        return [name for name, ty in scope.typer.env.items() if isinstance(ty, np.dtype) and ty.kind == kind]

    def date(self, scope: Scope, depth: int) -> str:
        if depth > 0 and self.maybe(0.6):
            return f"({self.date(scope, depth - 1)} {self.pick('+', '-')} {self.span(scope, depth - 1)})"
        return self.pick(*self.timed(scope, "M"), *(["da[i]", "db[i]", "da[-1 - i]", "EPOCH"] if scope.kernel else []))

    def span(self, scope: Scope, depth: int) -> str:
        kind = self.random.random()
        if depth > 0 and kind < 0.3:
            return f"({self.date(scope, depth - 1)} - {self.date(scope, depth - 1)})"
        if depth > 0 and kind < 0.55:
            one, two = self.span(scope, depth - 1), self.span(scope, depth - 1)
            return f"({one} {self.pick('+', '-', '%')} {two})"
        if depth > 0 and kind < 0.75:
            by = self.pick("2", "-3", "np.int8(2)", self.bound(scope, uniform=False))
            one = self.span(scope, depth - 1)
            return self.pick(f"({one} * {by})", f"({by}) * {one}", f"({one} // {self.pick('2', '-3')})", f"(-{one})",
                             f"({one} * {self.pick('0.5', '-1.5')})", f"({one} / {self.pick('2', '0.5')})")  # fmt: skip
        names = [name for name in self.timed(scope, "m") if name != "sp"]
        return self.pick(*names, *(["sa[i]", "sb[i]", "sp", "HOUR", "sb[::-1][i]"] if scope.kernel else ["HOUR"]))

    def time_statement(self, scope: Scope) -> list[str]:
        if not self.timed(scope, "M") or not self.timed(scope, "m"):
            return self.assignment(scope)
        kind = self.random.random()
        if kind < 0.2:
            return [f"{self.fresh('d')} = {self.date(scope, 2)}"]
        if kind < 0.4:
            return [f"{self.fresh('u')} = {self.span(scope, 2)}"]
        if kind < 0.5 and scope.kernel:
            return [f"do_[i] = {self.date(scope, 2)}"]
        if kind < 0.6 and scope.kernel:
            return [f"so[i] = {self.span(scope, 2)}"]
        pick = self.date if self.maybe(0.5) else self.span
        one, two = pick(scope, 1), pick(scope, 1)
        if kind < 0.75:
            return [f"{self.target(scope)} = {one} {self.pick('<', '<=', '>', '>=', '==', '!=')} {two}"]
        if kind < 0.85:
            return [f"{self.target(scope)} = {self.span(scope, 1)} {self.pick('/', '//')} {self.span(scope, 1)}"]
        return [f"if {one} {self.pick('<', '>', '==')} {two}:", f"    {self.target(scope)} = {self.expr(scope, 1)}"]

    # bfloat16.

    def start_brains(self, scope: Scope) -> list[str]:
        lines = ["xv = xh.view(cuda.bfloat16)", f"hb = cuda.local.array({WIDTH}, cuda.bfloat16)"]
        lines += [f"for k in range({WIDTH}):", f"    hb[k] = {self.pick('xv[i]', *scope.inputs)}"]
        lines += [f"{self.fresh('h')} = {self.pick('xv[i]', 'hb[1]', 'cuda.bfloat16(0.5)')}"]
        self.accept(scope, lines)
        scope.fixed |= {"xv", "hb"}
        return lines

    def brains(self, scope: Scope) -> list[str]:
        return [name for name, ty in scope.typer.env.items() if ty is BRAIN]

    def brain(self, scope: Scope, depth: int) -> str:
        """An expression of a bfloat16."""
        kind = self.random.random()
        names = self.brains(scope)
        views = [name for name in ("hb",) if isinstance(scope.typer.env.get(name), Array)]
        if depth <= 0 or kind < 0.15:
            if names and self.maybe(0.6):
                return self.pick(*names)
            if views and self.maybe(0.5):
                return self.pick(f"hb[{self.random.randrange(-WIDTH, WIDTH)}]", "hb[::-1][1]", "xv[i]")
            return f"cuda.bfloat16({self.expr(scope, 1)})"
        one = self.brain(scope, depth - 1)
        if kind < 0.5:
            two = self.brain(scope, depth - 1) if self.maybe(0.7) else self.pick("True", "np.int8(2)", "np.uint8(3)")
            return f"({one} {self.pick('+', '-', '+', '-', '/')} {two})"
        if kind < 0.6:
            return (
                f"({one} * {self.pick('cuda.bfloat16(0.5)', 'cuda.bfloat16(-2)', 'np.int8(2)', self.brain(scope, 0))})"
            )
        if kind < 0.7:
            return f"(-{one})"
        if kind < 0.8:
            return f"abs({one})"
        return f"({one} if {self.condition(scope, 1)} else {self.brain(scope, depth - 1)})"

    def brain_statement(self, scope: Scope) -> list[str]:
        names = [name for name in self.brains(scope) if name not in scope.fixed]
        kind = self.random.random()
        if kind < 0.35:
            target = self.pick(*names) if names and self.maybe(0.6) else self.fresh("h")
            return [f"{target} = {self.brain(scope, 2)}"]
        if scope.kernel and kind < 0.5:
            return [f"hb[{self.index(scope)}] = {self.pick(self.brain(scope, 1), self.expr(scope, 1))}"]
        if scope.kernel and names and kind < 0.55:  # the bits of a NaN are unspecified
            name = self.pick(*names)
            return [f"if {name} == {name}:", f"    xv[i] = {name}"]
        if kind < 0.7:
            op = self.pick("<", "<=", "==", ">", "!=")
            other = self.pick(self.brain(scope, 1), self.expr(scope, 0))
            return [f"{self.target(scope)} = {self.brain(scope, 1)} {op} {other}"]
        cast = self.pick("np.float32", "np.float64", *(f"np.{name}" for name in INTS), "bool", "int")
        if kind < 0.85:
            return [f"{self.target(scope)} = {cast}({self.brain(scope, 1)})"]
        op = self.pick("+", "-", "//", "%", "*" if self.maybe(0.3) else "+")
        other = self.pick("2", "np.float32(0.5)", "np.int16(3)", "-1.5", self.expr(scope, 0))
        return [f"{self.target(scope)} = np.float32({self.brain(scope, 1)} {op} {other})"]
