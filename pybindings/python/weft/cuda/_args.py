"""Hints on how a kernel's host arrays are copied."""

from __future__ import annotations

from weft._weft import CopyHint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self


def _checked(hint: type, array: Any) -> Any:
    """Give an array back, or refuse what there is nothing to copy of."""
    if array is None:
        msg = f"cuda.{hint.__name__} needs an array to copy, not None: pass None without it"
        raise TypeError(msg)
    return array


class In(CopyHint):
    """An array that the kernel reads: copied to the device only.

    Examples
    --------
    >>> out = np.zeros(3)
    >>> add[1, 32](cuda.In(np.ones(3)), cuda.In(np.ones(3)), cuda.Out(out))
    >>> print(out)
    [2. 2. 2.]
    """

    def __new__(cls, array: Any) -> Self:
        """Wrap an array."""
        return super().__new__(cls, _checked(cls, array), copy_in=True, copy_out=False)


class Out(CopyHint):
    """An array that the kernel writes: copied from the device only, so what the kernel leaves out is undefined.

    Examples
    --------
    >>> out = np.zeros(3)
    >>> add[1, 32](np.ones(3), np.ones(3), cuda.Out(out))
    >>> print(out)
    [2. 2. 2.]
    """

    def __new__(cls, array: Any) -> Self:
        """Wrap an array."""
        return super().__new__(cls, _checked(cls, array), copy_in=False, copy_out=True)


class InOut(Out):
    """An array that is copied to the device and back, as a bare host array is.

    Examples
    --------
    >>> x = np.ones(3)
    >>> scale[1, 32](cuda.InOut(x), 2.0)
    >>> print(x)
    [2. 2. 2.]
    """

    def __new__(cls, array: Any) -> Self:
        """Wrap an array."""
        return CopyHint.__new__(cls, _checked(cls, array), copy_in=True, copy_out=True)


def wrap_arg(value: Any, default: type[CopyHint] = InOut) -> CopyHint:
    """Give a hint as it is, and an array in one of the class `default`."""
    return value if isinstance(value, CopyHint) else default(value)  # type: ignore[call-arg]  # each class has its own
