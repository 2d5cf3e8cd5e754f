"""Where the results of ufuncs go: arrays that a call is given, or makes."""

from __future__ import annotations

import numpy as np

from weft import _weft
from weft.cuda._memory.device_array import DeviceNDArray
from weft.cuda._memory.making import device_array
from weft.cuda._ufunc import placing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Self


class Results:
    """The arrays that results go to, on the device, and what a call gives of them.

    On the CPU those in host memory are used where they are; on a GPU they are copied back at the end, and there before
    if some elements keep their values.
    """

    def __init__(
        self,
        outs: Sequence[Any],
        dtypes: Sequence[np.dtype[Any]],
        shapes: Sequence[tuple[int, ...]],
        order: Any,
        stays: bool,
        stream: Any,
        keeps: bool = False,
    ) -> None:
        self._stream = stream
        self._scalar = not stays and all(out is None for out in outs)
        self._found: list[Any] = []
        self.arrays: list[DeviceNDArray] = []
        here = _weft.device_kind() == "cpu"
        for out, dtype, extents in zip(outs, dtypes, shapes, strict=True):
            found = out
            if found is None and stays:
                found = device_array(extents, dtype, order=order, stream=stream)
            elif found is None:
                found = np.empty(extents, dtype, order)
            self._found.append(found)
            if isinstance(found, DeviceNDArray):
                self.arrays.append(found)
            elif here and found.flags.aligned and found.dtype.isnative:
                self.arrays.append(placing.in_place(found))
            else:
                native = found.dtype.newbyteorder("=")
                like: Any = "F" if found.flags.fnc else "C"
                self.arrays.append(device_array(found.shape, native, order=like, stream=stream))
                if keeps:
                    self.arrays[-1].copy_to_device(np.asarray(found, native, like), stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            return
        for found, array in zip(self._found, self.arrays, strict=True):
            if isinstance(found, DeviceNDArray) or array.owner is found:
                continue
            if found.dtype == array.dtype:
                array.copy_to_host(found, self._stream)
            else:
                found[...] = array.copy_to_host(stream=self._stream)

    def given(self) -> Any:
        """Give the result, or a tuple of several."""
        found = [array[()] if self._scalar and not array.ndim else array for array in self._found]
        return found[0] if len(found) == 1 else tuple(found)


def outputs(name: str, args: Sequence[Any], nin: int, nout: int, out: Any) -> list[Any]:
    """Give the arrays for results among a call's arguments, or None for those that there are not."""
    if len(args) > nin:
        if out is not None:
            msg = "cannot specify argument 'out' as both positional and keyword"
            raise ValueError(msg)
        if len(args) > nin + nout:
            msg = f"ufunc {name} takes {arguments(nin)} and arrays for {nout} results, not {len(args)}"
            raise TypeError(msg)
        out = args[nin:]
    given = list(out) if isinstance(out, tuple) else [out]
    if len(given) > nout:
        msg = f"ufunc {name} gives {nout} results, but there are {len(given)} arrays for them"
        raise ValueError(msg)
    given += [None] * (nout - len(given))
    return [array if array is None else writable(name, array) for array in given]


def writable(name: str, array: Any) -> Any:
    found = placing.read(array) if placing.is_foreign(array) else array
    if not isinstance(found, (DeviceNDArray, np.ndarray)):
        msg = f"ufunc {name}: `out` must be arrays, not {type(array).__name__}"
        raise TypeError(msg)
    if found.readonly if isinstance(found, DeviceNDArray) else not found.flags.writeable:
        msg = f"ufunc {name}: the array for a result is read-only"
        raise ValueError(msg)
    return found


def arguments(number: int) -> str:
    return f"{number} argument{'' if number == 1 else 's'}"
