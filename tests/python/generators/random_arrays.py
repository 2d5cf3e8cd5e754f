"""Random updates of views, functions of arrays along an axis, sums of complex numbers and of float16, ranges that are
values, and iterators, for `random_programs.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from generators.random_expressions import TYPES, WIDTH, Scope
from generators.random_views import ViewWriter
from generators.typed_arrays import result_dtype
from generators.typed_sequences import item_type
from generators.typed_values import Sequence, name_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

ALONG = ("sum", "sum", "min", "max", "argmin", "argmax", "any", "all", "prod", "mean", "cumsum")


class ArrayWriter(ViewWriter):
    """Writes the module's constructs."""

    in_recursion = False  # in a recursive function, in which each call would have its own local arrays

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.functions.further_sums = "sums" in self.chosen

    def writers(self, scope: Scope, depth: int) -> dict[str, Callable[[], list[str]]]:
        return super().writers(scope, depth) | {
            "updates": lambda: self.update_statement(scope),
            "axes": lambda: self.axis_statement(scope),
            "sums": lambda: self.sum_statement(scope),
            "iterators": lambda: self.iterator_statement(scope, depth),
        }

    # Updates of views.

    def update_statement(self, scope: Scope) -> list[str]:
        if not (scope.rows or scope.planes):
            return self.assignment(scope)
        rows = 0
        if scope.planes and (not scope.rows or self.maybe(0.4)):
            target, rows = self.pick(*scope.planes)
        else:
            target = self.row(scope)
        into, extents = self.part_of(target, rows)
        kind = scope.type_of(target).dtype.kind
        ops = ["+", "-", "+", "//", "%", *("&|^" if kind in "iub" else "/"), *(["<<", ">>"] if kind in "iu" else [])]
        op = self.pick(*ops)
        if kind == "c":
            op = self.pick("+", "-")
        if self.maybe(0.1):
            return [f"{into} *= {self.pick('2', '-1', '4' if kind in 'iub' else '0.5')}"]
        chance = self.random.random()
        if chance < 0.35:
            other = [
                text for text in (*(self.row(scope) for _ in range(2)), *scope.sources) if self.apart(text, target)
            ]
            for _ in range(20):
                if not other:
                    break
                what, same = self.part_of(self.pick(*other), 0)
                if same == extents[-1:]:  # a row for each row of a plane, too
                    return [f"{into} {op}= {what}"]
        if chance < 0.5 and 0 < extents[-1] <= 4:
            items = ", ".join(self.expr(scope, 1) for _ in range(extents[-1]))
            return [f"{into} {op}= ({items}{',' if extents[-1] == 1 else ''})"]
        if chance < 0.6 and kind == "c":
            return [f"{into} {op}= {self.complex_expr(scope, 1)}"]
        if chance < 0.75:
            name = self.fresh("b")
            return [f"{name} = {into}", f"{name} {op}= {self.expr(scope, 1)}"]
        return [f"{into} {op}= {self.expr(scope, 1)}"]

    # Along an axis, and with other parameters.

    def axis_statement(self, scope: Scope) -> list[str]:
        if not (scope.rows or scope.planes):
            return self.assignment(scope)
        name = self.pick(*ALONG)
        if not scope.planes or self.in_recursion or self.maybe(0.35):
            return self.parameter_statement(scope, name)
        plane, rows = self.pick(*scope.planes)
        dtype, (axis, extent) = scope.type_of(plane).dtype, self.pick((0, WIDTH), (-2, WIDTH), (1, rows), (-1, rows))
        if name in ("prod", "cumsum") and dtype.kind not in "iub":
            name = "sum"
        result, more, shape, place = result_dtype(name, dtype), "", str(extent), "{}"
        if name != "cumsum" and name in ("sum", "prod") and self.maybe(0.3):
            result = self.total_dtype(dtype)
            more = f", dtype=np.{name_of(result)}"
        if name == "cumsum":
            shape, place, extent = f"({rows}, {WIDTH})", f"{self.index(scope, rows)}, {{}}", WIDTH
        elif self.maybe(0.25):
            more += ", keepdims=True"
            shape, place = (f"(1, {extent})", "0, {}") if axis in (0, -2) else (f"({extent}, 1)", "{}, 0")
        u = self.fresh("u")
        lines = [f"{u} = cuda.local.array({shape}, np.{name_of(result)})"]
        call = self.pick(f"np.{name}({plane}, axis={axis}, out={u}{more})", f"{plane}.{name}({axis}, out={u}{more})")
        self.accept(scope, [*lines, call])
        scope.fixed.add(u)
        item = f"{u}[{place.format(self.index(scope, extent))}]"
        return [*lines, call, f"{self.target(scope)} = {item} + {self.zero_or(scope, result)}"]

    def zero_or(self, scope: Scope, dtype: np.dtype) -> str:
        """An expression that hides the sign of a zero minimum, because the sign is unspecified."""
        return "0.0" if dtype.kind == "f" else self.expr(scope, 0)

    def total_dtype(self, dtype: np.dtype) -> np.dtype:
        import numpy as np

        names = ["float64", "float32", "int32", "int64", "uint8", "int16"]
        return np.dtype(self.pick(*(names if dtype.kind in "iub" else names[:2])))

    def parameter_statement(self, scope: Scope, name: str) -> list[str]:
        """A reduction of all elements, with a dtype or an initial value."""
        whole = self.row(scope) if scope.rows and self.maybe(0.6) else ""
        whole = whole or (self.pick(*scope.planes)[0] if scope.planes else self.row(scope))
        dtype = scope.type_of(whole).dtype
        if name in ("min", "max", "argmin", "argmax", "any", "all", "cumsum"):
            name = self.pick("sum", "mean")
        if name == "prod" and dtype.kind not in "iub":
            name = "sum"
        options = []
        if name != "mean":
            if self.maybe(0.7):
                options.append(f"dtype=np.{name_of(self.total_dtype(dtype))}")
            if self.maybe(0.5):
                options.append(f"initial={self.pick('2', '-1', '5')}")
        text = ", ".join(options)
        call = self.pick(f"{whole}.{name}({text})", f"np.{name}({', '.join([whole, *options])})")
        return [f"{self.target(scope)} = {call} + {self.expr(scope, 0)}"]

    # Sums of complex numbers and of float16.

    def arguments_of_features(self) -> dict[str, object]:
        args = super().arguments_of_features()
        if "sums" in self.chosen:
            args["zs"] = self.laid_out(self.array(self.pick("complex64", "complex128"), (self.size, WIDTH)))
            args["hs"] = self.array("float16", (self.size, WIDTH))
        return args

    def start_features(self, scope: Scope, args: dict[str, object]) -> list[str]:
        lines = super().start_features(scope, args)
        if "sums" in self.chosen:
            scope.rows.append(self.pick("hs[i]", "hs[i, ::-1]", "hs[i:][0]"))
        return lines

    def sum_statement(self, scope: Scope) -> list[str]:
        part = self.pick("", "", "[1:]", "[::-1]", "[::2]", "[:-1]")
        if not scope.kernel:
            halves = [row for row in scope.rows if scope.type_of(row).dtype.name == "float16"]
            if not halves:
                return self.assignment(scope)
            return [f"{self.target(scope)} = {self.pick(*halves)}{part}.sum() + {self.expr(scope, 1)}"]
        kind = self.random.random()
        if kind < 0.2:
            return [f"zs[i, {self.random.randrange(WIDTH)}] {self.pick('=', '+=', '-=')} {self.complex_expr(scope, 1)}"]
        if kind < 0.6:
            row = self.pick("zs[i]", "zs[i, ::-1]", "zs.T[:, i]") + part
            call = self.pick(f"{row}.sum()", f"np.sum({row})", f"{row}.sum(initial=2)", f"np.sum({row})")
            if self.maybe(0.25):
                return [f"{self.target(scope)} = {row}.{self.pick('any', 'all')}()"]
            return [f"{self.fresh('z')} = {call} {self.pick('+', '-')} {self.complex_expr(scope, 1)}"]
        row = f"hs[i]{part}"
        call = self.pick(
            f"{row}.sum()", f"np.sum({row})", f"{row}.max() + 0.0", f"np.min({row}) + 0.0", f"{row}.argmax()"
        )
        return [f"{self.target(scope)} = {call} {self.pick('+', '-')} {self.expr(scope, 1)}"]

    # Ranges and iterators.

    def own_range(self, scope: Scope) -> str:
        """A range whose bounds are not constants."""
        inputs = [text for text in scope.inputs if scope.is_int(text)]
        if not inputs:
            raise TypeError("no ints")
        low, high = f"{self.pick(*inputs)} % {self.random.randint(2, 5)}", f"{self.pick(*inputs)} % 7 + 2"
        step = self.pick("", "", ", 2", ", -1", ", 3", ", -2")
        if self.maybe(0.25):
            low, high, step = f"np.int32({low})", f"np.int32({high})", step and f", np.int32({step[2:]})"
        return f"range({high}, {low}{step})" if "-" in step else f"range({low}, {high}{step})"

    def iterator_statement(self, scope: Scope, depth: int) -> list[str]:
        types = {name: ty for name, ty in scope.typer.env.items() if isinstance(ty, Sequence)}
        ranges = [name for name, ty in types.items() if ty.kind == "range" and name.startswith("ro")]
        iterators = [name for name, ty in types.items() if ty.kind == "iter"]
        kind = self.random.random()
        if ranges and kind < 0.3:
            name = self.pick(*ranges)
            rest, low = self.pick("[1:]", "[::2]", "[::-1]", "[:-1]", "[-3:]", ""), self.expr(scope, 1)
            at = self.pick("0", "-1", f"{self.expr(scope, 0, ints=True)} % len({name})")
            use = self.pick(
                f"len({name})", f"len({name}{rest})", f"({low} in {name})", f"({low} not in {name}{rest})",
                f"{name}.start - {low}", f"{name}.stop + {low}", f"{name}.count({low})", f"{name}.index({low})",
                f"{name}[{at}] if len({name}) > 0 else {low}", f"({name} == {self.pick(*ranges)}{rest})",
            )  # fmt: skip
            if depth >= 0 and self.maybe(0.25):
                over = self.pick(f"{name}{rest}", f"reversed({name}{rest})", f"enumerate({name}{rest})")
                return self.loop_over(scope, depth, over, item_type(scope.type_of(over)))
            return [f"{self.target(scope)} = {use}"]
        if iterators and kind < 0.65:
            name = self.pick(*iterators)
            item = item_type(scope.typer.env[name])
            if isinstance(item, tuple):
                if depth < 0:
                    return self.assignment(scope)
                return self.loop_over(scope, depth, name, item)
            if depth >= 0 and self.maybe(0.3):
                return self.loop_over(scope, depth, name, item)
            more = "" if self.leaves and self.maybe(0.15) else f", {self.expr(scope, 0)}"
            return [f"{self.target(scope)} = next({name}{more}) + {self.expr(scope, 0)}"]
        if (kind < 0.5 and not ranges) or not (scope.rows or scope.planes):
            return [f"{self.fresh('ro')} = {self.own_range(scope)}"]
        row = f"{self.row(scope)}{self.pick('', '[1:]', '[::-1]')}"
        cast = self.pick(*(f"np.{each}" for each in TYPES))
        over = self.pick(
            row, row, self.own_range(scope), f"zip({self.own_range(scope)}, {row})", f"enumerate({row})",
            f"reversed({row})", f"({cast}({self.expr(scope, 1)}), {cast}({self.expr(scope, 1)}))",
        )  # fmt: skip
        return [f"{self.fresh('it')} = iter({over})"]
