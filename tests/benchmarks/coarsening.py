"""How many threads to coarsen: the compiler's estimate beside the registers that ptxas needs, and beside times.

Without a GPU a table of the estimate: the factors that are chosen and what is expected of them. ``--registers`` has
each candidate's code made by ptxas. ``--sweep`` needs a GPU and CuPy: it times every kernel with all factors, by
itself, with the estimate and tuned, and reports how far the estimate's choice is from the best forced one. ``--cpu``
does so on the CPU executor, with tiny sizes. With ``OUT`` set the figures are written there as ``coarsening.json``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tables
from instructions import tool
from kernels import SETS, Stopwatch, check, spoil
from suite.faults import brief

if TYPE_CHECKING:
    from suite import Case

MOST_COPIES = 8
MOST_MERGED = 8
MOST_OF_BOTH = 8
REPEATS = 5
QUEUE_MS = 20.0
NONE = "coarsen=1"
MARGIN = 1.05
"""The estimate's choice is good if its time is at most this multiple of the time of the best factors."""


Axes = tuple[int, int, int]


def named(threads: Axes, blocks: Axes) -> tuple[str, dict[str, Any]]:
    """The options of `cuda.jit` for factors, and their text in `explain()`."""
    options = {"coarsen": threads, "coarsen_blocks": blocks}
    texts = []
    for name, factors in options.items():
        shown = ", ".join(map(str, factors)).removesuffix(", 1").removesuffix(", 1")
        if factors != (1, 1, 1) or (name == "coarsen" and blocks == (1, 1, 1)):
            texts.append(f"{name}=({shown})" if "," in shown else f"{name}={shown}")
    return ", ".join(texts), options


def candidates(case: Case) -> tuple[list[tuple[Axes, Axes, int, str]], str]:
    """The compiler's candidates, each with its estimated time in thousandths, and its remark on the kernel."""
    from weft import cuda

    compiled = cuda.jit(case.make(cuda).py_func, tune=True).compile(case.signature)
    return compiled.coarsening_candidates, compiled.coarsening


def registers(case: Case, options: dict[str, Any], target: str) -> int:
    """The number of registers per thread that ptxas uses."""
    from weft import cuda

    ptx = cuda.jit(case.make(cuda).py_func, **options).inspect_asm(case.signature, target=target)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.ptx"
        path.write_text(ptx, encoding="utf-8")
        command = [tool("ptxas"), "-v", f"-arch={target}", "-o", str(path.with_suffix(".cubin")), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return max(int(count) for count in re.findall(r"Used (\d+) registers", done.stderr))


def estimated_registers(note: str) -> tuple[int, int]:
    """The registers of a candidate and of the unchanged kernel, parsed from the candidate's remark."""
    of, plain = re.findall(r"(\d+) registers for (\d+)", note)[0]
    return int(of), int(plain)


def static_row(case: Case, target: str | None) -> dict[str, Any]:
    found, why = candidates(case)
    row: dict[str, Any] = {"kernel": case.name, "note": why, "candidates": found}
    row["chosen"] = named(*found[0][:2])[0] if why.startswith("worth") else NONE
    if target and found:
        row["registers"] = {NONE: [estimated_registers(found[0][3])[1], registers(case, {"coarsen": 1}, target)]}
        for threads, blocks, _, note in found:
            name, options = named(threads, blocks)
            row["registers"][name] = [estimated_registers(note)[0], registers(case, options, target)]
    return row


def static(cases: list[Case], target: str | None) -> list[dict[str, Any]]:
    rows = []
    print(tables.head("kernel", "chosen", *(["registers, estimated / ptxas"] if target else []), "why"))
    for case in cases:
        try:
            row = static_row(case, target)
        except Exception as fault:
            row = {"kernel": case.name, "chosen": NONE, "note": brief(fault)}
        pairs = row.get("registers", {})
        counts = ", ".join(f"{name}: {estimate} / {real}" for name, (estimate, real) in pairs.items())
        print(tables.line(row["kernel"], row["chosen"], *([counts] if target else []), row["note"]), flush=True)
        rows.append(row)
    if target:
        orders(rows)
    return rows


def orders(rows: list[dict[str, Any]]) -> None:
    """Reports how well the estimated registers agree with those of ptxas."""
    ratios, right, pairs = [], 0, 0
    for counts in (list(row.get("registers", {}).values()) for row in rows):
        ratios += [estimate / real for estimate, real in counts]
        for (a, real_a), (b, real_b) in itertools.combinations(counts, 2):
            if abs(real_a - real_b) >= 8:
                pairs += 1
                right += (a < b) == (real_a < real_b)
    if ratios and pairs:
        low, middle, high = np.percentile(ratios, [10, 50, 90])
        print(f"\nEstimated / ptxas: {low:.2f} to {high:.2f} (10 % to 90 %), median {middle:.2f}; of {pairs} pairs of"
              f" one kernel's that differ by 8 or more {right} are in the right order.")  # fmt: skip


def divisors(extents: tuple[int, ...], most: int, least: int) -> list[Axes]:
    """Factors that divide extents and leave at least `least` threads."""
    extents = (*extents, 1, 1)[:3]
    return [
        factors
        for factors in itertools.product((1, 2, 4), repeat=3)
        if np.prod(factors) <= most
        and all(extent % factor == 0 for extent, factor in zip(extents, factors, strict=True))
        and np.prod(extents) // np.prod(factors) >= least
    ]


def all_factors(work: Any, least: int) -> dict[str, dict[str, Any]]:
    """Coarsening factors of a launch: of threads, if at least `least` threads per block remain, of blocks, or of
    both."""
    threads, blocks = divisors(work.block, MOST_COPIES, least), divisors(work.grid, MOST_MERGED, 1)[1:]
    one = (1, 1, 1)
    both = [
        (of_block, of_grid)
        for of_block, of_grid in itertools.product(threads[1:], blocks)
        if all(1 in pair for pair in zip(of_block, of_grid, strict=True))
        and np.prod(of_block) * np.prod(of_grid) <= MOST_OF_BOTH
    ]
    return dict(named(*each) for each in [*((of, one) for of in threads), *((one, of) for of in blocks), *both])


class Clock:
    """Times launches on the CPU executor, like `Stopwatch` on a GPU."""

    def queue_us(self, launches: list[Any], count: int) -> float:
        begin = time.perf_counter()
        for i in range(count):
            launches[i % len(launches)]()
        return (time.perf_counter() - begin) * 1e6 / count


def swept(case: Case, xp: Any, clock: Any, size: str) -> dict[str, Any]:
    """The times of one kernel in microseconds, by its coarsening."""
    from weft import cuda

    work = case.work(size)
    args = tuple(xp.asarray(arg) if isinstance(arg, np.ndarray) else arg for arg in work.args)
    expected = case.reference(xp, args)
    function = case.make(cuda).py_func
    given = args if xp is np else tuple(cuda.as_cuda_array(a) if getattr(a, "shape", ()) else a for a in args)
    ways = all_factors(work, 1 if xp is np else 32)
    ways |= {"tuned": {"tune": True, "cache": False}}
    row: dict[str, Any] = {"kernel": case.name, "block": work.block, "grid": work.grid, "times": {}, "wrong": []}
    row["candidates"], row["note"] = candidates(case)
    ready = {}
    for name, options in ways.items():
        kernel = cuda.jit(function, **options)
        configured = kernel[work.grid, work.block]
        spoil(xp, case, work, args)
        configured(*given)
        cuda.synchronize()
        (compiled,) = kernel.overloads.values()
        if "coarsen_blocks" in name and compiled.coarsening.startswith("not coarsened"):
            continue
        if not check(xp, case, work, args, expected) <= case.tolerance:
            row["wrong"].append(name)
        for _ in range(40 if name == "tuned" else 3):
            configured(*given)
            cuda.synchronize()
        launches = [lambda configured=configured: configured(*given)]
        count = max(3, min(2000, int(QUEUE_MS * 1e3 / max(clock.queue_us(launches, 3), 1.0))))
        ready[name] = (kernel, launches, count)
    times: dict[str, list[float]] = {name: [] for name in ready}
    for _ in range(REPEATS):
        for name, (_, launches, count) in ready.items():
            times[name].append(clock.queue_us(launches, count))
    row["times"] = {name: statistics.median(values) for name, values in times.items()}
    row["tuned ran"] = ready["tuned"][0].explain().partition("the last launch ran ")[2].split("\n")[0] or NONE
    # The factors that the estimate recommends for launches that they divide.
    recommended = named(*row["candidates"][0][:2])[0] if row["note"].startswith("worth") else NONE
    row["estimate ran"] = recommended if recommended in ready else NONE
    return row


def sweep(cases: list[Case], xp: Any, clock: Any, size: str) -> list[dict[str, Any]]:
    rows = []
    print(
        tables.head(
            "kernel", "as it is, µs", "best factors", "best", "estimate's", "estimate", "tuned", "tuned", "good"
        )
    )
    for case in cases:
        try:
            row = swept(case, xp, clock, size)
        except Exception as fault:
            rows.append({"kernel": case.name, "failure": brief(fault)})
            print(tables.line(case.name, rows[-1]["failure"], *[""] * 7), flush=True)
            continue
        times = row["times"]
        plain = times[NONE]
        forced = {name: each for name, each in times.items() if name != "tuned"}
        best = min(forced, key=lambda name: forced[name])
        chosen = forced[row["estimate ran"]]
        row |= {"best": best, "estimate / best": chosen / forced[best], "tuned / best": times["tuned"] / forced[best]}
        wrong = " WRONG: " + ", ".join(row["wrong"]) if row["wrong"] else ""
        print(tables.line(case.name + wrong, f"{plain:.1f}", best, f"{forced[best] / plain:.3f}", row["estimate ran"],
                          f"{chosen / plain:.3f}", row["tuned ran"], f"{times['tuned'] / plain:.3f}",
                          "yes" if chosen <= forced[best] * MARGIN else "no"), flush=True)  # fmt: skip
        rows.append(row)
    good = [row["estimate / best"] <= MARGIN for row in rows if "best" in row]
    print(
        f"\nThe estimate's choice is within {MARGIN - 1:.0%} of the best forced factors for {sum(good)} of {len(good)}."
    )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--set", choices=(*SETS, "both"), default="both", help="the kernels of one set, or of suite/ and second/"
    )
    parser.add_argument("--only", help="the kernels whose names contain this, or one of several with commas between")
    parser.add_argument("--target", default="sm_90", help="the GPU whose registers are counted")
    parser.add_argument("--registers", action="store_true", help="what ptxas needs for each candidate, too")
    parser.add_argument("--sweep", action="store_true", help="times on this GPU")
    parser.add_argument("--cpu", action="store_true", help="times on the CPU executor")
    parser.add_argument("--sizes", choices=("full", "tiny"), default="full", help="what --sweep launches")
    options = parser.parse_args()
    chosen = ("first", "second") if options.set == "both" else (options.set,)
    cases = [case for name in chosen for case in SETS[name]]
    cases = [case for case in cases if not options.only or any(name in case.name for name in options.only.split(","))]
    if not cases:
        parser.error(f"--only: no kernel has {options.only!r} in its name")
    if options.sweep:
        import cupy

        rows = sweep(cases, cupy, Stopwatch(cupy), options.sizes)
    elif options.cpu:
        os.environ["WEFT_DEVICE"] = "cpu"
        rows = sweep(cases, np, Clock(), "tiny")
    else:
        os.environ.setdefault("WEFT_DEVICE", "cpu")
        rows = static(cases, options.target if options.registers else None)
    if out := os.environ.get("OUT"):
        (Path(out) / "coarsening.json").write_text(json.dumps(rows, indent=1))
    return 1 if any(row.get("wrong") for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
