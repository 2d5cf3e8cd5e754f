"""Types iterables and nested functions, for `typed_rewrite.py`.

`range`, `enumerate`, `zip` and `reversed` are values. A loop over a tuple of several types is a loop over the numbers
of its items, with a body for each of them. A comprehension is a tuple of the values of its iterations. `match` is a
chain of `if`. A `lambda` or an inner function is a device function that takes captured variables as further arguments,
with their values if those are constants; its defaults are evaluated where it is defined.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from oracle import numeric

from generators.typed_constants import bind, key, known
from generators.typed_strings import letter
from generators.typed_values import (
    INT32,
    INT64,
    NONE,
    NOTHING,
    UINT64,
    Array,
    Closure,
    Sequence,
    Text,
    converted,
    dotted,
    load,
    unify,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from generators.typed_constants import Value
    from generators.typed_values import Type

INTEGERS = {np.dtype(name) for name in "int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()}
MOST_TURNS = 16  # of a loop that has a body for each of its items


def assigned(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def item_type(ty: Type) -> Type | None:
    """The items of a loop over a value of this type; None if they differ in type."""
    if isinstance(ty, Array):
        return Array(ty.dtype, ty.ndim - 1) if ty.ndim > 1 else ty.dtype
    if isinstance(ty, Text):
        return letter(ty)
    if isinstance(ty, tuple):
        return ty[0] if len(set(ty)) == 1 else None
    if not isinstance(ty, Sequence):
        raise TypeError(f"for over {ty}")
    match ty.kind:
        case "range":
            return ty.parts[0]
        case "enumerate":
            inner = item_type(ty.parts[0])
            return None if inner is None else (INT64, inner)
        case "zip":
            items = tuple(item_type(part) for part in ty.parts)
            return None if None in items else items
    return item_type(ty.parts[0])


@dataclasses.dataclass
class Items:
    """The iterable of a loop with a body for each item: maps an item's number to its expression."""

    count: int
    at: object  # a function of the number
    names: list[str]  # variables that hold it


class SequenceTyper:
    """The part of `typed_rewrite.Typer` for the module's constructs."""

    def temporary(self, stem: str) -> str:
        return f"_{stem}{next(self.functions.temporaries)}"

    # Iterables of loops.

    def range_call(self, node: ast.Call) -> tuple[Type, ast.expr]:
        types, args = zip(*(self.real(arg) for arg in node.args), strict=True)
        if not all(numeric.is_int(ty) for ty in types):
            raise TypeError("range of floats")
        ty = INT64
        if all(each == INT32 for each in types):
            ty = INT32
        elif all(each.kind == "u" for each in types):
            ty = UINT64
        return Sequence("range", (ty,)), ast.Call(node.func, list(args), [])

    def sequence_call(self, target: str, node: ast.Call) -> tuple[Type, ast.expr]:
        """`range`, `enumerate`, `zip` or `reversed`."""
        if target == "range":
            return self.range_call(node)
        types, args = zip(*(self.expr(arg) for arg in node.args), strict=True)
        keywords = [ast.keyword(each.arg, self.expr(each.value)[1]) for each in node.keywords]
        if target == "enumerate":
            starts = [*types[1:], *(self.number(each.value)[0] for each in node.keywords)]
            if any(ty not in INTEGERS for ty in starts):
                raise TypeError("enumerate starts at an integer")
            types = types[:1]
        found = Sequence(target, types)
        item_type(found)
        return found, ast.Call(node.func, list(args), keywords)

    def stmt_For(self, node):
        if isinstance(node.iter, ast.GeneratorExp):
            return self.for_generated(node)
        # The iterable is evaluated before variables get the types of the loop's head.
        before = dict(self.env)
        many, value = self.expr(node.iter)
        if many == ():
            raise TypeError("a loop without iterations")
        ty = item_type(many)
        if ty is None:
            self.env = before
            return self.for_each(node)
        name = self.temporary("i")

        def start():
            self.store(node.target, ty, None)
            return load(name), None

        return [assigned(name, value), self.loop(node, start)]

    def for_each(self, node: ast.For) -> list:
        """A loop whose items differ in type: each iteration selects one of the bodies."""
        out: list = []
        items = self.items(node.iter, out)
        if items.count > MOST_TURNS:
            raise TypeError("too many iterations")
        turn = self.temporary("u")
        choice: list[ast.stmt] = []
        for number in reversed(range(items.count)):
            body = [ast.Assign([copy.deepcopy(node.target)], items.at(number)), *copy.deepcopy(node.body)]
            if number + 1 < items.count:
                test = ast.Compare(load(turn), [ast.Eq()], [ast.Constant(number)])
                body = [ast.If(test, body, choice)]
            choice = body
        over = ast.Call(load("range"), [ast.Constant(items.count)], [])
        out.append(self.stmt_For(ast.For(ast.Name(turn, ast.Store()), over, choice, node.orelse)))
        for name in (turn, *items.names):
            if self.env is not None:
                self.env.pop(name, None)
                self.env.pop(key(name), None)
        return out

    def items(self, node: ast.expr, out: list) -> Items:
        """The items of an iterable that is converted to a tuple; `out` gets statements that evaluate it."""
        target = dotted(node.func) if isinstance(node, ast.Call) else ""
        if target == "enumerate":
            over = self.items(node.args[0], out)
            first = [*node.args[1:], *(each.value for each in node.keywords), ast.Constant(0)][0]
            before = dict(self.env)
            if self.number(first)[0].kind not in "iu":
                raise TypeError("enumerate starts at an integer")
            self.env = before
            name = self.held(ast.Call(ast.parse("np.int64", mode="eval").body, [first], []), out, is_known=False)

            def numbered(number):
                return ast.Tuple([ast.BinOp(load(name), ast.Add(), ast.Constant(number)), over.at(number)], ast.Load())

            return Items(over.count, numbered, [name, *over.names])
        if target == "zip":
            parts = [self.items(arg, out) for arg in node.args]
            names = [name for part in parts for name in part.names]
            return Items(
                min(part.count for part in parts),
                lambda number: ast.Tuple([part.at(number) for part in parts], ast.Load()),
                names,
            )
        if target == "reversed":
            over = self.items(node.args[0], out)
            return Items(over.count, lambda number: over.at(over.count - 1 - number), over.names)
        name = self.held(node, out)
        ty = self.env[name]
        if not isinstance(ty, tuple):
            raise TypeError("a loop over a tuple of several types with what is no tuple")

        def item(number):
            return ast.Subscript(load(name), ast.Constant(number), ast.Load())

        return Items(len(ty), item, [name])

    def held(self, node: ast.expr, out: list, *, is_known: bool = True) -> str:
        """A variable for the value of an expression."""
        ty, value = self.expr(node)
        name = self.temporary("h")
        bind(self.env, name, ty, known(node) if is_known else None)
        out.append(assigned(name, value))
        return name

    # Tuples.

    def expr_Starred(self, node):
        ty, value = self.expr(node.value)
        if not isinstance(ty, tuple):
            raise TypeError("* of what is no tuple")
        return ty, ast.Starred(value, ast.Load())

    def expr_Tuple(self, node):
        types: list[Type] = []
        items: list[ast.expr] = []
        for part in node.elts:
            ty, item = self.given(part)
            types += ty if isinstance(part, ast.Starred) else [ty]
            items.append(item)
        return tuple(types), ast.Tuple(items, ast.Load())

    def store_rest(self, target: ast.Tuple, ty: tuple, values: tuple) -> ast.expr | None:
        """`a, *b, c = value`; None if nothing is starred."""
        star = next((at for at, part in enumerate(target.elts) if isinstance(part, ast.Starred)), None)
        if star is None:
            return None
        last = len(ty) - (len(target.elts) - 1 - star)
        if last < star:
            raise TypeError("too few values to unpack")
        types, rest = [*ty[:star], ty[star:last], *ty[last:]], [*values[:star], values[star:last], *values[last:]]
        parts = []
        for part, each, value in zip(target.elts, types, rest, strict=True):
            starred = isinstance(part, ast.Starred)
            new = self.store(part.value if starred else part, each, value)
            parts.append(ast.Starred(new, ast.Store()) if starred else new)
        return ast.Tuple(parts, ast.Store())

    def comprehension(self, node: ast.GeneratorExp) -> tuple[Type, ast.expr]:
        """A tuple of the values of the iterations: their number and their conditions are known."""
        types, items = [], []
        for each in self.turns(node.generators, node.elt):
            ty, item = self.expr(each)
            types.append(ty)
            items.append(item)
        return tuple(types), ast.Tuple(items, ast.Load())

    def first_that(self, node: ast.GeneratorExp, test: Callable, *, ends: bool) -> tuple[Type, ast.expr]:
        """`any` or `all` of a test: a chain of `or` or `and`, since the remaining items are not evaluated."""
        parts = [ast.Call(load("bool"), [test(each)], []) for each in self.turns(node.generators, node.elt)]
        if not parts:
            return np.dtype("bool"), ast.Constant(not ends)
        return self.expr(parts[0] if len(parts) == 1 else ast.BoolOp(ast.Or() if ends else ast.And(), parts))

    def member_of(self, node: ast.Compare) -> tuple[Type, ast.expr]:
        """`x in generator`, of an `x` that can be read again."""
        if not isinstance(node.left, (ast.Name, ast.Subscript, ast.Constant)):
            raise TypeError("a generator that is looked in for what is computed")

        def same(item: ast.expr) -> ast.expr:
            return ast.Compare(copy.deepcopy(node.left), [ast.Eq()], [item])

        ty, found = self.first_that(node.comparators[0], same, ends=True)
        return ty, found if isinstance(node.ops[0], ast.In) else ast.UnaryOp(ast.Not(), found)

    def for_generated(self, node: ast.For) -> list:
        """A loop over a generator whose items have one type: an iteration computes its item, and runs the body."""
        turns = self.turns(node.iter.generators, node.iter.elt)
        if not turns:
            raise TypeError("a loop without iterations")
        turn = self.temporary("u")
        choice: list[ast.stmt] = []
        for number in reversed(range(len(turns))):
            item: list[ast.stmt] = [ast.Assign([copy.deepcopy(node.target)], turns[number])]
            if number + 1 < len(turns):
                item = [ast.If(ast.Compare(load(turn), [ast.Eq()], [ast.Constant(number)]), item, choice)]
            choice = item
        over = ast.Call(load("range"), [ast.Constant(len(turns))], [])
        body = [*choice, *copy.deepcopy(node.body)]
        out = [self.stmt_For(ast.For(ast.Name(turn, ast.Store()), over, body, node.orelse))]
        if self.env is not None:
            self.env.pop(turn, None)
            self.env.pop(key(turn), None)
        return out

    def turns(self, loops: list[ast.comprehension], inner: ast.expr) -> list[ast.expr]:
        """The expression of each iteration, with loop variables replaced by their values."""
        if not loops:
            return [inner]
        loop, found = loops[0], []
        for item in self.items_of(loop.iter):
            rename = Renamed(dict(unpacked(loop.target, item)))
            tests = [rename.visit(copy.deepcopy(test)) for test in loop.ifs]
            rest = [rename.visit(copy.deepcopy(each)) for each in loops[1:]]
            for test in tests:
                self.number(test)
                if known(test) is None:
                    raise TypeError("a condition that is not known")
                if not known(test):
                    break
            else:
                found += self.turns(rest, rename.visit(copy.deepcopy(inner)))
            if len(found) > MOST_TURNS:
                raise TypeError("too many iterations")
        return found

    def items_of(self, node: ast.expr) -> list[ast.expr]:
        """The items of a comprehension's iterable."""
        if isinstance(node, ast.Tuple):
            if not all(isinstance(item, (ast.Constant, ast.Name)) for item in node.elts):
                raise TypeError("a comprehension over what is computed")
            return node.elts
        target = dotted(node.func) if isinstance(node, ast.Call) else ""
        if target == "range":
            return [ast.parse(str(k), mode="eval").body for k in range(*(ast.literal_eval(arg) for arg in node.args))]
        if target == "enumerate":
            start = ast.literal_eval(node.args[1]) if node.args[1:] else 0
            items = enumerate(self.items_of(node.args[0]), start)
            return [ast.Tuple([ast.parse(str(k), mode="eval").body, item], ast.Load()) for k, item in items]
        if target == "zip":
            many = zip(*(self.items_of(arg) for arg in node.args), strict=False)
            return [ast.Tuple(list(items), ast.Load()) for items in many]
        if target == "reversed":
            return self.items_of(node.args[0])[::-1]
        ty, _ = self.expr(node)
        if not isinstance(node, ast.Name) or not isinstance(ty, tuple):
            raise TypeError("a comprehension over no tuple")
        return [ast.Subscript(load(node.id), ast.Constant(number), ast.Load()) for number in range(len(ty))]

    # Functions inside of functions.

    def closure(self, node: ast.Lambda | ast.FunctionDef, out: list | None) -> Closure:
        """The type of a lambda or an inner function; `out` gets statements that evaluate its defaults."""
        if not hasattr(node, "lifted"):
            name = f"l{len(self.functions.sources)}_{next(self.functions.temporaries)}"
            body = [ast.Return(node.body)] if isinstance(node, ast.Lambda) else node.body
            own, rest = [arg.arg for arg in node.args.args], node.args.vararg.arg if node.args.vararg else ""
            read = [part for statement in body for part in ast.walk(statement) if isinstance(part, ast.Name)]
            others = tuple(each for part in body if isinstance(part, ast.Nonlocal) for each in part.names)
            local = ({part.id for part in read if isinstance(part.ctx, ast.Store)} | {*own, rest}) - {*others}
            captures = sorted(self.with_those_of_functions({part.id for part in read if part.id in self.env} - local))
            if local & set(captures):
                raise TypeError("a name that stands for two variables")
            if any(isinstance(ty := self.env.get(each), Sequence) and ty.kind == "iter" for each in captures):
                raise TypeError("an iterator that leaves its function")
            if any(isinstance(ty := self.env.get(each), Closure) and ty.assigned for each in captures):
                raise TypeError("a function that assigns to what is around it, in another")
            names = [*own, *([rest] if rest else []), *captures]
            args = ast.arguments([], [ast.arg(each) for each in names], None, [], [], None, [])
            decorators = [ast.parse("cuda.jit(device=True)", mode="eval").body]
            node.lifted = ast.FunctionDef(name, args, body, decorators), tuple(own), rest, tuple(captures), others
            defaults = node.args.defaults
            node.held = [self.temporary("d") for _ in defaults]
        lifted, own, rest, captures, others = node.lifted
        types = []
        for name, default in zip(node.held, node.args.defaults, strict=True):
            ty, value = self.expr(default)
            if out is None:
                raise TypeError("defaults of a lambda inside of an expression")
            types.append(ty)
            out.append(assigned(name, value))
        given = dict(zip(own[len(own) - len(types) :], zip(node.held, types, strict=True), strict=True))
        return Closure(lifted.name, Same(lifted), own, rest, captures, tuple(given.items()), others)

    def with_those_of_functions(self, names: set[str]) -> set[str]:
        """Variables, with those that functions among them read."""
        found, rest = set(names), list(names)
        while rest:
            ty = self.env.get(rest.pop())
            if isinstance(ty, Closure):
                more = {*ty.captures, *(held for _, (held, _) in ty.defaults)} - found
                found |= more
                rest += more
        return found

    def stmt_FunctionDef(self, node):
        out: list = []
        bind(self.env, node.name, self.closure(node, out))
        return out

    def call_closure(self, function: Closure, node: ast.Call) -> tuple[Type, ast.expr]:
        positional = [each for arg in node.args for each in self.arguments(arg)]
        if len(positional) > len(function.own) and not function.rest:
            raise TypeError("too many arguments")
        given = dict(zip(function.own, positional, strict=False))
        order = list(given)
        if function.rest:
            more = positional[len(function.own) :]
            given[function.rest] = tuple(ty for ty, _ in more), ast.Tuple([part for _, part in more], ast.Load())
            order.append(function.rest)
        for keyword in node.keywords:
            if keyword.arg in given:
                raise TypeError("an argument twice")
            given[keyword.arg] = self.given(keyword.value)
            order.append(keyword.arg)
        for name, (held, ty) in function.defaults:
            given.setdefault(name, (ty, load(held)))
        own = [*function.own, *([function.rest] if function.rest else [])]
        if set(given) != set(own):
            raise TypeError("arguments")
        values: list[Value] = [None] * len(own)
        for name in function.captures:
            read = load(name)
            given[name] = self.given(read)
            values.append(None if name in function.assigned else known(read))
            if isinstance(given[name][0], Closure):  # a constant: the variables that it reads are captured too
                given[name] = given[name][0], ast.Constant(0)
        names = [*own, *function.captures]
        types = tuple(given[name][0] for name in names)
        special, result, after = self.functions.lift(function, names, types, tuple(values))
        # Arguments are evaluated in their order, before defaults and captured variables are read.
        order += [name for name in names if name not in order]
        call = ast.Call(load(special), [], [ast.keyword(name, given[name][1]) for name in order])
        if not function.assigned:
            return result, call
        # It returns its result and the values of the variables that it assigned.
        held = self.temporary("n")
        parts: list[ast.expr] = [ast.NamedExpr(ast.Name(held, ast.Store()), call)]
        for at, (name, ty) in enumerate(zip(function.assigned, after, strict=True), 1):
            parts.append(
                ast.NamedExpr(ast.Name(name, ast.Store()), ast.Subscript(load(held), ast.Constant(at), ast.Load()))
            )
            bind(self.env, name, ty, None)
        parts.append(ast.Subscript(load(held), ast.Constant(0), ast.Load()))
        return result, ast.Subscript(ast.Tuple(parts, ast.Load()), ast.Constant(len(parts) - 1), ast.Load())

    def arguments(self, node: ast.expr) -> list[tuple[Type, ast.expr]]:
        """An argument, or the items of a tuple variable after `*`."""
        if not isinstance(node, ast.Starred):
            return [self.given(node)]
        ty, value = self.expr(node.value)
        if not isinstance(ty, tuple) or not isinstance(value, ast.Name):
            raise TypeError("* of what is no variable, or no tuple")
        return [(each, ast.Subscript(value, ast.Constant(at), ast.Load())) for at, each in enumerate(ty)]

    # `match`.

    def stmt_Match(self, node):
        name = self.temporary("m")
        out: list = []
        orelse: list[ast.stmt] = []
        ty, value = self.expr(node.subject)
        bind(self.env, name, ty, known(node.subject))
        out.append(assigned(name, value))
        for case in reversed(node.cases):
            tests = tests_of(case.pattern, load(name), ty)
            if tests is None:
                continue
            tests += [case.guard] if case.guard else []
            test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests) if tests else ast.Constant(True)
            orelse = [ast.If(test, case.body, orelse)]
        out += self.block(orelse)
        # Names are bound here before the pattern is known to match: after a failed match their values are unspecified.
        names = [each.name for each in ast.walk(node) if isinstance(each, (ast.MatchAs, ast.MatchStar)) and each.name]
        if self.env is not None:
            for each in (name, *names):
                self.env.pop(each, None)
                self.env.pop(key(each), None)
        return out


def tests_of(pattern: ast.pattern, subject: ast.expr, ty: Type) -> list[ast.expr] | None:
    """The conditions under which a pattern matches, which bind its names; None if it never does."""
    match pattern:
        case ast.MatchValue(value=value):
            return [ast.Compare(subject, [ast.Eq()], [value])] if not isinstance(ty, tuple) and ty is not NONE else None
        case ast.MatchSingleton(value=None):
            return [ast.Constant(True)] if ty is NONE else None
        case ast.MatchAs(pattern=inner, name=name):
            tests = tests_of(inner, subject, ty) if inner else []
            if tests is None or name is None:
                return tests
            pair = ast.Tuple([ast.NamedExpr(ast.Name(name, ast.Store()), subject), ast.Constant(True)], ast.Load())
            return [*tests, ast.Subscript(pair, ast.Constant(1), ast.Load())]
        case ast.MatchOr(patterns=patterns):
            ways = [tests_of(each, subject, ty) for each in patterns]
            if any(way is None or len(way) != 1 for way in ways):
                raise TypeError("a choice of patterns that are no values")
            return [ast.BoolOp(ast.Or(), [way[0] for way in ways])]
        case ast.MatchSequence(patterns=patterns):
            if not isinstance(ty, tuple):
                return None
            star = next((at for at, each in enumerate(patterns) if isinstance(each, ast.MatchStar)), None)
            if len(patterns) != len(ty) if star is None else len(patterns) - 1 > len(ty):
                return None
            tests = []
            for at, each in enumerate(patterns):
                behind = len(patterns) - 1 - at
                if isinstance(each, ast.MatchStar):
                    upper = ast.UnaryOp(ast.USub(), ast.Constant(behind)) if behind else None
                    part: ast.expr = ast.Subscript(subject, ast.Slice(ast.Constant(at), upper), ast.Load())
                    found = tests_of(ast.MatchAs(name=each.name), part, ty[at : len(ty) - behind])
                else:
                    place = at if star is None or at < star else len(ty) - 1 - behind
                    part = ast.Subscript(subject, ast.Constant(place), ast.Load())
                    found = tests_of(each, part, ty[place])
                if found is None:
                    return None
                tests += found
            return tests
    raise TypeError("a pattern that kernels do not have")


class Renamed(ast.NodeTransformer):
    """Replaces reads of variables by expressions."""

    def __init__(self, places: dict[str, ast.expr]) -> None:
        self.places = places

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copy.deepcopy(self.places[node.id]) if node.id in self.places else node


def unpacked(target: ast.expr, item: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The expressions that the names of a target are bound to."""
    if isinstance(target, ast.Name):
        yield target.id, item
        return
    for number, part in enumerate(target.elts):
        inner = item.elts[number] if isinstance(item, ast.Tuple) else None
        yield from unpacked(part, inner or ast.Subscript(item, ast.Constant(number), ast.Load()))


class Same:
    """A node that is equal to itself only, under any copy of a type."""

    def __init__(self, node: ast.FunctionDef) -> None:
        self.node = node

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.node is self.node

    def __hash__(self) -> int:
        return id(self.node)


def returned(name: str, typer: object) -> Type:
    """The return type of a function whose body was typed. Converts the values of its returns."""
    result = unify(*(ty for ty, _ in typer.returns)) if typer.returns else NOTHING
    if typer.returns and typer.env is not None:
        raise TypeError(f"{name} returns a value on some paths only")
    for ty, statement in typer.returns:
        statement.value = converted(statement.value, ty, result)
    return result
