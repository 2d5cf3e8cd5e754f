"""weft: GPU kernels in Python, compiled to PTX for NVIDIA GPUs and to native code for the CPU.

>>> from weft import cuda
>>> @cuda.jit
... def scale(a, x):
...     i = cuda.grid(1)
...     if i < x.size:
...         x[i] = a * x[i]
>>> scale[blocks, threads](2.0, x)  # doctest: +SKIP

Kernels and device functions are in `weft.cuda`, types in `weft.types`, exceptions in `weft.errors`.

PYTEST_DONT_REWRITE: pytest rewrites the assertions of packages that have plugins of its, and warns of one that is
imported before it starts, as weft is under ``python -m weft.numba -m pytest``.
"""

from __future__ import annotations

from weft import config, errors, types
from weft._numbers import *  # noqa: F403
from weft._numbers import __all__ as _numbers
from weft._pointers import carray, farray
from weft._vectorize import guvectorize
from weft._weft import Signature, Type, __version__, as_dtype, from_dtype
from weft._weft import typeof_value as typeof
from weft.errors import (
    CompileError,
    CudaSupportError,
    DeviceMemoryError,
    DeviceWarning,
    DriverError,
    InternalError,
    LaunchError,
    NumbaPerformanceWarning,
    PerformanceWarning,
    WeftError,
    WeftWarning,
)
from weft.types import none, void

TYPE_CHECKING = False
if TYPE_CHECKING:
    from weft import cuda as cuda
    from weft._decorators import vectorize
else:
    from weft._vectorize import vectorize

    def __getattr__(name: str) -> object:
        """Import `weft.cuda` at its first use: a program that only needs types does without."""
        if name == "cuda":
            import importlib

            return importlib.import_module("weft.cuda")
        from weft._missing import missing

        raise missing(f"module {__name__!r}", f"{__name__}.{name}", [*__all__, "cuda"])

    def __dir__() -> list[str]:
        return sorted({*globals(), "cuda"})


__all__ = [
    "CompileError",
    "CudaSupportError",
    "DeviceMemoryError",
    "DeviceWarning",
    "DriverError",
    "InternalError",
    "LaunchError",
    "NumbaPerformanceWarning",
    "PerformanceWarning",
    "Signature",
    "Type",
    "WeftError",
    "WeftWarning",
    "__version__",
    "as_dtype",
    "carray",
    "config",
    "errors",
    "farray",
    "from_dtype",
    "guvectorize",
    "none",
    "typeof",
    "types",
    "vectorize",
    "void",
    *_numbers,
]
