"""The flags of a device array: numba's dictionary of two, with NumPy's other names for them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# NumPy's names as keys, with the attribute for each.
# (https://numpy.org/doc/stable/reference/generated/numpy.ndarray.flags.html)
_NAMES = {
    "C_CONTIGUOUS": "c_contiguous", "CONTIGUOUS": "c_contiguous", "C": "c_contiguous",
    "F_CONTIGUOUS": "f_contiguous", "FORTRAN": "f_contiguous", "F": "f_contiguous",
    "WRITEABLE": "writeable", "W": "writeable",
    "FNC": "fnc", "FORC": "forc",
}  # fmt: skip


class ArrayFlags(dict[str, bool]):
    """The flags of a device array. It is a dictionary of ``C_CONTIGUOUS`` and ``F_CONTIGUOUS``, as numba has it.

    >>> flags = cuda.to_device(np.ones((3, 4))).flags
    >>> flags.c_contiguous, flags["F"], flags.writeable
    (True, False, True)
    """

    def __init__(self, array: Any) -> None:
        super().__init__(C_CONTIGUOUS=array.is_c_contiguous(), F_CONTIGUOUS=array.is_f_contiguous())
        self._readonly: bool = array.readonly

    def __missing__(self, name: Any) -> bool:
        """Give a flag by another name of NumPy's."""
        if name not in _NAMES:
            msg = f"device arrays have no flag {name!r}; the flags are {', '.join(_NAMES)}"
            raise KeyError(msg)
        flag: bool = getattr(self, _NAMES[name])
        return flag

    @property
    def c_contiguous(self) -> bool:
        """Whether the elements are one piece of memory, the last index running fastest."""
        return self["C_CONTIGUOUS"]

    @property
    def f_contiguous(self) -> bool:
        """Whether the elements are one piece of memory, the first index running fastest."""
        return self["F_CONTIGUOUS"]

    contiguous = c_contiguous
    fortran = f_contiguous

    @property
    def fnc(self) -> bool:
        """Whether it is in Fortran's order and not in C's."""
        return self.f_contiguous and not self.c_contiguous

    @property
    def forc(self) -> bool:
        """Whether it is in Fortran's order or in C's."""
        return self.f_contiguous or self.c_contiguous

    @property
    def writeable(self) -> bool:
        """Whether kernels may write it."""
        return not self._readonly
