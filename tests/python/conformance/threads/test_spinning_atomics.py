"""Shared-memory atomics that are loops in machine code, as the first operation in a loop of the kernel."""

from __future__ import annotations

import numpy as np
import pytest
from harness import module
from weft import cuda

SOURCE = """
from weft import cuda
import numpy as np

@cuda.jit{options}
def kernel(value, start, iterations, out):
    cells = cuda.shared.array(2, value.dtype)
    if cuda.threadIdx.x < 2:
        cells[cuda.threadIdx.x] = start
    cuda.syncthreads()
    mine = value[cuda.threadIdx.x]
    {loop}
    cuda.syncthreads()
    if cuda.threadIdx.x < 2:
        out[cuda.blockIdx.x, cuda.threadIdx.x] = cells[cuda.threadIdx.x]
"""

FOR = "for _ in range(iterations): {operation}"
# Loops, and their numbers of operations. ptxas miscompiled the second to the fourth: one count for all lanes.
LOOPS = {
    "for": (FOR, lambda n: n),
    "rest": ("for _ in range(iterations & 7): {operation}", lambda n: n & 7),
    "step": ("for _ in range(0, iterations, 3): {operation}", lambda n: len(range(0, n, 3))),
    "third": (
        "k = iterations\n    while True:\n        {operation}\n        k //= 3\n        if k == 0: break",
        lambda n: 1 + (n > 2) + (n > 8),
    ),
    "two": (
        "for _ in range(iterations % 4, iterations): {operation}\n    for _ in range(iterations % 4): {operation}",
        lambda n: n,
    ),
    "while": ("k = 1 << iterations\n    while k > 1:\n        {operation}\n        k >>= 1", lambda n: n),
    "twice": ("for _ in range(iterations):\n        {operation}\n        {operation}", lambda n: 2 * n),
    "nested": (
        "for _ in range(iterations):\n        for _ in range(2): {operation}\n        {operation}",
        lambda n: 3 * n,
    ),
}


@pytest.mark.parametrize("options", ["", "(opt=False)"])
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint64, np.int64, np.float16, np.uint32])
@pytest.mark.parametrize("iterations", [1, 3, 7, 17])
def test_additions_are_made_as_often_as_the_loop_turns(dtype, loop, options, iterations):
    text, often = LOOPS[loop]
    text = text.format(operation="cuda.atomic.add(cells, 1, mine)")
    kernel = module(SOURCE.format(loop=text, options=options)).kernel
    value, out = np.ones(64, dtype), np.zeros((2, 2), dtype)
    kernel[2, 64](cuda.to_device(value), 5, iterations, found := cuda.to_device(out))
    expected = 5 + min(64 * often(iterations), 2043 if dtype is np.float16 else 1 << 40)
    np.testing.assert_array_equal(found.copy_to_host(), [[5, expected]] * 2)


@pytest.mark.parametrize("dtype", [np.uint64, np.int64])
@pytest.mark.parametrize(
    ("operation", "expected"),
    [("max", 63), ("min", 0), ("or_", 63), ("and_", 0), ("xor", 9), ("sub", 9 - 7 * 2016), ("exch", None)],
)
def test_other_operations_on_64_bits_end(dtype, operation, expected):
    text = FOR.format(operation=f"cuda.atomic.{operation}(cells, 1, mine)")
    kernel = module(SOURCE.format(loop=text, options="")).kernel
    found = cuda.to_device(np.zeros((2, 2), dtype))
    kernel[2, 64](cuda.to_device(np.arange(64, dtype=dtype)), 9, 7, found)
    got = found.copy_to_host()
    np.testing.assert_array_equal(got[:, 0], 9)
    if expected is None:
        assert (got[:, 1] < 64).all()
    else:
        np.testing.assert_array_equal(got[:, 1], np.array(expected).astype(dtype))


@pytest.mark.parametrize("options", ["", "(opt=False)"])
@pytest.mark.parametrize(("element", "bits"), [("float32", 32), ("float64", 64), ("uint64", 64)])
def test_the_loop_begins_with_a_volatile_load(element, bits, options):
    """Without it, ptxas counts one iteration for each lane that exits the inner loop separately."""
    text = FOR.format(operation="cuda.atomic.add(cells, 1, mine)")
    kernel = module(SOURCE.format(loop=text, options=options)).kernel
    ptx = kernel.inspect_asm(f"void({element}[::1], int64, int64, {element}[:, ::1])", target="sm_90")
    assert f"ld.volatile.shared.b{bits}" in ptx


def test_outside_of_loops_nothing_is_loaded():
    kernel = module(SOURCE.format(loop="cuda.atomic.add(cells, 1, mine)", options="")).kernel
    ptx = kernel.inspect_asm("void(float32[::1], int64, int64, float32[:, ::1])", target="sm_90")
    assert "atom.shared.add.f32" in ptx
    assert "volatile" not in ptx
