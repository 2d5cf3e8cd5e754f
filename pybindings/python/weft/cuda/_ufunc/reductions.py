"""Ufuncs along the axes of an array and at some of its elements: `reduce`, `accumulate` and `at`.

The function must be of two values and give one of their type. Reductions apply it in any order.
"""

from __future__ import annotations

import math
import operator

import numpy as np

from weft import _weft, config
from weft.cuda._memory.device_array import DeviceNDArray
from weft.cuda._ufunc import placing
from weft.cuda._ufunc.elements import BLOCK, cast, chosen, configured, converted, flat, same
from weft.cuda._ufunc.results import Results, arguments, outputs, writable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from weft._weft import Dispatcher
    from weft.cuda._reduce import Reduce
    from weft.cuda._ufunc.gufunc import GUfunc
    from weft.cuda._ufunc.placing import Casting
    from weft.cuda._ufunc.ufunc import Loop


class Reductions:
    """The part of a ufunc that goes along axes; what it needs of the rest is declared first."""

    __name__: str
    _function: Dispatcher
    _identity: Any
    _loops: dict[tuple[np.dtype[Any], ...], Loop]
    _dynamic: bool
    _block: int

    if TYPE_CHECKING:

        @property
        def nin(self) -> int: ...
        @property
        def nout(self) -> int: ...
        def loop_for(self, operands: Sequence[Any], dtype: Any = None, casting: Casting = "same_kind") -> Loop: ...
        def _declared(self, dtype: np.dtype[Any]) -> Loop: ...
        def __call__(self, *args: Any, out: Any = None, where: Any = True, stream: Any = 0) -> Any: ...

    def __init__(self) -> None:
        self._reductions: dict[Loop, Reduce] = {}
        self._along: dict[tuple[Loop, str], GUfunc] = {}
        self._steps: dict[Loop, Dispatcher] = {}

    def reduce(
        self,
        array: Any,
        axis: int | tuple[int, ...] | None = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
        *,
        stream: Any = 0,
    ) -> Any:
        """Reduce an array along an axis, along several, or along all; the function must be associative and commutative.

        Parameters
        ----------
        array
            A NumPy or device array.
        axis
            The axis, or a tuple of axes; None for all.
        dtype
            The dtype to which the elements are converted first, and of the result.
        out
            An array for the result.
        keepdims
            Leave axes of one element.
        initial
            A value that counts as one more element.
        where
            A mask of the elements to include: booleans that broadcast to the array. A ufunc without
            an identity then needs `initial`.
        stream
            The stream to compute in.

        Returns
        -------
        number or array
            Of one axis, and of all, a number. Else a device array if the array is one, and NumPy's if not.
        """
        given, loop = self._of_two(array, "reduce", dtype, stream)
        axes = axes_of(axis, given.ndim)
        kept = [at for at in range(given.ndim) if at not in axes]
        shape = tuple(given.shape[at] for at in kept)
        left = tuple(1 if at in axes else extent for at, extent in enumerate(given.shape)) if keepdims else shape
        mask = placing.mask_of(where, self.__name__)
        start = self._start(loop.outputs[0], initial)
        if mask is not None:
            other = self._start(loop.outputs[0], None)
            if start is None:
                msg = f"ufunc {self.__name__} has no identity: pass `initial` with `where`"
                raise ValueError(msg)
            if placing.broadcast([given.shape, getattr(mask, "shape", ())], self.__name__) != given.shape:
                msg = f"ufunc {self.__name__}: `where` with shape {mask.shape} does not broadcast to {given.shape}"
                raise ValueError(msg)
            if other is not None:
                given, mask = self._only(given, mask, other, stream), None
        (own,) = outputs(self.__name__, (), 0, 1, out)
        if own is not None and own.shape != left:
            msg = f"ufunc {self.__name__}: the result has shape {left}, the array for it {own.shape}"
            raise ValueError(msg)
        if not kept and mask is None:
            return self._total(loop, given, own, left, initial, stream)
        count = math.prod(given.shape[at] for at in axes)
        if not count and start is None:
            msg = "Reduction on an empty array."
            raise TypeError(msg)
        into = None if own is None else own.squeeze(axes) if keepdims else own
        if mask is not None:
            rows = [_rows_of(each, kept, axes, shape, count, stream) for each in (given, _spread(mask, given.shape))]
            result = self._gufunc(loop, "where")(*rows, start, out=into, stream=stream)
        elif not count:
            result = self(np.full(shape, start, loop.outputs[0]), start, out=into, stream=stream)
        else:
            rows = [_rows_of(given, kept, axes, shape, count, stream)]
            whole = initial is None
            result = self._gufunc(loop, "rows")(*rows, out=into if whole else None, stream=stream)
            if not whole:
                result = self(result, start, out=into, stream=stream)
        if own is not None:
            return own
        return np.asarray(result).reshape(left)[()] if _on_host(result) else result.reshape(left)

    def _only(self, given: Any, mask: Any, other: Any, stream: Any) -> Any:
        """Give an array with a value that makes no difference where its elements do not count."""
        stays = isinstance(given, DeviceNDArray) or isinstance(mask, DeviceNDArray)
        with Results([None], [given.dtype], [given.shape], "C", stays, stream) as results:
            inputs = [placing.on_device(each, None, stream) for each in (given, mask)]
            chosen().run([*inputs, other], results.arrays, stream, BLOCK)
        return results.given()

    def _of_two(self, array: Any, what: str, dtype: Any, stream: Any) -> tuple[Any, Loop]:
        """Give an array as the dtype that a function of two of it takes and gives, and the loop."""
        given = placing.read(array)
        if self.nin != 2 or self.nout != 1:
            msg = f"ufunc {self.__name__} must have two arguments and one result for `{what}`"
            raise ValueError(msg)
        if placing.is_number(given) or not given.ndim:
            msg = f"ufunc {self.__name__}: `{what}` takes an array, not a number"
            raise TypeError(msg)
        if dtype is None:
            loop = self.loop_for([given, given])
        else:
            wanted = np.dtype(dtype)
            found = self._declared(wanted) if self._dynamic else self._loops.get((wanted, wanted))
            if found is None:
                msg = f"ufunc {self.__name__}: no loop takes and returns {wanted}, the `dtype` of `{what}`"
                raise TypeError(msg)
            loop = found
        of = loop.outputs[0]
        if loop.inputs != (of, of):
            msg = f"ufunc {self.__name__}: {loop.signature} cannot be reduced: its result and argument types differ"
            raise TypeError(msg)
        return given if given.dtype == of else cast(given, of, stream), loop

    def _start(self, dtype: np.dtype[Any], initial: Any) -> Any:
        """Give what a reduction starts from: what is given, or what makes no difference; None if neither is known."""
        known = self._identity if initial is None and self._identity in (0, 1) else initial
        return None if known is None else np.array(known, dtype)[()]

    def _total(self, loop: Loop, given: Any, out: Any, shape: tuple[int, ...], initial: Any, stream: Any) -> Any:
        """Reduce all elements."""
        from weft.cuda._reduce import Reduce

        start = self._start(loop.outputs[0], initial)
        if given.size:
            if given.ndim > 1:
                dense = isinstance(given, np.ndarray) or given.is_c_contiguous()
                given = (given if dense else converted(given, given.dtype, stream, "C")).reshape(given.size)
            if loop not in self._reductions:
                self._reductions[loop] = Reduce(self._function)
            first = given.dtype.type(0) if start is None else start
            result = self._reductions[loop].run(given, first, initial is not None, None, stream)
        elif start is None:
            msg = "Reduction on an empty array."
            raise TypeError(msg)
        else:
            result = start
        if out is None:
            return np.full(shape, result)[()]
        out[...] = result
        return out

    def _gufunc(self, loop: Loop, way: Literal["rows", "running", "where"]) -> GUfunc:
        """Give what reduces the last axis, gives each step of that, or reduces those of its elements that count."""
        found = self._along.get((loop, way))
        if found is None:
            from weft.cuda._ufunc import kernels
            from weft.cuda._ufunc.gufunc import GUfunc
            from weft.cuda._ufunc.rows import RowReduction

            ty = loop.signature.return_type
            if way == "rows":
                found = RowReduction(loop.core, ty)
            elif way == "running":
                found = GUfunc(kernels.running(loop.core), [(ty[:], ty[:])], "(n)->(n)")
            else:
                args = (ty[:], _weft.from_dtype(np.dtype(np.bool_))[:], ty, ty[:])
                found = GUfunc(kernels.along_where(loop.core), [args], "(n),(n),()->()")
            self._along[loop, way] = found
        return found

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None, *, stream: Any = 0) -> Any:
        """Give what each element and all before it along an axis make, one thread a row.

        Parameters
        ----------
        array
            A NumPy or device array.
        axis
            The axis.
        dtype
            The dtype to which the elements are converted first, and of the result.
        out
            An array for the result, of the same shape.
        stream
            The stream to compute in.
        """
        given, loop = self._of_two(array, "accumulate", dtype, stream)
        axis = _axis(axis, given.ndim)
        if not given.shape[axis]:
            return self._empty(given, out)
        axes = [at for at in range(given.ndim) if at != axis]
        back = [axes.index(at) if at != axis else given.ndim - 1 for at in range(given.ndim)]
        (own,) = outputs(self.__name__, (), 0, 1, out)
        result = self._gufunc(loop, "running")(
            given.transpose([*axes, axis]), out=None if own is None else own.transpose([*axes, axis]), stream=stream
        )
        return result.transpose(back) if own is None else own

    @staticmethod
    def _empty(given: Any, out: Any) -> Any:
        return given if out is None else out

    def at(self, array: Any, indices: Any, *values: Any, stream: Any = 0) -> None:
        """Change elements of an array in place: one that is named several times, as many times, in that order.

        Parameters
        ----------
        array
            A NumPy or device array.
        indices
            The elements, as any index that NumPy accepts. Copied to the host.
        values
            The second argument of a ufunc of two, which broadcasts to the elements.
        stream
            The stream to compute in.
        """
        if self.nin - 1 != len(values) or self.nin > 2 or self.nout != 1:
            takes, got = arguments(self.nin), arguments(1 + len(values))
            msg = f"ufunc {self.__name__} takes {takes} and gives {self.nout}: `at` got {got}"
            raise TypeError(msg)
        given = writable(self.__name__, array)
        # Sort the updates by element; a stable sort keeps their order for each element.
        numbers = np.arange(given.size).reshape(given.shape)[_host(indices)]
        order = np.argsort(numbers, axis=None, kind="stable")
        places, bounds = np.unique(np.ravel(numbers)[order], return_index=True)
        second = [placing.read(value) for value in values]
        loop = self.loop_for([given, *second])
        if not np.can_cast(loop.outputs[0], given.dtype, "same_kind"):
            msg = f"ufunc {self.__name__}: {given.dtype} cannot hold the result, which is {loop.outputs[0]}"
            raise TypeError(msg)
        if not places.size:
            return
        if loop not in self._steps:
            from weft.cuda._ufunc import kernels

            self._steps[loop] = kernels.sequential_updates(loop.core, self.nin == 1)
        spread = [
            value if placing.is_number(value) else np.ravel(np.broadcast_to(_host(value), np.shape(numbers)))
            for value in second
        ]
        lists = [placing.on_device(each, None, stream) for each in (places, np.append(bounds, order.size), order)]
        dtypes = loop.inputs[1:]
        moved = [placing.on_device(value, dtype, stream) for value, dtype in zip(spread, dtypes, strict=True)]
        # The kernel needs a flat array: copy an array that is not contiguous.
        array = placing.on_device(given, None, stream)
        work = array if array.is_c_contiguous() else converted(array, array.dtype, stream, "C")
        kernel = configured(self._steps[loop], -(-places.size // self._block), self._block, stream)
        kernel(places.size, flat(work, work.size), *lists, *(moved or [0]))
        if work is not array:
            same().run([work], [array], stream, self._block)
        if isinstance(given, np.ndarray) and array.owner is not given:
            given[...] = array.copy_to_host(stream=stream)


def _axis(axis: Any, ndim: int) -> int:
    number: int = operator.index(axis)
    if not -ndim <= number < ndim:
        msg = f"axis {number} is out of bounds for array of dimension {ndim}"
        raise np.exceptions.AxisError(msg)
    return number % ndim


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Give the numbers of the axes that an argument names, in their order."""
    if axis is None:
        return tuple(range(ndim))
    axes = sorted(_axis(each, ndim) for each in (axis if isinstance(axis, tuple) else (axis,)))
    if len(set(axes)) < len(axes):
        msg = "duplicate value in 'axis'"
        raise ValueError(msg)
    return tuple(axes)


def _on_host(value: Any) -> bool:
    return not isinstance(value, DeviceNDArray)


def _spread(mask: Any, shape: tuple[int, ...]) -> Any:
    """Give a mask with the shape of the array that it is of."""
    if _on_host(mask):
        return np.broadcast_to(mask, shape)
    return placing.view(mask, shape, placing.strides_of(mask, shape))


def _rows_of(
    array: Any, kept: Sequence[int], axes: Sequence[int], shape: tuple[int, ...], count: int, stream: Any
) -> Any:
    """Give an array whose last axis is all of those that are reduced."""
    moved = array.transpose([*kept, *axes])
    if config.REPRODUCIBLE and isinstance(moved, np.ndarray):
        # The CPU also copies, like a GPU: the order of a reduction depends on the strides.
        moved = np.ascontiguousarray(moved)
    if len(axes) == 1:
        return moved
    if isinstance(moved, DeviceNDArray) and not moved.is_c_contiguous():
        moved = converted(moved, moved.dtype, stream, "C")
    return moved.reshape((*shape, count))


def _host(value: Any) -> Any:
    """Give arrays of an index, or a value, on the host."""
    if isinstance(value, tuple):
        return tuple(map(_host, value))
    found = placing.read(value) if placing.is_foreign(value) else value
    return found.copy_to_host() if isinstance(found, DeviceNDArray) else found
