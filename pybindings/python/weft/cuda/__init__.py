"""Kernels in Python: `cuda.jit`, launches, device memory, streams, and the names that kernels use.

The functions are those of `numba.cuda`. Without a GPU the same kernels run on the CPU.
"""

from __future__ import annotations

from weft import config, errors, types
from weft._numbers import *  # noqa: F403
from weft._numbers import __all__ as _numbers
from weft._operators import as_jax_call, as_torch_op
from weft._vectorize import guvectorize
from weft._vectors import *  # noqa: F403
from weft._vectors import __all__ as _vectors
from weft._weft import Dispatcher, ForAll, Kernel, Signature, Type
from weft._weft import _LaunchConfiguration as _LaunchConfiguration
from weft._weft import typeof_value as typeof
from weft.cuda import bf16, cg, cluster, coop, fp8, fp16, libdevice, mma, random
from weft.cuda._args import In, InOut, Out
from weft.cuda._benchmark import benchmark
from weft.cuda._code.compile import (
    compile,  # its name in numba.cuda
    compile_all,
    compile_for_current_device,
    compile_ptx,
    compile_ptx_for_current_device,
)
from weft.cuda._code.link import (
    LTOIR,
    Archive,
    Cubin,
    CUSource,
    DeclaredFunction,
    Fatbin,
    LinkableCode,
    Object,
    PTXSource,
    declare_device,
)
from weft.cuda._contexts import Context, MemoryInfo
from weft.cuda._devices import (
    Device,
    close,
    cuda_error,
    current_context,
    defer_cleanup,
    detect,
    get_current_device,
    gpus,
    is_available,
    is_bfloat16_supported,
    is_float16_supported,
    is_fp8_supported,
    is_supported_version,
    list_devices,
    profile_start,
    profile_stop,
    profiling,
    require_context,
    runtime,
    select_device,
    synchronize,
)
from weft.cuda._graphs import graph
from weft.cuda._intrinsic_names import *  # noqa: F403
from weft.cuda._intrinsic_names import __all__ as _intrinsics
from weft.cuda._jit import intrinsic
from weft.cuda._kernel_names import (
    atomic,
    blockDim,
    blockIdx,
    const,
    gridDim,
    literal_unroll,
    local,
    shared,
    stop_gradient,
    threadIdx,
)
from weft.cuda._memory.device_array import DeviceNDArray
from weft.cuda._memory.interchange import from_dlpack
from weft.cuda._memory.locked import (
    managed_array,
    mapped,
    mapped_array,
    mapped_array_like,
    pinned,
    pinned_array,
    pinned_array_like,
)
from weft.cuda._memory.making import (
    as_cuda_array,
    device_array,
    device_array_like,
    from_cuda_array_interface,
    is_cuda_array,
    to_device,
)
from weft.cuda._memory.record import DeviceRecord
from weft.cuda._reduce import Reduce, reduce
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from weft._decorators import jit, vectorize
    from weft.cuda import cudadrv as cudadrv
    from weft.cuda import extending as extending
    from weft.cuda import launchconfig as launchconfig
    from weft.cuda._code.modules import Function, Module
    from weft.cuda._derivatives import Jvp, Vjp, custom_vjp, jvp, vjp
    from weft.cuda._export import Export
    from weft.cuda._memory.ipc import IpcHandle, open_ipc_array
    from weft.cuda._memory.manager import (
        BaseCUDAMemoryManager,
        GetIpcHandleMixin,
        HostOnlyCUDAMemoryManager,
        set_memory_manager,
    )
    from weft.cuda._memory.pointers import MappedMemory, MemoryPointer, PinnedMemory
    from weft.cuda._memory.tensor_maps import TensorMap, tensor_map
    from weft.cuda._rules import Effect, Output, like, shaped
    from weft.cuda._tape import Tape, tape
    from weft.cuda.cudadrv import devices as devices
    from weft.cuda.cudadrv import driver as driver
else:
    from weft._vectorize import vectorize
    from weft.cuda._jit import jit

# Numba's name for a compiled kernel.
CUDADispatcher = Dispatcher

__all__ = [
    "Archive",
    "as_cuda_array",
    "as_jax_call",
    "as_torch_op",
    "atomic",
    "BaseCUDAMemoryManager",
    "benchmark",
    "bf16",
    "blockDim",
    "blockIdx",
    "cg",
    "close",
    "cluster",
    "compile",
    "compile_all",
    "compile_for_current_device",
    "compile_ptx",
    "compile_ptx_for_current_device",
    "config",
    "const",
    "Context",
    "coop",
    "Cubin",
    "cuda_error",
    "CudaAPIError",
    "CUDADispatcher",
    "CudaDriverError",
    "CudaSupportError",
    "current_context",
    "CUSource",
    "custom_vjp",
    "declare_device",
    "DeclaredFunction",
    "default_stream",
    "defer_cleanup",
    "detect",
    "Device",
    "device_array",
    "device_array_like",
    "DeviceNDArray",
    "DeviceRecord",
    "Dispatcher",
    "errors",
    "Effect",
    "Event",
    "event",
    "event_elapsed_time",
    "Export",
    "external_stream",
    "Fatbin",
    "ForAll",
    "fp8",
    "fp16",
    "from_cuda_array_interface",
    "from_dlpack",
    "Function",
    "get_current_device",
    "GetIpcHandleMixin",
    "gpus",
    "graph",
    "gridDim",
    "guvectorize",
    "HostOnlyCUDAMemoryManager",
    "In",
    "InOut",
    "intrinsic",
    "IpcHandle",
    "is_available",
    "is_bfloat16_supported",
    "is_cuda_array",
    "is_float16_supported",
    "is_fp8_supported",
    "is_supported_version",
    "jit",
    "jvp",
    "Jvp",
    "Kernel",
    "KernelRuntimeError",
    "LaunchError",
    "legacy_default_stream",
    "libdevice",
    "like",
    "LinkableCode",
    "list_devices",
    "literal_unroll",
    "local",
    "LTOIR",
    "managed_array",
    "mapped",
    "mapped_array",
    "mapped_array_like",
    "MappedMemory",
    "MemoryInfo",
    "MemoryPointer",
    "mma",
    "Module",
    "Object",
    "open_ipc_array",
    "Out",
    "Output",
    "per_thread_default_stream",
    "pinned",
    "pinned_array",
    "pinned_array_like",
    "PinnedMemory",
    "profile_start",
    "profile_stop",
    "profiling",
    "PTXSource",
    "random",
    "Reduce",
    "reduce",
    "require_context",
    "runtime",
    "select_device",
    "set_memory_manager",
    "shaped",
    "shared",
    "Signature",
    "Stream",
    "stop_gradient",
    "stream",
    "synchronize",
    "tape",
    "Tape",
    "threadIdx",
    "to_device",
    "Type",
    "typeof",
    "tensor_map",
    "TensorMap",
    "types",
    "vectorize",
    "vjp",
    "Vjp",
    "void",
    *_intrinsics,
    *_numbers,
    *_vectors,
]


# Rarely used names, by the modules that define them: they are imported on first access.
_LATER = {
    "BaseCUDAMemoryManager": "weft.cuda._memory.manager",
    "custom_vjp": "weft.cuda._derivatives",
    "Effect": "weft.cuda._rules",
    "Export": "weft.cuda._export",
    "Function": "weft.cuda._code.modules",
    "GetIpcHandleMixin": "weft.cuda._memory.manager",
    "HostOnlyCUDAMemoryManager": "weft.cuda._memory.manager",
    "set_memory_manager": "weft.cuda._memory.manager",
    "IpcHandle": "weft.cuda._memory.ipc",
    "jvp": "weft.cuda._derivatives",
    "Jvp": "weft.cuda._derivatives",
    "open_ipc_array": "weft.cuda._memory.ipc",
    "like": "weft.cuda._rules",
    "Output": "weft.cuda._rules",
    "shaped": "weft.cuda._rules",
    "tape": "weft.cuda._tape",
    "Tape": "weft.cuda._tape",
    "MappedMemory": "weft.cuda._memory.pointers",
    "MemoryPointer": "weft.cuda._memory.pointers",
    "Module": "weft.cuda._code.modules",
    "PinnedMemory": "weft.cuda._memory.pointers",
    "tensor_map": "weft.cuda._memory.tensor_maps",
    "TensorMap": "weft.cuda._memory.tensor_maps",
    "vjp": "weft.cuda._derivatives",
    "Vjp": "weft.cuda._derivatives",
}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        import importlib

        # Only programs for numba-cuda use these names.
        if name in {"cudadrv", "devices", "driver"}:
            return importlib.import_module("weft.cuda.cudadrv" if name == "cudadrv" else f"weft.cuda.cudadrv.{name}")
        if name == "_auto_device":
            return importlib.import_module("weft.cuda._memory.making").auto_device
        if name in {"extending", "launchconfig"}:
            return importlib.import_module(f"weft.cuda.{name}")
        if name in _LATER:
            return getattr(importlib.import_module(_LATER[name]), name)
        from weft._missing import missing

        raise missing(f"module {__name__!r}", f"{__name__}.{name}", __all__)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
