"""Pipelines of barriers in shared memory, and of the copies that these count, without faults."""

import numpy as np
from cases import clean, f32
from weft import cuda

BYTES = 256  # of a row of 64 float32
G = cuda.mma.tile(64, 8, 32, a=np.int8, b=np.int8, c=np.int32, threads=128)


def boxes(*shape):
    """A tensor map of boxes of 8 by 16 elements."""
    return cuda.tensor_map(cuda.to_device(f32(*shape)), (8, 16))


@clean(2, 64, lambda: (f32(64), f32(2, 64)))
def one_copy(a, out):
    s = cuda.shared.array(64, np.float32)
    bar = cuda.barrier(1)
    t = cuda.threadIdx.x
    if t == 0:
        bar.expect(BYTES)
        cuda.copy_async(s, a, bar)
    bar.wait(0)
    out[cuda.blockIdx.x, t] = s[63 - t]


@clean(1, 64, lambda: (f32(2, 64), f32(2, 64)))
def copies_before_they_are_expected(a, out):
    s = cuda.shared.array((2, 64), np.float32)
    bar = cuda.barrier(1)
    t = cuda.threadIdx.x
    if t == 0:
        cuda.copy_async(s[0], a[0], bar)
        cuda.copy_async(s[1], a[1], bar)
        bar.expect(2 * BYTES)
    bar.wait(0)
    bar.wait(0)
    out[0, t] = s[1, t]
    out[1, t] = s[0, 63 - t]


@clean(1, 64, lambda: (f32(64), f32(64)))
def one_thread_waits_for_the_block(a, out):
    s = cuda.shared.array(64, np.float32)
    bar = cuda.barrier(1)
    t = cuda.threadIdx.x
    if t == 0:
        bar.expect(BYTES)
        cuda.copy_async(s, a, bar)
        bar.wait(0)
    cuda.syncthreads()
    out[t] = s[63 - t]


@clean(1, 64, lambda: (f32(64), f32(64)))
def one_lane_waits_for_its_warp(a, out):
    s = cuda.shared.array(64, np.float32)
    bar = cuda.barrier(1)
    t = cuda.threadIdx.x
    if t == 0:
        bar.expect(BYTES)
        cuda.copy_async(s, a, bar)
    if t % 32 == 0:
        bar.wait(0)
    cuda.syncwarp()
    out[t] = s[63 - t]


@clean(1, 64, lambda: (f32(5, 64), f32(5, 64)))
def rows_one_ahead(a, out):
    s = cuda.shared.array((2, 64), np.float32)
    bars = cuda.barrier(1, 2)
    t = cuda.threadIdx.x
    if t == 0:
        bars[0].expect(BYTES)
        cuda.copy_async(s[0], a[0], bars[0])
    for n in range(5):
        if t == 0 and n < 4:
            bars[(n + 1) % 2].expect(BYTES)
            cuda.copy_async(s[(n + 1) % 2], a[n + 1], bars[(n + 1) % 2])
        bars[n % 2].wait(n // 2)
        out[n, t] = s[n % 2, 63 - t]
        cuda.syncthreads()


@clean(1, 64, lambda: (f32(7, 32), f32(7, 32)))
def warps_hand_on_elements(x, out):
    full, empty = cuda.barrier(32, 2), cuda.barrier(32, 2)
    cell = cuda.shared.array((2, 32), np.float32)
    lane, warp = cuda.threadIdx.x % 32, cuda.threadIdx.x // 32
    for s in range(7):
        if warp == 0:
            empty[s % 2].wait(s // 2 + 1)
            cell[s % 2, lane] = x[s, lane]
            full[s % 2].arrive()
        else:
            full[s % 2].wait(s // 2)
            out[s, lane] = cell[s % 2, 31 - lane]
            empty[s % 2].arrive()


@clean(1, 128, lambda: (f32(8, 64), f32(8, 96)))
def producer_and_three_consumers(a, out):
    s = cuda.shared.array((3, 64), np.float32)
    full, empty = cuda.barrier(1, 3), cuda.barrier(3, 3)
    warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
    if warp == 3:
        if lane == 0:
            for n in range(8):
                empty[n % 3].wait(n // 3 + 1)
                full[n % 3].expect(BYTES)
                cuda.copy_async(s[n % 3], a[n], full[n % 3])
    else:
        for n in range(8):
            full[n % 3].wait(n // 3)
            out[n, warp * 32 + lane] = s[n % 3, lane + warp * 16]
            cuda.syncwarp()
            if lane == 0:
                empty[n % 3].arrive()


@clean(1, 64, lambda: (f32(64),))
def barrier_of_all_threads(out):
    s = cuda.shared.array(64, np.float32)
    bar = cuda.barrier(64)
    t = cuda.threadIdx.x
    for n in range(4):
        s[t] = np.float32(n)
        bar.arrive()
        bar.wait(2 * n)
        out[t] = s[63 - t]
        bar.arrive()
        bar.wait(2 * n + 1)


@clean(1, 64, lambda: (f32(64), f32(64)))
def own_copies_before_the_arrival(a, out):
    s = cuda.shared.array(64, np.float32)
    bar = cuda.barrier(64)
    t = cuda.threadIdx.x
    cuda.copy_async(s, t, a, t)
    cuda.copy_commit()
    cuda.copy_wait()
    bar.arrive()
    bar.wait(0)
    out[t] = s[63 - t]


@clean((2, 2), 32, lambda: (boxes(12, 24), f32(4, 128)))
def boxes_at_the_edges(a, out):
    s = cuda.shared.array((8, 16), np.float32)
    bar = cuda.barrier(1)
    t, block = cuda.threadIdx.x, cuda.blockIdx.y * 2 + cuda.blockIdx.x
    if t == 0:
        bar.expect(s.nbytes)
        cuda.copy_async(s, a[8 * cuda.blockIdx.y - 4, 16 * cuda.blockIdx.x], bar)
    bar.wait(0)
    for k in range(4):
        out[block, t + 32 * k] = s[(t + 32 * k) // 16, t % 16]


@clean(1, 64, lambda: (boxes(32, 16), boxes(32, 16), f32(4, 32)))
def two_boxes_of_each_stage(a, b, out):
    x, y = cuda.shared.array((2, 8, 16), np.float32), cuda.shared.array((2, 8, 16), np.float32)
    full, empty = cuda.barrier(1, 2), cuda.barrier(1, 2)
    warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
    if warp == 1:
        if lane == 0:
            for n in range(4):
                empty[n % 2].wait(n // 2 + 1)
                full[n % 2].expect(x[0].nbytes + y[0].nbytes)
                cuda.copy_async(x[n % 2], a[8 * n, 0], full[n % 2])
                cuda.copy_async(y[n % 2], b[8 * n, 0], full[n % 2])
    else:
        for n in range(4):
            full[n % 2].wait(n // 2)
            out[n, lane] = x[n % 2, lane // 16, lane % 16] + y[n % 2, 7, lane % 16]
            cuda.syncwarp()
            if lane == 0:
                empty[n % 2].arrive()


@clean(1, 96, lambda: (f32(64), f32(32)))
def knowledge_is_handed_on(a, out):
    s = cuda.shared.array(64, np.float32)
    first, second = cuda.barrier(1), cuda.barrier(32)
    warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
    if warp == 0:
        if lane == 0:
            first.expect(BYTES)
            cuda.copy_async(s, a, first)
    elif warp == 1:
        first.wait(0)
        second.arrive()
    else:
        second.wait(0)
        out[lane] = s[lane]


@clean(1, 64, lambda: (f32(64), f32(64)))
def stage_is_reused_for_other_data(a, out):
    s = cuda.shared.array(64, np.float32)
    bar = cuda.barrier(1)
    t = cuda.threadIdx.x
    for n in range(3):
        if t == 0:
            bar.expect(BYTES)
            cuda.copy_async(s, a, bar)
        bar.wait(n)
        value = s[63 - t]
        cuda.syncthreads()
        s[t] = value + np.float32(1)
        cuda.syncthreads()
        out[t] = s[63 - t]
        cuda.syncthreads()


@clean(1, 256, lambda: (np.ones((5, 64, 32), np.int8), np.zeros((64, 8), np.int32)))
def producer_and_a_warpgroup(a, out):
    memory = cuda.shared.array((2, 64, 32), np.int8, 128)
    tiles = cuda.shared.swizzled(memory, 32)
    y = cuda.shared.array((8, 32), np.int8, swizzle=32)
    full, empty = cuda.barrier(1, 2), cuda.barrier(1, 2)
    group, t = divmod(cuda.threadIdx.x, 128)
    for at in range(cuda.threadIdx.x, 8 * 32, 256):
        y[at // 32, at % 32] = np.int8(1)
    cuda.syncthreads()
    if group == 1:
        if t == 0:
            for n in range(5):
                empty[n % 2].wait(n // 2 + 1)
                full[n % 2].expect(memory[0].nbytes)
                cuda.copy_async(memory[n % 2], a[n], full[n % 2])
    else:
        acc = G.zeros()
        for n in range(5):
            full[n % 2].wait(n // 2)
            acc = G.mma(G.a(tiles[n % 2], 0, 0), G.b(y.T, 0, 0), acc)
            if t == 0:
                empty[n % 2].arrive()
        G.store(out, 0, 0, acc)
