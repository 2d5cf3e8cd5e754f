"""Vectorized loops of a few adjacent threads: whole strips, the remainder of a row, loop-carried values."""

import numpy as np
import pytest
from weft import cuda

SIZES = [1, 7, 8, 9, 63, 64, 65, 200, 257, 1100]
BLOCKS = [1, 5, 16, 37, 64, 256]


def values(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


@cuda.jit
def product(a, b, c):
    i, j = cuda.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = c.dtype.type(0)
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int8])
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 0, 70), (17, 33, 300), (64, 40, 64), (3, 5, 1300)])
@pytest.mark.parametrize("block", [(16, 16), (1, 64), (8, 3), (5, 37)])
def test_product_of_matrices(dtype, shape, block):
    rows, inner, columns = shape
    a, b = values(1, rows, inner, dtype=dtype), values(2, inner, columns, dtype=dtype)
    c = np.full((rows, columns), 77, dtype)
    product[(-(-rows // block[0]), -(-columns // block[1])), block](a, b, c)
    np.testing.assert_array_equal(c, (a.astype(np.int64) @ b.astype(np.int64)).astype(dtype))


@cuda.jit
def row_sums(a, skipped, out):
    i = cuda.grid(1)
    if i >= out.size:
        return
    total = a.dtype.type(0)
    least = a.dtype.type(100)
    which = -1
    for k in range(a.shape[1]):
        if k != skipped[i]:
            total = total * 2 + a[i, k]
        if a[i, k] < least:
            least = a[i, k]
            which = k
    out[i] = total + least * 100 + which


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("block", BLOCKS)
def test_each_thread_walks_through_a_row(n, block):
    a, skipped = values(3, n, 13, dtype=np.float64), values(4, n, dtype=np.int32)
    out = np.zeros(n)
    row_sums[-(-n // block) + 1, block](a, skipped, out)
    total = np.zeros(n)
    for k in range(13):
        total = np.where(skipped != k, total * 2 + a[:, k], total)
    np.testing.assert_array_equal(out, total + a.min(1) * 100 + a.argmin(1))


@cuda.jit
def hashed(rows, n, out):
    i = cuda.grid(1)
    if i < out.size:
        code = np.uint32(2166136261)
        for k in range(n):
            code = np.uint32((code ^ rows[i, k]) * np.uint32(16777619))
        out[i] = code


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("turns", [0, 1, 40])
def test_recurrences_of_integers(n, turns):
    rows = np.random.default_rng(5).integers(0, 256, (n, 40)).astype(np.uint8)
    out = np.zeros(n, np.uint32)
    hashed[-(-n // 96), 96](rows, turns, out)
    code = np.full(n, 2166136261, np.uint32)
    for k in range(turns):
        code = (code ^ rows[:, k]) * np.uint32(16777619)
    np.testing.assert_array_equal(out, code)


@cuda.jit
def across_barriers(a, steps, inner, out):
    shared = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    kept = np.float32(i % 5)
    last = np.float32(-1)
    for step in range(steps):
        shared[t] = a[i] if i < a.size else np.float32(0)
        cuda.syncthreads()
        total = np.float32(step)
        for k in range(inner):
            total = total * np.float32(0.5) + shared[k]
            last = total
        kept += total
        cuda.syncthreads()
        if i < a.size:
            a[i] = kept
        cuda.syncthreads()
    if i < out.size:
        out[i] = kept * np.float32(2) + last


@pytest.mark.parametrize("block", [3, 16, 40, 64, 200, 256])
@pytest.mark.parametrize("inner", [0, 1, 3, 40])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_values_carried_across_barriers(block, inner, steps):
    inner = min(inner, block)
    blocks = 3
    n = block * blocks - 1
    a = values(6, n)
    out = np.zeros(n, np.float32)
    padded = np.zeros(block * blocks, np.float32)
    padded[:n] = a
    padded = padded.reshape(blocks, block)
    across_barriers[blocks, block](a, steps, inner, out)
    kept = (np.arange(block * blocks) % 5).astype(np.float32).reshape(blocks, block)
    last = np.full((blocks, block), -1, np.float32)
    for step in range(steps):
        total = np.full((blocks, block), step, np.float32)
        for k in range(inner):
            # The multiply-add is fused.
            total = (total.astype(np.float64) * 0.5 + padded[:, k : k + 1]).astype(np.float32)
            last = total
        kept = kept + total
        inside = np.arange(block * blocks).reshape(blocks, block) < n
        padded = np.where(inside, kept, np.float32(0))
    np.testing.assert_allclose(out, (kept * 2 + last).reshape(-1)[:n], rtol=1e-6)


@cuda.jit
def nested(a, outer, inner, out):
    x, y = cuda.grid(2)
    if x < out.shape[1] and y < out.shape[0]:
        count = 0
        total = np.float64(x)
        for u in range(outer):
            count += u + 1
            part = np.float64(0)
            for v in range(u, inner):
                part += a[v, x] * (y + 1)
                count += 1
            if u % 2 == 0:
                total -= part
            else:
                total += part * count
        out[y, x] = total + count


@pytest.mark.parametrize(("outer", "inner"), [(0, 0), (1, 0), (1, 9), (5, 3), (4, 9)])
@pytest.mark.parametrize("shape", [(1, 1), (3, 70), (9, 64), (2, 700)])
@pytest.mark.parametrize("block", [(16, 16), (64, 1), (7, 3)])
def test_loops_in_loops_and_what_a_block_counts(outer, inner, shape, block):
    height, width = shape
    a = values(7, 9, width, dtype=np.float64)
    out = np.zeros(shape)
    nested[(-(-width // block[0]), -(-height // block[1])), block](a, outer, inner, out)
    y, x = np.mgrid[:height, :width]
    total, count = x.astype(np.float64), 0
    for u in range(outer):
        count += u + 1
        part = np.zeros(shape)
        for v in range(u, inner):
            part = part + a[v, x] * (y + 1)
            count += 1
        total = total - part if u % 2 == 0 else total + part * count
    np.testing.assert_array_equal(out, total + count)


@cuda.jit
def smoothed(a, out):
    i = cuda.grid(1)
    if i < a.shape[0]:
        state = np.float32(0)
        for k in range(a.shape[1]):
            state = state * np.float32(0.5) + a[i, k]
            out[i, k] = state


@pytest.mark.parametrize("n", [1, 8, 21, 300])
def test_stores_along_a_row(n):
    a = values(8, n, 30)
    out = np.zeros_like(a)
    smoothed[-(-n // 128), 128](a, out)
    state = np.zeros(n)
    for k in range(30):
        state = (state * 0.5 + a[:, k]).astype(np.float32)
        np.testing.assert_array_equal(out[:, k], state)
    # In place, each thread in its own row.
    smoothed[-(-n // 128), 128](a, a)
    np.testing.assert_array_equal(a, out)


@cuda.jit
def below_the_diagonal(a, b, c):
    j, i = cuda.grid(2)
    if i < c.shape[0] and j <= i:
        total = 0
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


@pytest.mark.parametrize("n", [1, 9, 40, 150])
@pytest.mark.parametrize("block", [(16, 16), (64, 4), (9, 5)])
def test_rows_of_unequal_lengths(n, block):
    a, b = values(9, n, 20, dtype=np.int64), values(10, 20, n, dtype=np.int64)
    c = np.full((n, n), 5, np.int64)
    below_the_diagonal[(-(-n // block[0]), -(-n // block[1])), block](a, b, c)
    np.testing.assert_array_equal(c, np.where(np.tri(n, dtype=bool), a @ b, 5))


def tiled(size):
    @cuda.jit
    def product_in_tiles(a, b, c):
        of_a = cuda.shared.array((size, size), np.float32)
        of_b = cuda.shared.array((size, size), np.float32)
        x, y = cuda.grid(2)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        total = np.float32(0)
        most = np.float32(-1000)
        for tile in range((a.shape[1] + size - 1) // size):
            column, row = tile * size + tx, tile * size + ty
            of_a[ty, tx] = a[y, column] if y < a.shape[0] and column < a.shape[1] else 0
            of_b[ty, tx] = b[row, x] if row < b.shape[0] and x < b.shape[1] else 0
            cuda.syncthreads()
            for k in range(size):
                total += of_a[ty, k] * of_b[k, tx]
                most = max(most, of_b[k, tx] - of_a[ty, k])
            cuda.syncthreads()
        if y < c.shape[0] and x < c.shape[1]:
            c[y, x] = total + most * np.float32(0.5)

    return product_in_tiles


@pytest.mark.parametrize("size", [3, 8, 16, 20, 32])
@pytest.mark.parametrize("shape", [(1, 1, 1), (33, 20, 50), (64, 32, 64)])
def test_products_in_shared_tiles(size, shape):
    rows, inner, columns = shape
    a, b = values(11, rows, inner), values(12, inner, columns)
    c = np.zeros((rows, columns), np.float32)
    tiled(size)[(-(-columns // size), -(-rows // size)), (size, size)](a, b, c)
    # Outside the arrays the tiles contain zeros.
    padded = -(-inner // size) * size
    a, b = np.pad(a, [(0, 0), (0, padded - inner)]), np.pad(b, [(0, padded - inner), (0, 0)])
    most = (b[None] - a[:, :, None]).max(1)
    np.testing.assert_array_equal(c, a @ b + most * np.float32(0.5))
