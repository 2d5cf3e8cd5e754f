"""Settings of weft's Python side that a program can change at run time.

The environment says how it starts: each name has a row in the table of settings (runtime/src/settings/). It is read
with the others, once, when the first of them is needed.
"""

from __future__ import annotations

from weft import _weft

# Warn if a launch copies host arrays (WEFT_WARN_ON_IMPLICIT_COPY).
CUDA_WARN_ON_IMPLICIT_COPY: int

# Warn if a grid has too few blocks for a GPU (WEFT_LOW_OCCUPANCY_WARNINGS).
CUDA_LOW_OCCUPANCY_WARNINGS: int

# Synchronize with the stream of an object with __cuda_array_interface__ (WEFT_CUDA_ARRAY_INTERFACE_SYNC).
CUDA_ARRAY_INTERFACE_SYNC: int

# Further header folders for linked CUDA C++, separated by colons (WEFT_NVRTC_EXTRA_SEARCH_PATHS).
CUDA_NVRTC_EXTRA_SEARCH_PATHS: str

# The default compute capability of code for other programs (WEFT_DEFAULT_PTX_CC).
CUDA_DEFAULT_PTX_CC: tuple[int, int]

# The default of `debug` in `cuda.jit` (WEFT_DEBUG).
DEBUG: int

# The thread in a block that stops at breakpoints with WEFT_DEVICE=python (WEFT_DEBUG_THREAD); None for any.
DEBUG_THREAD: tuple[int, int, int] | None

# The block that stops at breakpoints (WEFT_DEBUG_BLOCK); None for any.
DEBUG_BLOCK: tuple[int, int, int] | None

# The default of `boundscheck` in `cuda.jit` (WEFT_BOUNDSCHECK).
BOUNDSCHECK: int

# The default of `reproducible` in `cuda.jit` (WEFT_REPRODUCIBLE).
REPRODUCIBLE: int


TYPE_CHECKING = False
if not TYPE_CHECKING:

    def __getattr__(name: str) -> int | str | tuple[int, ...] | None:
        # Read the environment at the first access: an invalid one must not fail the import.
        if name not in __annotations__:
            from weft._missing import missing

            raise missing(f"module {__name__!r}", f"{__name__}.{name}", __annotations__)
        for setting, default in _weft.config().items():
            globals().setdefault(setting, default)
        value: int | str | tuple[int, ...] | None = globals()[name]
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__annotations__})
