"""Loops whose exits depend on shared memory that is the same for all threads, beside those whose exits are not."""

import numpy as np
import pytest
from harness import run
from weft import _weft, cuda

WIDE = 32


def features(kernel):
    return {name for _, _, names in _weft.plan_features(kernel) for name in names}


@cuda.jit
def until_zero(bins, x, out):
    tile = cuda.shared.array(WIDE, np.int64)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    total = 0
    for k in range(bins.shape[0]):
        cuda.syncthreads()
        tile[tid] = bins[k, tid]
        cuda.syncthreads()
        for a in range(WIDE):
            charge = tile[a]
            if charge == 0:
                break
            total = 3 * total + charge * x[a, i]
    out[i] = total


@cuda.jit
def until_zero_in_the_condition(bins, x, out):
    tile = cuda.shared.array(WIDE, np.int64)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    total = 0
    for k in range(bins.shape[0]):
        cuda.syncthreads()
        tile[tid] = bins[k, tid]
        cuda.syncthreads()
        for a in range(WIDE):
            if tile[a] == 0:
                break
            total = 3 * total + tile[a] * x[a, i]
    out[i] = total


@cuda.jit
def lengths_in_shared_memory(bins, x, out):
    tile = cuda.shared.array(WIDE, np.int64)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    total = 0
    tile[tid] = bins[0, tid]
    cuda.syncthreads()
    n = abs(tile[3]) % WIDE
    for a in range(n):
        total = 3 * total + tile[a] * x[a, i]
    out[i] = total


@cuda.jit
def written_by_the_same_thread(bins, x, out):
    """Each thread reads its own writes: there is no race, and no broadcast."""
    tile = cuda.shared.array((WIDE, WIDE), np.int64)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    total = 0
    for a in range(WIDE):
        tile[a, tid] = bins[0, a] * (tid % 3)
    for a in range(WIDE):
        if tile[a, tid] == 0:
            break
        total = 3 * total + tile[a, tid] * x[a, i]
    cuda.syncthreads()
    out[i] = total + tile[tid, 0]


@cuda.jit
def written_in_the_loop(bins, x, out):
    """One thread changes the element in each iteration, between two other barriers."""
    tile = cuda.shared.array(WIDE, np.int64)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    total = 0
    tile[tid] = bins[0, tid]
    cuda.syncthreads()
    for a in range(WIDE):
        value = tile[a % 4]
        cuda.syncthreads()
        if tid == 0:
            tile[a % 4] = value + a
        cuda.syncthreads()
        total = 3 * total + value * x[a, i]
    out[i] = total


KERNELS = [
    until_zero, until_zero_in_the_condition, lengths_in_shared_memory, written_by_the_same_thread, written_in_the_loop,
]  # fmt: skip


@pytest.mark.parametrize("zeros", [0.0, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.py_func.__name__)
def test_exits_that_depend_on_shared_memory(kernel, zeros):
    random = np.random.default_rng(4)
    bins = np.where(random.random((5, WIDE)) < zeros, 0, random.integers(1, 9, (5, WIDE)))
    x = random.integers(-3, 4, (WIDE, 2 * WIDE))
    run(kernel, 2, WIDE, bins, x, np.zeros(2 * WIDE, np.int64))


@pytest.mark.cpu
@pytest.mark.parametrize(
    "kernel", [until_zero, until_zero_in_the_condition], ids=lambda kernel: kernel.py_func.__name__
)
def test_such_loops_are_interchanged(kernel):
    kernel[2, WIDE](np.ones((5, WIDE), np.int64), np.ones((WIDE, 2 * WIDE), np.int64), np.zeros(2 * WIDE, np.int64))
    names = features(kernel)
    assert {"loop-interchange", "strip-mining"} <= names
    assert not names & {"masked-loop", "divergent-exit"}


@cuda.jit
def potential(atoms, out):
    """Four values of each thread in a local array; rows of 8 threads."""
    tile = cuda.shared.array((8, 4), np.float32)
    energy = cuda.local.array(4, np.float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    tid = ty * 8 + tx
    for m in range(4):
        energy[m] = np.float32(0)
    for k in range(atoms.shape[0]):
        cuda.syncthreads()
        if tid < 32:
            tile[tid // 4, tid % 4] = atoms[k, tid // 4, tid % 4]
        cuda.syncthreads()
        for a in range(8):
            charge = tile[a, 3]
            if charge == np.float32(0):
                break
            dx = np.float32(tx) - tile[a, 0]
            dy = np.float32(ty) - tile[a, 1]
            if dx * dx + dy * dy < np.float32(30):
                for m in range(4):
                    energy[m] += charge * (dx * dx + np.float32(m))
    for m in range(4):
        out[m, ty, tx] = energy[m]


@pytest.mark.parametrize("rows", [4, 8])
def test_local_arrays_in_rows_of_eight_threads(rows):
    random = np.random.default_rng(5)
    atoms = random.integers(-4, 8, (6, 8, 4)).astype(np.float32)
    atoms[..., 3] = np.where(np.arange(8) < random.integers(0, 9, (6, 1)), 2, 0)
    run(potential, 1, (8, rows), atoms, np.zeros((4, rows, 8), np.float32))


@cuda.jit
def pairs_within_reach(bins, x, reach, out):
    tile = cuda.shared.array((4, WIDE), np.float32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    total = np.float32(0)
    for b in range(bins.shape[0]):
        cuda.syncthreads()
        for side in range(4):
            tile[side, tid] = bins[b, side, tid]
        cuda.syncthreads()
        for k in range(WIDE):
            if tile[3, k] == 0:
                break
            d = x[i] - tile[0, k]
            if d < reach:
                d += tile[1, k]
                if d < reach:
                    total += d / tile[2, k]
            else:
                total += tile[2, k]
    out[i] = total


def test_loads_in_the_arms_of_divergent_branches():
    rng = np.random.default_rng(9)
    bins = rng.integers(1, 20, (5, 4, WIDE)).astype(np.float32)
    bins[:, 3, 20:] = 0
    run(
        pairs_within_reach,
        3,
        WIDE,
        bins,
        rng.integers(0, 30, 3 * WIDE).astype(np.float32),
        9,
        np.zeros(3 * WIDE, np.float32),
    )
    if _weft.plan_features(pairs_within_reach):
        assert "hoisted-broadcasts" in features(pairs_within_reach)


def test_a_load_of_an_index_that_the_arm_assigns():
    @cuda.jit
    def kernel(x, out):
        tile = cuda.shared.array(WIDE, np.int32)
        i = cuda.threadIdx.x
        tile[i] = x[i]
        cuda.syncthreads()
        total = 0
        for k in range(100):
            if x[i] > k:
                at = (7 * k + 3) % WIDE
                total += tile[at]
                if total % 2:
                    total += 5
        out[i] = total

    x = np.random.default_rng(10).integers(0, 90, WIDE).astype(np.int32)
    run(kernel, 1, WIDE, x, np.zeros(WIDE, np.int64))


@pytest.mark.cpu
def test_a_load_past_the_end_of_shared_memory_that_no_thread_makes():
    @cuda.jit
    def kernel(x, far, out):
        tile = cuda.shared.array(WIDE, np.float32)
        i = cuda.threadIdx.x
        tile[i] = x[i]
        cuda.syncthreads()
        total = np.float32(0)
        for k in range(9):
            if x[i] > 100:
                value = tile[far]
                if value > k:
                    total += value / x[i]
            total += k
        out[i] = total

    run(kernel, 1, WIDE, np.arange(WIDE, dtype=np.float32), 1 << 44, np.zeros(WIDE, np.float32))
