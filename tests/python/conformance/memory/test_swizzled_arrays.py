"""Swizzled shared arrays: elements, views, device functions, copies and matrix tiles agree. About 4 seconds."""

import numpy as np
import pytest
from harness import launch, module
from weft import cuda

SOURCE = """
import numpy as np
import weft
from weft import cuda

@cuda.jit
def put(s, i, j, value):
    s[i, j] = value

@cuda.jit
def kernel(x, out):
    s = cuda.shared.array(({rows}, {columns}), {dtype}, swizzle={width})
    t = cuda.threadIdx.x
    for i in range(t, {rows}, cuda.blockDim.x):
        for j in range({columns}):
            put(s, i, j, x[i, j])
    cuda.syncthreads()
    for i in range(t, {rows}, cuda.blockDim.x):
        for j in range({columns}):
            s[i, j] += 1
    cuda.syncthreads()
    for i in range(t, {rows}, cuda.blockDim.x):
        for j in range({columns}):
            out[i, j] = s[-1 - i, j - {columns}]
"""
# The dtype, the columns, and the width: rows as long as the swizzle, and longer ones.
ARRAYS = [
    ("int8", 32, 32),
    ("int8", 64, 64),
    ("float16", 64, 128),
    ("float16", 32, 64),
    ("float16", 192, 128),
    ("float32", 8, 32),
    ("float32", 64, 64),
    ("float64", 32, 128),
    ("complex128", 24, 128),
]


@pytest.mark.parametrize(("dtype", "columns", "width"), ARRAYS)
def test_elements(dtype, columns, width):
    kernel = module(SOURCE.format(rows=20, columns=columns, dtype=f"np.{dtype}", width=width)).kernel
    x = np.random.default_rng(0).integers(0, 100, (20, columns)).astype(dtype)
    np.testing.assert_array_equal(launch(kernel, 1, 32, x, np.zeros_like(x))[1], x[::-1] + np.ones(1, dtype))


@cuda.jit
def orders(out):
    s = cuda.shared.array((16, 32), np.float32, swizzle=128)
    for j in range(32):
        s[cuda.threadIdx.x, j] = np.float32(j)
    cuda.syncthreads()
    parts = s.view(cuda.float32x4)
    out[cuda.threadIdx.x, 0] = parts[cuda.threadIdx.x, 3].x
    out[cuda.threadIdx.x, 1] = parts[cuda.threadIdx.x, -1].w
    if cuda.threadIdx.x == 0:
        out[0, 2], out[1, 2] = np.float32(s.shape[0]), np.float32(parts.shape[1])


def test_views_have_the_same_rows():
    got = launch(orders, 1, 16, np.zeros((16, 3), np.float32))[0]
    np.testing.assert_array_equal(got[:, 0], 12)
    np.testing.assert_array_equal(got[:, 1], 31)
    np.testing.assert_array_equal(got[:2, 2], [16, 8])


T = cuda.mma.tile(32, 16, 16, a=np.float16, b=np.float16, c=np.float32)


@cuda.jit
def product(a, b, c):
    x = cuda.shared.array((32, 32), np.float16, swizzle=64)
    y = cuda.shared.array((32, 64), np.float16, swizzle=128)
    z = cuda.shared.array((32, 16), np.float32, swizzle=32)
    xs, ys, a_from, b_from = x.view(cuda.uint32x4), y.view(cuda.uint32x4), a.view(cuda.uint32x4), b.view(cuda.uint32x4)
    t = cuda.threadIdx.x
    for n in range(4):
        cuda.copy_async(xs, (t, n), a_from, (t, n))
    for n in range(8):
        cuda.copy_async(ys, (t, n), b_from, (t, n))
    cuda.copy_commit()
    cuda.copy_wait()
    cuda.syncwarp()
    for j in range(0, 64, 16):
        acc = T.zeros()
        for k in range(0, 32, 16):
            acc = T.mma(T.a(x, 0, k), T.b(y, k, j), acc)
        T.store(z, 0, 0, acc)
        cuda.syncwarp()
        for n in range(16):
            c[t, j + n] = z[t, n]
        cuda.syncwarp()


def test_copies_and_matrix_tiles():
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (32, 32)).astype(np.float16), rng.integers(-9, 9, (32, 64)).astype(np.float16)
    got = launch(product, 1, 32, a, b, np.zeros((32, 64), np.float32))[2]
    np.testing.assert_array_equal(got, a.astype(np.float32) @ b.astype(np.float32))


@cuda.jit
def in_dynamic_memory(x, out):
    memory = cuda.shared.array(0, np.float32)
    s = cuda.shared.swizzled(memory[32:544].reshape((16, 32)), 128)
    for j in range(32):
        s[cuda.threadIdx.x, j] = x[cuda.threadIdx.x, j]
    cuda.syncthreads()
    for j in range(32):
        out[cuda.threadIdx.x, j] = s[j // 2, cuda.threadIdx.x + j % 2 * 16]
        out[16 + cuda.threadIdx.x, j] = memory[32 * (cuda.threadIdx.x + 1) + j]


def test_dynamic_memory_can_be_swizzled():
    x = np.arange(512, dtype=np.float32).reshape(16, 32)
    got = launch(in_dynamic_memory, 1, 16, x, np.zeros((32, 32), np.float32), shared_bytes=4 * 544)[1]
    np.testing.assert_array_equal(got[:16].T, x.reshape(32, 16))
    memory = [row.reshape(8, 4)[[part ^ (i % 8) for part in range(8)]].ravel() for i, row in enumerate(x)]
    np.testing.assert_array_equal(got[16:], memory)


@cuda.jit
def of_three_dimensions(x, out):
    s = cuda.shared.array((2, 16, 32), np.float32, swizzle=128)
    i = cuda.threadIdx.x
    for k in range(2):
        part = s[k]
        for j in range(32):
            part[i, j] = x[k, i, j]
    cuda.syncthreads()
    columns = s[-1].T
    for j in range(32):
        out[0, i, j] = s[-2, 15 - i, j - 32]
        out[1, i, j] = columns[j, -1 - i]
    cuda.syncthreads()
    columns[i, 0] += np.float32(1)
    cuda.syncthreads()
    if i == 0:
        out[0, 0, 0], out[0, 0, 1] = np.float32(columns.shape[0]), s[1].view(cuda.float32x4)[0, 2].w


def test_views_of_three_dimensions_and_transposes():
    x = np.random.default_rng(1).integers(0, 100, (2, 16, 32)).astype(np.float32)
    got = launch(of_three_dimensions, 1, 16, x, np.zeros_like(x))[1]
    expected = x[:, ::-1].copy()
    expected[0, 0, :2] = 32, x[1, 0, 11] + 1
    np.testing.assert_array_equal(got, expected)
