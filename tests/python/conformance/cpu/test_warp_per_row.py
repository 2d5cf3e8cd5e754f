"""One warp per row, in blocks of whole warps and in others."""

import math

import numpy as np
import pytest
from harness import run
from weft import cuda

FULL = 0xFFFFFFFF
# Block shapes with whole warps along x, and other ones, for which threads do not exchange values.
WHOLE = [32, 64, 96, 256, (32, 4), (64, 2), (32, 2, 3)]
SHAPES = [*WHOLE, 48, 20, (33, 2), (16, 3), (5, 7, 3)]
WIDTHS = [0, 1, 31, 32, 33, 100]


def threads(shape):
    return int(np.prod(shape))


def matrix(rows, width, seed=0):
    return np.random.default_rng((rows, width, seed)).integers(-30, 30, (rows, width)).astype(np.float32)


@cuda.jit
def products(starts, columns, values, x, out):
    row = cuda.grid(1) // 32
    lane = cuda.threadIdx.x % 32
    if row < out.shape[0]:
        total = np.float32(0)
        for k in range(starts[row] + lane, starts[row + 1], 32):
            total += values[k] * x[columns[k]]
        offset = 16
        while offset > 0:
            total += cuda.shfl_down_sync(FULL, total, offset)
            offset //= 2
        if lane == 0:
            out[row] = total


@cuda.jit
def products_with_return(starts, columns, values, x, out):
    tid = cuda.threadIdx.x
    lane = tid & 31
    row = cuda.blockIdx.x * (cuda.blockDim.x // cuda.warpsize) + (tid >> 5)
    if row >= out.shape[0]:
        return
    last = starts[row + 1]
    total = np.float32(0)
    k = starts[row] + lane
    while k < last:
        total += values[k] * x[columns[k]]
        k += 32
    for offset in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(FULL, total, offset)
    if lane == 0:
        out[row] = total


@cuda.jit
def products_of_many_rows(starts, columns, values, x, out):
    lane = cuda.laneid
    for row in range(cuda.grid(1) // 32, out.shape[0], cuda.gridsize(1) // 32):
        total = np.float32(0)
        for k in range(starts[row] + lane, starts[row + 1], 32):
            total += values[k] * x[columns[k]]
        for offset in (16, 8, 4, 2, 1):
            total += cuda.shfl_down_sync(FULL, total, offset)
        if lane == 0:
            out[row] = total


def sparse(rows, most, seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, most + 1, rows)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    columns = rng.integers(-rows, rows, starts[-1] + 1).astype(np.int32)
    return starts, columns, rng.integers(-9, 9, starts[-1] + 1).astype(np.float32), matrix(1, rows)[0]


@pytest.mark.parametrize("shape", [32, 64, 96, 256])
@pytest.mark.parametrize(("rows", "most"), [(1, 40), (13, 5), (13, 32), (40, 100)])
@pytest.mark.parametrize("kernel", [products, products_with_return, products_of_many_rows])
def test_sparse_rows(kernel, shape, rows, most):
    starts, columns, values, x = sparse(rows, most, (rows, most))
    out = run(kernel, -(-rows * 32 // shape), shape, starts, columns, values, x, np.zeros(rows, np.float32))[-1]
    for row in range(rows):
        part = slice(starts[row], starts[row + 1])
        assert out[row] == (values[part] * x[columns[part]]).sum()


@pytest.mark.parametrize("kernel", [products, products_with_return])
def test_rows_that_begin_below_zero(kernel):
    starts = np.array([-5, 40, -70, -3, 2], np.int32)
    _, columns, values, x = sparse(4, 100, 3)
    columns, values = np.resize(columns, 100), np.resize(values, 100)
    run(kernel, 2, 64, starts, columns, values, x, np.zeros(4, np.float32))


@cuda.jit
def normalized(x, out):
    row = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    lane = cuda.threadIdx.x
    n = x.shape[1]
    if row < x.shape[0]:
        total = np.float32(0)
        for i in range(lane, n, 32):
            total += x[row, i]
        offset = 16
        while offset > 0:
            total += cuda.shfl_xor_sync(FULL, total, offset)
            offset >>= 1
        mean = total / np.float32(n)
        squares = np.float32(0)
        for i in range(lane, n, 32):
            squares += (x[row, i] - mean) * (x[row, i] - mean)
        for offset in (16, 8, 4, 2, 1):
            squares += cuda.shfl_xor_sync(FULL, squares, offset)
        scale = np.float32(1) / math.sqrt(squares / np.float32(n) + np.float32(1e-5))
        for i in range(lane, n, 32):
            out[row, i] = (x[row, i] - mean) * scale


@cuda.jit
def softmax(x, out):
    lane = cuda.threadIdx.x % 32
    row = (cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) // 32
    if row < x.shape[0]:
        largest = np.float32(-np.inf)
        for i in range(lane, x.shape[1], 32):
            largest = max(largest, x[row, i])
        for offset in (16, 8, 4, 2, 1):
            largest = max(largest, cuda.shfl_xor_sync(FULL, largest, offset))
        total = np.float32(0)
        for i in range(lane, x.shape[1], 32):
            value = math.exp(x[row, i] - largest)
            out[row, i] = value
            total += value
        for offset in (16, 8, 4, 2, 1):
            total += cuda.shfl_xor_sync(FULL, total, offset)
        for i in range(lane, x.shape[1], 32):
            out[row, i] /= total


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    ("kernel", "shape"),
    [(normalized, 32), (normalized, (32, 4)), (normalized, (32, 3, 1)), *((softmax, shape) for shape in WHOLE[:4])],
)
def test_rows_of_a_matrix(kernel, shape, width):
    x = matrix(7, width)
    run(kernel, 3, shape, x, np.zeros_like(x))


@cuda.jit
def scaled(x, weights, out):
    lane = cuda.threadIdx.x
    total = np.float32(0)
    for i in range(lane, x.shape[1], 32):
        total += x[cuda.threadIdx.y, i] * weights[i]
    t = (cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y) * cuda.blockDim.x + lane
    out[cuda.blockIdx.x, t] = total + lane


@cuda.jit
def scaled_by_warps(x, weights, out):
    tid = cuda.threadIdx.x
    total = np.float32(0)
    for i in range(tid % 32, x.shape[1], 32):
        total += x[tid // 32 % x.shape[0], i] * weights[i]
    t = (cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y) * cuda.blockDim.x + tid
    out[cuda.blockIdx.x, t] = total + tid


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kernel", [scaled, scaled_by_warps])
def test_blocks_of_any_shape(kernel, shape, width):
    x = matrix(9, width)
    run(kernel, 2, shape, x, matrix(1, width, 5)[0], np.zeros((2, threads(shape)), np.float32))


@cuda.jit(device=True)
def sum_of_warp(value):
    offset = 16
    while offset > 0:
        value += cuda.shfl_down_sync(FULL, value, offset)
        offset //= 2
    return cuda.shfl_sync(FULL, value, 0)


@cuda.jit
def statistics(x, limit, out, counts):
    tid = cuda.threadIdx.x
    lane = tid % 32
    warp = cuda.blockIdx.x * (cuda.blockDim.x // 32) + tid // 32
    if warp < x.shape[0]:
        total = np.int64(0)
        above = 0
        last = -1
        kept = cuda.local.array(4, np.int64)
        for turn in range(4):
            kept[turn] = turn
        for i in range(lane, x.shape[1], 32):
            value = np.int64(x[warp, i])
            total += value * value
            kept[i // 32 % 4] += value
            if value > limit:
                above += 1
                last = i
            if value == 29:
                cuda.atomic.add(counts, 0, 1)
        total = sum_of_warp(total)
        votes = cuda.ballot_sync(FULL, above > 1)
        same = cuda.match_any_sync(FULL, last)
        if lane < 7:
            out[warp, lane] = total + lane
        elif lane == 30:
            out[warp, 7] = cuda.popc(votes) + cuda.popc(same)
        if cuda.any_sync(FULL, last == 3) and lane == limit:
            out[warp, 8] = kept[2] + cuda.lanemask_lt()
        out[warp, 9 + lane] = cuda.shfl_up_sync(FULL, above, 3, 8) + cuda.shfl_sync(FULL, last, lane // 2, 16)


@pytest.mark.parametrize("shape", [32, 64, 256])
@pytest.mark.parametrize("width", WIDTHS)
def test_statistics_of_rows(shape, width):
    x = matrix(9, width, 1)
    out, counts = run(statistics, 9, shape, x, 5, np.zeros((9, 41), np.int64), np.zeros(1, np.int64))[2:]
    np.testing.assert_array_equal(out[:, 0], (x.astype(np.int64) ** 2).sum(axis=1))
    assert counts[0] == (x == 29).sum()


@cuda.jit
def tiles(x, out):
    tile = cuda.shared.array((8, 32), np.float32)
    warp = cuda.threadIdx.x // 32
    lane = cuda.threadIdx.x % 32
    row = cuda.blockIdx.x * (cuda.blockDim.x // 32) + warp
    if row < x.shape[0]:
        for i in range(lane, x.shape[1], 32):
            tile[warp, lane] = x[row, i]
            cuda.syncwarp()
            out[row, i] = tile[warp, 31 - lane] if i < x.shape[1] // 32 * 32 else x[row, i]
            cuda.syncwarp()


@pytest.mark.parametrize("shape", [32, 96, 256])
@pytest.mark.parametrize("width", [64, 96])
def test_tiles_of_warps(shape, width):
    x = matrix(11, width, 2)
    out = run(tiles, 11, shape, x, np.zeros_like(x))[1]
    np.testing.assert_array_equal(out, x.reshape(11, -1, 32)[:, :, ::-1].reshape(11, -1))


@cuda.jit
def first_found(x, wanted, found):
    lane = cuda.laneid
    row = cuda.grid(1) // 32
    if row >= x.shape[0]:
        return
    where = 1 << 30
    for i in range(lane, x.shape[1], 32):
        if x[row, i] == wanted:
            where = i
            break
    for offset in (16, 8, 4, 2, 1):
        where = min(where, cuda.shfl_down_sync(FULL, where, offset))
    if lane == 0:
        found[row] = where


@pytest.mark.parametrize("shape", [32, 128])
@pytest.mark.parametrize("width", WIDTHS)
def test_lanes_that_leave(shape, width):
    x = matrix(10, width, 3)
    found = run(first_found, -(-320 // shape), shape, x, 7, np.zeros(10, np.int64))[2]
    expected = [row.tolist().index(7) if 7 in row else 1 << 30 for row in x]
    assert found.tolist() == expected


@cuda.jit
def numbers(out):
    t = (cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y) * cuda.blockDim.x + cuda.threadIdx.x
    block = cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x
    x = cuda.threadIdx.x
    total = 0
    for i in range(x % 32, 70, 32):
        total += i
    out[block, t, 0] = x // 32
    out[block, t, 1] = (cuda.grid(1) + 64) // 32
    out[block, t, 2] = cuda.grid(1) % 32
    out[block, t, 3] = (x % 32) // 32
    out[block, t, 4] = (x + 1) % 32
    out[block, t, 5] = cuda.laneid
    out[block, t, 6] = cuda.threadIdx.y * 10 + cuda.threadIdx.z
    out[block, t, 7] = cuda.gridsize(1) // 32 + cuda.blockDim.x // 32
    out[block, t, 8] = (x >> 5) + (x & 31) * 100
    out[block, t, 9] = total + cuda.shfl_down_sync(FULL, total, 1)


@pytest.mark.parametrize("shape", [32, 64, (32, 4), (64, 2, 2), (96, 1, 3)])
def test_numbers(shape):
    out = run(numbers, (3, 2), shape, np.zeros((6, threads(shape), 10), np.int64))[0]
    x = np.arange(threads(shape)) % (shape if isinstance(shape, int) else shape[0])
    for block in range(6):
        np.testing.assert_array_equal(out[block, :, 0], x // 32)
        np.testing.assert_array_equal(out[block, :, 3], 0)
        np.testing.assert_array_equal(out[block, :, 5], np.arange(threads(shape)) % 32)


def test_each_block_has_its_code(device):
    x = matrix(6, 50)

    @cuda.jit
    def rows(x, out):
        row = cuda.grid(1) // 32
        if row < x.shape[0]:
            for i in range(cuda.threadIdx.x % 32, x.shape[1], 32):
                out[row, i] = x[row, i] + row

    for block in (32, 40, 64, 16):
        run(rows, -(-6 * 32 // block), block, x, np.zeros_like(x))
    (code,) = rows.overloads.values()
    asked = ["warps" in facts for facts in code.assumptions]
    assert sorted(asked) == ([False, True] if device == "cpu" else [False])


@cuda.jit
def handed_on(x, out):
    i = cuda.grid(1)
    lane = cuda.laneid
    value = x[i] if i < x.size else np.int64(-1)
    total = value
    distance = 1
    while distance < 32:
        below = cuda.shfl_up_sync(FULL, total, distance)
        if lane >= distance:
            total += below
        distance *= 2
    left = cuda.shfl_up_sync(FULL, value, 1)
    right = cuda.shfl_down_sync(FULL, value, 1)
    even = cuda.ballot_sync(FULL, value % 2 == 0)
    if i < x.size:
        if lane == 0 and i > 0:
            left = x[i - 1]
        out[i, 0] = total
        out[i, 1] = left * 1000 + right
        out[i, 2] = even
    if lane == 31 and cuda.all_sync(FULL, value >= 0):
        out[i, 3] = total


@cuda.jit
def sums_of_some(x, out):
    i = cuda.grid(1)
    if i < x.size:
        total = x[i]
        for turn in range(3):
            if turn == 2 and x[0] == 3:
                break
            total += cuda.shfl_xor_sync(FULL, total, 1 << turn)
        if cuda.threadIdx.x % 32 < 16:
            total *= cuda.shfl_xor_sync(0xFFFF, total, 8)
            out[i, 0] = total
        if cuda.laneid == 2:
            out[i, 1] = total


@pytest.mark.parametrize("shape", [32, 96, 256])
@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("missing", [0, 1, 17, 31])
def test_lanes_that_hand_on(shape, blocks, missing):
    x = np.random.default_rng((shape, missing)).integers(0, 40, shape * blocks - missing)
    out = run(handed_on, blocks, shape, x, np.zeros((shape * blocks, 4), np.int64))[1]
    for first in range(0, x.size, 32):
        np.testing.assert_array_equal(out[first : first + 32, 0][: x.size - first], np.cumsum(x[first : first + 32]))


@pytest.mark.parametrize("shape", [32, 128])
@pytest.mark.parametrize("missing", [0, 32, 64])
@pytest.mark.parametrize("first", [3, 4])
def test_guarded_lanes(shape, missing, first):
    x = np.random.default_rng(shape).integers(1, 9, shape * 3 - missing)
    x[0] = first
    run(sums_of_some, 3, shape, x, np.zeros((shape * 3, 2), np.int64))


@cuda.jit
def rows_in_rows(x, weights, out):
    lane = cuda.threadIdx.x % 32
    row = cuda.grid(1) // 32
    if row < x.shape[0]:
        last = np.float32(-1)
        total = np.float32(0)
        for i in range(lane, x.shape[1], 32):
            last = x[row, i]
            for j in range(weights.shape[0]):
                total += weights[j, i] * last
            if last > 20:
                continue
            total += 1
        other = cuda.shfl_xor_sync(FULL, last, 1)
        out[row, lane] = total * 4 + other + last


@pytest.mark.parametrize("width", [*WIDTHS, 45])
def test_loops_in_turns(width):
    run(rows_in_rows, 2, 96, matrix(5, width), matrix(3, width, 7), np.zeros((5, 32), np.float32))


@cuda.jit
def votes_before_a_loop_that_all_leave_together(n, out):
    i = cuda.grid(1)
    p = cuda.popc(cuda.ballot_sync(FULL, i % 3 == 0))
    if i < n:
        k = 0
        while k < 20:
            k += 1
        out[i] = k + p


@cuda.jit
def votes_before_a_loop_that_each_leaves(n, out):
    i = cuda.grid(1)
    p = cuda.popc(cuda.ballot_sync(FULL, i % 3 == 0))
    if i < n:
        v = i + 1
        while v != 1:
            v = v // 2 if v % 2 == 0 else 3 * v + 1
            p += 1
        out[i] = p


@pytest.mark.parametrize("kernel", [votes_before_a_loop_that_all_leave_together, votes_before_a_loop_that_each_leaves])
@pytest.mark.parametrize("block", [32, 64, 96])
@pytest.mark.parametrize("n", [1, 31, 32, 33, 70])
def test_a_vote_before_a_guarded_loop(kernel, block, n):
    run(kernel, -(-n // block) + 1, block, n, np.zeros(n, np.int64))


@cuda.jit
def searches_of_some_lanes(n, table, out):
    i = cuda.grid(1)
    lane = cuda.threadIdx.x % 32
    p = cuda.popc(cuda.ballot_sync(FULL, i % 3 == 0))
    if lane < n:
        for j in range(table.shape[0]):
            if table[j] > i:
                break
            p += table[j]
    out[i] = p


@pytest.mark.parametrize("block", [32, 64, 96])
@pytest.mark.parametrize("n", [0, 1, 2, 10, 31, 32, 40])
def test_lanes_that_do_not_come_to_a_loop(block, n):
    run(searches_of_some_lanes, 2, block, n, np.arange(50), np.zeros(2 * block, np.int64))
