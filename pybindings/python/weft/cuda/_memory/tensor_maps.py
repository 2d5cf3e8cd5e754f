"""Tensor maps: what a kernel needs to copy boxes of a device array to shared memory."""

from __future__ import annotations

import dataclasses

import numpy as np

from weft import _weft
from weft.cuda._memory.device_array import DeviceNDArray
from weft.cuda._memory.making import as_cuda_array, to_device
from weft.cuda._streams import default_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


@dataclasses.dataclass(eq=False, repr=False)
class TensorMap:
    """A tensor map of a device array, made by :func:`tensor_map`: an argument of kernels.

    In a kernel, ``tensor_map[i, j]`` is the box whose first element is ``array[i, j]``, a source of
    ``cuda.copy_async``. The indices do not count from the end; elements outside of the array are zero.
    """

    words: DeviceNDArray

    if TYPE_CHECKING:

        def __getitem__(self, index: Any) -> Any: ...

    def _describe(self, array: DeviceNDArray, box: tuple[int, ...], swizzle: int | None) -> None:
        self.array, self.box, self.swizzle = array, box, swizzle

    def __repr__(self) -> str:
        return f"cuda.tensor_map(<{self.array.dtype} {self.array.shape}>, {self.box}, swizzle={self.swizzle})"


# A class contains what is known of its maps at compile time in its name.
_CLASSES: dict[str, type[TensorMap]] = {}


def tensor_map(array: Any, box: int | Sequence[int], swizzle: int | None = None) -> TensorMap:
    """Make a tensor map of a device array, for copies of boxes to shared memory (TMA).

    Parameters
    ----------
    array
        A device array, or an object with ``__cuda_array_interface__``, of 1 to 5 dimensions and real numbers. The
        last dimension is contiguous; the address and the other strides are multiples of 16 bytes. The map refers to
        its memory and keeps it alive: keep the map until kernels in streams other than the default stream have ended.
    box
        The extents of a box, one for each dimension, from 1 to 256 elements. A row of a box is a multiple of 16 bytes.
    swizzle
        The width in bytes of the swizzle of the shared array that receives the boxes: 32, 64 or 128, which is the size
        of a row. ``None`` for an array without a swizzle.

    Returns
    -------
    TensorMap
        An argument of kernels.

    Raises
    ------
    ValueError
        There is no map of such an array, or of such a box. The message gives the reason.
    CudaSupportError
        The GPU's compute capability is lower than 9.0.

    Examples
    --------
    >>> import numpy as np
    >>> from weft import cuda
    >>> m = cuda.tensor_map(cuda.to_device(np.ones((8, 32), np.float32)), (4, 16))
    >>> @cuda.jit
    ... def corner(m, out):
    ...     tile = cuda.shared.array((4, 16), np.float32)
    ...     bar = cuda.barrier(1)
    ...     if cuda.threadIdx.x == 0:
    ...         bar.expect(256)
    ...         cuda.copy_async(tile, m[-2, 24], bar)
    ...     bar.wait(0)
    ...     out[0] = tile[1, 0]
    ...     out[1] = tile[2, 7]
    ...     out[2] = tile[2, 8]
    >>> out = np.empty(3)
    >>> corner[1, 32](m, out)
    >>> out
    array([0., 1., 0.])

    """
    given = array if isinstance(array, DeviceNDArray) else as_cuda_array(array)
    if given.device != (current := _weft.current_device_id()):
        msg = f"the array is on device {given.device}, and device {current} is current: select the array's device"
        raise ValueError(msg)
    sizes: tuple[Any, ...] = (box,) if isinstance(box, (int, np.integer)) else tuple(box)
    for size in sizes:
        if not isinstance(size, (int, np.integer)) or not 0 < size <= 256:
            msg = f"an extent of a box is an integer from 1 to 256, not {size!r}"
            raise ValueError(msg)
    name, words = _weft.tensor_map(given, [int(size) for size in sizes], 0 if swizzle is None else swizzle)
    made = _class_of(name)(_on_device(given.device, bytes(words)))
    made._describe(given, tuple(int(size) for size in sizes), swizzle)
    return made


# The latest maps in device memory, by the device and their bytes: those of one array are equal.
_WORDS: dict[tuple[int, bytes], DeviceNDArray] = {}
_MOST_WORDS = 64


def _on_device(device: int, words: bytes) -> DeviceNDArray:
    """Give the bytes of a map in the memory of the current device."""
    known = _WORDS.get((device, words))
    if known is None:
        known = to_device(np.frombuffer(words, np.uint8))
        # Kernels in any stream may use the map.
        default_stream().synchronize()
        while len(_WORDS) >= _MOST_WORDS:
            _WORDS.pop(next(iter(_WORDS)), None)
        _WORDS[device, words] = known
    return known


def forget(device: int) -> None:
    """Free the maps of a device, whose memory may be freed."""
    for key in [key for key in _WORDS if key[0] == device]:
        _WORDS.pop(key, None)


def _class_of(name: str) -> type[TensorMap]:
    if name not in _CLASSES:
        _CLASSES[name] = type(name, (TensorMap,), {"__module__": "weft.cuda"})
    return _CLASSES[name]
