"""Kernels that use the shared memory and the barriers of other blocks of their cluster wrongly."""

import numpy as np
from cases import f32, i32, planted
from weft import cuda

BYTES = 256  # of a row of 64 float32


@planted("racecheck", 2, 32, lambda: (f32(2, 32),), cluster=2)
def read_without_a_synchronization(out):
    s = cuda.shared.array(32, np.float32)
    t, rank = cuda.threadIdx.x, cuda.cluster.rank()
    s[t] = np.float32(t)
    cuda.cluster.sync()
    s[t] = np.float32(rank)  # fault
    cuda.syncthreads()
    out[rank, t] = cuda.cluster.shared(s, 1 - rank)[t]  # fault
    cuda.cluster.sync()


@planted("racecheck", 2, 32, lambda: (f32(2, 32),), cluster=2)
def barrier_of_the_block_only(out):
    s = cuda.shared.array(32, np.float32)
    t, rank = cuda.threadIdx.x, cuda.cluster.rank()
    cuda.cluster.sync()
    cuda.cluster.shared(s, 1 - rank)[t] = np.float32(rank)  # fault
    cuda.syncthreads()
    out[rank, t] = s[t]  # fault
    cuda.cluster.sync()


@planted("racecheck", 4, 32, lambda: (i32(4),), cluster=4)
def plain_sum_in_the_first_block(out):
    s = cuda.shared.array(1, np.int32)
    t, rank = cuda.threadIdx.x, cuda.cluster.rank()
    if t == 0:
        s[0] = 0
    cuda.cluster.sync()
    if t == 0:
        cuda.cluster.shared(s, 0)[0] += 1  # fault
    cuda.cluster.sync()
    if t == 0:
        out[rank] = cuda.cluster.shared(s, 0)[0]
    cuda.cluster.sync()


@planted("initcheck", 2, 32, lambda: (f32(2, 32),), cluster=2)
def other_block_has_written_nothing(out):
    s = cuda.shared.array(32, np.float32)
    t, rank = cuda.threadIdx.x, cuda.cluster.rank()
    if rank == 0:
        s[t] = np.float32(t)
    cuda.cluster.sync()
    out[rank, t] = cuda.cluster.shared(s, 1 - rank)[t]  # fault
    cuda.cluster.sync()


@planted("synccheck", 2, 32, lambda: (f32(2, 32),), cluster=2)
def one_block_waits_for_the_cluster(out):
    bar = cuda.barrier(64)  # may
    t, rank = cuda.threadIdx.x, cuda.cluster.rank()
    cuda.cluster.sync()
    if rank == 0:
        bar.arrive()
        bar.wait(0)  # fault
    cuda.cluster.sync()
    out[rank, t] = np.float32(2)


@planted("synccheck", 2, 32, lambda: (f32(2, 32),), cluster=2)
def one_thread_waits_for_its_block(out):
    t, rank = cuda.threadIdx.x, cuda.cluster.rank()
    if t == 0:
        cuda.cluster.sync()  # fault
    else:
        cuda.syncthreads()  # fault
    out[rank, t] = np.float32(2)


@planted("racecheck", 2, 64, lambda: (f32(64), f32(2, 64)), cluster=2)
def multicast_before_the_wait(a, out):
    s = cuda.shared.array(64, np.float32)
    bar = cuda.barrier(1)
    t, rank = cuda.threadIdx.x, cuda.cluster.rank()
    cuda.cluster.sync()
    if t == 0:
        bar.expect(BYTES)
        if rank == 0:
            cuda.copy_async(s, a, bar, multicast=3)  # fault
    cuda.cluster.sync()
    out[rank, t] = s[63 - t]  # fault
    bar.wait(0)
    cuda.cluster.sync()


@planted("racecheck,synccheck", 2, 64, lambda: (f32(3, 64), f32(3, 2, 64)), cluster=2)
def multicast_over_a_stage_of_the_other_block(a, out):
    s = cuda.shared.array(64, np.float32)
    full = cuda.barrier(1)  # may
    t, rank = cuda.threadIdx.x, cuda.cluster.rank()
    cuda.cluster.sync()
    for n in range(3):
        if t == 0:
            full.expect(BYTES)
            if rank == 0:
                cuda.copy_async(s, a[n], full, multicast=3)  # fault
        full.wait(n)
        out[n, rank, t] = s[63 - t]  # fault
        # Only the own block has read the stage.
        cuda.syncthreads()
    cuda.cluster.sync()


@planted("racecheck", 2, 32, lambda: (f32(4, 32), f32(4, 32)), cluster=2)
def arrival_at_the_other_block_before_the_write(x, out):
    cell = cuda.shared.array((4, 32), np.float32)
    full = cuda.barrier(32)
    t, rank = cuda.threadIdx.x, cuda.cluster.rank()
    cuda.cluster.sync()
    if rank == 0:
        cuda.cluster.shared(full, 1).arrive()
        cuda.cluster.shared(cell, 1)[0, t] = x[0, t]  # fault
    else:
        full.wait(0)
        out[0, t] = cell[0, 31 - t]  # fault
    cuda.cluster.sync()
