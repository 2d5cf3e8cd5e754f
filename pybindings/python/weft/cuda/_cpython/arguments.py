"""The arguments of a launch as kernels have them, for kernels that CPython runs, and conversions to declared types."""

from __future__ import annotations

import dataclasses
import enum

import numpy as np

from weft import _weft
from weft.cuda._cpython import threads
from weft.cuda._cpython.arrays import Pointer, Record, array, device_array, dtype_of
from weft.cuda._cpython.barriers import map_argument
from weft.cuda._cpython.scalars import SCALARS, number, plain
from weft.cuda._memory.tensor_maps import TensorMap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def argument(value: Any) -> Any:
    """Give an argument of a launch as a kernel has it; arrays are memory that it shares."""
    if isinstance(value, _weft.CopyHint):
        value = value.array
    if isinstance(value, _weft.DeviceArrayBase):
        return _device(value)
    if isinstance(value, np.ndarray):
        return array(value)
    if isinstance(value, np.void):
        return Record(value)
    if isinstance(value, (str, bytes, enum.Enum, np.dtype)) or value is None:
        return value
    if isinstance(value, tuple):
        items = [argument(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, TensorMap):
        return map_argument(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        made = object.__new__(type(value))
        for field in dataclasses.fields(value):
            object.__setattr__(made, field.name, argument(getattr(value, field.name)))
        return made
    if isinstance(value, (int, float, complex, np.generic)):
        return number(value)
    if hasattr(value, "__cuda_array_interface__"):
        from weft.cuda._memory.making import as_cuda_array

        return _device(as_cuda_array(value))
    if hasattr(value, "__dlpack__"):
        return array(np.from_dlpack(value))
    if _weft.typeof_value(value).kind == "array":
        # An object with a buffer, or NumPy's interface.
        return array(np.asarray(value if hasattr(value, "__array_interface__") else memoryview(value)))
    from weft.cuda._cpython.scope import meaning

    return meaning(value)


def _device(value: Any) -> Any:
    made = device_array(value)
    return Record(np.asarray(made).reshape(-1)[0]) if str(value.weft_type).startswith("Record") else made


def converted(value: Any, kind: _weft.Type) -> Any:
    """Convert a value to a declared type."""
    text = str(kind)
    if text in SCALARS:
        return SCALARS[text](value)
    if value is not None and kind.kind == "optional":
        return converted(value, kind.type)
    if kind.kind == "pointer" and not isinstance(value, Pointer):
        if threads.is_running():
            msg = f"a pointer ({text}) is declared, and {value!r} is none: only a launch makes one of an address"
            raise TypeError(msg)
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            msg = f"a pointer ({text}) is declared: pass an address, an int, not {type(value).__name__}"
            raise TypeError(msg)
        return Pointer(int(value), dtype_of(kind.dtype)) if text.startswith("CPointer") else SCALARS["int64"](value)
    if isinstance(value, tuple) and kind.kind in ("tuple", "unituple") and len(value) == len(kind):
        return tuple(converted(item, each) for item, each in zip(value, kind, strict=True))
    return value


def choose(signatures: list[_weft.Signature], args: tuple[Any, ...]) -> _weft.Signature:
    """Choose the declared signature of a call: the one with its types, or else the first that loses least."""

    def loss(signature: _weft.Signature) -> tuple[int, int]:
        lost = other = 0
        for arg, kind in zip(args, signature.args, strict=True):
            name, text = type(plain(arg)).__name__, str(kind)
            if text not in SCALARS:
                lost += isinstance(arg, (int, float, np.generic))
                continue
            is_float = isinstance(arg, (float, np.floating))
            lost += is_float and "float" not in text and "complex" not in text
            other += name != text
        return lost, other

    fitting = [signature for signature in signatures if len(signature.args) == len(args)]
    if not fitting:
        msg = f"it takes {len(signatures[0].args)} arguments, not {len(args)}"
        raise TypeError(msg)
    return min(fitting, key=loss)
