"""Kernels that use the shared memory and the barriers of other blocks of their cluster."""

import numpy as np
from cases import clean, f32, i32
from weft import cuda

BYTES = 256  # of a row of 64 float32


@clean(4, 32, lambda: (f32(4, 32),), cluster=2)
def exchange(out):
    s = cuda.shared.array(32, np.float32)
    t, rank = cuda.threadIdx.x, cuda.cluster.rank()
    for n in range(3):
        s[t] = np.float32(t + n)
        cuda.cluster.sync()
        out[cuda.blockIdx.x, t] = cuda.cluster.shared(s, 1 - rank)[31 - t]
        cuda.cluster.sync()


@clean(8, 32, lambda: (i32(64), i32(8)), cluster=4)
def sums_by_atomics(x, out):
    bins = cuda.shared.array(8, np.int32)
    t, rank = cuda.threadIdx.x, cuda.cluster.rank()
    if t < 8:
        bins[t] = 0
    cuda.cluster.sync()
    cuda.atomic.add(cuda.cluster.shared(bins, t % 4), x[t] % 8, 1)
    cuda.cluster.sync()
    if t == 0:
        out[cuda.blockIdx.x] = bins[rank]


@clean(2, 32, lambda: (f32(9, 32), f32(9, 32)), cluster=2)
def handed_on(x, out):
    cell = cuda.shared.array(32, np.float32)
    full, empty = cuda.barrier(32), cuda.barrier(32)
    t, rank = cuda.threadIdx.x, cuda.cluster.rank()
    cuda.cluster.sync()
    for n in range(x.shape[0]):
        if rank == 0:
            empty.wait(n & 1 ^ 1)
            cuda.cluster.shared(cell, 1)[t] = x[n, t]
            cuda.cluster.shared(full, 1).arrive()
        else:
            full.wait(n)
            out[n, t] = cell[31 - t]
            cuda.cluster.shared(empty, 0).arrive()
    cuda.cluster.sync()


@clean(4, 64, lambda: (f32(5, 64), f32(5, 4, 64)), cluster=2)
def multicast_with_free_stages(a, out):
    s = cuda.shared.array((2, 64), np.float32)
    full, empty = cuda.barrier(1, 2), cuda.barrier(128, 2)
    t, rank = cuda.threadIdx.x, cuda.cluster.rank()
    cuda.cluster.sync()
    for n in range(5):
        if t == 0:
            full[n % 2].expect(BYTES)
            if rank == 0:
                empty[n % 2].wait(n // 2 + 1)
                cuda.copy_async(s[n % 2], a[n], full[n % 2], multicast=3)
        full[n % 2].wait(n // 2)
        out[n, cuda.blockIdx.x, t] = s[n % 2, 63 - t]
        cuda.cluster.shared(empty, 0)[n % 2].arrive()
    cuda.cluster.sync()
