"""Generalized ufuncs: a function of whole arrays, called for each of many along the axes before theirs.

A layout such as `(m,n),(n)->(m)` says which axes, the last ones, the function sees. It writes its results into arrays
that it is given; a number is an array of one element there.
"""

from __future__ import annotations

import functools
import re

import numpy as np

from weft import _weft
from weft._weft import Dispatcher, Type, parse_signature
from weft.cuda._jit import device_function
from weft.cuda._memory.device_array import DeviceNDArray
from weft.cuda._ufunc import placing
from weft.cuda._ufunc.elements import cast, converted
from weft.cuda._ufunc.results import Results, outputs
from weft.cuda._ufunc.ufunc import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from weft.cuda._ufunc.placing import Casting

# Threads per block: each thread runs one call, which may need many registers.
_BLOCK = 128

_TOKEN = re.compile(r"\s*(?:(\w+)|(\(|\)|,)|(\S))")


def parse_layout(text: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Read a layout: the names of the axes of each argument, and of each result."""
    before, arrow, behind = text.partition("->")
    if not arrow:
        msg = f"a layout needs `->` between arguments and results, as in '(m,n),(n)->(m)'; not {text!r}"
        raise ValueError(msg)
    inputs, outs = list(_groups(before)), list(_groups(behind))
    known = {name for group in inputs for name in group}
    unknown = sorted({name for group in outs for name in group if not name.isdigit()} - known)
    if unknown:
        msg = f"undefined output symbols: {','.join(unknown)}"
        raise NameError(msg)
    if not outs:
        msg = f"a layout needs at least one result, as in '(n)->()'; not {text!r}"
        raise ValueError(msg)
    return inputs, outs


def _groups(text: str) -> list[tuple[str, ...]]:
    groups: list[tuple[str, ...]] = []
    inside: list[str] | None = None
    for name, mark, other in _TOKEN.findall(text):
        misplaced = inside is None if name or mark == ")" else mark == "(" and inside is not None
        if other or misplaced:
            msg = f'bad token in signature "{name or mark or other}"'
            raise ValueError(msg)
        if mark == "(":
            inside = []
        elif mark == ")" and inside is not None:
            groups.append(tuple(inside))
            inside = None
        elif name and inside is not None:
            inside.append(name)
    if inside is not None:
        msg = f"a bracket of the layout is not closed: {text!r}"
        raise ValueError(msg)
    return groups


class Loop:
    """One signature: dtypes of arguments and results, and which of those without axes are arrays of one element."""

    def __init__(self, inputs: Sequence[Any], outs: Sequence[Any], single: Sequence[bool], shown: str) -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outs)
        self.single = tuple(single)
        self.shown = shown


class GUfunc:
    """A function of arrays over the axes before theirs, on the device; what `weft.guvectorize` makes.

    Parameters
    ----------
    *args
        NumPy arrays, device arrays, what becomes a NumPy array, and numbers: their last axes are those of the layout,
        the others broadcast; after them, arrays for the results.
    out
        An array for the result, or a tuple of them.
    dtype
        The dtype of the results: selects a signature with this result.
    casting
        The casting rule for the arguments, as in NumPy. Device arrays lose no precision unless it is ``"unsafe"``.
    stream
        The stream to copy and compute in.

    Returns
    -------
    array, number, or tuple of them
        The arrays given for the results; else device arrays if an argument is one, and NumPy's if none is.
    """

    __name__: str

    def __init__(
        self, function: Callable[..., Any], signatures: Sequence[Any], layout: str, identity: Any = None
    ) -> None:
        self._layout = layout
        self._identity = identity
        self._inputs, self._outputs = parse_layout(layout)
        self._core = device_function(function)
        self._signatures = list(signatures)
        self._loops: dict[tuple[np.dtype[Any], ...], Loop] = {}
        self.max_blocksize = _BLOCK
        functools.update_wrapper(self, self.py_func)
        self._check_count(self.py_func.__code__.co_argcount, "the function")
        for given in signatures:
            self._add(given)

    def _check_count(self, count: int, of: str) -> None:
        if count != self.nin + self.nout:
            msg = f"gufunc {self.__name__}: {of} has {count} arguments, the layout {self._layout!r} has {self.nargs}"
            raise TypeError(msg)

    def _add(self, given: Any) -> None:
        signature = parse_signature(given)
        if signature.return_type != Type("none"):
            msg = (
                f"guvectorized functions cannot return values: signature {given} specifies {signature.return_type} "
                "return type"
            )
            raise TypeError(msg)
        self._check_count(len(signature.args), f"the signature {given}")
        dtypes, single = [], []
        for number, (ty, axes) in enumerate(zip(signature.args, [*self._inputs, *self._outputs], strict=True), 1):
            ndim = getattr(ty, "ndim", None)
            if ndim is None and axes:
                msg = f"gufunc signature mismatch: ndim>0 for scalar: argument {number} of {self.__name__}"
                raise ValueError(msg)
            if ndim is not None and ndim != (len(axes) or 1):
                msg = (
                    f"gufunc {self.__name__}: argument {number} has {len(axes)} axes in the layout, and {ndim} in the "
                    "signature"
                )
                raise ValueError(msg)
            if ndim is None and number > self.nin:
                msg = (
                    f"gufunc {self.__name__}: result {number - self.nin} is a number: write `{ty}[:]`, and assign "
                    "to its element 0"
                )
                raise TypeError(msg)
            dtypes.append(_weft.as_dtype(ty if ndim is None else ty.dtype))
            single.append(ndim is not None and not axes)
        self._core.result_type(signature.args)
        loop = Loop(dtypes[: self.nin], dtypes[self.nin :], single, str(signature))
        self._loops.setdefault(loop.inputs, loop)

    # --- Attributes ---

    @property
    def nin(self) -> int:
        """How many arguments it takes."""
        return len(self._inputs)

    @property
    def nout(self) -> int:
        """The number of results."""
        return len(self._outputs)

    @property
    def nargs(self) -> int:
        """Arguments and results."""
        return self.nin + self.nout

    @property
    def signature(self) -> str:
        """The layout."""
        return self._layout

    @property
    def identity(self) -> Any:
        """The `identity` argument of `guvectorize`."""
        return self._identity

    @property
    def py_func(self) -> Callable[..., Any]:
        """The Python function."""
        found: Callable[..., Any] = self._core.py_func
        return found

    def __repr__(self) -> str:
        return f"<weft gufunc {self.__name__} {self._layout}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return name_of(self, self.py_func) or (GUfunc, (self._core, self._signatures, self._layout, self._identity))

    # --- Calls ---

    def _choose(self, operands: Sequence[Any], outs: Sequence[Any], dtype: Any, casting: Casting) -> Loop:
        dtypes = tuple(placing.dtype_of(operand) for operand in operands)
        if not self._signatures:
            if dtype is not None:
                msg = f"gufunc {self.__name__} has no signatures from which `dtype` could choose"
                raise TypeError(msg)
            if any(out is None for out in outs):
                msg = (
                    f"gufunc {self.__name__} has no signatures: pass arrays for the results, or give the "
                    "dtypes with `@guvectorize([signatures], layout)`"
                )
                raise TypeError(msg)
            return Loop(dtypes, [out.dtype for out in outs], [not axes for axes in self._outputs_and_inputs()], "")
        wanted = None if dtype is None else np.dtype(dtype)
        loops = [loop for loop in self._loops.values() if wanted is None or set(loop.outputs) == {wanted}]
        # As in Numba, host arrays are also converted to types of lower precision.
        for rule in placing.CASTINGS[: placing.CASTINGS.index(casting) + 1]:
            for loop in loops:
                if not all(
                    np.can_cast(of, to, rule) or (rule == "safe" and placing.fits(operand, to))
                    for operand, of, to in zip(operands, dtypes, loop.inputs, strict=True)
                ):
                    continue
                for number, (operand, to) in enumerate(zip(operands, loop.inputs, strict=True), 1):
                    if casting != "unsafe" and isinstance(operand, DeviceNDArray) and not placing.fits(operand, to):
                        msg = (
                            f"gufunc {self.__name__}: argument {number} is a device array of {operand.dtype}, which "
                            f"does not support .astype(); {loop.shown} takes {to}"
                        )
                        raise TypeError(msg)
                return loop
        given = ", ".join(placing.shown(operand) for operand in operands)
        found = ", ".join(loop.shown for loop in self._loops.values())
        giving = "" if wanted is None else f" with results of {wanted}"
        asked = "" if casting == "same_kind" else f" with casting={casting!r}"
        msg = (
            f"gufunc {self.__name__}: no matching signature: no loop{giving} takes ({given}){asked}; there are {found}"
        )
        raise TypeError(msg)

    def _outputs_and_inputs(self) -> list[tuple[str, ...]]:
        return [*self._inputs, *self._outputs]

    def _extents(self, operands: Sequence[Any]) -> tuple[tuple[int, ...], dict[str, int]]:
        """Give the shape of the axes before the function's own, and the extents of these by their names."""
        extents: dict[str, int] = {}
        outer = []
        for number, (operand, axes) in enumerate(zip(operands, self._inputs, strict=True), 1):
            shape = getattr(operand, "shape", ())
            own = len(shape) - len(axes)
            if own < 0:
                msg = (
                    f"gufunc {self.__name__}: argument {number} has {len(shape)} dimensions, {len(axes)} at least are "
                    f"needed: ({','.join(axes)})"
                )
                raise ValueError(msg)
            outer.append(tuple(shape[:own]))
            for name, extent in zip(axes, shape[own:], strict=True):
                expected = int(name) if name.isdigit() else extents.setdefault(name, extent)
                if extent != expected:
                    msg = f"gufunc {self.__name__}: argument {number} has {extent} along `{name}`, not {expected}"
                    raise ValueError(msg)
        return placing.broadcast(outer, self.__name__), extents

    def __call__(
        self, *args: Any, out: Any = None, dtype: Any = None, casting: Any = "same_kind", stream: Any = 0
    ) -> Any:
        """Compute; see the class."""
        casting = placing.checked(casting)
        if len(args) not in (self.nin, self.nargs):
            msg = (
                f"This gufunc accepts {_positional(self.nin)} (when providing input only) or {_positional(self.nargs)} "
                f"(when providing input and output). Got {_positional(len(args))}."
            )
            raise TypeError(msg)
        outs = outputs(self.__name__, args, self.nin, self.nout, out)
        operands = [placing.read(arg) for arg in args[: self.nin]]
        loop = self._choose(operands, outs, dtype, casting)
        outer, extents = self._extents(operands)
        inner = [tuple(int(name) if name.isdigit() else extents[name] for name in axes) for axes in self._outputs]
        for number, (array, own) in enumerate(zip(outs, inner, strict=True), 1):
            if array is None:
                continue
            shape = (*outer, *own)
            # Leading axes of extent 1 may be missing.
            more = len(shape) - array.ndim
            if array.shape != shape[max(more, 0) :] or any(extent != 1 for extent in shape[: max(more, 0)]):
                msg = f"gufunc {self.__name__}: output shape mismatch: result {number} has {shape}, not {array.shape}"
                raise ValueError(msg)
            if array.dtype != loop.outputs[number - 1]:
                msg = f"gufunc {self.__name__}: result {number} is {loop.outputs[number - 1]}, not {array.dtype}"
                raise TypeError(msg)
        stays = any(isinstance(array, DeviceNDArray) for array in (*operands, *outs))
        with Results(outs, loop.outputs, [(*outer, *own) for own in inner], "C", stays, stream) as results:
            inputs = [
                self._input(operand, dtype, single, results.arrays, stream)
                for operand, dtype, single in zip(operands, loop.inputs, loop.single, strict=False)
            ]
            self._run(outer, inputs, results.arrays, stream)
        return results.given()

    def _input(
        self, operand: Any, dtype: np.dtype[Any], single: bool, outs: Sequence[DeviceNDArray], stream: Any
    ) -> Any:
        """Bring an argument to the device, with the loop's dtype, apart from what is written."""
        if isinstance(operand, DeviceNDArray):
            array = operand if operand.dtype == dtype else cast(operand, dtype, stream)
        elif placing.is_number(operand) and not single:
            return cast(operand, dtype, stream)
        else:
            array = placing.on_device(np.asarray(operand).astype(dtype, copy=False), dtype, stream)
        own = {(out.address, out.size) for out in outs}
        if (array.address, array.size) in own or any(placing.clash(array, out) for out in outs):
            array = converted(array, dtype, stream)
        return array

    def _run(self, outer: tuple[int, ...], inputs: Sequence[Any], outs: Sequence[DeviceNDArray], stream: Any) -> None:
        """Call the function for each index of the outer axes."""
        operands = [*inputs, *outs]
        places = [place for place, operand in enumerate(operands) if isinstance(operand, DeviceNDArray)]
        steps, inner = [], []
        for place in places:
            array, axes = operands[place], self._outputs_and_inputs()[place]
            own = array.ndim - len(axes)
            mine = placing.view(array, array.shape[:own], array.strides[:own])
            steps.append(placing.strides_of(mine, outer))
            # An operand without axes is an array with one element, unless the signature has a scalar.
            single = place >= self.nin or self._is_single(place)
            inner.append(([1], [array.itemsize]) if not axes and single else (array.shape[own:], array.strides[own:]))
        if 0 in outer:
            return
        extents, steps = placing.merged(outer, steps)
        if not extents:
            extents, steps = [1], [[0] for _ in places]
        ndim = len(extents) + max(len(shape) for shape, _ in inner)
        if ndim > placing.MOST_AXES:
            msg = f"gufunc {self.__name__}: arguments with {ndim} axes: the limit is {placing.MOST_AXES}"
            raise ValueError(msg)
        for place, own, (shape, strides) in zip(places, steps, inner, strict=True):
            operands[place] = placing.view(operands[place], [*extents, *shape], [*own, *strides])
        self._launch(extents, operands, stream)

    def _launch(self, extents: Sequence[int], operands: Sequence[Any], stream: Any) -> None:
        """Call the function for each index of the merged outer axes, which come first in each array."""
        count, outer_divisors, rest = placing.outer_divisors(extents)
        block = min(self.max_blocksize, 1024)
        self._kernel[-(-int(count) // block), block, stream](count, outer_divisors, rest, tuple(operands))

    def _is_single(self, place: int) -> bool:
        return next((loop.single[place] for loop in self._loops.values()), False)

    @functools.cached_property
    def _kernel(self) -> Dispatcher:
        from weft.cuda._ufunc import kernels

        return kernels.each(self._core)


def _positional(count: int) -> str:
    return f"{count} positional argument{'' if count == 1 else 's'}"
