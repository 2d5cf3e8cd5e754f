"""Times small operations beside numba's: an element a thread, many applications of one operation to each.

On a GPU beside numba-cuda, on the same arrays and with CUDA events; on the CPU beside `numba.njit`, both with one
thread. The operations are in `suite/operations.py`. A row whose ratio is above 1.05 is marked.
"""

from __future__ import annotations

import argparse
import json
import linecache
import math
import os
import re
import statistics
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from suite.faults import brief
from suite.operations import Operation, operations

if TYPE_CHECKING:
    from collections.abc import Callable

SLOWER = 1.05
BLOCK = 256

SOURCE = """
def kernel(a, b, out):
    {start}
        x = a[i]
        y = b[i]
        total = Total(0)
        for application in range({applications}):
            {compute}
            total = Total(total + v)
            x = Type(x + step)
        out[i] = total
"""
THREAD = "i = cuda.grid(1)\n    if i < a.size:"
LOOP = "for i in range(a.size):"


def function(operation: Operation, start: str, applications: int, cuda: Any) -> Any:
    """The Python function of an operation, for a library's `cuda`."""
    import cmath

    text = operation.text if "v = " in operation.text else f"v = {operation.text}"
    compute = "\n            ".join(part.strip() for part in text.split(";"))
    # `x` covers half of its range over all applications.
    way = (operation.high - operation.low) / (2.1 * applications)
    number = np.dtype(operation.dtype).type
    names = {
        "cuda": cuda, "math": math, "cmath": cmath, "np": np, "Type": number, "Total": np.dtype(operation.total).type,
        "step": number(max(way, 1) if np.issubdtype(number, np.integer) else way),
    }  # fmt: skip
    source = SOURCE.format(start=start, applications=applications, compute=compute)
    # weft finds the source of a function without a file under this name.
    title = f"<{operation.dtype} {operation.text}>"
    linecache.cache[title] = (len(source), None, source.splitlines(keepends=True), title)
    exec(compile(source, title, "exec"), names)
    return names["kernel"]


def inputs(operation: Operation, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The start values of a row: `x` in the lower half of its range; `y` near 1, or for integers up to 1000."""
    rng = np.random.default_rng(1)
    dtype = np.dtype(operation.dtype)
    x = operation.low + rng.random(n) * (operation.high - operation.low) / 2
    if dtype.kind in "iu":
        return x.astype(dtype), rng.integers(1, 1000, n).astype(dtype)
    y = 0.7 + rng.random(n)
    if dtype.kind == "c":
        return (x + 1j * (rng.random(n) - 0.5)).astype(dtype), (y + 1j * (rng.random(n) - 0.5)).astype(dtype)
    return x.astype(dtype), y.astype(dtype)


def apart(mine: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference of two results, relative to the second."""
    wide = np.complex128 if mine.dtype.kind == "c" else np.longdouble
    a, b = mine.astype(wide), theirs.astype(wide)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        return float(np.max(np.where(same, 0, np.abs(a - b) / np.maximum(np.abs(b), np.finfo(np.float32).tiny))))


class Gpu:
    """Launches of both libraries on the legacy default stream, with the same arrays and the same events."""

    other = "numba-cuda"
    log2 = 24

    def __init__(self) -> None:
        import numba.cuda
        from numba.core.errors import NumbaWarning
        from weft import cuda

        warnings.simplefilter("ignore", NumbaWarning)
        self.weft, self.numba = cuda, numba.cuda
        self.begin, self.end = cuda.event(), cuda.event()
        self.name = cuda.get_current_device().name

    def prepare(
        self, operation: Operation, n: int, applications: int
    ) -> tuple[dict[str, Callable[[], Any]], dict[str, Any]]:
        arrays = [self.weft.to_device(value) for value in inputs(operation, n)]
        calls, outs = {}, {}
        for library, cuda in (("weft", self.weft), (self.other, self.numba)):
            out = self.weft.device_array(n, operation.total)
            kernel = cuda.jit(function(operation, THREAD, applications, cuda))[-(-n // BLOCK), BLOCK]
            given = [array if library == "weft" else cuda.as_cuda_array(array) for array in (*arrays, out)]
            calls[library] = lambda kernel=kernel, given=given: kernel(*given)
            outs[library] = out
        return calls, outs

    def milliseconds(self, call: Callable[[], Any], count: int) -> float:
        self.begin.record()
        for _ in range(count):
            call()
        self.end.record()
        self.end.synchronize()
        elapsed: float = self.weft.event_elapsed_time(self.begin, self.end)
        return elapsed / count


class Cpu:
    """One thread of each; the arrays are host arrays."""

    other = "numba"
    log2 = 16

    def __init__(self) -> None:
        import numba
        from weft import cuda

        self.weft, self.numba = cuda, numba
        self.name = "one thread of this CPU"

    def prepare(
        self, operation: Operation, n: int, applications: int
    ) -> tuple[dict[str, Callable[[], Any]], dict[str, Any]]:
        x, y = inputs(operation, n)
        mine, theirs = np.zeros(n, operation.total), np.zeros(n, operation.total)
        kernel = self.weft.jit(function(operation, THREAD, applications, self.weft))[-(-n // BLOCK), BLOCK]
        given = [self.weft.to_device(value) for value in (x, y, mine)]
        compiled = self.numba.njit(function(operation, LOOP, applications, None))
        calls = {"weft": lambda: (kernel(*given), self.weft.synchronize()), self.other: lambda: compiled(x, y, theirs)}
        return calls, {"weft": given[2], self.other: theirs}

    def milliseconds(self, call: Callable[[], Any], count: int) -> float:
        begin = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - begin) * 1e3 / count


def measure(device: Any, operation: Operation, given: argparse.Namespace) -> dict[str, Any]:
    """One row: the medians of alternating runs, and the difference of the results."""
    n = 1 << (given.log2 or device.log2)
    row: dict[str, Any] = {
        "operation": operation.text, "dtype": operation.dtype, "low": operation.low, "high": operation.high,
    }  # fmt: skip
    try:
        calls, outs = device.prepare(operation, n, given.applications)
    except Exception as fault:
        return row | {"failure": brief(fault)}
    ready, counts = {}, {}
    for library, call in calls.items():
        try:
            call()
            ready[library] = call
            once = device.milliseconds(call, 1)
            counts[library] = max(1, min(50, round(given.least_ms / max(once, 1e-3))))
        except Exception as fault:
            row[f"{library} failure"] = brief(fault)
    times: dict[str, list[float]] = {library: [] for library in ready}
    for _ in range(given.runs):
        for library, call in ready.items():
            times[library].append(device.milliseconds(call, counts[library]))
    row |= {library: statistics.median(values) for library, values in times.items()}
    if len(ready) == 2:
        results = [out.copy_to_host() if hasattr(out, "copy_to_host") else out for out in outs.values()]
        row["apart"] = apart(*results)
        row["ratio"] = row["weft"] / row[device.other]
    return row


def markdown(row: dict[str, Any], other: str) -> str:
    def cell(library: str) -> str:
        return f"{row[library]:.4f}" if library in row else "no"

    where = f"{row['low']:g} … {row['high']:g}"
    cells = [row["dtype"], f"`{row['operation']}`".replace("|", "\\|"), where]
    if "ratio" not in row:
        reason = row.get("failure") or row.get(f"{other} failure") or row.get("weft failure", "")
        return "| " + " | ".join([*cells, cell("weft"), cell(other), "", reason, ""]) + " |"
    mark = "**slower**" if row["ratio"] > SLOWER else ""
    cells += [cell("weft"), cell(other), f"{row['ratio']:.2f}", f"{row['apart']:.1e}", mark]
    return "| " + " | ".join(cells) + " |"


def summary(rows: list[dict[str, Any]]) -> None:
    """Print the geometric mean of each dtype, and once more the rows in which weft is slower."""
    ratios = defaultdict(list)
    for row in rows:
        if "ratio" in row:
            ratios[row["dtype"]].append(row["ratio"])
    print("\n| dtype | rows | geometric mean | above 1.05 |\n|---|--:|--:|--:|")
    for dtype, values in ratios.items():
        mean = math.exp(statistics.fmean(map(math.log, values)))
        print(f"| {dtype} | {len(values)} | {mean:.2f} | {sum(value > SLOWER for value in values)} |")
    slower = sorted((row for row in rows if row.get("ratio", 0) > SLOWER), key=lambda row: -row["ratio"])
    shown = [f"{row['dtype']} `{row['operation']}` {row['ratio']:.2f}" for row in slower]
    print(f"\nAbove 1.05: {'; '.join(shown) or 'none'}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default=os.environ.get("WEFT_DEVICE"))
    parser.add_argument("--log2", type=int, help="elements, as a power of two (24 on a GPU, 16 on the CPU)")
    parser.add_argument("--applications", type=int, default=16, help="applications to each element")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--least-ms", type=float, default=2.0, help="launches are repeated for about so long")
    parser.add_argument("--dtype", action="append", help="only this dtype; may be given again")
    parser.add_argument("--only", help="only operations in which this regular expression is found")
    given = parser.parse_args()
    if given.device:
        os.environ["WEFT_DEVICE"] = given.device
    if given.device == "cpu":
        os.environ["WEFT_CPU_THREADS"] = "1"
    from weft import cuda

    gpu = cuda.is_available() and given.device != "cpu"
    chosen = [row for row in operations() if not given.dtype or row.dtype in given.dtype]
    chosen = [row for row in chosen if not given.only or re.search(given.only, row.text)]
    try:
        device: Any = Gpu() if gpu else Cpu()
    except ImportError as fault:
        print(f"{brief(fault)}: nothing to compare with")
        return 0
    n = 1 << (given.log2 or device.log2)
    how = f"{given.applications} applications to each; milliseconds, median of {given.runs} in turns"
    print(f"{device.name}: {n} elements, {how}\n")
    print(f"| dtype | operation | x from … to | weft | {device.other} | weft / {device.other} | apart | |")
    print("|---|---|---|--:|--:|--:|--:|---|")
    rows = []
    for operation in chosen:
        rows.append(measure(device, operation, given))
        print(markdown(rows[-1], device.other), flush=True)
    summary(rows)
    if out := os.environ.get("OUT"):
        result = {"device": device.name, "elements": n, "applications": given.applications, "rows": rows}
        Path(out, "operations.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    return sum("weft" not in row for row in rows)


if __name__ == "__main__":
    sys.exit(main())
