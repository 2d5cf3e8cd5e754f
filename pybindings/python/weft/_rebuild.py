"""Writes the text of a simple function anew from its code.

The source of a function that `exec` made is lost when its string is deleted. This module reads back simple statements,
`if`, and `for` over iterables of kernels; for other code it returns no source. The caller compiles the source and uses
it only if Python compiles it to the code of the function, so a mistake here is harmless.
"""

from __future__ import annotations

import ast
import dis
from typing import Any, NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType

_LONGEST = 1 << 14
"""Codes of more bytes are not read: their source is found elsewhere."""

_KINDS = 0x2AC  # ``*args``, ``**kwargs``, generators and coroutines

_SKIPPED = {
    "RESUME", "NOP", "COPY_FREE_VARS", "MAKE_CELL", "PRECALL", "CACHE", "TO_BOOL", "END_FOR", "POP_ITER", "NOT_TAKEN",
}  # fmt: skip
_NAMES = {"LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_CLOSURE"}

_BINARY: dict[str, type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "//": ast.FloorDiv, "%": ast.Mod, "**": ast.Pow,
    "@": ast.MatMult, "&": ast.BitAnd, "|": ast.BitOr, "^": ast.BitXor, "<<": ast.LShift, ">>": ast.RShift,
}  # fmt: skip
_COMPARED: dict[str, type[ast.cmpop]] = {
    "<": ast.Lt, "<=": ast.LtE, "==": ast.Eq, "!=": ast.NotEq, ">": ast.Gt, ">=": ast.GtE,
}  # fmt: skip
_UNARY: dict[str, type[ast.unaryop]] = {
    "UNARY_NEGATIVE": ast.USub, "UNARY_NOT": ast.Not, "UNARY_INVERT": ast.Invert, "UNARY_POSITIVE": ast.UAdd,
}  # fmt: skip


class _Unread(Exception):
    """An instruction, or an order of them, that is not read back."""


class _Null(ast.expr):
    """The value that a call pushes before its function."""


class _InPlace(ast.BinOp):
    """An operator with `=`, until its result is stored."""


def rebuilt_sources(function: Callable[..., object]) -> Iterator[str]:
    """Return sources of a definition that may have a function's code, the likelier first; none if it is not simple.

    Parameters
    ----------
    function
        A Python function.
    """
    code = function.__code__
    defaults = function.__defaults__ or function.__kwdefaults__
    if defaults or code.co_flags & _KINDS or code.co_kwonlyargcount or len(code.co_code) > _LONGEST:
        return
    # Code always ends with a `return`, which the source may omit: try both.
    for bare in (True, False):
        try:
            body = _Reader(code).block(0, None)
            yield _definition(function, _without_returns(body) if bare else body)
        except (_Unread, LookupError, ValueError, RecursionError):
            return


def _without_returns(body: list[ast.stmt]) -> list[ast.stmt]:
    """Leave out the `return` of each way to the end."""
    while body and isinstance(body[-1], ast.Return) and body[-1].value is None:
        body.pop()
    if body and isinstance(body[-1], ast.If):
        body[-1].body = _without_returns(body[-1].body) or [ast.Pass()]
        body[-1].orelse = _without_returns(body[-1].orelse)
    return body


def _definition(function: Callable[..., object], body: list[ast.stmt]) -> str:
    code = function.__code__
    if function.__doc__ is not None:
        body.insert(0, ast.Expr(ast.Constant(function.__doc__)))
    names = [ast.arg(name) for name in code.co_varnames[: code.co_argcount]]
    positional = code.co_posonlyargcount
    arguments = ast.arguments(names[:positional], names[positional:], None, [], [], None, [])
    definition = ast.parse(f"def {code.co_name}(): pass").body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.args = arguments
    definition.body = body or [ast.Pass()]
    return ast.unparse(ast.fix_missing_locations(definition)) + "\n"


class _Step(NamedTuple):
    """An instruction as `dis` has it; one of two in one is two."""

    opname: str
    arg: Any
    argval: Any
    argrepr: str


def _steps(found: dis.Instruction) -> Iterator[_Step]:
    both = found.opname.replace("_LOAD", " LOAD").replace("_STORE", " STORE").split()
    values = found.argval if len(both) == 2 else (found.argval,)
    for name, value in zip(both, values, strict=True):
        yield _Step(name, found.arg, value, found.argrepr)


class _Reader:
    """Reads instructions as statements, each of which leaves nothing on the stack."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.instructions: list[_Step] = []
        self.index: dict[int, int] = {}
        before = ""
        for found in dis.get_instructions(code):
            self.index[found.offset] = len(self.instructions)
            # In 3.13, a loop pops its iterator after its end.
            if found.opname not in _SKIPPED and not (before == "END_FOR" and found.opname == "POP_TOP"):
                self.instructions += _steps(found)
            before = found.opname
        self.keywords: tuple[str, ...] = ()

    def block(self, start: int, end: int | None, again: int | None = None) -> list[ast.stmt]:
        """Read the instructions of these numbers; a jump to the number `again` goes on with the loop around them."""
        end = len(self.instructions) if end is None else end
        stack: list[ast.expr] = []
        body: list[ast.stmt] = []
        at = start
        while at < end:
            found = self.instructions[at]
            name = found.opname
            at += 1
            if name == "RETURN_VALUE":
                body.append(ast.Return(_bound(stack.pop())))
            elif name == "RETURN_CONST":
                body.append(ast.Return(_bound(ast.Constant(found.argval))))
            elif name == "POP_TOP":
                body.append(ast.Expr(stack.pop()))
            elif name == "STORE_FAST" and len(stack) > 1:
                # Python 3.14 does not create a tuple of constants that is unpacked immediately.
                at += len(stack) - 1
                body.append(self.unpacked(self.instructions[at - len(stack) : at][::-1], ast.Tuple(stack, ast.Load())))
                stack = []
            elif name == "STORE_FAST":
                body.append(_assignment(ast.Name(found.argval, ast.Store()), stack.pop()))
            elif name == "STORE_SUBSCR":
                index, owner, value = stack.pop(), stack.pop(), stack.pop()
                body.append(_assignment(ast.Subscript(owner, index, ast.Store()), value))
            elif name == "STORE_SLICE":
                stop, first, owner, value = stack.pop(), stack.pop(), stack.pop(), stack.pop()
                part = ast.Slice(_bound(first), _bound(stop))
                body.append(_assignment(ast.Subscript(owner, part, ast.Store()), value))
            elif name == "UNPACK_SEQUENCE":
                at += found.argval
                body.append(self.unpacked(self.instructions[at - found.argval : at], stack.pop()))
            elif name.startswith("POP_JUMP"):
                at = self.branch(name, at, end, again, stack.pop(), self.index[found.argval], body)
            elif name == "FOR_ITER":
                at = self.loop(at, end, stack.pop(), self.index[found.argval], body)
            elif name == "JUMP_BACKWARD":
                if again is None or self.index[found.argval] != again:
                    raise _Unread
                body.append(ast.Continue())
            else:
                self.expression(found, stack)
                continue
            if stack:
                raise _Unread
        if stack:
            raise _Unread
        return body

    def unpacked(self, stores: list[_Step], value: ast.expr) -> ast.stmt:
        """Read an assignment to several names."""
        if any(store.opname != "STORE_FAST" for store in stores):
            raise _Unread
        targets: list[ast.expr] = [ast.Name(store.argval, ast.Store()) for store in stores]
        return ast.Assign([ast.Tuple(targets, ast.Store())], value)

    def branch(
        self, name: str, at: int, end: int, again: int | None, test: ast.expr, to: int, body: list[ast.stmt]
    ) -> int:
        """Read an `if` whose test has been read; gives where it ends."""
        if to < at or to > end:
            raise _Unread
        if name.endswith("NONE"):
            operator: ast.cmpop = ast.Is() if "NOT_NONE" in name else ast.IsNot()
            test = ast.Compare(test, [operator], [ast.Constant(None)])
        elif name.endswith("TRUE"):
            test = ast.UnaryOp(ast.Not(), test)
        else:
            at, test = self.conjunction(name, at, test, to)
        last = self.instructions[to - 1]
        if last.opname == "JUMP_FORWARD" and to - 1 > at:
            after = self.index[last.argval]
            if after > end:
                raise _Unread
            body.append(ast.If(test, self.block(at, to - 1, again) or [ast.Pass()], self.block(to, after, again)))
            return after
        body.append(ast.If(test, self.block(at, to, again) or [ast.Pass()], []))
        return to

    def conjunction(self, name: str, at: int, test: ast.expr, to: int) -> tuple[int, ast.expr]:
        """Read further tests that jump to the same target when false; returns the code after them, and all tests."""
        tests, begin, stack = [test], at, list[ast.expr]()
        while at < to:
            found = self.instructions[at]
            at += 1
            if found.opname == name and self.same(self.index[found.argval], to) and len(stack) == 1:
                tests.append(stack.pop())
                begin = at
                continue
            try:
                self.expression(found, stack)
            except (_Unread, LookupError):
                break
        return begin, ast.BoolOp(ast.And(), tests) if len(tests) > 1 else test

    def same(self, one: int, other: int) -> bool:
        """Whether two targets are equivalent: Python duplicates the code of each exit of a function."""

        def ends(at: int) -> bool:
            found = self.instructions[at]
            if found.opname == "LOAD_CONST":
                return found.argval is None and self.instructions[at + 1].opname == "RETURN_VALUE"
            return found.opname == "RETURN_CONST" and found.argval is None

        return one == other or (ends(one) and ends(other))

    def loop(self, at: int, end: int, over: ast.expr, to: int, body: list[ast.stmt]) -> int:
        """Read a `for` whose iterator has been read; gives where it ends."""
        target, back = self.instructions[at], self.instructions[to - 1]
        if to > end or target.opname != "STORE_FAST" or back.opname != "JUMP_BACKWARD":
            raise _Unread
        if self.index[back.argval] != at - 1:
            raise _Unread
        inner = self.block(at + 1, to - 1, at - 1) or [ast.Pass()]
        body.append(ast.For(ast.Name(target.argval, ast.Store()), over, inner, []))
        return to

    def expression(self, found: _Step, stack: list[ast.expr]) -> None:
        """Read an instruction that changes the stack alone."""
        name, value = found.opname, found.argval
        if name == "GET_ITER":
            return
        if name == "PUSH_NULL":
            stack.append(_Null())
        elif name in ("LOAD_CONST", "LOAD_SMALL_INT"):
            if hasattr(value, "co_code"):
                raise _Unread
            # Python 3.14 folds a slice of constants to a constant.
            parts = [_bound(ast.Constant(part)) for part in _parts(value)]
            stack.append(ast.Slice(*parts) if parts else ast.Constant(value))
        elif name in _NAMES:
            node = ast.Name(value, ast.Load())
            stack += [_Null(), node] if name == "LOAD_GLOBAL" and found.arg & 1 else [node]
        elif name in ("LOAD_ATTR", "LOAD_METHOD"):
            attribute = ast.Attribute(stack.pop(), value, ast.Load())
            method = name == "LOAD_METHOD" or "NULL|self" in found.argrepr
            stack += [_Null(), attribute] if method else [attribute]
        elif name == "KW_NAMES":
            self.keywords = self.code.co_consts[found.arg]
        elif name in ("CALL", "CALL_KW"):
            if name == "CALL_KW":
                names = stack.pop()
                self.keywords = ast.literal_eval(names)
            self.call(found.arg, stack)
        elif name == "BINARY_SLICE":
            stop, start, owner = stack.pop(), stack.pop(), stack.pop()
            stack.append(ast.Subscript(owner, ast.Slice(_bound(start), _bound(stop)), ast.Load()))
        elif name == "BINARY_SUBSCR" or (name == "BINARY_OP" and found.argrepr == "[]"):
            index, owner = stack.pop(), stack.pop()
            stack.append(ast.Subscript(owner, index, ast.Load()))
        elif name == "BINARY_OP":
            right, left = stack.pop(), stack.pop()
            kind = _InPlace if found.argrepr.endswith("=") else ast.BinOp
            stack.append(kind(left, _BINARY[found.argrepr.rstrip("=")](), right))
        elif name == "COMPARE_OP":
            right, left = stack.pop(), stack.pop()
            operator = _COMPARED.get(str(value))
            if operator is None:
                raise _Unread
            stack.append(ast.Compare(left, [operator()], [right]))
        elif name in _UNARY:
            stack.append(ast.UnaryOp(_UNARY[name](), stack.pop()))
        elif name in ("BUILD_TUPLE", "BUILD_SLICE"):
            items = stack[len(stack) - found.arg :]
            del stack[len(stack) - found.arg :]
            stack.append(ast.Tuple(items, ast.Load()) if name == "BUILD_TUPLE" else ast.Slice(*map(_bound, items)))
        elif name == "COPY":
            stack.append(stack[-found.arg])
        elif name == "SWAP":
            other = -found.arg
            stack[-1], stack[other] = stack[other], stack[-1]
        else:
            raise _Unread

    def call(self, count: int, stack: list[ast.expr]) -> None:
        """Read a call with a number of arguments, the last ones by keyword."""
        args = [stack.pop() for _ in range(count)][::-1]
        function, null = stack.pop(), stack.pop()
        if isinstance(function, _Null):
            function, null = null, function
        if not isinstance(null, _Null):
            raise _Unread
        names, self.keywords = self.keywords, ()
        first = count - len(names)
        keywords = [ast.keyword(name, value) for name, value in zip(names, args[first:], strict=True)]
        stack.append(ast.Call(function, args[:first], keywords))


def _parts(value: object) -> tuple[Any, ...]:
    """Give what a slice is made of; nothing of anything else."""
    return (value.start, value.stop, value.step) if isinstance(value, slice) else ()


def _bound(node: ast.expr) -> ast.expr | None:
    """Leave out None where None means the same: of a slice, and after `return`."""
    return None if isinstance(node, ast.Constant) and node.value is None else node


def _assignment(target: ast.Name | ast.Subscript, value: ast.expr) -> ast.stmt:
    if isinstance(value, _InPlace):
        return ast.AugAssign(target, value.op, value.right)
    return ast.Assign([target], value)
