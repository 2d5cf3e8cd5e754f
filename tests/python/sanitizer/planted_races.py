"""Kernels with a race within a block or a warp."""

import numpy as np
from cases import count, f32, i32, planted
from weft import cuda

POINT = np.dtype([("x", np.float32), ("y", np.float32)], align=True)


@planted("racecheck", 1, 64, lambda: (f32(64), f32(64)))
def reversed_without_barrier(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]  # fault
    out[i] = s[63 - i]  # fault


@planted("racecheck", 1, 64, lambda: (f32(64), f32(64)))
def barrier_before_the_write(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    cuda.syncthreads()
    s[i] = a[i]  # fault
    out[i] = s[(i + 1) % 64]  # fault


@planted("racecheck", 1, 64, lambda: (f32(256), f32(64)))
def tile_reused_in_a_loop(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    acc = np.float32(0)
    for t in range(4):
        s[i] = a[t * 64 + i]  # fault
        cuda.syncthreads()
        acc += s[63 - i]  # fault
    out[i] = acc


@planted("racecheck", 1, (8, 8), lambda: (f32(16, 16), f32(16, 16), f32(8, 8)))
def matmul_without_second_barrier(a, b, c):
    sa = cuda.shared.array((8, 8), np.float32)
    sb = cuda.shared.array((8, 8), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    acc = np.float32(0)
    for t in range(2):
        sa[y, x] = a[y, t * 8 + x]  # fault
        sb[y, x] = b[t * 8 + y, x]  # fault
        cuda.syncthreads()
        for k in range(8):
            acc += sa[y, k] * sb[k, x]  # fault
    c[y, x] = acc


@planted("racecheck", 1, (8, 8), lambda: (f32(8, 8), f32(8, 8)))
def transposed_tile_without_barrier(a, out):
    tile = cuda.shared.array((8, 9), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    tile[y, x] = a[y, x]  # fault
    out[y, x] = tile[x, y]  # fault


@planted("racecheck", 1, 128, lambda: (f32(128), f32(1)))
def tree_without_barrier_in_the_loop(a, out):
    s = cuda.shared.array(128, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    cuda.syncthreads()
    step = 64
    while step > 0:
        if i < step:
            s[i] += s[i + step]  # fault
        step //= 2
    if i == 0:
        out[0] = s[0]


@planted("racecheck", 1, 128, lambda: (f32(128), f32(1)))
def tree_without_first_barrier(a, out):
    s = cuda.shared.array(128, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]  # fault
    step = 64
    while step > 0:
        if i < step:
            s[i] += s[i + step]  # fault
        cuda.syncthreads()
        step //= 2
    if i == 0:
        out[0] = s[0]


@planted("racecheck", 1, 128, lambda: (f32(128), f32(128)))
def result_read_before_it_is_there(a, out):
    s = cuda.shared.array(1, np.float32)
    i = cuda.threadIdx.x
    if i == 0:
        s[0] = a[0]  # fault
    out[i] = s[0]  # fault


@planted("racecheck", 1, 128, lambda: (f32(128), f32(128)))
def last_thread_writes_for_all(a, out):
    s = cuda.shared.array(1, np.float32)
    i = cuda.threadIdx.x
    if i == 127:
        s[0] = a[0]  # fault
    cuda.syncwarp()
    out[i] = s[0]  # fault


@planted("racecheck", 1, 128, lambda: (count(128), i32(16)))
def shared_histogram_without_atomic(x, out):
    h = cuda.shared.array(16, np.int32)
    i = cuda.threadIdx.x
    if i < 16:
        h[i] = 0
    cuda.syncthreads()
    h[x[i] % 16] += 1  # fault
    cuda.syncthreads()
    if i < 16:
        out[i] = h[i]


@planted("racecheck", 1, 128, lambda: (count(128), i32(16)))
def histogram_cleared_too_late(x, out):
    h = cuda.shared.array(16, np.int32)
    i = cuda.threadIdx.x
    if i < 16:
        h[i] = 0  # fault
    cuda.atomic.add(h, x[i] % 16, 1)  # fault
    cuda.syncthreads()
    if i < 16:
        out[i] = h[i]


@planted("racecheck", 1, 128, lambda: (count(128), i32(16)))
def histogram_read_too_early(x, out):
    h = cuda.shared.array(16, np.int32)
    i = cuda.threadIdx.x
    if i < 16:
        h[i] = 0
    cuda.syncthreads()
    cuda.atomic.add(h, x[i] % 16, 1)  # fault
    if i < 16:
        out[i] = h[i]  # fault


@planted("racecheck", 1, 96, lambda: (i32(1),))
def counter_without_atomic(out):
    out[0] = out[0] + 1  # fault


@planted("racecheck", 1, 64, lambda: (f32(66),))
def stencil_in_place(x):
    i = cuda.threadIdx.x + 1
    left, right = x[i - 1], x[i + 1]  # fault
    x[i] = (left + right) / 2  # fault


@planted("racecheck", 1, 64, lambda: (f32(66),))
def stencil_in_place_with_barrier_behind(x):
    i = cuda.threadIdx.x + 1
    for _ in range(3):
        v = x[i - 1] + x[i + 1]  # fault
        x[i] = v / 2  # fault
        cuda.syncthreads()


@planted("racecheck", 1, 64, lambda: (f32(64), f32(64)))
def scan_with_one_barrier(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    cuda.syncthreads()
    step = 1
    while step < 64:
        if i >= step:
            s[i] += s[i - step]  # fault
        cuda.syncthreads()
        step *= 2
    out[i] = s[i]


@planted("racecheck", 1, 32, lambda: (f32(32), f32(1)))
def warp_sum_without_syncwarp(a, out):
    s = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]  # fault
    if i < 16:
        s[i] += s[i + 16]  # fault
    cuda.syncwarp()
    if i == 0:
        out[0] = s[0]


@planted("racecheck", 1, 32, lambda: (f32(32), f32(32)))
def shuffle_taken_for_a_barrier(a, out):
    s = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]  # fault
    v = cuda.shfl_sync(0xFFFFFFFF, a[i], 0)
    out[i] = s[31 - i] + v  # fault


@planted("racecheck", 1, 32, lambda: (f32(32), f32(32)))
def ballot_taken_for_a_barrier(a, out):
    s = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]  # fault
    votes = cuda.ballot_sync(0xFFFFFFFF, a[i] > 0)
    out[i] = s[31 - i] + (votes & 1)  # fault


@planted("racecheck", 1, 32, lambda: (f32(32), f32(32)))
def vote_taken_for_a_barrier(a, out):
    s = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]  # fault
    if cuda.all_sync(0xFFFFFFFF, a[i] > 0):
        out[i] = s[i ^ 1]  # fault


@planted("racecheck", 1, 32, lambda: (f32(32), f32(32)))
def syncwarp_of_half(a, out):
    s = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]  # fault
    if i < 16:
        cuda.syncwarp(0xFFFF)
        out[i] = s[i + 16]  # fault


@planted("racecheck", 1, 32, lambda: (f32(32), f32(32)))
def syncwarps_of_both_halves(a, out):
    s = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]  # fault
    if i < 16:
        cuda.syncwarp(0x0000FFFF)
    else:
        cuda.syncwarp(0xFFFF0000)
    out[i] = s[31 - i]  # fault


@planted("racecheck", 1, 64, lambda: (f32(64), f32(64)))
def syncwarp_between_warps(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]  # fault
    cuda.syncwarp()
    out[i] = s[(i + 32) % 64]  # fault


@planted("racecheck", 1, 64, lambda: (np.zeros(66, np.uint8),))
def bytes_that_overlap(x):
    i = cuda.threadIdx.x
    x[i] = 1  # fault
    x[i + 1] = 2  # fault


@planted("racecheck", 1, 32, lambda: (np.zeros(33, np.int16),))
def halves_of_words_that_overlap(x):
    i = cuda.threadIdx.x
    x[i] = x[i + 1] + 1  # fault


@planted("racecheck", 1, 64, lambda: (f32(64), f32(64)), shared=64 * 4)
def dynamic_shared_without_barrier(a, out):
    s = cuda.shared.array(0, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]  # fault
    out[i] = s[63 - i]  # fault


@planted("racecheck", 1, 64, lambda: (f32(64), f32(64)), shared=96 * 4)
def views_of_dynamic_shared_overlap(a, out):
    s = cuda.shared.array(0, np.float32)
    low, high = s[:64], s[32:]
    i = cuda.threadIdx.x
    low[i] = a[i]  # fault
    high[i] = a[i] + 1  # fault
    cuda.syncthreads()
    out[i] = low[i]


@planted("racecheck", 1, 32, lambda: (np.zeros(32, POINT),))
def a_field_of_a_neighbor(p):
    i = cuda.threadIdx.x
    p[i].x = 1  # fault
    p[(i + 1) % 32].x = 2  # fault


@planted("racecheck", 1, 8, lambda: (f32(8, 8),))
def rows_that_overlap(m):
    i = cuda.threadIdx.x
    row = m[i]
    row[0] = 1  # fault
    below = m[(i + 1) % 8]
    below[0] = 2  # fault


@planted("racecheck", 1, 4, lambda: (f32(8),))
def slices_that_overlap(x):
    i = cuda.threadIdx.x
    part = x[i : i + 3]
    for k in range(part.size):
        part[k] += 1  # fault


@planted("racecheck", 1, 2, lambda: (f32(16),))
def negative_and_positive_index(x):
    i = cuda.threadIdx.x
    if i == 0:
        x[-1] = 1  # fault
    else:
        x[15] = 2  # fault


@planted("racecheck", 1, (8, 4), lambda: (f32(32),))
def linear_index_with_wrong_extent(x):
    i = cuda.threadIdx.y * 4 + cuda.threadIdx.x
    x[i] = i  # fault


@planted("racecheck", 1, 16, lambda: (np.zeros(16, np.complex64),))
def complex_neighbor(z):
    i = cuda.threadIdx.x
    z[i] = z[(i + 1) % 16] * 2  # fault


@planted("racecheck", 1, 64, lambda: (count(64)[::-1].copy(),))
def odd_even_sort_without_barrier(x):
    i = cuda.threadIdx.x
    for turn in range(4):
        at = 2 * i + turn % 2
        if at + 1 < 64:
            a, b = x[at], x[at + 1]  # fault
            if a > b:
                x[at], x[at + 1] = b, a  # fault


@planted("racecheck", 1, 32, lambda: (count(32)[::-1].copy(),))
def bitonic_step_without_barrier(x):
    i = cuda.threadIdx.x
    for step in (16, 8):
        other = i ^ step
        if other > i:
            a, b = x[i], x[other]  # fault
            if a > b:
                x[i] = b  # fault
                x[other] = a  # fault


@planted("racecheck", 1, 64, lambda: (count(64) // 2, f32(64), f32(64)))
def scatter_with_duplicates(index, a, out):
    i = cuda.threadIdx.x
    out[index[i]] = a[i] + i  # fault


@planted("racecheck", 1, 64, lambda: (i32(1),))
def same_value_written(flag):
    flag[0] = 1  # fault


@planted("racecheck", 1, 64, lambda: (f32(64), i32(1)))
def found_flag(a, flag):
    i = cuda.threadIdx.x
    if a[i] > 0:
        flag[0] = 7  # fault


@planted("racecheck", 1, 64, lambda: (f32(64), f32(64)))
def double_buffer_with_one_buffer(a, out):
    s = cuda.shared.array((2, 64), np.float32)
    i = cuda.threadIdx.x
    s[0, i] = a[i]
    cuda.syncthreads()
    for _ in range(4):
        s[0, i] = s[0, 63 - i] + 1  # fault
        cuda.syncthreads()
    out[i] = s[0, i]


@planted("racecheck", 1, 64, lambda: (f32(64), f32(64)))
def double_buffer_without_barrier(a, out):
    s = cuda.shared.array((2, 64), np.float32)
    i = cuda.threadIdx.x
    s[0, i] = a[i]
    cuda.syncthreads()
    now = 0
    for _ in range(4):
        s[1 - now, i] = s[now, 63 - i] + 1  # fault
        now = 1 - now
    cuda.syncthreads()
    out[i] = s[now, i]


@planted("racecheck", 1, 66, lambda: (f32(66), f32(66)))
def halo_without_barrier(a, out):
    s = cuda.shared.array(68, np.float32)
    i = cuda.threadIdx.x
    s[i + 1] = a[i]  # fault
    if i == 0:
        s[0] = 0
        s[67] = 0  # fault
    out[i] = s[i] + s[i + 2]  # fault


@planted("racecheck", 1, 64, lambda: (i32(64),))
def plain_read_of_an_atomic_counter(out):
    n = cuda.shared.array(1, np.int32)
    i = cuda.threadIdx.x
    if i == 0:
        n[0] = 0
    cuda.syncthreads()
    cuda.atomic.add(n, 0, 1)  # fault
    out[i] = n[0]  # fault


@planted("racecheck", 1, 64, lambda: (i32(1), i32(64)))
def atomic_and_plain_write(n, out):
    i = cuda.threadIdx.x
    if i % 2:
        cuda.atomic.max(n, 0, i)  # fault
    else:
        n[0] = i  # fault


@planted("racecheck", 1, 32, lambda: (f32(32), f32(32)))
def shared_per_lane_by_wrong_lane(a, out):
    s = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    for t in range(2):
        s[i] = a[i] + t  # fault
        cuda.syncwarp()
        out[i] += s[i ^ 1]  # fault


@planted("racecheck", 1, 64, lambda: (f32(64), f32(64)))
def barrier_count_too_early(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    n = cuda.syncthreads_count(a[i] > 0)
    s[i] = a[i]  # fault
    out[i] = s[63 - i] + n  # fault
