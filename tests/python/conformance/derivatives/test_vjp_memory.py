"""Adjoint kernels of kernels with shared and local arrays, barriers, and updates in place."""

from __future__ import annotations

import math

import numpy as np
import pytest
from gradients import check, launched
from test_vjp import refused
from weft import cuda

T = 8
B = 32


def uniform(*shape):
    return np.random.default_rng(sum(shape)).random(shape)


@cuda.jit
def tiles(a, b, out):
    """The product of matrices by tiles: the contents of the tiles are used, and overwritten."""
    left, right = cuda.shared.array((T, T), np.float64), cuda.shared.array((T, T), np.float64)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    i, j = cuda.blockIdx.y * T + y, cuda.blockIdx.x * T + x
    s = 0.0
    for t in range((a.shape[1] + T - 1) // T):
        left[y, x] = a[i, t * T + x] if i < a.shape[0] and t * T + x < a.shape[1] else 0.0
        right[y, x] = b[t * T + y, j] if t * T + y < b.shape[0] and j < b.shape[1] else 0.0
        cuda.syncthreads()
        for k in range(T):
            s += left[y, k] * right[k, x]
        cuda.syncthreads()
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = s


@cuda.jit
def block_sums(x, out):
    """A tree of sums in shared memory."""
    part = cuda.shared.array(B, np.float64)
    i, tid = cuda.grid(1), cuda.threadIdx.x
    part[tid] = math.sin(x[i]) if i < x.size else 0.0
    cuda.syncthreads()
    step = B // 2
    while step > 0:
        if tid < step:
            part[tid] += part[tid + step]
        cuda.syncthreads()
        step //= 2
    if tid == 0:
        out[cuda.blockIdx.x] = part[0] * part[0]


@cuda.jit
def block_norms(x, out):
    """A tree whose steps need the old values, which the forward sweep keeps."""
    part = cuda.shared.array(B, np.float64)
    i, tid = cuda.grid(1), cuda.threadIdx.x
    part[tid] = x[i] if i < x.size else 0.0
    cuda.syncthreads()
    step = B // 2
    while step > 0:
        if tid < step:
            part[tid] = math.hypot(part[tid], part[tid + step] + 0.25)
        cuda.syncthreads()
        step //= 2
    if tid == 0:
        out[cuda.blockIdx.x] = part[0]


@cuda.jit
def row_maxima(x, out):
    """A tree of maxima for each row, in an outer loop."""
    part = cuda.shared.array(B, np.float64)
    tid = cuda.threadIdx.x
    for row in range(cuda.blockIdx.x, x.shape[0], cuda.gridDim.x):
        best = -1e30
        for k in range(3):
            best = max(best, x[row, tid + k * B])
        part[tid] = best
        cuda.syncthreads()
        step = B // 2
        while step > 0:
            if tid < step:
                part[tid] = max(part[tid], part[tid + step])
            cuda.syncthreads()
            step //= 2
        if tid == 0:
            out[row] = part[0] * part[0]
        cuda.syncthreads()


@cuda.jit
def halo(u, w, out):
    """A stencil of a tile with a border; its values are used in a sum that runs again."""
    tile = cuda.shared.array(B + 4, np.float64)
    i, tid = cuda.grid(1), cuda.threadIdx.x
    first = cuda.blockIdx.x * cuda.blockDim.x
    for k in range(tid, B + 4, cuda.blockDim.x):
        tile[k] = math.exp(-u[first + k]) if first + k < u.size else 0.0
    cuda.syncthreads()
    if i < out.size:
        s = 0.0
        for k in range(w.size):
            s += w[k] * tile[tid + k]
        out[i] = s * s


@cuda.jit
def steps(u, n, out):
    """Time steps of a block in shared memory, with two arrays in turn: linear, so no step is needed again."""
    now, after = cuda.shared.array(B + 2, np.float64), cuda.shared.array(B + 2, np.float64)
    i, tid = cuda.grid(1), cuda.threadIdx.x
    now[tid + 1] = u[i]
    if tid == 0:
        now[0] = 0.0
        now[B + 1] = 0.0
    cuda.syncthreads()
    for _ in range(n):
        after[tid + 1] = now[tid + 1] + 0.25 * (now[tid] - 2.0 * now[tid + 1] + now[tid + 2])
        cuda.syncthreads()
        now[tid + 1] = after[tid + 1]
        cuda.syncthreads()
    out[i] = now[tid + 1] * u[i]


@cuda.jit
def binned(x, out):
    """Additions to shared memory, whose sums are used by all threads."""
    sums = cuda.shared.array(4, np.float64)
    i, tid = cuda.grid(1), cuda.threadIdx.x
    if tid < 4:
        sums[tid] = 0.5
    cuda.syncthreads()
    cuda.atomic.add(sums, i % 4, x[i] * x[i])
    cuda.syncthreads()
    out[i] = x[i] / sums[(i + 1) % 4]


@cuda.jit
def sorted_weights(x, index, out):
    """Integers in shared memory select what is loaded."""
    order = cuda.shared.array(B, np.int64)
    tid = cuda.threadIdx.x
    order[tid] = index[cuda.grid(1)]
    cuda.syncthreads()
    out[cuda.grid(1)] = x[order[B - 1 - tid]] ** 2 if order[tid] > 5 else 2.0 * x[order[tid]]


@cuda.jit
def exchanged(x, y, out):
    """Threads of a block exchange values through an array in global memory."""
    i, tid = cuda.grid(1), cuda.threadIdx.x
    y[i] = x[i] * x[i]
    cuda.syncthreads()
    out[i] = 2.0 * y[cuda.blockIdx.x * cuda.blockDim.x + (tid + 3) % cuda.blockDim.x]


@cuda.jit
def polynomials(x, out):
    """A local array, filled and used in loops that are not unrolled."""
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        powers = cuda.local.array(12, np.float64)
        for k in range(12):
            powers[k] = x[i] * k + 1.0
        s = 0.0
        for k in range(12):
            for m in range(12):
                s += powers[k] * powers[m] * (k - m) ** 2
        out[i] = s


@cuda.jit
def local_bins(x, out):
    """Elements of a local array at indices that are known at run time."""
    i = cuda.grid(1)
    if i < out.shape[0]:
        sums = cuda.local.array(5, np.float64)
        for k in range(5):
            sums[k] = 0.0
        for k in range(x.shape[1]):
            sums[(k * k + i) % 5] += math.sin(x[i, k])
        for k in range(5):
            out[i, k] = sums[k] * sums[(k + 1) % 5]


@cuda.jit
def recurrence(x, out):
    """Updates of a local array that need the old values: the forward sweep keeps them."""
    i = cuda.grid(1)
    if i < out.size:
        state = cuda.local.array(3, np.float64)
        for k in range(3):
            state[k] = x[i]
        for k in range(20):
            state[k % 3] = math.sin(state[k % 3]) + 0.5 * state[(k + 1) % 3] * x[i]
        out[i] = state[0] + state[1] * state[2]


@cuda.jit
def in_place(a, y):
    """Each thread loads its elements before it stores them: the argument has the old values."""
    for i in range(cuda.grid(1), y.shape[0], cuda.gridsize(1)):
        for k in range(y.shape[1]):
            y[i, k] = math.sin(a * y[i, k]) * y[i, k]


@cuda.jit
def mirrored(y):
    i = cuda.threadIdx.x
    v = y[B - 1 - i] * y[i]
    cuda.syncthreads()
    y[i] = v * v


@cuda.jit
def shuffles(x, out):
    """Sums over a warp, and lanes that keep their own values at the end of a segment."""
    i = cuda.grid(1)
    v = math.sin(x[i])
    step = 16
    while step > 0:
        v += cuda.shfl_down_sync(0xFFFFFFFF, v, step)
        step //= 2
    u = cuda.shfl_xor_sync(0xFFFFFFFF, v * x[i], 3)
    w = cuda.shfl_up_sync(0xFFFFFFFF, u * u, 2, 8)
    out[i] = u * w + cuda.shfl_down_sync(0xFFFFFFFF, x[i] * w, 5, 16) * x[i]


@cuda.jit
def of_block(x, out):
    """A sum of a block, whose code is written in Python."""
    i = cuda.grid(1)
    out[i] = x[i] / cuda.coop.block.sum(math.sin(x[i]))


@cuda.jit
def scans(x, out):
    """Two scans: the last warp has fewer lanes, and no adjoint comes from those that do not exist."""
    i = cuda.grid(1)
    v = cuda.coop.block.inclusive_sum(x[i])
    out[i] = cuda.coop.block.inclusive_sum(v * v)


@cuda.jit
def half_of_warps(x, out):
    """Only the lanes of a mask shuffle."""
    i = cuda.grid(1)
    if cuda.laneid < 16:
        v = cuda.shfl_up_sync(0xFFFF, x[i] * x[i], 3)
        out[i] = v * x[i]
    else:
        out[i] = math.sin(x[i])


@cuda.jit
def dynamic(x, w, skip, out):
    """The length of the array is that of the kernel's launch, also in the adjoint kernel."""
    tile = cuda.shared.array(0, np.float64)
    rest = tile[skip:]
    i, tid = cuda.grid(1), cuda.threadIdx.x
    rest[tid] = x[i] * w[tid] if i < x.size else 0.0
    cuda.syncthreads()
    if i < x.size:
        out[i] = tile[tile.size - 1 - tid] * rest[tid] + tile.size


@cuda.jit
def dynamic_and_static(x, out):
    """A tree in dynamic shared memory, whose old values are needed, beside a static array."""
    tree, row = cuda.shared.array(0, np.complex128), cuda.shared.array(B, np.float64)
    i, tid = cuda.grid(1), cuda.threadIdx.x
    row[tid] = math.sin(x[i])
    cuda.syncthreads()
    tree[tid] = complex(row[B - 1 - tid], x[i])
    cuda.syncthreads()
    step = B // 2
    while step > 0:
        if tid < step:
            tree[tid] = tree[tid] * tree[tid + step] + tree[tid]
        cuda.syncthreads()
        step //= 2
    if tid == 0:
        out[cuda.blockIdx.x] = tree[0].real * tree[0].imag


DYNAMIC = {
    "exact": (dynamic, 3, B, (uniform(90), uniform(B), 0, np.zeros(90)), ["out"], 8 * B),
    "odd": (dynamic, 3, B, (uniform(90), uniform(B), 1, np.zeros(90)), ["out"], 8 * B + 8),
    "with_rest": (dynamic, 3, B, (uniform(90), uniform(B), 0, np.zeros(90)), ["out"], 8 * B + 7),
    "with_static": (dynamic_and_static, 2, B, (uniform(2 * B), np.zeros(2)), ["out"], 16 * B),
}


@pytest.mark.parametrize("case", DYNAMIC)
def test_dynamic_shared_memory(case):
    kernel, grid, block, args, outputs, shared = DYNAMIC[case]
    check(kernel, grid, block, args, outputs, shared=shared)
    x = args[0]
    along = np.random.default_rng(3).standard_normal(x.shape)
    given = {name: np.zeros_like(value) for name, value in zip("xwo", (x, x[:B], args[-1]), strict=True)}
    given["x"][...] = along
    fwd = cuda.jvp(kernel)
    names = [name[0] for name in fwd.tangents(*args)]
    out = np.zeros_like(args[-1])
    fwd[grid, block, 0, shared](*args[:-1], out, *(given[name] for name in names))
    step = 1e-6
    ahead, behind = (launched(kernel, grid, block, (x + way * along, *args[1:]), shared)[-1] for way in (step, -step))
    np.testing.assert_allclose(given["o"], (ahead - behind) / (2 * step), 1e-6, 1e-8 * np.abs(out).max())


@cuda.jit
def rolls(x, n, y):
    tile = cuda.shared.array(8, np.float64)
    i = cuda.threadIdx.x
    tile[i] = x[i]
    for _ in range(n):
        cuda.syncthreads()
        v = math.sin(tile[7 - i])
        cuda.syncthreads()
        tile[i] = v
    y[i] = tile[i]


@cuda.jit
def overwrites(x, n, y):
    tile = cuda.local.array(8, np.float64)
    for k in range(8):
        tile[k] = x[k]
    s = 0.0
    for k in range(n):
        s += tile[k] * tile[k]
    for k in range(8):
        tile[k] = s
    y[0] = tile[3]


CASES = {
    "rolls": (rolls, 1, 8, (uniform(8), 5, np.zeros(8)), ["y"]),
    "overwrites": (overwrites, 1, 1, (uniform(8), 5, np.zeros(8)), ["y"]),
    "tiles": (tiles, (2, 3), (T, T), (uniform(19, 21), uniform(21, 13), np.zeros((19, 13))), ["out"]),
    "block_sums": (block_sums, 3, B, (uniform(80), np.zeros(3)), ["out"]),
    "block_norms": (block_norms, 3, B, (uniform(80), np.zeros(3)), ["out"]),
    "row_maxima": (row_maxima, 2, B, (uniform(5, 3 * B), np.zeros(5)), ["out"]),
    "halo": (halo, 3, B, (uniform(90), uniform(5), np.zeros(86)), ["out"]),
    "steps": (steps, 2, B, (uniform(2 * B), 7, np.zeros(2 * B)), ["out"]),
    "binned": (binned, 2, B, (uniform(2 * B), np.zeros(2 * B)), ["out"]),
    "sorted_weights": (
        sorted_weights,
        2,
        B,
        (uniform(2 * B), np.arange(2 * B) * 7 % (2 * B), np.zeros(2 * B)),
        ["out"],
    ),
    "exchanged": (exchanged, 2, B, (uniform(2 * B), np.zeros(2 * B), np.zeros(2 * B)), ["out"]),
    "polynomials": (polynomials, 1, 8, (uniform(20), np.zeros(20)), ["out"]),
    "local_bins": (local_bins, 1, 16, (uniform(10, 30), np.zeros((10, 5))), ["out"]),
    "recurrence": (recurrence, 1, 16, (uniform(10), np.zeros(10)), ["out"]),
    "shuffles": (shuffles, 2, 64, (uniform(128), np.zeros(128)), ["out"]),
    "of_block": (of_block, 2, 96, (uniform(192), np.zeros(192)), ["out"]),
    "scans": (scans, 3, 40, (uniform(120), np.zeros(120)), ["out"]),
    "half_of_warps": (half_of_warps, 2, 40, (uniform(80), np.zeros(80)), ["out"]),
    "in_place": (in_place, 1, 8, (1.3, uniform(20, 5)), ["y"]),
    "mirrored": (mirrored, 1, B, (uniform(B),), ["y"]),
}


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_differences(case):
    # All together: 10 s.
    kernel, grid, block, args, outputs = CASES[case]
    check(kernel, grid, block, args, outputs)


def test_what_is_not_supported_is_an_error_at_its_line():
    x, y = np.zeros(8), np.zeros(8)

    def leaves(x, y):
        tile = cuda.shared.array(8, np.float64)
        i = cuda.threadIdx.x
        v = x[i]
        while v > 0.5:
            tile[i] = v
            cuda.syncthreads()
            v *= tile[7 - i]
        y[i] = v

    head, line = refused(leaves, x, y)
    assert "a barrier under a condition that may differ in the block" in head
    assert line == "cuda.syncthreads()"

    def two_types(x, y):
        tile, order = cuda.shared.array(0, np.float64), cuda.shared.array(0, np.int32)
        tile[0] = x[0]
        order[2] = 0
        y[0] = tile[order[2]]

    head, line = refused(two_types, x, y)
    assert "dynamic shared memory with elements of several types" in head
    assert line == "y[0] = tile[order[2]]"

    def of_grid(x, y):
        y[0] = x[0]
        cuda.cg.this_grid().sync()

    head, line = refused(of_grid, x, y)
    assert "this barrier" in head
