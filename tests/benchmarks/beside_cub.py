"""Code that `coop.py` and `coop_sorts.py` share: CUB's library, alternating runs of both, and the table of times."""

from __future__ import annotations

import ctypes
import json
import math
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft import cuda

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TYPES = ("float32", "int32")


def library(source: Path, folder: str) -> Any:
    """Return CUB's library, compiled from its source; None if there is no nvcc."""
    nvcc = shutil.which("nvcc") or next(iter(Path("/usr/local").glob("cuda*/bin/nvcc")), None)
    if nvcc is None:
        return None
    made = Path(folder, f"{source.stem}.so")
    options = ["-O3", "-std=c++17", "-arch=native", "-shared", "-Xcompiler", "-fPIC"]
    subprocess.run([str(nvcc), *options, str(source), "-o", str(made)], check=True)
    loaded = ctypes.CDLL(str(made))
    pointer = ctypes.c_void_p
    loaded.run.argtypes = [ctypes.c_int] * 4 + [pointer, pointer] + [ctypes.c_int] * 2
    loaded.run.restype = ctypes.c_float
    return loaded


def address(array: Any) -> int:
    """Return the address of a device array."""
    found: int = array.__cuda_array_interface__["data"][0]
    return found


def timed(launch: Callable[[], Any]) -> float:
    """Return milliseconds of a launch."""
    begin, end = cuda.event(), cuda.event()
    begin.record()
    launch()
    end.record()
    end.synchronize()
    return cuda.event_elapsed_time(begin, end)


def medians(launch: Callable[[], Any], cub: Callable[[], float], case: str, given: Any) -> tuple[float, float]:
    """Return the medians of weft's launches and of CUB's (which returns its milliseconds), in nanoseconds per
    iteration."""
    times: tuple[list[float], list[float]] = ([], [])
    for run in range(given.runs + 1):
        for of, elapsed in zip(times, (timed(launch), cub()), strict=True):
            if elapsed < 0:
                msg = f"CUB's kernel failed: {case}"
                raise RuntimeError(msg)
            if run > 0:  # the first compiles
                of.append(elapsed * 1e6 / given.turns)
    return statistics.median(times[0]), statistics.median(times[1])


def mean(rows: list[dict[str, Any]]) -> str:
    """Return the geometric mean of the ratios."""
    return f"{math.exp(statistics.fmean(math.log(row['weft'] / row['cub']) for row in rows)):.3f}"


def table(
    script: str,
    names: Iterable[str],
    shapes: Callable[[str], list[tuple[int, int]]],
    row: Callable[..., tuple[float, float]],
    given: Any,
) -> int:
    """Print a row for each name, type, shape (threads and items per thread) and number of blocks, and the means.

    ``row(cub, name, dtype, threads, items, blocks, given)`` returns the medians. The rows are also written to the
    folder OUT.
    """
    with tempfile.TemporaryDirectory() as folder:
        cub = library(Path(script).with_suffix(".cu"), folder)
        if cub is None:
            print("skipped: no nvcc")
            return 0
        units = cuda.get_current_device().MULTIPROCESSOR_COUNT
        rows: list[dict[str, Any]] = []
        print(f"nanoseconds per iteration, {units} multiprocessors, median of {given.runs} in turns\n")
        print("| what | type | threads | items | blocks | weft | CUB | weft / CUB |\n|---|---|--:|--:|--:|--:|--:|--:|")
        cases = [(name, dtype, *shape) for name in names for dtype in TYPES for shape in shapes(name)]
        for name, dtype, threads, items in cases:
            for blocks in (units, units * (2048 // threads)):
                weft, other = row(cub, name, dtype, threads, items, blocks, given)
                rows.append({"what": name, "dtype": dtype, "threads": threads, "items": items, "blocks": blocks,
                             "weft": weft, "cub": other})  # fmt: skip
                line = f"| {name} | {dtype} | {threads} | {items} | {blocks} | {weft:.1f} | {other:.1f} |"
                print(f"{line} {weft / other:.3f} |", flush=True)
    print()
    for name in names:
        of = [row for row in rows if row["what"] == name]
        alone = [row for row in of if row["blocks"] == units]
        full = [row for row in of if row["blocks"] > units]
        print(f"geometric mean, {name}: {mean(of)} (one block a multiprocessor {mean(alone)}, a full GPU {mean(full)})")
    if os.environ.get("OUT"):
        Path(os.environ["OUT"], f"{Path(script).stem}.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0
