"""Loops whose counter moves away from the bound, starts far past it, or has a large step end as in Python.

ptxas unrolls loops, and assumes that the counter moves towards the bound.
"""

from __future__ import annotations

import numpy as np
import pytest
from harness import module, run

SOURCE = """
from weft import cuda
import numpy as np

@cuda.jit
def kernel(x, bound, y, out):
    i = cuda.grid(1)
    v = y[i] / 3.0
    keep = y[i] > 5.0
    total = 0.0
    turns = 0
    k = {counter}(x[i])
    {loop}
    out[i, 0] = total
    out[i, 1] = turns
"""
TURN = "total = total if keep else v; turns += 1"
WHILE = f"while True:\n        {TURN}"
FAR = 2**62 + 2**61

# The counter, the loop, its start values, and the bound.
AWAY = {
    "range that may wrap": ("int", f"for k in range(np.int16(k) % 5, -3, -2):\n        {TURN}", range(40), 0),
    "range of bytes that may wrap": ("int", f"for k in range(np.int8(k) % 5, -2, -1):\n        {TURN}", range(40), 0),
    "down from beyond": ("int", f"{WHILE}\n        k -= 2\n        if k > 5: break", range(10, 50), 0),
    "down from beyond a bound": ("int", f"{WHILE}\n        k -= 2\n        if k >= bound: break", range(10, 50), 5),
    "up from below": ("int", f"{WHILE}\n        k += 1\n        if k < 50: break", range(40), 0),
    "up from below a bound": ("int", f"{WHILE}\n        k += 3\n        if not bound <= k: break", range(40), 50),
    "unsigned": (
        "np.uint64",
        f"{WHILE}\n        k -= np.uint64(2)\n        if k > np.uint64(5): break",
        range(10, 50),
        0,
    ),
    "out of a window": (
        "int",
        f"{WHILE}\n        k -= 1\n        if k < 0 or k >= 64: break",
        [*range(70, 90), *range(20)],
        0,
    ),
    "large steps": ("int", f"for k in range(k, -4, 2**63 - 10):\n        {TURN}", range(-40, 40), 0),
    "large steps towards a bound": (
        "int",
        f"while k < bound:\n        {TURN}\n        k += 2**62 - 9",
        range(-40, -4),
        -4,
    ),
    "up from afar": ("int", f"{WHILE}\n        k += 1\n        if k >= bound: break", range(FAR, FAR + 40), -FAR),
    "down from afar": ("int", f"{WHILE}\n        k -= 2\n        if k < bound: break", range(-FAR, -FAR + 40), FAR),
}
TOWARDS = [
    "for k in range(k, bound, 3):",
    "for k in range(bound, k, -2):",
    "for k in range(k, y.size, 32):",
    "for k in range(y.size - 1, -1, -1):",
    "while k < bound:\n        k += 2",
    "while k >= 0:\n        k -= 1",
]


SIGNATURE = "void(int64[::1], int64, float64[::1], float64[:, ::1])"


def is_unrolled_by_ptxas(counter: str, loop: str) -> bool:
    """Whether ptxas may unroll the loop; a barrier prevents LLVM from unrolling it."""
    loop = loop.replace(TURN, f"{TURN}; cuda.syncwarp()")
    kernel = module(SOURCE.format(counter=counter, loop=loop)).kernel
    return "nounroll" not in kernel.inspect_asm(SIGNATURE, target="sm_90")


@pytest.mark.parametrize("name", AWAY)
def test_they_end_in_time(name: str) -> None:
    counter, loop, starts, bound = AWAY[name]
    kernel = module(SOURCE.format(counter=counter, loop=loop)).kernel
    x = np.array(list(starts), np.int64)
    run(kernel, 1, x.size, x, bound, np.arange(x.size) / 4, np.zeros((x.size, 2)))
    if loop.startswith("while"):  # LLVM may know that the other loops do not wrap
        assert not is_unrolled_by_ptxas(counter, loop)


@pytest.mark.parametrize("loop", TOWARDS)
def test_other_loops_are_left_to_ptxas(loop: str) -> None:
    assert is_unrolled_by_ptxas("int", f"{loop}\n        {TURN}")
