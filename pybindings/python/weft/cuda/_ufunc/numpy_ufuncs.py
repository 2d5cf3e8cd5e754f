"""NumPy's ufuncs of device arrays: the operators of device arrays, and what `np.add(a, b)` and its methods are of them.

NumPy itself says which dtypes a call computes in (`ufunc.resolve_dtypes`): those of NEP 50, in which a number of
Python's has no dtype. Kernels call the function of the same name that kernels know.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from weft import _weft
from weft.cuda._memory import copies, observed
from weft.cuda._memory.device_array import DeviceNDArray
from weft.cuda._memory.making import device_array, to_device
from weft.cuda._memory.operators import total
from weft.cuda._memory.ordering import ordered
from weft.cuda._ufunc import placing
from weft.cuda._ufunc.results import outputs
from weft.cuda._ufunc.ufunc import Loop, Ufunc
from weft.errors import WeftError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from weft.cuda._ufunc.placing import Casting

# Ufuncs whose reductions may be reordered.
_ASSOCIATIVE = frozenset({
    np.add, np.multiply, np.minimum, np.maximum, np.fmin, np.fmax, np.logical_and, np.logical_or, np.logical_xor,
    np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.gcd, np.lcm, np.logaddexp, np.logaddexp2, np.hypot,
})  # fmt: skip
_LOGICAL = frozenset({np.logical_and, np.logical_or, np.logical_xor})
_COMPARISONS = frozenset({np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal})

# Not supported for float16: kernels would compute in float32, in which adjacent numbers differ.
_OF_32_BITS = frozenset({np.nextafter, np.spacing})

# NumPy accumulates sums and products of this dtype with an avoidable loss of precision.
_HALF = np.dtype(np.float16)


def _without(name: str, what: str) -> TypeError:
    return TypeError(f"np.{name} of device arrays: {what}. Copy the arrays to the host first (`copy_to_host()`)")


def _function(ufunc: np.ufunc) -> Any:
    """Make the function of numbers that a kernel calls."""
    if ufunc.nin == 1:

        def of_one(a):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
            return ufunc(a)

        of_one.__name__ = ufunc.__name__
        return of_one

    def of_two(a, b):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return ufunc(a, b)

    of_two.__name__ = ufunc.__name__
    return of_two


class NumpyUfunc(Ufunc):
    """One of NumPy's ufuncs on the device. Results are device arrays, of full reductions, too: without axes."""

    def __init__(self, ufunc: np.ufunc) -> None:
        super().__init__(_function(ufunc), (), ufunc.identity)
        self._numpy = ufunc
        self._of_all: dict[tuple[np.dtype[Any], ...], Loop] = {}

    @property
    def nout(self) -> int:
        """The number of results."""
        return self._numpy.nout

    def __repr__(self) -> str:
        return f"<{self._numpy!r} on the device>"

    def __reduce__(self) -> tuple[Any, ...]:
        return on_device, (self._numpy,)

    # --- Loops ---

    def _resolved(self, operands: Sequence[Any], dtype: Any, casting: Casting) -> Loop:
        weak = (int, float, complex)
        given = [type(each) if type(each) in weak else placing.dtype_of(each) for each in operands]
        for found in given:
            if (isinstance(found, np.dtype) and found.kind in "SUOmM") or getattr(found, "names", None):
                raise _without(self.__name__, f"it is not implemented for {found}")
        asked: dict[str, Any] = {} if dtype is None else {"signature": (*[None] * self.nin, *[dtype] * self.nout)}
        dtypes: tuple[Any, ...] = self._numpy.resolve_dtypes((*given, *[None] * self.nout), casting=casting, **asked)
        return self._compiled(dtypes)

    def _compiled(self, dtypes: tuple[np.dtype[Any], ...]) -> Loop:
        loop = self._of_all.get(dtypes)
        if loop is None:
            try:
                if self._numpy in _OF_32_BITS and _HALF in dtypes:
                    raise TypeError
                types = [_weft.from_dtype(dtype) for dtype in dtypes]
                args, results = tuple(types[: self.nin]), types[self.nin :]
                returns = results[0] if len(results) == 1 else _weft.Type.make_tuple(results)
                loop = Loop(self._function, args, returns)
            except (WeftError, TypeError, ValueError, NotImplementedError):
                names = ", ".join(map(str, dtypes[: self.nin]))
                raise _without(self.__name__, f"it is not implemented for ({names})") from None
            self._of_all[dtypes] = loop
        return loop

    def _choose(self, operands: Sequence[Any], casting: Casting) -> Loop:
        return self._resolved(operands, None, casting)

    def _giving(self, operands: Sequence[Any], dtype: np.dtype[Any], casting: Casting) -> Loop:
        return self._resolved(operands, dtype, casting)

    # --- Calls ---

    def __call__(self, *args: Any, out: Any = None, where: Any = True, stream: Any = 0, **keywords: Any) -> Any:
        """Compute; see `Ufunc`. The stream is that of the arrays unless it is given."""
        operands = list(args)
        for number, operand in enumerate(operands):
            if isinstance(operand, (list, tuple)):
                operands[number] = np.asarray(operand)
        outs = out if isinstance(out, tuple) else (out,)
        if self._numpy in _COMPARISONS:
            operands = _in_range(operands)
        elif self._numpy is np.power and len(operands) >= 2 and type(operands[1]) is int and operands[1] < 0:
            kinds = [placing.dtype_of(placing.read(operand)).kind for operand in operands[:2]]
            if all(kind in "biu" for kind in kinds):
                msg = "Integers to negative integer powers are not allowed."
                raise ValueError(msg)
        with ordered([*outs, *operands, where], stream) as chosen:
            operands = [copies.aligned(operand, chosen) for operand in operands]
            compute = functools.partial(super().__call__, *operands, out=out, where=where, stream=chosen, **keywords)
            if observed.operator is None or where is not True:
                return compute()
            return observed.operator(self._numpy.__name__, operands, out, {}, chosen, compute)

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
        """Reduce along an axis, along several, or along all (None); see `Reductions.reduce`.

        The result is computed in NumPy's dtype: small integers are added and multiplied as 64 bits, float16 as float32.
        """
        compute = functools.partial(self._reduce, array, axis, dtype, out, keepdims, initial, where, stream)
        if observed.operator is None or self._numpy is not np.add or where is not True or initial is not None:
            return compute()
        options = {"axis": axis, "keepdims": keepdims}
        return observed.operator("sum", [array], out, options, stream, compute)

    def _reduce(
        self, array: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, initial: Any, where: Any, stream: Any
    ) -> Any:
        if self._numpy not in _ASSOCIATIVE:
            raise _without(
                self.__name__, "its reduction depends on the order of the elements, which is not fixed on a device"
            )
        (own,) = outputs(self.__name__, (), 0, 1, out)
        with ordered([own, array, where], stream) as chosen:
            given = copies.aligned(placing.read(array), chosen)
            result_dtype, wide = self._dtypes_of_sum(given, dtype)
            if not given.ndim:
                if axis not in (None, 0, -1, ()):
                    msg = f"axis {axis} is out of bounds for array of dimension 0"
                    raise np.exceptions.AxisError(msg)
                axis = ()
            # The kernel converts the elements while it reads them.
            whole = axis is None and where is True and isinstance(given, DeviceNDArray) and given.size
            if given.dtype != wide and not (whole and self._numpy not in _LOGICAL):
                given = _as(given, wide, chosen)
            if axis == ():
                result = given.copy(stream=chosen) if initial is None and where is True else self._of_each(
                    given, initial, where, wide, chosen
                )  # fmt: skip
            else:
                result = self._reduced(given, axis, wide, keepdims, initial, where, chosen)
            if own is None:
                return result if result.dtype == result_dtype else _as(result, result_dtype, chosen)
            if own.shape != result.shape:
                msg = f"ufunc {self.__name__}: the result has shape {result.shape}, the array for it {own.shape}"
                raise ValueError(msg)
            if not np.can_cast(result_dtype, own.dtype, "same_kind"):
                msg = f"ufunc {self.__name__}: the result is {result_dtype}, which an array of {own.dtype} cannot hold"
                raise TypeError(msg)
            if isinstance(own, DeviceNDArray):
                copies.convert(result, own, chosen)
            else:
                own[...] = result.copy_to_host(stream=chosen)
            return out[0] if isinstance(out, tuple) else out

    def _of_each(self, given: Any, initial: Any, where: Any, dtype: np.dtype[Any], stream: Any) -> Any:
        """Reduce along no axis: each element with the initial value."""
        start = self._start(dtype, initial)
        if start is None:
            msg = f"reduction operation {self.__name__!r} does not have an identity: pass `initial`"
            raise ValueError(msg)
        result = device_array(given.shape, dtype, stream=stream)
        copies.assign(result, start, stream)
        return self(result, given, out=result, where=where, stream=stream)

    def _reduced(
        self, given: Any, axis: Any, dtype: np.dtype[Any], keepdims: bool, initial: Any, where: Any, stream: Any
    ) -> Any:
        from weft.cuda._ufunc.reductions import axes_of

        axes = axes_of(axis, given.ndim)
        kept = tuple(1 if at in axes else extent for at, extent in enumerate(given.shape))
        shape = kept if keepdims else tuple(extent for at, extent in enumerate(given.shape) if at not in axes)
        count = math.prod(given.shape[at] for at in axes)
        start = self._start(dtype, initial)
        if not given.size:
            if not count and start is None:
                msg = f"zero-size array to reduction operation {self.__name__} which has no identity"
                raise ValueError(msg)
            result = device_array(shape, dtype, stream=stream)
            if start is not None:
                copies.assign(result, start, stream)
            return result
        if where is not True and start is None:
            msg = (
                f"reduction operation {self.__name__!r} does not have an identity, so to use a where mask one has to "
                "specify 'initial'"
            )
            raise ValueError(msg)
        if where is True and count == given.size:
            return self._all(given, shape, start if initial is not None else None, stream, dtype)
        result = super().reduce(given, axis, dtype, None, True, initial, where, stream=stream)
        result = result if isinstance(result, DeviceNDArray) else to_device(np.asarray(result), stream)
        return result.reshape(shape)

    def _all(
        self, given: DeviceNDArray, shape: tuple[int, ...], initial: Any, stream: Any, dtype: Any = None
    ) -> DeviceNDArray:
        """Reduce all elements, in any order, without waiting for the result."""
        from weft.cuda._reduce import Reduce

        if not given.is_c_contiguous():
            given = given.transpose() if given.is_f_contiguous() else copies.compact(given, "K", stream)
        line = placing.view(given, [given.size], [given.itemsize])
        dtype = given.dtype if dtype is None else dtype
        out = device_array(shape, dtype, stream=stream)
        loop = self._compiled((dtype,) * 3)
        if loop not in self._reductions:
            self._reductions[loop] = Reduce(self._function)
        first = np.zeros((), dtype)[()] if initial is None else initial
        into = placing.view(out, [1], [out.itemsize])
        self._reductions[loop].run(line, first, initial is not None, into, stream, dtype)
        return out

    def _total(self, loop: Loop, given: Any, out: Any, shape: tuple[int, ...], initial: Any, stream: Any) -> Any:
        """Reduce all elements, for `Reductions.reduce`, which has no array for the result here."""
        del loop, out
        start = None if initial is None else self._start(given.dtype, initial)
        return self._all(placing.on_device(given, given.dtype, stream), shape, start, stream)

    def _dtypes_of_sum(self, given: Any, dtype: Any) -> tuple[np.dtype[Any], np.dtype[Any]]:
        """Give the dtype of a reduction's result, and the one that it is computed in."""
        found = given.dtype if dtype is None else np.dtype(dtype)
        if self._numpy not in _LOGICAL and not np.can_cast(given.dtype, found, "same_kind"):
            msg = (
                f"Cannot cast ufunc {self.__name__!r} input from {given.dtype} to {found} with casting rule 'same_kind'"
            )
            raise TypeError(msg)
        if self._numpy in _LOGICAL:
            found = np.dtype(np.bool_)
        elif dtype is None and self._numpy in (np.add, np.multiply) and found.kind in "biu" and found.itemsize < 8:
            found = np.dtype(np.uint64 if found.kind == "u" else np.int64)
        loop = self._resolved([np.empty(0, found)] * 2, None, "safe")
        if loop.outputs[0] != loop.inputs[0]:
            raise _without(self.__name__, f"{found} cannot be reduced: its result and argument types differ")
        found = loop.outputs[0]
        return found, np.dtype(np.float32) if found == _HALF and self._numpy in (np.add, np.multiply) else found

    def _of_two(self, array: Any, what: str, dtype: Any, stream: Any) -> tuple[Any, Loop]:
        if self.nin != 2 or self.nout != 1:
            msg = f"{what} only supported for binary functions"
            raise ValueError(msg)
        given = placing.read(array)
        found, _ = self._dtypes_of_sum(given, dtype)
        if given.dtype != found:
            given = _as(given, found, stream)
        return given, self._compiled((found,) * 3)

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None, *, stream: Any = 0) -> Any:
        """Give what each element and all before it along an axis make; see `Reductions.accumulate`."""
        (own,) = outputs(self.__name__, (), 0, 1, out)
        with ordered([own, array], stream) as chosen:
            given = copies.aligned(placing.read(array), chosen)
            if not given.ndim:
                msg = "cannot accumulate on a scalar"
                raise TypeError(msg)
            if isinstance(axis, tuple):
                (axis,) = axis
            if not given.size:
                found = device_array(given.shape, self._dtypes_of_sum(given, dtype)[0], stream=chosen)
                return found if out is None else self._first(out)
            result = super().accumulate(given, axis, dtype, None, stream=chosen)
            if own is None:
                return result
            if isinstance(own, DeviceNDArray):
                copies.assign(own, result, chosen)
            else:
                own[...] = result.copy_to_host(stream=chosen)
            return self._first(out)

    @staticmethod
    def _first(out: Any) -> Any:
        return out[0] if isinstance(out, tuple) else out

    def at(self, array: Any, indices: Any, *values: Any, stream: Any = 0) -> None:
        """Change elements in place, one that is named several times as many times; see `Reductions.at`."""
        operands = [np.asarray(each) if isinstance(each, (list, tuple)) else each for each in values]
        with ordered([array, *operands], stream) as chosen:
            super().at(array, indices, *operands, stream=chosen)

    def outer(self, a: Any, b: Any, **keywords: Any) -> Any:
        """Compute for all pairs of elements; see `Ufunc.outer`."""
        operands = [np.asarray(each) if isinstance(each, (list, tuple)) else each for each in (a, b)]
        outs = keywords.get("out")
        outs = outs if isinstance(outs, tuple) else (outs,)
        with ordered([*outs, *operands], keywords.pop("stream", 0)) as chosen:
            return super().outer(*operands, stream=chosen, **keywords)


def _as(array: Any, dtype: np.dtype[Any], stream: Any) -> Any:
    """Give an array as another dtype: a device array on the device."""
    if not isinstance(array, DeviceNDArray):
        return array.astype(dtype)
    fresh = copies.empty_like(array, dtype, stream=stream)
    copies.convert(array, fresh, stream)
    return fresh


def _in_range(operands: Sequence[Any]) -> list[Any]:
    """Give operands of a comparison in which a Python integer beyond the other's dtype is an infinite float.

    As in NumPy, such comparisons have a result, and no overflow.
    """
    found = list(operands)
    for number in (0, 1) if len(found) >= 2 else ():
        value, other = found[number], found[1 - number]
        if type(value) is not int or type(other) is int:
            continue
        dtype = placing.dtype_of(placing.read(other))
        if dtype.kind in "iu" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
            found[number] = math.copysign(math.inf, value)
    return found


@functools.cache
def on_device(ufunc: np.ufunc) -> NumpyUfunc:
    """Give the device's form of one of NumPy's ufuncs.

    Raises
    ------
    TypeError
        There is none.
    """
    if ufunc.signature is not None or ufunc.nin > 2 or not hasattr(np, ufunc.__name__):
        raise _without(ufunc.__name__, "it is not implemented")
    return NumpyUfunc(ufunc)


def is_operand(value: Any) -> bool:
    """Whether a value is an operand of the operators of device arrays."""
    return isinstance(
        value, (DeviceNDArray, np.ndarray, np.generic, bool, int, float, complex, list, tuple)
    ) or hasattr(value, "__cuda_array_interface__")


def dispatch(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Implement `__array_ufunc__`: call one of NumPy's ufuncs, or one of its methods, with device arrays."""
    outs = keywords.get("out", ())
    if not all(is_operand(value) for value in inputs if value is not None) or not all(
        out is None or is_operand(out) for out in outs
    ):
        return NotImplemented
    keywords = {name: value for name, value in keywords.items() if not (name == "subok" and value)}
    if ufunc is np.matmul and method == "__call__":
        from weft.cuda._ufunc.matmul import matmul

        return matmul(*inputs, **keywords)
    found = on_device(ufunc)
    if method == "reduceat":
        raise _without(ufunc.__name__, "`reduceat` is not implemented")
    for name in keywords:
        known = {"out", "where", "dtype", "casting", "order", "axis", "keepdims", "initial"}
        if name not in known:
            raise _without(ufunc.__name__, f"it does not support the keyword {name!r}")
    if method == "reduce" and keywords.get("initial") is np._NoValue:
        del keywords["initial"]
    if method == "reduce":
        return total(found.reduce(*inputs, **keywords), next(iter(outs), None))
    call = found if method == "__call__" else getattr(found, method)
    return call(*inputs, **keywords)
