"""saxpy of 2^24 float32 on weft's CPU executor beside ``gcc -O3 -march=native`` with as many threads.

weft works on device arrays, and once more on NumPy arrays, which each launch copies in and back. The programs take
turns. Needs gcc.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from suite.saxpy import make_elementwise

if TYPE_CHECKING:
    from collections.abc import Callable


def build(folder: str) -> ctypes.CDLL:
    library = Path(folder) / "cpu_saxpy.so"
    source = Path(__file__).with_suffix(".c")
    flags = ["-O3", "-march=native", "-Wall", "-shared", "-fPIC", "-pthread"]
    subprocess.run(["gcc", *flags, "-o", str(library), str(source)], check=True)
    return ctypes.CDLL(str(library))


def elapsed(function: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--repeats", type=int, default=41)
    parser.add_argument("--elements", type=int, default=1 << 24)
    parser.add_argument("--block", type=int, default=256)
    options = parser.parse_args()
    os.environ |= {"WEFT_DEVICE": "cpu", "WEFT_CPU_THREADS": str(options.threads)}
    from weft import cuda

    n, a = options.elements, np.float32(2.5)
    random = np.random.default_rng(1)
    x, y = random.random(n, dtype=np.float32), random.random(n, dtype=np.float32)
    out = np.empty(n, np.float32)
    configured = make_elementwise(cuda)[-(-n // options.block), options.block]

    on_device = [cuda.to_device(array) for array in (x, y, out)]

    def with_weft() -> None:
        configured(a, *on_device)
        cuda.synchronize()

    def with_copies() -> None:
        configured(a, x, y, out)

    with tempfile.TemporaryDirectory() as folder:
        library = build(folder)
        if status := library.saxpy_start(options.threads):
            raise OSError(status, "could not start the threads")
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, y, out)]

        def with_gcc() -> None:
            library.saxpy_run(ctypes.c_float(a), *pointers, ctypes.c_ssize_t(n))

        programs = {"gcc": with_gcc, "weft": with_weft, "weft, NumPy arrays": with_copies}
        expected = a.astype(np.float64) * x + y
        for name, program in programs.items():
            out.fill(np.nan)
            program()
            result = on_device[2].copy_to_host() if name == "weft" else out
            if not np.allclose(result, expected, rtol=1e-6):
                raise RuntimeError(f"{name} is wrong")
            for _ in range(3):
                program()
        times: dict[str, list[float]] = {name: [] for name in programs}
        for _ in range(options.repeats):
            for name, program in programs.items():
                times[name].append(elapsed(program))
        library.saxpy_stop()

    medians = {name: statistics.median(values) for name, values in times.items()}
    rates = {name: 12 * n / median / 1e9 for name, median in medians.items()}
    print(f"saxpy of {n} float32 on {options.threads} threads, median of {options.repeats} in turns\n")
    print("| program | ms | least ms | GB/s | speed / gcc |\n|---|---|---|---|---|")
    for name, median in medians.items():
        cells = f"{median * 1e3:.3f} | {min(times[name]) * 1e3:.3f} | {rates[name]:.1f}"
        print(f"| {name} | {cells} | {medians['gcc'] / median:.3f} |")
    if folder := os.environ.get("OUT"):
        result = {"threads": options.threads, "elements": n, "block": options.block, "times_s": times}
        (Path(folder) / "cpu_saxpy.json").write_text(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
