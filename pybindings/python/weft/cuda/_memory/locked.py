"""Memory of the host that a device reaches: page-locked, mapped and managed arrays, and arrays locked for a block."""

from __future__ import annotations

import contextlib

from weft import _weft
from weft.cuda._memory.device_array import DeviceNDArray, array_at
from weft.cuda._memory.making import layout_of
from weft.cuda._streams import as_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, TypeVar, overload

    import numpy as np
    from numpy.typing import NDArray

    from weft._weft import HostMemory
    from weft.cuda._memory.device_array import Order
    from weft.cuda._memory.mapped import Lent, ManagedNDArray, MappedNDArray

    Of = TypeVar("Of", bound=np.generic)


if TYPE_CHECKING:

    @overload
    def pinned_array(
        shape: int | Sequence[int], dtype: None = None, strides: Sequence[int] | None = None, order: Order = "C"
    ) -> NDArray[np.float64]: ...
    @overload
    def pinned_array(
        shape: int | Sequence[int], dtype: type[Of] | np.dtype[Of], strides: Sequence[int] | None = None,
        order: Order = "C",
    ) -> NDArray[Of]: ...  # fmt: skip
    @overload
    def pinned_array(
        shape: int | Sequence[int], dtype: Any, strides: Sequence[int] | None = None, order: Order = "C"
    ) -> NDArray[Any]: ...


def pinned_array(
    shape: int | Sequence[int], dtype: Any = None, strides: Sequence[int] | None = None, order: Order = "C"
) -> np.ndarray[Any, Any]:
    """Make a NumPy array in page-locked memory, which a GPU copies from and to without a detour.

    Parameters
    ----------
    shape
        Extents.
    dtype
        Element type; float64 unless given.
    strides
        Strides in bytes; those of ``order`` unless given.
    order
        ``"C"`` or ``"F"``.

    Returns
    -------
    numpy.ndarray
        With undefined contents; its memory goes with the last view of it.

    Raises
    ------
    MemoryError
        There is not enough memory.

    Examples
    --------
    >>> host = cuda.pinned_array(1000, np.float32)
    >>> host[:] = 1
    >>> stream = cuda.stream()
    >>> d = cuda.to_device(host, stream=stream)  # copies while the host goes on
    """
    import numpy as np

    made: np.ndarray[Any, Any] = _shared(np.ndarray, shape, dtype, strides, order)
    return made


if TYPE_CHECKING:

    @overload
    def pinned_array_like(ary: DeviceNDArray[Of] | np.ndarray[Any, np.dtype[Of]]) -> NDArray[Of]: ...
    @overload
    def pinned_array_like(ary: Any) -> NDArray[Any]: ...


def pinned_array_like(ary: Any) -> np.ndarray[Any, Any]:
    """Make a page-locked NumPy array with the shape, dtype and order of another.

    Parameters
    ----------
    ary
        A NumPy array, a device array, or an object that converts to an array.

    Returns
    -------
    numpy.ndarray
        With undefined contents, the shape, dtype and order of ``ary``, without gaps.

    Raises
    ------
    MemoryError
        There is not enough memory.

    Examples
    --------
    >>> cuda.pinned_array_like(np.ones((2, 3), np.int16)).shape
    (2, 3)
    """
    shape, dtype, strides = _like(ary)
    return pinned_array(shape, dtype, strides)


def mapped_array(
    shape: int | Sequence[int],
    dtype: Any = None,
    strides: Sequence[int] | None = None,
    order: Order = "C",
    stream: Any = 0,
    portable: bool = False,  # noqa: ARG001
    wc: bool = False,  # noqa: ARG001
) -> MappedNDArray:
    """Make a NumPy array in memory of the host that kernels read and write there, without a copy.

    Kernels that run write it at any time: wait for them before looking at it.

    Parameters
    ----------
    shape
        Extents.
    dtype
        Element type; float64 unless given.
    strides
        Strides in bytes; those of ``order`` unless given.
    order
        ``"C"`` or ``"F"``.
    stream
        The stream that copies of the array use.
    portable
        Has no effect: it always is.
    wc
        Has no effect: the host can read the memory, too.

    Returns
    -------
    MappedNDArray
        A NumPy array with undefined contents, which kernels take as a device array.

    Raises
    ------
    MemoryError
        There is not enough memory.

    Examples
    --------
    >>> x = cuda.mapped_array(4)
    >>> x[:] = 1
    >>> scale[1, 32](x, 2.0)
    >>> cuda.synchronize()
    >>> print(x)
    [2. 2. 2. 2.]
    """
    from weft.cuda._memory.mapped import MappedNDArray

    made: MappedNDArray = _shared(MappedNDArray, shape, dtype, strides, order, stream)
    return made


def mapped_array_like(ary: Any, stream: Any = 0, portable: bool = False, wc: bool = False) -> MappedNDArray:
    """Make a `mapped_array` with the shape, dtype and order of another.

    Parameters
    ----------
    ary
        A NumPy array, a device array, or an object that converts to an array.
    stream
        The stream that copies of the array use.
    portable
        Has no effect: it always is.
    wc
        Has no effect: the host can read the memory, too.

    Returns
    -------
    MappedNDArray
        With undefined contents, the shape, dtype and order of ``ary``, without gaps.

    Raises
    ------
    MemoryError
        There is not enough memory.

    Examples
    --------
    >>> cuda.mapped_array_like(np.ones((2, 3), np.int16)).dtype
    dtype('int16')
    """
    shape, dtype, strides = _like(ary)
    return mapped_array(shape, dtype, strides, stream=stream, portable=portable, wc=wc)


def managed_array(
    shape: int | Sequence[int],
    dtype: Any = None,
    strides: Sequence[int] | None = None,
    order: Order = "C",
    stream: Any = 0,
    attach_global: bool = True,
) -> ManagedNDArray:
    """Make a NumPy array in memory that moves to where it is used, host or device.

    Parameters
    ----------
    shape
        Extents: an integer or a sequence of them.
    dtype
        Element type; float64 unless given.
    strides
        Strides in bytes, one for each dimension; those of ``order`` unless given.
    order
        ``"C"`` or ``"F"``.
    stream
        The stream that copies of the array use.
    attach_global
        False says that the host uses the memory first.

    Returns
    -------
    ManagedNDArray
        A NumPy array with undefined contents, which kernels take as a device array.

    Raises
    ------
    MemoryError
        There is not enough memory.

    Examples
    --------
    >>> x = cuda.managed_array(4)
    >>> x[:] = 3
    >>> scale[1, 32](x, 2.0)
    >>> cuda.synchronize()
    >>> print(x)
    [6. 6. 6. 6.]
    """
    from weft.cuda._memory.mapped import ManagedNDArray

    options = {"managed": True, "attach_global": attach_global}
    made: ManagedNDArray = _shared(ManagedNDArray, shape, dtype, strides, order, stream, **options)
    return made


def _like(ary: Any) -> tuple[Any, Any, Any]:
    """Give shape, dtype and strides of an array without gaps that is like another."""
    import numpy as np

    if not hasattr(ary, "strides"):
        ary = np.asarray(ary)
    return ary.shape, ary.dtype, _weft.dense_strides(ary.shape, ary.strides, ary.dtype.itemsize)


def _shared(of: Any, shape: Any, dtype: Any, strides: Any, order: str, stream: Any = 0, **options: bool) -> Any:
    """Make an array of a class of NumPy's in memory that host and device share."""
    import numpy as np

    from weft.cuda._memory.mapped import Block, allocate

    extents, element, steps, nbytes = layout_of(shape, dtype, strides, order)
    if element.hasobject:
        msg = f"memory shared by host and device cannot have elements of dtype {element}, which are Python objects"
        raise TypeError(msg)
    memory = allocate(nbytes, mapped=of is not np.ndarray, **options)
    # The `base` of a NumPy array keeps the owner of its memory alive.
    array = np.ndarray.__new__(of, extents, element, np.asarray(Block(memory)), strides=steps)
    if of is not np.ndarray:
        array._memory = memory
        array.stream = as_stream(stream)
    return array


@contextlib.contextmanager
def pinned(*arylist: np.ndarray[Any, Any]) -> Iterator[None]:
    """Lock the pages of NumPy arrays while a block runs.

    Parameters
    ----------
    *arylist
        Contiguous NumPy arrays.

    Yields
    ------
    None
        Nothing. Copies of these arrays in the block are faster, and overlap with kernels.

    Raises
    ------
    TypeError
        An argument is not a NumPy array.
    ValueError
        An array is not contiguous.

    Examples
    --------
    >>> host = np.ones(1000)
    >>> with cuda.pinned(host):
    ...     d = cuda.to_device(host)
    """
    locked = [_lock(array, mapped=False) for array in arylist]
    try:
        yield
    finally:
        locked.clear()


@contextlib.contextmanager
def mapped(*arylist: np.ndarray[Any, Any], stream: Any = 0) -> Iterator[DeviceNDArray | list[DeviceNDArray]]:
    """Make device arrays of NumPy arrays, for kernels that use them where they are, while a block runs.

    They are of no use after the block.

    Parameters
    ----------
    *arylist
        Contiguous NumPy arrays.
    stream
        The stream that copies of the device arrays use.

    Yields
    ------
    DeviceNDArray or list of DeviceNDArray
        One for one array, and a list for several.

    Raises
    ------
    TypeError
        An argument is not a NumPy array.
    ValueError
        An array is not contiguous.

    Examples
    --------
    >>> host = np.ones(4)
    >>> with cuda.mapped(host) as x:
    ...     scale[1, 32](x, 2.0)
    >>> print(host)
    [2. 2. 2. 2.]
    """
    made = []
    owners: list[list[Any]] = []
    for array in arylist:
        memory = _lock(array, mapped=True)
        # Names bound in the `with` block outlive it: the owner releases the memory.
        owners.append([memory, array])
        device = array_at(
            owners[-1], memory.device_address, array.shape, array.strides, array.dtype, memory.device,
            not array.flags.writeable,
        )  # fmt: skip
        if stream:
            device.stream = as_stream(stream)
        made.append(device)
        del memory
    try:
        yield made[0] if len(made) == 1 else made
    finally:
        _weft.synchronize()
        for owner in owners:
            del owner[0]


def _lock(array: np.ndarray[Any, Any], *, mapped: bool) -> HostMemory | Lent:
    from weft.cuda._memory.mapped import lock

    if not hasattr(array, "flags"):
        msg = f"only a NumPy array can be page-locked, not {type(array).__name__}: convert it with `np.asarray`"
        raise TypeError(msg)
    if not array.flags.forc:
        msg = "only a contiguous array can be page-locked"
        raise ValueError(msg)
    return lock(array, mapped=mapped)
