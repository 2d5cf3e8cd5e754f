"""The default choice of coarsening beside coarsening turned off: times, first launches, and launches until the choice.

Needs a GPU and CuPy. Of each kernel: its time with ``coarsen=1``, the time by default once the choice is made, what was
chosen, how many launches that took, and the first launch of both. With ``--forced`` also the best of the compiler's
candidates, each forced. The rule: by default no kernel takes more than 1.02 of the time with coarsening off, and no
first launch takes longer. A kernel above that is timed again, for longer. ``--random 300 --set none`` takes generated
kernels (`generated/`), whose expected outputs are those with coarsening off. With ``OUT`` set the figures are written
there as ``automatic.json``, with the sources of generated kernels.
"""

from __future__ import annotations

import argparse
import json
import linecache
import math
import os
import statistics
import sys
import time
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tables
from coarsening import named
from generated import Generated, generate, on_device
from kernels import SETS, Stopwatch, check, spoil
from suite.faults import brief

if TYPE_CHECKING:
    from collections.abc import Callable

    from suite import Case

REPEATS, MORE_REPEATS = 5, 15
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


def renewed(function: Any, name: str) -> Any:
    """The same function in a file of another name, which the process has no compiled code for."""
    file = f"<{name}: {function.__code__.co_filename}>"
    lines = linecache.getlines(function.__code__.co_filename)
    linecache.cache[file] = (sum(map(len, lines)), None, lines, file)
    again = types.FunctionType(
        function.__code__.replace(co_filename=file), function.__globals__, function.__name__, function.__defaults__,
        function.__closure__,
    )  # fmt: skip
    again.__qualname__, again.__module__, again.__kwdefaults__ = (
        function.__qualname__,
        function.__module__,
        function.__kwdefaults__,
    )
    again.__annotations__ = function.__annotations__
    return again


def outputs_of(work: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(args[position].copy() for position in work.outputs)


def measured(case: Case, xp: Any, clock: Any, size: str, forced: bool, order: tuple[str, str]) -> dict[str, Any]:
    """One row. `order` says which of "off" and "auto" is launched first."""
    from weft import cuda

    work = case.work(size)
    args = tuple(on_device(xp, arg) for arg in work.args)
    expected = None if isinstance(case, Generated) else case.reference(xp, args)
    function = case.make(cuda).py_func
    given = tuple(cuda.as_cuda_array(a) if getattr(a, "shape", ()) else a for a in args)
    row: dict[str, Any] = {"kernel": case.name, "block": work.block, "grid": work.grid, "wrong": [], "first": {}}
    row["order"] = order
    ways: dict[str, dict[str, Any]] = {"off": {"coarsen": 1}, "auto": {}}
    kernels: dict[str, tuple[Any, Callable[[], None]]] = {}
    outputs: dict[str, tuple[Any, ...]] = {}

    def ready(name: str) -> tuple[Any, Callable[[], None]]:
        kernel = cuda.jit(renewed(function, name), cache=False, **case.options, **ways[name])
        configured = kernel[work.grid, work.block]
        spoil(xp, case, work, args)
        cuda.synchronize()
        launch = lambda: configured(*given)  # noqa: E731
        row["first"][name] = first_launch_ms(launch, cuda.synchronize)
        if name == "auto":
            row["launches"] = settle(kernel, launch, cuda.synchronize)
            # The results of the chosen variant.
            spoil(xp, case, work, args)
            launch()
            cuda.synchronize()
        if expected is None:
            outputs[name] = outputs_of(work, args)
        elif not check(xp, case, work, args, expected) <= case.tolerance:
            row["wrong"].append(name)
        return kernel, launch

    for name in order:
        kernels[name] = ready(name)
    text = kernels["auto"][0].explain()
    row["ran"] = text.partition("the last launch ran ")[2].split("\n")[0] or "coarsen=1"
    row["explain"] = [line.strip() for line in text.splitlines() if " ms, the median" in line or "is used" in line]
    if forced:
        tuned = cuda.jit(function, tune=True, **case.options).compile(case.signature)
        for threads, blocks, *_ in tuned.coarsening_candidates:
            name, options = named(threads, blocks)
            ways[name] = options
            kernels[name] = ready(name)
    for name, found in outputs.items():
        if not case.error(xp, found, outputs["off"]) <= case.tolerance:
            row["wrong"].append(name)
    outputs.clear()
    times: dict[str, list[float]] = {name: [] for name in kernels}
    launches = {name: [launch] for name, (_, launch) in kernels.items()}
    count = max(3, min(2000, int(QUEUE_MS * 1e3 / max(clock.queue_us(launches["off"], 5), 1.0))))

    def repeat(repeats: int) -> float:
        """Time all ways in turn; return the ratio of the medians of all times so far."""
        for _ in range(repeats):
            for name in kernels:
                times[name].append(clock.queue_us(launches[name], count))
        row["times"] = {name: statistics.median(values) for name, values in times.items()}
        return row["times"]["auto"] / row["times"]["off"]

    row["ratio"] = repeat(REPEATS)
    if row["ratio"] > SLOWER:
        row["ratio"] = repeat(MORE_REPEATS)
    return row


def warm_up(xp: Any) -> None:
    """A launch of another kernel, so that the first row's first launch does not initialize the device."""
    from weft import cuda

    def fill(out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = i

    cuda.jit(fill, coarsen=1, cache=False)[4, 64](cuda.as_cuda_array(xp.zeros(256, dtype=xp.float32)))
    cuda.synchronize()


def geometric_mean(values: list[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values)) if values else math.nan


def first_launches(rows: list[dict[str, Any]]) -> str:
    """The verdict on first launches. Single ones are noisy, so only means say something, over both orders."""
    ratios = {row["kernel"]: row["first"]["auto"] / row["first"]["off"] for row in rows}
    if not ratios:
        return "No first launch was measured."
    of_orders = []
    for first in ("off", "auto"):
        mean = geometric_mean([ratios[row["kernel"]] for row in rows if row["order"][0] == first])
        of_orders.append(f"{mean:.3f} where {first!r} is first")
    worst = max(ratios, key=lambda name: ratios[name])
    return (f"First launches by default take {geometric_mean(list(ratios.values())):.3f} of those with coarsening off"
            f" (geometric mean; {', '.join(of_orders)}; at most {ratios[worst]:.2f}, {worst}).")  # fmt: skip


def table(cases: list[Case], xp: Any, size: str, forced: bool) -> list[dict[str, Any]]:
    """Print a line per kernel, and the verdict."""
    clock, rows = Stopwatch(xp), []
    warm_up(xp)
    print(tables.head("kernel", "off, µs", "auto / off", "ran", "launches", "first launch, off / auto, ms",
                      *(["best forced", "best forced / off"] if forced else [])))  # fmt: skip
    for number, case in enumerate(cases):
        source = {"source": case.source} if isinstance(case, Generated) else {}
        try:
            order = ("off", "auto") if number % 2 == 0 else ("auto", "off")
            row = measured(case, xp, clock, size, forced, order) | source
        except Exception as fault:
            rows.append({"kernel": case.name, "failure": brief(fault)} | source)
            print(tables.line(case.name, rows[-1]["failure"], *[""] * (6 if forced else 4)), flush=True)
            continue
        finally:
            xp.get_default_memory_pool().free_all_blocks()
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
    mean = geometric_mean([row["ratio"] for row in done])
    print(f"\nBy default the geometric mean of the times is {mean:.3f} of that with coarsening off, over {len(done)}"
          f" kernels. Above {SLOWER}: {', '.join(slower) or 'none'}.")  # fmt: skip
    print(first_launches(done))
    failed = [row["kernel"] for row in rows if row.get("wrong") or "failure" in row]
    if failed:
        print(f"Wrong or failed: {', '.join(failed)}.")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--set", choices=(*SETS, "all", "none"), default="all", help="the kernels of one set, or of all"
    )
    parser.add_argument("--only", help="the kernels whose names contain this")
    parser.add_argument("--forced", action="store_true", help="time the compiler's candidates, too")
    parser.add_argument("--sizes", choices=("full", "tiny"), default="full")
    parser.add_argument(
        "--random", type=int, default=0, metavar="N", help="N generated kernels, after those of the sets"
    )
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first generated kernel")
    options = parser.parse_args()
    cases = [case for name, cases in SETS.items() if options.set in (name, "all") for case in cases]
    cases += [generate(options.seed + number) for number in range(options.random)]
    cases = [case for case in cases if not options.only or options.only in case.name]
    if not cases:
        parser.error(f"no kernel has {options.only!r} in its name" if options.only else "--set none needs --random")
    # The driver's cache would give the second of two first launches the machine code of the first.
    os.environ.setdefault("CUDA_CACHE_DISABLE", "1")
    import cupy

    rows = table(cases, cupy, options.sizes, options.forced)
    if out := os.environ.get("OUT"):
        (Path(out) / "automatic.json").write_text(json.dumps(rows, indent=1))
    return 1 if any(row.get("wrong") or "failure" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
