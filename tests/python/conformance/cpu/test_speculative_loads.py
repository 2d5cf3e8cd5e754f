"""Loads under conditions that all threads may make, because the planner proves that they are in bounds."""

import numpy as np
import pytest
from harness import run
from host_memory import AtTheEnd
from weft import _weft, cuda

TYPES = [np.uint8, np.int16, np.float32, np.float64]


def values(seed, *shape, dtype=np.uint8, most=10):
    return np.random.default_rng(seed).integers(0, most, shape).astype(dtype)


def converts(kernel):
    """Whether the planner converted a branch of the kernel."""
    return any("if-conversion" in names for *_, names in _weft.plan_features(kernel))


@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
def test_game_of_life(dtype):
    @cuda.jit
    def life(cells, out):
        x, y = cuda.grid(2)
        height, width = cells.shape
        if x < width and y < height:
            west = (x - 1) % width
            east = (x + 1) % width
            north = (y - 1) % height
            south = (y + 1) % height
            alive = cells[north, west] + cells[north, x] + cells[north, east] + cells[y, west]
            alive += cells[y, east] + cells[south, west] + cells[south, x] + cells[south, east]
            if alive == 3 or (alive == 2 and cells[y, x] == 1):
                out[y, x] = 1
            else:
                out[y, x] = 0

    for shape in [(37, 70), (1, 1), (2, 130), (40, 3)]:
        run(life, (5, 10), (32, 4), values(1, *shape, dtype=dtype, most=2), np.zeros(shape, dtype))


@pytest.mark.cpu
@pytest.mark.parametrize("dtype", TYPES)
def test_one_of_four_pairs_of_neighbors(dtype):
    @cuda.jit
    def thin(size, direction, out):
        x, y = cuda.grid(2)
        height, width = size.shape
        if 0 < x < width - 1 and 0 < y < height - 1:
            own = size[y, x]
            if direction[y, x] == 0:
                a = size[y, x - 1]
                b = size[y, x + 1]
            elif direction[y, x] == 1:
                a = size[y - 1, x + 1]
                b = size[y + 1, x - 1]
            elif direction[y, x] == 2:
                a = size[y - 1, x]
                b = size[y + 1, x]
            else:
                a = size[y - 1, x - 1]
                b = size[y + 1, x + 1]
            out[y, x] = own if own >= a and own >= b else 0

    size = values(2, 33, 71, dtype=dtype)
    run(thin, (3, 9), (32, 4), size, values(3, 33, 71, most=4), np.zeros_like(size))
    assert converts(thin)


@pytest.mark.parametrize("dtype", TYPES)
def test_a_load_between_two_others(dtype):
    @cuda.jit
    def middle(x, out):
        i = cuda.grid(1)
        if i < out.size:
            value = x[i] + x[i + 2]
            if value > 9:
                value = x[i + 1]
            out[i] = value

    run(middle, 8, 128, values(4, 1002, dtype=dtype), np.zeros(1000, dtype))


@pytest.mark.parametrize("dtype", TYPES)
def test_a_load_past_the_others(dtype):
    @cuda.jit
    def after(x, out):
        i = cuda.grid(1)
        if i < out.size:
            value = x[i] + x[i + 2]
            if value > 9 and i + 3 < x.size:
                value = x[i + 3]
            out[i] = value

    run(after, 8, 128, values(5, 1002, dtype=dtype), np.zeros(1000, dtype))


def test_loads_in_a_loop():
    @cuda.jit
    def rows(x, out):
        column = cuda.grid(1)
        if column < x.shape[1]:
            total = 0
            for row in range(x.shape[0]):
                if x[row, column] > 3:
                    total += x[row, column]
                if total % 2 == 1 and row > 0:
                    total -= x[row - 1, column]
            out[column] = total

    run(rows, 4, 64, values(6, 19, 200), np.zeros(200, np.int64))


def test_an_index_that_is_negative_without_the_condition():
    @cuda.jit
    def before(x, out):
        i = cuda.grid(1)
        if i < out.size:
            value = x[i]
            if i >= 1000:
                value += x[i - 1000]
            out[i] = value

    run(before, 24, 128, values(7, 3000), np.zeros(3000, np.uint8))


def test_a_table_in_shared_memory():
    @cuda.jit
    def mapped(x, out):
        table = cuda.shared.array(256, np.uint8)
        i = cuda.grid(1)
        table[cuda.threadIdx.x] = cuda.threadIdx.x * 7 % 256
        cuda.syncthreads()
        if i < out.size:
            value = x[i]
            if value > 4:
                value = table[cuda.threadIdx.x] + table[255 - cuda.threadIdx.x]
            out[i] = value

    run(mapped, 8, 256, values(8, 2000), np.zeros(2000, np.uint8))


@pytest.mark.cpu
def test_bounds_that_a_loop_changes():
    @cuda.jit
    def moving(x, out):
        i = cuda.grid(1)
        at = i
        if at < x.size:
            total = np.uint8(0)
            for _ in range(5):
                if out[i] > 4 and at < x.size:
                    total += x[at]
                at += 700
            out[i] = total

    x = AtTheEnd(values(9, 1000))
    out = values(10, 1000)
    expected = [sum(int(x.array[at]) for at in range(i, 1000, 700)) % 256 if out[i] > 4 else 0 for i in range(1000)]
    moving[8, 128](x, out)
    cuda.synchronize()
    np.testing.assert_array_equal(out, expected)


@pytest.mark.cpu
def test_a_bound_that_a_branch_changes():
    @cuda.jit
    def farther(x, out):
        i = cuda.grid(1)
        at = i
        if at < x.size:
            if out[i] > 6:
                at = i + 40000
            if out[i] < 6:
                out[i] = x[at]

    x = AtTheEnd(values(11, 1000))
    out = values(12, 1000)
    expected = np.where(out < 6, x.array, out)
    farther[8, 128](x, out)
    cuda.synchronize()
    np.testing.assert_array_equal(out, expected)


def test_a_load_of_an_array_that_the_kernel_stores():
    @cuda.jit
    def ordered(x, out):
        i = cuda.grid(1)
        if i < x.size:
            before = x[i]
            x[i] = before + 1
            value = np.uint8(0)
            if before > 4:
                value = x[i]
            out[i] = value

    run(ordered, 8, 128, values(13, 1000), np.zeros(1000, np.uint8))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.uint8, np.complex64])
def test_arrays_of_three_dimensions(order, dtype):
    @cuda.jit
    def masked(x, mask, out):
        i, j, k = cuda.grid(3)
        if i < x.shape[0] and j < x.shape[1] and k < x.shape[2]:
            value = x[i, j, k]
            if mask[i, j, k] > 4 and i > 0 and j > 0 and k > 0:
                value = x[i, j, k] + x[i - 1, j - 1, k - 1]
            out[i, j, k] = value

    x = np.asarray(values(14, 9, 10, 33, dtype=dtype), order=order)
    mask = np.asarray(values(15, 9, 10, 33), order=order)
    run(masked, (3, 3, 9), (4, 4, 4), x, mask, np.zeros_like(x))
