"""Ufuncs: a function of numbers over arrays, as NumPy's, on the device.

A ufunc has loops, one for each signature; a call takes the first one that NumPy would. Its arguments are broadcast;
what is in host memory goes to the device, and the result comes back unless an argument was on the device.
"""

from __future__ import annotations

import functools
import sys

import numpy as np

from weft import _weft
from weft._weft import Dispatcher, Signature, Type, parse_signature
from weft.cuda._jit import device_function, jit
from weft.cuda._memory.device_array import DeviceNDArray
from weft.cuda._ufunc import placing
from weft.cuda._ufunc.elements import BLOCK, Elements, cast, converted
from weft.cuda._ufunc.reductions import Reductions
from weft.cuda._ufunc.results import Results, arguments, outputs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from weft.cuda._ufunc.placing import Casting


class Loop(Elements):
    """A ufunc's function for one signature."""

    def __init__(self, function: Dispatcher, args: tuple[Type, ...], returns: Type | None) -> None:
        name = function.__name__
        declared = returns is not None
        returns = function.result_type(args) if returns is None else returns
        if returns is None or returns == Type("none"):
            msg = f"ufunc {name} does not return a number for ({', '.join(map(str, args))})"
            raise TypeError(msg)
        results = _items(returns)
        self.inputs = tuple(_dtype(ty, name) for ty in args)
        self.outputs = tuple(_dtype(ty, name) for ty in results)
        self.signature = Signature(returns, args)
        super().__init__(jit([self.signature], device=True, inline=True)(function))
        if declared:
            self.core.result_type(args)  # report errors now, as for kernels with signatures


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
        msg = f"ufunc {name} takes and returns numbers, not {ty}"
        raise TypeError(msg) from None


class Ufunc(Reductions):
    """A function over the elements of arrays, on the device; what `weft.vectorize` makes.

    Parameters
    ----------
    *args
        NumPy arrays, device arrays, objects that convert to NumPy arrays, and numbers; after them, arrays for
        the results.
    out
        An array for the result, or a tuple of them.
    where
        A mask of the elements to compute, as booleans that broadcast with the arguments. Other elements of `out` are
        unchanged; those of a new array are undefined.
    dtype
        The dtype of the results: selects a signature with this result; the arguments are converted as `casting` allows.
    casting
        The casting rule, as in NumPy: for arguments with a `dtype`, and for results in the arrays of `out`.
    order
        The order of a new array in memory: ``"C"``, ``"F"``, or that of the arguments, ``"K"`` and ``"A"``.
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
        self._of_dtypes: dict[np.dtype[Any], Loop] = {}
        self._known: dict[Any, Loop] = {}
        self._dynamic = not signatures
        self._block = block
        super().__init__()
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

    # --- Attributes ---

    @property
    def nin(self) -> int:
        """How many arguments it takes."""
        return self._nin

    @property
    def nout(self) -> int:
        """The number of results; 1 for a ufunc without signatures that was not called yet."""
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
        """The `identity` argument of `vectorize`."""
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
            msg = f"a block must have at least one thread, not {threads}"
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

    def loop_for(self, operands: Sequence[Any], dtype: Any = None, casting: Casting = "same_kind") -> Loop:
        """Give the loop for arguments: the first that takes them as they are, or as NumPy's ufuncs would convert them.

        Else, as in Numba, numbers become what the arrays need, if only one loop takes those arrays. With a dtype, one
        whose results have it.
        """
        types = tuple(type(operand) if type(operand) in placing.WEAK else operand.dtype for operand in operands)
        loop = self._known.get((types, dtype, casting))
        if loop is None:
            found = self._choose(operands, casting) if dtype is None else self._giving(operands, dtype, casting)
            loop = self._known[types, dtype, casting] = found
        return loop

    def _choose(self, operands: Sequence[Any], casting: Casting) -> Loop:
        dtypes = tuple(placing.dtype_of(operand) for operand in operands)
        if dtypes in self._loops:
            return self._loops[dtypes]
        if self._dynamic:
            return self._add(tuple(_weft.from_dtype(dtype) for dtype in dtypes), None)
        # Without a dtype, NumPy converts arguments by safe casts only, whatever `casting` allows for the results.
        narrow: Casting = casting if casting in ("no", "equiv") else "safe"
        pairs = [(loop, list(zip(operands, loop.inputs, strict=True))) for loop in self._loops.values()]
        for loop, pair in pairs:
            if all(placing.fits(operand, dtype, narrow) for operand, dtype in pair):
                return loop
        arrays = [number for number, operand in enumerate(operands) if not placing.is_number(operand)]
        some = [loop for loop, _ in pairs if all(dtypes[number] == loop.inputs[number] for number in arrays)]
        if len(some) == 1 and 0 < len(arrays) < len(operands) and narrow == "safe":
            return some[0]
        what = "more than one loop takes" if arrays and len(some) > 1 else "no loop takes"
        raise self._no_loop(what, operands)

    def _giving(self, operands: Sequence[Any], dtype: np.dtype[Any], casting: Casting) -> Loop:
        """Give the loop with results of a dtype which converts the arguments least."""
        every = [self._declared(dtype)] if self._dynamic else self._loops.values()
        loops = [loop for loop in every if set(loop.outputs) == {dtype}]
        for rule in placing.CASTINGS[: placing.CASTINGS.index(casting) + 1]:
            for loop in loops:
                pairs = zip(operands, loop.inputs, strict=True)
                if all(placing.fits(operand, of, rule) for operand, of in pairs):
                    return loop
        raise self._no_loop(f"no loop with results of {dtype} takes", operands, f" with casting={casting!r}")

    def _declared(self, dtype: np.dtype[Any]) -> Loop:
        """Give the loop from a dtype to itself of a ufunc without signatures, which no other call takes."""
        found = self._of_dtypes.get(dtype)
        if found is None:
            ty = _weft.from_dtype(dtype)
            args = (ty,) * self.nin
            results = len(Loop(self._function, args, None).outputs)
            found = Loop(self._function, args, ty if results == 1 else Type.make_tuple([ty] * results))
            self._of_dtypes[dtype] = found
        return found

    def _no_loop(self, what: str, operands: Sequence[Any], rule: str = "") -> TypeError:
        given = ", ".join(placing.shown(operand) for operand in operands)
        loops = ", ".join(str(loop.signature) for loop in self._loops.values())
        return TypeError(
            f"ufunc {self.__name__}: {what} ({given}){rule}; there are {loops}. Arguments are only converted "
            "without loss: use `astype`, or give numbers a dtype"
        )

    def __call__(
        self,
        *args: Any,
        out: Any = None,
        where: Any = True,
        dtype: Any = None,
        casting: Any = "same_kind",
        order: Any = "K",
        stream: Any = 0,
    ) -> Any:
        """Compute; see the class."""
        casting = placing.checked(casting)
        operands = [placing.read(arg) for arg in args[: self.nin]]
        if len(operands) < self.nin:
            msg = f"ufunc {self.__name__} takes {arguments(self.nin)}, not {len(args)}"
            raise TypeError(msg)
        if order not in ("K", "A", "C", "F"):
            msg = f"ufunc {self.__name__}: order must be 'K', 'A', 'C' or 'F', not {order!r}"
            raise ValueError(msg)
        loop = self.loop_for(operands, None if dtype is None else np.dtype(dtype), casting)
        outs = outputs(self.__name__, args, self.nin, len(loop.outputs), out)
        given = [array for array in outs if array is not None]
        mask = placing.mask_of(where, self.__name__)
        masks = [] if mask is None else [mask]
        every = (*operands, *given, *masks)
        shape = placing.broadcast([getattr(operand, "shape", ()) for operand in every], self.__name__)
        for number, (array, of) in enumerate(zip(outs, loop.outputs, strict=True), 1):
            if array is not None:
                self._check_result(number, array, of, shape, casting)
        if order in ("K", "A"):
            order = placing.order_of(operands, shape) if len(given) < len(outs) else "C"
        stays = any(isinstance(array, DeviceNDArray) for array in every)
        with Results(outs, loop.outputs, [shape] * len(outs), order, stays, stream, bool(masks)) as results:
            inputs = [
                placing.on_device(self._as(operand, of, stream), of, stream)
                for operand, of in zip(operands, loop.inputs, strict=True)
            ]
            inputs += [placing.on_device(mask, np.dtype(np.bool_), stream) for mask in masks]
            for place, array in enumerate(inputs):
                if given and any(placing.clash(array, result) for result in results.arrays):
                    inputs[place] = converted(array, array.dtype, stream)
            loop.run(inputs, results.arrays, stream, self._block, bool(masks))
        return results.given()

    @staticmethod
    def _as(operand: Any, dtype: np.dtype[Any], stream: Any) -> Any:
        """Convert an argument with a loss, where the loop takes no other; the kernels convert without one."""
        return operand if placing.fits(operand, dtype) else cast(operand, dtype, stream)

    def _check_result(
        self, number: int, array: Any, dtype: np.dtype[Any], shape: tuple[int, ...], casting: Casting
    ) -> None:
        if array.shape != shape:
            msg = f"ufunc {self.__name__}: result {number} has shape {shape}, the array for it {array.shape}"
            raise ValueError(msg)
        # A store of a complex number to a real array would store its real part.
        if not np.can_cast(dtype, array.dtype, casting) or (dtype.kind == "c" and array.dtype.kind != "c"):
            msg = f"ufunc {self.__name__}: result {number} is {dtype}, which an array of {array.dtype} cannot hold"
            raise TypeError(msg)

    def outer(self, a: Any, b: Any, **keywords: Any) -> Any:
        """Compute for all pairs of elements. The shape of the result is the shape of `a`, then that of `b`."""
        if self.nin != 2:
            msg = f"ufunc {self.__name__} takes {arguments(self.nin)}: `outer` needs two"
            raise ValueError(msg)
        first, second = placing.read(a), placing.read(b)
        if not placing.is_number(first) and not placing.is_number(second):
            extents, steps = [*first.shape, *[1] * second.ndim], [*first.strides, *[0] * second.ndim]
            host = isinstance(first, np.ndarray)
            first = first.reshape(extents) if host else placing.view(first, extents, steps)
        return self(first, second, **keywords)


def name_of(made: Any, function: Callable[..., Any]) -> str | None:
    """Return the name under which a function's module holds the object made of it, if it does."""
    found: Any = sys.modules.get(function.__module__) if function.__module__ != "__main__" else None
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    return function.__qualname__ if found is made else None
