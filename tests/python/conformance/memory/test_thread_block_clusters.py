"""Thread block clusters: barriers, shared memory of other blocks, copies to several blocks. About 8 seconds."""

import numpy as np
import pytest
import weft
from harness import copied, module
from weft import cuda
from weft.errors import CompileError


def launch(kernel, grid, block, cluster, *args):
    """The arguments after a launch in clusters; the originals are not changed."""
    values = [copied(arg) for arg in args]
    kernel[grid, block, 0, 0, cluster](*values)
    return values


@cuda.jit
def positions(out):
    if cuda.threadIdx.x == 0:
        out[cuda.blockIdx.z, cuda.blockIdx.y, cuda.blockIdx.x, 0] = cuda.cluster.rank()
        out[cuda.blockIdx.z, cuda.blockIdx.y, cuda.blockIdx.x, 1] = cuda.cluster.size()


@pytest.mark.parametrize("cluster", [None, 2, (2, 1, 2), (1, 4), (2, 2, 2)])
def test_ranks_count_along_x_first(cluster):
    width, height, depth = (1, 1, 1) if cluster is None else (*np.atleast_1d(cluster), 1, 1)[:3]
    out = np.full((2, 4, 6, 2), -1, np.int32)
    got = launch(positions, (6, 4, 2), 32, cluster, out)[0]
    k, j, i = np.indices(out.shape[:3])
    ranks = i % width + width * (j % height + height * (k % depth))
    np.testing.assert_array_equal(got[..., 0], ranks)
    np.testing.assert_array_equal(got[..., 1], width * height * depth)


@cuda.jit
def row_sums(x, out):
    """The blocks of a cluster sum one row: each a part, and the first block their sums."""
    parts = cuda.shared.array(128, np.float32)
    total = cuda.shared.array(8, np.float32)
    t, rank, size = cuda.threadIdx.x, cuda.cluster.rank(), cuda.cluster.size()
    row = cuda.blockIdx.x // size
    part = np.float32(0)
    for i in range(rank * 128 + t, x.shape[1], 128 * size):
        part += x[row, i]
    parts[t] = part
    cuda.syncthreads()
    if t == 0:
        for k in range(1, 128):
            part += parts[k]
        cuda.cluster.shared(total, 0)[rank] = part
    cuda.cluster.sync()
    if rank == 0 and t == 0:
        part = np.float32(0)
        for k in range(size):
            part += total[k]
        out[row] = part


@pytest.mark.parametrize("cluster", [1, 2, 8])
def test_a_cluster_sums_a_row(cluster):
    x = np.random.default_rng(cluster).integers(0, 100, (5, 1000)).astype(np.float32)
    out = launch(row_sums, 5 * cluster, 128, cluster, x, np.zeros(5, np.float32))[1]
    np.testing.assert_array_equal(out, x.sum(1))


BINS = 64


@cuda.jit
def histogram(values, out):
    """The bins are distributed over the blocks of the cluster, as in CUDA's programming guide."""
    own = cuda.shared.array(BINS, np.int32)
    t, rank = cuda.threadIdx.x, cuda.cluster.rank()
    for i in range(t, BINS, cuda.blockDim.x):
        own[i] = 0
    cuda.cluster.sync()
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        value = values[i]
        cuda.atomic.add(cuda.cluster.shared(own, value // BINS), value % BINS, 1)
    cuda.cluster.sync()
    for i in range(t, BINS, cuda.blockDim.x):
        cuda.atomic.add(out, rank * BINS + i, own[i])


@pytest.mark.parametrize("cluster", [1, 2, 4])
def test_a_histogram_is_distributed_over_a_cluster(cluster):
    values = np.random.default_rng(3).integers(0, BINS * cluster, 3000).astype(np.int32)
    out = launch(histogram, 2 * cluster, 64, cluster, values, np.zeros(BINS * cluster, np.int32))[1]
    np.testing.assert_array_equal(out, np.bincount(values, minlength=BINS * cluster))


@cuda.jit
def around(x, out):
    """Each block hands its part to the next one: a slice, and an element of two dimensions."""
    cells = cuda.shared.array((4, 32), np.float64)
    t, rank, size = cuda.threadIdx.x, cuda.cluster.rank(), cuda.cluster.size()
    for k in range(4):
        cells[k, t] = x[cuda.blockIdx.x, k, t]
    cuda.cluster.sync()
    other = cuda.cluster.shared(cells, (rank + 1) % size)
    for k in range(3):
        out[cuda.blockIdx.x, k, t] = other[k, 31 - t]
    last = cuda.cluster.shared(cells[3], (rank + 1) % size)
    out[cuda.blockIdx.x, 3, t] = last[t]
    cuda.cluster.sync()
    other[0, t] += np.float64(rank)
    cuda.cluster.sync()
    out[cuda.blockIdx.x, 4, t] = cells[0, t]


def test_blocks_read_and_write_each_others_arrays():
    x = np.random.default_rng(4).random((6, 4, 32))
    out = launch(around, 6, 32, 3, x, np.zeros((6, 5, 32)))[1]
    following = x.reshape(2, 3, 4, 32)[:, [1, 2, 0]].reshape(6, 4, 32)
    np.testing.assert_array_equal(out[:, :3], following[:, :3, ::-1])
    np.testing.assert_array_equal(out[:, 3], following[:, 3])
    np.testing.assert_array_equal(out[:, 4], x[:, 0] + np.array([2, 0, 1, 2, 0, 1])[:, None])


@cuda.jit
def dynamic(x, out):
    mine = cuda.shared.array(0, np.int32)
    swizzled = cuda.shared.array((8, 32), np.int32, swizzle=128)
    t, other = cuda.threadIdx.x, 1 - cuda.cluster.rank()
    mine[t] = x[cuda.grid(1)]
    for k in range(8):
        swizzled[k, t] = k * x[cuda.grid(1)]
    cuda.cluster.sync()
    out[cuda.grid(1)] = cuda.cluster.shared(mine, other)[t] + cuda.cluster.shared(swizzled, other)[5, t]
    cuda.cluster.sync()


def test_dynamic_and_swizzled_arrays_of_other_blocks():
    x = np.arange(128, dtype=np.int32)
    out = np.zeros_like(x)
    dynamic[4, 32, 0, 128, 2](x, out)
    np.testing.assert_array_equal(out, 6 * x.reshape(2, 2, 32)[:, ::-1].ravel())


@cuda.jit
def handed_on(x, out):
    """The second block computes; the first one has the elements, and waits until each has been taken."""
    cell = cuda.shared.array(32, np.float32)
    full, empty = cuda.barrier(32), cuda.barrier(32)
    t, rank = cuda.threadIdx.x, cuda.cluster.rank()
    cuda.cluster.sync()
    for s in range(x.shape[0]):
        if rank == 0:
            empty.wait(s & 1 ^ 1)
            cuda.cluster.shared(cell, 1)[t] = x[s, t]
            cuda.cluster.shared(full, 1).arrive()
        else:
            full.wait(s)
            out[s, t] = cell[31 - t] + 1
            cuda.cluster.shared(empty, 0).arrive()
    cuda.cluster.sync()


def test_threads_arrive_at_barriers_of_another_block():
    x = np.random.default_rng(5).random((9, 32), np.float32)
    np.testing.assert_array_equal(launch(handed_on, 2, 32, 2, x, np.zeros_like(x))[1], x[:, ::-1] + 1)


@cuda.jit
def broadcast(x, boxes, out, mask):
    """The first block copies a row and a box to the blocks of a mask."""
    row = cuda.shared.array(64, np.int32)
    box = cuda.shared.array((8, 32), np.float32, swizzle=128)
    t, rank = cuda.threadIdx.x, cuda.cluster.rank()
    row[t] = row[t + 32] = -1
    bars = cuda.barrier(1, 2)
    cuda.cluster.sync()
    receives = mask >> rank & 1
    if t == 0 and receives:
        bars[1].expect(256 + 1024)
    if t == 0 and rank == 0:
        cuda.copy_async(row, x[1], bars[1], multicast=mask)
        cuda.copy_async(box, boxes[4, 32], bars[1], multicast=mask)
    if receives:
        bars[1].wait(0)
    out[cuda.blockIdx.x, t] = row[t] + row[t + 32]
    if receives:
        out[cuda.blockIdx.x, t] += np.int32(box[7, t])
    cuda.cluster.sync()


@pytest.mark.parametrize("mask", [0b1, 0b11, 0b1010, 0b1111])
def test_blocks_of_a_mask_receive_a_copy(mask):
    x = np.arange(128, dtype=np.int32).reshape(2, 64)
    given = np.random.default_rng(6).integers(0, 100, (16, 64)).astype(np.float32)
    boxes = cuda.tensor_map(cuda.to_device(given), (8, 32), swizzle=128)
    out = np.zeros((4, 32), np.int32)
    broadcast[4, 32, 0, 0, 4](x, boxes, out, mask)
    for rank in range(4):
        received = x[1, :32] + x[1, 32:] + given[11, 32:].astype(np.int32)
        np.testing.assert_array_equal(out[rank], received if mask >> rank & 1 else -2)


STAGES = 2
T = cuda.mma.tile(32, 32, 16, a=np.float16, b=np.float16, c=np.float32)


@cuda.jit
def product(a, b, c, n_steps):
    """Two blocks compute 128 rows: each copies its rows of A, and half of the rows of B to both."""
    x = cuda.shared.array((STAGES, 64, 32), np.float16)
    y = cuda.shared.array((STAGES, 32, 64), np.float16)
    full, empty = cuda.barrier(1, STAGES), cuda.barrier(8, STAGES)
    warp, lane, rank = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32, cuda.cluster.rank()
    i, j = cuda.blockIdx.y * 64, cuda.blockIdx.x * 64
    cuda.cluster.sync()
    if warp == 4:
        if lane == 0:
            for s in range(n_steps):
                empty[s % STAGES].wait(s // STAGES & 1 ^ 1)
                bar = full[s % STAGES]
                bar.expect(x[0].nbytes + y[0].nbytes)
                cuda.copy_async(x[s % STAGES], a[i, s * 32], bar)
                half = y[s % STAGES, rank * 16 : rank * 16 + 16]
                cuda.copy_async(half, b[s * 32 + rank * 16, j], bar, multicast=3)
    else:
        row, column = warp // 2 * 32, warp % 2 * 32
        acc = T.zeros()
        for s in range(n_steps):
            full[s % STAGES].wait(s // STAGES & 1)
            for k in range(0, 32, 16):
                acc = T.mma(T.a(x[s % STAGES], row, k), T.b(y[s % STAGES], k, column), acc)
            cuda.syncwarp()
            if lane < 2:
                cuda.cluster.shared(empty, lane)[s % STAGES].arrive()
        T.store(c, i + row, j + column, acc)
    cuda.cluster.sync()


@pytest.mark.parametrize("k", [32, 160])
def test_a_product_with_multicast(k):
    rng = np.random.default_rng(k)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((256, k), (k, 128)))
    maps = cuda.tensor_map(cuda.to_device(a), (64, 32)), cuda.tensor_map(cuda.to_device(b), (16, 64))
    c = np.zeros((256, 128), np.float32)
    product[(2, 4), 160, 0, 0, (1, 2)](*maps, c, k // 32)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


ERRORS = """
import numpy as np
from weft import cuda

@cuda.jit
def kernel(x):
    cell = cuda.shared.array(32, np.int32)
    bar = cuda.barrier(1)
    t, rank = cuda.threadIdx.x, cuda.cluster.rank()
    {body}
"""


@pytest.mark.cpu
@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("cuda.cluster.shared(cell, x[0])[t] = 1", IndexError, "no block of this rank"),
        ("cuda.cluster.shared(bar, 1 - rank).arrive()", RuntimeError, "has not made the barrier"),
        ("cuda.copy_async(cell, x, bar, multicast=3)", ValueError, "must have made the barrier"),
        ("cuda.cluster.sync(); cuda.copy_async(cell, x, bar, multicast=x[0])", ValueError, "blocks of the cluster"),
        ("if rank == 1: bar.wait(0)\n    cuda.cluster.sync()", RuntimeError, "no thread can complete this phase"),
        (
            "if t == 0:\n        cuda.cluster.sync()\n    else:\n        cuda.syncthreads()",
            RuntimeError,
            "can never come to this barrier",
        ),
        (
            "if t == 0 or rank == 1:\n        cuda.cluster.sync()\n    else:\n        cuda.syncthreads()",
            RuntimeError,
            "can never come to this barrier",
        ),
    ],
    ids=["rank", "arrival", "multicast", "mask", "phase", "block", "blocks"],
)
def test_what_no_cluster_can_do_is_an_error(body, error, message):
    kernel = module(ERRORS.format(body=body)).kernel
    with pytest.raises(error, match=message):
        kernel[2, 32, 0, 0, 2](np.full(32, 4, np.int32))


@cuda.jit
def ends_early(out):
    cell = cuda.shared.array(32, np.int32)
    t, rank = cuda.threadIdx.x, cuda.cluster.rank()
    cell[t] = t
    cuda.cluster.sync()
    if rank == 1:
        cuda.syncthreads()
        out[t] = cuda.cluster.shared(cell, 0)[t]


@pytest.mark.cpu
def test_the_memory_of_a_block_that_has_ended_is_overwritten():
    out = launch(ends_early, 2, 32, 2, np.zeros(32, np.int32))[0]
    np.testing.assert_array_equal(out, np.full(32, 0xCDCDCDCD, np.uint32).view(np.int32))


def test_sms_without_clusters_are_an_error():
    types = (weft.int32[::1], weft.int32[::1])
    ptx = cuda.compile_ptx(histogram.py_func, types, cc=(9, 0))[0]
    assert all(text in ptx for text in ("barrier.cluster.arrive.release;", "mapa.u64", "%cluster_ctarank"))
    with pytest.raises(CompileError, match="needs `sm_90` or newer"):
        cuda.compile_ptx(histogram.py_func, types, cc=(8, 0))
