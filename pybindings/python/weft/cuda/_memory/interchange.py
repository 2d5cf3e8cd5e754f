"""DLPack: arrays of other libraries as weft's, and weft's for them, without a copy.

The Python side of it is specified by the array API standard:
https://data-apis.org/array-api/latest/API_specification/generated/array_api.array.__dlpack__.html
"""

from __future__ import annotations

from weft import _weft
from weft.cuda._memory.device_array import DeviceNDArray, array_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy as np

    from weft._weft import DLPackTensor

# `DLDeviceType`
CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13

LEGACY_DEFAULT_STREAM = 1


def exports(obj: Any) -> bool:
    """Whether an object has ``__dlpack__`` and is neither NumPy's nor weft's own."""
    import numpy as np

    return not isinstance(obj, (DeviceNDArray, np.ndarray, np.generic)) and hasattr(obj, "__dlpack__")


def from_dlpack(obj: Any, stream: Any = 0) -> DeviceNDArray:
    """Make a device array of another library's array, without a copy.

    Parameters
    ----------
    obj
        An object with ``__dlpack__`` and ``__dlpack_device__``, in memory that kernels reach; or a capsule of DLPack's,
        which is used up. The array keeps the memory.
    stream
        The stream that will use the array: it waits for what the other library has queued. Copies of the array use it,
        too.

    Returns
    -------
    DeviceNDArray
        Over the same memory, with the shape, dtype and strides of the array.

    Raises
    ------
    TypeError
        The elements are none that kernels can have, or ``obj`` exports nothing.
    BufferError
        ``obj`` cannot be exported, as a tensor of PyTorch's cannot whose gradients are recorded.
    LaunchError
        Kernels cannot access the memory: it is host memory and kernels run on a GPU, or the reverse.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> x = cuda.from_dlpack(torch.ones(1000, device="cuda"))  # doctest: +SKIP
    """
    if isinstance(obj, DeviceNDArray):
        return obj
    if not hasattr(obj, "__dlpack__") and type(obj).__name__ != "PyCapsule":
        msg = (
            f"{type(obj).__name__} has no `__dlpack__`: pass an array of another library, or copy with `cuda.to_device`"
        )
        raise TypeError(msg)
    return of_tensor(_weft.read_dlpack(obj, int(stream)), stream)


def array_of(obj: Any, stream: Any = 0) -> DeviceNDArray | np.ndarray[Any, Any]:
    """Make an array of what has ``__dlpack__``, without a copy: NumPy's of memory of the host, else a device array."""
    tensor = _weft.read_dlpack(obj, int(stream))
    return _host_array_of(tensor) if tensor.device[0] == CPU else of_tensor(tensor, stream)


def as_device_array(obj: Any, sync: bool) -> DeviceNDArray:
    """Make a device array of an object with ``__dlpack__``, and without ``sync`` wait for nothing."""
    return of_tensor(_weft.read_dlpack(obj, 0 if sync else None), 0)


def _host_array_of(tensor: DLPackTensor) -> np.ndarray[Any, Any]:
    import numpy as np

    array: np.ndarray[Any, Any] = np.asarray(tensor)
    # NumPy has no bfloat16: it gets integers of the same width.
    dtype = _weft.as_dtype(tensor.dtype)
    return array if array.dtype == dtype else array.view(dtype)


def of_tensor(tensor: DLPackTensor, stream: Any = 0) -> DeviceNDArray:
    """Make a device array that keeps a tensor."""
    from weft.errors import LaunchError

    kind, number = tensor.device
    on_cpu = _weft.device_kind() == "cpu"
    if kind not in ((CPU, CUDA_HOST) if on_cpu else (CUDA, CUDA_HOST, CUDA_MANAGED)):
        if kind == CPU:
            msg = "the array is in host memory, but kernels run on the GPU: copy it with `cuda.to_device`"
        elif kind in (CUDA, CUDA_MANAGED):
            msg = "the array is in GPU memory, but kernels run on the CPU"
        else:
            msg = f"the array is in memory of DLPack's device type {kind}, which kernels cannot access"
        raise LaunchError(msg)
    device = number if kind == CUDA else _weft.current_device_id()
    array = array_at(
        tensor, tensor.address, tensor.shape, tensor.strides, tensor.dtype, device, tensor.readonly
    )  # fmt: skip
    if stream:
        array.stream = stream
    return array


def allocate(shape: Sequence[int], dtype: Any, device: tuple[int, int]) -> DeviceNDArray:
    """Make a device array on one of DLPack's devices."""
    from weft.cuda._devices import gpus
    from weft.cuda._memory.making import device_array

    on_cpu = _weft.device_kind() == "cpu"
    if device[0] != (CPU if on_cpu else CUDA):
        msg = f"weft's arrays are on DLPack's device type {CPU if on_cpu else CUDA} here, not {device[0]}"
        raise BufferError(msg)
    if on_cpu:
        return device_array(shape, dtype)
    with gpus[device[1]]:
        return device_array(shape, dtype)


# --- Export ---


def device_of(array: DeviceNDArray) -> tuple[int, int]:
    """Give what ``__dlpack_device__`` does: on the CPU, memory of the host."""
    return (CPU, 0) if _weft.device_kind() == "cpu" else (CUDA, array.device)


def to_dlpack(
    array: DeviceNDArray,
    stream: Any,
    max_version: tuple[int, int] | None,
    dl_device: tuple[Any, int] | None,
    copy: bool | None,
) -> Any:
    """Give what ``__dlpack__`` does: a capsule."""
    versioned = max_version is not None and max_version[0] >= 1
    device = device_of(array)
    wanted = device if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
    if wanted == device:
        if copy:
            from weft.cuda._memory.making import device_array_like

            clone = device_array_like(array)
            clone.copy_to_device(array)
            array = clone
        _wait_for(array, stream, device)
        return _weft.export_dlpack(array, versioned, bool(copy))
    if wanted[0] != CPU:
        msg = f"the array is on DLPack's device {device}, and cannot be exported to {wanted}"
        raise BufferError(msg)
    if copy is False:
        msg = "the array is in GPU memory: without a copy it cannot be exported to the host"
        raise BufferError(msg)
    if stream is not None:
        msg = f"host memory has no streams: stream must be None, not {stream!r}"
        raise ValueError(msg)
    host = array.copy_to_host()
    address = host.__array_interface__["data"][0]
    there = array_at(host, address, host.shape, host.strides, host.dtype, array.device)
    return _weft.export_dlpack(there, versioned, True, True)


def _wait_for(array: DeviceNDArray, stream: Any, device: tuple[int, int]) -> None:
    """Make a consumer's stream wait for the work that is now in the array's stream (default: the default stream)."""
    if device[0] == CPU:
        if stream not in (None, -1):
            msg = f"host memory has no streams: stream must be None, not {stream!r}"
            raise ValueError(msg)
        return
    if stream == -1:
        return
    consumer = LEGACY_DEFAULT_STREAM if stream is None else int(stream)
    if consumer < 1:
        msg = f"stream must be None, -1, 1, 2 or the handle of a stream, not {stream!r}"
        raise ValueError(msg)
    own = int(array.stream) or LEGACY_DEFAULT_STREAM
    if own == consumer:
        return
    from weft.cuda._devices import gpus
    from weft.cuda._streams import Event, external_stream

    with gpus[array.device]:
        event = Event()
        event.record(array.stream or external_stream(own))
        event.wait(external_stream(consumer))
