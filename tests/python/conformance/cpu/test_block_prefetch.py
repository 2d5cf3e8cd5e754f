"""Blocks with barriers that prefetch data of the next block: rows at the end of the array, and empty arrays."""

import numpy as np
import pytest
from harness import module
from weft import cuda


@cuda.jit
def turned(x, y, scale, out, sums):
    part = cuda.shared.array(1024, np.float64)
    tid = cuda.threadIdx.x
    i = cuda.blockIdx.x * cuda.blockDim.x + tid
    part[tid] = x[i] * scale + y[i] if i < x.size else 0.0
    cuda.syncthreads()
    last = min(cuda.blockDim.x, x.size - cuda.blockIdx.x * cuda.blockDim.x) - 1
    if i < x.size:
        out[i] = part[last - tid]
        x[i] = part[tid]
    if tid == 0:
        sums[cuda.blockIdx.x] = part[0] + part[max(last, 0)]


@pytest.mark.parametrize("block", [1, 7, 32, 100, 256, 1024])
@pytest.mark.parametrize("n", [0, 1, 31, 256, 257, 1000, 5000])
def test_rows(n, block):
    blocks = max(-(-n // block), 1)
    x, y = np.arange(n, dtype=np.float64), np.arange(n) % 7 + 0.5
    out, sums = np.full(n + 50, -1.0), np.zeros(blocks)
    whole = x * 2 + y
    turned[blocks, block](x, y, 2.0, out[:n], sums)
    parts = [whole[at : at + block] for at in range(0, n, block)]
    np.testing.assert_array_equal(x, whole)
    np.testing.assert_array_equal(out[:n], np.concatenate([part[::-1] for part in parts]) if n else [])
    np.testing.assert_array_equal(out[n:], -1.0)
    np.testing.assert_array_equal(sums, [part[0] + part[-1] for part in parts] if n else [0.0])


def tile_of(side):
    """A transpose with tiles of `side` times `side`."""

    @cuda.jit
    def transpose(a, out):
        tile = cuda.shared.array((side, side + 1), np.int32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        x, y = cuda.blockIdx.x * side + tx, cuda.blockIdx.y * side + ty
        if x < a.shape[1] and y < a.shape[0]:
            tile[ty, tx] = a[y, x]
        cuda.syncthreads()
        x, y = cuda.blockIdx.y * side + tx, cuda.blockIdx.x * side + ty
        if x < out.shape[1] and y < out.shape[0]:
            out[y, x] = tile[tx, ty]

    return transpose


@pytest.mark.parametrize("side", [8, 16, 32])
@pytest.mark.parametrize("shape", [(1, 1), (16, 16), (33, 70), (128, 5), (64, 256)])
def test_tiles(side, shape):
    rows, columns = shape
    a = np.random.default_rng(1).integers(-1000, 1000, shape, dtype=np.int32)
    out = np.zeros((columns, rows), np.int32)
    tile_of(side)[(-(-columns // side), -(-rows // side)), (side, side)](a, out)
    np.testing.assert_array_equal(out, a.T)


@cuda.jit
def turns(x, out):
    part = cuda.shared.array(64, np.int64)
    tid = cuda.threadIdx.x
    total = 0
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        total += x[i]
    part[tid] = total
    cuda.syncthreads()
    if tid == 0:
        for k in range(64):
            total = part[k] if k == 0 else total + part[k]
        cuda.atomic.add(out, 0, total)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 4000, 40000])
@pytest.mark.parametrize("blocks", [1, 2, 9])
def test_turns_by_the_size_of_the_grid(n, blocks):
    x, out = np.arange(n, dtype=np.int32) % 1001, np.zeros(1, np.int64)
    turns[blocks, 64](x, out)
    assert out[0] == x.sum(dtype=np.int64)


@cuda.jit
def histogram(x, bins):
    counts = cuda.shared.array(16, np.int32)
    tid = cuda.threadIdx.x
    if tid < 16:
        counts[tid] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(counts, x[i] % 16, 1)
        cuda.atomic.max(counts, 15, 3)
    cuda.syncthreads()
    if tid < 16:
        cuda.atomic.add(bins, tid, counts[tid])


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 63, 1000])
@pytest.mark.parametrize("block", [16, 17, 64])
def test_several_counts_at_a_time(n, block):
    x, bins = np.random.default_rng(n).integers(0, 15, n, dtype=np.uint8), np.zeros(16, np.int32)
    histogram[2, block](x, bins)
    expected = np.bincount(x, minlength=16)
    starts = np.arange(n) // block % 2
    expected[15] = 3 * len(np.unique(starts))
    np.testing.assert_array_equal(bins, expected)


def many_barriers(n):
    """A kernel with this number of barriers; after each, it recomputes the block's first element."""
    lines = [
        "from weft import cuda",
        "import numpy as np",
        "@cuda.jit",
        "def kernel(x, width, out):",
        "    part = cuda.shared.array(64, np.int64)",
        "    tid = cuda.threadIdx.x",
        "    first = cuda.blockIdx.x * width",
        "    part[tid] = x[first + tid]",
        "    cuda.syncthreads()",
    ]
    for k in range(n):
        lines += [f"    part[(tid + {k}) % 64] += x[first + tid]", "    cuda.syncthreads()"]
    return module("\n".join([*lines, "    out[first + tid] = part[tid]", ""])).kernel


@pytest.mark.parametrize("n", [2, 40])
def test_parts_of_large_kernels(n):
    x = np.random.default_rng(n).integers(-99, 99, 320)
    out = np.zeros_like(x)
    many_barriers(n)[5, 64](x, 64, out)
    blocks = x.reshape(5, 64)
    expected = blocks + sum(np.roll(blocks, k, 1) for k in range(n))
    np.testing.assert_array_equal(out, expected.ravel())
