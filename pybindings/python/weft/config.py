"""Settings of weft's Python side that a program can change at run time.

The environment says how it starts: each name has a row in the table of settings (runtime/src/settings/). It is read
with the others, once, when the first of them is needed.
"""

from __future__ import annotations

from weft import _weft

# Warn where a launch copies host arrays (WEFT_WARN_ON_IMPLICIT_COPY).
CUDA_WARN_ON_IMPLICIT_COPY: int

# Warn where a grid has too few blocks for a GPU (WEFT_LOW_OCCUPANCY_WARNINGS).
CUDA_LOW_OCCUPANCY_WARNINGS: int

# Wait for the stream that an object with __cuda_array_interface__ names (WEFT_CUDA_ARRAY_INTERFACE_SYNC).
CUDA_ARRAY_INTERFACE_SYNC: int

# More folders of headers for CUDA C++ that is linked, with colons between (WEFT_NVRTC_EXTRA_SEARCH_PATHS).
CUDA_NVRTC_EXTRA_SEARCH_PATHS: str

# The compute capability that code for other programs is compiled for where they say none (WEFT_DEFAULT_PTX_CC).
CUDA_DEFAULT_PTX_CC: tuple[int, int]

# The default of `debug` in `cuda.jit` (WEFT_DEBUG).
DEBUG: int

# In which thread of a block breakpoints of kernels stop with WEFT_DEVICE=python (WEFT_DEBUG_THREAD); None for any.
DEBUG_THREAD: tuple[int, int, int] | None

# In which block they do (WEFT_DEBUG_BLOCK); None for any.
DEBUG_BLOCK: tuple[int, int, int] | None

# The default of `boundscheck` in `cuda.jit` (WEFT_BOUNDSCHECK).
BOUNDSCHECK: int

# The default of `reproducible` in `cuda.jit` (WEFT_REPRODUCIBLE).
REPRODUCIBLE: int


TYPE_CHECKING = False
if not TYPE_CHECKING:

    def __getattr__(name: str) -> int | str | tuple[int, ...] | None:
        # The first time only: an environment that makes no sense is no reason for an import to fail.
        if name not in __annotations__:
            from weft._missing import missing

            raise missing(f"module {__name__!r}", f"{__name__}.{name}", __annotations__)
        for setting, default in _weft.config().items():
            globals().setdefault(setting, default)
        value: int | str | tuple[int, ...] | None = globals()[name]
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__annotations__})
