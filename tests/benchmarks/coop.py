"""Times `cuda.coop`'s block-wide sums and scans beside CUB's (`coop.cu`): needs a GPU, nvcc and CUB's headers.

A kernel does the same collective over and over, so that nothing else counts, with as many blocks as fill the GPU and
with one block a multiprocessor. The two take turns, and their results are compared. CUB returns sums to the first
thread only, weft to every thread unless an argument says otherwise. CUB's kernels know the number of threads of a block
at compile time; weft's know it by `launch_bounds`.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from typing import Any

import numpy as np
from beside_cub import TYPES, address, medians, table
from weft import cuda
from weft.cuda import coop

THREADS = (128, 256, 1024)
ITEMS = (1, 4, 16)
# The collectives that are timed, and CUB's number for each.
SUM, FIRST, RAKING, WARPS = "sum", "sum, for the first thread", "scan", "scan, CUB's warp scans"
NUMBERS = {SUM: 0, FIRST: 0, RAKING: 1, WARPS: 2}


def sums(items: int, threads: int, broadcast: bool) -> Any:
    """Return a kernel that sums a block's items many times, with the result in every thread or only in the first."""

    @cuda.jit(launch_bounds=threads)
    def kernel(x, out, turns):
        own = cuda.local.array(items, x.dtype)
        for k in range(items):
            own[k] = x[cuda.grid(1) * items + k]
        total = x.dtype.type(0)
        one, two = x.dtype.type(1), x.dtype.type(2)
        for _ in range(turns):
            if items == 1:
                found = coop.block.sum(own[0], broadcast=broadcast)
            else:
                found = coop.block.sum(own, broadcast=broadcast)
            total = x.dtype.type(total + found)
            # An iteration needs the result of the previous one, and each item is different: otherwise a compiler could
            # multiply instead of adding equal items.
            if cuda.threadIdx.x == 0:
                for k in range(items):
                    own[k] = one if found > x.dtype.type(k) else two
        if cuda.threadIdx.x == 0:
            out[cuda.blockIdx.x] = total

    return kernel


def scans(items: int, threads: int) -> Any:
    """Return a kernel that scans a block's items many times."""

    @cuda.jit(launch_bounds=threads)
    def kernel(x, out, turns):
        own = cuda.local.array(items, x.dtype)
        for k in range(items):
            own[k] = x[cuda.grid(1) * items + k]
        one = x.dtype.type(1)
        for _ in range(turns):
            if items == 1:
                own[0] = coop.block.exclusive_sum(own[0])
            else:
                coop.block.exclusive_sum(own)
            for k in range(items):
                own[k] = min(own[k], one) + one
        total = x.dtype.type(0)
        for k in range(items):
            total = x.dtype.type(total + own[k])
        out[cuda.grid(1)] = total

    return kernel


def row(cub: Any, what: str, dtype: str, threads: int, items: int, blocks: int, given: Any) -> tuple[float, float]:
    """Return the medians of both, in nanoseconds per iteration."""
    host = np.random.default_rng(1).integers(0, 3, blocks * threads * items).astype(dtype)
    x = cuda.to_device(host)
    mine, theirs = cuda.to_device(np.zeros(blocks * threads, dtype)), cuda.to_device(np.zeros(blocks * threads, dtype))
    number = NUMBERS[what]
    kernel = sums(items, threads, what == SUM) if number == 0 else scans(items, threads)
    call = (number, TYPES.index(dtype), threads, items, address(x), address(theirs), blocks, given.turns)
    case = f"{what}, {dtype}, {threads} threads, {items} items"
    found = medians(lambda: kernel[blocks, threads](x, mine, given.turns), lambda: cub.run(*call), case, given)
    got, expected = mine.copy_to_host(), theirs.copy_to_host()
    same = np.allclose(got, expected, rtol=1e-4) if dtype == "float32" else np.array_equal(got, expected)
    if not same:
        msg = f"the results differ: {case}"
        raise RuntimeError(msg)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=5)
    shapes = list(itertools.product(THREADS, ITEMS))
    return table(__file__, NUMBERS, lambda _: shapes, row, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
