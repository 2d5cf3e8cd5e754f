"""A tape of launches: gradients through many kernels, in reverse order of their launches.

The tape knows arrays by their addresses, so that views of one array share its adjoint. Before a launch or a copy writes
memory whose contents an adjoint kernel needs, the tape saves a copy of them (`memory.Contents`).
"""

from __future__ import annotations

import contextlib
import threading
import weakref

import numpy as np

from weft import _weft
from weft.cuda._derivatives import FLOATS
from weft.cuda._memory import observed
from weft.cuda._memory.device_array import DeviceNDArray
from weft.cuda._memory.making import as_cuda_array
from weft.cuda._streams import as_stream
from weft.cuda._tape.memory import Adjoints, Contents, add, copied, overlap, range_of
from weft.cuda._tape.operators import RULES, Operation, has_rule
from weft.cuda._tape.records import Copy, Launch, Plan, Unseen, has_floats, plan_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType
    from typing import Any, Self

    from weft._weft import Dispatcher


class _Watch(threading.local):
    """The tapes that record in this thread, and those whose backward pass is to come."""

    def __init__(self) -> None:
        self.tapes: list[weakref.ref[Tape]] = []
        self.pauses = 0


_watch = _Watch()


def _live() -> list[Tape]:
    tapes = [tape for reference in _watch.tapes if (tape := reference()) is not None]
    if len(tapes) != len(_watch.tapes):
        _watch.tapes = [weakref.ref(tape) for tape in tapes]
    if not tapes:
        _weft.observe_launches(None)
    return tapes


@contextlib.contextmanager
def _paused() -> Iterator[None]:
    """Run launches and copies that no tape sees."""
    _watch.pauses += 1
    try:
        yield
    finally:
        _watch.pauses -= 1


def _launching(kernel: Dispatcher, launcher: Any, args: tuple[Any, ...]) -> None:
    if not _watch.pauses:
        for tape in _live():
            tape._launch(kernel, launcher, args)


def _writing(to: DeviceNDArray, source: Any, what: str, stream: Any) -> Any:
    if _watch.pauses or not _watch.tapes:
        return contextlib.nullcontext()
    for tape in _live():
        tape._write(to, source, what, stream)
    return _paused()


def _operating(name: str, operands: Any, out: Any, options: dict[str, Any], stream: Any, compute: Any) -> Any:
    if not _watch.pauses and _watch.tapes:
        for tape in _live():
            if tape._recording and (name == "sum" or name in RULES) and has_rule(name, operands, out):
                return tape._operate(name, operands, out, options, stream, compute)
    return compute()


class Tape:
    """A tape of launches and copies, for gradients; `tape` makes it.

    In the ``with`` block, the tape records what this thread launches, and what it copies to and between device arrays.
    ``backward`` then runs the adjoint kernels in the reverse order, and ``gradient`` gives the gradients.
    """

    def __init__(self) -> None:
        self._records: list[Launch | Copy | Unseen | Operation] = []
        self._contents: list[Contents] = []
        self._known: set[tuple[int, int]] = set()
        self._stream: Any = 0
        self._recording = False
        self._adjoints: Adjoints | None = None
        self._done = False

    def __enter__(self) -> Self:
        """Record from now on.

        Raises
        ------
        RuntimeError
            Another tape records in this thread, or the tape has recorded already.
        NotImplementedError
            Kernels run in Python's interpreter.
        """
        if _weft.interprets_kernels():
            msg = "derivatives of kernels are compiled: they do not run in Python's interpreter; set WEFT_DEVICE=cpu"
            raise NotImplementedError(msg)
        if self._records or self._done:
            msg = "the tape has recorded already: make another one with `cuda.tape()`"
            raise RuntimeError(msg)
        if any(tape._recording for tape in _live()):
            msg = "another tape records in this thread: record in one block, or one block after the other"
            raise RuntimeError(msg)
        self._recording = True
        _watch.tapes.append(weakref.ref(self))
        _weft.observe_launches(_launching)
        if _writing not in observed.observers:
            observed.observers.append(_writing)
            observed.operator = _operating
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Record no longer. Until ``backward``, the tape still saves what is overwritten."""
        self._recording = False
        if kind is not None:
            self._close()

    def _close(self) -> None:
        self._records, self._contents, self._done = [], [], True
        _watch.tapes = [reference for reference in _watch.tapes if reference() not in (None, self)]
        _live()

    def __len__(self) -> int:
        """Give the number of recorded launches and copies."""
        return len(self._records)

    def __repr__(self) -> str:
        return f"<weft.cuda.Tape of {len(self)} record{'' if len(self) == 1 else 's'}>"

    # --- Recording ---

    def _check_stream(self, stream: Any, what: str) -> None:
        stream = as_stream(stream)
        if _weft.is_recording():
            msg = "a tape and a graph cannot record at once"
            raise RuntimeError(msg)
        if self._stream and stream and int(self._stream) != int(stream):
            msg = f"{what} is in another stream than the tape's other launches: record work of one stream"
            raise RuntimeError(msg)
        self._stream = self._stream or stream

    def _launch(self, kernel: Dispatcher, launcher: Any, args: tuple[Any, ...]) -> None:
        """Record a launch that is about to run; after the block, save what it overwrites."""
        given = [_argument(arg) for arg in args]
        if any(isinstance(arg, (tuple, list)) and next(_arrays_in(arg), None) is not None for arg in given):
            self._launch_with_tuples(kernel, launcher, given)
            return
        plan = plan_of(kernel, given)
        name = kernel.__name__
        if self._recording:
            self._check_stream(launcher.stream, f"the launch of `{name}`")
            self._check(kernel, given, plan)
            record = Launch(kernel, launcher, given, plan)
            for number in plan.needs:
                arg = given[number]
                if isinstance(arg, np.ndarray):
                    record.args[number] = arg.copy(order="K")
                elif isinstance(arg, DeviceNDArray) and arg.size:
                    record.contents[number] = self._contents_of(arg)
        for number in plan.writes:
            if isinstance(given[number], DeviceNDArray):
                self._save(range_of(given[number]))
        if self._recording:
            if plan.has_outputs:
                self._add(record)
            for number in plan.writes:
                array = given[number]
                if isinstance(array, DeviceNDArray) and number not in plan.numbers:
                    self._add(Unseen(array, f"`{name}`, as an array of {array.dtype},"))

    def _launch_with_tuples(self, kernel: Dispatcher, launcher: Any, args: Sequence[Any]) -> None:
        """Record that a launch writes all arrays that it may write. Adjoint kernels have no adjoints of tuples."""
        own = (kernel.__module__ or "").startswith("weft.")
        what = "an operator of device arrays" if own else f"`{kernel.__name__}`, which takes a tuple of arrays,"
        if self._recording:
            self._check_stream(launcher.stream, f"the launch of `{kernel.__name__}`")
        effects = list(kernel.effects(tuple(map(_weft.typeof_value, args))).values())
        for arg, effect in zip(args, effects, strict=True):
            if not effect.writes:
                continue
            for array in _arrays_in(arg if isinstance(arg, (tuple, list)) else (arg,)):
                self._save(range_of(array))
                if self._recording:
                    self._add(Unseen(array, what))

    def _check(self, kernel: Dispatcher, args: Sequence[Any], plan: Plan) -> None:
        name, params = kernel.__name__, plan.params
        taken: list[tuple[tuple[int, int], bool]] = []
        for number, arg in enumerate(args):
            writes = number in plan.writes
            dtype = getattr(arg, "dtype", None)
            if writes and dtype is not None and str(dtype) not in FLOATS and has_floats(dtype):
                msg = f"`{name}` writes `{params[number]}`, an array of {dtype}, through which a tape has no gradients"
                raise TypeError(msg)
            if isinstance(arg, DeviceNDArray):
                if not arg.size or number not in plan.numbers:
                    continue
                own = range_of(arg)
                if any(overlap(own, other) and (writes or written) for other, written in taken):
                    msg = f"`{params[number]}` of `{name}` overlaps another argument, and one of them is written"
                    raise ValueError(msg)
                taken.append((own, writes))
            elif writes and getattr(arg, "shape", None) is not None and str(dtype) in FLOATS:
                msg = (
                    f"`{name}` writes `{params[number]}`, an array of the host, which a tape does not follow: pass a "
                    "device array (`cuda.to_device`)"
                )
                raise TypeError(msg)

    def _write(self, to: DeviceNDArray, source: Any, what: str, stream: Any) -> None:
        """Record a write that is about to run; after the block, save what it overwrites."""
        if not to.size:
            return
        self._save(range_of(to))
        if not self._recording:
            return
        is_float = str(to.dtype) in FLOATS
        if isinstance(source, DeviceNDArray) and str(source.dtype) not in FLOATS:
            source = None if source.dtype.kind in "biu" else observed.UNSEEN
        if source is observed.UNSEEN or not is_float:
            self._add(Unseen(to, what))
        elif isinstance(source, DeviceNDArray) or self._knows(to):
            # Values of the host in an array that nothing has used are its first contents.
            self._check_stream(stream, what)
            self._add(Copy(to, source, stream or 0))

    def _operate(
        self, name: str, operands: Any, out: Any, options: dict[str, Any], stream: Any, compute: Callable[[], Any]
    ) -> Any:
        """Record an operator while it runs."""
        self._check_stream(stream, f"the operator `{name}`")
        record = Operation(name, operands, options.get("axis"), options.get("keepdims", False), stream)
        record.prepare(self._contents_of)
        own = out[0] if isinstance(out, tuple) else out
        if own is not None and own.size:
            for tape in _live():
                tape._save(range_of(own))
        with _paused():
            result = compute()
        if isinstance(result, DeviceNDArray) and result.size:
            if str(result.dtype) in FLOATS:
                record.finish(result, self._contents_of)
                self._add(record)
            else:
                self._add(Unseen(result, f"the operator `{name}`"))
        return result

    def _add(self, record: Launch | Copy | Unseen | Operation) -> None:
        self._records.append(record)
        self._known.update(map(range_of, record.arrays()))

    def _knows(self, array: DeviceNDArray) -> bool:
        own = range_of(array)
        return any(overlap(own, other) for other in self._known)

    def _contents_of(self, array: DeviceNDArray) -> Contents:
        own = range_of(array)
        for contents in self._contents:
            if contents.extent == own:
                return contents
        self._contents.append(contents := Contents(array))
        return contents

    def _save(self, written: tuple[int, int]) -> None:
        """Save the contents that a write is about to change."""
        kept = []
        for contents in self._contents:
            if overlap(contents.extent, written):
                contents.save(self._stream)
            else:
                kept.append(contents)
        self._contents = kept

    # --- Gradients ---

    def backward(self, outputs: Any, adjoints: Any = None) -> None:
        """Run the adjoint kernels of all records, from the last one to the first.

        It can be called once. It releases what the tape has saved, other than the gradients.

        Parameters
        ----------
        outputs
            A device array, or a sequence of device arrays: what is differentiated.
        adjoints
            The gradients of the loss by each output: an array of its shape, or a number for all elements. By default 1,
            for outputs of one element.

        Raises
        ------
        RuntimeError
            The block has not ended, ``backward`` was called before, or a gradient flows into an array that the tape has
            not seen written.
        ValueError
            An adjoint has another shape, or is missing.
        TypeError
            An output is no device array of floats.
        CompileError
            A kernel through which gradients flow has no derivative; the message shows the line.
        """
        if self._recording or self._done:
            why = "the block of the tape has not ended" if self._recording else "the tape has no records any more"
            msg = f"{why}: call `backward` once, after the block"
            raise RuntimeError(msg)
        every = [outputs] if isinstance(outputs, DeviceNDArray) else list(outputs)
        given = [adjoints] if isinstance(outputs, DeviceNDArray) else list(adjoints or [None] * len(every))
        if len(given) != len(every):
            msg = f"there are {len(every)} outputs, but {len(given)} adjoints"
            raise ValueError(msg)
        for output in every:
            if not isinstance(output, DeviceNDArray) or str(output.dtype) not in FLOATS:
                msg = "outputs must be device arrays of floats or complex numbers"
                raise TypeError(msg)
        stream = self._stream
        seeds = [(output, _seed(output, adjoint)) for output, adjoint in zip(every, given, strict=True)]
        arrays = [array for record in self._records for array in record.arrays()]
        with _paused():
            all_adjoints = Adjoints([*arrays, *every], stream)
            for output, seed in seeds:
                add(all_adjoints.of(output), seed, stream)
            records = self._records
            try:
                while records:
                    records.pop().reverse(all_adjoints)
            finally:
                self._close()
        self._adjoints = all_adjoints

    def gradient(self, array: DeviceNDArray) -> DeviceNDArray:
        """Give the gradient by an array's contents at the start of the block.

        For an array that is made in the block, it is that by its first contents.

        Parameters
        ----------
        array
            An array that recorded launches access, or a view of one.

        Returns
        -------
        DeviceNDArray
            A new array of its shape and dtype; 0 where no output depends on the array.

        Raises
        ------
        RuntimeError
            ``backward`` was not called.
        TypeError
            The array has no elements of floats or complex numbers.
        ValueError
            No record accesses the array.
        """
        if self._adjoints is None:
            msg = "call `backward` first"
            raise RuntimeError(msg)
        if str(array.dtype) not in FLOATS:
            msg = f"an array of {array.dtype} has no gradient"
            raise TypeError(msg)
        if array.size and self._adjoints.merged_range(array) is None:
            msg = "no launch that the tape recorded accesses the array as an array of floats"
            raise ValueError(msg)
        with _paused():
            return copied(self._adjoints.of(array), self._adjoints._stream)


def _argument(arg: Any) -> Any:
    """Give an argument with arrays of other libraries as device arrays."""
    if isinstance(arg, (DeviceNDArray, np.ndarray)) or not hasattr(arg, "__cuda_array_interface__"):
        return arg
    return as_cuda_array(arg)


def _arrays_in(values: Sequence[Any]) -> Iterator[DeviceNDArray]:
    """Give the device arrays in a tuple, and in tuples in it."""
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _arrays_in(value)
        elif isinstance(array := _argument(value), DeviceNDArray) and array.size:
            yield array


def _seed(output: DeviceNDArray, adjoint: Any) -> Any:
    if adjoint is None:
        if output.size != 1:
            msg = f"the output has {output.size} elements: give its adjoint, `tape.backward(output, adjoint)`"
            raise ValueError(msg)
        return 1.0
    shape = getattr(adjoint, "shape", ())
    if shape not in ((), output.shape):
        msg = f"the adjoint of an output of shape {output.shape} has shape {shape}"
        raise ValueError(msg)
    return adjoint if isinstance(adjoint, DeviceNDArray) or not shape else _on_device(adjoint)


def _on_device(adjoint: Any) -> DeviceNDArray:
    from weft.cuda._memory.making import to_device

    with _paused():
        return to_device(adjoint)


def tape() -> Tape:
    """Make a tape, which records launches in a ``with`` block for gradients through all of them.

    The tape follows device arrays of floats and complex numbers: arguments of kernels, copies between
    device arrays, assignments to them, operators, and NumPy's common functions of them. Kernels must be ones that
    `vjp` differentiates, as far as gradients flow through them. Scalars are constants: pass what is to have a gradient
    in an array. It does not see what other libraries, graphs and prepared launches write, nor arrays that device
    functions capture. All work is in one stream.

    The tape saves the contents of an array if something overwrites it and the backward pass needs them.

    Returns
    -------
    Tape
        ``backward(outputs, adjoints)`` runs the adjoint kernels, ``gradient(array)`` gives a gradient.

    Examples
    --------
    >>> @cuda.jit
    ... def square(x, y):
    ...     i = cuda.grid(1)
    ...     if i < x.size:
    ...         y[i] = x[i] * x[i]
    >>> x = cuda.to_device(np.array([1.0, 2.0, 3.0]))
    >>> y, z = cuda.device_array_like(x), cuda.device_array_like(x)
    >>> with cuda.tape() as tape:
    ...     square[1, 32](x, y)
    ...     square[1, 32](y, z)
    >>> tape.backward(z, 1.0)
    >>> assert tape.gradient(x).copy_to_host().tolist() == [4.0, 32.0, 108.0]
    """
    return Tape()
