"""Rewrites a kernel's source so that all operations are calls of the oracle's runtime.

`a + b` becomes `_o.binary("+", a, b)`, `a[i] = x` becomes `_o.store(a, i, x)`, `f(x)` becomes `_o.call(7, f, x)`, where
7 is the number of the call in the source. A function that reaches a barrier becomes a generator, and calls of it
`yield from`.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import itertools
import textwrap
import types

from oracle import numeric
from oracle.collectives import Collective
from oracle.constants import folded
from oracle.emulate import BarrierCall, Register, WarpCall, substitute

OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip

RUNTIME = "_o"
_sites = itertools.count()


def name_of(identifier: str, *, store: bool = False) -> ast.Name:
    """A reference to a variable."""
    return ast.Name(identifier, ast.Store() if store else ast.Load())


def runtime_call(function: str, *args: ast.expr) -> ast.expr:
    """`_o.function(args)`."""
    return ast.Call(ast.Attribute(name_of(RUNTIME), function, ast.Load()), list(args), [])


class Rewriter(ast.NodeTransformer):
    """The rewriting of one function; `namespace` maps its global names to objects."""

    def __init__(self, namespace: dict[str, object], local_names: set[str]) -> None:
        self.namespace = namespace
        self.local_names = local_names
        self.temporaries = itertools.count()
        self.met_barrier = False

    def resolve(self, node: ast.expr) -> object:
        """The object that a global name, or a chain of attributes of one, refers to; or None."""
        if isinstance(node, ast.Name) and node.id not in self.local_names:
            return self.namespace.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.resolve(node.value)
            if owner is None or node.attr in ("threadIdx", "blockIdx", "blockDim", "gridDim", "laneid"):
                return None
            return substitute(getattr(owner, node.attr, None))
        return None

    def waits(self, node: ast.expr) -> bool:
        """Whether a call of this may wait at a barrier."""
        target = self.resolve(node)
        return isinstance(target, (BarrierCall, WarpCall, Collective)) or getattr(target, "waits", False)

    def temporary(self) -> str:
        return f"_t{next(self.temporaries)}"

    def constant(self, item: object) -> ast.expr:
        """A name for a constant of its Numba type."""
        name = f"_c{next(_sites)}"
        self.namespace[name] = numeric.value(item)
        return name_of(name)

    # Expressions.

    def visit(self, node: ast.AST) -> ast.AST:
        return super().visit(folded(node) or node)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return self.constant(node.value) if isinstance(node.value, (int, float, complex)) else node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.local_names and isinstance(self.namespace.get(node.id), Register):
            return runtime_call("read", node)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        right = folded(node.right) or node.right
        exponent = right.value if isinstance(right, ast.Constant) else None
        if isinstance(node.op, ast.Pow) and type(exponent) is int:
            return runtime_call("known_power", self.visit(node.left), ast.Constant(exponent))
        symbol = ast.Constant(OPERATORS[type(node.op)])
        return runtime_call("binary", symbol, self.visit(node.left), self.visit(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        return runtime_call("unary", ast.Constant(OPERATORS[type(node.op)]), self.visit(node.operand))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        parts: list[ast.expr] = []
        left = self.visit(node.left)
        for position, (op, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            right = self.visit(right)
            following: ast.expr = right
            if position + 1 < len(node.ops):  # the operand is used again: name it
                name = self.temporary()
                right = ast.NamedExpr(name_of(name, store=True), right)
                following = name_of(name)
            parts.append(runtime_call("compare", ast.Constant(OPERATORS[type(op)]), left, right))
            left = following
        return parts[0] if len(parts) == 1 else ast.BoolOp(ast.And(), parts)

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        return ast.Tuple([self.visit(item) for item in node.elts], node.ctx)  # a new node: a shape may occur twice

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return runtime_call("attribute", self.visit(node.value), ast.Constant(node.attr))

    def visit_Slice(self, node: ast.Slice) -> ast.expr:
        bounds = [
            ast.Constant(None) if part is None else self.visit(part) for part in (node.lower, node.upper, node.step)
        ]
        return runtime_call("slice", *bounds)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        return runtime_call("load", self.visit(node.value), self.visit(node.slice))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        waits = self.waits(node.func)
        self.met_barrier |= waits
        site = ast.Constant(next(_sites))
        args = [site, self.visit(node.func), *(self.visit(arg) for arg in node.args)]
        call = runtime_call("call_waiting" if waits else "call", *args)
        call.keywords = [ast.keyword(keyword.arg, self.visit(keyword.value)) for keyword in node.keywords]
        return ast.YieldFrom(call) if waits else call

    # Statements.

    def assign(self, target: ast.expr, item: ast.expr) -> list[ast.stmt]:
        """`target = item` for an item that is already rewritten."""
        if isinstance(target, ast.Name):
            return [ast.Assign([target], item)]
        if isinstance(target, ast.Subscript):
            store = runtime_call("store", self.visit(target.value), self.visit(target.slice), item)
            return [ast.Expr(store)]
        if isinstance(target, ast.Tuple):
            names = [self.temporary() for _ in target.elts]
            stars = [isinstance(part, ast.Starred) for part in target.elts]
            places = [name_of(name, store=True) for name in names]
            places = [
                ast.Starred(each, ast.Store()) if star else each for each, star in zip(places, stars, strict=True)
            ]
            statements: list[ast.stmt] = [ast.Assign([ast.Tuple(places, ast.Store())], item)]
            for name, part, star in zip(names, target.elts, stars, strict=True):
                rest = ast.Tuple([ast.Starred(name_of(name), ast.Load())], ast.Load())
                statements += self.assign(part.value, rest) if star else self.assign(part, name_of(name))
            return statements
        raise NotImplementedError(f"assignment to {ast.unparse(target)}")

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        name = self.temporary()
        statements: list[ast.stmt] = [ast.Assign([name_of(name, store=True)], self.visit(node.value))]
        for target in node.targets:
            statements += self.assign(target, name_of(name))
        return statements

    def visit_AnnAssign(self, node: ast.AnnAssign) -> list[ast.stmt]:
        return self.assign(node.target, self.visit(node.value)) if node.value else [ast.Pass()]

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        symbol = ast.Constant(OPERATORS[type(node.op)])
        item = self.visit(node.value)
        if isinstance(node.target, ast.Name):
            old = self.visit_Name(name_of(node.target.id))
            return [ast.Assign([node.target], runtime_call("binary", symbol, old, item))]
        if isinstance(node.target, ast.Subscript):
            # The element is read before the value is evaluated, which may change it.
            base, index = self.temporary(), self.temporary()
            names = [
                ast.NamedExpr(name_of(base, store=True), self.visit(node.target.value)),
                ast.NamedExpr(name_of(index, store=True), self.visit(node.target.slice)),
            ]
            old = runtime_call("load", name_of(base), name_of(index))
            return [ast.Expr(runtime_call("store", *names, runtime_call("binary", symbol, old, item)))]
        raise NotImplementedError(f"augmented assignment to {ast.unparse(node.target)}")

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        return ast.Expr(runtime_call("check", self.visit(node.test)))

    def visit_For(self, node: ast.For) -> ast.stmt:
        name = self.temporary()
        node.iter = runtime_call("iterate", self.visit(node.iter))
        body = self.assign(node.target, name_of(name))
        node.target = name_of(name, store=True)
        node.body = body + self.block(node.body)
        node.orelse = self.block(node.orelse)
        return node

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in statements:
            new = self.visit(statement)
            result += new if isinstance(new, list) else [new]
        return result


class Function:
    """A rewritten function. `waits` is true if it is a generator that stops at barriers."""

    def __init__(self, name: str, definition: ast.FunctionDef, namespace: dict[str, object], local_names: set[str]):
        """`namespace` maps its free names to objects; its defaults are omitted."""
        from oracle import runtime

        self.namespace = namespace
        self.namespace[RUNTIME] = runtime
        rewriter = Rewriter(self.namespace, local_names)
        self._strip(definition)
        definition.body = rewriter.block(definition.body)
        self.waits = rewriter.met_barrier
        place(definition)
        itself = {definition.name: namespace[definition.name]} if definition.name in namespace else {}
        exec(compile(ast.Module([definition], []), f"<oracle of {name}>", "exec"), self.namespace)
        self.call = self.namespace[definition.name]
        self.namespace.update(itself)

    def read(self, original: types.FunctionType) -> None:
        """Rewrites a function from its source. For a recursive function, `waits` is set before."""
        tree = ast.parse(textwrap.dedent(inspect.getsource(original)))
        definition = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
        closure = inspect.getclosurevars(original)  # also reports attributes as globals: use only names that occur
        captured = {**closure.builtins, **closure.globals, **closure.nonlocals}
        names = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
        namespace = {name: as_function(substitute(item)) for name, item in captured.items() if name in names}
        locals_ = set(original.__code__.co_varnames) | set(original.__code__.co_cellvars)
        self.__init__(original.__qualname__, definition, namespace, locals_)
        self.call.__defaults__ = numeric.value(original.__defaults__)
        if original.__kwdefaults__:
            self.call.__kwdefaults__ = {key: numeric.value(item) for key, item in original.__kwdefaults__.items()}

    @staticmethod
    def _strip(definition: ast.FunctionDef) -> None:
        definition.decorator_list, definition.returns = [], None
        definition.args.defaults = []
        definition.args.kw_defaults = [None] * len(definition.args.kwonlyargs)
        for arg in (*definition.args.posonlyargs, *definition.args.args, *definition.args.kwonlyargs):
            arg.annotation = None


def place(node: ast.AST) -> None:
    """Gives nodes without a source position the position of one."""
    rest = [node]
    while rest:
        node = rest.pop()
        if "lineno" not in node.__dict__:
            node.lineno = node.end_lineno = 1
            node.col_offset = node.end_col_offset = 0
        for name in node._fields:
            item = getattr(node, name, None)
            if isinstance(item, list):
                rest += [each for each in item if isinstance(each, ast.AST)]
            elif isinstance(item, _PLACED):
                rest.append(item)


_PLACED = (ast.expr, ast.stmt, ast.arguments, ast.arg, ast.keyword, ast.comprehension)


def kernel_of(tree: ast.Module, names: dict[str, object]) -> Function:
    """The last function of a module's tree, which is modified; `names` has the modules that it imports.

    The same as `as_function` for the kernel, but without unparsing and parsing its source.
    """
    known = {**vars(builtins), **names}
    made: Function | None = None
    for definition in tree.body:
        if isinstance(definition, ast.FunctionDef):  # mutually recursive functions call later ones
            known[definition.name] = Function.__new__(Function)
            known[definition.name].waits = False
    for definition in tree.body:
        if not isinstance(definition, ast.FunctionDef):
            continue
        arguments = definition.args
        defaults = [eval(compile(ast.Expression(each), "<default>", "eval"), known) for each in arguments.defaults]
        definition.args = ast.arguments([], [ast.arg(arg.arg) for arg in arguments.args], None, [], [], None, [])
        used = [node for node in ast.walk(definition) if isinstance(node, ast.Name)]
        local_names = {node.id for node in used if isinstance(node.ctx, ast.Store)}
        local_names |= {arg.arg for arg in arguments.args}
        free = {node.id for node in used} - local_names
        namespace = {name: as_function(substitute(known[name])) for name in free if name in known}
        made = known[definition.name]
        made.__init__(definition.name, definition, namespace, local_names)
        made.call.__defaults__ = numeric.value(tuple(defaults)) or None
    if made is None:
        raise TypeError("there is no kernel")
    return made


_functions: dict[object, Function] = {}
_waiting: set[object] = set()  # functions that reach a barrier


def as_function(item: object) -> object:
    """The rewritten function of a jitted one; anything else as it is."""
    python = getattr(item, "py_func", None)
    if not isinstance(python, types.FunctionType):
        return item
    if python in _functions:
        return _functions[python]  # may be incomplete: a recursive call
    before = len(_functions)
    made = _functions[python] = Function.__new__(Function)
    made.waits = python in _waiting
    made.read(python)
    if made.waits and python not in _waiting:
        # Its recursive calls were rewritten as calls that do not wait, also in the functions that it calls.
        _waiting.add(python)
        for later in list(_functions)[before:]:
            del _functions[later]
        return as_function(item)
    return made
