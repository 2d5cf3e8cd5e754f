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
from weft.cuda._jit import device_function, jit
from weft.cuda._memory import device_array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Self

    from weft.cuda._gufunc import GUfunc
    from weft.cuda._reduce import Reduce

# Threads in a block.
_BLOCK = 256


class Elements:
    """The kernels that call a device function for each element."""

    def __init__(self, core: Dispatcher) -> None:
        self.core = core
        self._kernels: dict[tuple[bool, tuple[tuple[int, ...], ...]], Dispatcher] = {}

    def _kernel(self, one: bool, axes: tuple[tuple[int, ...], ...]) -> Dispatcher:
        """Give the kernel over one axis or several, for arguments with these axes."""
        kernel = self._kernels.get((one, axes))
        if kernel is None:
            from weft.cuda import _ufunc_kernels

            make = _ufunc_kernels.line if one else _ufunc_kernels.grid
            kernel = self._kernels[one, axes] = make(self.core, axes)
        return kernel

    def run(self, inputs: Sequence[Any], outs: Sequence[DeviceNDArray], stream: Any, block: int) -> None:
        """Compute all elements of the results of arrays on the device that broadcast to their shape."""
        shape, count = outs[0].shape, outs[0].size
        if not count:
            return
        arrays = [operand for operand in (*inputs, *outs) if isinstance(operand, DeviceNDArray)]
        if all(array.shape == shape and array.is_c_contiguous() for array in arrays):
            axes = tuple((0,) if isinstance(operand, DeviceNDArray) else () for operand in inputs)
            if len(shape) != 1:
                inputs, outs = [_flat(operand, count) for operand in inputs], [_flat(out, count) for out in outs]
            self._kernel(True, axes)[-(-count // block), block, stream](count, tuple(inputs), tuple(outs))
            return
        extents, steps = _operands.merged(shape, [_operands.steps_of(array, shape) for array in arrays])
        if not extents:
            extents, steps = [1], [[array.itemsize] for array in arrays]
        if len(extents) > _operands.MOST_AXES:
            msg = f"arguments whose strides leave {len(extents)} axes: kernels have {_operands.MOST_AXES} at most"
            raise ValueError(msg)
        given = iter([_operands.reduced(array, extents, own) for array, own in zip(arrays, steps, strict=True)])
        found = [next(given) if isinstance(operand, DeviceNDArray) else (operand, ()) for operand in inputs]
        outs = [_operands.view(out, extents, own) for out, own in zip(outs, steps[-len(outs) :], strict=True)]
        kernel = self._kernel(len(extents) == 1, tuple(axes for _, axes in found))
        views = tuple(operand for operand, _ in found)
        if len(extents) == 1:
            kernel[-(-count // block), block, stream](count, views, tuple(outs))
            return
        columns = extents[-1]
        rows, row_steps, row_extents = _operands.outer_steps(extents[:-1])
        across = min(block, 1 << (columns - 1).bit_length())
        down = min(max(block // across, 1), 64)
        high = -(-int(rows) // down)
        deep = -(-high // 65535)
        blocks = -(-columns // across), -(-high // deep), deep
        kernel[blocks, (across, down), stream](rows, columns, row_steps, row_extents, views, tuple(outs))


def _flat(operand: Any, count: int) -> Any:
    """Give a contiguous array with one axis, or a number as it is."""
    if not isinstance(operand, DeviceNDArray):
        return operand
    return _operands.view(operand, [count], [operand.itemsize])


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


@functools.cache
def _same() -> Elements:
    from weft.cuda import _ufunc_kernels

    return Elements(_ufunc_kernels.same)


def converted(array: DeviceNDArray, dtype: np.dtype[Any], stream: Any, order: Any = None) -> DeviceNDArray:
    """Give a copy of a device array with elements of a dtype."""
    order = order or _operands.order_of([array], array.shape)
    fresh = device_array(array.shape, dtype, order=order, stream=stream)
    _same().run([array], [fresh], stream, _BLOCK)
    return fresh


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
        self, function: Callable[..., Any], signatures: Sequence[Any], identity: Any = None, block: int = _BLOCK
    ) -> None:
        self._function = device_function(function)
        self._identity = identity
        self._loops: dict[tuple[np.dtype[Any], ...], Loop] = {}
        self._known: dict[tuple[Any, ...], Loop] = {}
        self._dynamic = not signatures
        self._block = block
        self._reductions: dict[Loop, Reduce] = {}
        self._along: dict[Loop, GUfunc] = {}
        self._nin = self.py_func.__code__.co_argcount
        functools.update_wrapper(self, self.py_func)
        for given in signatures:
            signature = parse_signature(given)
            if len(signature.args) != self._nin:
                msg = f"ufunc {self.__name__} takes {_count(self._nin)}, but {signature} has {len(signature.args)}"
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
            msg = f"ufunc {self.__name__} takes {_count(self.nin)}, not {len(args)}"
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
        order = _operands.order_of(operands, shape)
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
            msg = f"ufunc {self.__name__} takes {_count(self.nin)}: `outer` is of two"
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
        given = _operands.read(array)
        if self.nin != 2 or self.nout != 1:
            msg = f"ufunc {self.__name__} is not of two arguments and one result: there is no `reduce`"
            raise ValueError(msg)
        if _operands.is_number(given) or not given.ndim:
            msg = f"ufunc {self.__name__}: `reduce` is of arrays, not of a number"
            raise TypeError(msg)
        loop = self.loop_for([given, given])
        dtype = loop.outputs[0]
        if loop.inputs != (dtype, dtype):
            msg = f"ufunc {self.__name__}: {loop.signature} cannot be reduced: what it gives is not what it takes"
            raise TypeError(msg)
        if given.dtype != dtype:
            device = isinstance(given, DeviceNDArray)
            given = converted(given, dtype, stream) if device else given.astype(dtype)
        if axis is not None and not -given.ndim <= axis < given.ndim:
            msg = f"axis {axis} is out of bounds for array of dimension {given.ndim}"
            raise np.exceptions.AxisError(msg)
        if axis is None or given.ndim == 1:
            shape = (1,) * given.ndim if keepdims else ()
            return self._total(loop, given, out, shape, initial, stream)
        axis %= given.ndim
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

    def _rows(self, loop: Loop) -> GUfunc:
        """Give what reduces the last axis, one thread a row."""
        found = self._along.get(loop)
        if found is None:
            from weft.cuda import _ufunc_kernels
            from weft.cuda._gufunc import GUfunc

            ty = loop.signature.return_type
            found = self._along[loop] = GUfunc(_ufunc_kernels.along(loop.core), [(ty[:], ty[:])], "(n)->()")
        return found


class Results:
    """The arrays that results go to, on the device, and what a call gives of them.

    On the CPU those in host memory are used where they are; on a GPU they are copied back at the end.
    """

    def __init__(
        self,
        outs: Sequence[Any],
        dtypes: Sequence[np.dtype[Any]],
        shapes: Sequence[tuple[int, ...]],
        order: Any,
        stays: bool,
        stream: Any,
    ) -> None:
        self._stream = stream
        self._scalar = not stays and all(out is None for out in outs)
        self._found: list[Any] = []
        self.arrays: list[DeviceNDArray] = []
        here = _weft.device_kind() == "cpu"
        for out, dtype, extents in zip(outs, dtypes, shapes, strict=True):
            found = out
            if found is None and stays:
                found = device_array(extents, dtype, order=order, stream=stream)
            elif found is None:
                found = np.empty(extents, dtype, order)
            self._found.append(found)
            if isinstance(found, DeviceNDArray):
                self.arrays.append(found)
            elif here and found.flags.aligned and found.dtype.isnative:
                self.arrays.append(_operands.in_place(found))
            else:
                native = found.dtype.newbyteorder("=")
                like: Any = "F" if found.flags.fnc else "C"
                self.arrays.append(device_array(found.shape, native, order=like, stream=stream))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            return
        for found, array in zip(self._found, self.arrays, strict=True):
            if isinstance(found, DeviceNDArray) or array.owner is found:
                continue
            if found.dtype == array.dtype:
                array.copy_to_host(found, self._stream)
            else:
                found[...] = array.copy_to_host(stream=self._stream)

    def given(self) -> Any:
        """Give the result, or a tuple of several."""
        found = [array[()] if self._scalar and not array.ndim else array for array in self._found]
        return found[0] if len(found) == 1 else tuple(found)


def outputs(name: str, args: Sequence[Any], nin: int, nout: int, out: Any) -> list[Any]:
    """Give the arrays for results among a call's arguments, or None for those that there are not."""
    if len(args) > nin:
        if out is not None:
            msg = "cannot specify argument 'out' as both positional and keyword"
            raise ValueError(msg)
        if len(args) > nin + nout:
            msg = f"ufunc {name} takes {_count(nin)} and arrays for {nout} results, not {len(args)}"
            raise TypeError(msg)
        out = args[nin:]
    given = list(out) if isinstance(out, tuple) else [out]
    if len(given) > nout:
        msg = f"ufunc {name} gives {nout} results, but there are {len(given)} arrays for them"
        raise ValueError(msg)
    given += [None] * (nout - len(given))
    return [array if array is None else _writable(name, array) for array in given]


def _writable(name: str, array: Any) -> Any:
    found = _operands.read(array) if hasattr(array, "__cuda_array_interface__") else array
    if not isinstance(found, (DeviceNDArray, np.ndarray)):
        msg = f"ufunc {name}: results go to arrays, not to {type(array).__name__}"
        raise TypeError(msg)
    if found.readonly if isinstance(found, DeviceNDArray) else not found.flags.writeable:
        msg = f"ufunc {name}: the array for a result is read-only"
        raise ValueError(msg)
    return found


def _count(number: int) -> str:
    return f"{number} argument{'' if number == 1 else 's'}"


def name_of(made: Any, function: Callable[..., Any]) -> str | None:
    """Give the name under which what was made of a function stands in its module, if it does."""
    found: Any = sys.modules.get(function.__module__) if function.__module__ != "__main__" else None
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    return function.__qualname__ if found is made else None
