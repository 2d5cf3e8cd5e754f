"""Times reductions and ufuncs over large arrays: on a GPU beside CuPy and the bandwidth, on the CPU beside NumPy.

On a GPU many calls are queued between two events, the two libraries in turns; what is copied to the host is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from weft import cuda, vectorize

if TYPE_CHECKING:
    from collections.abc import Callable


@cuda.reduce
def total(a, b):
    return a + b


@cuda.reduce
def largest(a, b):
    return max(a, b)


@vectorize(["float32(float32, float32)", "float64(float64, float64)"])
def add(x, y):
    return x + y


@vectorize(["float32(float32)"])
def squared(x):
    return x * x


def cases(n: int, library: Any) -> list[tuple[str, int, Callable[[], Any], Callable[[], Any]]]:
    """Return the calls to time: name, bytes read and written, weft's call, and the other library's call."""
    gpu = library is not np
    found = []
    rng = np.random.default_rng(1)
    for dtype in ("float32", "float64", "int32"):
        host = (rng.random(n) * 100).astype(dtype)
        mine = cuda.to_device(host)
        theirs = library.asarray(host) if gpu else host
        size = host.nbytes
        result = cuda.device_array(1, dtype)
        own = library.empty((), dtype)
        found.append((f"sum {dtype}", size, lambda a=mine, r=result: total(a, res=r),
                      lambda a=theirs, o=own, t=dtype: a.sum(dtype=t, out=o)))  # fmt: skip
        if dtype == "float32":
            found.append((f"max {dtype}", size, lambda a=mine, r=result: largest(a, res=r),
                          lambda a=theirs, o=own: a.max(out=o)))  # fmt: skip
            out, back = cuda.device_array(n, dtype), library.empty(n, dtype)
            found.append(("x + y, float32", 3 * size, lambda a=mine, o=out: add(a, a, out=o),
                          lambda a=theirs, o=back: library.add(a, a, out=o)))  # fmt: skip
            found.append(("x * x, float32", 2 * size, lambda a=mine, o=out: squared(a, out=o),
                          lambda a=theirs, o=back: library.multiply(a, a, out=o)))  # fmt: skip
            side = 1 << (n.bit_length() - 1) // 2
            square, flat = (side, side), side * side
            matrix, row, sums = mine[:flat].reshape(square), mine[:side], out[:flat].reshape(square)
            rows, line, sheet = theirs[:flat].reshape(square), theirs[:side], back[:flat].reshape(square)
            column, up = row.reshape(side, 1), line.reshape(side, 1)
            few, lines, ends = mine[:flat].reshape(4, -1), theirs[:flat].reshape(4, -1), cuda.device_array(4, dtype)
            edge, end, four = cuda.device_array(side, dtype), library.empty(side, dtype), library.empty(4, dtype)
            found.append(("sums of 4 rows, float32", 4 * flat, lambda a=few, o=ends: add.reduce(a, 1, out=o),
                          lambda a=lines, o=four: a.sum(1, out=o)))  # fmt: skip
            found.append(("sums of rows, float32", 4 * flat, lambda a=matrix, o=edge: add.reduce(a, 1, out=o),
                          lambda a=rows, o=end: a.sum(1, out=o)))  # fmt: skip
            found.append(("sums of columns, float32", 4 * flat, lambda a=matrix, o=edge: add.reduce(a, 0, out=o),
                          lambda a=rows, o=end: a.sum(0, out=o)))  # fmt: skip
            found.append(("matrix + row, float32", 8 * flat, lambda a=matrix, b=row, o=sums: add(a, b, out=o),
                          lambda a=rows, b=line, o=sheet: library.add(a, b, out=o)))  # fmt: skip
            found.append(("matrix + column, float32", 8 * flat, lambda a=matrix, b=column, o=sums: add(a, b, out=o),
                          lambda a=rows, b=up, o=sheet: library.add(a, b, out=o)))  # fmt: skip
            found.append(("matrix + its transpose", 12 * flat, lambda a=matrix, o=sums: add(a, a.T, out=o),
                          lambda a=rows, o=sheet: library.add(a, a.T, out=o)))  # fmt: skip
    return found


def on_gpu(call: Callable[[], Any], library: Any, repeat: int) -> float:
    """Return microseconds per call of many consecutive calls, on the default stream, which both libraries use."""
    begin, end = library.cuda.Event(), library.cuda.Event()
    begin.record()
    for _ in range(repeat):
        call()
    end.record()
    end.synchronize()
    elapsed: float = library.cuda.get_elapsed_time(begin, end)
    return elapsed * 1e3 / repeat


def on_cpu(call: Callable[[], Any], repeat: int) -> float:
    """Return microseconds per call of a few calls."""
    begin = time.perf_counter()
    for _ in range(repeat):
        call()
    return (time.perf_counter() - begin) * 1e6 / repeat


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log2", type=int, help="elements, as a power of two (28 on a GPU, 24 on the CPU)")
    parser.add_argument("--runs", type=int, default=7)
    given = parser.parse_args()
    gpu = cuda.is_available() and os.environ.get("WEFT_DEVICE") != "cpu"
    library: Any = np
    if gpu:
        import cupy

        library = cupy
    n = 1 << (given.log2 or (28 if gpu else 24))
    other = "CuPy" if gpu else "NumPy"
    print(f"{n} elements, microseconds, median of {given.runs} in turns\n")
    bandwidth = 0.0
    if gpu:
        a, b = library.ones(n, "float32"), library.empty(n, "float32")
        copies = [on_gpu(lambda: library.copyto(b, a), library, 20) for _ in range(given.runs)]
        bandwidth = 8 * n / statistics.median(copies) / 1e6
        print(f"A copy moves {bandwidth:.2f} TB/s.\n")
        del a, b
    print(f"| what | weft | {other} | weft / {other} | weft, TB/s | of the copy's |\n|---|--:|--:|--:|--:|--:|")
    rows = []
    for name, size, mine, theirs in cases(n, library):
        repeat = 20 if gpu else 3
        clock = (lambda call: on_gpu(call, library, repeat)) if gpu else (lambda call: on_cpu(call, repeat))  # noqa: B023
        for call in (mine, theirs):
            clock(call)
        times: list[list[float]] = [[], []]
        for _ in range(given.runs):
            for place, call in enumerate((mine, theirs)):
                times[place].append(clock(call))
        weft, beside = map(statistics.median, times)
        speed = size / weft / 1e6
        share = f"{speed / bandwidth:.2f}" if gpu else ""
        print(f"| {name} | {weft:.1f} | {beside:.1f} | {weft / beside:.2f} | {speed:.3f} | {share} |", flush=True)
        rows.append({"name": name, "weft": weft, other: beside, "bytes": size, "bandwidth": bandwidth})
    if os.environ.get("OUT"):
        Path(os.environ["OUT"], "arrays.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
