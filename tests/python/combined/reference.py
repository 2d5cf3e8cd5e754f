"""Runs a program's kernel by CPython: one thread after the other, or, where threads wait for each other, as generators.

The kernel's syntax tree is rewritten and compiled: an array is a list with strides, so that `a[i, j]` is
`a[i * a__s0 + j]`; special registers are variables; a barrier is a `yield`. Numbers are Python's. Programs are written
so that this is exact: integers are far below 2**31, and floats are integers below 2**24.

`checked` enables checks of bounds, initialization and races. They take ten times as long, and test the generator rather
than weft.
"""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WARP = 32


class Unsound(Exception):
    """The program itself is at fault: a race, an index out of bounds, a number that is too large."""


# ---- functions that kernels call ------------------------------------------------------------------------------------


def wrapped(index: int, extent: int) -> int:
    """An index that may count from the end."""
    return index if index >= 0 else index + extent


def atomic(combine: Callable[[Any, Any], Any]) -> Callable[[list[Any], int, Any], Any]:
    """An atomic operation on an element of a list."""

    def operate(array: list[Any], at: int, value: Any) -> Any:
        old = array[at]
        array[at] = combine(old, value)
        return old

    return operate


def cas(array: list[Any], at: int, expected: Any, value: Any) -> Any:
    """Compare and swap."""
    old = array[at]
    if old == expected:
        array[at] = value
    return old


ATOMICS: dict[str, Callable[..., Any]] = {
    "add": atomic(lambda a, b: a + b),
    "sub": atomic(lambda a, b: a - b),
    "max": atomic(max),
    "min": atomic(min),
    "and_": atomic(lambda a, b: a & b),
    "or_": atomic(lambda a, b: a | b),
    "xor": atomic(lambda a, b: a ^ b),
    "exch": atomic(lambda _, b: b),
    "cas": cas,
}
SYNC = {"syncthreads": "all", "syncthreads_count": "count", "syncthreads_and": "and", "syncthreads_or": "or"}
OF_WARP = {
    "syncwarp", "shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync", "any_sync", "all_sync", "ballot_sync",
    "reduce_add_sync", "reduce_max_sync", "reduce_min_sync",
}  # fmt: skip
INTEGERS = {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"}
REGISTERS = {
    "threadIdx": ("tx", "ty", "tz"),
    "blockIdx": ("bx", "by", "bz"),
    "blockDim": ("bdx", "bdy", "bdz"),
    "gridDim": ("gdx", "gdy", "gdz"),
}
HIDDEN = "SH"  # the block's shared arrays


# ---- the tree -------------------------------------------------------------------------------------------------------


def name(text: str) -> ast.Name:
    return ast.Name(text, ast.Load())


def call(function: str, *args: ast.expr) -> ast.Call:
    return ast.Call(name(function), list(args), [])


def dotted(node: ast.expr) -> str:
    """`cuda.atomic.add` as a string; empty for any other expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


class Rewriter(ast.NodeTransformer):
    """Rewrites one function. `arrays` has the number of axes of each array, `shapes` the extents of local arrays."""

    def __init__(self, arrays: dict[str, int], waiting: set[str], passed: dict[str, list[str]], checked: bool) -> None:
        self.arrays = dict(arrays)
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.waiting, self.passed, self.checked = waiting, passed, checked
        self.waits = False
        self.sites = 0

    def generic(self, node: ast.AST) -> Any:
        return super().generic_visit(node)

    # Arrays.

    def place(self, array: str, index: ast.expr) -> ast.expr:
        """The element's number in the list; for checked arrays the index itself."""
        elements = index.elts if isinstance(index, ast.Tuple) else [index]
        elements = [self.visit(each) for each in elements]
        if self.checked:
            return ast.Tuple(elements, ast.Load()) if len(elements) > 1 else elements[0]
        known = self.shapes.get(array)
        total: ast.expr | None = None if known else name(f"{array}__o")
        for axis, each in enumerate(elements):
            if any(isinstance(part, (ast.Sub, ast.USub)) for part in ast.walk(each)):
                extent = ast.Constant(known[axis]) if known else name(f"{array}__n{axis}")
                each = call("_wrapped", each, extent)
            if known:
                stride = math.prod(known[axis + 1 :])
                term = each if stride == 1 else ast.BinOp(each, ast.Mult(), ast.Constant(stride))
            else:
                term = ast.BinOp(each, ast.Mult(), name(f"{array}__s{axis}"))
            total = term if total is None else ast.BinOp(total, ast.Add(), term)
        assert total is not None
        return total

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id in self.arrays:
            return ast.Subscript(name(node.value.id), self.place(node.value.id, node.slice), node.ctx)
        text = dotted(node.value)
        if text.endswith(".shape") and isinstance(node.slice, ast.Constant):
            return name(f"{text[:-6]}__n{node.slice.value}")
        return self.generic(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        text = dotted(node.value.func) if isinstance(node.value, ast.Call) else ""
        if text in ("cuda.shared.array", "cuda.local.array"):
            target = node.targets[0]
            assert isinstance(target, ast.Name)
            assert isinstance(node.value, ast.Call)
            shape = ast.literal_eval(node.value.args[0])
            shape = shape if isinstance(shape, tuple) else (shape,)
            self.arrays[target.id] = len(shape)
            if not self.checked:
                self.shapes[target.id] = shape
            literal = ast.Constant(shape)
            if text == "cuda.local.array":
                made = call("_local", literal)
            else:
                made = call("_shared", name(HIDDEN), ast.Constant(target.id), literal)
            return ast.Assign(node.targets, made)
        return self.generic(node)

    # Registers and calls.

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        text = dotted(node)
        head, _, rest = text.partition(".")
        if head == "cuda":
            register, _, axis = rest.partition(".")
            if register in REGISTERS and axis in ("x", "y", "z"):
                return name(REGISTERS[register]["xyz".index(axis)])
            if rest == "laneid":
                return ast.parse(f"(tx + bdx * (ty + bdy * tz)) % {WARP}", mode="eval").body
        if rest == "size" and head in self.arrays:
            return ast.parse("*".join(f"{head}__n{axis}" for axis in range(self.arrays[head])), mode="eval").body
        return self.generic(node)

    def visit_Call(self, node: ast.Call) -> Any:
        text = dotted(node.func)
        head, _, rest = text.partition(".")
        if head == "cuda":
            return self.call_of_cuda(node, rest)
        if head == "np" and rest in INTEGERS:
            return call("int", *[self.visit(arg) for arg in node.args])
        if head == "np" and rest in ("float32", "float64"):
            return call("float", *[self.visit(arg) for arg in node.args])
        if text == "len" and isinstance(node.args[0], ast.Name) and node.args[0].id in self.arrays:
            return name(f"{node.args[0].id}__n0")
        if text in self.passed:
            args: list[ast.expr] = []
            for arg in node.args:
                if isinstance(arg, ast.Name) and arg.id in self.arrays and not self.checked:
                    if arg.id in self.shapes:
                        shape = self.shapes[arg.id]
                        fields: list[ast.expr] = [ast.Constant(0)]
                        fields += [ast.Constant(math.prod(shape[axis + 1 :])) for axis in range(len(shape))]
                        fields += [ast.Constant(extent) for extent in shape]
                    else:
                        axes = range(self.arrays[arg.id])
                        fields = [name(f"{arg.id}__o")]
                        fields += [name(f"{arg.id}__{field}{axis}") for field in "sn" for axis in axes]
                    args.append(ast.Tuple([name(arg.id), *fields], ast.Load()))
                else:
                    args.append(self.visit(arg))
            registers = [name(each) for each in ("tx", "ty", "tz", "bx", "by", "bz", HIDDEN)]
            made = ast.Call(name(text), [*registers, *args], [])
            if text in self.waiting:
                self.waits = True
                return ast.YieldFrom(made)
            return made
        return self.generic(node)

    def call_of_cuda(self, node: ast.Call, rest: str) -> ast.expr:
        if rest in ("grid", "gridsize"):
            axes = ast.literal_eval(node.args[0])
            form = "{b} * {d} + {t}" if rest == "grid" else "{g} * {d}"
            parts = [form.format(b=f"b{x}", d=f"bd{x}", t=f"t{x}", g=f"gd{x}") for x in "xyz"[:axes]]
            return ast.parse(parts[0] if axes == 1 else f"({', '.join(parts)})", mode="eval").body
        if rest.startswith("atomic."):
            array = node.args[0]
            assert isinstance(array, ast.Name)
            values = [self.visit(arg) for arg in node.args[2:]]
            return call(f"_{rest[7:]}", name(array.id), self.place(array.id, node.args[1]), *values)
        if rest in SYNC:
            self.waits = True
            return ast.Yield(ast.Tuple([ast.Constant(SYNC[rest]), *[self.visit(arg) for arg in node.args]], ast.Load()))
        if rest in OF_WARP:
            self.waits = True
            self.sites += 1
            given = [self.visit(arg) for arg in node.args] or [ast.Constant(-1)]
            return ast.Yield(ast.Tuple([ast.Constant(rest), ast.Constant(self.sites), *given], ast.Load()))
        if rest in ("popc", "brev", "clz", "ffs"):
            return call(f"_{rest}", *[self.visit(arg) for arg in node.args])
        raise Unsound(f"the reference does not know cuda.{rest}")


def popc(value: int) -> int:
    return (value & 0xFFFFFFFF).bit_count()


# ---- a module -------------------------------------------------------------------------------------------------------


def arrays_of(function: ast.FunctionDef, ndims: dict[str, int]) -> dict[str, int]:
    """The parameters of a device function that are arrays, with their axes, by how they are used."""
    params = {arg.arg for arg in function.args.args}
    found: dict[str, int] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in params:
            found[node.value.id] = len(node.slice.elts) if isinstance(node.slice, ast.Tuple) else 1
        if isinstance(node, ast.Call) and dotted(node.func).startswith("cuda.atomic."):
            array = node.args[0]
            if isinstance(array, ast.Name) and array.id in params:
                index = node.args[1]
                found[array.id] = len(index.elts) if isinstance(index, ast.Tuple) else 1
    return found | {each: ndims[each] for each in params if each in ndims}


def is_table(node: ast.stmt) -> bool:
    """`TABLE = np.array([...])` at module level."""
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and dotted(node.value.func) == "np.array"


class Reference:
    """A program's source, ready to run."""

    def __init__(self, source: str, ndims: dict[str, int], *, checked: bool = False) -> None:
        """`ndims` has the axes of each parameter of the kernel that is an array, None for numbers."""
        self.checked = checked
        tree = ast.parse(source)
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        self.names: dict[str, Any] = {
            "math": math, "_wrapped": wrapped, "_popc": popc, "_local": self.local, "_shared": self.shared,
            **{f"_{each}": function for each, function in ATOMICS.items()},
        }  # fmt: skip
        if checked:
            self.names |= {f"_{each}": checked_atomic(function) for each, function in ATOMICS.items()}
        tables: dict[str, tuple[int, ...]] = {}
        for node in tree.body:
            if is_table(node):
                assert isinstance(node, ast.Assign)
                assert isinstance(node.value, ast.Call)
                assert isinstance(node.targets[0], ast.Name)
                rows = ast.literal_eval(node.value.args[0])
                nested = isinstance(rows[0], (list, tuple))
                tables[node.targets[0].id] = (len(rows), len(rows[0])) if nested else (len(rows),)
                flat = [value for row in rows for value in row] if nested else list(rows)
                made = Array(flat, 0, tables[node.targets[0].id]) if checked else flat
                self.names[node.targets[0].id] = made
        passed = {function.name: [arg.arg for arg in function.args.args] for function in functions[:-1]}
        waiting: set[str] = set()
        made_functions: list[ast.stmt] = []
        for function in functions:
            kernel = function is functions[-1]
            arrays = {each: n for each, n in ndims.items() if n} if kernel else arrays_of(function, {})
            rewriter = Rewriter(arrays | {each: len(shape) for each, shape in tables.items()}, waiting, passed, checked)
            if not checked:
                rewriter.shapes |= tables
            body = [rewriter.visit(each) for each in function.body]
            registers = [ast.arg(each) for each in ("tx", "ty", "tz", "bx", "by", "bz", HIDDEN)]
            if kernel:
                self.waits = rewriter.waits
                self.params = [arg.arg for arg in function.args.args]
                self.arrays = arrays
                thread = definition("thread", registers, body)
                fields = [ast.arg(each) for each in self.fields()]
                made_functions.append(definition("kernel", fields, [thread, ast.Return(name("thread"))]))
                continue
            if not checked:
                body = [self.unpacked(each, n) for each, n in arrays.items()] + body
            if rewriter.waits:
                waiting.add(function.name)
            made_functions.append(
                definition(function.name, registers + [ast.arg(a.arg) for a in function.args.args], body)
            )
        inner = ast.Return(name("kernel"))
        dims = [ast.arg(each) for each in ("bdx", "bdy", "bdz", "gdx", "gdy", "gdz")]
        module = ast.Module([definition("make", dims, [*made_functions, inner])], [])
        exec(compile(ast.fix_missing_locations(module), "<reference>", "exec"), self.names)

    def fields(self) -> Iterator[str]:
        """The kernel's parameters with the fields of arrays."""
        for param in self.params:
            yield param
            if param in self.arrays:
                yield f"{param}__o"
                for field in "sn":
                    for axis in range(self.arrays[param]):
                        yield f"{param}__{field}{axis}"

    @staticmethod
    def unpacked(array: str, n: int) -> ast.stmt:
        """The fields of an array that was passed as a tuple."""
        fields = [array, f"{array}__o", *(f"{array}__{field}{axis}" for field in "sn" for axis in range(n))]
        return ast.parse(f"{', '.join(fields)} = {array}").body[0]

    def local(self, shape: tuple[int, ...]) -> Any:
        empty = [None] * math.prod(shape)
        if not self.checked:
            return empty
        made = Array(empty, 0, shape)
        made.accesses = None
        return made

    def shared(self, hidden: dict[str, Any], array: str, shape: tuple[int, ...]) -> Any:
        if array not in hidden:
            empty = [None] * math.prod(shape)
            hidden[array] = Array(empty, 0, shape) if self.checked else empty
        return hidden[array]

    def run(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], args: dict[str, Any], *, reverse: bool = False
    ) -> None:
        """Runs all threads. An array is given as (list, offset, strides, extents)."""
        values: list[Any] = []
        for param in self.params:
            given = args[param]
            if param not in self.arrays:
                values.append(given)
                continue
            flat, offset, strides, extents = given
            values += [
                Array(flat, offset, extents, strides, param) if self.checked else flat,
                offset,
                *strides,
                *extents,
            ]
        thread = self.names["make"](*block, *grid)(*values)
        order = -1 if reverse else 1
        positions = [(x, y, z) for z in range(block[2]) for y in range(block[1]) for x in range(block[0])][::order]
        blocks = [(x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])][::order]
        for index in blocks:
            shared: dict[str, Any] = {}
            if not self.waits:
                for position in positions:
                    if self.checked:
                        WHO.enter(index, position, block)
                    thread(*position, *index, shared)
                continue
            running = {}
            for position in positions:
                linear = position[0] + block[0] * (position[1] + block[1] * position[2])
                running[linear] = thread(*position, *index, shared)
            wait_together(running, index if self.checked else None)


def definition(called: str, params: list[ast.arg], body: list[ast.stmt]) -> ast.FunctionDef:
    arguments = ast.arguments([], params, None, [], [], None, [])
    return ast.FunctionDef(called, arguments, body or [ast.Pass()], [], lineno=1)


# ---- threads that wait for each other -------------------------------------------------------------------------------


def wait_together(running: dict[int, Any], index: tuple[int, int, int] | None) -> None:
    """Runs generators until all have ended. One at a barrier continues when all others have reached one."""
    answers: dict[int, Any] = dict.fromkeys(running)
    at_barrier: dict[int, tuple[Any, ...]] = {}
    in_warp: dict[int, tuple[Any, ...]] = {}
    ready = list(running)
    epoch = 0
    warps = {linear // WARP: 0 for linear in running}
    while ready:
        for linear in ready:
            if index is not None:
                WHO.resume(index, linear, epoch, warps[linear // WARP])
            try:
                stop = running[linear].send(answers[linear])
            except StopIteration:
                del running[linear]
                continue
            (in_warp if stop[0] in OF_WARP else at_barrier)[linear] = stop
        ready = []
        for warp in sorted({linear // WARP for linear in in_warp}):
            lanes = {linear % WARP: in_warp[linear] for linear in in_warp if linear // WARP == warp}
            alive = {linear % WARP for linear in running if linear // WARP == warp}
            for group in meetings(lanes, alive):
                warps[warp] += 1
                for lane in group:
                    linear = warp * WARP + lane
                    answers[linear] = of_warp(lane, group)
                    del in_warp[linear]
                    ready.append(linear)
        if not ready and running:
            if in_warp:
                raise Unsound("lanes wait for others that do not come")
            kinds = {stop[0] for stop in at_barrier.values()}
            if len(kinds) != 1:
                raise Unsound("threads wait at different barriers")
            answer = of_block(kinds.pop(), [stop[1:] for stop in at_barrier.values()])
            epoch += 1
            ready = sorted(at_barrier)
            answers.update(dict.fromkeys(at_barrier, answer))
            at_barrier.clear()


def of_block(kind: str, given: list[tuple[Any, ...]]) -> Any:
    """The results of a barrier for the threads of a block."""
    match kind:
        case "count":
            return sum(bool(value) for (value,) in given)
        case "and":
            return int(all(value for (value,) in given))
        case "or":
            return int(any(value for (value,) in given))
    return None


def meetings(lanes: dict[int, tuple[Any, ...]], alive: set[int]) -> Iterator[dict[int, tuple[Any, ...]]]:
    """Groups of lanes that continue: all live lanes of a mask have reached the same call."""
    left = dict(lanes)
    while left:
        lane, stop = next(iter(left.items()))
        named = {other for other in alive if stop[2] >> other & 1}
        group = {other: left[other] for other in named if other in left and left[other][:2] == stop[:2]}
        if lane in group and set(group) == named:
            yield group
            for other in group:
                del left[other]
        else:
            del left[lane]


def of_warp(lane: int, group: dict[int, tuple[Any, ...]]) -> Any:
    """A lane's result."""
    kind, _, _, *given = group[lane]
    match kind:
        case "shfl_sync":
            source = given[1] % WARP
        case "shfl_up_sync":
            source = lane - given[1]
        case "shfl_down_sync":
            source = lane + given[1]
        case "shfl_xor_sync":
            source = lane ^ given[1]
        case "any_sync":
            return any(stop[3] for stop in group.values())
        case "all_sync":
            return all(stop[3] for stop in group.values())
        case "ballot_sync":
            return sum(1 << other for other, stop in group.items() if stop[3])
        case "reduce_add_sync":
            return sum(stop[3] for stop in group.values())
        case "reduce_max_sync":
            return max(stop[3] for stop in group.values())
        case "reduce_min_sync":
            return min(stop[3] for stop in group.values())
        case _:
            return None
    return group[source][3] if source in group else given[0]


# ---- checks ---------------------------------------------------------------------------------------------------------


class Who:
    """The running thread: block, warp, epoch, the warp's clock, thread."""

    now: tuple[Any, ...] = ()

    def enter(self, index: tuple[int, int, int], position: tuple[int, int, int], block: tuple[int, int, int]) -> None:
        linear = position[0] + block[0] * (position[1] + block[1] * position[2])
        self.now = (index, linear // WARP, 0, 0, linear)

    def resume(self, index: tuple[int, int, int], linear: int, epoch: int, clock: int) -> None:
        self.now = (index, linear // WARP, epoch, clock, linear)


WHO = Who()
LARGEST = 1 << 24


def ordered(one: tuple[Any, ...], two: tuple[Any, ...]) -> bool:
    """Whether two accesses are ordered: by program order of one thread, or by a barrier between them."""
    if one[0] != two[0]:
        return False
    if one[2] != two[2] or one[4] == two[4]:
        return True
    return one[1] == two[1] and one[3] != two[3]


class Array:
    """An array that checks its indices, its values and races."""

    def __init__(
        self, flat: list[Any], offset: int, shape: tuple[int, ...], strides: tuple[int, ...] = (), named: str = ""
    ) -> None:
        self.flat, self.offset, self.shape, self.named = flat, offset, shape, named
        self.strides = strides or tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
        # Arrays of a launch may share memory; those of a block do not, and those of a thread are private.
        self.accesses: dict[int, dict[str, list[tuple[Any, ...]]]] | None = (
            ACCESSES.setdefault(id(flat), {}) if named else {}
        )

    def at(self, index: Any) -> int:
        index = index if isinstance(index, tuple) else (index,)
        if len(index) != len(self.shape):
            raise Unsound(f"{self.named}: {len(index)} indices")
        total = self.offset
        for each, extent, stride in zip(index, self.shape, self.strides, strict=True):
            if isinstance(each, float) or not -extent <= each < extent:
                raise Unsound(f"{self.named}{list(index)} of {self.shape}")
            total += (each if each >= 0 else each + extent) * stride
        return total

    def touch(self, at: int, how: str) -> None:
        if not WHO.now or self.accesses is None:
            return
        of = self.accesses.setdefault(at, {"read": [], "write": [], "atomic": []})
        clashing = {"read": ("write", "atomic"), "write": ("read", "write", "atomic"), "atomic": ("read", "write")}
        for other in clashing[how]:
            if any(not ordered(each, WHO.now) for each in of[other]):
                raise Unsound(f"a race: {other} and {how} of element {at} of {self.named or 'an array'}")
        if WHO.now not in of[how]:
            of[how].append(WHO.now)

    def __getitem__(self, index: Any) -> Any:
        at = self.at(index)
        self.touch(at, "read")
        if self.flat[at] is None:
            raise Unsound("a read of what was not written")
        return self.flat[at]

    def __setitem__(self, index: Any, value: Any) -> None:
        at = self.at(index)
        self.touch(at, "write")
        if value is None or not -LARGEST <= value <= LARGEST or value != int(value):
            raise Unsound(f"{value} is stored")
        self.flat[at] = value


ACCESSES: dict[int, dict[int, dict[str, list[tuple[Any, ...]]]]] = {}


def checked_atomic(function: Callable[..., Any]) -> Callable[..., Any]:
    """An atomic operation on a checked array."""

    def operate(array: Array, index: Any, *values: Any) -> Any:
        at = array.at(index)
        array.touch(at, "atomic")
        if array.flat[at] is None:
            raise Unsound("an atomic operation on what was not written")
        return function(array.flat, at, *values)

    return operate
