"""Kernels that use barriers in shared memory, and the copies that these count, wrongly."""

import numpy as np
from cases import f32, new, planted
from weft import cuda

BYTES = 256  # of a row of 64 float32
G = cuda.mma.tile(64, 8, 32, a=np.int8, b=np.int8, c=np.int32, threads=128)


def boxes(*shape):
    """A tensor map of boxes of 8 by 16 elements."""
    return cuda.tensor_map(cuda.to_device(f32(*shape)), (8, 16))


@planted("racecheck", 1, 64, lambda: (f32(64), f32(64)))
def read_before_the_wait(a, out):
    s = cuda.shared.array(64, np.float32)
    bar = cuda.barrier(1)
    t = cuda.threadIdx.x
    if t == 0:
        bar.expect(BYTES)
        cuda.copy_async(s, a, bar)  # fault
    out[t] = s[63 - t]  # fault
    bar.wait(0)


@planted("racecheck", 1, 64, lambda: (f32(64), f32(64)))
def write_before_the_wait(a, out):
    s = cuda.shared.array(64, np.float32)
    bar = cuda.barrier(1)
    t = cuda.threadIdx.x
    if t == 0:
        bar.expect(BYTES)
        cuda.copy_async(s, a, bar)  # fault
    s[t] = np.float32(2)  # fault
    bar.wait(0)
    out[t] = s[t]


@planted("racecheck", 1, 64, lambda: (f32(64), f32(64)))
def only_one_thread_waits(a, out):
    s = cuda.shared.array(64, np.float32)
    bar = cuda.barrier(1)
    t = cuda.threadIdx.x
    if t == 0:
        bar.expect(BYTES)
        cuda.copy_async(s, a, bar)  # fault
        bar.wait(0)
    out[t] = s[63 - t]  # fault


@planted("racecheck", 1, 64, lambda: (f32(2, 64), f32(2, 64)))
def wait_for_another_barrier(a, out):
    s = cuda.shared.array((2, 64), np.float32)
    bars = cuda.barrier(1, 2)
    t = cuda.threadIdx.x
    if t == 0:
        bars[0].expect(BYTES)
        cuda.copy_async(s[0], a[0], bars[0])
        bars[1].expect(BYTES)
        cuda.copy_async(s[1], a[1], bars[1])  # fault
    bars[0].wait(0)
    out[0, t] = s[0, t]
    out[1, t] = s[1, t]  # fault
    bars[1].wait(0)


@planted("racecheck,synccheck", 1, 64, lambda: (f32(2, 64), f32(2, 64)))
def phase_is_always_zero(a, out):
    s = cuda.shared.array(64, np.float32)
    bar = cuda.barrier(1)  # may
    t = cuda.threadIdx.x
    for n in range(2):
        if t == 0:
            bar.expect(BYTES)
            cuda.copy_async(s, a[n], bar)  # fault
        bar.wait(0)  # fault
        out[n, t] = s[t]  # fault
        cuda.syncthreads()


@planted("synccheck", 1, 64, lambda: (f32(64),))
def first_wait_for_the_odd_phase(out):
    bar = cuda.barrier(64)  # may
    bar.arrive()
    bar.wait(1)  # fault
    out[cuda.threadIdx.x] = np.float32(2)


@planted("synccheck", 1, 64, lambda: (f32(64),))
def half_of_the_threads_arrive(out):
    bar = cuda.barrier(64)  # may
    t = cuda.threadIdx.x
    if t < 32:
        bar.arrive()
    bar.wait(0)  # fault
    out[t] = np.float32(2)


@planted("synccheck", 1, 64, lambda: (f32(64), f32(64)))
def more_bytes_expected_than_copied(a, out):
    s = cuda.shared.array(64, np.float32)
    bar = cuda.barrier(1)  # may
    t = cuda.threadIdx.x
    if t == 0:
        bar.expect(2 * BYTES)
        cuda.copy_async(s, a, bar)
    bar.wait(0)  # fault
    out[t] = s[t]


@planted("synccheck", 1, 64, lambda: (f32(64), f32(64)))
def more_bytes_copied_than_expected(a, out):
    s = cuda.shared.array(64, np.float32)
    bar = cuda.barrier(1)  # may
    t = cuda.threadIdx.x
    if t == 0:
        bar.expect(BYTES // 2)
        cuda.copy_async(s, a, bar)
    bar.wait(0)  # fault
    out[t] = s[t]


@planted("racecheck,synccheck", 1, 64, lambda: (f32(2, 64), f32(2, 64)))
def bytes_of_one_copy_expected_for_two(a, out):
    s = cuda.shared.array((2, 64), np.float32)
    bar = cuda.barrier(1)  # may
    t = cuda.threadIdx.x
    if t == 0:
        bar.expect(BYTES)
        cuda.copy_async(s[0], a[0], bar)
        cuda.copy_async(s[1], a[1], bar)  # fault
    bar.wait(0)
    out[0, t] = s[0, t]
    out[1, t] = s[1, t]  # fault


@planted("racecheck,synccheck", 1, 64, lambda: (f32(64), f32(64)))
def bytes_not_expected(a, out):
    s = cuda.shared.array(64, np.float32)
    bar = cuda.barrier(1)  # may
    t = cuda.threadIdx.x
    if t == 0:
        cuda.copy_async(s, a, bar)  # fault
        bar.arrive()
    bar.wait(0)
    out[t] = s[t]  # fault


@planted("synccheck", 1, 64, lambda: (f32(64), f32(64)))
def copy_without_a_wait(a, out):
    s = cuda.shared.array(64, np.float32)
    bar = cuda.barrier(1)  # may
    t = cuda.threadIdx.x
    if t == 0:
        bar.expect(BYTES)
        cuda.copy_async(s, a, bar)  # fault
    out[t] = np.float32(2)


@planted("racecheck", 1, 64, lambda: (f32(4, 64), f32(4, 32)))
def stage_is_free_before_it_is_read(a, out):
    s = cuda.shared.array(64, np.float32)
    full, empty = cuda.barrier(1), cuda.barrier(32)
    warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
    for n in range(4):
        if warp == 0:
            if lane == 0:
                empty.wait(n + 1)
                full.expect(BYTES)
                cuda.copy_async(s, a[n], full)  # fault
        else:
            full.wait(n)
            empty.arrive()
            out[n, lane] = s[lane]  # fault


@planted("racecheck", 1, 64, lambda: (f32(4, 64), f32(4, 32)))
def one_lane_frees_the_stage_for_all(a, out):
    s = cuda.shared.array(64, np.float32)
    full, empty = cuda.barrier(1), cuda.barrier(1)
    warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
    for n in range(4):
        if warp == 0:
            if lane == 0:
                empty.wait(n + 1)
                full.expect(BYTES)
                cuda.copy_async(s, a[n], full)  # fault
        else:
            full.wait(n)
            out[n, lane] = s[lane]  # fault
            if lane == 0:
                empty.arrive()


@planted("racecheck,synccheck", 1, 64, lambda: (f32(2, 64), f32(2, 32)))
def stage_is_filled_again_without_a_wait(a, out):
    s = cuda.shared.array(64, np.float32)
    full = cuda.barrier(1)  # may
    warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
    if warp == 0:
        if lane == 0:
            for n in range(2):
                full.expect(BYTES)  # fault
                cuda.copy_async(s, a[n], full)  # fault
    else:
        full.wait(1)
        full.wait(0)  # may
        out[0, lane] = s[lane]  # may


@planted("synccheck", 1, 64, lambda: (f32(4, 64), f32(4, 32)))
def producer_waits_for_the_phase_of_the_consumer(a, out):
    s = cuda.shared.array(64, np.float32)
    full, empty = cuda.barrier(1), cuda.barrier(32)  # may
    warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
    for n in range(4):
        if warp == 0:
            if lane == 0:
                empty.wait(n)  # fault
                full.expect(BYTES)
                cuda.copy_async(s, a[n], full)
        else:
            full.wait(n)  # fault
            out[n, lane] = s[lane]
            empty.arrive()


@planted("racecheck", 1, 64, lambda: (f32(32), f32(32)))
def arrival_before_the_write(x, out):
    cell = cuda.shared.array(32, np.float32)
    full = cuda.barrier(32)
    warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
    if warp == 0:
        full.arrive()
        cell[lane] = x[lane]  # fault
    else:
        full.wait(0)
        out[lane] = cell[31 - lane]  # fault


@planted("racecheck", 1, 64, lambda: (f32(32), f32(32)))
def one_lane_waits_for_its_warp(x, out):
    cell = cuda.shared.array(32, np.float32)
    full = cuda.barrier(32)
    warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
    if warp == 0:
        cell[lane] = x[lane]  # fault
        full.arrive()
    else:
        if lane == 0:
            full.wait(0)
        out[lane] = cell[lane]  # fault


@planted("synccheck", 1, 64, lambda: (f32(64),))
def twice_as_many_arrivals(out):
    bar = cuda.barrier(32)  # may
    bar.arrive()  # fault
    out[cuda.threadIdx.x] = np.float32(2)


@planted("synccheck", 1, 64, lambda: (f32(64), f32(64)))
def second_thread_arrives_too(a, out):
    s = cuda.shared.array(64, np.float32)
    bar = cuda.barrier(1)  # may
    t = cuda.threadIdx.x
    if t == 0:
        bar.expect(BYTES)
        cuda.copy_async(s, a, bar)
    elif t == 1:
        bar.arrive()  # fault
    bar.wait(0)  # fault
    out[t] = s[t]


@planted("racecheck", 1, 32, lambda: (boxes(16, 32), f32(32)))
def box_before_the_wait(a, out):
    s = cuda.shared.array((8, 16), np.float32)
    bar = cuda.barrier(1)
    t = cuda.threadIdx.x
    if t == 0:
        bar.expect(s.nbytes)
        cuda.copy_async(s, a[4, 8], bar)  # fault
    out[t] = s[t // 16, t % 16]  # fault
    bar.wait(0)


@planted("racecheck", 1, 32, lambda: (boxes(32, 16), f32(4, 32)))
def other_stage_of_boxes(a, out):
    s = cuda.shared.array((2, 8, 16), np.float32)
    bars = cuda.barrier(1, 2)
    t = cuda.threadIdx.x
    if t == 0:
        bars[0].expect(s[0].nbytes)
        cuda.copy_async(s[0], a[0, 0], bars[0])
    for n in range(4):
        if t == 0 and n < 3:
            bars[(n + 1) % 2].expect(s[0].nbytes)
            cuda.copy_async(s[(n + 1) % 2], a[8 * n + 8, 0], bars[(n + 1) % 2])  # fault
        bars[n % 2].wait(n // 2)
        if n < 3:
            out[n, t] = s[(n + 1) % 2, t // 16, t % 16]  # fault
        cuda.syncthreads()


@planted("racecheck", 1, 64, lambda: (f32(64), f32(64)))
def source_is_written_meanwhile(a, out):
    s = cuda.shared.array(64, np.float32)
    bar = cuda.barrier(1)
    t = cuda.threadIdx.x
    if t == 0:
        bar.expect(BYTES)
        cuda.copy_async(s, a, bar)  # fault
    a[t] = np.float32(2)  # fault
    bar.wait(0)
    out[t] = s[t]


@planted("initcheck", 1, 64, lambda: (new(64), f32(64)))
def source_was_never_written(a, out):
    s = cuda.shared.array(64, np.float32)
    bar = cuda.barrier(1)
    t = cuda.threadIdx.x
    if t == 0:
        bar.expect(BYTES)
        cuda.copy_async(s, a, bar)  # fault
    bar.wait(0)
    out[t] = s[t]


@planted("racecheck", 1, 64, lambda: (f32(3, 64), f32(3, 32)))
def consumer_waits_for_the_first_phase_only(a, out):
    s = cuda.shared.array((3, 64), np.float32)
    full = cuda.barrier(1, 3)
    warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
    if warp == 0:
        if lane == 0:
            for n in range(3):
                full[n].expect(BYTES)
                cuda.copy_async(s[n], a[n], full[n])  # fault
    else:
        full[0].wait(0)
        for n in range(3):
            out[n, lane] = s[n, lane]  # fault
        full[1].wait(0)
        full[2].wait(0)


@planted("racecheck", 1, 64, lambda: (f32(64), f32(64)))
def arrival_without_a_wait_for_own_copies(a, out):
    s = cuda.shared.array(64, np.float32)
    bar = cuda.barrier(64)
    t = cuda.threadIdx.x
    cuda.copy_async(s, t, a, t)  # fault
    cuda.copy_commit()
    bar.arrive()
    bar.wait(0)
    out[t] = s[63 - t]  # fault
    cuda.copy_wait()


@planted("racecheck", 1, 128, lambda: (np.ones((64, 32), np.int8), np.zeros((64, 8), np.int32)))
def product_before_the_wait(a, out):
    x, y = cuda.shared.array((64, 32), np.int8), cuda.shared.array((8, 32), np.int8, swizzle=32)
    bar = cuda.barrier(1)
    t = cuda.threadIdx.x
    for at in range(t, 8 * 32, 128):
        y[at // 32, at % 32] = np.int8(1)
    cuda.syncthreads()
    if t == 0:
        bar.expect(x.nbytes)
        cuda.copy_async(x, a, bar)  # fault
    left = cuda.shared.swizzled(x, 32)
    G.store(out, 0, 0, G.mma(G.a(left, 0, 0), G.b(y.T, 0, 0), G.zeros()))  # fault
    bar.wait(0)
