"""Kinds of values with `typing="numpy"`, and the random expressions of `random_numpy.py`.

A value's kind is a dtype's name, or `wb`, `wi`, `wf` for Python's bools, ints and floats, which have no type of their
own (*weak*). A weak int has bounds, so that it is never combined with a type that cannot hold it, for which NumPy
raises an error. It may be a compile-time constant; conditions are not. Floats are multiplied by powers of two only, so
that a fused multiply-add has the same result.
"""

from __future__ import annotations

import itertools
import operator
import random
import warnings
from dataclasses import dataclass, replace

import numpy as np

INTS = ("int8", "uint8", "int16", "int32", "uint32", "int64")
TYPED = ("bool", *INTS, "uint64", "float16", "float32", "float64")
WEAK = {"wb": bool, "wi": int, "wf": float}
SIZE = 7  # of arrays
LIMIT = 100  # of the absolute value of a variable's weak int
OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "min": min,
    "max": max,
}
UFUNCS = ("add", "subtract", "minimum", "maximum", "bitwise_and", "bitwise_or", "logical_and", "logical_xor", "less")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


class Impossible(Exception):
    """The generator cannot complete the construct that it has begun."""


@dataclass
class Node:
    """An expression: as the kernel has it and as the oracle does."""

    text: str
    oracle: str
    kind: str
    low: int = 0
    high: int = 0
    known: bool = False


@dataclass
class Var:
    """The constant value of a variable."""

    kind: str
    low: int = 0
    high: int = 0
    known: bool = False
    fixed: bool = False  # not assigned: a loop's counter


Env = dict[str, Var]


def joined(kind: str, value: object) -> object:
    """A value as a kind."""
    return WEAK[kind](value) if kind in WEAK else np.asarray(value).astype(kind)[()]


def contains(item: object, items: tuple[object, ...]) -> bool:
    """`item in items` by `==` alone: CPython also compares identity, so that a NaN is in `(nan,)`."""
    return any(bool(item == each) for each in items)


def sample(kind: str) -> object:
    """One of a kind."""
    return WEAK[kind](1) if kind in WEAK else np.dtype(kind).type(1)


def kind_of(value: object) -> str:
    """A value's kind."""
    return str(value.dtype) if isinstance(value, np.generic) else f"w{type(value).__name__[0]}"


def join(one: str, other: str) -> str:
    """The joined kind of two paths."""
    if one == other:
        return one
    if one in WEAK and other in WEAK:
        return max(one, other, key=["wb", "wi", "wf"].index)
    if one in WEAK or other in WEAK:
        weak, typed = (one, other) if one in WEAK else (other, one)
        return str(np.result_type(np.dtype(typed), sample(weak)))
    return str(np.promote_types(one, other))


def is_float(kind: str) -> bool:
    """Whether it is a float's."""
    return kind == "wf" or kind.startswith("float")


def fits(node: Node | Var, kind: str) -> bool:
    """Whether a kind holds a weak int."""
    if node.kind != "wi" or kind in WEAK or "int" not in kind:
        return True
    info = np.iinfo(kind)
    return info.min <= node.low and node.high <= info.max


_results: dict[tuple[str, ...], str | None] = {}


def result(function: str, *kinds: str) -> str | None:
    """The kind of the result of an operator or a ufunc; None if it does not accept the operands."""
    key = (function, *kinds)
    if key not in _results:
        call = OPERATORS.get(function) or getattr(np, function)
        try:
            if function in ("min", "max"):
                _results[key] = join(*kinds)
            else:
                _results[key] = kind_of(call(*map(sample, kinds)))
        except TypeError:
            _results[key] = None
    return _results[key]


class Expressions:
    """Writes expressions."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = itertools.count()
        self.functions: list[tuple[str, list[str], str]] = []
        self.returns: list[tuple[list[object], int, Node]] | None = None
        self.arrays = {f"x{n}": self.array(kind) for n, kind in enumerate(self.random.sample(TYPED, 4))}

    def array(self, kind: str) -> np.ndarray:
        low, high = (0, 1) if kind == "bool" else (0, 100) if kind.startswith("u") else (-100, 100)
        values = [self.random.randint(low, high) for _ in range(SIZE)]
        return np.array([value / 8 for value in values] if is_float(kind) else values, kind)

    def pick(self, *choices: object) -> object:
        return self.random.choice(choices)

    def maybe(self, chance: float) -> bool:
        return self.random.random() < chance

    def fresh(self) -> str:
        return f"v{next(self.names)}"

    # Expressions

    def leaf(self, env: Env) -> Node:
        if env and self.maybe(0.55):
            name = self.pick(*env)
            var = env[name]
            return Node(name, name, var.kind, var.low, var.high, var.known)
        array = self.pick(*self.arrays)
        what = self.random.random()
        if what < 0.2:
            value = self.random.randint(0, 9)
            return Node(str(value), str(value), "wi", value, value, True)
        if what < 0.27:
            text = str(self.random.randint(-16, 16) / 8)
            return Node(f"({text})", f"({text})", "wf", known=True)
        if what < 0.3:
            text = str(self.pick(True, False))
            return Node(text, text, "wb", known=True)
        if what < 0.45:
            text = self.pick(f"{array}.size", f"len({array})", f"{array}.shape[0]")
            return Node(text, text, "wi", SIZE, SIZE)
        if what < 0.5 and self.returns is None:
            return Node("t", "t", "int32")
        return self.element(env, array)

    def element(self, env: Env, array: str) -> Node:
        kind = str(self.arrays[array].dtype)
        index = self.bounded(self.weak_int(env, 0), 0, SIZE - 1)
        return Node(f"{array}[{index.text}]", f"{array}[{index.oracle}]", kind)

    def weak_int(self, env: Env, depth: int) -> Node:
        names = [name for name, var in env.items() if var.kind == "wi"]
        if names and self.maybe(0.8):
            name = self.pick(*names)
            var = env[name]
            node = Node(name, name, "wi", var.low, var.high, var.known)
        else:
            array = self.pick(*self.arrays)
            node = Node(f"{array}.size", f"{array}.size", "wi", SIZE, SIZE)
        if depth > 0 or self.maybe(0.4):
            other = self.random.randint(0, 4)
            op = self.pick("+", "-")
            low, high = (node.low + other, node.high + other) if op == "+" else (node.low - other, node.high - other)
            node = Node(f"({node.text} {op} {other})", f"({node.oracle} {op} {other})", "wi", low, high, node.known)
        return node

    def bounded(self, node: Node, low: int, high: int) -> Node:
        """A weak int from `low` to `high`."""
        if low <= node.low and node.high <= high:
            return node
        width = high - low + 1
        shift = f" - {-low}" if low < 0 else f" + {low}" if low > 0 else ""
        return Node(f"({node.text} % {width}{shift})", f"({node.oracle} % {width}{shift})", "wi", low, high, node.known)

    def expr(self, env: Env, depth: int) -> Node:
        if depth <= 0 or self.maybe(0.15):
            return self.leaf(env)
        makers = [self.binary] * 5 + [self.unary, self.choice, self.cast, self.cast, self.function_of_numpy]
        makers += [self.comparison, self.logic, self.membership, self.call]
        for _ in range(20):
            node = self.pick(*makers)(env, depth)
            if node is not None and max(-node.low, node.high) < 1 << 40:
                return node
        raise Impossible

    def binary(self, env: Env, depth: int) -> Node | None:
        op = self.pick(*OPERATORS, "+", "-", "*")
        a, b = self.expr(env, depth - 1), self.expr(env, depth - 1)
        if op in ("<<", ">>"):
            amount = self.random.randint(0, 5)
            b = Node(str(amount), str(amount), "wi", amount, amount, True)
        if op == "*" and (is_float(a.kind) or is_float(b.kind)):
            text = self.pick("2", "0.5", "4", "(-0.25)")
            b = Node(text, text, "wi" if text.isdigit() else "wf", 2, 4, True)
        if op in ("/", "//", "%") and b.kind in WEAK:
            divisor = self.random.randint(1, 9)
            b = Node(str(divisor), str(divisor), "wi", divisor, divisor, True)
        kind = result(op, a.kind, b.kind)
        floats = is_float(a.kind) or is_float(b.kind)
        if kind is None or (op in ("min", "max") and floats):
            return None
        if kind not in WEAK and not all(fits(each, kind) for each in (a, b)):
            return None
        low, high = self.bounds(op, a, b) if kind == "wi" else (0, 0)
        known = a.known and b.known
        if op in ("min", "max"):
            text = f"{op}({a.text}, {b.text})"
            return Node(text, f"joined('{kind}', {op}({a.oracle}, {b.oracle}))", kind, low, high, known)
        return Node(f"({a.text} {op} {b.text})", f"({a.oracle} {op} {b.oracle})", kind, low, high, known)

    def bounds(self, op: str, a: Node, b: Node) -> tuple[int, int]:
        """The bounds of an operator's result for weak ints and bools."""
        ends = [(0, 1) if each.kind == "wb" else (each.low, each.high) for each in (a, b)]
        if op in ("&", "|", "^"):
            size = max(abs(end) for pair in ends for end in pair)
            return -(1 << size.bit_length()), (1 << size.bit_length()) - 1
        found = [OPERATORS[op](x, y) for x in ends[0] for y in ends[1] if y or op not in ("//", "%")]
        if op == "%":
            return 0, ends[1][1] - 1
        return min(found), max(found)

    def unary(self, env: Env, depth: int) -> Node | None:
        a = self.expr(env, depth - 1)
        op = self.pick("-", "+", "~", "abs", "not ")
        try:
            value = {"-": operator.neg, "+": operator.pos, "~": operator.invert, "abs": abs, "not ": operator.not_}[op]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # minus 1 of an unsigned number; Python 3.12 deprecates ~True
                kind = kind_of(value(sample(a.kind)))
        except TypeError:
            return None
        ends = (0, 1) if a.kind == "wb" else (a.low, a.high)
        low, high = {
            "-": (-ends[1], -ends[0]),
            "+": ends,
            "~": (~ends[1], ~ends[0]),
            "abs": (0, max(map(abs, ends))),
            "not ": (0, 1),
        }[op]
        low, high = (low, high) if kind == "wi" else (0, 0)
        form = "abs({})" if op == "abs" else f"({op}{{}})"
        return Node(form.format(a.text), form.format(a.oracle), kind, low, high, a.known)

    def together(self, a: Node, b: Node) -> tuple[str, int, int] | None:
        """The kind and bounds of a value that is one or the other."""
        kind = join(a.kind, b.kind)
        if not (fits(a, kind) and fits(b, kind)):
            return None
        ends = [(0, 1) if each.kind == "wb" else (each.low, each.high) for each in (a, b)]
        low, high = min(end[0] for end in ends), max(end[1] for end in ends)
        return (kind, low, high) if kind == "wi" else (kind, 0, 0)

    def choice(self, env: Env, depth: int) -> Node | None:
        a, b, test = self.expr(env, depth - 1), self.expr(env, depth - 1), self.condition(env, depth - 1)
        found = self.together(a, b)
        if found is None:
            return None
        text = f"({a.text} if {test.text} else {b.text})"
        oracle = f"joined('{found[0]}', {a.oracle} if {test.oracle} else {b.oracle})"
        return Node(text, oracle, *found, known=a.known and b.known)

    def cast(self, env: Env, depth: int) -> Node | None:
        a = self.expr(env, depth - 1)
        to = self.pick("int", "float", "bool", *(f"np.{kind}" for kind in TYPED if kind != "bool"))
        if (is_float(a.kind) and "int" in to) or (a.kind == "uint64" and to == "int"):
            return None
        if to.startswith("np.") and not fits(a, to[3:]):
            return None
        node = Node(f"{to}({a.text})", f"{to}({a.oracle})", to[3:] if to.startswith("np.") else f"w{to[0]}")
        node.known = a.known and node.kind in WEAK
        if to != "int":
            return node
        low, high = (a.low, a.high) if a.kind == "wi" else (0, 1) if a.kind in ("wb", "bool") else (-(1 << 63), 1 << 64)
        return self.bounded(replace(node, low=low, high=high), -LIMIT, LIMIT)

    def function_of_numpy(self, env: Env, depth: int) -> Node | None:
        name = self.pick(*UFUNCS)
        a, b = self.expr(env, depth - 1), self.expr(env, depth - 1)
        kind = result(name, a.kind, b.kind)
        if kind is None or (name.startswith("m") and (is_float(a.kind) or is_float(b.kind))):
            return None
        work = result("+", a.kind, b.kind) or "int64"
        if not all(fits(each, work) for each in (a, b)):
            return None
        return Node(f"np.{name}({a.text}, {b.text})", f"np.{name}({a.oracle}, {b.oracle})", kind)

    def comparison(self, env: Env, depth: int) -> Node | None:
        """A comparison or a chain of them, no part of which is a compile-time constant."""
        nodes = [self.expr(env, depth - 1) for _ in range(self.pick(2, 3, 3, 4))]
        if any(a.known and b.known for a, b in itertools.pairwise(nodes)):
            return None
        ops = [self.pick(*COMPARISONS) for _ in nodes[1:]]
        kinds = ["bool" if {a.kind, b.kind} - set(WEAK) else "wb" for a, b in itertools.pairwise(nodes)]
        kind = "bool" if "bool" in kinds else "wb"
        text, oracle = nodes[0].text, nodes[0].oracle
        for op, node in zip(ops, nodes[1:], strict=True):
            text, oracle = f"{text} {op} {node.text}", f"{oracle} {op} {node.oracle}"
        return Node(f"({text})", f"joined('{kind}', {oracle})", kind)

    def logic(self, env: Env, depth: int) -> Node | None:
        a, b = self.expr(env, depth - 1), self.expr(env, depth - 1)
        found = self.together(a, b)
        if a.known or found is None:
            return None
        op = self.pick("and", "or")
        return Node(
            f"({a.text} {op} {b.text})", f"joined('{found[0]}', {a.oracle} {op} {b.oracle})", *found, known=b.known
        )

    def membership(self, env: Env, depth: int) -> Node | None:
        a, *items = (self.expr(env, depth - 1) for _ in range(self.pick(2, 3)))
        if a.known or self.maybe(0.5):
            if any(item.known for item in (a, *items)):
                return None
            form = self.pick("any", "all")
            texts = (", ".join([each.text for each in (a, *items)]), ", ".join([each.oracle for each in (a, *items)]))
            return Node(*(f"{form}(({text}))" for text in texts), "wb")
        op = self.pick("in", "not in")
        texts = ", ".join(item.text for item in items), ", ".join(item.oracle for item in items)
        negation = "not " if op == "not in" else ""
        oracle = f"({negation}contains({a.oracle}, ({texts[1]},)))"
        return Node(f"({a.text} {op} ({texts[0]},))", oracle, "wb")

    def call(self, env: Env, depth: int) -> Node | None:
        if not self.functions or self.returns is not None:
            return None
        name, kinds, gives = self.pick(*self.functions)
        args = [self.of_kind(env, kind, depth - 1) for kind in kinds]
        texts = [", ".join(arg.text for arg in args), ", ".join(arg.oracle for arg in args)]
        low, high = (-LIMIT, LIMIT) if gives == "wi" else (0, 0)
        arrays = ", ".join(self.arrays)
        return Node(*(f"{name}({text}, {arrays})" for text in texts), gives, low, high)

    def of_kind(self, env: Env, kind: str, depth: int) -> Node:
        """An expression of a kind that is not a compile-time constant."""
        for _ in range(6):
            node = self.expr(env, depth)
            if node.kind == kind and not node.known:
                return self.bounded(node, -LIMIT, LIMIT) if kind == "wi" else node
        if kind == "wi":
            node = self.weak_int(env, 1)
            node = self.bounded(node, -LIMIT, LIMIT)
            if node.known:
                raise Impossible
            return node
        if kind in WEAK:
            node = self.weak_int(env, 1)
            if node.known:
                raise Impossible
            to = WEAK[kind].__name__
            return Node(f"{to}({node.text})", f"{to}({node.oracle})", kind)
        if kind == "bool":
            a = self.element(env, self.pick(*self.arrays))
            return Node(f"({a.text} > 3)", f"({a.oracle} > 3)", "bool")
        return Node(f"np.{kind}(t)", f"np.{kind}(t)", kind) if self.returns is None else self.typed(env, kind)

    def typed(self, env: Env, kind: str) -> Node:
        node = self.bounded(self.weak_int(env, 1), 0, LIMIT)
        return Node(f"np.{kind}({node.text})", f"np.{kind}({node.oracle})", kind)

    def condition(self, env: Env, depth: int) -> Node:
        for _ in range(20):
            makers = (self.comparison, self.comparison, self.logic, self.membership, self.expr)
            node = self.pick(*makers)(env, max(depth, 1))
            if node is not None and not node.known:
                return node
        raise Impossible
