"""Code of kernels in which operators mean what they mean in kernels, for kernels that CPython runs.

The source of a function is compiled again. Calls of `operators` replace the operators whose meaning differs in Python,
and values of several types are converted where they merge. Lines and columns, names and variables are those of the
source, so that debuggers show the program. The called functions are constants of the code and need no names.
"""

from __future__ import annotations

import ast
import sys
import types
import warnings

from weft import _source
from weft.cuda._cpython.operators import RULES, Comparand, Exponent, Right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from weft.cuda._cpython.expressions import Function

_BINARY: dict[type, str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.MatMult: "matmul",
}
_UNARY: dict[type, str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}
_COMPARISONS: dict[type, str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
_MEMBERS: dict[type, str] = {ast.Is: "same", ast.IsNot: "other", ast.In: "within", ast.NotIn: "beyond"}
# Bits of a code object's flags: those of `from __future__`.
_FUTURES = 0x1FF0000
# CPython's compiler does not fold products, powers and shifts of literals with more bits.
_LONGEST = 128
_WORD = 1 << 64
# The prefix of a constant that is replaced by an object.
_OBJECT = "\0weft "
# A variable for the arguments of an inner function that is called with several types.
_ARGUMENTS = "weft arguments"
# Before 3.12, expressions in an f-string have locations that differ from those of the source.
_PLACES_IN_FSTRINGS = sys.version_info >= (3, 12)


class _Rewriter(ast.NodeTransformer):
    def __init__(self, attribute: Callable[[Any, str], Any], known: Function, *, numpy: bool) -> None:
        self.attribute, self.known = attribute, known
        # The parameters of the enclosing inner functions, and whether their code needs the arguments of the call.
        self.inner: list[list[str]] = []
        self.used: list[bool] = []
        self.rules, self.numpy = RULES[numpy], numpy
        self.objects: list[Any] = []
        self.in_text = False

    # ---- calls of objects without a name ----

    def _object(self, value: Any) -> ast.expr:
        at = next((at for at, known in enumerate(self.objects) if known is value), len(self.objects))
        if at == len(self.objects):
            self.objects.append(value)
        return ast.Constant(f"{_OBJECT}{at}")

    def _call(self, function: Any, node: ast.AST, *args: ast.expr) -> Any:
        return _placed(ast.Call(_placed(self._object(function), node), list(args), []), node)

    def _method(self, name: str, node: ast.AST, *args: ast.expr) -> Any:
        # Cache bound methods, since each attribute access creates a new one.
        bound = self.__dict__.setdefault("_bound", {})
        return self._call(bound.setdefault(name, getattr(self.rules, name)), node, *args)

    def _converted(self, node: ast.expr, given: ast.expr) -> Any:
        """Convert what an expression gives to the type that it has in compiled code."""
        if self.in_text:
            return node
        convert = self.known.conversion(given)
        if convert is not None:
            return self._call(convert, given, node)
        several = self.known.several(given) if self.inner else None
        if several is None:
            return node
        self.used[-1] = True
        return self._call(several, given, _placed(ast.Name(_ARGUMENTS, ast.Load()), given), node)

    # ---- expressions ----

    def visit(self, node: ast.AST) -> Any:
        if isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
            return self.generic_visit(node)
        if not isinstance(node, ast.expr):
            return super().visit(node)
        if isinstance(node, (ast.Constant, ast.Starred, ast.Slice)):
            return self.generic_visit(node)
        if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Subscript)):
            literal = _literal(node)
            if type(literal) is int and -_WORD <= literal < -(_WORD >> 1):
                literal %= _WORD  # a uint64, which wraps
            if isinstance(literal, (int, float, complex)):
                return _placed(ast.Constant(literal), node)
        return self._converted(super().visit(node), node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        name = _BINARY[type(node.op)]
        exponent = _literal(node.right)
        if name == "pow" and type(exponent) is int:
            return self._method("power", node, self.visit(node.left), _placed(ast.Constant(exponent), node.right))
        return self._operator(name, node, self.visit(node.left), self.visit(node.right))

    def _operator(self, name: str, node: ast.AST, left: ast.expr, right: ast.expr, method: str = "binary") -> Any:
        return self._method(method, node, _placed(ast.Constant(name), node), left, right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return _placed(ast.UnaryOp(node.op, operand), node)
        return self._method("unary", node, _placed(ast.Constant(_UNARY[type(node.op)]), node), operand)

    def visit_Compare(self, node: ast.Compare) -> Any:
        parts = [self.visit(each) for each in (node.left, *node.comparators)]
        if len(node.ops) == 1:
            kind = type(node.ops[0])
            if kind in _MEMBERS:
                return self._method(_MEMBERS[kind], node, *parts)
            return self._operator(_COMPARISONS[kind], node, parts[0], parts[1], method="compare")
        if all(type(op) in _COMPARISONS for op in node.ops):
            comparand, places = self._kept(Comparand), (node.left, *node.comparators)
            parts = [self._call(comparand, each, part) for each, part in zip(places, parts, strict=True)]
        return _placed(ast.Compare(parts[0], node.ops, parts[1:]), node)

    def _kept(self, cls: type) -> Any:
        kept = self.__dict__.setdefault("_classes", {})
        rules = self.rules
        return kept.setdefault(cls, lambda value: cls(rules, value))

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        return self._call(self.attribute, node, self.visit(node.value), _placed(ast.Constant(node.attr), node))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        before, self.in_text = self.in_text, self.in_text or not _PLACES_IN_FSTRINGS
        try:
            return self.generic_visit(node)  # type: ignore[return-value]
        finally:
            self.in_text = before

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return node

    # ---- statements ----

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        name, value = _BINARY[type(node.op)], node.value
        exponent = _literal(value)
        if isinstance(node.target, ast.Name):
            read = self.visit(_placed(ast.Name(node.target.id, ast.Load()), node.target))
            if name == "pow" and type(exponent) is int:
                result = self._method("raised", node, read, _placed(ast.Constant(exponent), value))
            else:
                result = self._operator(name, node, read, self.visit(value), method="updated")
            return _placed(ast.Assign([node.target], result), node)
        target: Any = self.generic_visit(node.target)
        kind = Exponent if name == "pow" and type(exponent) is int else Right
        right = self._call(self._kept(kind), value, self.visit(value))
        return _placed(ast.AugAssign(target, node.op, right), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        # Annotations of variables are not evaluated in functions.
        node.target = self.visit(node.target)
        node.value = None if node.value is None else self.visit(node.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.returns = None
        args = node.args
        self.inner.append([arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)])
        self.used.append(False)
        self.generic_visit(node)
        names, first = self.inner.pop(), node.body[0]
        if self.used.pop():
            # Save the arguments at the start, since the function may assign to its parameters.
            given = _placed(
                ast.Tuple([_placed(ast.Name(name, ast.Load()), first) for name in names], ast.Load()), first
            )
            node.body.insert(0, _placed(ast.Assign([_placed(ast.Name(_ARGUMENTS, ast.Store()), first)], given), first))
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        # A lambda has no statements that could save its arguments.
        before, self.inner = self.inner, []
        try:
            return self.generic_visit(node)
        finally:
            self.inner = before

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None  # it has no effect in a kernel
        return node

    def _pattern(self, node: Any) -> Any:
        return node  # patterns contain no operators or calls

    visit_MatchValue = visit_MatchClass = visit_MatchMapping = _pattern

    def visit_arguments(self, node: ast.arguments) -> ast.arguments:
        for arg in (*node.posonlyargs, *node.args, *node.kwonlyargs, node.vararg, node.kwarg):
            if arg is not None:
                self.visit_arg(arg)
        node.defaults = [self.visit(each) for each in node.defaults]
        node.kw_defaults = [each and self.visit(each) for each in node.kw_defaults]
        return node


def _placed(node: Any, like: Any) -> Any:
    return ast.copy_location(node, like)


def _literal(node: ast.expr | None) -> Any:
    """Give what an expression of literals is, which CPython's compiler computes; None for all else."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, (int, float, complex, str, bytes)) else None
    if isinstance(node, ast.Tuple):
        parts: list[ast.expr] = node.elts
    elif isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
        parts = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp):
        parts = [node.operand]
    elif isinstance(node, ast.Subscript):
        bounds = node.slice
        of_slice = (bounds.lower, bounds.upper, bounds.step) if isinstance(bounds, ast.Slice) else (bounds,)
        parts = [node.value, *(each for each in of_slice if each is not None)]
    else:
        return None
    values = [_literal(part) for part in parts]
    if any(value is None for value in values):
        return None
    if isinstance(node, ast.BinOp) and _is_too_long(node.op, *values):
        return None
    try:
        return eval(compile(ast.Expression(node), "<literal>", "eval"))
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None


def _is_too_long(op: ast.operator, left: Any, right: Any) -> bool:
    """Say whether CPython's compiler leaves an operator of integers to run time, as its result may be so long."""
    if not isinstance(left, int) or not isinstance(right, int) or left == 0:
        return False
    if isinstance(op, ast.Mult):
        return right != 0 and left.bit_length() + right.bit_length() > _LONGEST
    if right <= 0:
        return False
    if isinstance(op, ast.Pow):
        return left.bit_length() > _LONGEST // right
    return isinstance(op, ast.LShift) and left.bit_length() + right > _LONGEST


# ---- functions -----------------------------------------------------------------------------------------------------


def text_of(function: types.FunctionType, dispatcher: Any) -> tuple[str, int, str | None] | None:
    """Give the text of a function, the line that it begins in, and the class around it; None if there is none."""
    from weft.errors import SourceError

    given = getattr(dispatcher, "given_source", None)
    kept = getattr(dispatcher, "cached_source", None)
    if dispatcher is None:
        kept = _source.keep(function)
    try:
        _, text, first, around = _source.of(function, given, kept)
    except SourceError:
        return None
    return text, first, around


def _definition(text: str, first: int) -> ast.FunctionDef | None:
    """Parse a text that is indented as in its file."""
    indented = text[:1] in " \t"
    try:
        tree = ast.parse(f"if 1:\n{text}" if indented else text)
    except SyntaxError:
        return None
    body = tree.body
    while len(body) == 1 and isinstance(body[0], ast.If):
        body = body[0].body
    found = [node for node in body if isinstance(node, ast.FunctionDef)]
    if len(found) != 1:
        return None
    ast.increment_lineno(tree, first - 1 - indented)
    return found[0]


def rewritten(
    function: types.FunctionType,
    source: tuple[str, int, str | None],
    attribute: Callable[[Any, str], Any],
    known: Function,
    *,
    numpy: bool,
) -> types.CodeType | None:
    """Give the code of a function with the operators of kernels; None where its text is of another function.

    Parameters
    ----------
    function
        The function.
    source
        What `text_of` gave.
    attribute
        What reads an attribute of an object.
    known
        The types of the function's expressions.
    numpy
        Whether numbers have NumPy's types.
    """
    code = function.__code__
    text, first, around = source
    definition = _definition(text, first)
    if definition is None or definition.name != code.co_name or "__class__" in code.co_freevars:
        return None
    rewriter = _Rewriter(attribute, known, numpy=numpy)
    # The defaults are those of the original function; the decorators preserve the first line number.
    definition.args.defaults = [_placed(ast.Constant(None), each) for each in definition.args.defaults]
    definition.args.kw_defaults = [each and _placed(ast.Constant(None), each) for each in definition.args.kw_defaults]
    for arg in ast.walk(definition.args):
        if isinstance(arg, ast.arg):
            arg.annotation = None
    definition.returns = None
    definition.decorator_list = [_placed(ast.Constant(None), each) for each in definition.decorator_list]
    body = definition.body
    definition.body = [rewriter.visit(statement) for statement in body]
    starts = min([definition.lineno, *(each.lineno for each in definition.decorator_list)])
    ast.increment_lineno(definition, code.co_firstlineno - starts)
    inner: ast.stmt = definition
    outside: list[ast.stmt] = []
    # Rename it, so that its own name, or that of the class, is not read from the enclosing function here.
    definition.name = f"weft {definition.name}"
    if around is not None:  # the class determines the mangling of private names
        outside = [_placed(ast.Global([around]), definition)]
        inner = _placed(ast.ClassDef(around, [], [], [inner], []), definition)
        inner.type_params = []  # type: ignore[attr-defined]
    names = [ast.arg(name) for name in code.co_freevars]
    outer = ast.FunctionDef("weft", ast.arguments([], names, None, [], [], None, []), [*outside, inner], [])
    outer.type_params = []  # type: ignore[attr-defined]
    tree = ast.fix_missing_locations(ast.Module([_placed(outer, definition)], []))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the compiler warns about calls of constants
        whole = compile(tree, code.co_filename, "exec", code.co_flags & _FUTURES, dont_inherit=True)
    found = _found(whole, definition.name, code.co_firstlineno)
    if found is None or found.co_varnames[: found.co_argcount] != code.co_varnames[: code.co_argcount]:
        return None
    made = _with_objects(found, rewriter.objects, (found.co_qualname, code.co_qualname))
    return made.replace(co_name=code.co_name)


def _found(code: types.CodeType, name: str, first: int) -> types.CodeType | None:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if constant.co_name == name and constant.co_firstlineno == first:
                return constant
            inner = _found(constant, name, first)
            if inner is not None:
                return inner
    return None


def _with_objects(code: types.CodeType, objects: list[Any], names: tuple[str, str]) -> types.CodeType:
    """Replace the constants that name objects by the objects, and prefix inner functions with the function's name."""

    def put(constant: Any) -> Any:
        if isinstance(constant, types.CodeType):
            return _with_objects(constant, objects, names)
        if isinstance(constant, str) and constant.startswith(_OBJECT):
            return objects[int(constant.removeprefix(_OBJECT))]
        return constant

    name = code.co_qualname.replace(*names, 1)
    return code.replace(co_consts=tuple(put(constant) for constant in code.co_consts), co_qualname=name)
