"""Times `cuda.coop`'s sorts and exchanges of blocks beside CUB's (`coop_sorts.cu`): needs a GPU, nvcc, CUB's headers.

A kernel does the same collective over and over, each time of numbers in no order that are made of the last result, with
as many blocks as fill the GPU and with one block a multiprocessor. The two take turns, and their results are compared.
Both know how many threads a block has.
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
# Threads and items of each.
SHAPES = ((128, 1), (128, 4), (128, 16), (256, 4), (256, 16), (1024, 4))
# What is timed; the places are CUB's numbers.
NAMES = ("merge sort", "merge sort of pairs", "radix sort", "radix sort of pairs", "striped to blocked",
         "blocked to striped")  # fmt: skip
KINDS = {"sorts": NAMES[:4], "exchanges": NAMES[4:]}


@cuda.jit(device=True)
def shuffled(x):
    """Numbers of 24 bits in no order, which float32 has exactly."""
    return type(x)(np.uint32(np.uint32(x) * np.uint32(1664525) + np.uint32(1013904223)) >> np.uint32(8))


def turns_of(name: str, threads: int, items: int) -> Any:
    """Give a kernel that sorts or exchanges a block's items many times."""
    number = NAMES.index(name)
    pairs = number in (1, 3)

    @cuda.jit(launch_bounds=threads)
    def kernel(x, out, turns):
        keys, values = cuda.local.array(items, x.dtype), cuda.local.array(items, np.int32)
        first = cuda.grid(1) * items
        for k in range(items):
            keys[k] = x[first + k]
            values[k] = cuda.threadIdx.x * items + k
        for _ in range(turns):
            for k in range(items):
                keys[k] = shuffled(keys[k])
            if number == 0:
                coop.block.merge_sort_keys(keys)
            elif number == 1:
                coop.block.merge_sort_pairs(keys, values)
            elif number == 2:
                coop.block.radix_sort_keys(keys)
            elif number == 3:
                coop.block.radix_sort_pairs(keys, values)
            elif number == 4:
                coop.block.striped_to_blocked(keys)
            else:
                coop.block.blocked_to_striped(keys)
        for k in range(items):
            out[first + k] = values[k] if pairs else keys[k]

    return kernel


def library(folder: str) -> Any:
    """Give CUB's library; nothing where there is no nvcc."""
    nvcc = shutil.which("nvcc") or next(iter(Path("/usr/local").glob("cuda*/bin/nvcc")), None)
    if nvcc is None:
        return None
    source, made = Path(__file__).with_suffix(".cu"), Path(folder, "coop_sorts.so")
    options = ["-O3", "-std=c++17", "-arch=native", "-shared", "-Xcompiler", "-fPIC"]
    subprocess.run([str(nvcc), *options, str(source), "-o", str(made)], check=True)
    loaded = ctypes.CDLL(str(made))
    pointer = ctypes.c_void_p
    loaded.run.argtypes = [ctypes.c_int] * 4 + [pointer, pointer] + [ctypes.c_int] * 2
    loaded.run.restype = ctypes.c_float
    return loaded


def timed(launch: Callable[[], Any]) -> float:
    """Give milliseconds of a launch."""
    begin, end = cuda.event(), cuda.event()
    begin.record()
    launch()
    end.record()
    end.synchronize()
    return cuda.event_elapsed_time(begin, end)


def row(cub: Any, name: str, dtype: str, threads: int, items: int, blocks: int, given: Any) -> dict[str, Any]:
    """Give the medians of both, in nanoseconds a turn."""
    count = blocks * threads * items
    x = cuda.to_device(np.random.default_rng(1).integers(0, 1 << 24, count).astype(dtype))
    mine, theirs = cuda.to_device(np.zeros(count, dtype)), cuda.to_device(np.ones(count, dtype))
    kernel = turns_of(name, threads, items)
    number, kind = NAMES.index(name), TYPES.index(dtype)
    where, there = (array.__cuda_array_interface__["data"][0] for array in (x, theirs))

    def weft() -> float:
        return timed(lambda: kernel[blocks, threads](x, mine, given.turns))

    def beside() -> float:
        elapsed: float = cub.run(number, kind, threads, items, where, there, blocks, given.turns)
        return elapsed

    times: list[list[float]] = [[], []]
    for run in range(given.runs + 1):
        for place, call in enumerate((weft, beside)):
            elapsed = call()
            if elapsed < 0:
                msg = f"CUB's kernel failed: {name}, {dtype}, {threads} threads, {items} items"
                raise RuntimeError(msg)
            if run > 0:  # the first compiles
                times[place].append(elapsed * 1e6 / given.turns)
    if not np.array_equal(mine.copy_to_host(), theirs.copy_to_host()):
        msg = f"the results differ: {name}, {dtype}, {threads} threads, {items} items"
        raise RuntimeError(msg)
    both = [statistics.median(of) for of in times]
    return {"what": name, "dtype": dtype, "threads": threads, "items": items, "blocks": blocks,
            "weft": both[0], "cub": both[1]}  # fmt: skip


def mean(rows: list[dict[str, Any]]) -> str:
    """Give the geometric mean of the ratios."""
    return f"{math.exp(statistics.fmean(math.log(row['weft'] / row['cub']) for row in rows)):.3f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", choices=KINDS, help="sorts or exchanges alone")
    given = parser.parse_args()
    names = KINDS[given.only] if given.only else NAMES
    with tempfile.TemporaryDirectory() as folder:
        cub = library(folder)
        if cub is None:
            print("skipped: no nvcc")
            return 0
        units = cuda.get_current_device().MULTIPROCESSOR_COUNT
        rows = []
        print(f"nanoseconds a turn, {units} multiprocessors, median of {given.runs} in turns\n")
        print("| what | type | threads | items | blocks | weft | CUB | weft / CUB |\n|---|---|--:|--:|--:|--:|--:|--:|")
        for name in names:
            for dtype in TYPES:
                for threads, items in SHAPES:
                    if items == 1 and name in KINDS["exchanges"]:
                        continue
                    for blocks in (units, units * (2048 // threads)):
                        found = row(cub, name, dtype, threads, items, blocks, given)
                        rows.append(found)
                        line = f"| {name} | {dtype} | {threads} | {items} | {blocks} | {found['weft']:.1f} |"
                        print(f"{line} {found['cub']:.1f} | {found['weft'] / found['cub']:.3f} |", flush=True)
    print()
    for name in names:
        of = [row for row in rows if row["what"] == name]
        alone = [row for row in of if row["blocks"] == units]
        full = [row for row in of if row["blocks"] > units]
        print(f"geometric mean, {name}: {mean(of)} (one block a multiprocessor {mean(alone)}, a full GPU {mean(full)})")
    if os.environ.get("OUT"):
        Path(os.environ["OUT"], "coop_sorts.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
