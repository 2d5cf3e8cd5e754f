"""Times compiling and the first launch, in weft and numba-cuda.

Compiling needs no GPU: it is timed from the Python function to PTX in a warm process, for a fresh function each time.
The first launch is timed in fresh processes: saxpy's by its stages, and that of every kernel of the suite and the
examples (``first_launch.py``).
"""

from __future__ import annotations

import argparse
import functools
import inspect
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import first_launch

LIBRARIES = ("weft", "numba-cuda")
NUMBERS = itertools.count()
STAGES = ("import", "device", "first launch", "second launch")


def first_saxpy(library: str) -> dict[str, float]:
    """Milliseconds of the stages, in this process, which must be new."""
    begin = time.perf_counter()
    import numpy as np

    if library == "weft":
        from weft import cuda
    else:
        from numba import cuda

    imported = time.perf_counter()

    @cuda.jit
    def saxpy(a, x, y, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = a * x[i] + y[i]

    x = cuda.to_device(np.ones(1024, np.float32))
    y = cuda.to_device(np.ones(1024, np.float32))
    out = cuda.to_device(np.zeros(1024, np.float32))
    cuda.synchronize()
    ready = time.perf_counter()
    saxpy[8, 128](np.float32(2), x, y, out)
    cuda.synchronize()
    launched = time.perf_counter()
    saxpy[8, 128](np.float32(2), x, y, out)
    cuda.synchronize()
    again = time.perf_counter()
    if not (out.copy_to_host() == 3).all():
        raise RuntimeError("saxpy is wrong")
    moments = (begin, imported, ready, launched, again)
    return {stage: (moments[k + 1] - moments[k]) * 1e3 for k, stage in enumerate(STAGES)}


def first_launches(library: str, runs: int, *, driver_cache: bool) -> dict[str, float]:
    """Medians over new processes; the driver caches the machine code of PTX unless its cache is off."""
    env = os.environ | {"CUDA_CACHE_DISABLE": "0" if driver_cache else "1", "NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS": "0"}
    samples = []
    for run in range(runs + driver_cache):
        begin = time.perf_counter()
        done = subprocess.run(
            [sys.executable, __file__, "--child", library], env=env, capture_output=True, text=True, check=False
        )
        total = (time.perf_counter() - begin) * 1e3
        if done.returncode:
            raise RuntimeError(done.stderr)
        if run or not driver_cache:  # the first run only fills the cache
            samples.append(json.loads(done.stdout.strip().splitlines()[-1]) | {"process": total})
    return {stage: statistics.median(sample[stage] for sample in samples) for stage in samples[0]}


@functools.cache
def source_text(case: Any) -> str:
    """The text of a case's kernel."""
    from weft import cuda

    return textwrap.dedent(inspect.getsource(case.make(cuda).py_func))


def weft_to_ptx(case: Any, target: str) -> str:
    from weft import cuda

    # weft caches compiled code: a comment in the source makes it a different program.
    text = re.sub(r":\n", f":\n    # {next(NUMBERS)}\n", source_text(case), count=1)
    return cuda.jit(source=text)(case.make(cuda).py_func).inspect_asm(case.signature, target=target)


def numba_to_ptx(case: Any, target: str) -> str:
    from numba import cuda
    from numba.core import sigutils

    digits = target.removeprefix("sm_")
    arguments, _ = sigutils.normalize_signature(case.signature)
    return cuda.compile_ptx(case.make(cuda).py_func, arguments, cc=(int(digits[:-1]), int(digits[-1])))[0]


def compile_times(to_ptx: Any, case: Any, target: str, runs: int) -> list[float]:
    """Milliseconds of each run."""
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        ptx = to_ptx(case, target)
        times.append((time.perf_counter() - begin) * 1e3)
        if ".entry" not in ptx:
            raise RuntimeError("the PTX has no kernel")
    return times


def attempt(function: Any) -> Any:
    """The result, or a line about the error."""
    from suite.faults import brief

    try:
        return function()
    except Exception as fault:
        return brief(fault)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--launch-runs", type=int, default=3, help="fresh processes for each kernel's first launch")
    parser.add_argument("--no-launch", action="store_true", help="time compiling only")
    parser.add_argument("--child", choices=LIBRARIES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(first_saxpy(options.child)))
        return 0
    from suite import CASES

    result: dict[str, Any] = {"to_ptx_ms": {}, "first_launch_ms": {}}
    print(f"From Python function to PTX for {options.target}, ms, median of {options.runs} in a warm process\n")
    print("| kernel | weft | numba-cuda | numba-cuda / weft |\n|---|---|---|---|")
    compilers = {"weft": weft_to_ptx, "numba-cuda": numba_to_ptx}
    for to_ptx in compilers.values():
        attempt(lambda to_ptx=to_ptx: to_ptx(CASES[0], options.target))
    for case in CASES:
        row = {}
        for name, to_ptx in compilers.items():
            times = attempt(lambda to_ptx=to_ptx, case=case: compile_times(to_ptx, case, options.target, options.runs))
            row[name] = times if isinstance(times, str) else statistics.median(times)
        result["to_ptx_ms"][case.name] = row
        weft, numba = row["weft"], row["numba-cuda"]
        cells = [value if isinstance(value, str) else f"{value:.2f}" for value in (weft, numba)]
        ratio = "" if isinstance(weft, str) or isinstance(numba, str) else f"{numba / weft:.1f}"
        print(f"| {case.name} | {cells[0]} | {cells[1]} | {ratio} |", flush=True)

    if not options.no_launch:
        print("\nsaxpy in a fresh process, ms, median of 3\n")
        print(
            "| library | driver's cache | " + " | ".join(STAGES) + " | whole process |\n|---|---|---|---|---|---|---|"
        )
        for library in LIBRARIES:
            for cached in (False, True):
                times = attempt(lambda library=library, cached=cached: first_launches(library, 3, driver_cache=cached))
                result["first_launch_ms"][f"{library}, {'warm' if cached else 'off'}"] = times
                cells = [times] if isinstance(times, str) else [f"{value:.1f}" for value in times.values()]
                print(f"| {library} | {'warm' if cached else 'off'} | " + " | ".join(cells) + " |", flush=True)
        result["first_launch_of_each_ms"] = first_launch.tables(options.launch_runs)
    if out := os.environ.get("OUT"):
        (Path(out) / "compile.json").write_text(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
