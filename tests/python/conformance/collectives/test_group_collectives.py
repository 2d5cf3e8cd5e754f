"""`cg.reduce`, `cg.inclusive_scan` and `cg.exclusive_scan` for blocks, tiles and coalesced groups of all sizes."""

from typing import NamedTuple

import numpy as np
import pytest
from harness import launch, module
from weft import CompileError, cuda
from weft.cuda import cg

SIZES = range(1, 1025)
SOME = (1, 2, 7, 31, 32, 33, 63, 96, 100, 255, 256, 257, 1000, 1024)
TILES = (1, 2, 4, 8, 16, 32)
OPS = {
    "plus": np.add,
    "less": np.minimum,
    "greater": np.maximum,
    "bit_and": np.bitwise_and,
    "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor,
}


def numbers(dtype, size=1024):
    return np.random.default_rng(5).integers(-5, 6, size).astype(dtype)


def expected(x, sizes, op):
    """The reductions and scans of consecutive groups of this number of threads."""
    out, start = np.zeros((3, x.size), x.dtype), 0
    for size in sizes:
        part = op.accumulate(x[start : start + size], dtype=x.dtype)
        out[0, start : start + size] = part[-1]
        out[1, start : start + size] = part
        out[2, start + 1 : start + size] = part[:-1]
        start += size
    return out


def kernel_of(group, op):
    return module(f"""
        from weft import cuda
        from weft.cuda import cg

        @cuda.jit
        def kernel(x, out):
            group = {group}
            t = (cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y) * cuda.blockDim.x + cuda.threadIdx.x
            out[0, t] = cg.reduce(group, x[t], {op})
            out[1, t] = cg.inclusive_scan(group, x[t], {op})
            out[2, t] = cg.exclusive_scan(group, x[t], {op})
    """).kernel


def tiles(threads, size):
    return [min(size, threads - first) for first in range(0, threads, size)]


BLOCK = "cg.this_thread_block()"


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", ["int32", "uint64", "float32"])
def test_blocks_of_every_size(op, dtype):
    if op.startswith("bit") and dtype == "float32":
        pytest.skip("floats have no bits")
    kernel, x = kernel_of(BLOCK, f"cg.{op}"), numbers(dtype)
    for size in SIZES if op in ("plus", "bit_xor") and dtype == "int32" else SOME:
        got = launch(kernel, 1, size, x[:size], np.zeros((3, size), dtype))[1]
        np.testing.assert_array_equal(got, expected(x[:size], [size], OPS[op]), err_msg=f"block {size}")


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("size", TILES)
def test_tiles_of_blocks_of_every_size(op, size):
    kernel, x = kernel_of(f"cg.tiled_partition({BLOCK}, {size})", f"cg.{op}"), numbers("int32")
    for threads in range(1, 100) if op == "plus" else SOME:
        got = launch(kernel, 1, threads, x[:threads], np.zeros((3, threads), np.int32))[1]
        np.testing.assert_array_equal(got, expected(x[:threads], tiles(threads, size), OPS[op]))


@pytest.mark.parametrize("dtype", "int8 int16 int64 uint8 uint32 float16 float64 complex64".split())
@pytest.mark.parametrize("group", [BLOCK, f"cg.tiled_partition({BLOCK}, 8)", "cg.coalesced_threads()"])
def test_numbers_of_every_type(dtype, group):
    kernel, x = kernel_of(group, "cg.plus"), numbers(dtype)
    for threads in (5, 64, 77):
        sizes = {"c": tiles(threads, 32)}.get(group[3], [threads])
        sizes = tiles(threads, 8) if "tiled" in group else sizes
        got = launch(kernel, 1, threads, x[:threads], np.zeros((3, threads), dtype))[1]
        np.testing.assert_array_equal(got, expected(x[:threads], sizes, np.add))


@cuda.jit
def coalesced(x, chosen, out):
    t = cuda.threadIdx.x
    if chosen[t]:
        group = cg.coalesced_threads()
        out[0, t] = cg.reduce(group, x[t], cg.plus)
        out[1, t] = cg.inclusive_scan(group, x[t])
        out[2, t] = cg.exclusive_scan(group, x[t])
        out[3, t] = cg.reduce(group, x[t], lambda a, b: b)
        out[4, t] = cg.reduce(group, x[t], cg.less)
    else:
        group = cg.coalesced_threads()
        out[0, t] = cg.reduce(group, x[t], cg.greater)
        out[1, t] = cg.inclusive_scan(group, x[t], cg.greater)
        out[2, t] = cg.exclusive_scan(group, value=x[t], op=max)
        out[3, t] = cg.reduce(group, np.int64(x[t]), cg.bit_xor)
        out[4, t] = cg.reduce(group, np.int32(x[t]), cg.bit_or)


def test_coalesced_groups_of_any_lanes():
    draw = np.random.default_rng(7)
    for turn in range(60):
        threads = int(draw.integers(1, 130))
        chosen = draw.random(threads) < (0.1, 0.5, 0.9)[turn % 3]
        x = draw.integers(0, 4, threads)
        got = launch(coalesced, 1, threads, x, chosen, np.zeros((5, threads), np.int64))[2]
        for first in range(0, threads, 32):
            lanes = np.arange(first, min(first + 32, threads))
            here, others = lanes[chosen[lanes]], lanes[~chosen[lanes]]
            for group, op in ((here, np.add), (others, np.maximum)):
                if group.size:
                    np.testing.assert_array_equal(got[:3, group], expected(x[group], [group.size], op))
            if here.size:
                assert (got[3, here] == x[here][-1]).all()
                assert (got[4, here] == x[here].min()).all()
            if others.size:
                assert (got[3, others] == np.bitwise_xor.reduce(x[others])).all()
                assert (got[4, others] == np.bitwise_or.reduce(x[others])).all()


class Map(NamedTuple):
    """`x -> a * x + b`."""

    a: np.uint32
    b: np.uint32


@cuda.jit(device=True)
def then(f, g):
    """First `f`, then `g`: associative, but not commutative."""
    return Map(f.a * g.a, f.b * g.a + g.b)


@cuda.jit
def maps(a, b, out):
    t = cuda.threadIdx.x
    block = cg.this_thread_block()
    own = Map(a[t], b[t])
    row = 0
    for group in cuda.literal_unroll((block, cg.tiled_partition(block, 16), cg.coalesced_threads())):
        total = cg.reduce(group, own, then)
        up_to = cg.inclusive_scan(group, own, then)
        before = cg.exclusive_scan(group, own, then)
        out[row, t, 0], out[row, t, 1] = total.a, total.b
        out[row + 1, t, 0], out[row + 1, t, 1] = up_to.a, up_to.b
        out[row + 2, t, 0], out[row + 2, t, 1] = before.a, before.b
        row += 3


def test_values_of_several_numbers_in_the_order_of_the_threads():
    draw = np.random.default_rng(3)
    for threads in (1, 16, 31, 70, 300):
        a, b = draw.integers(0, 2**32, (2, threads), dtype=np.uint32)
        got = launch(maps, 1, threads, a, b, np.zeros((9, threads, 2), np.uint32))[2]
        for row, sizes in ((0, [threads]), (3, tiles(threads, 16)), (6, tiles(threads, 32))):
            first = 0
            for size in sizes:
                running, all_of = None, []
                for t in range(first, first + size):
                    pair = (int(a[t]), int(b[t]))
                    running = pair if running is None else (running[0] * pair[0], running[1] * pair[0] + pair[1])
                    running = (running[0] % 2**32, running[1] % 2**32)
                    all_of.append(running)
                here = slice(first, first + size)
                assert got[row, here].tolist() == [list(all_of[-1])] * size
                assert got[row + 1, here].tolist() == [list(pair) for pair in all_of]
                assert got[row + 2, here].tolist() == [[0, 0], *(list(pair) for pair in all_of[:-1])]
                first += size


@cuda.jit
def diverged(x, out):
    """Each tile reduces in a loop with its own trip count."""
    t = cuda.threadIdx.x
    tile = cg.tiled_partition(cg.this_thread_block(), 8)
    turns = tile.meta_group_rank()
    while turns > 0:
        out[t] += cg.reduce(tile, x[t], cg.plus) + cg.exclusive_scan(tile, x[t])
        turns -= 1


def test_tiles_part():
    x = np.arange(45)
    got = launch(diverged, 1, 45, x, np.zeros(45, np.int64))[1]
    for first in range(0, 45, 8):
        part = x[first : first + 8]
        assert got[first : first + 8].tolist() == ((part.sum() + np.cumsum(part) - part) * (first // 8)).tolist()


def test_truths():
    kernel = kernel_of("cg.tiled_partition(cg.this_thread_block(), 4)", "cg.bit_or")
    x = np.array([0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1], bool)
    got = launch(kernel, 1, 12, x, np.zeros((3, 12), bool))[1]
    np.testing.assert_array_equal(got, expected(x, [4, 4, 4], np.logical_or))


def rejected(body: str) -> str:
    kernel = module(f"""
        from weft import cuda
        from weft.cuda import cg

        def kernel(x):
            block = cg.this_thread_block()
            {body}
    """).kernel
    with pytest.raises(CompileError) as raised:
        cuda.jit("void(int32[:])")(kernel)
    return str(raised.value)


def test_what_is_refused():
    assert "cuda.cg.reduce" in rejected("x[0] = cg.reduce(cg.this_grid(), x[0], cg.plus)")
    assert "cuda.cg.reduce" in rejected("x[0] = cg.reduce(x, x[0], cg.plus)")
    assert "cuda.cg.reduce" in rejected("x[0] = cg.reduce(block, x, cg.plus)")
    assert "`cuda.cg.reduce` takes 3 arguments, not 2" in rejected("x[0] = cg.reduce(block, x[0])")
    assert "has no parameter `what`" in rejected("x[0] = cg.inclusive_scan(block, x[0], what=1)")
    assert "does not take" in rejected("x[0] = cg.reduce(block, x[0], lambda a: a)")
