"""The operations that rewritten kernels call: the `_o` of `rewrite.py`."""

from __future__ import annotations

import builtins
import types

import numpy as np

from oracle import numeric
from oracle.bfloat16 import Brains, from_bits, to_bits
from oracle.collectives import Collective
from oracle.emulate import CUDA, CURRENT, BarrierCall, Dim3, Left, Register, Sited, WarpCall, substitute
from oracle.numeric import known_power
from oracle.numeric import quick_binary as binary
from oracle.numeric import quick_compare as compare
from oracle.numeric import quick_unary as unary
from oracle.rewrite import Function, as_function
from oracle.warps import meeting

__all__ = [
    "attribute",
    "binary",
    "call",
    "call_waiting",
    "check",
    "compare",
    "iterate",
    "known_power",
    "load",
    "read",
    "slice",
    "store",
    "unary",
]


def read(item: object) -> object:
    """A captured name."""
    return item.read() if isinstance(item, Register) else item


def attribute(owner: object, name: str) -> object:
    """`owner.name`."""
    if owner is CUDA or owner.__class__ is Dim3:
        return getattr(owner, name)
    if isinstance(owner, np.ndarray):
        item = getattr(owner, name)
        return item if name in ("T", "real", "imag", "dtype") else numeric.value(item)
    if isinstance(owner, types.ModuleType):
        return read(as_function(substitute(getattr(owner, name))))
    return as_function(substitute(getattr(owner, name)))


def slice(lower: object, upper: object, step: object) -> builtins.slice:
    """`lower:upper:step`."""
    return builtins.slice(lower, upper, step)


def _checked(array: object, index: object) -> object:
    if isinstance(index, np.integer) and index.__class__ is not np.uint64:
        return int(index) if array.__class__ is tuple else index
    parts = index if isinstance(index, tuple) else (index,)
    for part in parts:
        if isinstance(part, (np.floating, np.bool_)):
            raise TypeError(f"{part!r} cannot be an index")
        if isinstance(part, np.uint64) and part >> np.uint64(63):
            raise IndexError(f"no array has an element {part}")  # NumPy raises an OverflowError
    return int(index) if array.__class__ is tuple and isinstance(index, np.uint64) else index


def load(array: object, index: object) -> object:
    """`array[index]`."""
    item = array[_checked(array, index)]
    if item.__class__ is int:  # an element of `bytes`
        return np.int64(item)
    return from_bits(item) if item.__class__ is np.uint16 and array.__class__ is Brains else item


def store(array: np.ndarray, index: object, item: object) -> None:
    """`array[index] = item`, converted as weft converts."""
    dtype = array.dtype
    if dtype.kind in "US":
        array[_checked(array, index)] = item
    elif dtype.names:
        store_field(array, index, item)
    elif array.__class__ is Brains:
        one = isinstance(item, Brains)
        array[_checked(array, index)] = item if one else to_bits(item)
    else:
        array[_checked(array, index)] = numeric.cast(item, dtype.type)


def store_field(array: np.ndarray | np.void, index: object, item: object) -> None:
    """`record["x"] = item`, or a store to a whole record: from another record or from the items of a tuple."""
    if isinstance(index, str):
        kind = array.dtype[index].type
        array[index] = numeric.cast(item, kind)
    elif isinstance(item, tuple):
        kinds = [array.dtype[name].type for name in array.dtype.names]
        array[_checked(array, index)] = tuple(numeric.cast(*pair) for pair in zip(item, kinds, strict=True))
    else:
        array[_checked(array, index)] = item


def check(condition: object) -> None:
    """`assert condition`: ends the thread if the condition is false, also inside a device function."""
    if not condition:
        raise Left


def iterate(item: object) -> object:
    """The iterable of a `for`."""
    return map(np.int64, item) if isinstance(item, bytes) else item


def call(site: int, function: object, *args: object, **kwargs: object) -> object:
    """`function(*args)` at a numbered source position."""
    if isinstance(function, type) and issubclass(function, np.generic):
        return numeric.cast(*args, function)
    if isinstance(function, Function):
        return function.call(*args, **kwargs)
    if isinstance(function, Sited):
        return function.function(site, *args, **kwargs)
    if isinstance(function, types.BuiltinMethodType) and isinstance(function.__self__, np.ndarray):
        return function(*args)
    return numeric.value(substitute(function)(*args, **kwargs))


def call_waiting(site: int, function: object, *args: object, **kwargs: object):
    """A call of a barrier, or of a function that reaches one."""
    if isinstance(function, WarpCall):
        met = meeting(function.name, site, args, kwargs)
        yield met
        return met.result
    if isinstance(function, Collective):
        return (yield from function(CURRENT.thread, site, args, kwargs))
    if isinstance(function, BarrierCall):
        if function.reduce is None:
            yield None
            return None
        values = CURRENT.thread.block.values
        values.append(bool(args[0]))
        yield None
        return np.int32(function.reduce(values))
    return (yield from function.call(*args, **kwargs))
