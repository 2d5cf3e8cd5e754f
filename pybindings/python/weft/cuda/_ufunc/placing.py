"""Operands of ufuncs: where they are, what shape they make together, and how few axes that shape needs.

Python's numbers have no dtype of their own; NumPy's have, and count as arrays without axes.
"""

from __future__ import annotations

import math

import numpy as np

from weft import _weft
from weft.cuda._memory.device_array import DeviceNDArray, array_at
from weft.cuda._memory.interchange import array_of, exports
from weft.cuda._memory.making import as_cuda_array, to_device

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    Casting = Literal["no", "equiv", "safe", "same_kind", "unsafe"]

# The dtypes of Python numbers if no other operand determines the type.
WEAK: dict[type, np.dtype[Any]] = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}

# The kinds of dtypes to which a number of each Python class converts safely.
_KINDS: dict[type, str] = {bool: "biufc", int: "iufcm", float: "fc", complex: "c"}

# NumPy's casting rules, from the strictest to the one that allows everything.
CASTINGS: tuple[Casting, ...] = ("no", "equiv", "safe", "same_kind", "unsafe")

# The largest number of axes in a kernel.
MOST_AXES = 7


def read(value: Any) -> Any:
    """Give an argument as a number of Python's or NumPy's, a device array, or a NumPy array."""
    if isinstance(value, DeviceNDArray) or type(value) in WEAK or isinstance(value, np.generic):
        return value
    if hasattr(value, "__cuda_array_interface__"):
        return as_cuda_array(value)
    return array_of(value) if exports(value) else np.asarray(value)


def is_foreign(value: Any) -> bool:
    """Whether a value is an array of another library's by what it has."""
    return hasattr(value, "__cuda_array_interface__") or exports(value)


def is_number(operand: Any) -> bool:
    """Whether an operand is no array."""
    return not isinstance(operand, (DeviceNDArray, np.ndarray))


def dtype_of(operand: Any) -> np.dtype[Any]:
    """Give the dtype of an operand."""
    dtype: np.dtype[Any] | None = WEAK.get(type(operand))
    return operand.dtype if dtype is None else dtype


def fits(operand: Any, dtype: np.dtype[Any], casting: Casting = "safe") -> bool:
    """Whether NumPy's ufuncs take an operand as a dtype."""
    kinds = _KINDS.get(type(operand))
    if kinds is not None:
        return dtype.kind in kinds or casting == "unsafe"
    return np.can_cast(operand.dtype, dtype, casting)


def checked(casting: Any) -> Casting:
    """Give a rule of casting, if it is one."""
    if casting not in CASTINGS:
        msg = f"casting must be one of {', '.join(map(repr, CASTINGS))}, not {casting!r}"
        raise ValueError(msg)
    found: Casting = casting
    return found


def mask_of(where: Any, name: str) -> Any:
    """Give the mask that `where=` is, or None where all elements count."""
    if where is True:
        return None
    mask = read(where)
    if dtype_of(mask) != np.bool_:
        msg = f"ufunc {name}: `where` must be an array of bool, not of {dtype_of(mask)}"
        raise TypeError(msg)
    return mask


def shown(operand: Any) -> str:
    """Give an operand's type for a message."""
    if type(operand) in WEAK:
        return type(operand).__name__
    name = str(operand.dtype)
    return name if is_number(operand) else f"{name}[{', '.join(':' * operand.ndim)}]"


def broadcast(shapes: Sequence[tuple[int, ...]], of: str) -> tuple[int, ...]:
    """Give the shape that shapes make together; a message names the argument that does not fit."""
    ndim = max(map(len, shapes), default=0)
    shape = [1] * ndim
    for number, given in enumerate(shapes):
        for axis, extent in enumerate(given, ndim - len(given)):
            if extent == shape[axis] or extent == 1:
                continue
            if shape[axis] != 1:
                others = ", ".join(map(str, shapes[:number]))
                msg = f"{of}: argument {number + 1} with shape {given} does not broadcast with {others} before it"
                raise ValueError(msg)
            shape[axis] = extent
    return tuple(shape)


def on_device(operand: Any, dtype: np.dtype[Any] | None, stream: Any) -> Any:
    """Bring an operand to the device; a number becomes one of the dtype.

    On the CPU, an array of NumPy's is used where it is.
    """
    if isinstance(operand, DeviceNDArray):
        return operand
    if is_number(operand):
        return np.array(operand, dtype)[()]
    if not operand.dtype.isnative or not operand.flags.aligned:
        operand = operand.astype(operand.dtype.newbyteorder("="))
    if _weft.device_kind() == "cpu":
        return in_place(operand)
    return to_device(operand, stream)


def in_place(host: np.ndarray[Any, Any]) -> DeviceNDArray:
    """Make a device array of the memory of a NumPy array; on the CPU only."""
    address = host.__array_interface__["data"][0]
    return array_at(host, address, host.shape, host.strides, host.dtype, _weft.current_device_id())


def order_of(operands: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """Give the order of a new result: Fortran's if that is the order of all arrays of its shape."""
    alike = [operand for operand in operands if not is_number(operand) and operand.shape == shape]
    return "F" if alike and all(_is_fortran(operand) for operand in alike) else "C"


def _is_fortran(array: Any) -> bool:
    if isinstance(array, DeviceNDArray):
        return array.is_f_contiguous() and not array.is_c_contiguous()
    return bool(array.flags.fnc)


def clash(array: Any, out: DeviceNDArray) -> bool:
    """Whether writing one array, element by element, may change elements of the other that are still to be read."""
    if is_number(array) or array.device != out.device or not array.size or not out.size:
        return False
    if array.address == out.address and array.shape == out.shape and array.strides == out.strides:
        return bool(array.itemsize != out.itemsize)
    (low, high), (first, last) = array.span, out.span
    return bool(array.address + low < out.address + last and out.address + first < array.address + high)


def strides_of(array: Any, shape: tuple[int, ...]) -> list[int]:
    """Give the strides of an array that is broadcast to a shape."""
    missing = len(shape) - array.ndim
    own = zip(array.shape, array.strides, strict=True)
    return [0] * missing + [0 if extent == 1 else stride for extent, stride in own]


def merged(shape: Sequence[int], strides: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Give extents and strides of the same elements with as few axes as can be, those with long strides first.

    The last strides are those of what is written.
    """
    axes = [axis for axis, extent in enumerate(shape) if extent != 1]
    axes.sort(key=lambda axis: -abs(strides[-1][axis]))
    return joined([shape[axis] for axis in axes], *([each[axis] for axis in axes] for each in strides))


def joined(shape: Sequence[int], *strides: Sequence[int]) -> tuple[list[int], list[list[int]]]:
    """Give extents and strides of the same elements in the same order with as few axes as can be."""
    extents: list[int] = []
    kept: list[list[int]] = [[] for _ in strides]
    for axis, extent in enumerate(shape):
        if extent == 1:
            continue
        if extents and all(own[-1] == given[axis] * extent for own, given in zip(kept, strides, strict=True)):
            extents[-1] *= extent
            for own, given in zip(kept, strides, strict=True):
                own[-1] = given[axis]
            continue
        extents.append(extent)
        for own, given in zip(kept, strides, strict=True):
            own.append(given[axis])
    return extents, kept


def reduced(
    array: DeviceNDArray, extents: Sequence[int], strides: Sequence[int]
) -> tuple[DeviceNDArray, tuple[int, ...]]:
    """Give an array with those of the axes that it is not broadcast along, and which these are."""
    axes = tuple(axis for axis, step in enumerate(strides) if step or extents[axis] == 1)
    if not axes:
        return view(array, [1], [array.itemsize]), ()
    return view(array, [extents[axis] for axis in axes], [strides[axis] for axis in axes]), axes


def view(array: DeviceNDArray, shape: Sequence[int], strides: Sequence[int]) -> DeviceNDArray:
    """Give the same memory with other extents and strides."""
    return array_at(array.owner, array.address, shape, strides, array.dtype, array.device, array.readonly)


def outer_divisors(extents: Sequence[int]) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Give how many indices there are, and the operands with which `kernels.outer_index` splits them."""
    count = math.prod(extents)
    number = np.uint32 if count < 1 << 32 else np.uint64
    steps = [number(math.prod(extents[axis + 1 :])) for axis in range(len(extents))]
    return number(count), tuple(steps), tuple(number(extent) for extent in extents[1:])
