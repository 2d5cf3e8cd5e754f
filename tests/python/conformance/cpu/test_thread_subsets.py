"""Code for a single thread, code for the first lane of each warp, and loops that are uniform per warp."""

import numpy as np
import pytest
from harness import run
from weft import cuda

FULL = 0xFFFFFFFF
SHAPES = [1, 31, 32, 33, 100, 256, (16, 4), (5, 7, 3), (33, 3), (64, 2), (40, 1, 2)]


def in_all(shape):
    return int(np.prod(shape))


def numbers(size):
    return np.random.default_rng(size).integers(-50, 50, size)


@cuda.jit
def compact(x, threshold, out, counts):
    warps = cuda.shared.array(8, np.int32)
    tid = cuda.threadIdx.x
    lane = tid % 32
    warp = tid // 32
    i = cuda.grid(1)
    keep = i < x.size and x[i] > threshold
    votes = cuda.ballot_sync(FULL, keep)
    before = cuda.popc(votes & ((1 << lane) - 1))
    if lane == 0:
        warps[warp] = cuda.popc(votes)
    cuda.syncthreads()
    base = 0
    for w in range(warp):
        base += warps[w]
    if keep:
        out[i - tid + base + before] = x[i]
    if tid == cuda.blockDim.x - 1:
        counts[cuda.blockIdx.x] = base + warps[warp]


@pytest.mark.parametrize("size", [1, 200, 256, 700])
@pytest.mark.parametrize("block", [32, 96, 256])
def test_compaction(size, block):
    x = numbers(size)
    blocks = -(-size // block)
    out, counts = run(compact, blocks, block, x, 5, np.zeros(size, np.int64), np.zeros(blocks, np.int32))[2:]
    kept = [part[part > 5] for part in np.split(x, range(block, size, block))]
    assert counts.tolist() == [part.size for part in kept]
    for index, part in enumerate(kept):
        np.testing.assert_array_equal(out[index * block : index * block + part.size], part)


@cuda.jit
def parts(x, out, firsts, single):
    row = cuda.shared.array(1024, np.int64)
    tid = cuda.threadIdx.x
    t = (cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y) * cuda.blockDim.x + tid
    row[t] = x[t]
    value = x[t] * 3
    if tid % 32 == 0:
        value += 1000
        firsts[t] = value
    if cuda.laneid == 0 and x[t] > 0:
        firsts[t] += 10000
    if tid & 63 == 0:
        firsts[t] += 100000
    if tid == 2:
        single[cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y] += row[t]
    cuda.syncthreads()
    total = 0
    for k in range(tid // 32 + cuda.threadIdx.y):
        total += row[k]
    mine = 0
    k = 0
    while k < tid >> 5:
        if row[k] < 0:
            k += 2
            continue
        mine += row[k] * k
        k += 1
    out[t] = total + value - mine + x[t]


@pytest.mark.parametrize("block", SHAPES)
def test_first_threads_and_loops_alike(block):
    size = in_all(block)
    run(parts, 1, block, numbers(size), *(np.zeros(size, np.int64) for _ in range(3)))


@cuda.jit
def parts_of_some(x, limit, out, firsts):
    row = cuda.shared.array(1024, np.int64)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    row[tid] = x[i]
    cuda.syncthreads()
    if tid < limit:
        value = row[tid]
        if tid % 32 == 0:
            firsts[i] = value
        sums = 0
        for k in range(tid // 32 + 1):
            sums += row[k]
        cuda.syncwarp()
        if x[i] > 0:
            cuda.syncwarp()
            if tid % 32 == 0:
                firsts[i] += 7
            if tid == 3:
                firsts[i] += 70
            for k in range(tid // 32):
                sums -= row[k]
            cuda.syncwarp()
            sums *= 2
        out[i] = sums + value


@pytest.mark.parametrize("limit", [0, 1, 31, 33, 50, 64])
def test_behind_guards_and_masks(limit):
    run(parts_of_some, 2, 64, numbers(128), limit, np.zeros(128, np.int64), np.zeros(128, np.int64))


@cuda.jit
def again_and_again(x, turns, out, firsts):
    row = cuda.shared.array(1024, np.int64)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    total = 0
    for turn in range(turns):
        row[tid] = x[i] + turn
        cuda.syncthreads()
        before = 0
        for k in range(tid // 32 * 2):
            before += row[k]
        if tid % 32 == 0:
            cuda.atomic.add(firsts, tid // 32, before)
        total += before * row[tid]
        cuda.syncthreads()
    out[i] = total


@pytest.mark.parametrize("block", [1, 33, 96])
def test_in_turns(block):
    run(again_and_again, 2, block, numbers(2 * block), 3, np.zeros(2 * block, np.int64), np.zeros(4, np.int64))


@cuda.jit
def reductions(x, limit, out):
    i = cuda.grid(1)
    v = x[i]
    out[i, 0] = cuda.reduce_add_sync(FULL, v)
    out[i, 1] = cuda.reduce_min_sync(-1, v)
    if cuda.threadIdx.x >= limit:
        return
    mask = (1 << limit) - 1
    out[i, 2] = cuda.reduce_max_sync(mask, v)
    out[i, 3] = cuda.ballot_sync(mask, v > 0)
    out[i, 4] = cuda.any_sync(mask, v > 45)
    out[i, 5] = cuda.all_sync(mask, v > -49)
    out[i, 6] = cuda.eq_sync(mask, v > 0)
    out[i, 7] = cuda.activemask()


@pytest.mark.parametrize("limit", [1, 7, 31])
def test_warps_of_which_some_lanes_return(limit):
    run(reductions, 3, 32, numbers(96).astype(np.int32), limit, np.zeros((96, 8), np.int64))
