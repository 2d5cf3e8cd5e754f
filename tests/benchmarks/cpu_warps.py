"""Sums of 2^24 float32 on weft's CPU executor: a thread's own loop, and the lanes of each warp by shuffles.

All kernels are cut into loops (docs/design/cpu-thread-loops.md). The programs take turns; the table has the processor's
time beside the clock's, for machines that do other work, too.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

FULL, BLOCK = 0xFFFFFFFF, 256


def make_kernels(cuda: Any) -> dict[str, Any]:
    """The kernels by title, each configured for its grid by the number of elements."""

    @cuda.jit
    def plain(x, out):  # type: ignore[no-untyped-def]
        total = np.float32(0)
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            total += x[i]
        cuda.atomic.add(out, 0, total)

    @cuda.jit
    def shuffles_at_the_end(x, out):  # type: ignore[no-untyped-def]
        total = np.float32(0)
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            total += x[i]
        for distance in (16, 8, 4, 2, 1):
            total += cuda.shfl_down_sync(FULL, total, distance)
        if cuda.laneid == 0:
            cuda.atomic.add(out, 0, total)

    @cuda.jit
    def down(x, out):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        total = x[i] if i < x.size else np.float32(0)
        distance = 16
        while distance > 0:
            total += cuda.shfl_down_sync(FULL, total, distance)
            distance //= 2
        if cuda.laneid == 0:
            cuda.atomic.add(out, 0, total)

    @cuda.jit
    def butterfly(x, out):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        total = x[i] if i < x.size else np.float32(0)
        for distance in (16, 8, 4, 2, 1):
            total += cuda.shfl_xor_sync(FULL, total, distance)
        if cuda.laneid == 0:
            cuda.atomic.add(out, 0, total)

    return {
        "plain: a thread adds in strides of the grid": (plain, 64),
        "the same, and shuffles at the end": (shuffles_at_the_end, 64),
        "an element a lane, `shfl_down_sync`": (down, None),
        "an element a lane, `shfl_xor_sync`": (butterfly, None),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--repeats", type=int, default=41)
    parser.add_argument("--elements", type=int, default=1 << 24)
    options = parser.parse_args()
    os.environ |= {"WEFT_DEVICE": "cpu", "WEFT_CPU_THREADS": str(options.threads), "WEFT_CPU_STRATEGY": "loops"}
    from weft import cuda

    # The values are small integers with a sum below 2^24, so that sums in any order are exact.
    values = np.zeros(options.elements, np.float32)
    values[:: max(1, options.elements >> 16)] = np.arange(1, values[:: max(1, options.elements >> 16)].size + 1) % 128
    x, out = cuda.to_device(values), cuda.to_device(np.zeros(1, np.float32))
    expected = values.sum(dtype=np.float64)
    programs = {}
    for title, (kernel, blocks) in make_kernels(cuda).items():
        configured = kernel[blocks or -(-options.elements // BLOCK), BLOCK]
        out.copy_to_device(np.zeros(1, np.float32))
        configured(x, out)
        if (got := out.copy_to_host()[0]) != expected:
            raise RuntimeError(f"{title}: {got}, not {expected}")
        programs[title] = configured
    clock: dict[str, list[float]] = {title: [] for title in programs}
    spent: dict[str, list[float]] = {title: [] for title in programs}
    for _ in range(options.repeats):
        for title, configured in programs.items():
            begin, processor = time.perf_counter(), time.process_time()
            configured(x, out)
            cuda.synchronize()
            clock[title].append(time.perf_counter() - begin)
            spent[title].append(time.process_time() - processor)

    print(f"Sums of {options.elements} float32 on {options.threads} threads, median of {options.repeats} in turns\n")
    print("| program | ms | processor's ms | speed / plain | by the processor's time |\n|---|---|---|---|---|")
    medians = {title: (statistics.median(clock[title]), statistics.median(spent[title])) for title in programs}
    first = next(iter(medians.values()))
    for title, (wall, processor) in medians.items():
        ratios = f"{first[0] / wall:.3f} | {first[1] / processor:.3f}"
        print(f"| {title} | {wall * 1e3:.3f} | {processor * 1e3:.3f} | {ratios} |")
    if folder := os.environ.get("OUT"):
        result = {"threads": options.threads, "elements": options.elements, "clock_s": clock, "processor_s": spent}
        (Path(folder) / "cpu_warps.json").write_text(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
