"""Branches with memory accesses in both arms, whose condition bounds the thread index: Hillis-Steele scans."""

import numpy as np
import pytest
from harness import launch, run
from weft import cuda


@cuda.jit
def scan(x, out):
    sums = cuda.shared.array((2, 128), np.int32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    source = 0
    sums[0, tid] = x[i] if i < x.size else 0
    cuda.syncthreads()
    offset = 1
    while offset < cuda.blockDim.x:
        target = 1 - source
        if tid >= offset:
            sums[target, tid] = sums[source, tid] + sums[source, tid - offset]
        else:
            sums[target, tid] = sums[source, tid]
        source = target
        cuda.syncthreads()
        offset *= 2
    if i < x.size:
        out[i] = sums[source, tid]


@pytest.mark.parametrize("block", [1, 2, 5, 32, 100, 128])
@pytest.mark.parametrize("size", [1, 127, 300])
def test_scan_in_two_rows(block, size):
    x = np.random.default_rng(size).integers(-50, 50, size, dtype=np.int32)
    run(scan, -(-size // block), block, x, np.zeros(size, np.int32))


@cuda.jit
def halves(x, low, z, out):
    t = (cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y) * cuda.blockDim.x + cuda.threadIdx.x
    tid = cuda.threadIdx.x
    cuda.syncthreads()
    if tid < low:
        out[t, 0] = x[t]
        last = x[t]
    else:
        out[t, 0] = -x[t]
        last = 2 * x[t]
    cuda.syncthreads()
    out[t, 1] = last
    if not tid + z >= low:
        out[t, 2] = x[t]
    else:
        out[t, 2] = x[t] + 1
        for k in range(3):
            out[t, 3] += x[t] * k
    first = 0
    if cuda.threadIdx.y < low:
        if tid <= z:
            out[t, 4] = x[t]
            first = 1
        else:
            out[t, 4] = x[t] + 2
            first = 3
    out[t, 5] = first


@pytest.mark.parametrize("shape", [1, 16, 33, 100, (16, 4), (5, 7, 2)])
@pytest.mark.parametrize("low", [-3, 0, 1, 16, 40, 1000])
def test_any_border(shape, low):
    size = int(np.prod(shape))
    for z in (0, 7, -20, (1 << 63) - 20, -(1 << 63)):
        run(halves, 1, shape, np.arange(size) * 3 + 1, low, np.int64(z), np.zeros((size, 6), np.int64))


@cuda.jit
def early(x, n, offset, out):
    tile = cuda.shared.array(64, np.float32)
    tid = cuda.threadIdx.x
    tile[tid] = x[tid]
    cuda.syncthreads()
    if tid >= n:
        return
    if tid >= offset:
        value = tile[tid] + tile[tid - offset]
    else:
        value = tile[tid]
    cuda.syncthreads()
    out[tid] = value


@pytest.mark.parametrize("n", [0, 30, 64])
@pytest.mark.parametrize("offset", [0, 1, 16, 63, 64])
def test_behind_a_return(n, offset):
    run(early, 1, 64, np.arange(64, dtype=np.float32), n, offset, np.zeros(64, np.float32))


@cuda.jit
def enqueue(x, queue, head):
    counts = cuda.shared.array(8, np.int32)
    base = cuda.shared.array(2, np.int32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    alive = False
    if i < x.size:
        alive = x[i] > 0
    ballot = cuda.ballot_sync(0xFFFFFFFF, alive)
    if t % 32 == 0:
        counts[t // 32] = cuda.popc(ballot)
    cuda.syncthreads()
    if t == 0:
        total = 0
        for w in range(cuda.blockDim.x // 32):
            count = counts[w]
            counts[w] = total
            total += count
        base[0] = cuda.atomic.add(head, 0, total)
        base[1] = 3
    cuda.syncthreads()
    if alive:
        at = base[0] + counts[t // 32] + cuda.popc(ballot & ((1 << (t % 32)) - 1))
        queue[at] = x[i] * base[1]


@pytest.mark.parametrize("size", [1, 100, 500])
def test_a_queue_whose_blocks_share_a_base(size):
    x = np.random.default_rng(size).integers(-50, 50, size, dtype=np.int32)
    queue, head = np.zeros(size, np.int32), np.zeros(1, np.int32)
    run(enqueue, 1, 256, x[:256].copy(), queue, head)
    results = launch(enqueue, 4, 128, x, queue, head)
    assert results[2][0] == (x > 0).sum()
    np.testing.assert_array_equal(np.sort(results[1][results[1] > 0]), np.sort(x[x > 0] * 3))
