"""Overlap tests of a launch's arrays, and the variants that launches run, without a GPU: over the fake driver of the
runtime tests."""

from __future__ import annotations

import ast

import pytest

KERNELS = """
@cuda.jit
def shift(x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = x[i] + 1

@cuda.jit
def pairs(x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = x[2 * i] + x[2 * i + 1]

@cuda.jit
def total(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]

@cuda.jit
def both(x, y):
    i = cuda.grid(1)
    x[i], y[i] = y[i], x[i]

@cuda.jit
def record(r, out):
    out[0] = r.a
    out[1] = r.b

@cuda.jit
def parts(pair, out):
    i = cuda.grid(1)
    out[i] = pair[0][i] + pair[1][i]

@cuda.jit
def ordered(x, y):
    y[0] = x[0]
    cuda.threadfence()
    y[1] = x[0]

@cuda.jit
def shifted(x, k):
    x[cuda.grid(1) + k] = 1

@cuda.jit
def scaled(x, k):
    x[cuda.grid(1)] = k

@cuda.jit
def of_tuple(x, ks):
    x[cuda.grid(1) + ks[0] - ks[1]] = x[ks[0]] + ks[1] // 3

buffer = cuda.to_device(np.zeros(64, np.float32))
other = cuda.to_device(np.zeros(64, np.float32))
grid = cuda.to_device(np.zeros((8, 8), np.float32))
rows = cuda.to_device(np.zeros(4, [("a", "f4"), ("b", "f4")]))

def taken(kernel):
    (only,) = kernel.overloads.values()
    return sorted(only.assumptions)
"""

ALL = ["small", "disjoint", "aligned"]
SMALL = ["small"]

# A kernel, its launches, and the assumptions of its variants after each: the first launch compiles one variant.
LAUNCHES = [
    ("shift", ["buffer, other"], [["small", "disjoint"]]),
    ("shift", ["buffer, other", "other[:32], buffer[32:]"], [["small", "disjoint"]]),
    ("shift", ["buffer[:32], buffer[32:]", "buffer[32:], buffer[:32]"], [["small", "disjoint"]]),
    ("shift", ["buffer[:33], buffer[32:]"], [SMALL]),
    ("shift", ["buffer[:32], buffer[31:]"], [SMALL]),
    ("shift", ["buffer, buffer", "buffer[1:], buffer[:-1]"], [SMALL]),
    # Interleaved elements.
    ("shift", ["buffer[::2], buffer[1::2]"], [SMALL]),
    # An empty array is not small.
    ("shift", ["buffer[:0], buffer"], [[], ["small", "disjoint"]]),
    # A single load and a single store cannot be merged.
    ("shift", ["buffer[1:], other[1:]"], [SMALL]),
    ("shift", ["buffer, other", "buffer[1:], other[1:]"], [["small", "disjoint"]]),
    # Each order has its own variant.
    ("shift", ["buffer, other", "buffer, buffer"], [SMALL, ["small", "disjoint"]]),
    ("shift", ["buffer, buffer", "buffer, other"], [SMALL, ["small", "disjoint"]]),
    ("pairs", ["buffer, other"], [ALL]),
    ("pairs", ["buffer[4:], other"], [ALL]),
    ("pairs", ["buffer[1:], other"], [SMALL]),
    ("pairs", ["buffer, other", "buffer, other[2:]"], [SMALL, ALL]),
    ("pairs", ["buffer, other[2:]", "buffer, other"], [SMALL, ALL]),
    ("pairs", ["buffer, other", "buffer, buffer"], [SMALL, ALL]),
    # Arrays that are only read may overlap, but only compiled code shows which ones are.
    ("total", ["buffer, other, grid[0]", "buffer, buffer, other"], [["small", "disjoint"]]),
    ("total", ["buffer, other, grid[0]", "buffer[1:], buffer[:-1], other[1:]"], [["small", "disjoint"]]),
    ("total", ["buffer, buffer, other"], [SMALL]),
    ("total", ["buffer, buffer, other", "buffer, other, grid[0]"], [SMALL, ["small", "disjoint"]]),
    ("total", ["buffer, other, grid[0]", "buffer, other, other"], [SMALL, ["small", "disjoint"]]),
    ("total", ["buffer, other, grid[0]", "other, buffer, other"], [SMALL, ["small", "disjoint"]]),
    # No array is only read.
    ("both", ["buffer, other", "buffer, buffer"], [SMALL]),
    ("both", ["buffer, buffer", "buffer, other"], [SMALL]),
    ("record", ["rows[0], buffer"], [ALL]),
    ("record", ["rows[0], buffer", "rows[1], buffer"], [SMALL, ALL]),
    ("parts", ["(buffer, grid[0]), other", "(buffer, buffer), other"], [["small", "disjoint"]]),
    ("parts", ["(buffer, grid[0]), other", "(buffer, other), other"], [SMALL, ["small", "disjoint"]]),
    # Integers that indices depend on; launches do not test whether others are negative.
    ("shifted", ["buffer, 3", "buffer, 0"], [["small", "nonneg"]]),
    ("shifted", ["buffer, np.int8(127)"], [["small", "nonneg"]]),
    ("shifted", ["buffer, np.uint8(255)"], [SMALL]),
    ("shifted", ["buffer, -3"], [SMALL]),
    ("shifted", ["buffer, 3", "buffer, -3"], [SMALL, ["small", "nonneg"]]),
    ("shifted", ["buffer, -3", "buffer, 3"], [SMALL, ["small", "nonneg"]]),
    ("shifted", ["buffer, np.int8(-1)"], [SMALL]),
    ("shifted", ["buffer, 2**31"], [[], ["small", "nonneg"]]),
    ("shifted", ["buffer, -(2**31) - 1"], [[], SMALL]),
    ("scaled", ["buffer, -3", "buffer, 4"], [SMALL]),
    ("of_tuple", ["buffer, (2, 1)"], [["small", "nonneg"]]),
    ("of_tuple", ["buffer, (2, np.int16(-1))"], [SMALL]),
    ("of_tuple", ["buffer, (2, 1)", "buffer, (2, -1)"], [SMALL, ["small", "nonneg"]]),
    # Accesses that are ordered by a fence may be to data of other threads.
    ("ordered", ["buffer, other", "buffer, buffer"], [["small", "aligned"]]),
]


@pytest.mark.parametrize(("kernel", "launches", "facts"), LAUNCHES)
def test_variants(run, kernel, launches, facts):
    code = "".join(f"{kernel}[1, 4]({launch})\n" for launch in launches)
    found = run(KERNELS + code + code + f"print(taken({kernel}))")
    assert ast.literal_eval(found) == sorted(facts)


def test_the_last_variant_is_for_what_is_neither_small_nor_disjoint(run):
    code = """
shift[1, 4](buffer, other)
shift[1, 4](buffer, buffer)
shift[2**22, 512](buffer, buffer)
shift[2**22, 512](buffer, other)
print(taken(shift))
"""
    found = run(KERNELS + code, WEFT_COARSEN="off")
    assert ast.literal_eval(found) == [[], ["small"], ["small", "disjoint"]]


def test_no_facts(run):
    code = "shift[1, 4](buffer, buffer)\nshift[1, 4](buffer, other)\nprint(taken(shift))"
    assert ast.literal_eval(run(KERNELS + code, WEFT_SPECIALIZE="0")) == [[]]


def test_transposed_views_share_memory(run):
    code = """
@cuda.jit
def turn(x, y):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        y[i, j] = x[i, j]

turn[1, (8, 8)](grid, grid.T)
print(taken(turn))
"""
    assert ast.literal_eval(run(KERNELS + code)) == [["small"]]


def test_arrays_of_the_host_are_compared_where_they_were_copied_to(run):
    code = """
a = np.zeros(64, np.float32)
shift[1, 4](a[:32], a[32:])
shift[1, 4](a, np.zeros(64, np.float32))
print(taken(shift))
shift[1, 4](a[:33], a[32:])
print(taken(shift))
"""
    before, after = run(KERNELS + code).splitlines()
    assert ast.literal_eval(before) == [["small", "disjoint"]]
    assert ast.literal_eval(after) == [["small"], ["small", "disjoint"]]


def test_a_recorded_launch_keeps_to_its_signs(run):
    code = """
with cuda.graph() as graph:
    shifted[1, 4](buffer, 3)
graph.set_args(0, buffer, 5)
try:
    graph.set_args(0, buffer, -5)
except ValueError as error:
    print(error)
with cuda.graph() as graph:
    shifted[1, 4](buffer, -3)
graph.set_args(0, buffer, 5)
"""
    assert "non-negative integers" in run(KERNELS + code)


def test_a_recorded_launch_keeps_to_its_arrays(run):
    code = """
def refused(graph, *args):
    try:
        graph.set_args(0, *args)
    except ValueError as error:
        print(error)

with cuda.graph() as graph:
    shift[1, 4](buffer, other)
graph.set_args(0, other, buffer)
refused(graph, buffer, buffer)
with cuda.graph() as graph:
    shift[1, 4](buffer, buffer)
graph.set_args(0, buffer, other)
with cuda.graph() as graph:
    pairs[1, 4](buffer, other)
refused(graph, buffer[1:], other)
"""
    shared, misaligned = run(KERNELS + code).splitlines()
    assert "arrays that share no memory" in shared
    assert "arrays aligned to 16 bytes" in misaligned


def test_prepared_launches_have_their_variant(run):
    code = """
shift[1, 4].prepare(buffer, other)()
shift[1, 4].prepare(buffer, buffer)()
print(taken(shift))
"""
    assert ast.literal_eval(run(KERNELS + code)) == [["small"], ["small", "disjoint"]]
