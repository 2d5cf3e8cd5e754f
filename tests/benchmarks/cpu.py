"""Times the kernels on weft's CPU executor beside C with OpenMP and beside Numba's parallel compiler of loops.

The reference kernels are in reference_kernels/. gcc compiles those in C, and Numba those in Python, where each of them
is installed. All use the same number of threads and the memory of weft's device arrays. Each result is compared with
the set's reference. Runs of the compilers alternate. Each time is the minimum of all runs; the JSON file has the
medians, too. On a machine that does other work, ``--clock processor`` measures the CPU time of this process instead of
the wall time.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tables
from kernels import SETS as ON_GPU
from kernels import check, spoil, verdict
from reference_kernels import FLAGS, IN_C_ALONE, NAMES, C, Numba
from suite.faults import brief
from tables import NUMPY_TYPING
from third import CASES as THIRD

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from suite import Case, Work

# Each kernel of these sets has a reference kernel in C.
SETS = {
    "first": ON_GPU["first"], "second": ON_GPU["second"], "third": THIRD, "fourth": ON_GPU["fourth"],
    "kinds": ON_GPU["kinds"],
}  # fmt: skip
CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}
NO_VERSION = "none"
TURN_S = 0.02
MOST_LAUNCHES = 20
QUIET_S = 0.01
"""How long the threads of one program have to fall asleep before the next program runs."""


class Weft:
    def __init__(self, cuda: ModuleType, name: str = "weft") -> None:
        self.cuda, self.name = cuda, name

    def bind(self, case: Case, work: Work, args: tuple[Any, ...]) -> Callable[[], None]:
        """Bind a new kernel, which its first launch compiles."""
        kernel = case.make(self.cuda) if self.name == "weft" else case.typed_as_numpy(self.cuda)
        configured, synchronize = kernel[work.grid, work.block], self.cuda.synchronize

        def launch() -> None:
            configured(*args)
            synchronize()

        return launch


def seen_by_host(array: Any) -> np.ndarray:
    """The memory of an array of the CPU device."""
    memory = (ctypes.c_char * array.nbytes).from_address(array.device_pointer)
    return np.frombuffer(memory, array.dtype).reshape(array.shape)


def elapsed_ms(function: Callable[[], None], clock: str) -> float:
    now = CLOCKS[clock]
    begin = now()
    function()
    return (now() - begin) * 1e3


def measure(
    cuda: ModuleType, case: Case, size: str, repeats: int, clock: str, programs: dict[str, Any]
) -> dict[str, Any]:
    """One row: each program's times and error, or why it failed."""
    work = case.work(size)
    with np.errstate(invalid="ignore"):  # there may be any NaN in outputs that are empty yet
        expected = case.reference(np, work.args)
    on_device = tuple(cuda.to_device(arg) if isinstance(arg, np.ndarray) else arg for arg in work.args)
    on_host = tuple(arg if isinstance(arg, np.generic) else seen_by_host(arg) for arg in on_device)
    row: dict[str, Any] = {"kernel": case.name, "wider": case.wider, "grid": work.grid, "block": work.block}

    def clear() -> None:
        if case.accumulates or work.initial:
            spoil(np, case, work, on_host)

    ready: dict[str, tuple[Callable[[], None], int]] = {}
    for name, program in programs.items():
        if name == NUMPY_TYPING and not case.wider:
            continue
        entry = row[name] = {}
        if name == "numba" and case.name in IN_C_ALONE:
            entry["failure"] = NO_VERSION
            continue
        try:
            if isinstance(program, str):
                entry["failure"] = program
                continue
            launch = program.bind(case, work, on_device if isinstance(program, Weft) else on_host)
            spoil(np, case, work, on_host)
            entry["first_ms"] = elapsed_ms(launch, clock)
            entry["error"] = check(np, case, work, on_host, expected)
            entry["error_text"] = verdict(case, entry["error"])
            clear()
            once = elapsed_ms(launch, "wall")
            ready[name] = launch, min(MOST_LAUNCHES, max(1, math.ceil(TURN_S * 1e3 / once)))
        except Exception as fault:
            entry["failure"] = brief(fault)
    times: dict[str, list[float]] = {name: [] for name in ready}
    for _ in range(repeats):
        for name, (launch, count) in ready.items():
            time.sleep(QUIET_S)
            clear()
            launch()
            for _ in range(count):
                clear()
                times[name].append(elapsed_ms(launch, clock))
    for name, values in times.items():
        row[name] |= {"min_ms": min(values), "median_ms": statistics.median(values), "launches": len(values)}
    return row


def run_set(
    cuda: ModuleType, cases: list[Case], repeats: int, programs: dict[str, Any], facts: dict[str, Any]
) -> dict[str, Any]:
    """Return the figures of a set's kernels; prints each one when it is measured."""
    figures = {**facts, "rows": []}
    print(tables.cpu_head())
    for case in cases:
        try:
            figures["rows"].append(measure(cuda, case, facts["sizes"], repeats, facts["clock"], programs))
        except Exception as fault:
            figures["rows"].append({"kernel": case.name, "failure": brief(fault)})
        print(tables.cpu_row(figures["rows"][-1]), flush=True)
    if told := tables.cpu_means(figures):
        print(f"\n{told}")
    return figures


def failures(figures: dict[str, Any]) -> int:
    """How many rows have a wrong result, or none of weft's."""
    return sum(
        "failure" in row
        or "failure" in row["weft"]
        or any(" WRONG" in entry.get("error_text", "") for entry in row.values() if isinstance(entry, dict))
        for row in figures["rows"]
    )


def start(program: Callable[[], Any]) -> Any:
    """The program, or the reason why it is missing."""
    try:
        return program()
    except FileNotFoundError as fault:
        return str(fault)
    except ModuleNotFoundError as fault:
        return brief(fault)
    except ValueError as fault:
        raise SystemExit(str(fault)) from None


def main() -> int:
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", choices=tuple(SETS), help="the kernels of one set alone")
    parser.add_argument("--sizes", choices=("cpu", "tiny", "full"), default="cpu", help="full: the GPU's")
    parser.add_argument("--only", default="", help="run the kernels whose names contain this")
    parser.add_argument("--threads", type=int, default=cores, help="of each program; all cores if not given")
    parser.add_argument("--repeats", type=int, default=15, help="runs of each program")
    parser.add_argument("--clock", choices=tuple(CLOCKS), default="wall", help="what a launch takes, or computes")
    parser.add_argument("--flags", default=" ".join(FLAGS), help=f"gcc's, in place of {' '.join(FLAGS)}")
    parser.add_argument("--without-numba", action="store_true", help="weft and C alone")
    parser.add_argument("--json", type=Path, help="the file that gets the figures")
    options = parser.parse_args()
    if not 1 <= options.threads <= cores:
        parser.error(f"--threads: {options.threads} is not from 1 to the {cores} cores of this process")
    if options.repeats < 1:
        parser.error("--repeats: there must be 1 at least")
    if options.json and not options.json.absolute().parent.is_dir():
        parser.error(f"--json: there is no folder {options.json.absolute().parent}")
    chosen = {
        which: [case for case in cases if options.only in case.name and case.name in NAMES]
        for which, cases in SETS.items()
        if options.set in (None, which)
    }
    names = [case.name for cases in chosen.values() for case in cases]
    if not names:
        parser.error(f"--only: no kernel's name contains {options.only!r}")
    threads = dict.fromkeys(("WEFT_CPU_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), str(options.threads))
    os.environ |= {"WEFT_DEVICE": "cpu", "WEFT_CACHE": "off", **threads}
    if options.clock == "processor":
        os.environ["OMP_WAIT_POLICY"] = "passive"  # waiting threads do not spin
    from weft import cuda

    gathered = {}
    with tempfile.TemporaryDirectory() as folder:
        programs = {
            "C": start(lambda: C(folder, names, tuple(options.flags.split()))),
            "weft": Weft(cuda),
            NUMPY_TYPING: Weft(cuda, NUMPY_TYPING),
            "numba": "left out" if options.without_numba else start(Numba),
        }
        cuda.jit(lambda: None)[1, 1]()  # what the first launch of all starts is no kernel's
        facts = {
            "threads": options.threads, "flags": options.flags, "sizes": options.sizes, "clock": options.clock,
            "load": os.getloadavg()[0],
        }  # fmt: skip
        facts |= {name: each.version for name, each in programs.items() if isinstance(each, C | Numba)}
        for which, cases in chosen.items():
            if cases:
                print(f"\nThe {which} set: {tables.cpu_facts(facts)}\n")
                figures = run_set(cuda, cases, options.repeats, programs, facts)
                gathered["cpu" if which == "first" else f"cpu-{which}"] = figures
    for name, figures in gathered.items():
        if out := os.environ.get("OUT"):
            (Path(out) / f"{name}.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps(gathered, indent=1) + "\n", encoding="utf-8")
    return 1 if sum(map(failures, gathered.values())) else 0


if __name__ == "__main__":
    sys.exit(main())
