#!/usr/bin/env python3
"""Runs very many random differentiable kernels: adjoint and tangent kernels beside differences.

    python tests/python/differentiable --count 20000 --jobs 2
    python tests/python/differentiable --show 1234
    python tests/python/differentiable --minimize 1234

A program fails if its derivatives differ, if weft rejects it other than by a refusal to differentiate (E0401 to E0403),
if it crashes the process, or if it does not end within `--timeout` seconds. The last lines count the refusals by their
reason. An unresolved program is not smooth at its arguments, or has infinite values.
"""

from __future__ import annotations

import argparse
import collections
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="differentiable", description="derivatives of random kernels")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1000, help="how many seeds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seconds", type=float, help="start no program after so long")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds that a program may take")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--opt-level", choices="0123", default="0", help="LLVM's optimization level on the CPU")
    parser.add_argument("--show", type=int, metavar="SEED", help="print a program")
    parser.add_argument("--minimize", type=int, metavar="SEED", help="make the failing program of a seed small")
    return parser.parse_args()


def main() -> int:
    """Runs the command of the command line."""
    asked = options()
    settings = {"WEFT_DEVICE": asked.device, "WEFT_CACHE": "off", "WEFT_CPU_THREADS": "1"}
    for name, value in (settings | {"WEFT_HOST_OPT_LEVEL": asked.opt_level}).items():
        os.environ.setdefault(name, value)
    from combined.sweep import Counts, Result, sweep

    from differentiable.programs import generate
    from differentiable.sweep import minimize, work

    if asked.show is not None:
        print(generate(asked.show).source)
        return 0
    if asked.minimize is not None:
        source, found = minimize(generate(asked.minimize), asked.timeout)
        print(f"{source}# {found}")
        return int(found.startswith("wrong"))
    refusals: collections.Counter[str] = collections.Counter()

    def report(result: Result) -> None:
        word, _, rest = result.outcome.partition(": ")
        if word in ("refused", "unresolved"):
            refusals[f"{word}: {rest}"] += 1
        elif word != "passed":
            print(f"seed {result.seed} failed: {result.outcome[:400]}", flush=True)

    def progress(counts: Counts) -> None:
        print(f"differentiable: {counts.results}, {counts.total / counts.seconds:.1f} a second", flush=True)

    seeds = range(asked.first, asked.first + asked.count)
    counts = sweep(
        seeds, jobs=asked.jobs, device=asked.device, timeout=asked.timeout, seconds=asked.seconds, report=report,
        progress=progress, body=work,
    )  # fmt: skip
    print("\n".join(f"{count:6} {why}" for why, count in refusals.most_common()))
    print(f"\ndifferentiable: {counts.results} in {counts.seconds:.0f} s")
    return int(bool(counts.failed))


if __name__ == "__main__":
    sys.exit(main())
