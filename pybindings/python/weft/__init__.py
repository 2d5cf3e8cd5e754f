"""weft: GPU kernels in Python, compiled to PTX for NVIDIA GPUs and to native code for the CPU.

>>> from weft import cuda
>>> @cuda.jit
... def scale(a, x):
...     i = cuda.grid(1)
...     if i < x.size:
...         x[i] = a * x[i]
>>> scale[blocks, threads](2.0, x)  # doctest: +SKIP

Kernels and device functions are in `weft.cuda`, types in `weft.types`, exceptions in `weft.errors`.
"""

from __future__ import annotations

from weft import config, errors, types
from weft._weft import Signature, Type, __version__
from weft._weft import typeof_value as typeof
from weft.errors import (
    CompileError,
    CudaSupportError,
    DeviceMemoryError,
    DeviceWarning,
    DriverError,
    InternalError,
    LaunchError,
    PerformanceWarning,
    WeftError,
    WeftWarning,
)
from weft.types import (
    b1,
    boolean,
    c8,
    c16,
    complex64,
    complex128,
    f4,
    f8,
    float32,
    float64,
    i1,
    i2,
    i4,
    i8,
    int8,
    int16,
    int32,
    int64,
    intc,
    intp,
    none,
    u1,
    u2,
    u4,
    u8,
    uint8,
    uint16,
    uint32,
    uint64,
    uintc,
    uintp,
    void,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def from_dtype(dtype: Any) -> Type:
    """Weft's type of a NumPy dtype."""
    return typeof(as_dtype(dtype).type(0))


def as_dtype(ty: Any) -> Any:
    """NumPy's dtype of a weft type; a dtype stays one."""
    import numpy as np

    name = ty.name if isinstance(ty, Type) else ty
    return np.dtype("bool" if name == "boolean" else name)


__all__ = [
    "CompileError",
    "CudaSupportError",
    "DeviceMemoryError",
    "DeviceWarning",
    "DriverError",
    "InternalError",
    "LaunchError",
    "PerformanceWarning",
    "Signature",
    "Type",
    "WeftError",
    "WeftWarning",
    "__version__",
    "as_dtype",
    "b1",
    "boolean",
    "c8",
    "c16",
    "complex64",
    "complex128",
    "config",
    "errors",
    "f4",
    "f8",
    "float32",
    "float64",
    "from_dtype",
    "i1",
    "i2",
    "i4",
    "i8",
    "int8",
    "int16",
    "int32",
    "int64",
    "intc",
    "intp",
    "none",
    "typeof",
    "types",
    "u1",
    "u2",
    "u4",
    "u8",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uintc",
    "uintp",
    "void",
]
