"""`cuda.benchmark`: how long a kernel's launches take, by the device's clock.

A launch returns before the kernel runs, so a clock around it measures nothing: here events in the launch's stream do,
and on the CPU executor the clock of the process around a launch and the wait for it.
"""

from __future__ import annotations

import time

from weft import _weft
from weft._weft import CopyHint, Dispatcher, ForAll, _LaunchConfiguration
from weft.cuda._streams import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class Benchmark:
    """The result of `cuda.benchmark`. All times are milliseconds.

    Attributes
    ----------
    times
        Of each launch, in their order.
    name
        The kernel's name.
    clock
        ``"events"``: the device's; ``"wall"``: the process's, on the CPU executor.
    """

    def __init__(self, times: Sequence[float], name: str, clock: str) -> None:
        self.times = tuple(times)
        self.name = name
        self.clock = clock

    @property
    def count(self) -> int:
        """How many launches were measured."""
        return len(self.times)

    @property
    def median(self) -> float:
        """The median time of the launches."""
        ordered, half = sorted(self.times), self.count // 2
        return ordered[half] if self.count % 2 else (ordered[half - 1] + ordered[half]) / 2

    @property
    def min(self) -> float:
        """The shortest time."""
        return min(self.times)

    @property
    def max(self) -> float:
        """The longest time."""
        return max(self.times)

    @property
    def mean(self) -> float:
        """The mean."""
        return sum(self.times) / self.count

    @property
    def spread(self) -> float:
        """From the shortest to the longest time."""
        return self.max - self.min

    def __repr__(self) -> str:
        launches = f"{self.count} launch{'' if self.count == 1 else 'es'}"
        by = "events" if self.clock == "events" else "wall time on the CPU"
        extremes = f"min {_shown(self.min)}, max {_shown(self.max)}"
        return f"<{self.name}: median {_shown(self.median)} ({extremes}) of {launches}, {by}>"


def _shown(milliseconds: float) -> str:
    """Give a time with four digits, in the unit that fits it."""
    for unit, factor in (("s", 1e-3), ("ms", 1.0), ("us", 1e3)):
        if milliseconds * factor >= 1 or unit == "us":
            return f"{milliseconds * factor:.4g} {unit}"
    return ""


def benchmark(kernel_configuration: Any, /, *args: Any, warmup: int = 3, repeat: int = 20) -> Benchmark:
    """Measure how long launches of a kernel take, one after the other, in the launch's stream.

    Each launch really runs: what the kernel changes is changed ``warmup + repeat`` times. On a GPU the time is that
    between an event before the launch and one after it: for kernels that finish before the next launch is queued,
    some microseconds of that are in it. On the CPU executor it is wall time, until the kernel is done.

    Parameters
    ----------
    kernel_configuration
        A kernel with its configuration: ``kernel[blocks, threads]``, or with a stream.
    *args
        The kernel's arguments. Arrays are on the device: copies of host arrays would be measured, too.
    warmup
        Launches before those that are measured; 1 at least, since the first one compiles the kernel.
    repeat
        Launches that are measured; 1 at least.

    Returns
    -------
    Benchmark
        ``median``, ``min``, ``max``, ``mean`` and ``spread`` in milliseconds, ``count``, and ``times``, that of each.

    Raises
    ------
    TypeError
        The first argument is not a configured kernel, an argument is a host array, or a launch count is not an int.
    ValueError
        A number of launches is too small.

    Examples
    --------
    >>> timing = cuda.benchmark(axpy[blocks, 256], 2.0, x, y)  # doctest: +SKIP
    >>> timing.median  # doctest: +SKIP
    0.0731
    """
    if not isinstance(kernel_configuration, _LaunchConfiguration):
        raise TypeError(_no_configuration(kernel_configuration))
    for name, count in (("warmup", warmup), ("repeat", repeat)):
        if isinstance(count, bool) or not hasattr(count, "__index__"):
            msg = f"`{name}` must be an int, the number of launches, not {type(count).__name__}"
            raise TypeError(msg)
        if count < 1:
            why = ": the first launch compiles the kernel" if name == "warmup" else ""
            msg = f"`{name}` must be at least 1, not {count}{why}"
            raise ValueError(msg)
    for number, arg in enumerate(args, 1):
        if _has_host_array(arg):
            msg = (
                f"argument {number} of the kernel is a host array, whose copies would be measured, too: pass a "
                "device array (`cuda.to_device`)"
            )
            raise TypeError(msg)
    stream = kernel_configuration.stream
    for _ in range(warmup):
        kernel_configuration(*args)
    _wait(stream)
    on_gpu = _weft.device_kind() == "cuda"
    times = (_by_events if on_gpu else _by_the_clock)(kernel_configuration, args, stream, repeat)
    name = kernel_configuration.dispatcher.__name__
    return Benchmark(times, name, "events" if on_gpu else "wall")


def _by_events(launch: Any, args: Sequence[Any], stream: Any, repeat: int) -> list[float]:
    pairs = [(Event(), Event()) for _ in range(repeat)]
    for start, end in pairs:
        start.record(stream)
        launch(*args)
        end.record(stream)
    _wait(stream)
    return [start.elapsed_time(end) for start, end in pairs]


def _by_the_clock(launch: Any, args: Sequence[Any], stream: Any, repeat: int) -> list[float]:
    times = []
    for _ in range(repeat):
        start = time.perf_counter_ns()
        launch(*args)
        _wait(stream)
        times.append((time.perf_counter_ns() - start) / 1e6)
    return times


def _wait(stream: Any) -> None:
    if hasattr(stream, "synchronize"):
        stream.synchronize()
    else:
        _weft.synchronize()


def _no_configuration(given: Any) -> str:
    if isinstance(given, Dispatcher):
        name = given.__name__
        return f"the kernel `{name}` needs a launch configuration: cuda.benchmark({name}[blocks, threads], …)"
    if isinstance(given, ForAll):
        name = given.dispatcher.__name__
        return f"a kernel's `forall` is not a launch configuration: cuda.benchmark({name}[blocks, threads], …)"
    given = type(given).__name__
    return f"the first argument must be a kernel with its configuration, `kernel[blocks, threads]`, not {given}"


def _has_host_array(arg: Any) -> bool:
    if isinstance(arg, (tuple, list)):
        return any(map(_has_host_array, arg))
    if isinstance(arg, CopyHint):
        return True
    # NumPy scalars also have the interface; the device accesses a mapped array in place.
    return (
        hasattr(arg, "__array_interface__")
        and not (hasattr(arg, "dtype") and not getattr(arg, "shape", ()))
        and getattr(arg, "_weft_device_array", None) is None
    )
