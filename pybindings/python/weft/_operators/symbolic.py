"""Launch rules, and output rules for extents that are not integers: those that torch.compile and torch.export trace."""

from __future__ import annotations

import operator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_OPERATIONS: dict[str, Callable[..., Any]] = {
    "neg": operator.neg,
    "abs": abs,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "min": min,
    "max": max,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}


def parse(text: str) -> Any:
    """Return the tree of a rule's text: lists of words and lists."""
    words = text.replace("(", " ( ").replace(")", " ) ").split()
    stack: list[list[Any]] = [[]]
    for word in words:
        if word == "(":
            stack.append([])
        elif word == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(word)
    return stack[0][0]


def shape(rule: Any, args: Sequence[Any]) -> Sequence[Any]:
    """Return the shape that an output rule gives for arguments, which have shapes or are numbers."""
    kind, *rest = rule[2]
    if kind == "like":
        return tuple(args[int(rest[0])].shape)
    return tuple(_value(extent, args) for extent in rest)


def threads(rule: Any, args: Sequence[Any]) -> int:
    """Return the number of threads of the grid that a launch rule gives for arguments."""
    product = 1
    for extent in (*rule[1][1:], *rule[2][1:]):
        product *= int(_value(extent, args))
    return product


def dtype_of(rule: Any) -> tuple[str, str | int]:
    """`("like", index)`, `("is", name)` or `("declared", "")`."""
    words = rule[3]
    if words[1] == "like":
        return "like", int(words[2])
    return ("declared", "") if words[1] == "declared" else ("is", words[1])


def _value(node: Any, args: Sequence[Any]) -> Any:
    if isinstance(node, str):
        return int(node)
    word, *operands = node
    if word == "scalar":
        return int(args[int(operands[0])])
    if word == "size":
        product = 1
        for extent in args[int(operands[0])].shape:
            product = product * extent
        return product
    if word == "extent":
        return args[int(operands[0])].shape[int(operands[1])]
    if word == "ndim":
        return len(args[int(operands[0])].shape)
    if word == "if":
        test, yes, no = operands
        return _value(yes if _value(test, args) else no, args)
    return _OPERATIONS[word](*(_value(operand, args) for operand in operands))
