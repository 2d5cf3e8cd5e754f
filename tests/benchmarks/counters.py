"""Compares the profiler's counts with the counters of a GPU, kernel by kernel.

``--measure FILE`` needs a GPU and Nsight Compute (ncu): it launches each kernel once and keeps its counters.
``--compare FILE`` needs neither: it counts the same launches with the profiler and shows what differs.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import tables
from kernels import SETS
from suite.faults import brief

if TYPE_CHECKING:
    from suite import Case

GLOBAL = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
SHARED = "l1tex__data_{}_mem_shared_op_{}.sum"
OPERATION = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
KINDS = {"load": ("ld",), "store": ("st",), "atomic": ("red", "atom")}
SHARED_COUNTS = {"wavefronts": "pipe_lsu_wavefronts", "conflicts": "bank_conflicts_pipe_lsu"}
OPERATIONS = {"add": "add", "mul": "mul", "fma": "fma"}
COUNTERS = {
    **{
        f"{kind} {count}": tuple(GLOBAL.format(count, op) for op in ops)
        for kind, ops in KINDS.items()
        for count in ("requests", "sectors")
    },
    **{
        f"shared {kind} {count}": (SHARED.format(metric, {"atomic": "atom"}.get(kind, ops[0])),)
        for kind, ops in KINDS.items()
        for count, metric in SHARED_COUNTS.items()
    },
    **{
        f"{dtype} {name}": (OPERATION.format(letter + op),)
        for dtype, letter in (("float32", "f"), ("float64", "d"))
        for name, op in OPERATIONS.items()
    },
}
"""What is compared, and the metrics whose sum it is."""
ALSO = ("gpu__time_duration.sum", "smsp__inst_executed.sum", "smsp__thread_inst_executed.sum",
        "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
        "lts__t_sectors_srcunit_tex_op_read.sum", "launch__registers_per_thread")  # fmt: skip
"""What is kept with them, for questions that come up later."""


def chosen(options: argparse.Namespace) -> list[Case]:
    return [case for case in SETS[options.set] if not options.only or options.only in case.name]


def launch_all(options: argparse.Namespace) -> None:
    """Launches each kernel once, under ncu; there are no other launches."""
    from weft import cuda

    for case in chosen(options):
        work = case.work(options.sizes)
        args = [cuda.to_device(arg) if isinstance(arg, np.ndarray) and arg.ndim else arg for arg in work.args]
        case.make(cuda)[work.grid, work.block](*args)
        cuda.synchronize()


def measure(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """The metrics of each kernel, by its name."""
    ncu = shutil.which("ncu")
    if ncu is None:
        raise SystemExit("there is no ncu on PATH: it comes with CUDA and Nsight Compute")
    metrics = ",".join(sorted({metric for parts in COUNTERS.values() for metric in parts} | set(ALSO)))
    command = [ncu, "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base", "--metrics", metrics,
               sys.executable, __file__, "--child", "--set", options.set, "--sizes", options.sizes,
               *(["--only", options.only] if options.only else [])]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    text = "\n".join(line for line in done.stdout.splitlines() if line.startswith('"'))
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row["ID"]]
    cases = chosen(options)
    if done.returncode or len(rows) != len(cases):
        raise SystemExit(f"{len(rows)} launches of {len(cases)}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")

    kept = set(metrics.split(","))

    def number(text: str) -> float:
        return float(text.replace(",", "")) if text else 0.0

    return {
        case.name: {name: number(text) for name, text in row.items() if name in kept}
        for case, row in zip(cases, rows, strict=True)
    }


def counted(case: Case, size: str) -> dict[str, int]:
    """The profiler's counts of a launch, by the names of `COUNTERS`."""
    from weft import _weft, cuda

    work = case.work(size)
    launcher = case.make(cuda)[work.grid, work.block]
    config = launcher.griddim, launcher.blockdim, launcher.sharedmem
    found = _weft.profile_launch(launcher.dispatcher, *config, tuple(work.args), "h200", 1e9)
    sums: dict[str, int] = defaultdict(int)
    for _file, _line, kind, _warps, _lanes, _branches, executed, _barrier, accesses, _calls in found["rows"]:
        for name, count in zip(found["machine"], executed, strict=True):
            sums[name] += count
        for space, _array, counts, *_ in accesses:
            named = dict(zip(found["counts"], counts, strict=True))
            if space in ("global", "generic"):
                sums[f"{kind} requests"] += named["requests"]
                sums[f"{kind} sectors"] += named["sectors"]
            elif space == "shared":
                sums[f"shared {kind} wavefronts"] += named["wavefronts"]
                sums[f"shared {kind} conflicts"] += named["bank_conflicts"]
    return {name: sums[name] for name in COUNTERS}


def compare(options: argparse.Namespace, measured: dict[str, dict[str, float]]) -> int:
    """Shows the counts that differ; returns how many kernels have one."""
    os.environ["WEFT_DEVICE"] = "cpu"
    print(tables.head("kernel", "count", "GPU", "profiler", "ratio"))
    differing = 0
    for case in chosen(options):
        if case.name not in measured:
            continue
        begin = time.monotonic()
        try:
            counts = counted(case, options.sizes)
        except Exception as fault:
            print(tables.line(case.name, brief(fault), "", "", ""), flush=True)
            differing += 1
            continue
        seconds = time.monotonic() - begin
        rows = []
        for name, metrics in COUNTERS.items():
            expected = round(sum(measured[case.name].get(metric, 0) for metric in metrics))
            if counts[name] != expected:
                ratio = f"{counts[name] / expected:.4f}" if expected else "-"
                rows.append(tables.line(case.name, name, f"{expected}", f"{counts[name]}", ratio))
        differing += bool(rows)
        print("\n".join(rows or [tables.line(case.name, "equal", "", "", "")]), flush=True)
        if options.verbose:
            print(f"{case.name}: {seconds:.1f} s", file=sys.stderr)
    return differing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", choices=tuple(SETS), default="first", help="the folder whose kernels are launched")
    parser.add_argument("--sizes", choices=("full", "cpu", "tiny"), default="tiny", help="their sizes")
    parser.add_argument("--only", help="the kernels whose names contain this")
    parser.add_argument(
        "--measure", type=Path, metavar="FILE", help="launch them under ncu, and write the counters here"
    )
    parser.add_argument("--compare", type=Path, metavar="FILE", help="compare with counters that were written before")
    parser.add_argument("--verbose", action="store_true", help="the seconds of each kernel, too")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        launch_all(options)
        return 0
    if options.measure:
        options.measure.write_text(json.dumps(measure(options), indent=1), encoding="utf-8")
    if options.compare:
        return 1 if compare(options, json.loads(options.compare.read_text(encoding="utf-8"))) else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
