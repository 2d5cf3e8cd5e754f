"""Flags that a loop with barriers sets in each iteration and that are tested after the loop: any trip count, early
exits, and a condition that changes."""

import numpy as np
import pytest
from weft import cuda

WIDE = 64


@cuda.jit
def last_turn(turns, out):
    tile = cuda.shared.array(WIDE, np.int32)
    tx = cuda.threadIdx.x
    tile[tx] = tx
    cuda.syncthreads()
    computed = False
    for i in range(turns):
        computed = False
        if tx >= i + 1 and tx <= WIDE - i - 2:
            computed = True
            value = tile[tx - 1] + tile[tx + 1]
        cuda.syncthreads()
        if i == turns - 1:
            break
        if computed:
            tile[tx] = value % 1000
        cuda.syncthreads()
    if computed:
        out[cuda.blockIdx.x, tx] = value


def of_last_turn(turns):
    tile, out = np.arange(WIDE), np.full(WIDE, -1)
    for i in range(turns):
        inside = (np.arange(WIDE) >= i + 1) & (np.arange(WIDE) <= WIDE - i - 2)
        value = np.roll(tile, 1) + np.roll(tile, -1)
        if i == turns - 1:
            out[inside] = value[inside]
            break
        tile = np.where(inside, value % 1000, tile)
    return out


@pytest.mark.parametrize("turns", [0, 1, 2, 7, 31, 32, 40])
def test_the_last_turn_decides(turns):
    out = np.full((3, WIDE), -1)
    last_turn[3, WIDE](turns, out)
    np.testing.assert_array_equal(out, np.tile(of_last_turn(turns), (3, 1)))


@cuda.jit
def several(turns, limit, out):
    """Two flags; iterations that are skipped before the flags are set, and a loop that ends before its last
    iteration."""
    tile = cuda.shared.array(WIDE, np.int32)
    tx = cuda.threadIdx.x
    tile[tx] = 0
    low = False
    high = False
    i = 0
    while i < turns:
        i += 2
        if i % 3 == 0:
            continue
        cuda.syncthreads()
        if i > limit:
            break
        low = tx < i
        high = tx > i * 2 and tx != 40
        tile[tx] += i
        cuda.syncthreads()
    out[tx] = tile[tx]
    if low:
        out[tx] += 1000
    if high:
        out[tx] += 2000


@pytest.mark.parametrize("turns", [0, 1, 5, 20])
@pytest.mark.parametrize("limit", [0, 4, 100])
def test_turns_that_do_not_come_there(turns, limit):
    out, tx = np.zeros(WIDE, np.int32), np.arange(WIDE)
    several[1, WIDE](turns, limit, out)
    total, low, high = 0, tx < 0, tx < 0
    for i in range(2, turns + 2, 2):
        if i % 3 == 0:
            continue
        if i > limit:
            break
        total, low, high = total + i, tx < i, (tx > i * 2) & (tx != 40)
    np.testing.assert_array_equal(out, total + 1000 * low + 2000 * high)


@cuda.jit
def other_flags(turns, start, out):
    """Flags that are true before the loop, that depend on the thread's data, that one iteration sets, and that
    iterations test."""
    tile = cuda.shared.array(WIDE, np.int32)
    tx = cuda.threadIdx.x
    tile[tx] = 0
    above = True
    own = False
    once = False
    was = False
    mine = start[tx]
    for i in range(turns):
        above = tx > i
        own = mine < tx
        if i == 1:
            once = tx < 10 + i
        if was:
            tile[tx] += 1
        was = tx < 2 * i
        mine += 3
        cuda.syncthreads()
    out[tx] = tile[tx]
    if above:
        out[tx] += 100
    if own:
        out[tx] += 200
    if once:
        out[tx] += 400
    if was:
        out[tx] += 800


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 9])
def test_flags_that_stay_in_the_loop(turns):
    start = np.random.default_rng(1).integers(-10, 40, WIDE).astype(np.int32)
    out, tx = np.zeros(WIDE, np.int32), np.arange(WIDE)
    other_flags[1, WIDE](turns, start, out)
    count, mine = np.zeros(WIDE, int), start.copy()
    above, own, once, was = tx >= 0, tx < 0, tx < 0, tx < 0
    for i in range(turns):
        above, own = tx > i, mine < tx
        once = tx < 10 + i if i == 1 else once
        count += was
        was, mine = tx < 2 * i, mine + 3
    np.testing.assert_array_equal(out, count + 100 * above + 200 * own + 400 * once + 800 * was)


@cuda.jit
def nested(rows, turns, out):
    tile = cuda.shared.array(WIDE, np.int32)
    tx = cuda.threadIdx.x
    tile[tx] = 0
    for row in range(rows):
        done = False
        for i in range(row, turns):
            done = tx >= i and tx < WIDE - row
            cuda.syncthreads()
            tile[tx] += i
            cuda.syncthreads()
        if done:
            tile[tx] += 1000
        cuda.syncthreads()
    out[tx] = tile[tx]


@pytest.mark.parametrize(("rows", "turns"), [(0, 5), (1, 1), (3, 2), (4, 9)])
def test_loops_in_loops(rows, turns):
    out, tx = np.zeros(WIDE, np.int32), np.arange(WIDE)
    nested[1, WIDE](rows, turns, out)
    expected = np.zeros(WIDE, int)
    for row in range(rows):
        done = tx < 0
        for i in range(row, turns):
            done, expected = (tx >= i) & (tx < WIDE - row), expected + i
        expected += 1000 * done
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def early_returns(turns, out):
    tile = cuda.shared.array(WIDE, np.int32)
    tx = cuda.threadIdx.x
    tile[tx] = 1
    if tx >= out.size:
        return
    said = False
    for i in range(turns):
        said = tx % 2 == 0 and tx + i < 20
        cuda.syncthreads()
        if tx == i:
            return
        tile[tx] += 1
    if said:
        out[tx] = tile[tx]


@pytest.mark.parametrize("turns", [0, 1, 6])
@pytest.mark.parametrize("size", [10, WIDE])
def test_threads_that_return(turns, size):
    out, tx = np.zeros(size, np.int32), np.arange(size)
    early_returns[1, WIDE](turns, out)
    said = (tx % 2 == 0) & (tx + turns - 1 < 20) & (tx >= turns) & (turns > 0)
    np.testing.assert_array_equal(out, (turns + 1) * said)
