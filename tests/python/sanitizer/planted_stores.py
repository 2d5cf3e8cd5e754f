"""Kernels that copy shared to global memory and wait too little, and copies over matrices of products."""

import numpy as np
from cases import f32, planted
from weft import cuda

G = cuda.mma.tile(64, 8, 32, a=np.int8, b=np.int8, c=np.int32, threads=128)


def boxes(*shape):
    """A tensor map of boxes of 8 by 16 elements."""
    return cuda.tensor_map(cuda.to_device(f32(*shape)), (8, 16))


@planted("racecheck", 1, 64, lambda: (f32(64),))
def source_is_written_before_the_wait(out):
    s = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    s[t] = np.float32(t)
    cuda.syncthreads()
    if t == 0:
        cuda.copy_async(out, s)  # fault
        cuda.copy_commit()
    cuda.syncthreads()
    s[t] = np.float32(2)  # fault
    cuda.copy_wait()


@planted("racecheck", 1, 64, lambda: (f32(64),))
def source_is_not_visible(out):
    s = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    s[t] = np.float32(t)  # fault
    if t == 0:
        cuda.copy_async(out, s)  # fault
        cuda.copy_commit()
        cuda.copy_wait()


@planted("racecheck", 1, 64, lambda: (f32(64), f32(1)))
def target_is_read_before_the_wait(out, seen):
    s = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    s[t] = np.float32(t)
    cuda.syncthreads()
    if t == 0:
        cuda.copy_async(out, s)  # fault
        cuda.copy_commit()
        seen[0] = out[5]  # fault
        cuda.copy_wait()


@planted("racecheck", 1, 64, lambda: (f32(64), f32(1)))
def only_the_source_is_read(out, seen):
    s = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    s[t] = np.float32(t)
    cuda.syncthreads()
    if t == 0:
        cuda.copy_async(out, s)  # fault
        cuda.copy_commit()
        cuda.copy_wait(read=True)
        out[3] = np.float32(1)  # fault
        cuda.copy_wait()


@planted("racecheck", 1, 64, lambda: (f32(64), f32(64)))
def other_threads_read_the_target(out, seen):
    s = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    s[t] = np.float32(t)
    cuda.syncthreads()
    if t == 0:
        cuda.copy_async(out, s)  # fault
        cuda.copy_commit()
    cuda.syncthreads()
    seen[t] = out[63 - t]  # fault
    cuda.copy_wait()


@planted("racecheck", 1, 64, lambda: (f32(64), f32(64)))
def wait_without_a_barrier(out, seen):
    s = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    s[t] = np.float32(t)
    cuda.syncthreads()
    if t == 0:
        cuda.copy_async(out, s)  # fault
        cuda.copy_commit()
        cuda.copy_wait()
    seen[t] = out[63 - t]  # fault


@planted("synccheck", 1, 64, lambda: (f32(64),))
def block_ends_before_the_read(out):
    s = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    s[t] = np.float32(t)
    cuda.syncthreads()
    if t == 0:
        cuda.copy_async(out, s)  # fault
        cuda.copy_commit()


@planted("synccheck", 1, 64, lambda: (f32(64),))
def wait_without_a_group(out):
    s = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    s[t] = np.float32(t)
    cuda.syncthreads()
    if t == 0:
        cuda.copy_async(out, s)  # fault
        cuda.copy_wait()


@planted("racecheck", 1, 64, lambda: (boxes(32, 16),))
def one_group_too_few(out):
    s = cuda.shared.array((2, 8, 16), np.float32)
    t = cuda.threadIdx.x
    for n in range(4):
        for at in range(t, 128, 64):
            s[n % 2, at // 16, at % 16] = np.float32(n)  # fault
        cuda.syncthreads()
        if t == 0:
            cuda.copy_async(out[8 * n, 0], s[n % 2])  # fault
            cuda.copy_commit()
            cuda.copy_wait(2, read=True)
        cuda.syncthreads()
    cuda.copy_wait()


@planted("racecheck", 1, 160, lambda: (np.ones((64, 32), np.int8), np.zeros((64, 8), np.int32)))
def matrix_is_overwritten_after_an_early_arrival(a, out):
    memory, y = cuda.shared.array((64, 32), np.int8, 128), cuda.shared.array((8, 32), np.int8, swizzle=32)
    tile = cuda.shared.swizzled(memory, 32)
    full, empty = cuda.barrier(1), cuda.barrier(1)
    t = cuda.threadIdx.x
    for at in range(t, 8 * 32, 160):
        y[at // 32, at % 32] = np.int8(1)
    for at in range(t, 64 * 32, 160):
        memory[at // 32, at % 32] = np.int8(1)
    cuda.syncthreads()
    if t < 128:
        if t == 0:
            empty.arrive()
        G.store(out, 0, 0, G.mma(G.a(tile, 0, 0), G.b(y.T, 0, 0), G.zeros()))  # fault
    else:
        empty.wait(0)
        # The product is then complete on the CPU, but the thread does not know it.
        for _ in range(64):
            cuda.syncwarp()
        if t == 128:
            full.expect(memory.nbytes)
            cuda.copy_async(memory, a, full)  # fault
    full.wait(0)
