"""Kernels that seem to have a race within a block or a warp, but do not."""

import numpy as np
from cases import clean, count, f32, i32
from weft import cuda

ALL = 0xFFFFFFFF
POINT = np.dtype([("x", np.float32), ("y", np.float32)], align=True)


@clean(1, 64, lambda: (f32(64), f32(64)))
def reversed_with_barrier(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    cuda.syncthreads()
    out[i] = s[63 - i]


@clean(1, (8, 8), lambda: (f32(16, 16), f32(16, 16), f32(8, 8)))
def tiled_matmul(a, b, c):
    sa = cuda.shared.array((8, 8), np.float32)
    sb = cuda.shared.array((8, 8), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    acc = np.float32(0)
    for t in range(2):
        sa[y, x] = a[y, t * 8 + x]
        sb[y, x] = b[t * 8 + y, x]
        cuda.syncthreads()
        for k in range(8):
            acc += sa[y, k] * sb[k, x]
        cuda.syncthreads()
    c[y, x] = acc


@clean(1, 128, lambda: (f32(128), f32(1)))
def tree_with_barriers(a, out):
    s = cuda.shared.array(128, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    cuda.syncthreads()
    step = 64
    while step > 0:
        if i < step:
            s[i] += s[i + step]
        cuda.syncthreads()
        step //= 2
    if i == 0:
        out[0] = s[0]


@clean(1, 64, lambda: (f32(64), f32(1)))
def tree_with_syncwarps_at_the_end(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    cuda.syncthreads()
    if i < 32:
        v = s[i] + s[i + 32]
        for step in (16, 8, 4, 2, 1):
            v += cuda.shfl_down_sync(ALL, v, step)
        if i == 0:
            out[0] = v


@clean(1, 32, lambda: (f32(32), f32(1)))
def warp_sum_in_shared_memory(a, out):
    s = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    cuda.syncwarp()
    step = 16
    while step > 0:
        v = s[(i + step) % 32]
        cuda.syncwarp()
        s[i] += v
        cuda.syncwarp()
        step //= 2
    if i == 0:
        out[0] = s[0]


@clean(1, 64, lambda: (f32(64), f32(64)))
def each_warp_by_itself(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    cuda.syncwarp()
    out[i] = s[i ^ 31]


@clean(1, 32, lambda: (f32(32), f32(32)))
def syncwarp_of_a_half_for_that_half(a, out):
    s = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    if i < 16:
        cuda.syncwarp(0x0000FFFF)
    else:
        cuda.syncwarp(0xFFFF0000)
    out[i] = s[i ^ 15]


@clean(1, 32, lambda: (f32(32), f32(32)))
def syncwarps_one_after_the_other(a, out):
    s = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    cuda.syncwarp(ALL)
    if i < 8:
        v = s[i + 8]
        cuda.syncwarp(0xFF)
        s[i] = v
        cuda.syncwarp(0xFF)
        out[i] = s[7 - i]


@clean(1, 32, lambda: (f32(32), f32(32)))
def known_by_way_of_a_third_lane(a, out):
    s = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    if i == 0:
        s[0] = a[0]
    if i < 2:
        cuda.syncwarp(0b011)
    if i == 1 or i == 2:
        cuda.syncwarp(0b110)
    if i == 2:
        out[0] = s[0]


@clean(1, 64, lambda: (f32(64), f32(64)))
def double_buffer(a, out):
    s = cuda.shared.array((2, 64), np.float32)
    i = cuda.threadIdx.x
    s[0, i] = a[i]
    cuda.syncthreads()
    now = 0
    for _ in range(4):
        s[1 - now, i] = s[now, 63 - i] + 1
        now = 1 - now
        cuda.syncthreads()
    out[i] = s[now, i]


@clean(1, 64, lambda: (f32(66),))
def stencil_with_barrier_between(x):
    i = cuda.threadIdx.x + 1
    for _ in range(3):
        v = x[i - 1] + x[i + 1]
        cuda.syncthreads()
        x[i] = v / 2
        cuda.syncthreads()


@clean(1, 64, lambda: (f32(64), f32(64)))
def scan_with_two_barriers(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    cuda.syncthreads()
    step = 1
    while step < 64:
        v = np.float32(0)
        if i >= step:
            v = s[i - step]
        cuda.syncthreads()
        s[i] += v
        cuda.syncthreads()
        step *= 2
    out[i] = s[i]


@clean(1, 128, lambda: (count(128), i32(16)))
def shared_histogram(x, out):
    h = cuda.shared.array(16, np.int32)
    i = cuda.threadIdx.x
    if i < 16:
        h[i] = 0
    cuda.syncthreads()
    cuda.atomic.add(h, x[i] % 16, 1)
    cuda.syncthreads()
    if i < 16:
        cuda.atomic.add(out, i, h[i])


@clean(1, 64, lambda: (np.zeros(64, np.uint8),))
def each_a_byte_of_a_word(x):
    x[cuda.threadIdx.x] = cuda.threadIdx.x


@clean(1, 64, lambda: (np.zeros(64, np.int16), f32(64)))
def halves_of_words(x, out):
    i = cuda.threadIdx.x
    x[i] = i
    out[i] = x[i]


@clean(1, 32, lambda: (np.zeros(32, POINT),))
def fields_of_one_record(p):
    i = cuda.threadIdx.x
    if i % 2:
        p[i // 2].x = 1
    else:
        p[i // 2].y = 2


@clean(1, 16, lambda: (np.zeros(8, np.complex64), f32(8)))
def own_complex(z, out):
    i = cuda.threadIdx.x
    if i < 8:
        z[i] = complex(i, -i)
        out[i] = z[i].imag


@clean(1, 16, lambda: (f32(16),))
def negative_indices(x):
    i = cuda.threadIdx.x
    x[-1 - i] = i


@clean(1, 8, lambda: (f32(8, 8),))
def own_rows(m):
    row = m[cuda.threadIdx.x]
    for k in range(row.size):
        row[k] += k


@clean(1, 8, lambda: (f32(8, 8),))
def own_columns(m):
    column = m[:, cuda.threadIdx.x]
    for k in range(column.size):
        column[k] += k


@clean(1, 4, lambda: (f32(16),))
def own_strided_slices(x):
    part = x[cuda.threadIdx.x :: 4]
    for k in range(part.size):
        part[k] += 1


@clean(1, 4, lambda: (f32(16),))
def own_slices_backwards(x):
    i = cuda.threadIdx.x
    part = x[4 * i : 4 * i + 4][::-1]
    part[0] = part[3]


@clean(1, 64, lambda: (f32(64), f32(64)), shared=128 * 4)
def views_of_dynamic_shared(a, out):
    s = cuda.shared.array(0, np.float32)
    low, high = s[:64], s[64:]
    i = cuda.threadIdx.x
    low[i] = a[i]
    high[i] = a[i] + 1
    cuda.syncthreads()
    out[i] = low[63 - i] + high[63 - i]


@clean(1, 64, lambda: (f32(64), f32(64)))
def reads_of_one_element(a, out):
    s = cuda.shared.array(1, np.float32)
    i = cuda.threadIdx.x
    if i == 0:
        s[0] = a[0]
    cuda.syncthreads()
    out[i] = s[0]
    cuda.syncthreads()
    if i == 63:
        s[0] = a[1]
    cuda.syncthreads()
    out[i] += s[0]


@clean(1, 64, lambda: (f32(64), i32(64)))
def barriers_that_count(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    n = cuda.syncthreads_count(a[i] > 0)
    out[i] = n + s[63 - i]
    both = cuda.syncthreads_and(a[i] > 0) + cuda.syncthreads_or(a[i] < 0)
    s[i] = both


@clean(1, 64, lambda: (f32(48),))
def early_return_before_a_barrier(x):
    i = cuda.threadIdx.x
    if i >= x.size:
        return
    x[i] += 1
    cuda.syncthreads()
    x[i] += x[i]


@clean(1, 64, lambda: (f32(64), f32(48)))
def return_after_work_and_before_a_barrier(a, x):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    cuda.syncthreads()
    if i >= x.size:
        return
    x[i] += s[63 - i]
    cuda.syncthreads()
    x[i] += x[i]


@clean(2, 32, lambda: (f32(48),))
def guard_around_all_with_a_barrier_in_it(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1
        cuda.syncthreads()
        x[i] += x[i]


@clean(1, 64, lambda: (f32(64),))
def barrier_in_a_uniform_branch(x):
    i = cuda.threadIdx.x
    if x.size == 64:
        cuda.syncthreads()
    x[i] += 1


@clean(1, 64, lambda: (f32(64),))
def barriers_in_a_uniform_loop(x):
    i = cuda.threadIdx.x
    for turn in range(x.size // 16):
        if turn % 2:
            cuda.syncthreads()
        x[i] += turn


@clean(1, 33, lambda: (f32(33),))
def a_warp_with_one_lane(x):
    i = cuda.threadIdx.x
    cuda.syncwarp()
    x[i] += 1
    cuda.syncthreads()
    x[i] += x[32 - i] * 0 if i == 16 else np.float32(0)


@clean(1, 32, lambda: (f32(32), f32(32)))
def masks_of_ballots(a, out):
    i = cuda.threadIdx.x
    takes = i % 3 == 0
    mask = cuda.ballot_sync(ALL, takes)
    if takes:
        v = cuda.shfl_sync(mask, a[i], 0)
        cuda.syncwarp(mask)
        out[i] = v


@clean(1, 32, lambda: (i32(32), f32(32)))
def masks_of_matches(keys, out):
    i = cuda.threadIdx.x
    mask = cuda.match_any_sync(ALL, i % 4)
    v = cuda.shfl_sync(mask, keys[i], cuda.ffs(mask) - 1)
    out[i] = v


@clean(1, 32, lambda: (f32(32), f32(32)))
def shuffles_in_parts(a, out):
    i = cuda.threadIdx.x
    v = a[i]
    for step in (4, 2, 1):
        v += cuda.shfl_xor_sync(ALL, v, step)
    for step in (1, 2, 4):
        v += cuda.shfl_up_sync(ALL, v, step)
    out[i] = v


@clean(1, 16, lambda: (f32(16), f32(16)))
def shuffle_in_half_a_warp(a, out):
    i = cuda.threadIdx.x
    out[i] = cuda.shfl_xor_sync(0xFFFF, a[i], 8)


@clean(1, 64, lambda: (i32(64),))
def counter_by_atomics(out):
    n = cuda.shared.array(1, np.int32)
    i = cuda.threadIdx.x
    if i == 0:
        n[0] = 0
    cuda.syncthreads()
    at = cuda.atomic.add(n, 0, 1)
    out[at] = i


@clean(1, 64, lambda: (i32(1),))
def atomic_of_block_in_a_block(n):
    cuda.atomic.add(n, 0, 1, scope="block")


@clean(1, 64, lambda: (f32(64), i32(1), f32(64)))
def flag_in_a_block(a, flag, out):
    s = cuda.shared.array(1, np.float32)
    i = cuda.threadIdx.x
    if i == 40:
        s[0] = a[0]
        cuda.threadfence_block()
        cuda.atomic.exch(flag, 0, 1)
    if i == 3:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        cuda.threadfence_block()
        out[0] = s[0]


@clean(1, 64, lambda: (i32(1), f32(1)))
def lock_between_lanes(lock, x):
    done = False
    while not done:
        if cuda.atomic.cas(lock, 0, 0, 1) == 0:
            cuda.threadfence()
            x[0] += 1
            cuda.threadfence()
            cuda.atomic.exch(lock, 0, 0)
            done = True


@clean(1, 64, lambda: (f32(64), f32(64)))
def producer_and_consumer_warps(a, out):
    ring = cuda.shared.array((2, 32), np.float32)
    i = cuda.threadIdx.x
    for turn in range(3):
        if i < 32:
            ring[turn % 2, i] = a[i] + turn
        cuda.syncthreads()
        if i >= 32:
            out[i] += ring[turn % 2, i - 32]


@clean(1, 32, lambda: (f32(32), f32(32)))
def local_arrays_are_ones_own(a, out):
    v = cuda.local.array(4, np.float32)
    i = cuda.threadIdx.x
    for k in range(4):
        v[k] = a[i] + k
    out[i] = v[3] + v[-4]


@clean(1, 64, lambda: (f32(64), f32(64)))
def a_thread_reads_what_it_wrote(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    s[i] += 1
    out[i] = s[i]


@clean(1, 64, lambda: (f32(64),))
def swapped_by_one_of_two(x):
    i = cuda.threadIdx.x
    if i < 32:
        x[i], x[i + 32] = x[i + 32], x[i]


@clean(1, 64, lambda: (count(64)[::-1].copy(),))
def odd_even_sort(x):
    i = cuda.threadIdx.x
    for turn in range(64):
        at = 2 * i + turn % 2
        if at + 1 < 64:
            a, b = x[at], x[at + 1]
            if a > b:
                x[at], x[at + 1] = b, a
        cuda.syncthreads()


@clean(1, 32, lambda: (count(32)[::-1].copy(), f32(32)))
def scatter_by_a_permutation(index, out):
    i = cuda.threadIdx.x
    out[index[i]] = i


@clean(1, 66, lambda: (f32(66), f32(66)))
def halo(a, out):
    s = cuda.shared.array(68, np.float32)
    i = cuda.threadIdx.x
    s[i + 1] = a[i]
    if i == 0:
        s[0] = 0
        s[67] = 0
    cuda.syncthreads()
    out[i] = s[i] + s[i + 2]


@clean(1, 64, lambda: (f32(64), f32(64)))
def unequal_work_between_barriers(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    total = np.float32(0)
    for k in range(i):
        total += a[k]
    s[i] = total
    cuda.syncthreads()
    out[i] = s[63 - i]


@clean(1, 32, lambda: (f32(32), f32(32)))
def votes_and_syncwarp(a, out):
    s = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    if cuda.any_sync(ALL, a[i] > 0):
        cuda.syncwarp()
        out[i] = s[31 - i]


@clean(1, 1, lambda: (f32(8),))
def one_thread(x):
    for k in range(1, 8):
        x[k] += x[k - 1]


@clean(1, 50, lambda: (f32(48),))
def guard_around_a_barrier(x):
    i = cuda.threadIdx.x
    if i < x.size:
        x[i] += 1
        cuda.syncthreads()
        x[i] += 1


@clean(1, 40, lambda: (f32(36), f32(36)))
def guard_around_votes(a, out):
    i = cuda.threadIdx.x
    if i < a.size:
        out[i] = cuda.popc(cuda.ballot_sync(ALL, a[i] > 0))
