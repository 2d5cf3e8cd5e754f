"""The three implementations of a case on the GPU: CUDA C++ through CuPy and NVRTC, weft, and numba-cuda.

All of them launch on the legacy default stream and on the same CuPy arrays. Each list of arguments is prepared once, so
that a timed launch converts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tables import NUMPY_TYPING

if TYPE_CHECKING:
    from suite.case import Case, Work

Launch = Callable[[], None]


def restricted(code: str) -> str:
    """The source of a C++ kernel with `__restrict__` at each of its pointer parameters."""
    return re.sub(
        r"(?<=\bpeer\()[^)]*",
        lambda found: re.sub(r"\*\s*(?=(?!__restrict__)\w)", "* __restrict__ ", found[0]),
        code,
    )


class Cpp:
    name = "C++"

    def __init__(self, cupy: Any, case: Case) -> None:
        self.module = cupy.RawModule(code=self.code(case), options=("-std=c++17",), backend="nvrtc")
        self.kernel = self.module.get_function("peer")

    def code(self, case: Case) -> str:
        return case.cpp

    def bind(self, work: Work, args: tuple[Any, ...]) -> Launch:
        import numpy as np

        kernel, grid, block = self.kernel, work.grid, work.block
        given = (*args, *(np.int32(extent) for extent in work.extents))
        return lambda: kernel(grid, block, given)

    def registers(self) -> int:
        return self.kernel.num_regs


class CppRestrict(Cpp):
    """The C++ kernel with `__restrict__` pointers; a kernel that has them already is measured twice."""

    name = "C++ __restrict__"

    def code(self, case: Case) -> str:
        return restricted(case.cpp)


class Jitted:
    """weft or numba-cuda: `cuda` is the library's module."""

    def __init__(self, cuda: Any, case: Case) -> None:
        self.cuda = cuda
        self.kernel = case.make(cuda)

    def bind(self, work: Work, args: tuple[Any, ...]) -> Launch:
        given = tuple(self.share(arg) if getattr(arg, "shape", ()) else arg for arg in args)
        configured = self.kernel[work.grid, work.block]
        return lambda: configured(*given)

    def share(self, array: Any) -> Any:
        """The library's own array in CuPy's memory."""
        shared = self.cuda.as_cuda_array(array)
        address = shared.__cuda_array_interface__["data"][0]
        if address != array.data.ptr:
            raise RuntimeError(f"as_cuda_array copied: {address:#x} is not {array.data.ptr:#x}")
        return shared

    def registers(self) -> int:
        counts = self.kernel.get_regs_per_thread()
        return next(iter(counts.values())) if isinstance(counts, dict) else counts


class Weft(Jitted):
    name = "weft"

    def __init__(self, cupy: Any, case: Case) -> None:
        from weft import cuda

        super().__init__(cuda, case)


class WeftAsNumpy(Jitted):
    """The kernel with NumPy's typing, for cases in which Numba's types are wider than the C++ kernel's."""

    name = NUMPY_TYPING

    def __init__(self, cupy: Any, case: Case) -> None:
        from weft import cuda

        self.cuda, self.kernel = cuda, case.typed_as_numpy(cuda)


class NumbaCuda(Jitted):
    name = "numba-cuda"

    def __init__(self, cupy: Any, case: Case) -> None:
        import warnings

        from numba import cuda
        from numba.core.errors import NumbaWarning

        warnings.simplefilter("ignore", NumbaWarning)  # for the small grids of --sizes tiny
        super().__init__(cuda, case)


BACKENDS = (Cpp, Weft, NumbaCuda)
