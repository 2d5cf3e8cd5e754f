"""Threads with strided elements: trees with the indices `2 * stride * tid` and `(tid + 1) * stride * 2 - 1`, and guards
of these."""

import numpy as np
import pytest
from harness import run
from weft import cuda

SHAPES = [1, 2, 31, 64, 100, (16, 4), (5, 7, 3), (33, 3)]


@cuda.jit
def tree(x, out):
    sums = cuda.shared.array(256, np.float32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    sums[tid] = x[i] if i < x.size else 0
    cuda.syncthreads()
    stride = 1
    while stride < cuda.blockDim.x:
        index = 2 * stride * tid
        if index < cuda.blockDim.x and index + stride < cuda.blockDim.x:
            sums[index] += sums[index + stride]
        cuda.syncthreads()
        stride *= 2
    if tid == 0:
        out[cuda.blockIdx.x] = sums[0]


@cuda.jit
def up_and_down(x, out):
    sums = cuda.shared.array(512, np.float32)
    tid = cuda.threadIdx.x
    n = 2 * cuda.blockDim.x
    base = cuda.blockIdx.x * n
    for k in (tid, tid + cuda.blockDim.x):
        sums[k] = x[base + k] if base + k < x.size else 0
    stride = 1
    while stride < n:
        cuda.syncthreads()
        index = (tid + 1) * stride * 2 - 1
        if index < n:
            sums[index] += sums[index - stride]
        stride *= 2
    stride = n // 4
    while stride > 0:
        cuda.syncthreads()
        index = ((tid + 1) * stride << 1) - 1
        if n > index + stride:
            sums[index + stride] += sums[index]
        stride //= 2
    cuda.syncthreads()
    for k in (tid, tid + cuda.blockDim.x):
        if base + k < x.size:
            out[base + k] = sums[k]


@cuda.jit
def by_remainders(x, out):
    sums = cuda.shared.array(256, np.int32)
    tid = cuda.threadIdx.x
    n = cuda.blockDim.x
    i = cuda.grid(1)
    sums[tid] = x[i] if i < x.size else 0
    cuda.syncthreads()
    stride = 1
    while stride < n:
        if (tid + 1) % (2 * stride) == 0:
            sums[tid] += sums[tid - stride]
        cuda.syncthreads()
        stride *= 2
    if tid == n - 1:
        sums[tid] = 0
    cuda.syncthreads()
    stride = n // 2
    while stride > 0:
        if (tid + 1) % (2 * stride) == 0:
            kept = sums[tid - stride]
            sums[tid - stride] = sums[tid]
            sums[tid] += kept
        cuda.syncthreads()
        stride //= 2
    if i < x.size:
        out[i] = sums[tid]


@pytest.mark.parametrize("block", [1, 2, 3, 32, 100, 256])
@pytest.mark.parametrize("size", [1, 300, 512])
def test_trees_of_sums(block, size):
    x = np.random.default_rng(size).random(size).astype(np.float32)
    run(tree, -(-size // block), block, x, np.zeros(-(-size // block), np.float32))
    run(up_and_down, -(-size // (2 * block)), block, x, np.zeros(size, np.float32))
    whole = (x * 100).astype(np.int32)
    run(by_remainders, -(-size // block), block, whole, np.zeros(size, np.int32))


@cuda.jit
def any_multiple(k, c, bound, out):
    t = (cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y) * cuda.blockDim.x + cuda.threadIdx.x
    tid = cuda.threadIdx.x
    cuda.syncthreads()
    index = k * tid + c
    if index < bound:
        out[t, 0] = index
    cuda.syncthreads()
    if c - (0 - tid) * k <= bound and tid > 2:
        out[t, 1] = tid
    cuda.syncthreads()
    if bound < k * tid + c:
        out[t, 2] = tid
    cuda.syncthreads()
    index = (tid - 1) * k
    if index + c >= bound:
        if index != 4:
            out[t, 3] = index + tid


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("k", [0, 1, 2, 5, 64, -1, -3, 1 << 31, (1 << 62) + 1, 1 << 63])
@pytest.mark.parametrize("c", [0, -7, 63, (1 << 63) - 9, -(1 << 63)])
def test_numbers_that_are_not_known(shape, k, c):
    k = k - (1 << 64) if k >= 1 << 63 else k
    for bound in (0, 50, -40, (1 << 63) - 1, -(1 << 63)):
        args = (np.int64(k), np.int64(c), np.int64(bound))
        run(any_multiple, 1, shape, *args, np.zeros((int(np.prod(shape)), 4), np.int64))


@cuda.jit
def parts_of_warps(x, first, out):
    t = (cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y) * cuda.blockDim.x + cuda.threadIdx.x
    tid = cuda.threadIdx.x
    warp = tid // 32
    cuda.syncthreads()
    if warp == 0:
        out[t, 0] = x[t]
    cuda.syncthreads()
    if tid >> 3 == first:
        out[t, 1] = x[t]
    cuda.syncthreads()
    if warp <= first:
        out[t, 2] = x[t]
    cuda.syncthreads()
    if not (tid // 5 <= first):
        out[t, 3] = x[t]
    cuda.syncthreads()
    if warp != first:
        out[t, 4] = x[t]


@pytest.mark.parametrize("shape", [*SHAPES, 512, (200, 2)])
@pytest.mark.parametrize("first", [0, 1, 3, 19, 1000, -1])
def test_whole_warps(shape, first):
    size = int(np.prod(shape))
    x = np.arange(1.0, size + 1).astype(np.float32)
    run(parts_of_warps, 1, shape, x, first, np.zeros((size, 5), np.float32))


@cuda.jit
def sum_of_warps(x, out):
    sums = cuda.shared.array(32, np.float32)
    tid = cuda.threadIdx.x
    lane = tid % 32
    value = x[cuda.grid(1)]
    step = 16
    while step > 0:
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, step)
        step //= 2
    if lane == 0:
        sums[tid // 32] = value
    cuda.syncthreads()
    if tid // 32 == 0:
        value = sums[lane] if lane < cuda.blockDim.x // 32 else np.float32(0)
        step = 16
        while step > 0:
            value += cuda.shfl_down_sync(0xFFFFFFFF, value, step)
            step //= 2
        if lane == 0:
            out[cuda.blockIdx.x] = value


@pytest.mark.parametrize("block", [32, 64, 256, 1024])
def test_the_first_warp_adds_up(block):
    x = np.random.default_rng(block).integers(0, 100, 3 * block).astype(np.float32)
    out = np.zeros(3, np.float32)
    sum_of_warps[3, block](x, out)
    np.testing.assert_array_equal(out, x.reshape(3, block).sum(axis=1))


@cuda.jit
def kept_over_two_barriers(x, out):
    sums = cuda.shared.array(256, np.int32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    sums[tid] = x[i] if i < x.size else 0
    cuda.syncthreads()
    offset = 1
    while offset < cuda.blockDim.x:
        before = 0
        if tid >= offset:
            before = sums[tid - offset]
        cuda.syncthreads()
        sums[tid] += before
        cuda.syncthreads()
        offset *= 2
    if i < x.size:
        out[i] = sums[tid]


@cuda.jit
def kept_where_needed(x, out):
    sums = cuda.shared.array(256, np.float32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    sums[tid] = x[i] if i < x.size else 0
    for power in range(8):
        offset = 1 << power
        cuda.syncthreads()
        before = np.float32(0)
        if tid >= offset:
            before = sums[tid] + sums[tid - offset]
        cuda.syncthreads()
        if tid >= offset:
            sums[tid] = before
    if i < x.size:
        out[i] = sums[tid]


@pytest.mark.parametrize("block", [1, 2, 5, 32, 100, 256])
@pytest.mark.parametrize("size", [1, 127, 600])
def test_scans_of_one_array(block, size):
    x = np.random.default_rng(size).integers(-50, 50, size, dtype=np.int32)
    run(kept_over_two_barriers, -(-size // block), block, x, np.zeros(size, np.int32))
    run(kept_where_needed, -(-size // block), block, x.astype(np.float32), np.zeros(size, np.float32))


@cuda.jit
def scan_of_warps(x, members, out):
    sums = cuda.shared.array(32, np.int32)
    tid = cuda.threadIdx.x
    lane = tid & 31
    warp = tid >> 5
    value = x[cuda.grid(1)]
    step = 1
    while step < 32:
        other = cuda.shfl_up_sync(0xFFFFFFFF, value, step)
        if lane >= step:
            value += other
        step *= 2
    if lane == 31:
        sums[warp] = value
    cuda.syncthreads()
    if warp == 0 and lane < cuda.blockDim.x // 32:
        total = sums[lane]
        step = 1
        while step < 32:
            other = cuda.shfl_up_sync(members, total, step)
            if lane >= step:
                total += other
            step *= 2
        sums[lane] = total
    cuda.syncthreads()
    if warp > 0:
        value += sums[warp - 1]
    out[cuda.grid(1)] = value


@pytest.mark.parametrize("block", [32, 64, 256, 1024])
def test_the_first_lanes_of_the_first_warp_add_up(block):
    x = np.random.default_rng(block).integers(-50, 50, 3 * block, dtype=np.int32)
    out = np.zeros(3 * block, np.int32)
    scan_of_warps[3, block](x, np.uint32(2 ** (block // 32) - 1), out)
    np.testing.assert_array_equal(out, x.reshape(3, block).cumsum(axis=1).ravel())


@cuda.jit
def remainders_of_the_first(x, n, out):
    t = (cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y) * cuda.blockDim.x + cuda.threadIdx.x
    tid = cuda.threadIdx.x
    cuda.syncthreads()
    if tid // 32 == 0 and tid % 32 < n:
        out[t, 0] = x[t]
    cuda.syncthreads()
    if tid & 7 >= n and tid >> 3 == 0:
        out[t, 1] = x[t]
    cuda.syncthreads()
    if tid // 32 == 1 and tid % 32 < n:
        out[t, 2] = x[t]
    cuda.syncthreads()
    if tid // 32 == 0 and n == tid % 16:
        out[t, 3] = x[t]
    cuda.syncthreads()
    if tid // 16 == 0 and tid % 16 != n:
        out[t, 4] = x[t]


@pytest.mark.parametrize("shape", [*SHAPES, 512, (200, 2)])
@pytest.mark.parametrize("n", [0, 1, 5, 31, 40, -1])
def test_remainders_beside_quotients(shape, n):
    size = int(np.prod(shape))
    x = np.arange(1.0, size + 1).astype(np.float32)
    run(remainders_of_the_first, 1, shape, x, n, np.zeros((size, 5), np.float32))


@cuda.jit
def from_the_end(x, k, c, out):
    t = (cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y) * cuda.blockDim.x + cuda.threadIdx.x
    kept = cuda.shared.array(64, np.float32)
    tid = cuda.threadIdx.x
    for i in range(t, 64, cuda.blockDim.x * cuda.blockDim.y * cuda.blockDim.z):
        kept[i] = x[i]
    cuda.syncthreads()
    if tid < 8:
        left = k * tid + c
        out[t, 0] = kept[left]
        left += 1
        out[t, 1] = kept[left]
    cuda.syncthreads()
    where = c
    for turn in range(3):
        cuda.syncthreads()
        if tid < 8:
            out[t, 2 + turn] = kept[where + k]
            where = k * tid + c
    cuda.syncthreads()
    if k * tid < 24 and tid < 8:
        out[t, 5] = kept[k * tid + c]


@pytest.mark.parametrize("shape", [1, 8, 40, (16, 4), (5, 7)])
@pytest.mark.parametrize("k", [0, 1, 2, 5, -2])
@pytest.mark.parametrize("c", [0, -3, -20, 17])
def test_indices_that_count_from_the_end(shape, k, c):
    x = np.random.default_rng(3).random(64).astype(np.float32)
    run(from_the_end, 1, shape, x, k, c, np.zeros((int(np.prod(shape)), 6), np.float32))


@cuda.jit
def diagonals(a, b, out):
    score = cuda.shared.array((33, 33), np.int32)
    tid = cuda.threadIdx.x
    n = cuda.blockDim.x
    i = tid + 1
    score[i, 0] = -i
    score[0, i] = -i
    if tid == 0:
        score[0, 0] = 0
    cuda.syncthreads()
    for diagonal in range(2 * n - 1):
        j = diagonal - tid + 1
        if j >= 1 and j <= n:
            match = 2 if a[i - 1] == b[j - 1] else -1
            best = score[i - 1, j - 1] + match
            best = max(best, score[i - 1, j] - 1)
            score[i, j] = max(best, score[i, j - 1] - 1)
        cuda.syncthreads()
    for row in range(n):
        out[row, tid] = score[row + 1, tid + 1]


@pytest.mark.parametrize("n", [1, 2, 7, 16, 32])
def test_a_table_by_its_diagonals(n):
    a, b = np.random.default_rng(n).integers(0, 4, (2, n), dtype=np.int32)
    run(diagonals, 1, n, a, b, np.zeros((n, n), np.int32))


@cuda.jit
def falling(c, bound, out):
    t = (cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y) * cuda.blockDim.x + cuda.threadIdx.x
    tid = cuda.threadIdx.x
    cuda.syncthreads()
    j = c - tid
    if j >= bound:
        out[t, 0] = j
    cuda.syncthreads()
    j = c - 3 * tid
    if j < bound and tid > 1:
        out[t, 1] = j
    cuda.syncthreads()
    if bound <= (5 - tid) * 2 + c and c - tid < 40:
        out[t, 2] = tid
    cuda.syncthreads()
    if 2 * tid - c > bound and c + 4 * tid <= 90:
        out[t, 3] = tid


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("c", [0, 30, -7, (1 << 63) - 9, -(1 << 63)])
def test_values_that_fall(shape, c):
    for bound in (0, 20, -40, (1 << 63) - 1, -(1 << 63)):
        run(falling, 1, shape, np.int64(c), np.int64(bound), np.zeros((int(np.prod(shape)), 4), np.int64))
