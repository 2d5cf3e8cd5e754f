"""Accumulators in memory: elements that a loop loads and stores in each iteration, and loops that only seem similar."""

import math

import numpy as np
import pytest
from weft import cuda

SIZES = [1, 7, 16, 33, 64, 257]
BLOCKS = [1, 5, 16, 37, 128]


def values(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


@cuda.jit
def product(a, b, c):
    x, y = cuda.grid(2)
    if y < c.shape[0] and x < c.shape[1]:
        for k in range(a.shape[1]):
            c[y, x] += a[y, k] * b[k, x]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32, np.int8, np.uint16])
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 0, 70), (17, 33, 130), (64, 40, 64)])
@pytest.mark.parametrize("block", [(16, 16), (32, 2), (5, 3)])
def test_products_are_added_to_an_element(dtype, shape, block):
    rows, inner, columns = shape
    a, b = values(1, rows, inner, dtype=dtype), values(2, inner, columns, dtype=dtype)
    c = values(3, rows, columns, dtype=dtype)
    expected = (c.astype(np.int64) + a.astype(np.int64) @ b.astype(np.int64)).astype(dtype)
    product[(-(-columns // block[0]), -(-rows // block[1])), block](a, b, c)
    np.testing.assert_array_equal(c, expected)


@cuda.jit
def sums_of_points(points, weights, out):
    i = cuda.grid(1)
    while i < out.shape[0]:
        for j in range(points.shape[0]):
            out[i, 0] += points[j, 0] * weights[i]
            out[i, 1] -= points[j, 1]
            out[i, 2] = max(out[i, 2], points[j, 2] + weights[i])
        i += cuda.gridsize(1)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("width", [3, 4])
def test_coordinates_of_a_point(n, block, width):
    points, weights, out = values(4, 19, width), values(5, n), values(6, n, width)
    expected = out.copy()
    expected[:, 0] += points[:, 0].sum() * weights
    expected[:, 1] -= points[:, 1].sum()
    expected[:, 2] = np.maximum(expected[:, 2], points[:, 2].max() + weights)
    sums_of_points[2, block](points, weights, out)
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def forces(starts, neighbors, points, charges, out):
    box, tx = cuda.blockIdx.x, cuda.threadIdx.x
    here = cuda.shared.array((20, 4), np.float32)
    there = cuda.shared.array((20, 4), np.float32)
    charge = cuda.shared.array(20, np.float32)
    i = tx
    while i < 20:
        for d in range(4):
            here[i, d] = points[box * 20 + i, d]
        i += cuda.blockDim.x
    cuda.syncthreads()
    for k in range(starts[box], starts[box + 1]):
        first = neighbors[k] * 20
        i = tx
        while i < 20:
            for d in range(4):
                there[i, d] = points[first + i, d]
            charge[i] = charges[first + i]
            i += cuda.blockDim.x
        cuda.syncthreads()
        i = tx
        while i < 20:
            for j in range(20):
                v = math.exp(here[i, 0] * there[j, 0])
                out[box * 20 + i, 0] += charge[j] * v
                out[box * 20 + i, 1] += charge[j] * v * (here[i, 1] - there[j, 1])
                out[box * 20 + i, 2] += charge[j] * v * (here[i, 2] - there[j, 2])
                out[box * 20 + i, 3] += charge[j] * v * (here[i, 3] - there[j, 3])
            i += cuda.blockDim.x
        cuda.syncthreads()


@pytest.mark.parametrize("block", [1, 7, 16, 20, 32, 64])
def test_forces_between_boxes(block):
    boxes = 5
    near = [[k for k in range(boxes) if abs(k - box) <= 1 and box != 3] for box in range(boxes)]
    starts = np.cumsum([0, *map(len, near)], dtype=np.int32)
    points = np.random.default_rng(7).random((boxes * 20, 4), np.float32)
    charges = np.random.default_rng(8).random(boxes * 20, np.float32)
    out = np.ones((boxes * 20, 4), np.float32)
    expected = np.ones((boxes * 20, 4))
    for box in range(boxes):
        for other in near[box]:
            a, b = (points[k * 20 : k * 20 + 20].astype(np.float64) for k in (box, other))
            v = np.exp(a[:, None, 0] * b[None, :, 0]) * charges[other * 20 : other * 20 + 20]
            part = expected[box * 20 : box * 20 + 20]
            part[:, 0] += v.sum(1)
            for d in (1, 2, 3):
                part[:, d] += (v * (a[:, None, d] - b[None, :, d])).sum(1)
    forces[boxes, block](starts, np.concatenate(near).astype(np.int32), points, charges, out)
    np.testing.assert_allclose(out, expected, rtol=2e-5)


@cuda.jit
def product_in_tiles(a, b, c, of_block):
    left = cuda.shared.array((16, 16), np.float32)
    right = cuda.shared.array((16, 16), np.float32)
    total = cuda.shared.array((16, 16), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    total[ty, tx] = 0
    for start in range(0, a.shape[1], 16):
        left[ty, tx] = a[y, start + tx]
        right[ty, tx] = b[start + ty, x]
        cuda.syncthreads()
        for k in range(16):
            c[y, x] += left[ty, k] * right[k, tx]
            total[ty, tx] += left[ty, k] * right[k, tx]
        cuda.syncthreads()
    of_block[y, x] = total[ty, 15 - tx]


def test_tiles():
    a, b, c = values(9, 48, 64), values(10, 64, 32), values(11, 48, 32)
    of_block = np.zeros_like(c)
    expected = c + a @ b
    product_in_tiles[(2, 3), (16, 16)](a, b, c, of_block)
    np.testing.assert_array_equal(c, expected)
    turned = (a @ b).reshape(48, 2, 16)[:, :, ::-1].reshape(48, 32)
    np.testing.assert_array_equal(of_block, turned)


@cuda.jit
def sums_up_to(a, first, last, out):
    i = cuda.grid(1)
    for k in range(first, last):
        out[i] += a[k]


@pytest.mark.parametrize("bounds", [(0, 0), (3, 3), (5, 2), (0, 1), (2, 9)])
def test_nobody_touches_an_element_without_a_turn(bounds):
    a, out = values(12, 9), np.zeros(40, np.float32)
    # Without an iteration no element is accessed; most indices are out of bounds.
    if bounds[0] < bounds[1]:
        sums_up_to[5, 8](a, *bounds, out)
        np.testing.assert_array_equal(out, np.full(40, a[bounds[0] : bounds[1]].sum()))
    else:
        out = out[:0]
        sums_up_to[5, 8](a, *bounds, out)


@cuda.jit
def running(values_, out):
    i = cuda.grid(1)
    for k in range(1, values_.shape[1]):
        values_[i, 0] += values_[i, k]
        out[i] += values_[i, k - 1]


@pytest.mark.parametrize("n", SIZES)
def test_what_the_loop_reads_elsewhere_in_the_array(n):
    a, out = values(13, n, 11), np.zeros(n, np.float32)
    expected_a, expected = a.copy(), np.zeros(n, np.float32)
    for k in range(1, 11):
        expected_a[:, 0] += expected_a[:, k]
        expected += expected_a[:, k - 1]
    running[1, n](a, out)
    np.testing.assert_array_equal(a, expected_a)
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def overlapping(a, out, turns):
    i = cuda.grid(1)
    for k in range(turns):
        out[i] += a[2 * i + k % 2]


def test_arrays_that_share_memory():
    memory = values(14, 200)
    expected = memory.copy()
    a, out = memory[:100], memory[100:150]
    overlapping[1, 50](a, out, 6)
    expected[100:150] += 3 * (expected[0:100:2] + expected[1:100:2])
    np.testing.assert_array_equal(memory, expected)
    # One thread adds the value that it has just stored.
    memory = np.arange(1, 5, dtype=np.float32)
    overlapping[1, 1](memory[0:2], memory[0:1], 5)
    total = np.float32(1)
    for k in range(5):
        total += total if k % 2 == 0 else 2
    assert memory.tolist() == [total, 2, 3, 4]


@cuda.jit
def chosen(owner, a, out):
    t = cuda.threadIdx.x
    for k in range(a.shape[0]):
        if owner[k] == t:
            out[cuda.blockIdx.x] += a[k]


def test_elements_of_those_that_are_asked():
    owner, a, out = np.full(20, 3, np.int32), values(15, 20), np.zeros(2, np.float32)
    chosen[2, 64](owner, a, out)
    np.testing.assert_array_equal(out, np.full(2, a.sum()))


@cuda.jit
def until(a, limit, out):
    i = cuda.grid(1)
    for k in range(a.shape[1]):
        out[i] += a[i, k]
        if out[i] > limit:
            break
        out[i] *= 2
    else:
        out[i] -= 100


@pytest.mark.parametrize("n", SIZES)
def test_threads_that_leave(n):
    a, out = np.abs(values(16, n, 8)), values(17, n)
    expected = out.copy()
    for i in range(n):
        for k in range(8):
            expected[i] += a[i, k]
            if expected[i] > 300:
                break
            expected[i] *= 2
        else:
            expected[i] -= 100
    until[1, n](a, 300, out)
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def in_turn(table, out):
    i = cuda.grid(1)
    for j in range(table.shape[0]):
        for k in range(table.shape[1]):
            out[-1 - i] += table[j, k]
            out[i] ^= table[j, k]


def test_elements_from_the_end_and_nested_loops():
    table, out = values(18, 5, 6, dtype=np.int32), values(19, 9, dtype=np.int32)
    expected = out.copy()
    for value in table.ravel():
        expected[-4:] += value
        expected[:4] ^= value
    in_turn[1, 4](table, out)
    np.testing.assert_array_equal(out, expected)
    # Both accumulators are the same element.
    one, total = out[4:5].copy(), int(out[4])
    for value in table.ravel():
        total = (total + int(value)) ^ int(value)
    in_turn[1, 1](table, one)
    assert one[0] == total


@cuda.jit
def column_by_column(m, out):
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    tile = cuda.shared.array((16, 16), np.float32)
    inside = tx < m.shape[1] and ty < m.shape[0]
    if inside:
        tile[ty, tx] = m[ty, tx]
    cuda.syncthreads()
    for k in range(m.shape[1]):
        if inside and ty > k and tx == k:
            tile[ty, k] -= tile[k, k]
        cuda.syncthreads()
        if inside and tx == k + 1:
            tile[ty, tx] += tile[ty, k]
        cuda.syncthreads()
    if inside:
        out[ty, tx] = tile[ty, tx]


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (13, 5), (16, 16)])
@pytest.mark.parametrize("block", [(16, 16), (7, 13)])
def test_one_thread_of_each_row(shape, block):
    rows, columns = min(shape[0], block[1]), min(shape[1], block[0])
    shape = rows, columns
    m = np.random.default_rng(20).integers(-1, 2, shape).astype(np.float32)
    expected, out = m.copy(), np.zeros_like(m)
    for k in range(columns):
        if k < rows:
            expected[k + 1 :, k] -= expected[k, k]
        if k + 1 < columns:
            expected[:, k + 1] += expected[:, k]
    column_by_column[1, block](m, out)
    np.testing.assert_array_equal(out, expected)
