"""NumPy's methods that change the shape, the order or the dtype of a device array.

`reshape`, `ravel`, `transpose` and the like are views, and errors where no view is possible, as numba's are; `flatten`,
`copy` and `astype` make new arrays on the device, in the array's stream.
"""

from __future__ import annotations

import math
import operator

from weft import _weft
from weft.cuda._memory.generic import Array, Element

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, Literal, TypeVar, overload

    import numpy as np

    from weft.cuda._memory.device_array import DeviceNDArray

    Order = Literal["C", "F", "A"]
    AnyOrder = Literal["C", "F", "A", "K"]
    Other = TypeVar("Other", bound=np.generic)


class Shapes(Array[Element]):
    """Views of other shapes and dtypes, and copies."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            what = f"{type(self).__name__!r} object"
            if name.startswith("_"):
                # Other libraries often test whether an array supports their protocols.
                msg = f"{what} has no attribute {name!r}"
                raise AttributeError(msg)
            from weft._missing import missing

            raise missing(what, f"weft.cuda.DeviceNDArray.{name}", dir(type(self)))

    def reshape(self, *newshape: Any, order: Order = "C") -> DeviceNDArray[Element]:
        """Return a view with another shape; one dimension may be -1.

        Parameters
        ----------
        *newshape
            Extents, or a tuple of them; one may be -1.
        order
            ``"C"``, ``"F"`` or ``"A"``.

        Returns
        -------
        DeviceNDArray
            A view.

        Raises
        ------
        ValueError
            The shapes have different numbers of elements.
        NotImplementedError
            Elements would have to be copied, which NumPy does and numba does not: `copy` or `flatten` first.

        Examples
        --------
        >>> x = cuda.to_device(np.arange(6.0).reshape(2, 3))
        >>> print(x.reshape(3, -1).shape)
        (3, 2)
        """
        given = newshape[0] if len(newshape) == 1 else newshape
        shape = integers(given)
        if shape is None:
            msg = f"the dimensions of a shape must be integers, not {given!r}"
            raise TypeError(msg)
        known: int = math.prod(extent for extent in shape if extent >= 0)
        if shape.count(-1) > 1:
            msg = f"only one dimension can be -1: got {tuple(shape)}"
            raise ValueError(msg)
        if shape.count(-1) == 1 and known and self.size % known == 0:
            shape[shape.index(-1)] = self.size // known
        if any(extent < 0 for extent in shape) or math.prod(shape) != self.size:
            msg = "reshape changes the size of the array"
            raise ValueError(msg)
        if order == "A":
            order = "F" if self.is_f_contiguous() and not self.is_c_contiguous() else "C"
        if order not in ("C", "F"):
            msg = f"order must be 'C', 'F' or 'A', not {order!r}"
            raise ValueError(msg)
        strides = _reshaped(self, shape, order)
        if strides is None:
            msg = "reshape would require copy: reshape the result of `copy()` or `flatten()`"
            raise NotImplementedError(msg)
        return self._view(self.address, shape, strides)

    def ravel(self, order: Order = "C", stream: Any = 0) -> DeviceNDArray[Element]:
        """Make a view with one dimension; `flatten` makes a copy.

        Parameters
        ----------
        order
            ``"C"``, ``"F"`` or ``"A"``.
        stream
            The stream that copies of the view use.

        Returns
        -------
        DeviceNDArray
            A view.

        Examples
        --------
        >>> x = cuda.to_device(np.arange(6.0).reshape(2, 3))
        >>> print(x.ravel().shape)
        (6,)
        """
        if order not in ("C", "F", "A"):
            msg = f"order must be 'C', 'F' or 'A', not {order!r}"
            raise ValueError(msg)
        if not ((self.is_c_contiguous() and order in "CA") or (self.is_f_contiguous() and order in "FA")):
            msg = "ravel would require copy: use `flatten()` to make one"
            raise NotImplementedError(msg)
        view = self._view(self.address, [self.size], [self.itemsize])
        return view.bind(stream) if stream else view

    def flatten(self, order: AnyOrder = "C") -> DeviceNDArray[Element]:
        """Make a copy with one dimension: in C or Fortran order, in its own of the two (A), or as in memory (K).

        Parameters
        ----------
        order
            ``"C"``, ``"F"``, ``"A"`` or ``"K"``, as in NumPy.

        Returns
        -------
        DeviceNDArray
            A copy.

        Examples
        --------
        >>> x = cuda.to_device(np.arange(6.0).reshape(2, 3))
        >>> print(x.flatten("F").copy_to_host())
        [0. 3. 1. 4. 2. 5.]
        """
        from weft.cuda._memory import copies
        from weft.cuda._memory.ordering import ordered

        if order not in ("C", "F", "A", "K"):
            msg = f"order must be 'C', 'F', 'A' or 'K', not {order!r}"
            raise ValueError(msg)
        array = self.transpose(sorted(range(self.ndim), key=lambda axis: -abs(self.strides[axis])))
        if order != "K":
            fortran = order == "F" or (order == "A" and self.is_f_contiguous() and not self.is_c_contiguous())
            array = self.transpose() if fortran else self._view(self.address, self.shape, self.strides)
        with ordered([self]) as stream:
            flat: DeviceNDArray[Any] = copies.compact(array, "C", stream).reshape(self.size)
        return flat

    def copy(self, order: AnyOrder = "C", stream: Any = 0) -> DeviceNDArray[Element]:
        """Make a copy on the device, in its stream: in C or Fortran order, or in the order of its own axes (K).

        Parameters
        ----------
        order
            NumPy's orders.
        stream
            The stream to copy in, instead of the array's.
        """
        from weft.cuda._memory import copies
        from weft.cuda._memory.ordering import ordered

        with ordered([self], stream) as chosen:
            array: Any = self
            fresh: DeviceNDArray[Any] = copies.compact(array, order, chosen)
        return fresh

    if TYPE_CHECKING:

        @overload
        def astype(
            self, dtype: type[Other] | np.dtype[Other], order: AnyOrder = "K", casting: Any = "unsafe",
            copy: bool = True, stream: Any = 0,
        ) -> DeviceNDArray[Other]: ...  # fmt: skip
        @overload
        def astype(
            self, dtype: Any, order: AnyOrder = "K", casting: Any = "unsafe", copy: bool = True, stream: Any = 0
        ) -> DeviceNDArray[Any]: ...

    def astype(
        self, dtype: Any, order: AnyOrder = "K", casting: Any = "unsafe", copy: bool = True,
        stream: Any = 0,
    ) -> DeviceNDArray[Any]:  # fmt: skip
        """Give the elements as a dtype, converted on the device; a new array, unless nothing changes and not `copy`.

        Parameters
        ----------
        dtype
            The dtype, of numbers if it is another.
        order
            The order of the new array in memory.
        casting
            The casting rule, as in NumPy.
        copy
            Make a copy even if dtype and order are these already.
        stream
            The stream to compute in, instead of the array's.

        Raises
        ------
        TypeError
            `casting` does not allow it, or a dtype is not one of numbers.
        """
        import numpy as np

        from weft.cuda._memory import copies
        from weft.cuda._memory.ordering import ordered
        from weft.cuda._ufunc.placing import checked

        to = _weft.as_dtype(dtype)
        if not np.can_cast(self.dtype, to, checked(casting)):
            msg = f"Cannot cast array data from {self.dtype!r} to {to!r} according to the rule {casting!r}"
            raise TypeError(msg)
        array: Any = self
        alike = {"C": self.is_c_contiguous(), "F": self.is_f_contiguous()}.get(order, True)
        if not copy and to == self.dtype and alike:
            same: DeviceNDArray[Any] = array
            return same
        with ordered([self], stream) as chosen:
            copies.warn_of_parts(self.dtype, to)
            fresh = copies.empty_like(array, to, order, chosen)
            copies.convert(array, fresh, chosen)
        return fresh

    def fill(self, value: Any, stream: Any = 0) -> None:
        """Set all elements to a number, or to another value.

        Parameters
        ----------
        value
            What becomes an element.
        stream
            The stream that writes.

        Examples
        --------
        >>> x = cuda.to_device(np.arange(6.0).reshape(2, 3))
        >>> x.fill(7)
        >>> print(x.copy_to_host()[0])
        [7. 7. 7.]
        """
        import numpy as np

        if np.ndim(value):
            msg = f"fill() takes a number, not an array of {np.ndim(value)} dimensions"
            raise ValueError(msg)
        from weft.cuda._memory import copies

        copies.assign(self, value, stream)  # type: ignore[arg-type]

    def item(self, *args: Any) -> Any:
        """Copy an element to the host as a Python number: the only one, or one by its index or indices.

        Parameters
        ----------
        *args
            Nothing, the number of an element in C order, or an index for each axis.

        Returns
        -------
        int, float, complex or bool
            Python's.

        Examples
        --------
        >>> x = cuda.to_device(np.arange(6.0).reshape(2, 3))
        >>> x.item(1, 2)
        5.0
        """
        index: Any = args[0] if len(args) == 1 else args
        if not args:
            if self.size != 1:
                msg = "can only convert an array of size 1 to a Python scalar"
                raise ValueError(msg)
            index = (0,) * self.ndim
        elif not isinstance(index, tuple):
            number = operator.index(index)
            if not -self.size <= number < self.size:
                msg = f"index {number} is out of bounds for size {self.size}"
                raise IndexError(msg)
            number %= self.size
            places = []
            for extent in reversed(self.shape):
                number, place = divmod(number, extent)
                places.append(place)
            index = tuple(reversed(places))
        if len(index) != self.ndim:
            msg = f"incorrect number of indices for array: {len(index)} of {self.ndim}"
            raise ValueError(msg)
        found = self.getitem(index)
        return found.copy_to_host().item() if hasattr(found, "copy_to_host") else found.item()

    def tolist(self) -> Any:
        """Copy to the host as lists of Python numbers."""
        return self.copy_to_host().tolist()

    @property
    def real(self) -> DeviceNDArray[Any]:
        """The real parts, as a view; the array itself if it has no others."""
        array: Any = self
        return self._part(0) if self.dtype.kind == "c" else array

    @property
    def imag(self) -> DeviceNDArray[Any]:
        """The imaginary parts, as a view; of numbers that have none, a new array of zeros."""
        if self.dtype.kind == "c":
            return self._part(1)
        from weft.cuda._memory import copies
        from weft.cuda._memory.ordering import ordered

        array: Any = self
        with ordered([self]) as stream:
            zeros = copies.empty_like(array, stream=stream)
            copies.assign(zeros, 0, stream)
        return zeros

    def _part(self, number: int) -> DeviceNDArray[Any]:
        import numpy as np

        dtype = np.empty(0, self.dtype).real.dtype
        return self._view(self.address + number * dtype.itemsize, self.shape, self.strides, dtype)

    def swapaxes(self, axis1: int, axis2: int) -> DeviceNDArray[Element]:
        """Make a view with two dimensions exchanged.

        Parameters
        ----------
        axis1, axis2
            Two axes.

        Returns
        -------
        DeviceNDArray
            A view.

        Examples
        --------
        >>> x = cuda.to_device(np.arange(6.0).reshape(2, 3))
        >>> x.swapaxes(0, 1).shape
        (3, 2)
        """
        axes = list(range(self.ndim))
        for axis in (axis1, axis2):
            if not -self.ndim <= axis < self.ndim:
                import numpy as np

                msg = f"axis {axis} is out of bounds for array of dimension {self.ndim}"
                raise np.exceptions.AxisError(msg)
        axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
        return self.transpose(axes)

    def transpose(self, axes: Sequence[int] | None = None) -> DeviceNDArray[Element]:
        """Make a view with the dimensions in another order, reversed unless given.

        Parameters
        ----------
        *axes
            The axes in their new order, or a tuple of them.

        Returns
        -------
        DeviceNDArray
            A view.

        Examples
        --------
        >>> x = cuda.to_device(np.arange(6.0).reshape(2, 3))
        >>> x.transpose().shape
        (3, 2)
        """
        given = tuple(range(self.ndim))[::-1] if axes is None else tuple(axes)
        axes = [axis % max(self.ndim, 1) for axis in given]
        in_range = all(-self.ndim <= axis < self.ndim for axis in given)
        if not in_range or sorted(axes) != list(range(self.ndim)):
            # The same message as numba.cuda, which programs may compare.
            msg = f"invalid axes list {given}"
            raise ValueError(msg)
        shape = [self.shape[axis] for axis in axes]
        return self._view(self.address, shape, [self.strides[axis] for axis in axes])

    @property
    def T(self) -> DeviceNDArray[Element]:
        """The array with its dimensions reversed, as a view."""
        return self.transpose()

    if TYPE_CHECKING:

        @overload
        def view(self, dtype: type[Other] | np.dtype[Other]) -> DeviceNDArray[Other]: ...
        @overload
        def view(self, dtype: Any) -> DeviceNDArray[Any]: ...

    def view(self, dtype: Any) -> DeviceNDArray[Any]:
        """Make a view with the same memory read as another dtype.

        Parameters
        ----------
        dtype
            A dtype; of another size only where the last axis has no gaps.

        Returns
        -------
        DeviceNDArray
            A view.

        Examples
        --------
        >>> x = cuda.to_device(np.arange(6.0).reshape(2, 3))
        >>> x.view(np.int64).dtype
        dtype('int64')
        """
        dtype = _weft.as_dtype(dtype)
        shape, strides = list(self.shape), list(self.strides)
        if dtype.itemsize != self.itemsize:
            if not shape:
                msg = "Changing the dtype of a 0d array is only supported if the itemsize is unchanged"
                raise ValueError(msg)
            if not self.is_c_contiguous():
                msg = "To change to a dtype of a different size, the array must be C-contiguous"
                raise ValueError(msg)
            if shape[-1] * self.itemsize % dtype.itemsize:
                msg = (
                    "When changing to a larger dtype, its size must be a divisor of the total size in bytes of "
                    "the last axis of the array."
                )
                raise ValueError(msg)
            shape[-1] = shape[-1] * self.itemsize // dtype.itemsize
            strides = _weft.contiguous_strides(shape, dtype.itemsize, "C")
        return self._view(self.address, shape, strides, dtype)

    def squeeze(self, axis: int | tuple[int, ...] | None = None, stream: Any = 0) -> DeviceNDArray[Element]:
        """Make a view without dimensions of one element.

        Parameters
        ----------
        axis
            An axis of one element, a tuple of them, or None for all of these.
        stream
            The stream that copies of the view use.

        Returns
        -------
        DeviceNDArray
            A view.

        Examples
        --------
        >>> x = cuda.to_device(np.arange(6.0).reshape(2, 3))
        >>> x[:1].squeeze(0).shape
        (3,)
        """
        axes = range(self.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
        drop = {at % max(self.ndim, 1) for at in axes if axis is not None or self.shape[at] == 1}
        if any(self.shape[at] != 1 for at in drop):
            msg = "cannot select an axis to squeeze out which has size not equal to one"
            raise ValueError(msg)
        kept = [at for at in range(self.ndim) if at not in drop]
        view = self._view(self.address, [self.shape[at] for at in kept], [self.strides[at] for at in kept])
        return view.bind(stream) if stream else view

    def split(self, section: int, stream: Any = 0) -> Iterator[DeviceNDArray[Element]]:
        """Give views of ``section`` elements each; the last may have fewer.

        Parameters
        ----------
        section
            Elements of a view.
        stream
            The stream that copies of the views use.

        Returns
        -------
        iterator of DeviceNDArray
            Views.

        Raises
        ------
        ValueError
            The section is not a number of elements, or the array is not one-dimensional and contiguous.

        Examples
        --------
        >>> x = cuda.to_device(np.arange(6.0).reshape(2, 3))
        >>> [part.shape for part in cuda.to_device(np.arange(5)).split(2)]
        [(2,), (2,), (1,)]
        """
        if section < 1:
            msg = f"section, the number of elements of each part, must be at least 1, not {section}"
            raise ValueError(msg)
        if self.ndim != 1:
            msg = "only support 1d array"
            raise ValueError(msg)
        if self.strides[0] != self.itemsize:
            msg = "only support unit stride"
            raise ValueError(msg)
        for start in range(0, self.size, section):
            part = self[start : start + section]
            yield part.bind(stream) if stream else part


def integers(value: Any) -> list[int] | None:
    """Give an integer, or those of a sequence or of an array with one axis; None for what is neither."""
    # All arrays have `__index__`, but only 0-d arrays are integers.
    items = value if getattr(value, "ndim", None) != 0 and hasattr(value, "__iter__") else (value,)
    try:
        return [operator.index(item) for item in items]
    except TypeError:
        return None


def _reshaped(array: Any, shape: Sequence[int], order: str) -> Sequence[int] | None:
    """Give the strides of a view with other extents, or None if there is none."""
    if tuple(shape) == array.shape:
        strides: Sequence[int] = array.strides
        return strides
    if (array.is_c_contiguous() if order == "C" else array.is_f_contiguous()) or not array.size:
        return _weft.contiguous_strides(shape, array.itemsize, order)
    # From the fastest axis: the first in Fortran order, the last in C order.
    step = 1 if order == "F" else -1
    given = [(extent, stride) for extent, stride in zip(array.shape, array.strides, strict=True) if extent != 1][::step]
    strides = [array.itemsize] * len(shape)
    axes = list(range(len(shape)))[::step]
    at = 0
    for axis in axes:
        if shape[axis] == 1:
            continue
        # The rest of the current source axis, merged with the following axes that are contiguous with it.
        extent, stride = given[at]
        while extent % shape[axis] and at + 1 < len(given) and given[at + 1][1] == stride * extent:
            at += 1
            extent *= given[at][0]
        if extent % shape[axis]:
            return None
        strides[axis] = stride
        extent, stride = extent // shape[axis], stride * shape[axis]
        given[at] = extent, stride
        if extent == 1:
            at += 1
    return strides
