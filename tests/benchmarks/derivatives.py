"""Times adjoint kernels of `cuda.vjp` beside their kernels, and beside adjoint kernels written by hand.

    python tests/benchmarks/derivatives.py                       # the GPU, or the CPU where WEFT_DEVICE=cpu
    python tests/benchmarks/derivatives.py --sizes tiny --only softmax,filter

The gradients of both adjoint kernels are compared first. The versions use the same arrays and alternate; each time is
the minimum of all runs. On a GPU, events of the stream measure several consecutive launches. The tables are in
Markdown, and the figures are written as JSON to the folder `$OUT`, if that is set.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import derivatives_kernels as kernels
import numpy as np
from reproducible import minimum_times
from weft import cuda

SIZES = ("tiny", "full")


@dataclass
class Case:
    """A kernel with its launch, its arguments and the adjoint kernel by hand."""

    kernel: Any
    grid: Any
    block: Any
    args: list[Any]
    wrt: tuple[str, ...]  # the parameters with gradients
    by_hand: Any = None  # its arguments: those that `args_by_hand` names, dout, and the gradients
    args_by_hand: tuple[str, ...] = ()
    grid_by_hand: Any = None


def cases(size: str) -> dict[str, Case]:
    """The cases by name."""
    rng = np.random.default_rng(1)
    full = size == "full"

    def draw(*shape: int) -> Any:
        return rng.random(shape).astype(np.float32)

    n, side = (1 << 24, 4096) if full else (5000, 64)
    flat, wide = ((n + 255) // 256, 256), ((side // 32, side // 8), (32, 8))
    bodies, rows, width = (16384, 8192, 1024) if full else (100, 5, 300)
    pixels, views, pairs, order = (512, 360, 16384, 2048) if full else (24, 10, 3, 32)
    taps, many = kernels.TAPS, n // 4
    some = ((many + taps + 254) // 256, 256)
    rays = (((pixels + 31) // 32, (views + 7) // 8), (32, 8))
    tiles = ((order // kernels.TILE,) * 2, (kernels.TILE,) * 2)
    masses = [draw(bodies, 3), draw(bodies) / bodies]
    x = draw(n)
    return {
        "saxpy": Case(kernels.saxpy, *flat, [draw(1), x, draw(n), draw(n)], ("a", "x", "y")),
        "filter": Case(kernels.filtered, *flat, [x, draw(3), draw(n)], ("u", "w")),
        "stencil": Case(kernels.stencil, *wide, [draw(side, side), draw(side, side), draw(side, side)], ("u", "c")),
        "sines": Case(kernels.sines, *flat, [x, draw(n)], ("x",)),
        "branches": Case(kernels.branches, *flat, [x, draw(n)], ("x",)),
        "product": Case(kernels.product, *tiles, [draw(order, order) for _ in range(3)], ("a", "b")),
        "softmax": Case(
            kernels.softmax, rows, kernels.ROW, [draw(rows, width), draw(rows, width)], ("x",),
            kernels.softmax_backward, ("x",),
        ),
        "convolution": Case(
            kernels.convolved, *some, [draw(many + taps - 1), draw(taps), draw(many)], ("u", "w"),
            kernels.convolved_backward, ("u", "w"),
        ),
        "forces": Case(
            kernels.forces, (bodies + 127) // 128, 128, [*masses, draw(bodies, 3)], ("p", "m"),
            kernels.forces_backward, ("p", "m"),
        ),
        "soft_dtw": Case(
            kernels.soft_dtw, pairs, kernels.LENGTH, [draw(pairs, kernels.LENGTH, kernels.LENGTH), draw(pairs)], ("d",),
            kernels.soft_dtw_backward, ("d",),
        ),
        "projector": Case(
            kernels.projected, *rays,
            [draw(pixels, pixels), np.linspace(0, math.pi, views, dtype=np.float32), draw(views, pixels)], ("image",),
            kernels.projected_backward, ("image", "angles"),
        ),
    }  # fmt: skip


class Prepared:
    """The arrays of a case on the device, and launches."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.args = [cuda.to_device(value) for value in case.args]
        names = case.kernel.py_func.__code__.co_varnames
        self.by_name = dict(zip(names, self.args, strict=False))
        self.bwd = cuda.vjp(case.kernel, case.wrt)
        self.adjoints = self.bwd.adjoints(*self.args)
        self.out = next(name for name in self.adjoints if name not in case.wrt)
        self.dout = np.random.default_rng(2).random(self.by_name[self.out].shape).astype(np.float32)
        self.given = {name: cuda.to_device(np.zeros(self.by_name[name].shape, np.float32)) for name in self.adjoints}
        self.constant = cuda.to_device(self.dout)

    def forward(self) -> None:
        """Launch the kernel."""
        self.case.kernel[self.case.grid, self.case.block](*self.args)

    def adjoint(self) -> None:
        """Launch the adjoint kernel of `cuda.vjp`."""
        self.bwd[self.case.grid, self.case.block](*self.args, *self.given.values())

    def by_hand(self) -> None:
        """Launch the adjoint kernel by hand."""
        case = self.case
        args = [self.by_name[name] for name in case.args_by_hand]
        case.by_hand[case.grid_by_hand or case.grid, case.block](
            *args, self.constant, *(self.given[name] for name in case.wrt)
        )

    def gradients(self, launch: Any) -> list[Any]:
        """The gradients after one launch."""
        for name, array in self.given.items():
            array.copy_to_device(self.dout if name == self.out else np.zeros(array.shape, np.float32))
        launch()
        cuda.synchronize()
        return [self.given[name].copy_to_host() for name in self.case.wrt]


def compared(prepared: Prepared) -> float:
    """The largest difference of the gradients, relative to the largest gradient. A wrong one is an error."""
    worst = 0.0
    for name, one, other in zip(
        prepared.case.wrt, prepared.gradients(prepared.adjoint), prepared.gradients(prepared.by_hand), strict=True
    ):
        difference = float(np.abs(one - other).max() / np.abs(other).max())
        if not difference < 1e-3:
            msg = f"the gradients by {name} differ by {difference:.2g}"
            raise ValueError(msg)
        worst = max(worst, difference)
    return worst


def measured(name: str, case: Case, repeats: int) -> dict[str, Any]:
    """The milliseconds of a case."""
    prepared = Prepared(case)
    row: dict[str, Any] = {"name": name}
    launches = [prepared.forward, prepared.adjoint]
    if case.by_hand is not None:
        row["difference"] = compared(prepared)
        launches.append(prepared.by_hand)
    for _ in range(60):  # launches choose between coarsened variants
        prepared.adjoint()
    cuda.synchronize()
    times = [seconds * 1e3 for seconds in minimum_times(cuda, launches, repeats)]
    return row | dict(zip(("forward", "adjoint", "by_hand"), times, strict=False))


def mean(values: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def main() -> None:
    """Run the command of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names of cases, with commas")
    parser.add_argument("--sizes", choices=SIZES, default="full")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each version")
    asked = parser.parse_args()
    chosen = cases(asked.sizes)
    if asked.only:
        chosen = {name: chosen[name] for name in asked.only.split(",")}
    rows = []
    print("| kernel | kernel (ms) | adjoint (ms) | adjoint / kernel | by hand (ms) | adjoint / by hand |")
    print("|---|---|---|---|---|---|")
    for name, case in chosen.items():
        row = measured(name, case, asked.repeats)
        rows.append(row)
        by_hand = f"{row['by_hand']:.3f} | {row['adjoint'] / row['by_hand']:.2f}" if "by_hand" in row else "|"
        cells = f"{row['forward']:.3f} | {row['adjoint']:.3f} | {row['adjoint'] / row['forward']:.2f}"
        print(f"| {name} | {cells} | {by_hand} |", flush=True)
    ratios = [row["adjoint"] / row["forward"] for row in rows]
    others = [row["adjoint"] / row["by_hand"] for row in rows if "by_hand" in row]
    of_hand = f", {mean(others):.2f} of the adjoint kernel by hand" if others else ""
    print(f"\nGeometric means: {mean(ratios):.2f} of the kernel{of_hand}")
    if folder := os.environ.get("OUT"):
        Path(folder, "derivatives.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
