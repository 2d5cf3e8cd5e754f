"""The default choice of coarsening beside coarsening turned off: times, first launches, and launches until the choice.

Needs a GPU and CuPy. Of each kernel: its time with ``coarsen=1``, the time by default once the choice is made, what was
chosen, how many launches that took, and the first launch of both. With ``--forced`` also the best of the compiler's
candidates, each forced. The rule: by default no kernel takes more than 1.02 of the time with coarsening off, and no
first launch takes longer. With ``OUT`` set the figures are written there as ``automatic.json``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tables
from coarsening import named
from kernels import SETS, Stopwatch, check, spoil
from suite.faults import brief

if TYPE_CHECKING:
    from collections.abc import Callable

    from suite import Case

REPEATS = 5
QUEUE_MS = 20.0
MOST_LAUNCHES = 4000
MOST_SECONDS = 10.0
SLOWER = 1.02


def is_settled(text: str) -> bool:
    """Whether the text of `explain()` has a final choice."""
    unsettled = ("not measured yet", "being compiled", "being measured")
    return not any(state in text for state in unsettled)


def settle(kernel: Any, launch: Callable[[], None], synchronize: Callable[[], None]) -> int | None:
    """Launch until the choice is made; give the number of launches, or None if it is not made in time."""
    end = time.monotonic() + MOST_SECONDS
    for launches in range(1, MOST_LAUNCHES + 1):
        launch()
        if launches % 8 == 0 or launches == 2:
            synchronize()
            text = kernel.explain()
            if is_settled(text):
                return launches
            if time.monotonic() > end:
                return None
            if "being compiled" in text or "not measured yet" in text:
                time.sleep(0.02)
    return None


def first_launch_ms(launch: Callable[[], None], synchronize: Callable[[], None]) -> float:
    """Milliseconds of a first launch and the wait for its end."""
    begin = time.perf_counter()
    launch()
    synchronize()
    return (time.perf_counter() - begin) * 1e3


def measured(case: Case, xp: Any, clock: Any, size: str, forced: bool) -> dict[str, Any]:
    """One row."""
    from weft import cuda

    work = case.work(size)
    args = tuple(xp.asarray(arg) if isinstance(arg, np.ndarray) else arg for arg in work.args)
    expected = case.reference(xp, args)
    function = case.make(cuda).py_func
    given = tuple(cuda.as_cuda_array(a) if getattr(a, "shape", ()) else a for a in args)
    row: dict[str, Any] = {"kernel": case.name, "block": work.block, "grid": work.grid, "wrong": [], "first": {}}
    ways: dict[str, dict[str, Any]] = {"off": {"coarsen": 1, "cache": False}, "auto": {"cache": False}}
    kernels: dict[str, tuple[Any, Callable[[], None]]] = {}

    def ready(name: str) -> tuple[Any, Callable[[], None]]:
        kernel = cuda.jit(function, **ways[name])
        configured = kernel[work.grid, work.block]
        spoil(xp, case, work, args)
        launch = lambda: configured(*given)  # noqa: E731
        row["first"][name] = first_launch_ms(launch, cuda.synchronize)
        if name == "auto":
            row["launches"] = settle(kernel, launch, cuda.synchronize)
            # The results of the chosen variant.
            spoil(xp, case, work, args)
            launch()
            cuda.synchronize()
        if not check(xp, case, work, args, expected) <= case.tolerance:
            row["wrong"].append(name)
        return kernel, launch

    for name in ("off", "auto"):
        kernels[name] = ready(name)
    text = kernels["auto"][0].explain()
    row["ran"] = text.partition("the last launch ran ")[2].split("\n")[0] or "coarsen=1"
    row["explain"] = [line.strip() for line in text.splitlines() if " ms, the median" in line or "is used" in line]
    if forced:
        tuned = cuda.jit(function, tune=True).compile(case.signature)
        for threads, blocks, *_ in tuned.coarsening_candidates:
            name, options = named(threads, blocks)
            ways[name] = {**options, "cache": False}
            kernels[name] = ready(name)
    times: dict[str, list[float]] = {name: [] for name in kernels}
    launches = {name: [launch] for name, (_, launch) in kernels.items()}
    count = max(3, min(2000, int(QUEUE_MS * 1e3 / max(clock.queue_us(launches["off"], 5), 1.0))))
    for _ in range(REPEATS):
        for name in kernels:
            times[name].append(clock.queue_us(launches[name], count))
    row["times"] = {name: statistics.median(values) for name, values in times.items()}
    row["ratio"] = row["times"]["auto"] / row["times"]["off"]
    return row


def table(cases: list[Case], xp: Any, size: str, forced: bool) -> list[dict[str, Any]]:
    """Print a line per kernel, and the verdict."""
    clock, rows = Stopwatch(xp), []
    print(tables.head("kernel", "off, µs", "auto / off", "ran", "launches", "first launch, off / auto, ms",
                      *(["best forced", "best forced / off"] if forced else [])))  # fmt: skip
    for case in cases:
        try:
            row = measured(case, xp, clock, size, forced)
        except Exception as fault:
            rows.append({"kernel": case.name, "failure": brief(fault)})
            print(tables.line(case.name, rows[-1]["failure"], *[""] * (6 if forced else 4)), flush=True)
            continue
        rows.append(row)
        times, first = row["times"], row["first"]
        wrong = " WRONG: " + ", ".join(row["wrong"]) if row["wrong"] else ""
        more = []
        if forced:
            best = min((name for name in times if name != "auto"), key=lambda name: times[name])
            more = [best, f"{times[best] / times['off']:.3f}"]
        print(tables.line(case.name + wrong, f"{times['off']:.1f}", f"{row['ratio']:.3f}", row["ran"],
                          str(row["launches"] or "not decided"), f"{first['off']:.1f} / {first['auto']:.1f}",
                          *more), flush=True)  # fmt: skip
    done = [row for row in rows if "ratio" in row]
    slower = [f"{row['kernel']} ({row['ratio']:.3f})" for row in done if row["ratio"] > SLOWER]
    mean = math.exp(statistics.fmean(math.log(row["ratio"]) for row in done)) if done else math.nan
    print(f"\nBy default the geometric mean of the times is {mean:.3f} of that with coarsening off, over {len(done)}"
          f" kernels. Above {SLOWER}: {', '.join(slower) or 'none'}.")  # fmt: skip
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", choices=(*SETS, "all"), default="all", help="the kernels of one set, or of all")
    parser.add_argument("--only", help="the kernels whose names contain this")
    parser.add_argument("--forced", action="store_true", help="time the compiler's candidates, too")
    parser.add_argument("--sizes", choices=("full", "tiny"), default="full")
    options = parser.parse_args()
    cases = [case for name, cases in SETS.items() if options.set in (name, "all") for case in cases]
    cases = [case for case in cases if not options.only or options.only in case.name]
    if not cases:
        parser.error(f"--only: no kernel has {options.only!r} in its name")
    import cupy

    rows = table(cases, cupy, options.sizes, options.forced)
    if out := os.environ.get("OUT"):
        (Path(out) / "automatic.json").write_text(json.dumps(rows, indent=1))
    return 1 if any(row.get("wrong") or "failure" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
