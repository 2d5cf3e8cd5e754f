"""Random complex numbers and tuples for `random_programs.py`.

Complex numbers are small multiples of powers of two. Their products are exact or the program is left out, and they are
divided by powers of two only; so nothing depends on how a product is rounded or fused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from generators.random_expressions import ExpressionWriter, Scope
from generators.typed_values import Named

if TYPE_CHECKING:
    from generators.typed_values import Type


class ValueWriter(ExpressionWriter):
    """Writes complex numbers, tuples, and real numbers that are taken from them."""

    # Complex numbers.

    def complex_leaf(self, scope: Scope) -> str:
        names = scope.complexes()
        if names and self.maybe(0.6):
            return self.pick(*names)
        if self.maybe(0.2) and (parts := self.parts(scope, "c")):
            return self.pick(*parts)
        real, imag = (self.random.randint(-6, 6) / 2 for _ in range(2))
        if self.maybe(0.4):
            real = self.leaf(scope)
            return self.pick(f"complex({real}, {imag})", f"complex(np.float32({real}), np.float32({imag}))")
        return self.pick(f"{abs(imag)}j", f"complex({real}, {imag})", f"np.complex64({abs(real)})", f"({real} - 2j)")

    def complex_expr(self, scope: Scope, depth: int) -> str:
        """The text of a complex number, in parentheses if it needs them."""
        for _ in range(20):
            text = self.complex_leaf(scope) if depth <= 0 else self.complex_operation(scope, depth)
            try:
                ty = scope.type_of(text)
            except TypeError:
                continue
            if isinstance(ty, np.dtype) and ty.kind == "c":
                return text
        return "1j"

    def complex_operation(self, scope: Scope, depth: int) -> str:
        def sub():
            return self.complex_expr(scope, depth - 1)

        if self.kinds and self.maybe(self.calling):
            return self.call(scope, depth, "c")
        kind = self.random.random()
        if kind < 0.3:
            left, right = sub(), sub() if self.maybe(0.5) else self.expr(scope, depth - 1)
            if self.maybe(0.3):
                left, right = right, left
            return f"({left} {self.pick('+', '-')} {right})"
        if kind < 0.45:
            factor = self.pick("2", "0.5", "1j", "-1", "np.float32(4.0)", "(1 - 1j)", "np.complex64(2)", "")
            factor = factor or (self.leaf(scope) if self.maybe(0.5) else self.complex_leaf(scope))
            return f"({sub()} * {factor})" if self.maybe(0.6) else f"({factor} * {sub()})"
        if kind < 0.5:
            return f"({sub()} / {self.pick('2', '4.0', 'np.float32(0.5)', '(2 + 0j)')})"
        if kind < 0.58:
            return f"({self.pick('-', '+')}{sub()})"
        if kind < 0.68:
            z = self.complex_leaf(scope)
            return f"complex({z}.real, -{z}.imag)"  # its conjugate
        if kind < 0.78:
            return f"complex({self.expr(scope, depth - 1)}, {self.expr(scope, depth - 1)})"
        if kind < 0.86:
            other = sub() if self.maybe(0.6) else self.expr(scope, 0)
            return f"({sub()} if {self.condition(scope, depth - 1)} else {other})"
        if kind < 0.92:
            return f"np.{self.pick('complex64', 'complex128')}({sub() if self.maybe(0.6) else self.expr(scope, 0)})"
        names = [name for name in scope.complexes() if name not in scope.fixed]
        return f"({self.pick(*names)} := {sub()})" if names else self.complex_leaf(scope)

    def from_complex(self, scope: Scope, depth: int) -> str:
        """A real number that is taken from complex ones."""
        kind = self.random.random()
        if kind < 0.5:
            return f"{self.complex_expr(scope, depth - 1)}.{self.pick('real', 'imag')}"
        if kind < 0.7:
            return f"({self.complex_expr(scope, depth - 1)} {self.pick('==', '!=')} {self.complex_leaf(scope)})"
        if kind < 0.8:
            return f"({self.complex_leaf(scope)} {self.pick('==', '!=')} {self.expr(scope, depth - 1)})"
        if kind < 0.9:
            leaf = self.leaf(scope)
            return f"abs(complex({self.pick(f'{leaf}, 0.0', f'0.0, {leaf}', '3, -4.0')}))"
        return f"({self.leaf(scope)}).{self.pick('real', 'imag')}"

    # Tuples.

    @classmethod
    def paths(cls, text: str, ty: Type, kinds: str) -> list[str]:
        """The numbers of some kinds in a value: the value itself, or the items of a tuple."""
        if isinstance(ty, Named):
            found = [cls.paths(f"{text}.{field}", item, kinds) for field, item in zip(ty.fields, ty, strict=True)]
            return [path for paths in found for path in paths]
        if isinstance(ty, tuple):
            found = [cls.paths(f"{text}[{position}]", item, kinds) for position, item in enumerate(ty)]
            return [path for paths in found for path in paths]
        return [text] if isinstance(ty, np.dtype) and ty.kind in kinds else []

    def parts(self, scope: Scope, kinds: str = "iufb") -> list[str]:
        """Numbers in the variables that are tuples."""
        names = [*scope.tuples(), *scope.objects()]
        return [path for name in names for path in self.paths(name, scope.typer.env[name], kinds)]

    def tuple_expr(self, scope: Scope, depth: int) -> str:
        """A tuple of two or three numbers, or with a pair in it."""
        items = [self.expr(scope, depth) for _ in range(self.random.randint(2, 3))]
        if self.maybe(0.3):
            items[self.random.randrange(len(items))] = f"({self.expr(scope, depth)}, {self.expr(scope, depth)})"
        elif self.maybe(0.3):
            items[self.random.randrange(len(items))] = self.complex_expr(scope, depth)
        return f"({', '.join(items)})"

    def from_tuple(self, scope: Scope, depth: int) -> str:
        """A number that needs a tuple."""

        def many(low, high):
            return [self.expr(scope, depth - 1) for _ in range(self.random.randint(low, high))]

        kind = self.random.random()
        if kind < 0.3:
            cast = self.pick("np.int16", "np.int32", "np.uint8", "np.float32", "float", "np.int64")
            items = [f"{cast}({item})" for item in many(2, 4)]
            return f"({', '.join(items)})[{self.index(scope, len(items))}]"
        if kind < 0.5:
            items = [self.expr(scope, depth - 1), *many(1, 2)]
            return f"({self.expr(scope, depth - 1)} {self.pick('in', 'not in')} ({', '.join(items)}))"
        if kind < 0.75:
            left, right = many(2, 2), many(2, 2)
            if self.maybe(0.5):
                right[0] = left[0]
            names = [name for name in scope.tuples() if self.is_pair(scope.typer.env[name])]
            one = self.pick(*names) if names and self.maybe(0.6) else f"({', '.join(left)})"
            return f"({one} {self.pick('==', '!=')} ({', '.join(right)}))"
        left, right = many(2, 3), many(2, 2)
        both = f"(({', '.join(left)}) + ({', '.join(right)}))"
        return self.pick(f"{both}[{self.random.randint(-4, 3)}]", f"{both}[1:][{self.random.randint(-3, 2)}]")

    def truth(self, scope: Scope, leaf: str, depth: int) -> str:
        """A condition that depends on `leaf`, of a complex number or a tuple."""
        kind, other, equal = self.random.random(), self.expr(scope, 0), self.pick("==", "!=")
        z = f"complex({leaf}, {other})"
        if kind < 0.3:
            return f"{z} {equal} {self.complex_expr(scope, depth)}"
        if kind < 0.6:
            return f"{leaf} {self.pick('in', 'not in')} ({self.expr(scope, depth)}, {other}, {self.literal()})"
        if kind < 0.9:
            return f"({leaf}, {other}) {equal} ({self.expr(scope, 0)}, {self.expr(scope, depth)})"
        return f"({z} and {leaf})"
