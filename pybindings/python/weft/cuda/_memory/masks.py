"""Masks on the device: the numbers of the elements that are true.

Each thread counts those of a piece; sums of the counts, by pieces again, say where its numbers go. How many there are
comes to the host, which needs the extent of what is made of them: so the call waits for the device.
"""

from __future__ import annotations

import numpy as np

from weft.cuda._memory import index_kernels
from weft.cuda._memory.making import device_array, to_device
from weft.cuda._reduce import on_cpu
from weft.cuda._ufunc.elements import BLOCK, configured, converted, flat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from weft.cuda._memory.device_array import DeviceNDArray

# Elements per thread: on the CPU, and on a GPU.
_LONG = 4096
_SHORT = 32


def true_indices_of(mask: DeviceNDArray, stream: Any) -> DeviceNDArray:
    """Give the numbers of the elements of a mask that are true, in C order, as int64; the call waits for the count."""
    count = mask.size
    if not count:
        return device_array(0, np.int64, stream=stream)
    line = flat(mask if mask.is_c_contiguous() else converted(mask, mask.dtype, stream, "C"), count)
    starts, piece = _starts(line, count, stream)
    total = int(starts.getitem(starts.size - 1, stream=stream))
    out = device_array(total, np.int64, stream=stream)
    if total:
        _launch(index_kernels.true_indices(), starts.size - 1, stream)(count, piece, line, starts, out)
    return out


def _starts(numbers: DeviceNDArray, count: int, stream: Any) -> tuple[DeviceNDArray, int]:
    """Return the exclusive prefix sums of an array's pieces, then the total; and the length of a piece."""
    piece = _LONG if on_cpu() else _SHORT
    pieces = -(-count // piece)
    sums = device_array(pieces + 1, np.int64, stream=stream)
    _launch(index_kernels.piece_sums(), pieces, stream)(count, piece, numbers, sums[:pieces])
    if pieces == 1:
        starts = to_device(np.zeros(1, np.int64), stream)
    else:
        starts = _starts(sums, pieces, stream)[0]
        starts = starts[: starts.size - 1]
    _launch(index_kernels.sums_before(), starts.size, stream)(pieces, piece, sums, starts)
    return sums, piece


def _launch(kernel: Any, threads: int, stream: Any) -> Any:
    block = 1 if on_cpu() else BLOCK
    return configured(kernel, -(-threads // block), block, stream)
