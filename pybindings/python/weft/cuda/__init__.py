"""Kernels in Python: `cuda.jit`, launches, device memory, streams, and the names that kernels use.

The functions are those of `numba.cuda`. Without a GPU the same kernels run on the CPU.
"""

from __future__ import annotations

from weft import config, errors, types
from weft._numbers import *  # noqa: F403
from weft._numbers import __all__ as _numbers
from weft._vectors import *  # noqa: F403
from weft._vectors import __all__ as _vectors
from weft._weft import Dispatcher, ForAll, Kernel, Signature, Type
from weft._weft import _LaunchConfiguration as _LaunchConfiguration
from weft._weft import typeof_value as typeof
from weft.cuda import bf16, fp16, random
from weft.cuda._args import In, InOut, Out
from weft.cuda._device_array import DeviceNDArray, DeviceRecord
from weft.cuda._devices import (
    Context,
    Device,
    close,
    cuda_error,
    current_context,
    detect,
    get_current_device,
    gpus,
    is_available,
    is_bfloat16_supported,
    is_float16_supported,
    is_supported_version,
    list_devices,
    require_context,
    select_device,
    synchronize,
)
from weft.cuda._jit import jit
from weft.cuda._kernel_names import (
    atomic,
    blockDim,
    blockIdx,
    const,
    grid,
    gridDim,
    gridsize,
    laneid,
    literal_unroll,
    local,
    shared,
    syncthreads,
    syncthreads_and,
    syncthreads_count,
    syncthreads_or,
    syncwarp,
    threadfence,
    threadfence_block,
    threadfence_system,
    threadIdx,
    warpsize,
)
from weft.cuda._memory import (
    as_cuda_array,
    device_array,
    device_array_like,
    from_cuda_array_interface,
    is_cuda_array,
    pinned_array,
    pinned_array_like,
    to_device,
)
from weft.cuda._streams import (
    Event,
    Stream,
    default_stream,
    event,
    event_elapsed_time,
    external_stream,
    legacy_default_stream,
    per_thread_default_stream,
    stream,
)
from weft.errors import CudaAPIError, CudaDriverError, CudaSupportError, KernelRuntimeError, LaunchError
from weft.types import void

# Numba's name of what a launch compiles.
CUDADispatcher = Dispatcher

__all__ = [
    "CUDADispatcher",
    "Context",
    "CudaAPIError",
    "CudaDriverError",
    "CudaSupportError",
    "Device",
    "DeviceNDArray",
    "DeviceRecord",
    "Dispatcher",
    "Event",
    "ForAll",
    "In",
    "InOut",
    "Kernel",
    "KernelRuntimeError",
    "LaunchError",
    "Out",
    "Signature",
    "Stream",
    "Type",
    "as_cuda_array",
    "atomic",
    "bf16",
    "blockDim",
    "blockIdx",
    "close",
    "config",
    "const",
    "cuda_error",
    "current_context",
    "default_stream",
    "detect",
    "device_array",
    "device_array_like",
    "errors",
    "event",
    "event_elapsed_time",
    "external_stream",
    "fp16",
    "from_cuda_array_interface",
    "get_current_device",
    "gpus",
    "grid",
    "gridDim",
    "gridsize",
    "is_available",
    "is_bfloat16_supported",
    "is_cuda_array",
    "is_float16_supported",
    "is_supported_version",
    "jit",
    "laneid",
    "legacy_default_stream",
    "list_devices",
    "literal_unroll",
    "local",
    "per_thread_default_stream",
    "pinned_array",
    "pinned_array_like",
    "random",
    "require_context",
    "select_device",
    "shared",
    "stream",
    "synchronize",
    "syncthreads",
    "syncthreads_and",
    "syncthreads_count",
    "syncthreads_or",
    "syncwarp",
    "threadIdx",
    "threadfence",
    "threadfence_block",
    "threadfence_system",
    "to_device",
    "typeof",
    "types",
    "void",
    "warpsize",
    *_numbers,
    *_vectors,
]
