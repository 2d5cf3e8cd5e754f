"""Times `cuda.coop`'s block-wide sums and scans beside CUB's (`coop.cu`): needs a GPU, nvcc and CUB's headers.

A kernel does the same collective over and over, so that nothing else counts, with as many blocks as fill the GPU and
with one block a multiprocessor. The two take turns, and their results are compared. CUB's sums are the first thread's
alone, weft's every thread's unless it is told otherwise. CUB's kernels know how many threads a block has; weft's are
told by `launch_bounds`.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from weft import cuda
from weft.cuda import coop

if TYPE_CHECKING:
    from collections.abc import Callable

TYPES = ("float32", "int32")
THREADS = (128, 256, 1024)
ITEMS = (1, 4, 16)
# What is timed, and CUB's number for it.
SUM, FIRST, RAKING, WARPS = "sum", "sum, for the first thread", "scan", "scan, CUB's warp scans"
NUMBERS = {SUM: 0, FIRST: 0, RAKING: 1, WARPS: 2}


def sums(items: int, threads: int, broadcast: bool) -> Any:
    """Give a kernel that sums up a block's items many times, for every thread or for the first."""

    @cuda.jit(launch_bounds=threads)
    def kernel(x, out, turns):
        own = cuda.local.array(items, x.dtype)
        for k in range(items):
            own[k] = x[cuda.grid(1) * items + k]
        total = x.dtype.type(0)
        one, two = x.dtype.type(1), x.dtype.type(2)
        for _ in range(turns):
            if items == 1:
                found = coop.block.sum(own[0], broadcast=broadcast)
            else:
                found = coop.block.sum(own, broadcast=broadcast)
            total = x.dtype.type(total + found)
            # A turn needs the last one's result, and each item one of its own: equal items need no adding up.
            if cuda.threadIdx.x == 0:
                for k in range(items):
                    own[k] = one if found > x.dtype.type(k) else two
        if cuda.threadIdx.x == 0:
            out[cuda.blockIdx.x] = total

    return kernel


def scans(items: int, threads: int) -> Any:
    """Give a kernel that scans a block's items many times."""

    @cuda.jit(launch_bounds=threads)
    def kernel(x, out, turns):
        own = cuda.local.array(items, x.dtype)
        for k in range(items):
            own[k] = x[cuda.grid(1) * items + k]
        one = x.dtype.type(1)
        for _ in range(turns):
            if items == 1:
                own[0] = coop.block.exclusive_sum(own[0])
            else:
                coop.block.exclusive_sum(own)
            for k in range(items):
                own[k] = min(own[k], one) + one
        total = x.dtype.type(0)
        for k in range(items):
            total = x.dtype.type(total + own[k])
        out[cuda.grid(1)] = total

    return kernel


def library(folder: str) -> Any:
    """Give CUB's library; nothing where there is no nvcc."""
    nvcc = shutil.which("nvcc") or next(iter(Path("/usr/local").glob("cuda*/bin/nvcc")), None)
    if nvcc is None:
        return None
    source, made = Path(__file__).with_suffix(".cu"), Path(folder, "coop.so")
    options = ["-O3", "-std=c++17", "-arch=native", "-shared", "-Xcompiler", "-fPIC"]
    subprocess.run([str(nvcc), *options, str(source), "-o", str(made)], check=True)
    loaded = ctypes.CDLL(str(made))
    pointer = ctypes.c_void_p
    loaded.run.argtypes = [ctypes.c_int] * 4 + [pointer, pointer] + [ctypes.c_int] * 2
    loaded.run.restype = ctypes.c_float
    return loaded


def address(array: Any) -> int:
    """Give where a device array lies."""
    found: int = array.__cuda_array_interface__["data"][0]
    return found


def timed(launch: Callable[[], Any]) -> float:
    """Give milliseconds of a launch."""
    begin, end = cuda.event(), cuda.event()
    begin.record()
    launch()
    end.record()
    end.synchronize()
    return cuda.event_elapsed_time(begin, end)


def row(cub: Any, what: str, dtype: str, threads: int, items: int, blocks: int, given: Any) -> dict[str, Any]:
    """Give the medians of both, in nanoseconds a turn."""
    host = np.random.default_rng(1).integers(0, 3, blocks * threads * items).astype(dtype)
    x = cuda.to_device(host)
    mine, theirs = cuda.to_device(np.zeros(blocks * threads, dtype)), cuda.to_device(np.zeros(blocks * threads, dtype))
    kernel = sums(items, threads, what == SUM) if NUMBERS[what] == 0 else scans(items, threads)
    kind = TYPES.index(dtype)

    def weft() -> float:
        return timed(lambda: kernel[blocks, threads](x, mine, given.turns))

    def beside() -> float:
        number = NUMBERS[what]
        elapsed: float = cub.run(number, kind, threads, items, address(x), address(theirs), blocks, given.turns)
        return elapsed

    times: list[list[float]] = [[], []]
    for run in range(given.runs + 1):
        for place, call in enumerate((weft, beside)):
            elapsed = call()
            if elapsed < 0:
                msg = f"CUB's kernel failed: {what}, {dtype}, {threads} threads, {items} items"
                raise RuntimeError(msg)
            if run > 0:  # the first compiles
                times[place].append(elapsed * 1e6 / given.turns)
    got, expected = mine.copy_to_host(), theirs.copy_to_host()
    same = np.allclose(got, expected, rtol=1e-4) if dtype == "float32" else np.array_equal(got, expected)
    if not same:
        msg = f"the results differ: {what}, {dtype}, {threads} threads, {items} items"
        raise RuntimeError(msg)
    both = [statistics.median(of) for of in times]
    return {"what": what, "dtype": dtype, "threads": threads, "items": items, "blocks": blocks,
            "weft": both[0], "cub": both[1]}  # fmt: skip


def mean(rows: list[dict[str, Any]]) -> str:
    """Give the geometric mean of the ratios."""
    return f"{math.exp(statistics.fmean(math.log(row['weft'] / row['cub']) for row in rows)):.3f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cub = library(folder)
        if cub is None:
            print("skipped: no nvcc")
            return 0
        units = cuda.get_current_device().MULTIPROCESSOR_COUNT
        rows = []
        print(f"nanoseconds a turn, {units} multiprocessors, median of {given.runs} in turns\n")
        print("| what | type | threads | items | blocks | weft | CUB | weft / CUB |\n|---|---|--:|--:|--:|--:|--:|--:|")
        for what in NUMBERS:
            for dtype in TYPES:
                for threads in THREADS:
                    for items in ITEMS:
                        for blocks in (units, units * (2048 // threads)):
                            found = row(cub, what, dtype, threads, items, blocks, given)
                            rows.append(found)
                            line = f"| {what} | {dtype} | {threads} | {items} | {blocks} | {found['weft']:.1f} |"
                            print(f"{line} {found['cub']:.1f} | {found['weft'] / found['cub']:.3f} |", flush=True)
    print()
    for what in NUMBERS:
        of = [row for row in rows if row["what"] == what]
        alone = [row for row in of if row["blocks"] == units]
        full = [row for row in of if row["blocks"] > units]
        print(f"geometric mean, {what}: {mean(of)} (one block a multiprocessor {mean(alone)}, a full GPU {mean(full)})")
    if os.environ.get("OUT"):
        Path(os.environ["OUT"], "coop.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
