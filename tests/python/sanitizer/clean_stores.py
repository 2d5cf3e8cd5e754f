"""Kernels that copy shared to global memory asynchronously, and wait."""

import numpy as np
from cases import clean, f32
from weft import cuda


def boxes(*shape):
    """A tensor map of boxes of 8 by 16 elements."""
    return cuda.tensor_map(cuda.to_device(f32(*shape)), (8, 16))


@clean(2, 64, lambda: (f32(2, 64), f32(2, 64)))
def wait_and_barrier(out, seen):
    s = cuda.shared.array(64, np.float32)
    t, b = cuda.threadIdx.x, cuda.blockIdx.x
    s[t] = np.float32(t)
    cuda.syncthreads()
    if t == 0:
        cuda.copy_async(out[b], s)
        cuda.copy_commit()
        cuda.copy_wait()
    cuda.syncthreads()
    seen[b, t] = out[b, 63 - t]
    s[t] = np.float32(1)


@clean(1, 64, lambda: (boxes(32, 16),))
def two_stages_of_boxes(out):
    s = cuda.shared.array((2, 8, 16), np.float32)
    t = cuda.threadIdx.x
    for n in range(4):
        if t == 0:
            cuda.copy_wait(1, read=True)
        cuda.syncthreads()
        for at in range(t, 128, 64):
            s[n % 2, at // 16, at % 16] = np.float32(n)
        cuda.syncthreads()
        if t == 0:
            cuda.copy_async(out[8 * n, 0], s[n % 2])
            cuda.copy_commit()
    cuda.copy_wait(read=True)


@clean(1, 64, lambda: (f32(64),))
def the_block_ends_after_the_read(out):
    s = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    s[t] = np.float32(t)
    cuda.syncthreads()
    if t == 0:
        cuda.copy_async(out, s)
        cuda.copy_commit()
        cuda.copy_wait(read=True)
        s[0] = np.float32(3)


@clean(1, 64, lambda: (f32(64), f32(64)))
def in_and_out(a, out):
    s = cuda.shared.array(64, np.float32)
    bar = cuda.barrier(1)
    t = cuda.threadIdx.x
    for n in range(3):
        if t == 0:
            bar.expect(s.nbytes)
            cuda.copy_async(s, a, bar)
        bar.wait(n)
        s[t] += np.float32(1)
        cuda.syncthreads()
        if t == 0:
            cuda.copy_async(out, s)
            cuda.copy_commit()
            cuda.copy_wait()
        cuda.syncthreads()
