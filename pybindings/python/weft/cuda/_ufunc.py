"""Ufuncs: a function of numbers over arrays, as NumPy's, on the device.

A ufunc has loops, one for each signature; a call takes the first one that NumPy would. Its arguments are broadcast;
what is in host memory goes to the device, and the result comes back unless an argument was on the device.
"""

from __future__ import annotations

import functools
import sys
import warnings

import numpy as np

from weft import _weft
from weft._weft import Dispatcher, Signature, Type, parse_signature
from weft.cuda import _operands
from weft.cuda._device_array import DeviceNDArray
from weft.cuda._elements import BLOCK, Elements, configured, converted, flat, same
from weft.cuda._jit import device_function, jit
from weft.cuda._results import Results, arguments, outputs, writable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from weft.cuda._gufunc import GUfunc
    from weft.cuda._reduce import Reduce


class Loop(Elements):
    """A ufunc's function for one signature."""

    def __init__(self, function: Dispatcher, args: tuple[Type, ...], returns: Type | None) -> None:
        name = function.__name__
        declared = returns is not None
        returns = function.result_type(args) if returns is None else returns
        if returns is None or returns == Type("none"):
            msg = f"ufunc {name} gives no number for ({', '.join(map(str, args))})"
            raise TypeError(msg)
        results = _items(returns)
        self.inputs = tuple(_dtype(ty, name) for ty in args)
        self.outputs = tuple(_dtype(ty, name) for ty in results)
        self.signature = Signature(returns, args)
        super().__init__(jit([self.signature], device=True, inline=True)(function))
        if declared:
            self.core.result_type(args)  # What is wrong with the function is said now, as of kernels with signatures.


def _items(ty: Type) -> list[Type]:
    """Give the types of several results, or of the one."""
    try:
        return list(ty.types)
    except AttributeError:
        return [ty]


def _dtype(ty: Type, name: str) -> np.dtype[Any]:
    try:
        return _weft.as_dtype(ty)
    except (TypeError, ValueError, NotImplementedError):
        msg = f"ufunc {name} takes and gives numbers, not {ty}"
        raise TypeError(msg) from None


class Ufunc:
    """A function over the elements of arrays, on the device; what `weft.vectorize` makes.

    Parameters
    ----------
    *args
        NumPy arrays, device arrays, what becomes a NumPy array, and numbers, which broadcast; behind them, arrays for
        the results.
    out
        An array for the result, or a tuple of them.
    stream
        The stream to copy and compute in.

    Returns
    -------
    array, number, or tuple of them
        The arrays given for the results; else device arrays if an argument is one, and NumPy's if none is. Of numbers
        alone a number.
    """

    __name__: str

    def __init__(
        self, function: Callable[..., Any], signatures: Sequence[Any], identity: Any = None, block: int = BLOCK
    ) -> None:
        self._function = device_function(function)
        self._identity = identity
        self._loops: dict[tuple[np.dtype[Any], ...], Loop] = {}
        self._known: dict[tuple[Any, ...], Loop] = {}
        self._dynamic = not signatures
        self._block = block
        self._reductions: dict[Loop, Reduce] = {}
        self._along: dict[tuple[Loop, bool], GUfunc] = {}
        self._steps: dict[Loop, Dispatcher] = {}
        self._nin = self.py_func.__code__.co_argcount
        functools.update_wrapper(self, self.py_func)
        for given in signatures:
            signature = parse_signature(given)
            if len(signature.args) != self._nin:
                msg = f"ufunc {self.__name__} takes {arguments(self._nin)}, but {signature} has {len(signature.args)}"
                raise TypeError(msg)
            returns = signature.return_type
            self._add(signature.args, None if returns == Type("none") else returns)

    def _add(self, args: tuple[Type, ...], returns: Type | None) -> Loop:
        loop = Loop(self._function, args, returns)
        first = next(iter(self._loops.values()), loop)
        if len(loop.outputs) != len(first.outputs):
            msg = f"ufunc {self.__name__} gives {len(first.outputs)} and {len(loop.outputs)} results"
            raise TypeError(msg)
        return self._loops.setdefault(loop.inputs, loop)

    # --- What it is ---

    @property
    def nin(self) -> int:
        """How many arguments it takes."""
        return self._nin

    @property
    def nout(self) -> int:
        """How many results it gives; of one without signatures that was not called yet, 1."""
        return next((len(loop.outputs) for loop in self._loops.values()), 1)

    @property
    def nargs(self) -> int:
        """Arguments and results."""
        return self.nin + self.nout

    @property
    def types(self) -> list[str]:
        """The loops as NumPy writes them: ``["ff->f"]``."""

        def chars(dtypes: Sequence[np.dtype[Any]]) -> str:
            return "".join(dtype.char for dtype in dtypes)

        return [f"{chars(loop.inputs)}->{chars(loop.outputs)}" for loop in self._loops.values()]

    @property
    def ntypes(self) -> int:
        """How many loops there are."""
        return len(self._loops)

    @property
    def identity(self) -> Any:
        """What `vectorize` was given."""
        return self._identity

    @property
    def signature(self) -> None:
        """None: its function is of numbers."""

    @property
    def max_blocksize(self) -> int:
        """The most threads of a block."""
        return self._block

    @max_blocksize.setter
    def max_blocksize(self, threads: int) -> None:
        if not threads >= 1:
            msg = f"a block has one thread at least, not {threads}"
            raise ValueError(msg)
        self._block = min(threads, 1024)

    @property
    def py_func(self) -> Callable[..., Any]:
        """The Python function."""
        found: Callable[..., Any] = self._function.py_func
        return found

    def __repr__(self) -> str:
        return f"<weft ufunc {self.__name__}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        loops = [] if self._dynamic else [loop.signature for loop in self._loops.values()]
        return name_of(self, self.py_func) or (Ufunc, (self._function, loops, self._identity, self._block))

    # --- Calls ---

    def loop_for(self, operands: Sequence[Any]) -> Loop:
        """Give the loop for arguments: the first that takes them as they are, or as NumPy's ufuncs would convert them.

        Else, as in Numba, numbers become what the arrays need, if only one loop takes those arrays.
        """
        key = tuple(type(operand) if type(operand) in _operands.WEAK else operand.dtype for operand in operands)
        loop = self._known.get(key)
        if loop is None:
            loop = self._known[key] = self._choose(operands)
        return loop

    def _choose(self, operands: Sequence[Any]) -> Loop:
        dtypes = tuple(_operands.dtype_of(operand) for operand in operands)
        if dtypes in self._loops:
            return self._loops[dtypes]
        if self._dynamic:
            return self._add(tuple(_weft.from_dtype(dtype) for dtype in dtypes), None)
        pairs = [(loop, list(zip(operands, loop.inputs, strict=True))) for loop in self._loops.values()]
        for loop, pair in pairs:
            if all(_operands.fits(operand, dtype) for operand, dtype in pair):
                return loop
        some = [
            loop
            for loop, pair in pairs
            if all(operand.dtype == dtype for operand, dtype in pair if not _operands.is_number(operand))
        ]
        if len(some) == 1 and any(map(_operands.is_number, operands)):
            return some[0]
        given = ", ".join(_operands.shown(operand) for operand in operands)
        what = "more than one loop takes" if len(some) > 1 else "no loop takes"
        loops = ", ".join(str(loop.signature) for loop in self._loops.values())
        msg = (
            f"ufunc {self.__name__}: {what} ({given}); there are {loops}. Arguments are not converted with a loss: "
            "use `astype`, or give numbers a dtype"
        )
        raise TypeError(msg)

    def __call__(self, *args: Any, out: Any = None, stream: Any = 0, **unknown: Any) -> Any:
        """Compute; see the class."""
        if unknown:
            warnings.warn(f"unrecognized keywords: {', '.join(unknown)}", stacklevel=2)
        operands = [_operands.read(arg) for arg in args[: self.nin]]
        if len(operands) < self.nin:
            msg = f"ufunc {self.__name__} takes {arguments(self.nin)}, not {len(args)}"
            raise TypeError(msg)
        loop = self.loop_for(operands)
        outs = outputs(self.__name__, args, self.nin, len(loop.outputs), out)
        given = [array for array in outs if array is not None]
        shape = _operands.broadcast([getattr(operand, "shape", ()) for operand in (*operands, *given)], self.__name__)
        for number, (array, dtype) in enumerate(zip(outs, loop.outputs, strict=True), 1):
            if array is None:
                continue
            if array.shape != shape:
                msg = f"ufunc {self.__name__}: result {number} has shape {shape}, the array for it {array.shape}"
                raise ValueError(msg)
            if not np.can_cast(dtype, array.dtype, "same_kind"):
                msg = (
                    f"ufunc {self.__name__}: result {number} is {dtype}, which an array of {array.dtype} does not hold"
                )
                raise TypeError(msg)
        order = _operands.order_of(operands, shape) if len(given) < len(outs) else "C"
        stays = any(isinstance(array, DeviceNDArray) for array in (*operands, *given))
        with Results(outs, loop.outputs, [shape] * len(outs), order, stays, stream) as results:
            inputs = [
                _operands.on_device(operand, dtype, stream)
                for operand, dtype in zip(operands, loop.inputs, strict=True)
            ]
            for place, array in enumerate(inputs):
                if given and any(_operands.clash(array, result) for result in results.arrays):
                    inputs[place] = converted(array, array.dtype, stream)
            loop.run(inputs, results.arrays, stream, self._block)
        return results.given()

    def outer(self, a: Any, b: Any, **keywords: Any) -> Any:
        """Compute for all pairs of elements: a result of the shape of one behind that of the other."""
        if self.nin != 2:
            msg = f"ufunc {self.__name__} takes {arguments(self.nin)}: `outer` is of two"
            raise ValueError(msg)
        first, second = _operands.read(a), _operands.read(b)
        if not _operands.is_number(first) and not _operands.is_number(second):
            extents, steps = [*first.shape, *[1] * second.ndim], [*first.strides, *[0] * second.ndim]
            host = isinstance(first, np.ndarray)
            first = first.reshape(extents) if host else _operands.view(first, extents, steps)
        return self(first, second, **keywords)

    def reduce(
        self,
        array: Any,
        axis: int | None = 0,
        *,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        stream: Any = 0,
    ) -> Any:
        """Reduce an array along an axis, or along all; the function must be associative and commutative.

        Parameters
        ----------
        array
            A NumPy or device array.
        axis
            The axis; None for all.
        out
            An array for the result.
        keepdims
            Leave an axis of one element.
        initial
            A value that counts as one more element.
        stream
            The stream to compute in.

        Returns
        -------
        number or array
            Of one axis, and of all, a number. Else a device array if the array is one, and NumPy's if not.
        """
        given, loop = self._of_two(array, "reduce", stream)
        dtype = loop.outputs[0]
        if axis is not None:
            axis = _axis(axis, given.ndim)
        if axis is None or given.ndim == 1:
            shape = (1,) * given.ndim if keepdims else ()
            return self._total(loop, given, out, shape, initial, stream)
        shape = tuple(extent for at, extent in enumerate(given.shape) if at != axis)
        start = self._start(dtype, initial)
        if not given.shape[axis] and start is None:
            msg = "Reduction on an empty array."
            raise TypeError(msg)
        axes = [at for at in range(given.ndim) if at != axis]
        if given.shape[axis]:
            whole = initial is None
            result = self._rows(loop)(given.transpose([*axes, axis]), out=out if whole else None, stream=stream)
            if not whole:
                result = self(result, start, out=out, stream=stream)
        else:
            result = self(np.full(shape, start, dtype), start, out=out, stream=stream)
        return result.reshape([*shape[:axis], 1, *shape[axis:]]) if keepdims else result

    def _of_two(self, array: Any, what: str, stream: Any) -> tuple[Any, Loop]:
        """Give an array as the dtype that a function of two of it takes and gives, and the loop."""
        given = _operands.read(array)
        if self.nin != 2 or self.nout != 1:
            msg = f"ufunc {self.__name__} is not of two arguments and one result: there is no `{what}`"
            raise ValueError(msg)
        if _operands.is_number(given) or not given.ndim:
            msg = f"ufunc {self.__name__}: `{what}` is of arrays, not of a number"
            raise TypeError(msg)
        loop = self.loop_for([given, given])
        dtype = loop.outputs[0]
        if loop.inputs != (dtype, dtype):
            msg = f"ufunc {self.__name__}: {loop.signature} cannot be reduced: what it gives is not what it takes"
            raise TypeError(msg)
        if given.dtype != dtype:
            device = isinstance(given, DeviceNDArray)
            given = converted(given, dtype, stream) if device else given.astype(dtype)
        return given, loop

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
            return np.full(shape, result)[()] if not shape else np.full(shape, result)
        (array,) = outputs(self.__name__, (), 0, 1, out)
        array[...] = result
        return array

    def _rows(self, loop: Loop, running: bool = False) -> GUfunc:
        """Give what reduces the last axis, or gives each step of that."""
        found = self._along.get((loop, running))
        if found is None:
            from weft.cuda import _ufunc_kernels
            from weft.cuda._gufunc import GUfunc
            from weft.cuda._rows import RowReduction

            ty = loop.signature.return_type
            if running:
                found = GUfunc(_ufunc_kernels.running(loop.core), [(ty[:], ty[:])], "(n)->(n)")
            else:
                found = RowReduction(loop.core, ty)
            self._along[loop, running] = found
        return found

    def accumulate(self, array: Any, axis: int = 0, *, out: Any = None, stream: Any = 0) -> Any:
        """Give what each element and all before it along an axis make, one thread a row.

        Parameters
        ----------
        array
            A NumPy or device array.
        axis
            The axis.
        out
            An array for the result, of the same shape.
        stream
            The stream to compute in.
        """
        given, loop = self._of_two(array, "accumulate", stream)
        axis = _axis(axis, given.ndim)
        if not given.shape[axis]:
            return self._empty(given, out)
        axes = [at for at in range(given.ndim) if at != axis]
        back = [axes.index(at) if at != axis else given.ndim - 1 for at in range(given.ndim)]
        (own,) = outputs(self.__name__, (), 0, 1, out)
        result = self._rows(loop, running=True)(
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
            Which elements: whatever NumPy takes as an index. Brought to the host.
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
        # Elements by their numbers, those of one together, in the order in which they are named.
        numbers = np.arange(given.size).reshape(given.shape)[_host(indices)]
        order = np.argsort(numbers, axis=None, kind="stable")
        places, bounds = np.unique(np.ravel(numbers)[order], return_index=True)
        second = [_operands.read(value) for value in values]
        loop = self.loop_for([given, *second])
        if not np.can_cast(loop.outputs[0], given.dtype, "same_kind"):
            msg = f"ufunc {self.__name__}: {given.dtype} does not hold the result, which is {loop.outputs[0]}"
            raise TypeError(msg)
        if not places.size:
            return
        if loop not in self._steps:
            from weft.cuda import _ufunc_kernels

            self._steps[loop] = _ufunc_kernels.steps(loop.core, self.nin == 1)
        spread = [
            value if _operands.is_number(value) else np.ravel(np.broadcast_to(_host(value), np.shape(numbers)))
            for value in second
        ]
        lists = [_operands.on_device(each, None, stream) for each in (places, np.append(bounds, order.size), order)]
        dtypes = loop.inputs[1:]
        moved = [_operands.on_device(value, dtype, stream) for value, dtype in zip(spread, dtypes, strict=True)]
        # The kernel sees one axis: where there is none in memory, that of a copy.
        array = _operands.on_device(given, None, stream)
        work = array if array.is_c_contiguous() else converted(array, array.dtype, stream, "C")
        kernel = configured(self._steps[loop], -(-places.size // self._block), self._block, stream)
        kernel(places.size, flat(work, work.size), *lists, *(moved or [0]))
        if work is not array:
            same().run([work], [array], stream, self._block)
        if isinstance(given, np.ndarray) and array.owner is not given:
            given[...] = array.copy_to_host(stream=stream)


def _axis(axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        msg = f"axis {axis} is out of bounds for array of dimension {ndim}"
        raise np.exceptions.AxisError(msg)
    return axis % ndim


def _host(value: Any) -> Any:
    """Give arrays of an index, or a value, on the host."""
    if isinstance(value, tuple):
        return tuple(map(_host, value))
    found = _operands.read(value) if hasattr(value, "__cuda_array_interface__") else value
    return found.copy_to_host() if isinstance(found, DeviceNDArray) else found


def name_of(made: Any, function: Callable[..., Any]) -> str | None:
    """Give the name under which what was made of a function stands in its module, if it does."""
    found: Any = sys.modules.get(function.__module__) if function.__module__ != "__main__" else None
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    return function.__qualname__ if found is made else None
