"""The names of `weft.cuda` in a kernel that CPython runs: threads, memory, atomic operations.

A row of `NAMES` is a name by its path. Functions of numbers alone have no row: `native` has the compiled ones compute
them.
"""

from __future__ import annotations

import ctypes
import sys
import time

import numpy as np

from weft import _weft
from weft.cuda._cpython import threads
from weft.cuda._cpython.arrays import Array, Pointer, Vectors, VectorType, array, dtype_of, shown, vector_of
from weft.cuda._cpython.scalars import SCALARS, plain
from weft.cuda._cpython.warps import ALL, COMBINE, WARP, Collective, nothing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

INT32, INT64, UINT32 = SCALARS["int32"], SCALARS["int64"], SCALARS["uint32"]
# Keyed by path.
NAMES: dict[str, Any] = {}
# Special registers of the running thread, which are read when their name is evaluated.
REGISTERS: dict[str, Callable[[], Any]] = {
    "weft.cuda.laneid": lambda: INT32(threads.current().lane),
    "weft.cuda.warpsize": lambda: INT32(WARP),
}
# Uninitialized memory has this value in every byte, so that its use is visible.
_GARBAGE = 0xCD


def _name(path: str) -> Callable[[Any], Any]:
    def keep(function: Any) -> Any:
        NAMES[f"weft.cuda.{path}"] = function
        return function

    return keep


def site(depth: int = 2) -> Any:
    """Give the call in the kernel: its code, the instruction and the line."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("weft.cuda._cpython"):
        frame = frame.f_back
    if frame is None:
        return None, 0, 0
    return frame.f_code, frame.f_lasti, frame.f_lineno


# ---- thread indices ------------------------------------------------------------------------------------------------


class Extent:
    """`cuda.threadIdx` and its like: the parts x, y and z."""

    def __init__(self, name: str, read: Callable[[], tuple[int, int, int]]) -> None:
        self._name, self._read = name, read

    @property
    def x(self) -> Any:
        """The part that runs fastest."""
        return INT32(self._read()[0])

    @property
    def y(self) -> Any:
        """The second part."""
        return INT32(self._read()[1])

    @property
    def z(self) -> Any:
        """The third part."""
        return INT32(self._read()[2])

    def __repr__(self) -> str:
        x, y, z = self._read()
        return f"({x}, {y}, {z})"


NAMES["weft.cuda.threadIdx"] = Extent("threadIdx", lambda: threads.current().index)
NAMES["weft.cuda.blockIdx"] = Extent("blockIdx", lambda: threads.current().block.index)
NAMES["weft.cuda.blockDim"] = Extent("blockDim", lambda: threads.current().launch.block_dim)
NAMES["weft.cuda.gridDim"] = Extent("gridDim", lambda: threads.current().launch.grid_dim)


def _axes(ndim: int, read: Callable[[int], int]) -> Any:
    if int(ndim) not in (1, 2, 3):
        msg = f"cuda.grid and cuda.gridsize take 1, 2 or 3, not {ndim}"
        raise ValueError(msg)
    values = tuple(INT64(read(axis)) for axis in range(int(ndim)))
    return values[0] if len(values) == 1 else values


@_name("grid")
def grid(ndim: int) -> Any:
    """Return the thread's index in the grid."""
    thread = threads.current()
    size, block, index = thread.launch.block_dim, thread.block.index, thread.index
    return _axes(ndim, lambda axis: index[axis] + size[axis] * block[axis])


@_name("gridsize")
def gridsize(ndim: int) -> Any:
    """Give the threads of the grid."""
    launch = threads.current().launch
    return _axes(ndim, lambda axis: launch.block_dim[axis] * launch.grid_dim[axis])


# ---- waiting -------------------------------------------------------------------------------------------------------


def meet(collective: Collective) -> Any:
    """Wait for others; a thread that is alone has met them."""
    thread = threads.current()
    scheduler = thread.launch.scheduler
    if scheduler is None:
        msg = f"{collective.name}() was called indirectly: call it by its name in the kernel"
        raise RuntimeError(msg)
    return scheduler.meet(thread, collective)


def _barrier(name: str, combine: Any) -> None:
    def barrier(predicate: Any = None) -> Any:
        return meet(Collective("block", name, site(), combine, predicate))

    NAMES[f"weft.cuda.{name}"] = barrier


_barrier("syncthreads", nothing)
_barrier("syncthreads_count", lambda _rank, brought: INT32(sum(bool(p) for p in brought.values())))
_barrier("syncthreads_and", lambda _rank, brought: INT32(all(bool(p) for p in brought.values())))
_barrier("syncthreads_or", lambda _rank, brought: INT32(any(bool(p) for p in brought.values())))


@_name("syncwarp")
def syncwarp(mask: Any = ALL) -> None:
    """Wait for the lanes of the mask."""
    meet(Collective("warp", "syncwarp", site(), nothing, None, int(mask) & ALL))


@_name("activemask")
def activemask() -> Any:
    """Give the lanes that are here."""
    bits = Collective("warp", "activemask", site(), lambda _lane, here: UINT32(sum(1 << other for other in here)))
    return meet(bits)


def _warp(name: str) -> None:
    shuffles = name.startswith("shfl")

    def shuffle(mask: Any, value: Any, by: Any, width: Any = WARP) -> Any:
        brought = (value, int(by) % WARP, int(width))
        return meet(Collective("warp", name, site(), COMBINE[name], brought, int(mask) & ALL))

    def collective(mask: Any, value: Any = True) -> Any:
        return meet(Collective("warp", name, site(), COMBINE[name], value, int(mask) & ALL))

    NAMES[f"weft.cuda.{name}"] = _by_keywords(shuffle) if shuffles else _by_keywords(collective)


def _by_keywords(function: Any) -> Any:
    # The parameter names in Numba differ between functions.
    return lambda *args, **kwargs: function(*args, *kwargs.values())


for _each in COMBINE:
    _warp(_each)
for _each, _bits in {
    "lt": lambda lane: (1 << lane) - 1,
    "le": lambda lane: (2 << lane) - 1,
    "eq": lambda lane: 1 << lane,
    "ge": lambda lane: ALL & ~((1 << lane) - 1),
    "gt": lambda lane: ALL & ~((2 << lane) - 1),
}.items():
    NAMES[f"weft.cuda.lanemask_{_each}"] = lambda _bits=_bits: UINT32(_bits(threads.current().lane))


def _pause() -> None:
    thread = threads.current()
    if thread.launch.scheduler is not None:
        thread.launch.scheduler.pause(thread)


for _each in ("threadfence", "threadfence_block", "threadfence_system"):
    NAMES[f"weft.cuda.{_each}"] = _pause
NAMES["weft.cuda.nanosleep"] = lambda _ns: _pause()


# ---- memory --------------------------------------------------------------------------------------------------------


def base_of(array: Any) -> Any:
    """Give the array that owns the memory of a view."""
    base = np.asarray(array.numbers if isinstance(array, Vectors) else array)
    while isinstance(base.base, np.ndarray):
        base = base.base
    return base


def _made(shape: Any, dtype: Any) -> Any:
    extents = tuple(int(extent) for extent in shape) if isinstance(shape, (tuple, list)) else (int(shape),)
    lanes = vector_of(dtype)
    if lanes is not None:
        number, count = lanes
        return Vectors(_made((*extents, count), SCALARS[number]), VectorType(number, count))
    kind = dtype_of(dtype)
    size = int(np.prod(extents, dtype=np.int64)) * kind.itemsize
    memory = np.full(size, _GARBAGE & 1 if kind.kind == "b" else _GARBAGE, np.uint8)
    return array(memory.view(kind).reshape(extents))


class SharedNames:
    """`cuda.shared`."""

    @staticmethod
    def array(shape: Any = None, dtype: Any = None, alignment: int | None = None, swizzle: int | None = None) -> Any:
        """Return the block's array for this call in the kernel; a swizzle changes addresses only."""
        del alignment, swizzle
        block = threads.current().block
        if shape in (0, (0,)):
            kind = dtype_of(dtype)
            whole = block.dynamic.size // kind.itemsize * kind.itemsize
            return array(block.dynamic[:whole].view(kind))
        key = site()[:2]
        if key not in block.arrays:
            block.arrays[key] = _made(shape, dtype)
        return block.arrays[key]

    @staticmethod
    def swizzled(array: Any, width: int) -> Any:
        """Return the array: a swizzle changes addresses only."""
        del width
        return array


class LocalNames:
    """`cuda.local`."""

    @staticmethod
    def array(shape: Any = None, dtype: Any = None, alignment: int | None = None) -> Any:
        """Give an array of the thread's own."""
        del alignment
        made = _made(shape, dtype)
        threads.current().block.own.append(base_of(made))
        return made


class ConstNames:
    """`cuda.const`."""

    @staticmethod
    def array_like(given: Any) -> Any:
        """Give an array of the same elements, which cannot be written."""
        made = np.array(np.asarray(given), order="K")
        made.flags.writeable = False
        threads.current().block.own.append(made)
        return array(made)


NAMES["weft.cuda.shared"], NAMES["weft.cuda.local"], NAMES["weft.cuda.const"] = SharedNames, LocalNames, ConstNames
for _each, _names in (("shared.array", SharedNames), ("local.array", LocalNames)):
    NAMES[f"weft.cuda.{_each}"] = _names.array
NAMES["weft.cuda.shared.swizzled"] = SharedNames.swizzled
NAMES["weft.cuda.const.array_like"] = ConstNames.array_like


@_name("stop_gradient")
def stop_gradient(value: Any) -> Any:
    """Give the value."""
    return value


@_name("literal_unroll")
def literal_unroll(items: Any) -> Any:
    """Give the items."""
    return items


for _each in ("ldca", "ldcg", "ldcs", "ldlu", "ldcv"):
    NAMES[f"weft.cuda.{_each}"] = lambda source, index: source[index]


def _store(target: Any, index: Any, value: Any) -> None:
    target[index] = value


for _each in ("stcg", "stcs", "stwb", "stwt"):
    NAMES[f"weft.cuda.{_each}"] = _store
NAMES["weft.cuda.clock"] = lambda: UINT32(time.perf_counter_ns())
NAMES["weft.cuda.clock64"] = NAMES["weft.cuda.globaltimer"] = lambda: INT64(time.perf_counter_ns())


# ---- atomic operations ---------------------------------------------------------------------------------------------


def _nan(value: Any) -> bool:
    return bool(value != value)


def _bytes(value: Any) -> bytes:
    return np.asarray(plain(value)).tobytes()


# The new value of an element, from the old one and the operands, all of the element's type.
_STEPS: dict[str, Callable[..., Any]] = {
    "add": lambda old, item: old + item,
    "sub": lambda old, item: old - item,
    "and_": lambda old, item: old & item,
    "or_": lambda old, item: old | item,
    "xor": lambda old, item: old ^ item,
    "max": lambda old, item: item if old < item else old,
    "min": lambda old, item: item if old > item else old,
    "nanmax": lambda old, item: item if not _nan(item) and not old >= item else old,
    "nanmin": lambda old, item: item if not _nan(item) and not old <= item else old,
    "inc": lambda old, item: 0 if old >= item else old + 1,
    "dec": lambda old, item: item if old == 0 or old > item else old - 1,
    "exch": lambda _old, item: item,
    "cas": lambda old, compare, item: item if _bytes(old) == _bytes(compare) else old,
}
# A thread that executes this number of consecutive atomic operations without effect waits for another thread forever.
_IDLE = 1_000_000


def _index(index: Any) -> Any:
    parts = index if isinstance(index, tuple) else (index,)
    return tuple(int(part) for part in parts)


def _step(name: str, target: Any, index: Any, items: tuple[Any, ...]) -> Any:
    thread = threads.current()
    # The target may be a pointer.
    place = int(index) if isinstance(target, Pointer) else _index(index)
    numbers = np.ndarray.__getitem__(target, place) if isinstance(target, Array) else target[place]
    old = shown(numbers)
    kind = SCALARS[target.dtype.name if target.dtype.kind != "b" else "boolean"]
    with np.errstate(all="ignore"):
        new = _STEPS[name](old, *(kind(item) for item in items))
        target[place] = new
    changed = _bytes(kind(new)) != _bytes(old)
    thread.idle = 0 if changed else thread.idle + 1
    if thread.launch.scheduler is not None:
        # A thread whose operation has no effect may be waiting.
        if not changed:
            thread.launch.scheduler.pause(thread)
    elif thread.idle > _IDLE:
        msg = (
            f"{thread.describe()} has executed {_IDLE} atomic operations without effect: if it waits for another "
            "thread, call `cuda.threadfence()` or `cuda.nanosleep(0)` in the loop, so that weft runs the other threads"
        )
        raise RuntimeError(msg)
    return old


def _atomic(name: str) -> Callable[..., Any]:
    def step(target: Any, index: Any, *items: Any, order: str = "relaxed", scope: str = "device") -> Any:
        del order, scope
        return _step(name, target, index, items)

    return step


def _compare_and_swap(target: Any, old: Any, value: Any, order: str = "relaxed", scope: str = "device") -> Any:
    del order, scope
    return _step("cas", target, (0,) * target.ndim, (old, value))


class AtomicNames:
    """`cuda.atomic`."""


for _each in _STEPS:
    setattr(AtomicNames, _each, staticmethod(_atomic(_each)))
    NAMES[f"weft.cuda.atomic.{_each}"] = getattr(AtomicNames, _each)
AtomicNames.compare_and_swap = staticmethod(_compare_and_swap)  # type: ignore[attr-defined]
NAMES["weft.cuda.atomic.compare_and_swap"] = _compare_and_swap
NAMES["weft.cuda.atomic"] = AtomicNames


@_name("selp")
def selp(condition: Any, a: Any, b: Any) -> Any:
    """Choose."""
    return a if condition else b


def _no_ptx(*_args: Any, **_kwargs: Any) -> Any:
    msg = "PTX needs a GPU: decorate a Python function with `cuda.intrinsic`, which runs instead on other devices"
    raise RuntimeError(msg)


NAMES["weft.cuda.inline_ptx"] = _no_ptx


def _pointed(order: str) -> Callable[..., Any]:
    def view(pointer: Any, shape: Any, dtype: Any = None) -> Any:
        extents = tuple(int(n) for n in shape) if isinstance(shape, tuple) else (int(shape),)
        kind = dtype_of(dtype) if dtype is not None else pointer.dtype
        address = pointer.address if isinstance(pointer, Pointer) else int(pointer)
        memory: Any = (ctypes.c_char * (kind.itemsize * int(np.prod(extents, dtype=np.int64)))).from_address(address)
        return array(np.frombuffer(memory, kind).reshape(extents, order="C" if order == "C" else "F"))

    return view


NAMES["weft.carray"], NAMES["weft.farray"] = _pointed("C"), _pointed("F")
VECTORS = {str(kind): VectorType(*lanes) for kind in vars(__import__("weft._vectors", fromlist=["x"])).values()
           if isinstance(kind, _weft.Type) and (lanes := vector_of(kind)) is not None}  # fmt: skip
