"""A pytest plugin that saves the result bits of tests' kernels with `WEFT_REPRODUCIBLE=1` and compares two devices.

    pytest tests/python/conformance --device cpu --keep-bits BITS.json
    pytest tests/python/conformance --device cuda --against-bits BITS.json

For each test it records, in order, the host arrays after each launch, ufunc and reduction, and the copies from the
device. Random number generators are reset before each test. The records are part of the test's report, so that
pytest-xdist's processes can write them. With `--against-bits`, differences are listed at the end, and the run fails.

The mode warns if results depend on the order of threads or on the device. The plugin counts these warnings. After the
launch of a kernel with such a warning, a test's bits may differ, which is counted as well. `OTHERWISE` has the tests
that expect other results than those of the mode: they may fail. `DEPENDS` has tests whose results depend on the device
in a way that the mode does not warn about.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import random
import re
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROPERTY = "bits that weft's kernels left"
# Arrays of up to this number of bytes are saved completely, larger ones as a digest.
SHORT = 64

NAN = "a NaN that was computed is NumPy's where it is stored, and the test compares its bits"
AGAIN = "it runs tests in another process"
RELAXED = "`fastmath` contradicts the mode"
UNORDERED = "gradients of shared arrays, and of arrays that the kernel also writes, have no order, which is an error"
OTHERWISE = {
    "conformance/language/test_accuracy.py::test_no_approximation_is_worse_than_the_page": RELAXED,
    **{
        f"conformance/threads/test_atomic_operations.py::test_what_an_element_becomes[{step}-{dtype}]": NAN
        for step in ("max", "min", "nanmax", "nanmin")
        for dtype in ("float16", "float32", "float64")
    },
    "conformance/language/test_exceptions.py::test_fast_divisions_of_floats_raise_nothing": RELAXED,
    "conformance/collectives/test_groups.py::test_both_ways_of_running_threads": AGAIN,
    "conformance/language/test_half_functions.py::test_other_conversions": NAN,
    **{
        f"conformance/language/test_libdevice_exact.py::test_bits_and_tests_of_numbers[{name}]": NAN
        for name in ("double2hiint", "double_as_longlong", "float_as_int", "signbitd", "signbitf")
    },
    "conformance/collectives/test_warps.py::test_both_ways_of_running_threads": AGAIN,
    **{
        f"conformance/derivatives/{test}": UNORDERED
        for test in (
            "test_custom.py::test_gradients_are_those_of_differences",
            "test_jvp.py::test_forward_and_reverse_mode_agree",
            "test_second_derivatives.py::test_a_tangent_kernel_of_an_adjoint_kernel",
            "test_second_derivatives.py::test_an_adjoint_kernel_of_an_adjoint_kernel",
            "test_tape.py::test_a_stream_and_dynamic_shared_memory",
            "test_vjp_halves.py::test_bfloat16",
            "test_vjp_halves.py::test_derivatives_are_those_of_float64",
            "test_vjp_memory.py::test_dynamic_shared_memory",
            "test_vjp_memory.py::test_gradients_are_those_of_differences",
            "test_vjp_shared_sums.py::test_one_row",
            "test_vjp_shared_sums.py::test_rows_and_columns",
            "test_vjp_stored.py::test_gradients_are_those_of_differences",
        )
    },
    "conformance/derivatives/test_vjp_stored.py::test_fastmath_and_reproducible_kernels_that_store": RELAXED,
}
"""Tests that may fail in the mode, with the reason."""

DEPENDS: dict[str, str] = {
    "conformance/language/test_accuracy.py::test_no_approximation_is_worse_than_the_page": "a GPU computes more values",
    "conformance/memory/test_carray.py::test_the_order_is_that_of_the_name": "threads read what others add 100 to",
    "conformance/memory/test_mismatched_extents.py::test_threads_that_go_on_meet_at_barriers": "reads unwritten memory",
    "conformance/language/test_linking.py::test_pointers_of_arrays": "only the CPU runs its second part",
    "conformance/language/test_range_limits.py::test_strided_reads": "the CPU skips it where it may omit iterations",
}
"""Tests whose bits may differ, with the reason."""


def reason(table: dict[str, str], nodeid: str) -> str | None:
    """A table's entry for a test, with its parameters or without."""
    name = nodeid.partition("tests/python/")[2] or nodeid
    return table.get(name) or table.get(name.partition("[")[0])


class Entry(NamedTuple):
    """The results of one launch."""

    what: str
    """The kernel, or what else was called."""
    told: bool
    """Whether the mode has warned of this kernel, or of one before it in the test."""
    arrays: dict[str, str]
    """By argument or field, such as `0` or `1.x`: dtype, shape, and the bytes or their digest."""


def token(array: np.ndarray[Any, Any]) -> str:
    """An array as a string."""
    data = array.tobytes()
    short = data.hex() if len(data) <= SHORT else f"digest {hashlib.blake2b(data, digest_size=12).hexdigest()}"
    return f"{array.dtype} {array.shape} {short}"


def arrays_of(value: object, at: str) -> Iterator[tuple[str, str]]:
    """The host arrays in a value. Records are split into fields, because the padding between fields is unspecified."""
    if isinstance(value, (tuple, list)):
        for position, item in enumerate(value):
            yield from arrays_of(item, f"{at}.{position}")
    elif isinstance(value, (np.generic, bool, int, float, complex)) and not isinstance(value, np.void):
        if at == RESULT:
            yield at, token(np.asarray(value))
    elif isinstance(value, np.void) or type(value) in (np.ndarray, np.recarray):
        # Exact class: mapped and managed memory, which have other classes, may be written later.
        array = np.asarray(value)
        if array.dtype.names is None:
            if array.dtype.kind not in "OV":
                yield at, token(array)
            return
        for name in array.dtype.names:
            yield from arrays_of(array[name], f"{at}.{name}")


RESULT = "result"


class Record:
    """The results of the tests of this process."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.warned: set[object] = set()
        """The functions of kernels of which the mode has warned, and lines of those that no launch compiled."""
        self.count = 0
        self.told = False
        self.running: list[object] = []

    def begin(self) -> None:
        """A test begins."""
        self.entries, self.told = [], False

    def warn(self, text: str) -> None:
        """The mode has warned."""
        self.count += 1
        if self.running:
            self.warned.add(self.running[-1])
        self.warned.update(re.findall(r"(?:-->|:::) (\S+?:\d+)", text))

    def is_warned(self, function: Any) -> bool:
        """Whether the mode has warned of a kernel."""
        code = getattr(function, "__code__", None)
        if function in self.warned or code is None:
            return function in self.warned
        lines = {line for _, _, line in code.co_lines() if line}
        return any(f"{code.co_filename}:{line}" in self.warned for line in lines)

    def note(self, what: str, function: object, values: dict[str, object]) -> None:
        """Record the results of a launch."""
        self.told = self.told or self.is_warned(function)
        found = dict(pair for at, value in values.items() for pair in arrays_of(value, at))
        if found:
            self.entries.append(Entry(what, self.told, found))


def caller_is_a_test() -> bool:
    """Whether the caller of the calling function is code outside weft."""
    return str(sys._getframe(2).f_globals.get("__name__", "")).partition(".")[0] != "weft"


def watch(record: Record) -> None:
    """Make launches, ufuncs, reductions and copies record their results, and fill NumPy's new memory with the same
    bytes."""
    from weft import cuda
    from weft.cuda._memory.device_array import DeviceNDArray
    from weft.cuda._reduce import Reduce
    from weft.cuda._ufunc.gufunc import GUfunc
    from weft.cuda._ufunc.numpy_ufuncs import NumpyUfunc
    from weft.cuda._ufunc.ufunc import Ufunc
    from weft.errors import ReproducibilityWarning

    @cuda.jit
    def nothing() -> None:
        pass

    launches: list[tuple[type[Any], Callable[[Any], Any]]] = [
        (type(nothing[1, 1]), lambda launch: launch.dispatcher),
        (type(nothing.forall(1)), lambda launch: launch.dispatcher),
    ]
    for kind, kernel_of in launches:
        watch_calls(record, kind, "__call__", lambda self, kernel_of=kernel_of: kernel_of(self).py_func)
    for kind in (Reduce, GUfunc, NumpyUfunc, Ufunc):
        if "__call__" in vars(kind):
            watch_calls(record, kind, "__call__", lambda self: self)
    watch_calls(record, DeviceNDArray, "copy_to_host", lambda self: None)

    np.empty = zeroed(np.empty)
    np.empty_like = zeroed(np.empty_like)

    show = warnings._showwarnmsg  # the function that Python calls if `showwarning` was replaced

    def shown(message: Any) -> None:
        if issubclass(message.category, ReproducibilityWarning):
            record.warn(str(message.message))
        else:
            show(message)

    warnings._showwarnmsg = shown


def watch_calls(record: Record, kind: type[Any], name: str, function_of: Callable[[Any], Any]) -> None:
    """Make a method record its results where a test calls it."""
    original = vars(kind)[name]

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not caller_is_a_test():
            return original(self, *args, **kwargs)
        function = function_of(self)
        what = getattr(function, "__name__", kind.__name__ if name == "__call__" else name)
        if function is not None:
            record.running.append(function)
        # After an exception nothing is recorded: the contents of the arrays depend on the progress of the threads.
        try:
            result = original(self, *args, **kwargs)
        finally:
            if function is not None:
                record.running.pop()
        values: dict[str, object] = {str(at): arg for at, arg in enumerate(args)} | kwargs
        record.note(what, function, values | {RESULT: result})
        return result

    setattr(kind, name, call)


def zeroed(make: Callable[..., Any]) -> Callable[..., Any]:
    """`np.empty` with zeroed elements, because a kernel may not write all of them."""

    @functools.wraps(make)
    def made(*args: Any, **kwargs: Any) -> Any:
        array = make(*args, **kwargs)
        if not array.dtype.hasobject:
            array[...] = np.zeros((), array.dtype)
        return array

    return made


def differences(kept: list[Entry], found: list[Entry]) -> tuple[list[str], bool]:
    """The differences between a test's entries on two devices, and whether the mode has warned of all of them."""
    told = any(entry.told for entry in kept + found)
    if [entry.what for entry in kept] != [entry.what for entry in found]:
        return [f"launches: {[entry.what for entry in found]}, saved {[entry.what for entry in kept]}"], told
    texts = []
    all_told = True
    for number, (theirs, mine) in enumerate(zip(kept, found, strict=True)):
        before = len(texts)
        for at in sorted(theirs.arrays.keys() | mine.arrays.keys()):
            one, two = theirs.arrays.get(at, "nothing"), mine.arrays.get(at, "nothing")
            if one != two:
                texts.append(f"launch {number} of {mine.what}, {at}: {two}, saved {one}")
        if len(texts) > before:
            all_told = all_told and (theirs.told or mine.told)
    return texts, all_told


class KeptBits:
    """The plugin, both in the processes that run tests and in the one that collects reports."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        keep, against = config.getoption("--keep-bits"), config.getoption("--against-bits")
        self.keep = Path(keep).absolute() if keep else None
        self.against = Path(against).absolute() if against else None
        self.record: Record | None = None
        self.generators: dict[int, tuple[np.random.Generator, dict[str, Any]]] = {}
        self.found: dict[str, list[Entry]] = {}
        self.lines: list[str] = []
        self.counts: Counter[str] = Counter()
        self.failed = False
        if self.against and not self.against.is_file():
            msg = f"--against-bits: there is no file {self.against}"
            raise pytest.UsageError(msg)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if why := reason(OTHERWISE, item.nodeid):
                mark = pytest.mark.skip(reason=why) if why == AGAIN else pytest.mark.xfail(reason=why, strict=False)
                item.add_marker(mark)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        # Import late: the process that collects reports does not need weft.
        if not self.config.getoption("numprocesses", None):
            self.record = Record()
            watch(self.record)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for module in {item.module for item in session.items if isinstance(item, pytest.Function)}:
            for value in vars(module).values():
                if isinstance(value, np.random.Generator):
                    self.generators[id(value)] = value, value.bit_generator.state

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if self.record:
            self.record.begin()
            # A test gets the same random numbers whichever tests run before it.
            for generator, state in self.generators.values():
                generator.bit_generator.state = state
            random.seed(0)
            np.random.seed(0)
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        before = self.record.count if self.record else 0
        try:
            return (yield)
        finally:
            if self.record:
                entries = [tuple(entry) for entry in self.record.entries]
                item.user_properties.append((PROPERTY, [self.record.count - before, *map(list, entries)]))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call":
            return
        for name, value in report.user_properties:
            if name == PROPERTY:
                warned, *entries = value
                self.counts["warnings"] += warned
                self.found[report.nodeid] = [Entry(what, told, arrays) for what, told, arrays in entries]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(self.config, "workerinput"):
            return
        self.counts["tests"] = sum(bool(entries) for entries in self.found.values())
        self.counts["launches"] = sum(map(len, self.found.values()))
        if self.keep:
            self.keep.write_text(json.dumps({"device": os.environ.get("WEFT_DEVICE"), "tests": self.found}, indent=0))
        if self.against:
            self.compare(json.loads(self.against.read_text()))
            if self.failed and session.exitstatus == 0:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def compare(self, kept: dict[str, Any]) -> None:
        """Compare the bits of this run with saved ones."""
        theirs = {name: [Entry(*entry) for entry in entries] for name, entries in kept["tests"].items()}
        both = {name for name in self.found.keys() & theirs.keys() if self.found[name] or theirs[name]}
        self.counts["here only"] = len(self.found.keys() - theirs.keys())
        self.counts["saved only"] = len(theirs.keys() - self.found.keys())
        self.counts["compared"] = len(both)
        for name in sorted(both):
            texts, told = differences(theirs[name], self.found[name])
            why = reason(DEPENDS, name)
            if not texts:
                self.counts["same"] += 1
            elif told or why:
                self.counts["told" if told else "known"] += 1
                self.lines.append(f"may differ ({'the mode has warned' if told else why}): {name}")
            else:
                self.counts["different"] += 1
                self.lines += [f"DIFFERENT: {name}", *(f"    {text[:400]}" for text in texts[:8])]
        self.failed = self.counts["different"] > 0 or not both

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        counts, write = self.counts, terminalreporter.write_line
        terminalreporter.section("bits")
        for line in self.lines:
            write(line)
        write(
            f"{counts['launches']} launches in {counts['tests']} tests, "
            f"{counts['warnings']} warnings of what is not reproducible"
        )
        if self.against:
            write(
                f"{counts['compared']} tests were compared: {counts['same']} have the same bits, {counts['different']} "
                f"others, {counts['told']} may have others as the mode has warned, {counts['known']} for a known reason"
            )
            write(f"{counts['here only']} tests ran here only, {counts['saved only']} only where the bits were saved")
