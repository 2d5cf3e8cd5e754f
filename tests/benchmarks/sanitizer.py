"""Times kernels on the CPU under the sanitizer beside the same without it, and measures what it remembers.

The kernels of suite/ at small sizes, the launches of each program of examples/ whose kernels call no functions of
its own, and, for each size of elements, a kernel that reads each of them at several places and writes it, with threads
that are loops and with threads that have stacks. A process measures one of the two; a time is the least of several
launches, of an example the sum of its launches. Memory is what the process has grown by, over the bytes of the
kernel's arrays.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import runpy
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"
LEAST_S = 0.2
MOST_TURNS = 15
ELEMENTS_BYTES = 4 << 20
ELEMENTS = {
    "int8": "i1",
    "int16": "i2",
    "float32": "f4",
    "float64": "f8",
    "record of 7 bytes": [("x", "f4"), ("n", "i2"), ("flag", "i1")],
    "record of 16 bytes": {"names": ["x", "n", "flag"], "formats": ["f8", "i4", "i1"], "itemsize": 16},
}


def suite(name: str, size: str) -> dict[str, float]:
    """A kernel of the suite: milliseconds of a launch, and bytes."""
    import numpy as np
    from suite import CASES
    from weft import cuda

    (case,) = (case for case in CASES if case.name == name)
    work = case.work(size)
    args = [cuda.to_device(arg) if isinstance(arg, np.ndarray) else arg for arg in work.args]
    launch = case.make(cuda)[work.grid, work.block]
    tiny = case.work("tiny")
    small = [cuda.to_device(arg) if isinstance(arg, np.ndarray) else arg for arg in tiny.args]
    case.make(cuda)[tiny.grid, tiny.block](*small)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times: list[float] = []
    while len(times) < 2 or (sum(times) < LEAST_S and len(times) < MOST_TURNS):
        start = time.perf_counter()
        launch(*args)
        cuda.synchronize()
        times.append(time.perf_counter() - start)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    n_bytes = sum(arg.nbytes for arg in work.args if isinstance(arg, np.ndarray))
    return {"ms": min(times[1:]) * 1e3, "grown": grown, "bytes": n_bytes}


def elements(name: str) -> dict[str, float]:
    """For elements of a dtype, "on stacks" or not: milliseconds of a launch, and bytes."""
    import numpy as np
    from weft import cuda

    dtype_name, _, stacks = name.partition(" on ")
    dtype = np.dtype(ELEMENTS[dtype_name])

    @cuda.jit
    def of_scalars(a):
        i = cuda.grid(1)
        first = cuda.blockIdx.x * cuda.blockDim.x
        right = first + (cuda.threadIdx.x + 1) % cuda.blockDim.x
        far = first + (cuda.threadIdx.x + 33) % cuda.blockDim.x
        if stacks:
            cuda.syncwarp()
        for _ in range(2):
            v = a[i] + a[right] + a[far]
            cuda.syncthreads()
            a[i] = v
            cuda.syncthreads()
        if a[right] + a[far] == 77:
            a[i] = 3

    @cuda.jit
    def of_records(a):
        i = cuda.grid(1)
        first = cuda.blockIdx.x * cuda.blockDim.x
        right = first + (cuda.threadIdx.x + 1) % cuda.blockDim.x
        far = first + (cuda.threadIdx.x + 33) % cuda.blockDim.x
        if stacks:
            cuda.syncwarp()
        for _ in range(2):
            x = a[i].x + a[right].x + a[far].x
            n = a[i].n + a[right].n + a[far].n
            flag = a[i].flag + a[right].flag + a[far].flag
            cuda.syncthreads()
            a[i].x = x
            a[i].n = n
            a[i].flag = flag
            cuda.syncthreads()

    kernel = of_records if dtype.names else of_scalars
    threads = 256
    array = np.zeros(ELEMENTS_BYTES // dtype.itemsize // threads * threads, dtype)
    kernel[1, threads](cuda.to_device(array[:threads]))
    args = cuda.to_device(array)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times: list[float] = []
    while len(times) < 2 or (sum(times) < LEAST_S and len(times) < MOST_TURNS):
        start = time.perf_counter()
        kernel[len(array) // threads, threads](args)
        cuda.synchronize()
        times.append(time.perf_counter() - start)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    return {"ms": min(times[1:]) * 1e3, "grown": grown, "bytes": array.nbytes}


def example(name: str) -> dict[str, float]:
    """An example: milliseconds of its launches, the minimum of several runs. The first one compiles."""
    from weft import cuda

    total = 0.0
    configured: type[Any] = type(cuda.jit(lambda: None)[1, 1])
    plain = configured.__call__

    def timed(self: Any, *args: Any) -> None:
        nonlocal total
        cuda.synchronize()
        start = time.perf_counter()
        plain(self, *args)
        cuda.synchronize()
        total += time.perf_counter() - start

    setattr(configured, "__call__", timed)  # noqa: B010  (a method of a class that is implemented in Rust)
    totals = []
    for _ in range(3):
        total = 0.0
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        totals.append(total)
    return {"ms": min(totals[1:]) * 1e3}


def measured(name: str, size: str, sanitize: str) -> dict[str, float]:
    """The measurements of one kernel or example, from a separate process."""
    env = os.environ | {"WEFT_SANITIZE": sanitize, "WEFT_DEVICE": "cpu"}
    argv = [sys.executable, __file__, "--one", name, "--sizes", size]
    ran = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError(ran.stderr.strip().splitlines()[-1])
    return json.loads(ran.stdout.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", choices=("cpu", "tiny"), default="tiny", help="of the suite's kernels")
    parser.add_argument("--only", default="", help="kernels and examples whose names contain this")
    parser.add_argument("--tools", default="all", help="what the sanitizer checks")
    parser.add_argument("--json", type=Path, help="the file that gets the figures")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name = options.one
        if name.endswith(".py"):
            figures = example(name)
        elif name.partition(" on ")[0] in ELEMENTS:
            figures = elements(name)
        else:
            figures = suite(name, options.sizes)
        print(json.dumps(figures))
        return 0
    from suite import CASES

    of_elements = [f"{name}{stacks}" for name in ELEMENTS for stacks in ("", " on stacks")]
    names = [case.name for case in CASES] + [path.name for path in sorted(EXAMPLES.glob("0*.py"))] + of_elements
    rows = []
    print("| kernel | ms | ms, sanitized | times | bytes a byte |\n|---|---|---|---|---|")
    for name in (name for name in names if options.only in name):
        try:
            plain, checked = (measured(name, options.sizes, tools) for tools in ("0", options.tools))
        except RuntimeError as error:
            print(f"| {name} | {error} | | | |", flush=True)
            continue
        if plain["ms"] == 0:
            continue
        times = checked["ms"] / plain["ms"]
        row = {"kernel": name, "plain_ms": plain["ms"], "sanitized_ms": checked["ms"], "times": times}
        memory = ""
        if "bytes" in plain and plain["bytes"] > 1 << 20:
            row["bytes_a_byte"] = max(0.0, checked["grown"] - plain["grown"]) / plain["bytes"]
            memory = f"{row['bytes_a_byte']:.1f}"
        rows.append(row)
        print(f"| {name} | {plain['ms']:.3f} | {checked['ms']:.2f} | {times:.1f} | {memory} |", flush=True)
    of_kernels = [row for row in rows if row["kernel"] not in of_elements]
    if of_kernels:
        mean = math.exp(sum(math.log(row["times"]) for row in of_kernels) / len(of_kernels))
        print(f"\nGeometric mean of kernels and examples: {mean:.1f} times, {len(os.sched_getaffinity(0))} cores.")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
