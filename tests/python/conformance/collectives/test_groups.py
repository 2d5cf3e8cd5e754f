"""Cooperative groups: the grid barrier, thread blocks, tiles, and coalesced groups."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
import weft
from harness import launch, module
from weft import cuda
from weft.cuda import cg


@cuda.jit
def rows_in_turn(m):
    col = cuda.grid(1)
    g = cuda.cg.this_grid()
    for row in range(1, m.shape[0]):
        m[row, col] = m[row - 1, m.shape[1] - col - 1] + 1
        g.sync()


@pytest.mark.parametrize(("grid", "block"), [(1, 1), (1, 64), (8, 32), (24, 33), (3, 256)])
def test_no_block_runs_ahead_of_the_grid(grid, block):
    m = launch(rows_in_turn, grid, block, np.zeros((50, grid * block), np.int32))[0]
    np.testing.assert_array_equal(m, np.tile(np.arange(50)[:, None], grid * block))


@cuda.jit
def smooth(x, y, turns, status):
    g = cg.this_grid()
    i = g.thread_rank()
    for _ in range(turns):
        if 0 < i < x.size - 1:
            y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3
        g.sync()
        if 0 < i < x.size - 1:
            x[i] = y[i]
        status[i] = g.sync()


def test_steps_of_a_simulation():
    x = np.random.default_rng(1).random(1000)
    got = launch(smooth, 8, 128, x, np.zeros(1024), 20, np.ones(1024, np.int32))
    for _ in range(20):
        x[1:-1] = (x[:-2] + x[1:-1] + x[2:]) / 3
    np.testing.assert_allclose(got[0], x, rtol=1e-12)
    assert not got[3].any()


@cuda.jit
def sync_in_function(group, counts, k):
    cuda.atomic.add(counts, k, 1)
    group.sync()


@cuda.jit
def counted(counts, out):
    g = cg.this_grid()
    for k in range(counts.size):
        sync_in_function(g, counts, k)
        out[g.block_rank(), k] = cuda.atomic.add(counts, k, 0)


def test_device_functions_wait_for_the_grid():
    out = launch(counted, (2, 3, 2), (4, 2, 4), np.zeros(5, np.int64), np.zeros((12, 5), np.int64))[1]
    assert (out == 12 * 32).all()


@cuda.jit
def some_return(counts, out):
    i = cuda.grid(1)
    if cuda.threadIdx.x >= 20:
        return
    cuda.atomic.add(counts, 0, 1)
    cg.this_grid().sync()
    out[i] = counts[0]


def test_threads_that_have_returned_are_not_waited_for():
    out = launch(some_return, 6, 48, np.zeros(1, np.int64), np.zeros(6 * 48, np.int64))[1]
    assert (out.reshape(6, 48)[:, :20] == 120).all()
    assert not out.reshape(6, 48)[:, 20:].any()


@cuda.jit
def no_sync(x):
    x[cuda.grid(1)] = cg.this_thread_block().thread_rank()


@cuda.jit
def asks_for_the_grid(x):
    cg.this_grid()
    x[0] = 1


def test_a_kernel_that_asks_for_the_grid_is_cooperative():
    for kernel, is_cooperative in [(no_sync, False), (asks_for_the_grid, True), (rows_in_turn, True)]:
        kernel[1, 1](np.zeros((1, 1), np.int32) if kernel is rows_in_turn else np.zeros(1))
        for overload in kernel.overloads.values():
            assert overload.cooperative is is_cooperative


def test_how_many_blocks_a_cooperative_launch_can_have():
    rows_in_turn[1, 1](np.zeros((1, 1), np.int32))
    (overload,) = {overload.target: overload for overload in rows_in_turn.overloads.values()}.values()
    most = overload.max_cooperative_grid_blocks(256)
    assert most > 1
    if overload.target != "host":  # on the host the limit depends on available memory
        assert (
            most == overload.max_cooperative_grid_blocks((16, 16)) == overload.max_cooperative_grid_blocks((16, 4, 4))
        )
        assert overload.max_cooperative_grid_blocks(256, 40000) <= most
    assert overload.max_cooperative_grid_blocks(1024) <= 1.01 * most


@pytest.mark.cuda
def test_a_grid_that_is_too_large_says_what_fits():
    with pytest.raises(weft.errors.LaunchError, match=r"can run \d+ of this size"):
        rows_in_turn[100_000, 1024](np.zeros((2, 1), np.int32))


# ---- groups without the grid barrier --------------------------------------------------------------------------------


@cuda.jit
def places(out):
    block, grid = cg.this_thread_block(), cg.this_grid()
    i = grid.thread_rank()
    index, where, extent, blocks = block.thread_index(), block.group_index(), block.dim_threads(), grid.dim_blocks()
    out[i, 0] = block.thread_rank()
    out[i, 1] = block.size() * 1000 + block.num_threads()
    out[i, 2] = index.x + 100 * index.y + 10000 * index.z
    out[i, 3] = where.x + 100 * where.y + 10000 * where.z
    out[i, 4] = extent.x + 100 * extent.y + 10000 * extent.z
    out[i, 5] = blocks.x + 100 * blocks.y + 10000 * blocks.z
    out[i, 6] = grid.size() * 1000 + grid.num_blocks()
    out[i, 7] = grid.is_valid() + grid.block_rank() * 10
    block.sync()


def test_where_a_thread_is():
    grid, block = (2, 1, 3), (3, 4, 2)
    out = launch(places, grid, block, np.zeros((144, 8), np.int64))[0]
    blocks = itertools.product(range(3), range(1), range(2))
    i = 0
    for number, (bz, by, bx) in enumerate(blocks):
        for rank, (z, y, x) in enumerate(itertools.product(range(2), range(4), range(3))):
            expected = [rank, 24024, x + 100 * y + 10000 * z, bx + 100 * by + 10000 * bz, 20403, 30102, 144006]
            assert out[i].tolist() == [*expected, 1 + 10 * number]
            i += 1


@cuda.jit
def tiles(x, out):
    i = cuda.grid(1)
    block = cg.this_thread_block()
    half = cg.tiled_partition(block, 16)
    tile = cg.tiled_partition(half, 4)
    v = x[i]
    out[i, 0] = tile.thread_rank() + 10 * tile.size() + 100 * tile.meta_group_rank() + 10000 * tile.meta_group_size()
    out[i, 1] = tile.shfl(v, 2)
    out[i, 2] = tile.shfl_up(v, 1)
    out[i, 3] = half.shfl_down(v, 3)
    out[i, 4] = tile.shfl_xor(v, 1)
    out[i, 5] = tile.any(v > 30) + 2 * tile.all(v > 0)
    out[i, 6] = tile.ballot(v > 0)
    out[i, 7] = tile.match_any(v > 0)
    lanes, alike = half.match_all(v > -1000)
    out[i, 8] = lanes + alike
    out[i, 9] = cg.tiled_partition(block, 32).ballot(v > 0)
    tile.sync()


def test_tiles():
    x = np.random.default_rng(3).integers(-40, 40, 128)
    out = launch(tiles, 2, 64, x, np.zeros((128, 10), np.int64))[1]
    t, of4, of16 = np.arange(128), x.reshape(-1, 4), x.reshape(-1, 16)
    bits4 = (of4 > 0) @ (1 << np.arange(4))
    each = lambda values, size: np.repeat(values, size)  # noqa: E731
    np.testing.assert_array_equal(out[:, 0], t % 4 + 40 + 100 * (t % 64 // 4) + 160000)
    np.testing.assert_array_equal(out[:, 1], each(of4[:, 2], 4))
    np.testing.assert_array_equal(out[:, 2], of4[:, [0, 0, 1, 2]].reshape(-1))
    np.testing.assert_array_equal(out[:, 3], of16[:, [*range(3, 16), 13, 14, 15]].reshape(-1))
    np.testing.assert_array_equal(out[:, 4], of4[:, [1, 0, 3, 2]].reshape(-1))
    np.testing.assert_array_equal(out[:, 5], each((of4 > 30).any(1) + 2 * (of4 > 0).all(1), 4))
    np.testing.assert_array_equal(out[:, 6], each(bits4, 4))
    np.testing.assert_array_equal(out[:, 7], np.where(x > 0, each(bits4, 4), 15 - each(bits4, 4)))
    np.testing.assert_array_equal(out[:, 8], 65536)
    np.testing.assert_array_equal(out[:, 9], each((x.reshape(-1, 32) > 0) @ (1 << np.arange(32)), 32))


@cuda.jit
def tile_sum(tile, value):
    step = tile.size() // 2
    while step > 0:
        value += tile.shfl_down(value, step)
        step //= 2
    return value


@cuda.jit
def sums_of_tiles(x, out):
    tile = cg.tiled_partition(cg.this_thread_block(), 8)
    total = tile_sum(tile, x[cuda.grid(1)])
    if tile.thread_rank() == 0:
        out[cuda.blockIdx.x * tile.meta_group_size() + tile.meta_group_rank()] = total


def test_a_device_function_of_a_tile():
    x = np.arange(256.0)
    out = launch(sums_of_tiles, 2, 128, x, np.zeros(32))[1]
    np.testing.assert_array_equal(out, x.reshape(32, 8).sum(1))


@cuda.jit
def tiles_apart(x, out):
    i = cuda.grid(1)
    tile = cg.tiled_partition(cg.this_thread_block(), 4)
    if tile.meta_group_rank() % 2 == 0:
        out[i] = tile.shfl(x[i], 3)
    else:
        for k in range(tile.meta_group_rank()):
            out[i] += tile.shfl_xor(x[i] + k, 2)


def test_tiles_that_part():
    x = np.random.default_rng(4).integers(0, 1000, 96)
    out = launch(tiles_apart, 1, 96, x, np.zeros(96, np.int64))[1]
    of4 = x.reshape(-1, 4)
    for rank in range(24):
        got = out.reshape(-1, 4)[rank]
        turns = sum(range(rank))
        expected = np.full(4, of4[rank, 3]) if rank % 2 == 0 else rank * of4[rank, [2, 3, 0, 1]] + turns
        np.testing.assert_array_equal(got, expected)


@cuda.jit
def compacted(x, out, n):
    i = cuda.grid(1)
    if x[i] > 0:
        group = cg.coalesced_threads()
        start = 0
        if group.thread_rank() == 0:
            start = cuda.atomic.add(n, 0, group.size())
        out[group.shfl(start, 0) + group.thread_rank()] = x[i]


def test_what_passes_a_test_is_written_side_by_side():
    x = np.random.default_rng(5).integers(-9, 9, 512)
    _, out, n = launch(compacted, 4, 128, x, np.zeros(512, np.int64), np.zeros(1, np.int64))
    assert n[0] == (x > 0).sum()
    assert sorted(out[: n[0]]) == sorted(x[x > 0])


@cuda.jit
def coalesced(x, out):
    i = cuda.grid(1)
    if x[i] % 3 != 0:
        g = cg.coalesced_threads()
        rank, last = g.thread_rank(), g.num_threads() - 1
        out[i, 0] = g.shfl(x[i], last) == x[i]
        out[i, 0] += 10 * (g.shfl_up(rank, 1) == max(rank - 1, 0)) + 100 * (
            g.shfl_down(rank, 2) == (rank + 2 if rank + 2 <= last else rank)
        )
        out[i, 1] = g.any(rank == last) + 2 * g.all(rank <= last) + 4 * (g.ballot(rank < 2) == (3 if last else 1))
        out[i, 2] = g.match_any(rank // 2) == (3 << (rank // 2 * 2)) & ((2 << last) - 1)
        lanes, alike = g.match_all(5)
        out[i, 3] = (lanes == (2 << last) - 1) + 2 * alike + 4 * g.meta_group_size()
        g.sync()


def test_threads_that_are_here():
    x = np.random.default_rng(6).integers(0, 100, 128)
    out = launch(coalesced, 2, 64, x, np.zeros((128, 4), np.int64))[1]
    here = out[x % 3 != 0]
    assert (here[:, 0] // 10 == 11).all()
    assert here[:, 0].max() % 10 == 1
    assert (here[:, 1] == 7).all()
    assert (here[:, 2] == 1).all()
    assert (here[:, 3] == 7).all()
    assert not out[x % 3 == 0].any()


def test_what_groups_do_not_take():
    def refused(line, error=weft.errors.TypingError):
        kernel = module(f"""
            from weft import cuda
            from weft.cuda import cg

            @cuda.jit
            def kernel(x, n):
                block = cg.this_thread_block()
                {line}
        """).kernel
        with pytest.raises(error) as caught:
            kernel[1, 32](np.zeros(32), 8)
        return str(caught.value)

    assert "a tile must have 1, 2, 4, 8, 16 or 32 threads, here at most 32, not 64" in refused(
        "cg.tiled_partition(block, 64)"
    )
    assert "at most 4, not 8" in refused("cg.tiled_partition(cg.tiled_partition(block, 4), 8)")
    assert "must be a compile-time integer" in refused("cg.tiled_partition(block, n)")
    assert "no overload of `cuda.cg.tiled_partition`" in refused("cg.tiled_partition(x, 8)")
    assert "ThreadBlock has no attribute `shfl`" in refused("block.shfl(1, 2)")
    assert "takes 2 arguments, not 1" in refused("cg.tiled_partition(block, 8).shfl(1)")
    assert "does not take (array(float64, 1d, C), int64)" in refused("cg.tiled_partition(block, 8).shfl(x, 1)")
    assert "did you mean `.thread_rank`?" in refused("block.thread_ranc()")


@pytest.mark.cpu
@pytest.mark.skipif("WEFT_CPU_STRATEGY" in os.environ, reason="this is the run with a strategy of its own")
@pytest.mark.parametrize("strategy", ["loops", "fibers"])
def test_both_ways_of_running_threads(strategy):
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--device", "cpu", "--cpu-strategy", strategy, __file__]
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    env["WEFT_HOST_OPT_LEVEL"] = "0"  # weft chooses the strategy, not LLVM
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
