"""The cost of `reproducible=True`: the kernels of both sets with and without it, and `cuda.reduce`, on one device.

    python tests/benchmarks/reproducible.py                    # the GPU, or the CPU where WEFT_DEVICE=cpu
    python tests/benchmarks/reproducible.py --only nbody,softmax

Both versions of a kernel use the same arrays and alternate; each time is the minimum of all runs. On a GPU, events of
the stream measure several consecutive launches; on the CPU it is the CPU time of the process, which other processes do
not affect. The table is in Markdown.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from kernels import SETS

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

TURN_S = 0.03
MOST_LAUNCHES = 200


class Reproducible:
    """`weft.cuda`, whose `jit` has ``reproducible=True``."""

    def __init__(self, cuda: ModuleType) -> None:
        self.cuda = cuda

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cuda, name)

    def jit(self, *args: Any, **options: Any) -> Any:
        return self.cuda.jit(*args, reproducible=True, **options)


def seconds(cuda: ModuleType, launch: Callable[[], None], count: int) -> float:
    """The time per launch of several consecutive launches."""
    if cuda.get_current_device().compute_capability and os.environ.get("WEFT_DEVICE") != "cpu":
        begin, end = cuda.event(), cuda.event()
        begin.record()
        for _ in range(count):
            launch()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3 / count
    start = time.process_time()
    for _ in range(count):
        launch()
    cuda.synchronize()
    return (time.process_time() - start) / count


def minimum_times(cuda: ModuleType, launches: list[Callable[[], None]], repeats: int) -> list[float]:
    """The minimum time of each launch; runs alternate."""
    for launch in launches:
        launch()  # compiles
    cuda.synchronize()
    once = max(seconds(cuda, launch, 1) for launch in launches)
    count = max(1, min(MOST_LAUNCHES, int(TURN_S / max(once, 1e-6))))
    best = [math.inf] * len(launches)
    for _ in range(repeats):
        for place, launch in enumerate(launches):
            best[place] = min(best[place], seconds(cuda, launch, count))
    return best


def of_kernels(cuda: ModuleType, size: str, repeats: int, only: list[str]) -> list[tuple[str, list[float]]]:
    """Times of each kernel, plain and reproducible."""
    found = []
    for which in ("first", "second"):
        for case in SETS[which]:
            if only and case.name not in only:
                continue
            work = case.work(size)
            args = [cuda.to_device(arg) if isinstance(arg, np.ndarray) else arg for arg in work.args]
            made = [case.make(each)[work.grid, work.block] for each in (cuda, Reproducible(cuda))]
            launches = [functools.partial(kernel, *args) for kernel in made]
            found.append((case.name, minimum_times(cuda, launches, repeats)))
            print(row(*found[-1]), flush=True)
    return found


def of_sums(cuda: ModuleType, repeats: int) -> list[tuple[str, list[float]]]:
    """Times of sums of an array on the device."""
    found = []
    for dtype in (np.float32, np.float64):
        array = cuda.to_device(np.random.default_rng(1).normal(size=1 << 24).astype(dtype))
        out = cuda.device_array(1, dtype)
        sums = [cuda.Reduce(lambda a, b: a + b, reproducible=which) for which in (False, True)]
        launches = [functools.partial(total, array, res=out) for total in sums]
        found.append((f"cuda.reduce of 2^24 {np.dtype(dtype).name}", minimum_times(cuda, launches, repeats)))
        print(row(*found[-1]), flush=True)
    return found


def row(name: str, times: list[float]) -> str:
    plain, other = times
    return f"| {name} | {plain * 1e3:.3f} | {other * 1e3:.3f} | {other / plain:.2f} |"


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description="kernels with and without reproducible=True")
    parser.add_argument("--only", help="names of kernels, with commas; `reduce` for the sums")
    parser.add_argument("--repeats", type=int, default=7)
    asked = parser.parse_args()
    from weft import cuda

    warnings.simplefilter("ignore")
    only = asked.only.split(",") if asked.only else []
    size = "cpu" if os.environ.get("WEFT_DEVICE") == "cpu" else "full"
    device = cuda.get_current_device()
    print(f"{device.name}\n\n| kernel | plain, ms | reproducible, ms | ratio |\n|---|---|---|---|")
    found = of_kernels(cuda, size, asked.repeats, only)
    ratios = [other / plain for _, (plain, other) in found]
    if ratios:
        print(f"| geometric mean of {len(ratios)} | | | {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f} |")
    if not only or "reduce" in only:
        found += of_sums(cuda, asked.repeats)
    if os.environ.get("OUT"):
        figures = {name: {"plain_ms": plain * 1e3, "reproducible_ms": other * 1e3} for name, (plain, other) in found}
        Path(os.environ["OUT"], "reproducible.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
