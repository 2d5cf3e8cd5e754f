"""The advice for a race is valid for every pair of accesses of the finding, and names the function to use."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import weft.errors
from weft import cuda

pytestmark = pytest.mark.cpu

POINT = np.dtype([("x", np.float32), ("y", np.float32)], align=True)


def ints(n: int) -> np.ndarray[Any, Any]:
    return np.arange(n, dtype=np.int32)


def floats(n: int) -> np.ndarray[Any, Any]:
    return np.arange(n, dtype=np.float32)


def total(x, out):
    out[0] += x[cuda.grid(1)]


def total_written_out(x, out):
    out[0] = out[0] + x[cuda.grid(1)]


def total_the_other_way_round(x, out):
    out[0] = x[cuda.grid(1)] + out[0]


def histogram(x, h):
    i = cuda.grid(1)
    h[x[i] % 7] += 1


def difference(x, out):
    out[0] -= x[cuda.grid(1)]


def difference_from(x, out):
    out[0] = x[cuda.grid(1)] - out[0]


def product(x, out):
    out[0] *= x[cuda.grid(1)]


def bits_or(x, out):
    out[0] |= x[cuda.grid(1)]


def bits_and(x, out):
    out[0] &= x[cuda.grid(1)]


def bits_xor(x, out):
    out[0] ^= x[cuda.grid(1)]


def largest(x, out):
    out[0] = max(out[0], x[cuda.grid(1)])


def smallest(x, out):
    out[0] = min(x[cuda.grid(1)], out[0])


def largest_by_numpy(x, out):
    out[0] = np.maximum(out[0], x[cuda.grid(1)])


def largest_by_comparison(x, out):
    v = x[cuda.grid(1)]
    if v > out[0]:
        out[0] = v


def smallest_by_comparison(x, out):
    v = x[cuda.grid(1)]
    if out[0] > v:
        out[0] = v


def of_two_axes(x, out):
    i = cuda.grid(1)
    out[i % 2, 1] += x[i]


def of_a_field(x, points):
    points[0].x += x[cuda.grid(1)]


def of_a_row(x, out):
    row = out[1]
    row[0] += x[cuda.grid(1)]


def complex_total(x, out):
    out[0] += x[cuda.grid(1)]


def in_a_loop(x, out):
    for k in range(3):
        out[k] += x[cuda.grid(1)]


def in_shared_memory(x, out):
    s = cuda.shared.array(4, np.int32)
    i = cuda.threadIdx.x
    if i < 4:
        s[i] = 0
    cuda.syncthreads()
    s[x[i] % 4] += 1
    cuda.syncthreads()
    if i < 4 and cuda.blockIdx.x == 0:
        out[i] = s[i]


def two_updates(x, out):
    i = cuda.grid(1)
    if i % 2:
        out[0] += x[i]
    else:
        out[0] += 1


def atomic_and_not(x, out):
    i = cuda.grid(1)
    if i % 2:
        cuda.atomic.add(out, 0, x[i])
    else:
        out[0] += 1


ADD = "`{}` is a read and a write: use `cuda.atomic.{}({}, …)`"
NONE = (
    "`{}` is a read and a write, and `cuda.atomic` has no operation that does both: let one thread do it, or write a "
    "loop with `cuda.atomic.cas({}, …, …)`"
)
UPDATES = [
    (total, floats, floats(1), ADD.format("out[0] += …", "add", "out, 0")),
    (total, ints, ints(1), ADD.format("out[0] += …", "add", "out, 0")),
    (total_written_out, floats, floats(1), ADD.format("out[0] = out[0] + …", "add", "out, 0")),
    (total_the_other_way_round, ints, ints(1), ADD.format("out[0] = … + out[0]", "add", "out, 0")),
    (histogram, ints, ints(7), ADD.format("h[x[i] % 7] += …", "add", "h, x[i] % 7")),
    (difference, floats, floats(1), ADD.format("out[0] -= …", "sub", "out, 0")),
    (difference_from, floats, floats(1), NONE.format("out[0] = … - out[0]", "out, 0")),
    (product, floats, floats(1) + 1, NONE.format("out[0] *= …", "out, 0")),
    (bits_or, ints, ints(1), ADD.format("out[0] |= …", "or_", "out, 0")),
    (bits_and, ints, ints(1) - 1, ADD.format("out[0] &= …", "and_", "out, 0")),
    (bits_xor, ints, ints(1), ADD.format("out[0] ^= …", "xor", "out, 0")),
    (largest, floats, floats(1), ADD.format("out[0] = max(out[0], …)", "max", "out, 0")),
    (smallest, ints, ints(1) + 9, ADD.format("out[0] = min(out[0], …)", "min", "out, 0")),
    (largest_by_numpy, floats, floats(1), ADD.format("out[0] = np.maximum(out[0], …)", "max", "out, 0")),
    (largest_by_comparison, floats, floats(1), ADD.format("if v > out[0]: out[0] = v", "max", "out, 0")),
    (smallest_by_comparison, ints, ints(1) + 200, ADD.format("if out[0] > v: out[0] = v", "min", "out, 0")),
    (of_two_axes, floats, floats(6).reshape(2, 3), ADD.format("out[i % 2, 1] += …", "add", "out, (i % 2, 1)")),
    (of_a_field, floats, np.zeros(1, POINT), ADD.format("points[0].x += …", "add", "points.x, 0")),
    (of_a_row, floats, floats(6).reshape(2, 3), ADD.format("row[0] += …", "add", "row, 0")),
    (complex_total, floats, np.zeros(1, np.complex64), ADD.format("out[0] += …", "add", "out, 0")),
    (in_a_loop, floats, floats(3), ADD.format("out[k] += …", "add", "out, k")),
    (in_shared_memory, ints, ints(4), ADD.format("s[x[i] % 4] += …", "add", "s, x[i] % 4")),
    (atomic_and_not, floats, floats(1), ADD.format("out[0] += …", "add", "out, 0")),
]


def found(function: Any, grid: int, block: int, *args: Any) -> list[Any]:
    with pytest.raises(weft.errors.SanitizerError) as caught:
        cuda.jit(function, sanitize="racecheck")[grid, block](*args)
    return list(caught.value.findings)


@pytest.mark.parametrize(
    ("function", "of", "out", "help"), UPDATES, ids=[f"{row[0].__name__}-{row[1].__name__}" for row in UPDATES]
)
@pytest.mark.parametrize(("grid", "block"), [(1, 32), (1, 64), (2, 64)])
def test_an_update_is_to_be_atomic(function: Any, of: Any, out: Any, help: str, grid: int, block: int) -> None:
    findings = found(function, grid, block, of(grid * block), out.copy())
    assert {finding.help for finding in findings} == {help}
    among = "race within a block" if function is in_shared_memory or grid == 1 else "race between blocks"
    assert {finding.kind for finding in findings} == {"race within a warp" if block == 32 else among}


def test_updates_of_two_lines_are_named_both() -> None:
    findings = found(two_updates, 2, 64, floats(128), floats(1))
    one = ADD.format("out[0] += …", "add", "out, 0")
    assert {finding.help for finding in findings} == {one}


def test_the_call_that_is_named_can_be_written() -> None:
    @cuda.jit(sanitize="all")
    def right(x, points, grid):
        i = cuda.grid(1)
        cuda.atomic.add(points.x, 0, x[i])
        cuda.atomic.add(grid, (i % 2, 1), x[i])
        row = grid[1]
        cuda.atomic.max(row, 0, x[i])

    points, grid = np.zeros(1, POINT), np.zeros((2, 3), np.float32)
    right[2, 64](floats(128), points, grid)
    assert points["x"][0] == floats(128).sum()
    assert grid[1, 0] == 127


def never_an_update(x, out):
    i = cuda.grid(1)
    x[i] = x[(i + 1) % x.size] + 1  # one


def tile(x, out):
    s = cuda.shared.array(10, np.float32)
    t = cuda.threadIdx.x
    if t < 10:
        s[t] = x[t]  # one
    out[t] = s[t % 10]  # two


def in_place(x, out):
    t = cuda.threadIdx.x
    x[t] = x[63 - t]  # one


def in_place_in_a_loop(x, out):
    t = cuda.threadIdx.x
    for _ in range(3):  # loop
        x[t] = x[63 - t]  # one
        cuda.syncthreads()


def same_element(x, out):
    t = cuda.threadIdx.x
    out[t // 2] = t  # one


def same_element_in_a_loop(x, out):
    t = cuda.threadIdx.x
    for k in range(2):  # loop
        out[t + k] = t  # one


def tile_in_a_loop(x, out):
    s = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    for k in range(2):  # loop
        s[t] = x[t] + k  # one
        cuda.syncthreads()
        out[t] += s[63 - t]  # two


def branches(x, out):
    t = cuda.threadIdx.x
    if t < 32:
        out[t] = x[t]  # one
    else:
        out[t - 32] = t  # two


@cuda.jit
def put(s, t, v):
    s[t] = v


def by_a_function(x, out):
    s = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    put(s, t, x[t])  # one
    out[t] = s[63 - t]  # two


def by_a_function_in_a_loop(x, out):
    s = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    while out[t] < 2:  # loop
        put(s, t, x[t])  # one
        cuda.syncthreads()
        out[t] += 1 + 0 * s[63 - t]  # two


def within_a_warp(x, out):
    s = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    s[t] = x[t]  # one
    out[t] = s[t ^ 1]  # two


def scan(x, out):
    s = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    if t > 0:
        s[t] += s[t - 1]  # one


BLOCKS = "blocks run in any order, and `cuda.syncthreads()` does not order them: "
SPLIT = "read into a variable in line {one}, then `cuda.syncthreads()`, then write"
BETWEEN = "a `cuda.syncthreads()` between lines {one} and {two} would order them"
NEED = "they need a `cuda.syncthreads()` between lines {one} and {two}"
NEXT = ", and another `cuda.syncthreads()` before the next iteration of the loop at line {loop}"
OWN = "let each thread write elements of its own"
NO_ORDER = "; shuffles and votes order no memory"
PLACES = [
    (
        never_an_update,
        2,
        "race between blocks",
        BLOCKS + "write in one launch and read in the next, or use a `cuda.atomic` operation for both accesses",
    ),
    (
        same_element,
        2,
        "race between blocks",
        BLOCKS + "let one thread write each element, or combine the values with a `cuda.atomic` operation",
    ),
    (tile, 1, "race within a block", BETWEEN),
    (in_place, 1, "race within a block", SPLIT),
    (in_place_in_a_loop, 1, "race within a block", SPLIT + NEXT),
    (
        same_element,
        1,
        "race within a warp",
        OWN + ", or let one thread write: no barrier orders the writes of one statement" + NO_ORDER,
    ),
    (
        same_element_in_a_loop,
        1,
        "race within a block",
        OWN
        + "; writes in different iterations of the loop at line {loop} need a `cuda.syncthreads()` in each iteration",
    ),
    (tile_in_a_loop, 1, "race within a block", NEED + NEXT),
    (
        branches,
        1,
        "race within a block",
        "lines {one} and {two} are in different branches of the `if` at line {if}: move one after it, "
        "with a `cuda.syncthreads()` in between",
    ),
    (by_a_function, 1, "race within a block", BETWEEN),
    (by_a_function_in_a_loop, 1, "race within a block", NEED + NEXT),
    (within_a_warp, 1, "race within a warp", BETWEEN.replace("syncthreads", "syncwarp") + NO_ORDER),
    (scan, 1, "race within a block", SPLIT),
]


@pytest.mark.parametrize(
    ("function", "grid", "kind", "help"), PLACES, ids=[f"{row[0].__name__}-{row[1]}" for row in PLACES]
)
def test_a_barrier_is_advised_where_it_orders_all(function: Any, grid: int, kind: str, help: str) -> None:
    (finding,) = found(function, grid, 64, floats(64 * grid), floats(64 * grid + 1) * 0)
    source, first = inspect.getsourcelines(function)
    marks = {
        mark: first + at for at, line in enumerate(source) for mark in ("one", "two", "loop") if f"# {mark}" in line
    }
    marks["if"] = next((first + at for at, line in enumerate(source) if line.strip().startswith("if ")), 0)
    assert finding.kind == kind
    assert finding.help == help.format(**marks)


def test_a_finding_is_of_the_threads_that_are_farthest_apart() -> None:
    (finding,) = found(total, 8, 64, floats(512), floats(1))
    assert finding.kind == "race between blocks"
    here, there = finding.accesses
    assert here.block != there.block


def test_one_advice_for_pairs_that_need_different_ones_is_general() -> None:
    def mixed(x, out):
        s = cuda.shared.array(64, np.float32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncthreads()
        s[t // 2] += s[63 - t]

    (finding,) = found(mixed, 1, 64, floats(64), floats(64))
    assert (
        finding.help
        == "let each thread write elements of its own, and put a `cuda.syncthreads()` between reads and writes"
    )


def test_different_values_and_the_same_are_one_finding() -> None:
    def flags(x, out):
        i = cuda.threadIdx.x
        out[0] = i // 40

    (finding,) = found(flags, 1, 64, floats(64), ints(1))
    assert finding.kind == "race within a block"
    assert finding.count == 63
