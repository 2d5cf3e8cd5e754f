"""`carray` and `farray`: arrays over pointers.

In kernels the compiler knows them by their path; on the host they take pointers of `ctypes`, as Numba's do.
"""

from __future__ import annotations

from weft._weft import as_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from numpy.typing import NDArray


class PointedArray:
    """An array over what a pointer points to: of a shape, of the pointer's type or of ``dtype``."""

    def __init__(self, name: str, order: Literal["C", "F"]) -> None:
        self._weft_path = f"weft.{name}"
        self._order = order
        self.__name__ = name

    def __call__(self, ptr: Any, shape: int | Sequence[int], dtype: Any = None) -> NDArray[Any]:
        """Make an array over the memory that a pointer of `ctypes` points to; it does not own the memory."""
        import ctypes

        import numpy as np

        ptr = getattr(ptr, "_as_parameter_", ptr)
        given = None if dtype is None else np.dtype(as_dtype(dtype))
        if isinstance(ptr, ctypes.c_void_p):
            if given is None:
                msg = "explicit dtype required for void* argument"
                raise TypeError(msg)
            found = given
        elif isinstance(ptr, ctypes._Pointer):
            found = np.dtype(ptr._type_)
            if given is not None and given != found:
                msg = f"mismatching dtype '{given}' for pointer {ptr}"
                raise TypeError(msg)
        else:
            msg = f"expected a ctypes pointer, got {ptr!r}"
            raise TypeError(msg)
        extents = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        size = int(np.prod(extents, dtype=np.intp)) * found.itemsize
        address = ctypes.cast(ptr, ctypes.c_void_p).value or 0
        memory: Any = (ctypes.c_char * size).from_address(address)
        flat: NDArray[Any] = np.frombuffer(memory, found) if size else np.empty(0, found)
        return flat.reshape(extents, order=self._order)

    def __repr__(self) -> str:
        return f"<{self._weft_path}>"

    def __reduce__(self) -> str:
        return self.__name__


carray = PointedArray("carray", "C")
farray = PointedArray("farray", "F")
