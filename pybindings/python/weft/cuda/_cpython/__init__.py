"""Kernels that CPython runs: what `WEFT_DEVICE=python` does with a launch.

The function itself runs, thread by thread, on the arrays where they are; `breakpoint()`, pdb and an editor's debugger
see it as any function. `scope` says what its names are, `scalars` and `arrays` have its numbers and its memory,
`threads` says who runs, `warps` and `groups` have what threads do together, `native` what compiled code computes,
`debugger` where breakpoints stop. Nothing here is the compiler's, whose rules docs/language.md has.
"""

from __future__ import annotations

import dis
import threading
import types

import numpy as np

from weft import _weft
from weft.cuda._cpython import arguments, copies, debugger, native, scope, threads
from weft.cuda._cpython.expressions import Expressions
from weft.cuda._kernel_names import KernelName
from weft.errors import LaunchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Index = tuple[int, int, int]
    # The grid, the block and the cluster.
    Shape = tuple[Index, Index, Index]

# Names of barriers and collectives, and of operations in loops that wait for other threads' writes.
_COLLECTIVES = {
    "syncthreads",
    "syncthreads_count",
    "syncthreads_and",
    "syncthreads_or",
    "syncwarp",
    "activemask",
    "sync",
    "this_grid",
    "this_thread_block",
    "tiled_partition",
    "coalesced_threads",
    "coop",
    "mma",
    "barrier",
    "cluster",
}
_WAITS = {
    "cas",
    "compare_and_swap",
    "exch",
    "threadfence",
    "threadfence_block",
    "threadfence_system",
    "nanosleep",
    "ldcv",
}

# One launch at a time, because the running thread and the meaning of names are global state.
_LAUNCHING = threading.RLock()


def launch(
    dispatcher: _weft.Dispatcher, shape: Shape, shared_bytes: int, args: tuple[Any, ...], is_recorded: bool
) -> bool:
    """Run a launch; false for one of weft's own kernels, which is compiled as ever.

    Raises
    ------
    LaunchError
        No device could run it: a block with too many threads, or no block.
    RuntimeError
        It is to be recorded, or its threads wait for each other for ever.
    """
    function = dispatcher.py_func
    if _is_native(function):
        return False
    if is_recorded:
        msg = "a graph records compiled kernels, but WEFT_DEVICE=python does not compile kernels: set WEFT_DEVICE=cpu"
        raise RuntimeError(msg)
    name = dispatcher.__name__
    grid, block, cluster = shape
    _check(name, shape, shared_bytes)
    _weft.synchronize()
    with _LAUNCHING, np.errstate(all="ignore"):
        if threads.is_running():
            msg = f"kernel `{name}` is launched by a kernel: only the host can launch kernels"
            raise RuntimeError(msg)
        scope.begin(_expressions(dispatcher, args), numpy=scope.has_numpy_types(dispatcher))
        _run(dispatcher, threads.Launch(name, grid, block, shared_bytes, cluster), args)
    return True


def device_function(dispatcher: _weft.Dispatcher) -> Any:
    """Give what a kernel calls for a jitted function; None where no kernel runs, which alone calls it."""
    return scope.device_function(dispatcher) if threads.is_running() else None


def _expressions(dispatcher: _weft.Dispatcher, args: tuple[Any, ...]) -> Expressions:
    """Give what the compiler knows of a launch's expressions."""
    declared = dispatcher.declared_signatures
    if declared:
        chosen = arguments.choose(declared, tuple(arguments.argument(arg) for arg in args))
        return Expressions(dispatcher, tuple(chosen.args))
    return Expressions(dispatcher, tuple(_weft.typeof_value(arg) for arg in args))


def _is_native(function: Callable[..., Any]) -> bool:
    """Say whether a kernel is weft's own and calls no function of the program's."""
    module = getattr(function, "__module__", None)
    if module == native.MODULE:
        return True
    return scope.module_is_ours(module) and not any(
        not scope.module_is_ours(getattr(each, "__module__", None)) for each in _functions(function)
    )


def _check(name: str, shape: Shape, shared_bytes: int) -> None:
    grid, block, cluster = shape
    attributes = _weft.device_attributes(_weft.current_device_id())
    most, room = attributes["MAX_THREADS_PER_BLOCK"], attributes["MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"]
    size = int(np.prod(block, dtype=np.int64))
    if 0 in grid or 0 in block:
        msg = f"kernel `{name}`: a grid and a block must have at least 1 in each direction, not {grid} and {block}"
    elif size > most or any(
        each > attributes[f"MAX_BLOCK_DIM_{axis}"] for each, axis in zip(block, "XYZ", strict=True)
    ):
        msg = f"kernel `{name}`: a block of {block} has {size} threads; the limit is {most}"
    elif any(extent % each for extent, each in zip(grid, cluster, strict=True)):
        msg = f"kernel `{name}`: a grid of {grid} blocks has no whole clusters of {cluster}"
    elif shared_bytes > room:
        msg = f"kernel `{name}`: {shared_bytes} bytes of shared memory exceed the {room} that a block can have"
    else:
        return
    raise LaunchError(msg)


def _run(dispatcher: _weft.Dispatcher, launched: threads.Launch, args: tuple[Any, ...]) -> None:
    given = tuple(arguments.argument(arg) for arg in args)
    declared = dispatcher.declared_signatures
    if declared:
        signature = arguments.choose(declared, given)
        given = tuple(arguments.converted(arg, kind) for arg, kind in zip(given, signature.args, strict=True))
    function, given = scope.kernel_function(dispatcher, given)
    count = function.__code__.co_argcount
    names = function.__code__.co_varnames[count : len(given)]
    named = dict(zip(names, given[count:], strict=True))

    def call() -> None:
        function(*given[:count], **named)
        copies.end_thread()

    names = _names(dispatcher.py_func)
    if names & _COLLECTIVES or names & _WAITS or any(name.endswith("_sync") for name in names):
        resident = "this_grid" in names or bool(names & _WAITS)
        threads.run_together(launched, call, debugger.chosen, resident=resident, all_of_them="this_grid" in names)
    else:
        threads.run_cooperatively(launched, debugger.without_debugger(call))


# ---- the names that a kernel uses ----------------------------------------------------------------------------------


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _used(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Give the names that a function uses, each with what it stands for, if that is known."""
    for code in _codes(function.__code__):
        for name in code.co_names:
            yield name, function.__globals__.get(name)
        yield from _members(code, function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue


def _members(code: types.CodeType, names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Give what members of modules stand for: of `library.function`."""
    owner: Any = None
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            owner = names.get(step.argval)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and isinstance(owner, types.ModuleType):
            owner = getattr(owner, step.argval, None)
            yield step.argval, owner
        else:
            owner = None


def _functions(function: Callable[..., Any]) -> list[types.FunctionType]:
    """Return a function and the functions that its names and captured values refer to, recursively."""
    found: dict[int, types.FunctionType] = {}
    left: list[Any] = [function]
    while left:
        each = left.pop()
        if isinstance(each, (tuple, list)):
            left += each
            continue
        each = getattr(each, "py_func", each)
        if not isinstance(each, types.FunctionType) or id(each) in found:
            continue
        if found and (each.__module__ or "").partition(".")[0] in ("numpy", "math"):
            continue
        found[id(each)] = each
        left += [value for _, value in _used(each)]
    return list(found.values())


def _names(function: Callable[..., Any]) -> set[str]:
    names: set[str] = set()
    for each in _functions(function):
        for name, value in _used(each):
            names.add(name)
            if isinstance(value, KernelName):
                # It may have another name here.
                names.update(value._weft_path.split(".")[2:])
    return names
