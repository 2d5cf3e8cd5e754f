"""The operators and reductions of device arrays, with NumPy's meaning, computed on the device.

Modules that compute are imported at their first use. All results are device arrays, without axes for full reductions,
so that nothing waits for the device until the number is wanted. Only where `numba.cuda` is weft (`totals_are_numbers`)
they are NumPy's numbers: numba's device arrays have no reductions, and NumPy's functions copy them to the host.
"""

from __future__ import annotations

from weft import _weft
from weft.cuda._memory.generic import Array, Element

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import numpy as np

    from weft.cuda._memory.device_array import DeviceNDArray


# Whether reductions of all elements return NumPy scalars.
_numbers = False


def totals_are_numbers(on: bool) -> None:
    """Have reductions of all elements be NumPy's numbers on the host, or device arrays without axes."""
    global _numbers
    _numbers = on


def total(found: Any, out: Any) -> Any:
    """Give what a reduction returns. While a graph is recorded there is no number yet."""
    on_device = isinstance(found, Operators) and not found.ndim
    if not (_numbers and on_device and out is None) or _weft.is_recording():
        return found
    return found.copy_to_host()[()]


def _binary(name: str, reflected: bool = False) -> Callable[[Any, Any], DeviceNDArray[Any]]:
    def operate(self: Any, other: Any) -> Any:
        return _apply(name, other, self) if reflected else _apply(name, self, other)

    return operate


def _comparison(name: str) -> Callable[[Any, Any], Any]:
    return _binary(name)


def _in_place(name: str) -> Callable[[Any, Any], Any]:
    def operate(self: Any, other: Any) -> Any:
        return _apply(name, self, other, out=self)

    return operate


def _unary(name: str) -> Callable[[Any], DeviceNDArray[Any]]:
    def operate(self: Any) -> Any:
        return _apply(name, self)

    return operate


def _apply(name: str, *operands: Any, out: Any = None) -> Any:
    """Call one of NumPy's ufuncs by its name on the device, if all operands are some of its."""
    import numpy as np

    from weft.cuda._ufunc import numpy_ufuncs

    # For strings, every object is an operand: otherwise it would compare as unequal without an error.
    of_texts = any(getattr(operand, "dtype", np.dtype(bool)).kind in "SU" for operand in operands)
    if not of_texts and not all(map(numpy_ufuncs.is_operand, operands)):
        return NotImplemented
    return numpy_ufuncs.on_device(getattr(np, name))(*operands, out=out)


class Operators(Array[Element]):
    """Operators, NumPy's ufuncs of device arrays, and reductions."""

    __add__, __radd__, __iadd__ = _binary("add"), _binary("add", True), _in_place("add")
    __sub__, __rsub__, __isub__ = _binary("subtract"), _binary("subtract", True), _in_place("subtract")
    __mul__, __rmul__, __imul__ = _binary("multiply"), _binary("multiply", True), _in_place("multiply")
    __truediv__, __rtruediv__, __itruediv__ = (
        _binary("true_divide"), _binary("true_divide", True), _in_place("true_divide")
    )  # fmt: skip
    __floordiv__, __rfloordiv__, __ifloordiv__ = (
        _binary("floor_divide"), _binary("floor_divide", True), _in_place("floor_divide")
    )  # fmt: skip
    __mod__, __rmod__, __imod__ = _binary("remainder"), _binary("remainder", True), _in_place("remainder")
    __divmod__, __rdivmod__ = _binary("divmod"), _binary("divmod", True)
    __and__, __rand__, __iand__ = _binary("bitwise_and"), _binary("bitwise_and", True), _in_place("bitwise_and")
    __or__, __ror__, __ior__ = _binary("bitwise_or"), _binary("bitwise_or", True), _in_place("bitwise_or")
    __xor__, __rxor__, __ixor__ = _binary("bitwise_xor"), _binary("bitwise_xor", True), _in_place("bitwise_xor")
    __lshift__, __rlshift__, __ilshift__ = (
        _binary("left_shift"), _binary("left_shift", True), _in_place("left_shift")
    )  # fmt: skip
    __rshift__, __rrshift__, __irshift__ = (
        _binary("right_shift"), _binary("right_shift", True), _in_place("right_shift")
    )  # fmt: skip
    # Typed as Any, because `object` declares bool results.
    __eq__, __ne__ = _comparison("equal"), _comparison("not_equal")
    __lt__, __le__, __gt__, __ge__ = (
        _binary("less"), _binary("less_equal"), _binary("greater"), _binary("greater_equal")
    )  # fmt: skip
    __neg__, __pos__, __invert__, __abs__ = (
        _unary("negative"), _unary("positive"), _unary("invert"), _unary("absolute")
    )  # fmt: skip
    # As for NumPy arrays: an object with an elementwise `==` is not hashable.
    __hash__ = None  # type: ignore[assignment]

    def __pow__(self, other: Any) -> Any:
        return _power(self, other)

    def __ipow__(self, other: Any) -> Any:
        return _power(self, other, out=self)

    __rpow__ = _binary("power", True)

    def __matmul__(self, other: Any) -> Any:
        return _matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _matmul(other, self)

    def __imatmul__(self, other: Any) -> Any:
        return _matmul(self, other, out=self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Compute what NumPy's ufuncs are called for with a device array, on the device.

        Raises
        ------
        TypeError
            Kernels do not know the ufunc, the method or the dtypes: it is never computed on the host instead.
        """
        from weft.cuda._ufunc.numpy_ufuncs import dispatch

        return dispatch(ufunc, method, inputs, keywords)

    # --- Conversions to numbers ---

    def __bool__(self) -> bool:
        if self.size > 1:
            msg = "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
            raise ValueError(msg)
        if not self.size:
            msg = "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that it is not empty."
            raise ValueError(msg)
        return bool(self.item())

    def _number(self) -> Any:
        if self.ndim:
            msg = "only 0-dimensional arrays can be converted to Python scalars"
            raise TypeError(msg)
        return self.item()

    def __int__(self) -> int:
        return int(self._number())

    def __float__(self) -> float:
        return float(self._number())

    def __complex__(self) -> complex:
        return complex(self._number())

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":
            msg = "only integer scalar arrays can be converted to a scalar index"
            raise TypeError(msg)
        index: int = self.item()
        return index

    def __str__(self) -> str:
        # As in NumPy, format the number of a 0-d array; other arrays are not copied to the host.
        if self.ndim or self.dtype.names is not None or _weft.is_recording():
            return repr(self)
        return str(self.copy_to_host()[()])

    def __format__(self, spec: str) -> str:
        # As in NumPy, use the method of the Python number.
        if self.ndim or self.dtype.names is not None or _weft.is_recording():
            return super().__format__(spec)
        return format(self.item(), spec)

    def __contains__(self, value: Any) -> bool:
        found = self == value
        return bool(found.any()) if isinstance(found, Operators) else bool(found)

    # --- Reductions ---

    def sum(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None,
        where: Any = True,
    ) -> DeviceNDArray[Any]:  # fmt: skip
        """Add up elements along axes: integers of fewer bits as 64 bits, float16 as float32; in any order.

        Parameters
        ----------
        axis
            An axis, a tuple of them, or None for all: the result is a device array without axes then.
        dtype
            The dtype to which the elements are converted first, and of the result.
        out
            An array for the result.
        keepdims
            Leave axes of one element.
        initial
            A value that counts as one more element.
        where
            A mask of the elements to include: booleans that broadcast to the array.
        """
        return _reduce("add", self, axis, dtype, out, keepdims, initial, where)

    def prod(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None,
        where: Any = True,
    ) -> DeviceNDArray[Any]:  # fmt: skip
        """Multiply elements along axes; see `sum`.

        Parameters
        ----------
        axis
            An axis, a tuple of them, or None for all.
        dtype
            The type that is computed in, and of the result.
        out
            A device array for the result.
        keepdims
            Keep the axes, with one element each.
        initial
            The initial value of the result.
        where
            A mask of the elements that count, of the host or a device.

        Returns
        -------
        DeviceNDArray
            The shape and location of the result are as for `sum`.

        Examples
        --------
        >>> x = cuda.to_device(np.arange(6.0).reshape(2, 3))
        >>> print(x.prod(axis=0).copy_to_host())
        [ 0.  4. 10.]
        """
        return _reduce("multiply", self, axis, dtype, out, keepdims, initial, where)

    def min(
        self, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
    ) -> DeviceNDArray[Element]:
        """Give the smallest elements along axes, NaN where one is; see `sum`. With `where`, `initial` must be given.

        Parameters
        ----------
        axis
            An axis, a tuple of them, or None for all.
        out
            A device array for the result.
        keepdims
            Keep the axes, with one element each.
        initial
            The initial value of the result.
        where
            A mask of the elements that count, of the host or a device.

        Returns
        -------
        DeviceNDArray
            A view of one element, without axes, where all are reduced.

        Examples
        --------
        >>> x = cuda.to_device(np.arange(6.0).reshape(2, 3))
        >>> print(x.min(axis=1).copy_to_host())
        [0. 3.]
        """
        return _reduce("minimum", self, axis, None, out, keepdims, initial, where)

    def max(
        self, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
    ) -> DeviceNDArray[Element]:
        """Give the largest elements along axes, NaN where one is; see `min`.

        Parameters
        ----------
        axis
            An axis, a tuple of them, or None for all.
        out
            A device array for the result.
        keepdims
            Keep the axes, with one element each.
        initial
            The initial value of the result.
        where
            A mask of the elements that count, of the host or a device.

        Returns
        -------
        DeviceNDArray
            A view of one element, without axes, where all are reduced.

        Examples
        --------
        >>> x = cuda.to_device(np.arange(6.0).reshape(2, 3))
        >>> print(x.max(axis=0).copy_to_host())
        [3. 4. 5.]
        """
        return _reduce("maximum", self, axis, None, out, keepdims, initial, where)

    def any(
        self, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True
    ) -> DeviceNDArray[np.bool_]:
        """Give whether elements along axes are true, one at least; see `sum`.

        Parameters
        ----------
        axis
            An axis, a tuple of them, or None for all.
        out
            A device array for the result.
        keepdims
            Keep the axes, with one element each.
        where
            A mask of the elements that count, of the host or a device.

        Returns
        -------
        DeviceNDArray
            Of bools.

        Examples
        --------
        >>> x = cuda.to_device(np.arange(6.0).reshape(2, 3))
        >>> print(x.any(axis=0).copy_to_host())
        [ True  True  True]
        """
        return _reduce("logical_or", self, axis, None, out, keepdims, None, where)

    def all(
        self, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True
    ) -> DeviceNDArray[np.bool_]:
        """Give whether all elements along axes are true; see `sum`.

        Parameters
        ----------
        axis
            An axis, a tuple of them, or None for all.
        out
            A device array for the result.
        keepdims
            Keep the axes, with one element each.
        where
            A mask of the elements that count, of the host or a device.

        Returns
        -------
        DeviceNDArray
            Of bools.

        Examples
        --------
        >>> x = cuda.to_device(np.arange(6.0).reshape(2, 3))
        >>> print(x.all(axis=0).copy_to_host())
        [False  True  True]
        """
        return _reduce("logical_and", self, axis, None, out, keepdims, None, where)

    def mean(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True
    ) -> DeviceNDArray[Any]:
        """Give the means along axes; of integers as float64, of no elements NaN. See `sum`.

        Parameters
        ----------
        axis
            An axis, a tuple of them, or None for all.
        dtype
            The type that is computed in, and of the result.
        out
            A device array for the result.
        keepdims
            Keep the axes, with one element each.
        where
            A mask of the elements that count, of the host or a device.

        Returns
        -------
        DeviceNDArray
            The shape and location of the result are as for `sum`.

        Examples
        --------
        >>> x = cuda.to_device(np.arange(6.0).reshape(2, 3))
        >>> print(x.mean(axis=1).copy_to_host())
        [1. 4.]
        """
        from weft.cuda._ufunc import statistics

        found: DeviceNDArray[Any] = total(statistics.mean(self, axis, dtype, out, keepdims, where), out)
        return found

    def var(
        self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False, *,
        where: Any = True,
    ) -> DeviceNDArray[Any]:  # fmt: skip
        """Give the variances along axes: means of squared distances from the mean, by the count less `ddof`.

        Parameters
        ----------
        axis
            An axis, a tuple of them, or None for all.
        dtype
            The type that is computed in, and of the result.
        out
            A device array for the result.
        keepdims
            Keep the axes, with one element each.
        ddof
            The divisor is the number of elements minus this.
        where
            A mask of the elements that count, of the host or a device.

        Returns
        -------
        DeviceNDArray
            The shape and location of the result are as for `sum`.

        Examples
        --------
        >>> x = cuda.to_device(np.arange(6.0).reshape(2, 3))
        >>> print(x.var(axis=0).copy_to_host())
        [2.25 2.25 2.25]
        """
        from weft.cuda._ufunc import statistics

        found: DeviceNDArray[Any] = total(statistics.var(self, axis, dtype, out, ddof, keepdims, where), out)
        return found

    def std(
        self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False, *,
        where: Any = True,
    ) -> DeviceNDArray[Any]:  # fmt: skip
        """Give the standard deviations along axes: the roots of `var`.

        Parameters
        ----------
        axis
            An axis, a tuple of them, or None for all.
        dtype
            The type that is computed in, and of the result.
        out
            A device array for the result.
        keepdims
            Keep the axes, with one element each.
        ddof
            The divisor is the number of elements minus this.
        where
            A mask of the elements that count, of the host or a device.

        Returns
        -------
        DeviceNDArray
            The shape and location of the result are as for `sum`.

        Examples
        --------
        >>> x = cuda.to_device(np.arange(6.0).reshape(2, 3))
        >>> print(x.std(axis=0).copy_to_host())
        [1.5 1.5 1.5]
        """
        from weft.cuda._ufunc import statistics

        found: DeviceNDArray[Any] = total(statistics.var(self, axis, dtype, out, ddof, keepdims, where, root=True), out)
        return found

    def argmin(self, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> DeviceNDArray[np.int64]:
        """Give where the first of the smallest elements along an axis is, or the first NaN; None: of all in C order.

        Parameters
        ----------
        axis
            An axis, or None for the array as one row.
        out
            A device array for the result.
        keepdims
            Keep the axes, with one element each.

        Returns
        -------
        DeviceNDArray
            Of int64.

        Examples
        --------
        >>> x = cuda.to_device(np.arange(6.0).reshape(2, 3))
        >>> print(x.argmin(axis=1).copy_to_host())
        [0 0]
        """
        from weft.cuda._ufunc import statistics

        found: DeviceNDArray[Any] = total(statistics.arg_extreme("minimum", self, axis, out, keepdims), out)
        return found

    def argmax(self, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> DeviceNDArray[np.int64]:
        """Give where the first of the largest elements along an axis is; see `argmin`.

        Parameters
        ----------
        axis
            An axis, or None for the array as one row.
        out
            A device array for the result.
        keepdims
            Keep the axes, with one element each.

        Returns
        -------
        DeviceNDArray
            Of int64.

        Examples
        --------
        >>> x = cuda.to_device(np.arange(6.0).reshape(2, 3))
        >>> print(x.argmax(axis=1).copy_to_host())
        [2 2]
        """
        from weft.cuda._ufunc import statistics

        found: DeviceNDArray[Any] = total(statistics.arg_extreme("maximum", self, axis, out, keepdims), out)
        return found


def _reduce(
    name: str, array: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, initial: Any, where: Any
) -> DeviceNDArray[Any]:
    import numpy as np

    from weft.cuda._ufunc.numpy_ufuncs import on_device

    if initial is getattr(np, "_NoValue", None):
        initial = None
    found = on_device(getattr(np, name)).reduce(array, axis, dtype, out, bool(keepdims), initial, where)
    given: DeviceNDArray[Any] = total(found, out)
    return given


def _power(array: Any, exponent: Any, out: Any = None) -> Any:
    """Raise to a power; as in NumPy's operator, 2 and 0.5 are a square and a root."""
    if type(exponent) in (int, float) and array.dtype.kind in "iufc":
        if exponent == 2 and (type(exponent) is int or array.dtype.kind in "fc"):
            return _apply("square", array, out=out)
        if exponent == 0.5 and array.dtype.kind in "fc":
            return _apply("sqrt", array, out=out)
    return _apply("power", array, exponent, out=out)


def _matmul(a: Any, b: Any, out: Any = None) -> Any:
    from weft.cuda._ufunc.matmul import matmul
    from weft.cuda._ufunc.numpy_ufuncs import is_operand

    if not (is_operand(a) and is_operand(b)):
        return NotImplemented
    return matmul(a, b, out=out)
