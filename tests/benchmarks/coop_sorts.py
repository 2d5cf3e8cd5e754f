"""Times `cuda.coop`'s sorts and exchanges of blocks beside CUB's (`coop_sorts.cu`): needs a GPU, nvcc, CUB's headers.

A kernel does the same collective over and over, each time of numbers in no order that are made of the last result, with
as many blocks as fill the GPU and with one block a multiprocessor. The two take turns, and their results are compared.
Both know how many threads a block has.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
from beside_cub import TYPES, address, medians, table
from weft import cuda
from weft.cuda import coop

# Threads, and items per thread.
SHAPES = ((128, 1), (128, 4), (128, 16), (256, 4), (256, 16), (1024, 4))
# The collectives that are timed; the numbers are CUB's.
NAMES = ("merge sort", "merge sort of pairs", "radix sort", "radix sort of pairs", "striped to blocked",
         "blocked to striped")  # fmt: skip
KINDS = {"sorts": NAMES[:4], "exchanges": NAMES[4:]}


@cuda.jit(device=True)
def shuffled(x):
    """Pseudorandom numbers of 24 bits, which float32 represents exactly."""
    return type(x)(np.uint32(np.uint32(x) * np.uint32(1664525) + np.uint32(1013904223)) >> np.uint32(8))


def turns_of(name: str, threads: int, items: int) -> Any:
    """Return a kernel that sorts or exchanges a block's items many times."""
    number = NAMES.index(name)
    pairs = number in (1, 3)

    @cuda.jit(launch_bounds=threads)
    def kernel(x, out, turns):
        keys, values = cuda.local.array(items, x.dtype), cuda.local.array(items, np.int32)
        first = cuda.grid(1) * items
        for k in range(items):
            keys[k] = x[first + k]
            values[k] = cuda.threadIdx.x * items + k
        for _ in range(turns):
            for k in range(items):
                keys[k] = shuffled(keys[k])
            if number == 0:
                coop.block.merge_sort_keys(keys)
            elif number == 1:
                coop.block.merge_sort_pairs(keys, values)
            elif number == 2:
                coop.block.radix_sort_keys(keys)
            elif number == 3:
                coop.block.radix_sort_pairs(keys, values)
            elif number == 4:
                coop.block.striped_to_blocked(keys)
            else:
                coop.block.blocked_to_striped(keys)
        for k in range(items):
            out[first + k] = values[k] if pairs else keys[k]

    return kernel


def row(cub: Any, name: str, dtype: str, threads: int, items: int, blocks: int, given: Any) -> tuple[float, float]:
    """Return the medians of both, in nanoseconds per iteration."""
    count = blocks * threads * items
    x = cuda.to_device(np.random.default_rng(1).integers(0, 1 << 24, count).astype(dtype))
    mine, theirs = cuda.to_device(np.zeros(count, dtype)), cuda.to_device(np.ones(count, dtype))
    kernel = turns_of(name, threads, items)
    call = (NAMES.index(name), TYPES.index(dtype), threads, items, address(x), address(theirs), blocks, given.turns)
    case = f"{name}, {dtype}, {threads} threads, {items} items"
    found = medians(lambda: kernel[blocks, threads](x, mine, given.turns), lambda: cub.run(*call), case, given)
    if not np.array_equal(mine.copy_to_host(), theirs.copy_to_host()):
        msg = f"the results differ: {case}"
        raise RuntimeError(msg)
    return found


def shapes(name: str) -> list[tuple[int, int]]:
    """Return threads and items per thread; the exchange of a single item does nothing."""
    return [(threads, items) for threads, items in SHAPES if items > 1 or name in KINDS["sorts"]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", choices=KINDS, help="sorts or exchanges alone")
    given = parser.parse_args()
    return table(__file__, KINDS[given.only] if given.only else NAMES, shapes, row, given)


if __name__ == "__main__":
    sys.exit(main())
