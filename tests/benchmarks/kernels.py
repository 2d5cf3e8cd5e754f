"""Times the kernels of a set in weft beside CUDA C++ and numba-cuda, and compares their outputs.

Needs a GPU and CuPy; ``--cpu-check`` runs weft's CPU executor alone, on tiny sizes, against NumPy. ``--set``
takes the kernels of second/, fourth/ or kinds/ in place of those of suite/; ``--restrict`` times C++ again, with
``__restrict__``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import tables
from fourth import CASES as FOURTH
from kinds import CASES as KINDS
from second import CASES as SECOND
from suite import CASES as FIRST
from suite import Case, Work
from suite.faults import brief
from tables import NUMPY_TYPING

PEAK_FLOPS = 60e12
QUEUE_MS = 50.0
LEAST_LAUNCHES, MOST_LAUNCHES = 20, 5000
WARM_UPS = 3
SETS = {"first": FIRST, "second": SECOND, "fourth": FOURTH, "kinds": KINDS}
# Inputs that fit in the cache are rotated among copies of at least this total size in bytes.
ROTATED_BYTES = 256 << 20


def spoil(xp: Any, case: Case, work: Work, args: tuple[Any, ...]) -> None:
    """Clears the arrays that the kernel adds to, restores those that it works in, and poisons its outputs."""
    for position, values in work.initial.items():
        args[position][...] = xp.asarray(values)
    for position in set(work.outputs) - work.initial.keys():
        array = args[position]
        array.fill(0 if case.accumulates else (np.nan if array.dtype.kind == "f" else 90))


def check(xp: Any, case: Case, work: Work, args: tuple[Any, ...], expected: tuple[Any, ...]) -> float:
    return case.error(xp, tuple(args[position] for position in work.outputs), expected)


def verdict(case: Case, error: float) -> str:
    return f"{error:.1e}" + ("" if error <= case.tolerance else " WRONG")


def cpu_check(cases: list[Case]) -> int:
    """Runs weft's CPU executor on tiny sizes; returns the number of failures."""
    os.environ["WEFT_DEVICE"] = "cpu"
    from weft import cuda

    failures = 0
    print("| kernel | max error |\n|---|---|")
    for case in cases:
        makes = {case.name: case.make}
        if case.wider:
            makes[f"{case.name}, {NUMPY_TYPING}"] = case.typed_as_numpy
        for name, make in makes.items():
            work = case.work("tiny")
            spoil(np, case, work, work.args)
            try:
                make(cuda)[work.grid, work.block](*work.args)
                error = check(np, case, work, work.args, case.reference(np, work.args))
                text, failed = verdict(case, error), error > case.tolerance
            except Exception as fault:
                text, failed = brief(fault), True
            failures += failed
            print(f"| {name} | {text} |", flush=True)
    return failures


class Stopwatch:
    """Times queued launches with events on the legacy default stream."""

    def __init__(self, cupy: Any) -> None:
        self.cupy = cupy
        self.start, self.stop = cupy.cuda.Event(), cupy.cuda.Event()

    def queue_us(self, launches: list[Any], count: int) -> float:
        """Microseconds of each of `count` launches, which alternate among `launches`."""
        turns = [launches[i % len(launches)] for i in range(count)]
        stream = self.cupy.cuda.Stream.null
        self.cupy.cuda.Device().synchronize()
        self.start.record(stream)
        for launch in turns:
            launch()
        self.stop.record(stream)
        self.stop.synchronize()
        return self.cupy.cuda.get_elapsed_time(self.start, self.stop) * 1e3 / count

    def host_us(self, launches: list[Any], count: int = 200) -> float:
        """Microseconds that the host needs to queue one launch; the count is too small to fill the queue."""
        self.cupy.cuda.Device().synchronize()
        begin = time.perf_counter()
        for i in range(count):
            launches[i % len(launches)]()
        elapsed = time.perf_counter() - begin
        self.cupy.cuda.Device().synchronize()
        return elapsed * 1e6 / count


def copy_bandwidth(cupy: Any, stopwatch: Stopwatch) -> float:
    """Bytes per second, read plus written, of a copy of 1 GiB on the device."""
    source = cupy.ones(1 << 28, dtype=cupy.float32)
    target = cupy.empty_like(source)
    copy = [lambda: cupy.copyto(target, source)]
    stopwatch.queue_us(copy, 3)
    median_us = statistics.median(stopwatch.queue_us(copy, 20) for _ in range(7))
    return 2 * source.nbytes / (median_us * 1e-6)


def measure(
    cupy: Any, stopwatch: Stopwatch, case: Case, size: str, repeats: int, bandwidth: float, backends: tuple[Any, ...]
) -> dict[str, Any]:
    """One row: the lower bound, and each implementation's times and error, or the reason why it failed."""
    work = case.work(size)
    host_args, work_args = work.args, tuple(cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in work.args)
    expected = case.reference(cupy, work_args)
    flops = case.flops_of(expected) if case.flops_of else work.flops
    bytes_s, flops_s = work.n_bytes / bandwidth, flops / PEAK_FLOPS
    row: dict[str, Any] = {
        "kernel": case.name, "floor_us": max(bytes_s, flops_s) * 1e6, "bytes": work.n_bytes, "flops": flops,
        "grid": work.grid, "block": work.block, "wider": case.wider,
    }  # fmt: skip

    n_sets = 1
    if bytes_s >= flops_s and size == "full":
        n_sets = min(8, math.ceil(ROTATED_BYTES / sum(a.nbytes for a in host_args if isinstance(a, np.ndarray))))
    sets = [work_args]
    sets += [tuple(a.copy() if isinstance(a, cupy.ndarray) else a for a in work_args) for _ in range(n_sets - 1)]
    row["input_sets"] = n_sets

    ready: dict[str, tuple[list[Any], int]] = {}
    cpp_outputs = None
    for backend in backends:
        if backend.name == NUMPY_TYPING and not case.wider:
            continue
        entry: dict[str, Any] = {}
        row[backend.name] = entry
        try:
            implementation = backend(cupy, case)
            launches = [implementation.bind(work, args) for args in sets]
            spoil(cupy, case, work, work_args)
            cupy.cuda.Device().synchronize()
            launches[0]()
            cupy.cuda.Device().synchronize()
            entry["error"] = check(cupy, case, work, work_args, expected)
            entry["error_text"] = verdict(case, entry["error"])
            if cpp_outputs is None and backend.name == "C++":
                cpp_outputs = tuple(work_args[position].copy() for position in work.outputs)
            if cpp_outputs is not None:
                entry["error_to_cpp"] = check(cupy, case, work, work_args, cpp_outputs)
            stopwatch.queue_us(launches, WARM_UPS)
            once = stopwatch.queue_us(launches, 5)
            count = min(MOST_LAUNCHES, max(LEAST_LAUNCHES, math.ceil(QUEUE_MS * 1e3 / once)))
            entry["launches"] = count
            entry["host_us"] = stopwatch.host_us(launches)
            ready[backend.name] = (launches, count)
            entry["registers"] = implementation.registers()
        except Exception as fault:
            entry["failure"] = brief(fault)
    # Runs alternate, so that a change of the clock affects all of them.
    times: dict[str, list[float]] = {name: [] for name in ready}
    for _ in range(repeats):
        for name, (launches, count) in ready.items():
            times[name].append(stopwatch.queue_us(launches, count))
    for name, values in times.items():
        row[name] |= {"median_us": statistics.median(values), "min_us": min(values), "max_us": max(values)}
    return row


def markdown(row: dict[str, Any], names: tuple[str, ...]) -> str:
    """One line of the table: C++, weft, numba-cuda, followed by the remaining columns."""
    base = row["C++"].get("median_us")

    def time_of(name: str) -> str:
        entry = row.get(name, {"failure": "-"})
        return f"{entry['median_us']:.1f}" if "median_us" in entry else entry.get("failure", "not run")

    def ratio(name: str) -> str:
        return f"{row[name]['median_us'] / base:.3f}" if base and "median_us" in row.get(name, {}) else ""

    def of_all(key: str, form: str) -> str:
        return " / ".join(format(row[name][key], form) if key in row.get(name, {}) else "-" for name in names)

    cells = (row["kernel"], f"{row['floor_us']:.1f}", time_of("C++"), time_of("weft"), ratio("weft"),
             time_of("numba-cuda"), ratio("numba-cuda"), of_all("error_text", ""), of_all("host_us", ".1f"),
             of_all("registers", ""), *(form(name) for name in names[3:] for form in (time_of, ratio)))  # fmt: skip
    return "| " + " | ".join(cells) + " |"


HEADER = ("kernel", "floor µs", "C++ µs", "weft µs", "weft/C++", "numba-cuda µs", "numba/C++",
          "max error (C++ / weft / numba)", "host µs a launch (same)", "registers (same)")  # fmt: skip


def gpu_table(cases: list[Case], which: str, size: str, repeats: int, restrict: bool) -> int:
    import cupy
    from suite.backends import BACKENDS, CppRestrict, WeftAsNumpy

    more = (WeftAsNumpy,) if any(case.wider for case in cases) else ()
    backends = (*BACKENDS, *more, *((CppRestrict,) if restrict else ()))
    names = tuple(backend.name for backend in backends)
    header = (*HEADER, *(title for name in names[3:] for title in (f"{name} µs", f"{name}/C++")))
    stopwatch = Stopwatch(cupy)
    bandwidth = copy_bandwidth(cupy, stopwatch)
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{device}; copy on the device: {bandwidth / 1e12:.2f} TB/s read and written; medians of {repeats} runs\n")
    print(tables.head(*header))
    rows = []
    for case in cases:
        try:
            rows.append(measure(cupy, stopwatch, case, size, repeats, bandwidth, backends))
            print(markdown(rows[-1], names), flush=True)
        except Exception as fault:
            rows.append({"kernel": case.name, "failure": brief(fault)})
            print(f"| {case.name} | {rows[-1]['failure']} |" + " |" * (len(header) - 2), flush=True)
        cupy.get_default_memory_pool().free_all_blocks()
    result = {"device": device, "bandwidth": bandwidth, "sizes": size, "set": which, "rows": rows}
    result["geometric_mean"] = {name: tables.geometric_mean(result, name) for name in names[1:]}
    if told := tables.means(result):
        print(f"\n{told}")
    if (out := os.environ.get("OUT")) and which == "first":
        (Path(out) / "kernels.json").write_text(json.dumps(result, indent=1))
    elif out:
        (Path(out) / f"kernels-{which}.json").write_text(json.dumps(result, indent=1))
    return sum("failure" in row or " WRONG" in row["weft"].get("error_text", " WRONG") for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", choices=("full", "tiny"), default="full")
    parser.add_argument("--set", choices=tuple(SETS), default="first", help="the folder whose kernels are measured")
    parser.add_argument("--only", help="run the kernels whose names contain this")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--restrict", action="store_true", help="time C++ with __restrict__ pointers, too")
    parser.add_argument("--cpu-check", action="store_true")
    options = parser.parse_args()
    cases = [case for case in SETS[options.set] if not options.only or options.only in case.name]
    if options.cpu_check:
        return 1 if cpu_check(cases) else 0
    return 1 if gpu_table(cases, options.set, options.sizes, options.repeats, options.restrict) else 0


if __name__ == "__main__":
    sys.exit(main())
