"""Types the statements of a function, for `typed_rewrite.py`."""

from __future__ import annotations

import ast
import itertools

import numpy as np

from generators.typed_constants import Value, bind, known
from generators.typed_optional import facts_of
from generators.typed_values import (
    BRAIN,
    NOTHING,
    UNKNOWN,
    Array,
    Named,
    Record,
    Type,
    Unknown,
    conversions,
    join,
    merge,
    number_of,
    read_of,
    sometimes,
)

# The first iterations of inference over a loop may also make types less general: promotion is not monotone. After this
# number of iterations types only grow.
FREE_WALKS = 24


class StatementTyper:
    """The part of `typed_rewrite.Typer` for statements. The lists among the resulting statements are filled later."""

    def block(self, statements: list[ast.stmt]) -> list:
        out: list = []
        for statement in statements:
            if self.env is None:
                break
            out.append(self.attempt(getattr(self, f"stmt_{type(statement).__name__}"), statement))
            if out[-1] is None:
                out[-1] = []
                if isinstance(statement, ast.Return):
                    self.env = None
                    break
                for target in getattr(statement, "targets", [getattr(statement, "target", None)]):
                    names = [name for name in ast.walk(target or statement) if isinstance(name, ast.Name)]
                    for name in names:
                        if isinstance(name.ctx, ast.Store):
                            bind(self.env, name.id, UNKNOWN)
                if isinstance(statement, ast.FunctionDef):  # whose defaults have no type yet
                    bind(self.env, statement.name, UNKNOWN)
        return out

    def attempt(self, function, *args):
        """A result, or None if it needs a type that is not known yet."""
        try:
            return function(*args)
        except Unknown:
            self.unknown = True
            return None

    def test(self, node: ast.expr) -> tuple[ast.expr, Value]:
        """A condition, and its value if that is known."""
        found = self.attempt(self.truth, node)
        return (found[1], known(node)) if found else (node, None)

    def store(self, target: ast.expr, ty: Type, value: Value) -> ast.expr:
        if isinstance(target, ast.Name):
            bind(self.env, target.id, ty, value)
            return target
        if isinstance(target, ast.Tuple):
            if not isinstance(ty, tuple):
                raise TypeError("unpacking")
            values = value if isinstance(value, tuple) else (None,) * len(ty)
            if isinstance(ty, Named) and ty.kind == "dataclass":
                raise TypeError("unpacking")
            if rest := self.store_rest(target, ty, values):
                return rest
            if len(ty) != len(target.elts):
                raise TypeError("unpacking")
            return ast.Tuple([self.store(*each) for each in zip(target.elts, ty, values, strict=True)], ast.Store())
        _, new = self.expr(target)
        if not isinstance(new, ast.Subscript):
            raise TypeError("assignment to an expression that is no target")
        return ast.Subscript(new.value, new.slice, ast.Store())

    def stmt_Assign(self, node):
        if isinstance(node.value, ast.Lambda):
            out: list = []
            bind(self.env, node.targets[0].id, self.closure(node.value, out))
            return out
        names = all(isinstance(target, ast.Name) for target in node.targets)
        ty, value = self.expr_or_none(node.value) if names else self.expr(node.value)
        if ty == NOTHING:
            raise TypeError("nothing is assigned")
        if len(node.targets) == 1 and isinstance(target := node.targets[0], ast.Subscript) and isinstance(ty, Named):
            self.fits(target, ty)
            if (stores := self.store_vector(target, value)) is not None:
                return stores
        for target in node.targets:
            self.fits(target, ty)
        return ast.Assign([self.store(target, ty, known(node.value)) for target in node.targets], value)

    def fits(self, target: ast.expr, ty: Type) -> None:
        """Checks a store: a number to an element or view, or a view to a view of that rank; no complex to a real."""
        if isinstance(target, ast.Tuple) and isinstance(ty, tuple):
            for pair in zip(target.elts, ty, strict=False):
                self.fits(*pair)
        if not isinstance(target, (ast.Subscript, ast.Attribute)):
            return
        before = dict(self.env)
        place, _ = self.expr(target)
        self.env = before
        if isinstance(target, ast.Attribute) and isinstance(place, (Record, Array)):
            raise TypeError("a field takes a number")
        if self.stores_object(target, place, ty):
            return
        ty = number_of(ty)
        one, two = (each.dtype if isinstance(each, Array) else each for each in (place, ty))
        if not isinstance(two, np.dtype) or (two.kind == "c" and one.kind != "c"):
            raise TypeError(f"{two} into {one}")
        if isinstance(ty, Array) and (not isinstance(place, Array) or place.ndim != ty.ndim):
            raise TypeError(f"{ty} into {place}")

    def stmt_AugAssign(self, node):
        if (found := self.update(node)) is not None:
            return found
        read = read_of(node.target)
        before, both = dict(self.env), ast.BinOp(read, node.op, node.value)
        ty, value = self.expr(both)
        if not isinstance(value, ast.BinOp) or ty is BRAIN:  # one operator became several
            if not isinstance(node.target, ast.Name):
                raise TypeError("an index that would be evaluated twice")
            return ast.Assign([self.store(node.target, ty, known(both))], value)
        if isinstance(node.target, ast.Name) and isinstance(value.left, ast.Name):
            return ast.AugAssign(self.store(node.target, ty, known(both)), node.op, value.right)
        if isinstance(node.target, ast.Name):  # whose value may be None
            return ast.Assign([self.store(node.target, ty, known(both))], value)
        # The index is evaluated once, before the value.
        after, self.env = self.env, before
        self.fits(node.target, ty)
        self.env = after
        if not isinstance(value.left, ast.Subscript):
            raise TypeError("assignment to an expression that is no target")
        target = ast.Subscript(value.left.value, value.left.slice, ast.Store())
        return ast.AugAssign(target, node.op, value.right)

    def stmt_Expr(self, node):
        return ast.Expr(self.expr_or_none(node.value)[1])

    def stmt_Pass(self, node):
        return node

    def stmt_Nonlocal(self, node):
        return []

    def stmt_If(self, node):
        test, taken = self.test(node.test)
        if taken is not None:
            arm = self.block(node.body if taken else node.orelse)
            return ast.If(test, *((arm, []) if taken else ([], arm)))
        before = self.env
        self.env = dict(before)
        self.narrow(facts_of(node.test, True))
        body = self.block(node.body)
        then, self.env = self.env, dict(before)
        self.narrow(facts_of(node.test, False))
        orelse = self.block(node.orelse)
        joined = join(self.functions.kept, then, self.env)
        body.append(conversions(then, joined))
        orelse.append(conversions(self.env, joined))
        self.env = joined
        return ast.If(test, body, orelse)

    def loop(self, node: ast.For | ast.While, start) -> list:
        """A loop; `start` types the code before each iteration and returns the test of a while with its value."""
        before = dict(self.env)
        head = dict(before)
        returns, exits, unknown = len(self.returns), len(self.exits), self.unknown
        for walk in itertools.count(1):
            del self.returns[returns:]
            del self.exits[exits:]
            self.unknown = unknown
            self.env = dict(head)
            self.loops.append(([], []))
            first, taken = start()
            after_test = dict(self.env if isinstance(node, ast.While) else head)
            if isinstance(node, ast.While):
                self.narrow(facts_of(node.test, True))
            body = []
            if taken is not None and not taken:
                self.env = None
            else:
                body = self.block(node.body)
            breaks, continues = self.loops.pop()
            ends = [self.env, *(env for env, _ in continues)]
            ends = [env for env in ends if env is not None]
            turned = {name: merge(ty, *(env[name] for env in ends)) for name, ty in before.items()}
            turned |= sometimes(self.functions.kept - before.keys(), ends)
            wider = {name: merge(head.get(name, ty), ty) for name, ty in turned.items()}
            found = wider if walk >= FREE_WALKS else turned
            if found == head:
                break
            head = found
        if self.unknown and not self.loops and not self.functions.guesses():
            self.unknown = False
            raise TypeError("a variable that never has a type")
        for env, place in continues:
            place += conversions(env, head)
        body.append(conversions(self.env, head))
        self.env = None if taken else after_test
        if isinstance(node, ast.While) and not taken:
            self.narrow(facts_of(node.test, False))
        orelse = self.block(node.orelse)
        out = join(self.functions.kept, self.env, *(env for env, _ in breaks))
        # A name that only some exits have is not read later.
        for env, place in breaks:
            place += conversions(env, out)
        orelse.append(conversions(self.env, out))
        self.env = out
        new = ast.While(first, body, orelse)
        if isinstance(node, ast.For):
            new = ast.For(node.target, first, body, orelse)
        return [conversions(before, head), new]

    def stmt_While(self, node):
        return self.loop(node, lambda: self.test(node.test))

    def stmt_Assert(self, node):
        test, holds = self.test(node.test)
        if holds is not None and not holds:
            raise TypeError("nothing comes after an assertion that is known to fail: a function may have no result")
        self.narrow(facts_of(node.test, True))
        return ast.Assert(test, node.msg)

    def stmt_Raise(self, node):
        """The thread ends; the exception is a constant."""
        self.env = None
        return ast.Assert(ast.Constant(False))

    def stmt_Break(self, node):
        return self.jump(node, 0)

    def stmt_Continue(self, node):
        return self.jump(node, 1)

    def jump(self, node, which):
        place: list = []
        self.loops[-1][which].append((self.env, place))
        self.env = None
        return [place, node]

    def stmt_Return(self, node):
        ty, value = self.expr_or_none(node.value) if node.value else (NOTHING, None)
        before, self.env = self.env, None
        if not node.value:
            return node
        new = ast.Return(value)
        self.exits.append((before, new))
        self.returns.append((ty, new))
        return new
