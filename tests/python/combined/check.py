"""Runs a program on weft and by the reference, and reports how the results differ."""

from __future__ import annotations

import linecache
import signal
import types
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from combined.launches import View
from combined.memory import FILL, Guarded
from combined.reference import ACCESSES, LARGEST, WHO, Reference, Unsound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from combined.launches import Launch
    from combined.programs import Program


class Wrong(Exception):
    """weft's results are not those of the program."""


def module_of(text: str) -> types.ModuleType:
    """A module made from a string. It has no file; its lines are in `linecache`."""
    name = f"<combined program {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    module = types.ModuleType("combined_program")
    module.__file__ = name
    exec(compile(text, name, "exec"), vars(module))
    return module


def reference_of(program: Program, *, checked: bool = False) -> Reference:
    ndims = {name: len(param.extents) for name, param in program.params.items()}
    return Reference(program.source, ndims, checked=checked)


LONGEST = 10.0  # limit for the reference in seconds per launch; milliseconds are usual


@contextmanager
def ends() -> Iterator[None]:
    """Raises `Unsound` in the block if it exceeds a time limit. Only for the main thread."""

    def stop(*_: object) -> None:
        raise Unsound(f"the program does not end within {LONGEST:.0f} s in CPython")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run_reference(reference: Reference, launch: Launch, *, reverse: bool = False) -> list[np.ndarray]:
    """The buffers after a launch."""
    ACCESSES.clear()
    WHO.now = ()
    lists = [buffer.tolist() for buffer in launch.buffers]
    args: dict[str, Any] = {}
    for name, arg in launch.args.items():
        args[name] = (lists[arg.buffer], arg.offset, arg.strides, arg.shape) if isinstance(arg, View) else arg
    with ends():
        reference.run(launch.grid, launch.block, args, reverse=reverse)
    results = []
    for flat, buffer in zip(lists, launch.buffers, strict=True):
        if buffer.dtype.kind == "f":
            made = np.array(flat, np.float64)
            if made.size and np.abs(made).max() > LARGEST:
                raise Unsound("a float is too large to be exact")
            results.append(made.astype(buffer.dtype))
        else:
            try:
                results.append(np.array(flat, buffer.dtype))
            except OverflowError as error:
                raise Unsound(str(error)) from None
    return results


def judge(program: Program) -> str:
    """Why a program is unsound, with all checks enabled; empty for a sound one."""
    try:
        reference = reference_of(program, checked=True)
        for launch in program.launches:
            one = run_reference(reference, launch)
            two = run_reference(reference, launch, reverse=True)
            if any((a != b).any() for a, b in zip(one, two, strict=True)):
                return "the order of threads shows"
    except Unsound as error:
        return str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def expected(program: Program) -> list[list[np.ndarray]]:
    """The buffers after each launch."""
    reference = reference_of(program)
    return [run_reference(reference, launch) for launch in program.launches]


class Runner:
    """Runs programs on weft, with arrays between guard pages."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self.guarded = Guarded() if device == "cpu" else None

    def kernel(self, source: str) -> Any:
        return module_of(source).kernel

    def compare(self, program: Program, wanted: list[list[np.ndarray]]) -> Any:
        """Launches on weft; raises an exception if a result differs. Returns the kernel."""
        kernel = self.kernel(program.source)
        for number, (launch, results) in enumerate(zip(program.launches, wanted, strict=True)):
            (self.on_host if self.guarded else self.on_device)(kernel, launch, results, f"launch {number}")
        return kernel

    def on_host(self, kernel: Any, launch: Launch, results: list[np.ndarray], what: str) -> None:
        from weft import cuda

        assert self.guarded
        places = [self.guarded.place(at, buffer, at_end=launch.at_end) for at, buffer in enumerate(launch.buffers)]
        args: list[Any] = []
        for arg in launch.args.values():
            if isinstance(arg, View):
                dtype = launch.buffers[arg.buffer].dtype
                args.append(self.guarded.view(places[arg.buffer][0], dtype, arg.offset, arg.shape, arg.strides))
            else:
                args.append(arg)
        kernel[launch.grid, launch.block](*args)
        cuda.synchronize()
        for at, ((_, inside, beside), result) in enumerate(zip(places, results, strict=True)):
            if not np.array_equal(inside, result.view(np.uint8)):
                raise Wrong(f"{what}: {differences(launch, at, inside.copy().view(result.dtype), result)}")
            if (beside != FILL).any():
                raise Wrong(f"{what}: {names_of(launch, at)}: a store beside the array")

    def on_device(self, kernel: Any, launch: Launch, results: list[np.ndarray], what: str) -> None:
        from weft import cuda

        buffers = [cuda.to_device(buffer) for buffer in launch.buffers]
        args: list[Any] = []
        for arg in launch.args.values():
            if isinstance(arg, View):
                dtype = launch.buffers[arg.buffer].dtype
                place = buffers[arg.buffer].__cuda_array_interface__["data"][0]
                args.append(Guarded.view(self, place, dtype, arg.offset, arg.shape, arg.strides))  # type: ignore[arg-type]
            else:
                args.append(arg)
        kernel[launch.grid, launch.block](*args)
        cuda.synchronize()
        for at, (buffer, result) in enumerate(zip(buffers, results, strict=True)):
            got = buffer.copy_to_host()
            if not np.array_equal(got.view(np.uint8), result.view(np.uint8)):
                raise Wrong(f"{what}: {differences(launch, at, got, result)}")


def names_of(launch: Launch, buffer: int) -> str:
    return ", ".join(name for name, arg in launch.args.items() if isinstance(arg, View) and arg.buffer == buffer)


def differences(launch: Launch, buffer: int, got: np.ndarray, wanted: np.ndarray) -> str:
    at = np.flatnonzero(got != wanted)
    shown = ", ".join(f"[{each}] is {got[each]}, wanted {wanted[each]}" for each in at[:4])
    return f"{names_of(launch, buffer)}: {len(at)} of {len(got)} elements of its memory differ: {shown}"


def run(program: Program, runner: Runner) -> tuple[str, Any]:
    """`passed`, `unsound: ...`, or a description of the failure; and the kernel that was run."""
    try:
        wanted = expected(program)
    except Unsound as error:
        return f"unsound: {error}", None
    except Exception as error:
        return f"unsound: the reference fails: {type(error).__name__}: {error}", None
    try:
        return "passed", runner.compare(program, wanted)
    except Wrong as error:
        # Results of a program with a race may differ.
        why = judge(program)
        return f"unsound: {why}" if why else f"results differ: {error}", None
    except Exception as error:
        # A shuffle from a lane that does not exist is undefined in CUDA, and returns the lane's own value in weft.
        kinds = {finding.kind for finding in getattr(error, "findings", ())}
        if kinds == {"shuffle from a missing lane"} and program.missing_lanes:
            return "passed", None
        return f"{type(error).__name__}: {error}", None
    finally:
        linecache.clearcache()
