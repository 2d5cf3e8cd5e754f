"""A post's kernels: vector addition, tiled matrix multiplication, and softmax by reductions in shared memory."""

import math

import numpy as np
import pytest
from weft import cuda, float32

TPB = 16
THREADS = 256


def size(device, full, small):
    return full if device == "cuda" else small


@cuda.jit
def vector_add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


@cuda.jit
def vector_add_by_fours(a, b, c):
    i = cuda.grid(1)
    x, y, z = a.view(cuda.float32x4), b.view(cuda.float32x4), c.view(cuda.float32x4)
    if i < z.size:
        z[i] = x[i] + y[i]


@pytest.mark.parametrize(("kernel", "width"), [(vector_add, 1), (vector_add_by_fours, 4)], ids=["scalar", "vectors"])
def test_vectors_are_added(device, kernel, width):
    n = size(device, 1 << 24, 1 << 18)
    rng = np.random.default_rng(23)
    a, b = rng.random(n, np.float32), rng.random(n, np.float32)
    d_a, d_b, d_c = cuda.to_device(a), cuda.to_device(b), cuda.device_array(n, np.float32)
    kernel[math.ceil(n / width / 256), 256](d_a, d_b, d_c)
    np.testing.assert_array_equal(d_c.copy_to_host(), a + b)


@cuda.jit
def matmul_smem(a, b, c):
    s_a = cuda.shared.array(shape=(TPB, TPB), dtype=float32)
    s_b = cuda.shared.array(shape=(TPB, TPB), dtype=float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0.0)
    for tile in range(cuda.gridDim.x):
        s_a[ty, tx] = 0
        s_b[ty, tx] = 0
        if y < a.shape[0] and tx + tile * TPB < a.shape[1]:
            s_a[ty, tx] = a[y, tx + tile * TPB]
        if x < b.shape[1] and ty + tile * TPB < b.shape[0]:
            s_b[ty, tx] = b[ty + tile * TPB, x]
        cuda.syncthreads()
        for k in range(TPB):
            total += s_a[ty, k] * s_b[k, tx]
        cuda.syncthreads()
    if y < c.shape[0] and x < c.shape[1]:
        c[y, x] = total


@pytest.mark.parametrize("ragged", [0, 5])
def test_matrices_in_shared_tiles(device, ragged):
    side = size(device, 512, 128) + ragged
    rng = np.random.default_rng(24)
    a, b = rng.random((side, side), np.float32), rng.random((side, side), np.float32)
    c = np.zeros_like(a)
    blocks = math.ceil(side / TPB)
    matmul_smem[(blocks, blocks), (TPB, TPB)](a, b, c)
    np.testing.assert_allclose(c, a.astype("f8") @ b.astype("f8"), rtol=1e-5)


@cuda.jit
def softmax_rows(x, out):
    partial = cuda.shared.array(THREADS, float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    n = x.shape[1]
    largest = float32(-math.inf)
    for i in range(t, n, cuda.blockDim.x):
        largest = max(largest, x[row, i])
    partial[t] = largest
    cuda.syncthreads()
    step = cuda.blockDim.x >> 1
    while step > 0:
        if t < step:
            partial[t] = max(partial[t], partial[t + step])
        cuda.syncthreads()
        step >>= 1
    largest = partial[0]
    cuda.syncthreads()
    total = float32(0.0)
    for i in range(t, n, cuda.blockDim.x):
        total += math.exp(x[row, i] - largest)
    partial[t] = total
    cuda.syncthreads()
    step = cuda.blockDim.x >> 1
    while step > 0:
        if t < step:
            partial[t] += partial[t + step]
        cuda.syncthreads()
        step >>= 1
    for i in range(t, n, cuda.blockDim.x):
        out[row, i] = math.exp(x[row, i] - largest) / partial[0]


@pytest.mark.parametrize("shape", ["rows", "long"])
def test_softmax_in_three_phases(device, shape):
    rows, n = (16, 128) if shape == "rows" else (1, size(device, 1 << 20, 1 << 15))
    x = np.random.default_rng(25).standard_normal((rows, n)).astype(np.float32) * 4
    out = np.zeros_like(x)
    softmax_rows[rows, THREADS](x, out)
    wide = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out, wide / wide.sum(axis=1, keepdims=True), rtol=2e-5)
