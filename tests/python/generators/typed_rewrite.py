"""Makes a kernel's types explicit in its source: each value that a join converts is converted by a call.

The oracle sees values, not types. `elaborate` infers the type that each variable has at each point by Numba's rules
(promotion for operators, unification where paths join) and returns an equivalent module in which every path converts
its variables itself: at the ends of branches, before and at the end of loops, at `break` and `continue`, in conditional
expressions and at `return`. Device functions get a copy for each set of argument types. The oracle runs that source
with the types that weft must infer; weft runs it, too, as a second check.

A variable that is first assigned in a loop or a branch, and may have no value where paths join, is tracked if
`Functions.kept` names it. Until its type is known, expressions that depend on it are skipped, as weft does in the first
iterations of inference over a loop. Where it has no value it gets a zero, so that all paths have the same variables.

A condition that is constant at compile time (`typed_constants.py`) drops the branch that is not taken, with its types.

A program outside the subset that `random_programs.py` writes, or without types, raises `TypeError`.
"""

from __future__ import annotations

import ast
import copy
import itertools

import numpy as np
from oracle import numeric
from oracle.constants import folded, of_literals
from oracle.rewrite import OPERATORS

from generators.typed_arrays import ArrayTyper, own
from generators.typed_collectives import CollectiveTyper
from generators.typed_constants import Known, Value, bind, check, common, compared, known, known_value, meet, plain
from generators.typed_library import Library, LibraryTyper
from generators.typed_objects import ObjectTyper
from generators.typed_operations import OperationTyper
from generators.typed_optional import OptionalTyper, facts_of
from generators.typed_sequences import SequenceTyper, returned
from generators.typed_statements import StatementTyper
from generators.typed_strings import TextTyper
from generators.typed_values import (
    BOOL,
    BRAIN,
    COMPLEX64,
    COMPLEX128,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    NONE,
    UINT64,
    UNKNOWN,
    Array,
    Closure,
    Env,
    Maybe,
    Named,
    Optional,
    Sequence,
    Text,
    Type,
    Unknown,
    builtin,
    comparable,
    converted,
    dotted,
    flattened,
    number_of,
    unify,
)


class Undecided(TypeError):
    """A variable's type depends on a condition inside an expression. weft supports this; this module does not."""


METHODS = {kind: f"expr_{kind.__name__}" for kind in ast.expr.__subclasses__()}


class Typer(
    StatementTyper,
    SequenceTyper,
    ObjectTyper,
    ArrayTyper,
    OptionalTyper,
    TextTyper,
    OperationTyper,
    CollectiveTyper,
    LibraryTyper,
):
    """Types one function; `functions` are the device functions that it may call."""

    def __init__(self, functions: Functions, env: Env) -> None:
        self.functions = functions
        self.env: Env = env
        self.loops: list[tuple[list, list]] = []  # (environment, list for conversions) of each break and continue
        self.returns: list[tuple[Type, ast.Return]] = []
        self.exits: list[tuple[Env, ast.Return]] = []  # and the variables there
        self.unknown = False  # whether an expression was skipped, because a variable has no type yet

    # Expressions: the type, and the expression with conversions.

    def expr(self, node: ast.expr) -> tuple[Type, ast.expr]:
        """The type of an expression, and the expression with conversions. Where its value is None, the thread ends."""
        ty, new = self.expr_or_none(node)
        return (ty.of, own("there", new)) if isinstance(ty, Optional) else (ty, new)

    def expr_or_none(self, node: ast.expr) -> tuple[Type, ast.expr]:
        """The same of an expression whose value may be None."""
        node.known = None
        if (literal := folded(node)) is not None:
            ty, _ = self.expr(literal)
            node.known = known(literal)
            return ty, node
        ty, new = getattr(self, METHODS[node.__class__])(node)
        if node.known is None:
            node.known = known_value(node, ty, self.env)
        check(node.known, ty)
        return ty, new

    def number(self, node: ast.expr) -> tuple[np.dtype, ast.expr]:
        return self.as_number(*self.expr(node), node)

    @staticmethod
    def as_number(ty: Type, new: ast.expr, node: ast.expr) -> tuple[np.dtype, ast.expr]:
        """An expression that must be a number."""
        ty = number_of(ty)
        if not isinstance(ty, np.dtype) or ty.kind in "mM":
            raise TypeError(f"{ty} is no number")
        return ty, new

    def real(self, node: ast.expr) -> tuple[np.dtype, ast.expr]:
        ty, node = self.number(node)
        if ty.kind == "c":
            raise TypeError(f"{ty} is complex")
        return ty, node

    def expr_Constant(self, node):
        value = node.value
        if value.__class__ is int:
            if not -(2**64) <= value < 2**64:
                raise TypeError("an integer of more than 64 bits")
            return INT64 if -(2**63) <= value < 2**63 else UINT64, node
        if value.__class__ is float:
            return FLOAT64, node
        if value is None:
            return NONE, node
        if isinstance(value, (str, bytes)):
            return Text("U" if isinstance(value, str) else "S"), node
        return numeric.value(value).dtype, node

    def expr_Name(self, node):
        ty = None if self.env is None else self.env.get(node.id)
        if ty is UNKNOWN or (ty is None and node.id in self.functions.kept and self.loops):
            raise Unknown(node.id)
        if ty is None and node.id in self.functions.names and not isinstance(self.functions.names[node.id], type):
            found, new = self.captured(node.id)
            node.known = known(new)
            return found, new
        if ty is None:
            raise TypeError(f"{node.id} is not defined")
        return ty.type if isinstance(ty, Maybe) else ty, node

    def expr_BinOp(self, node):
        op = OPERATORS[type(node.op)]
        if op in ("*", "**", "<<") and of_literals(node):
            raise TypeError("a constant that CPython does not fold")
        left, left_node = self.expr(node.left)
        right, right_node = self.expr(node.right)
        left, right = number_of(left), number_of(right)
        if found := self.object_binary(op, (left, left_node), (right, right_node), node):
            return found
        new = ast.BinOp(left_node, node.op, right_node)
        if isinstance(left, tuple) and isinstance(right, tuple) and op == "+":
            return left + right, new
        if not (isinstance(left, np.dtype) and isinstance(right, np.dtype)):
            raise TypeError(op)
        if op == "**" and "c" in (left.kind, right.kind):
            raise TypeError("a power of complex numbers is not exact")
        return numeric.result_type(op, left, right), new

    def expr_UnaryOp(self, node):
        if isinstance(node.op, ast.Not):
            ty, operand = self.expr_or_none(node.operand)
            if isinstance(ty, (Optional, Text)):
                return BOOL, ast.UnaryOp(node.op, operand)
        else:
            ty, operand = self.expr(node.operand)
        ty = number_of(ty)
        if ty is BRAIN and isinstance(node.op, (ast.USub, ast.UAdd)):
            return BRAIN, ast.UnaryOp(node.op, operand)
        if isinstance(ty, np.dtype) and ty.kind == "m" and isinstance(node.op, ast.USub):
            return ty, ast.UnaryOp(node.op, operand)
        ty = FLOAT32 if ty is BRAIN else ty
        if not isinstance(ty, np.dtype) or ty.kind in "mM":
            raise TypeError(f"{ty} is no number")
        new = ast.UnaryOp(node.op, operand)
        if isinstance(node.op, ast.Not):
            return BOOL, new
        if isinstance(node.op, ast.Invert):
            if not numeric.is_int(ty):
                raise TypeError("~ of a float")
            if ty == BOOL:
                return BOOL, new
        if numeric.is_int(ty):
            ty = UINT64 if ty.kind == "u" else INT64
        return ty, new

    def expr_Compare(self, node):
        if isinstance(node.comparators[0], ast.GeneratorExp):
            return self.member_of(node)
        ty, left = self.compared_operand(node, node.left)
        operands: list[ast.expr] = []
        node.known = self.links(node, 0, node.left, ty, operands)
        # Members of enums are their values.
        same = {ast.Is: ast.Eq, ast.IsNot: ast.NotEq} if ty is not NONE else {}
        ops = [
            op if isinstance(each, ast.Constant) and each.value is None else same.get(type(op), lambda op=op: op)()
            for op, each in zip(node.ops, operands, strict=False)
        ]
        return BOOL, ast.Compare(left, ops, operands)

    def links(self, node: ast.Compare, at: int, left: ast.expr, left_type: Type, operands: list) -> bool | None:
        """The rest of a chain of comparisons, and its constant value if known; links after a constant false one are
        dropped."""
        op, right = node.ops[at], node.comparators[at]
        ty, operand = self.compared_operand(node, right)
        operands.append(operand)
        if isinstance(op, (ast.In, ast.NotIn)) and isinstance(ty, tuple):
            pairs = [(left_type, item) for item in ty]
        elif isinstance(op, (ast.In, ast.NotIn)) and isinstance(ty, Array) and ty.ndim == 1:
            pairs = [(left_type, ty.dtype)]
        elif (found := self.special_links(op, left_type, ty)) is not None:
            pairs = found
        elif (none := self.object_links(op, left_type, ty)) is not None:
            if len(node.ops) > 1:
                raise TypeError("None in a chain of comparisons")
            return none
        else:
            pairs = [(left_type, ty)]
        for one, two in pairs:
            comparable(op, one, two)
        first = compared(op, known(left), known(right))
        if at + 1 == len(node.ops) or first is False:
            return first
        if first is True:
            return self.links(node, at + 1, right, ty, operands)
        rest, same = self.perhaps(lambda: self.links(node, at + 1, right, ty, operands))
        return self.right_decides(rest is False, False, same, node.comparators[at + 1 :])

    @staticmethod
    def right_decides(decides: bool, value: bool, same: bool, nodes: list[ast.expr]) -> bool | None:
        """The known value of `x and right` or `x or right` if `right` alone determines it; the left one is unknown."""
        if not decides or not same:
            return None
        if not plain(nodes):
            raise TypeError("whether this is known depends on the statements that weft writes for it")
        return value

    def expr_NamedExpr(self, node):
        ty, value = self.expr_or_none(node.value)
        bind(self.env, node.target.id, ty, known(node.value))
        return ty, ast.NamedExpr(node.target, value)

    def way(self, function):
        """The result of `function`, which may not be evaluated, and the variables after it; they are not changed.

        A `:=` in it must not change the type of a variable.
        """
        before = dict(self.env)
        result = function()
        after, self.env = self.env, before
        if any(after[name] != ty for name, ty in before.items() if not isinstance(ty, Known)):
            raise Undecided("a type that depends on a condition inside an expression")
        return result, after

    def perhaps(self, function):
        """The result of `function`, which may not be evaluated, and whether it leaves the known constants unchanged."""
        result, after = self.way(function)
        before = self.env
        self.env = meet(before, before, after)
        return result, after == before

    def expr_BoolOp(self, node):
        ty, new, node.known = self.operands(isinstance(node.op, ast.And), node.values)
        return ty, new

    def operands(self, is_and: bool, values: list[ast.expr]) -> tuple[np.dtype, ast.expr, Value]:
        """`and` or `or` of some operands: of the first and all others."""
        left, left_node = self.expr_or_none(values[0])
        if not isinstance(left, Optional):
            left, left_node = self.as_number(left, left_node, values[0])
        elif not is_and or len(values) == 1:
            raise TypeError("a choice of what may be None")
        value = known(values[0])
        if len(values) == 1 or (value is not None and bool(value) != is_and):
            return left, left_node, value
        op = ast.And() if is_and else ast.Or()
        if value is not None:
            right, right_node, decided = self.operands(is_and, values[1:])
            return right, ast.BoolOp(op, [left_node, right_node]), decided
        facts = facts_of(values[0], is_and)
        (right, right_node, decided), same = self.perhaps(
            lambda: self.narrowed(facts, lambda: self.operands(is_and, values[1:]))
        )
        decides = left == BOOL and isinstance(decided, bool) and decided != is_and
        value = self.right_decides(decides, not is_and, same, values[1:])
        ty = unify(left, right)
        if left == right:
            return ty, ast.BoolOp(op, [left_node, right_node]), value
        name = f"_b{next(self.functions.temporaries)}"
        test = ast.NamedExpr(ast.Name(name, ast.Store()), left_node)
        one, two = converted(ast.Name(name, ast.Load()), left, ty), converted(right_node, right, ty)
        return ty, ast.IfExp(test, *((two, one) if is_and else (one, two))), value

    def expr_IfExp(self, node):
        _, test = self.truth(node.test)
        if (taken := known(node.test)) is not None:
            arm = node.body if taken else node.orelse
            ty, new = self.expr_or_none(arm)
            node.known = known(arm)
            none = ast.Constant(0)  # the operand that is not taken
            return ty, ast.IfExp(test, *((new, none) if taken else (none, new)))
        ((a, body), then), ((b, orelse), other) = (
            self.way(lambda arm=arm, holds=holds: self.narrowed(facts_of(node.test, holds), self.expr_or_none, arm))
            for arm, holds in ((node.body, True), (node.orelse, False))
        )
        self.env = meet(self.env, then, other)
        node.known = common(known(node.body), known(node.orelse))
        ty = unify(a, b)
        return ty, ast.IfExp(test, converted(body, a, ty), converted(orelse, b, ty))

    def expr_Attribute(self, node):
        if dotted(node).startswith("cuda."):
            return INT32, node
        if found := self.library_attribute(node) or self.object_attribute(node):
            return found
        ty, value = self.expr(node.value)
        if isinstance(ty, Array) and node.attr in ("T", "size"):
            return ty if node.attr == "T" else INT64, ast.Attribute(value, node.attr, ast.Load())
        if found := self.field(ty, value, node.attr):
            if isinstance(ty, Named) and isinstance(items := known(node.value), tuple):
                node.known = items[ty.fields.index(node.attr)]
            return found
        if isinstance(ty, Sequence):
            return self.range_attribute(ty, value, node.attr)
        if node.attr in ("real", "imag") and isinstance(ty, Array) and ty.dtype in (COMPLEX64, COMPLEX128):
            part = FLOAT32 if ty.dtype == COMPLEX64 else FLOAT64
            return Array(part, ty.ndim), ast.Attribute(value, node.attr, ast.Load())
        if node.attr in ("real", "imag") and isinstance(ty, np.dtype):
            part = {COMPLEX64: FLOAT32, COMPLEX128: FLOAT64}.get(ty, ty)
            return part, ast.Attribute(value, node.attr, ast.Load())
        raise TypeError(node.attr)

    def index(self, node: ast.expr) -> tuple[int, ast.expr]:
        """The number of dimensions that an index removes, and the index."""
        if isinstance(node, ast.Tuple):
            taken, parts = zip(*(self.index(part) for part in node.elts), strict=True)
            return sum(taken), ast.Tuple(list(parts), ast.Load())
        if isinstance(node, ast.Slice):
            parts = [part and self.index(part)[1] for part in (node.lower, node.upper, node.step)]
            return 0, ast.Slice(*parts)
        if isinstance(node, ast.Constant) and node.value is ...:
            return 0, node
        if (isinstance(node, ast.Constant) and node.value is None) or dotted(node) == "np.newaxis":
            return -1, ast.Constant(None)
        ty, node = self.number(node)
        if ty.kind not in "iu":
            raise TypeError(f"index {ty}")
        return 1, node

    def expr_Subscript(self, node):
        ty, value = self.expr(node.value)
        if found := self.object_subscript(ty, value, node.slice):
            return found
        if isinstance(ty, tuple):
            return self.item(ty, value, node.slice)
        if isinstance(ty, Sequence):
            return self.range_item(ty, value, node.slice)
        if isinstance(ty, Text):
            return self.text_item(ty, value, node.slice)
        if not isinstance(ty, Array):
            raise TypeError("subscript of a number")
        taken, index = self.index(node.slice)
        ndim = ty.ndim - taken
        if ndim < 0:
            raise TypeError("too many indices")
        return Array(ty.dtype, ndim) if ndim else ty.dtype, ast.Subscript(value, index, ast.Load())

    def item(self, ty: tuple, value: ast.expr, index: ast.expr) -> tuple[Type, ast.expr]:
        """Of a tuple: `t[1]`, `t[1:]`, and `t[i]` if its items have one type."""
        if isinstance(index, ast.Slice):
            bounds = [part and ast.literal_eval(part) for part in (index.lower, index.upper, index.step)]
            return ty[slice(*bounds)], ast.Subscript(value, index, ast.Load())
        try:
            return ty[ast.literal_eval(index)], ast.Subscript(value, index, ast.Load())
        except IndexError as error:
            raise TypeError(f"{ast.unparse(index)} is no index of the tuple") from error
        except ValueError:
            which, index = self.number(index)
            if which.kind not in "iu" or len(set(ty)) != 1:
                raise TypeError("an index of a tuple of several types") from None
            return ty[0], ast.Subscript(value, index, ast.Load())

    def expr_Call(self, node):
        target = dotted(node.func)
        if target in ("cuda.shared.array", "cuda.local.array"):
            shape = ast.literal_eval(node.args[0])
            if found := self.object_array(node, shape):
                return found
            dtype = np.dtype(ast.unparse(node.args[1]).removeprefix("np.").rstrip("_"))
            return Array(dtype, len(shape) if isinstance(shape, tuple) else 1), node
        if found := self.collective(target, node) or self.library_call(target, node) or self.operation(target, node):
            return found
        if found := self.object_call(target, node):
            return found
        if target.startswith("cuda."):
            ndim = ast.literal_eval(node.args[0]) if node.args else 0
            return (INT64 if ndim == 1 else (INT64,) * ndim), node
        if target in ("range", "enumerate", "zip", "reversed"):
            return self.sequence_call(target, node)
        if found := self.text_call(target, node):
            return found
        if target in ("iter", "next"):
            return self.iterator_call(target, node)
        if isinstance(function := self.env.get(target), Closure):
            return self.call_closure(function, node)
        if function is UNKNOWN:
            raise Unknown(target)
        if target in self.functions.sources:
            return self.call(target, node)
        if target == "tuple" and isinstance(node.args[0], ast.GeneratorExp):
            return self.comprehension(node.args[0])
        if not node.args:
            raise TypeError(f"{target} of nothing")
        types, args = zip(*(self.expr(arg) for arg in node.args), strict=True)
        new = ast.Call(node.func, list(args), [])
        if target == "len":
            return INT64, new
        types = tuple(number_of(ty) for ty in types)
        if types == (BRAIN,):
            if target == "abs":
                return BRAIN, new
            if target in ("float", "bool", "int") or target.startswith("np."):
                return self.cast_brain(target, args[0])
        if target in ("min", "max") and BRAIN in types:
            found = unify(*types)
            if found is not BRAIN:
                raise TypeError("min of bfloat16 and others")
            return BRAIN, new
        if any(isinstance(ty, np.dtype) and ty.kind in "mM" for ty in types):
            raise TypeError(f"{target} of times")
        if not all(isinstance(ty, np.dtype) for ty in types):
            raise TypeError(f"{target} of {types}")
        if any(ty.kind == "c" for ty in types) and target not in ("np.complex64", "np.complex128", "abs"):
            raise TypeError(f"{target} of {types}")
        return builtin(target, types), new

    def call(self, target: str, node: ast.Call) -> tuple[Type, ast.expr]:
        source = self.functions.sources[target]
        names = [arg.arg for arg in source.args.args]
        given = dict(zip(names, (self.expr_or_none(arg) for arg in node.args), strict=False))
        given |= {keyword.arg: self.expr_or_none(keyword.value) for keyword in node.keywords}
        defaults = dict(zip(reversed(names), reversed(source.args.defaults), strict=False))
        types = [given[name][0] if name in given else self.expr(defaults[name])[0] for name in names]
        special, result = self.functions.specialize(target, tuple(types))
        args = [given[name][1] for name in names[: len(node.args)]]
        keywords = [ast.keyword(keyword.arg, given[keyword.arg][1]) for keyword in node.keywords]
        return result, ast.Call(ast.Name(special, ast.Load()), args, keywords)


class Functions:
    """The device functions of a module and their copies."""

    def __init__(self, sources: dict[str, ast.FunctionDef]) -> None:
        self.sources = sources
        self.names: dict[str, object] = {}  # classes and objects of the module
        self.library = Library()
        self.kept: set[str] = set()  # variables that may have no value at some points
        self.special: dict[tuple, tuple[str, Type]] = {}
        self.written: list[ast.FunctionDef] = []
        self.temporaries = itertools.count()
        self.open: dict[tuple, tuple[str, Type]] = {}  # those that are being typed, with their provisional return types
        self.recursive: set[tuple] = set()  # those of them that were called meanwhile
        self.further_atomics = True  # beside `add` on 32 and 64 bits
        self.further_sums = True  # of complex numbers and float16

    def specialize(self, name: str, types: tuple[Type, ...]) -> tuple[str, Type]:
        """The copy for some argument types, and its return type."""
        key = name, types
        if key in self.special:
            return self.special[key]
        if key in self.open:
            self.recursive.add(key)
            if self.open[key][1] is UNKNOWN:
                raise Unknown(name)
            return self.open[key]
        source, special = self.sources[name], f"{name}_{next(self.temporaries)}"
        body, result = self.least(key, special)
        self.special[key] = special, result
        self.written.append(ast.FunctionDef(special, source.args, body, source.decorator_list))
        return self.special[key]

    def least(self, key: tuple, special: str) -> tuple[list, Type]:
        """The body and return type of a copy. For a recursive function, the paths without recursion are typed first."""
        name, types = key
        source, assumed = self.sources[name], UNKNOWN
        for _ in range(9):
            if len(self.open) > 24:
                break
            done, before = len(self.written), dict(self.special)
            self.open[key] = special, assumed
            try:
                typer, body = written(
                    self, source, dict(zip([arg.arg for arg in source.args.args], types, strict=True))
                )
                if typer.unknown and not typer.returns:
                    raise Unknown(name)
                result = returned(name, typer)
            finally:
                del self.open[key]
            if key not in self.recursive or result == assumed:
                self.recursive.discard(key)
                return body, result
            if assumed is not UNKNOWN and unify(assumed, result) != result:
                break
            assumed, self.special = result, before
            del self.written[done:]
        raise TypeError(f"{name} calls itself with new argument types each time")

    def guesses(self) -> bool:
        """Whether some function's return type is not known yet."""
        return any(found is UNKNOWN for _, found in self.open.values())

    def lift(
        self, function: Closure, names: list[str], types: tuple[Type, ...], values: tuple[Value, ...]
    ) -> tuple[str, Type, list[Type]]:
        """The same for a nested function, specialized also for known values of its arguments.

        Also the types of the variables around it that it assigns: it returns their values after its result.
        """
        source = function.source.node
        at = source.name, types, repr(values)
        if at not in self.special:
            env: dict[str, Type] = {}
            for name, ty, value in zip(names, types, values, strict=True):
                bind(env, name, ty, value)
            typer, body = written(self, copy.deepcopy(source), env)
            special = f"{source.name}_{len(self.written)}"
            result, after = returned(source.name, typer), []
            for each in function.assigned:
                after.append(unify(*(env[each] for env, _ in typer.exits)))
            for before, new in typer.exits if after else ():
                pairs = zip(function.assigned, after, strict=True)
                values_after = [converted(ast.Name(each, ast.Load()), before[each], ty) for each, ty in pairs]
                new.value = ast.Tuple([new.value, *values_after], ast.Load())
            self.special[at] = special, result, after
            self.written.append(ast.FunctionDef(special, source.args, body, source.decorator_list))
        return self.special[at]


def written(functions: Functions, source: ast.FunctionDef, env: Env) -> tuple[Typer, list]:
    typer = Typer(functions, env)
    body = typer.block(source.body)
    return typer, body


def elaborate(
    text: str, types: dict[str, Type], kept: set[str] | None = None, names: dict[str, object] | None = None
) -> ast.Module:
    """The module with all conversions written out; `types` are those of the parameters of `kernel`.

    `names` are the classes and objects that the module defines.

    Its nodes have no source positions, and some occur several times.
    """
    tree = ast.parse(text)
    definitions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    functions = Functions({})
    functions.sources |= {
        name: node for name, node in definitions.items() if name != "kernel" and not functions.library.takes(node)
    }
    functions.kept = kept or set()
    functions.names = names or {}
    kernel = definitions["kernel"]
    _, body = written(functions, kernel, dict(types))
    rest = [node for node in tree.body if not isinstance(node, ast.FunctionDef)]
    args = kernel.args
    if args.kwonlyargs:  # launched with values in the order of the parameters, those with defaults at the end
        plain_ones = args.args[: len(args.args) - len(args.defaults)]
        pairs = list(zip(args.kwonlyargs, args.kw_defaults, strict=True))
        names = [*plain_ones, *(arg for arg, default in pairs if default is None)]
        names += [*args.args[len(plain_ones) :], *(arg for arg, default in pairs if default is not None)]
        defaults = [*args.defaults, *(default for _, default in pairs if default is not None)]
        args = ast.arguments([], names, None, [], [], None, defaults)
    new = ast.FunctionDef("kernel", args, body, kernel.decorator_list)
    return ast.Module(flattened([*rest, *functions.written, new]), [])
