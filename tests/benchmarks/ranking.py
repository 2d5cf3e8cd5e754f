"""Whether the profiler orders pairs of variants of one kernel as a GPU's clock does.

``--measure FILE`` needs a GPU, and keeps the times; ``--compare FILE`` needs none: it profiles the same launches for an
H200, and compares the order by the longest of their bounds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tables
from pairs import PAIRS, Pair, Variant
from suite.faults import brief

REPEATS = 20
WARM_UPS = 10


def times_of(cuda: Any, variants: tuple[Variant, Variant], args: tuple[Any, ...]) -> tuple[list[float], list[Any]]:
    """The median times of launches in microseconds, of both in turns, and the outputs."""
    given = [cuda.to_device(arg) for arg in args]
    kernels = [variant.make(cuda)[variant.grid, variant.block] for variant in variants]
    outputs = []
    for kernel in kernels:
        given[-1].copy_to_device(args[-1])
        kernel(*given)
        outputs.append(given[-1].copy_to_host())
    times: list[list[float]] = [[], []]
    begin, end = cuda.event(), cuda.event()
    for _ in range(WARM_UPS + REPEATS):
        for kernel, own in zip(kernels, times, strict=True):
            begin.record()
            kernel(*given)
            end.record()
            end.synchronize()
            own.append(1000 * cuda.event_elapsed_time(begin, end))
    return [statistics.median(own[WARM_UPS:]) for own in times], outputs


def measure(pairs: list[Pair]) -> dict[str, Any]:
    # The profiler counts the code that the first launch runs.
    os.environ["WEFT_COARSEN"] = "off"
    from weft import cuda

    found: dict[str, Any] = {}
    for pair in pairs:
        try:
            times, (first, second) = times_of(cuda, (pair.one, pair.other), pair.args())
            error = float(np.abs(first - second).max() / max(np.abs(second).max(), 1e-30))
            found[pair.name] = {"microseconds": times, "error": error, "right": error <= pair.tolerance}
        except Exception as fault:
            found[pair.name] = {"fault": brief(fault)}
        print(pair.name, found[pair.name], flush=True)
    return found


def bound(variant: Variant, args: tuple[Any, ...], seconds: float) -> Any:
    from weft import cuda
    from weft.profile import profile

    return profile(variant.make(cuda)[variant.grid, variant.block], args, gpu="h200", seconds=seconds)


def compare(pairs: list[Pair], measured: dict[str, Any], seconds: float) -> int:
    """Shows the order of each pair; returns how many are in the wrong order."""
    os.environ["WEFT_DEVICE"] = "cpu"
    print(tables.head("pair", "GPU, µs", "profiler, at least µs", "ratio of times", "ratio of bounds", "order"))
    wrong = 0
    for pair in pairs:
        args = pair.args()
        profiles = [bound(variant, args, seconds) for variant in (pair.one, pair.other)]
        resources, bounds = zip(*(each.bounds[0] for each in profiles), strict=True)
        times = measured.get(pair.name, {}).get("microseconds") or [float("nan")] * 2
        right = (times[0] > times[1]) == (bounds[0] > bounds[1])
        wrong += not right
        print(tables.line(
            pair.name, " / ".join(f"{time:.1f}" for time in times),
            " / ".join(f"{1e6 * each:.1f} ({name})" for each, name in zip(bounds, resources, strict=True)),
            f"{times[0] / times[1]:.2f}", f"{bounds[0] / bounds[1]:.2f}", "right" if right else "WRONG",
        ), flush=True)  # fmt: skip
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="the pairs whose names contain this")
    parser.add_argument("--measure", type=Path, metavar="FILE", help="time the variants on this GPU")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="compare with times that were measured before")
    parser.add_argument("--seconds", type=float, default=5.0, help="the time of each profile")
    options = parser.parse_args()
    pairs = [pair for pair in PAIRS if options.only in pair.name]
    if options.measure:
        options.measure.write_text(json.dumps(measure(pairs), indent=1), encoding="utf-8")
    if options.compare:
        return 1 if compare(pairs, json.loads(options.compare.read_text(encoding="utf-8")), options.seconds) else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
