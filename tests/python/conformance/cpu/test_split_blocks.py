"""Launches with few blocks: on the CPU, a block runs as several if the kernel cannot see it."""

import numpy as np
import pytest
from harness import launch, run
from weft import cuda


def values(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


@cuda.jit
def scaled(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] * 2 + 1


@pytest.mark.parametrize("shape", [(1, 1024), (1, 1000), (3, 96), (2, 64), (1, 7)])
def test_each_thread_runs_once(shape):
    size = shape[0] * shape[1]
    run(scaled, *shape, values(1, size - 3), np.zeros(size, np.float32))


def test_two_dimensions():
    @cuda.jit
    def kernel(x, out):
        i, j = cuda.grid(2)
        if i < out.shape[0] and j < out.shape[1]:
            out[i, j] = x[j, i] - i + 3 * j

    run(kernel, (1, 2), (16, 16), values(2, 31, 16), np.zeros((16, 31), np.float32))


def test_a_stride_of_the_grid_is_the_same():
    @cuda.jit
    def kernel(x, out):
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            out[i] = x[i] + cuda.gridsize(1)

    run(kernel, 1, 256, values(3, 3001), np.zeros(3001, np.float32))


def test_a_position_by_hand():
    @cuda.jit
    def kernel(x, out):
        thread = cuda.threadIdx.x
        width = cuda.blockDim.x
        i = thread + cuda.blockIdx.x * width
        if i < x.size:
            out[i] = x[i] * 3

    run(kernel, 2, 128, values(4, 250), np.zeros(256, np.float32))


@cuda.jit
def block_shape(out):
    out[cuda.grid(1)] = cuda.blockDim.x


@cuda.jit
def grid_shape(out):
    out[cuda.grid(1)] = cuda.gridDim.x


@cuda.jit
def both_shapes(out):
    out[cuda.grid(1)] = cuda.blockDim.x + cuda.gridDim.x


@pytest.mark.parametrize("kernel", [block_shape, grid_shape, both_shapes], ids=["block", "grid", "both"])
def test_a_shape_that_is_stored(kernel):
    run(kernel, 1, 512, np.zeros(512, np.int64))


def test_a_shape_that_bounds_a_loop():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        total = np.float32(0)
        for k in range(cuda.blockDim.x):
            total += x[k]
        out[i] = total

    run(kernel, 1, 256, values(5, 256), np.zeros(256, np.float32))


def test_a_shape_with_two_values():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        width = cuda.blockDim.x
        if x[i] > 0:
            width = 5
        out[i] = width

    run(kernel, 1, 256, values(6, 256), np.zeros(256, np.int64))


def test_a_shape_that_is_a_narrow_integer():
    @cuda.jit
    def kernel(out):
        out[cuda.grid(1)] = np.int16(cuda.blockDim.x) * np.int16(cuda.gridDim.x + 1)

    run(kernel, 1, 256, np.zeros(256, np.int64))


def test_a_block_of_a_constant_length():
    @cuda.jit
    def kernel(x, out):
        i = cuda.blockIdx.x * 256 + cuda.threadIdx.x
        out[i] = x[i] + 1

    run(kernel, 2, 256, values(7, 512), np.zeros(512, np.float32))


@pytest.mark.cpu
def test_atomic_operations_of_a_block_stay_in_order():
    @cuda.jit
    def kernel(count, order):
        i = cuda.grid(1)
        total = 0.0
        for k in range(2000):
            total += 1 / (i + k + 1)
        if total > 0:
            order[cuda.atomic.add(count, 0, 1)] = i

    for _ in range(3):
        order = launch(kernel, 1, 1024, np.zeros(1, np.int32), np.full(1024, -1))[1]
        assert order.tolist() == list(range(1024))
