"""Kernels whose indices or first uses seem wrong, but are correct; and further ways to share memory."""

import math

import numpy as np
from cases import clean, count, f32, i32, new
from weft import cuda

ALL = 0xFFFFFFFF
PIXEL = np.dtype([("id", np.int32), ("rgb", np.float32, (3,))], align=True)
WEIGHTS = np.array([0.25, 0.5, 0.25], dtype=np.float32)


@cuda.jit(device=True)
def put(x, i, v):
    x[i] = v


@cuda.jit(device=True)
def block_sum(s, i, n):
    step = n // 2
    while step > 0:
        if i < step:
            s[i] += s[i + step]
        cuda.syncthreads()
        step //= 2
    return s[0]


@clean(1, 16, lambda: (f32(16),))
def last_by_minus_one(x):
    if cuda.threadIdx.x == 0:
        x[-1] = x[-16]


@clean(1, 16, lambda: (f32(16),))
def store_of_a_device_function(x):
    i = cuda.threadIdx.x
    put(x, i, i)


@clean(1, 64, lambda: (f32(64), f32(64)))
def sum_of_a_device_function(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    cuda.syncthreads()
    out[i] = block_sum(s, i, 64)


@clean(1, 8, lambda: (np.zeros(8, PIXEL),))
def arrays_in_records(p):
    i = cuda.threadIdx.x
    for k in range(3):
        p[i].rgb[k] = k
    p[i].id = i


@clean(1, 8, lambda: (np.zeros(8, PIXEL), np.zeros(8, PIXEL)))
def records_are_copied(a, b):
    i = cuda.threadIdx.x
    b[7 - i] = a[i]


@clean(1, 16, lambda: (f32(18), f32(16)))
def convolution_with_constants(a, out):
    i = cuda.threadIdx.x
    total = np.float32(0)
    for k in range(3):
        total += a[i + k] * WEIGHTS[k]
    out[i] = total


@clean((2, 2), (4, 4), lambda: (f32(7, 5),))
def guard_of_two_axes(m):
    x, y = cuda.grid(2)
    if y < m.shape[0] and x < m.shape[1]:
        m[y, x] += 1


@clean(1, 16, lambda: (f32(0), f32(16)))
def empty_array_of_which_nothing_is_read(a, out):
    i = cuda.threadIdx.x
    if i < a.size:
        out[i] = a[i]


@clean(1, 16, lambda: (f32(16), f32(16)))
def clamped_neighbors(a, out):
    i = cuda.threadIdx.x
    out[i] = a[max(i - 1, 0)] + a[min(i + 1, a.size - 1)]


@clean(1, 16, lambda: (f32(16), f32(16)))
def neighbors_around_a_ring(a, out):
    i = cuda.threadIdx.x
    out[i] = a[(i + 1) % 16] + a[i - 1]


@clean(1, 8, lambda: (np.array([7, 6, 5, 4, 3, 2, 1, 0]), f32(8)))
def gathered(index, out):
    i = cuda.threadIdx.x
    out[index[i]] = index[index[i]]


@clean(1, 8, lambda: (f32(8, 8),))
def diagonal(m):
    i = cuda.threadIdx.x
    m[i, i] = m[i, 7 - i] if i > 8 else np.float32(1)


@clean(1, 8, lambda: (f32(8, 8),))
def part_of_rows_and_columns(m):
    i = cuda.threadIdx.x
    inner = m[1:-1, 1:-1]
    if i < inner.shape[0]:
        inner[i, 0] = 2
        inner[i, -1] = 3


@clean(1, 4, lambda: (f32(4, 6),))
def transposed_view(m):
    t = m.T
    t[5, cuda.threadIdx.x] = 1


@clean(1, 4, lambda: (np.asfortranarray(f32(4, 6)),))
def fortran_columns(m):
    column = m[:, cuda.threadIdx.x]
    column[3] = 1


@clean(1, 8, lambda: (f32(8),))
def local_arrays_of_two_axes(out):
    v = cuda.local.array((2, 3), np.float32)
    for a in range(2):
        for b in range(3):
            v[a, b] = a * b
    out[cuda.threadIdx.x] = v[1, 2] + v[-1, -1]


@clean(1, 8, lambda: (f32(8),))
def local_array_written_before_each_use(out):
    v = cuda.local.array(4, np.int32)
    i = cuda.threadIdx.x
    top = 0
    for k in range(4):
        v[top] = k + i
        top += 1
    while top > 0:
        top -= 1
        out[i] += v[top]


@clean(1, 32, lambda: (f32(32),))
def shared_cleared_by_one_thread(out):
    s = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    if i == 0:
        for k in range(32):
            s[k] = 0
    cuda.syncthreads()
    s[i] += 1
    out[i] = s[i]


@clean(1, 32, lambda: (f32(20), f32(32)))
def shared_padded_by_zeros(a, out):
    s = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i] if i < a.size else np.float32(0)
    cuda.syncthreads()
    out[i] = s[31 - i]


@clean(2, 8, lambda: (new(16),))
def device_array_written_by_all_blocks(x):
    i = cuda.grid(1)
    x[i] = i
    x[i] += 1


@clean(1, 8, lambda: (new(8, dtype=np.int32),))
def cleared_and_then_counted(h):
    i = cuda.threadIdx.x
    h[i] = 0
    cuda.syncthreads()
    cuda.atomic.add(h, i // 2, 1)


@clean(1, 8, lambda: (cuda.to_device(count(8)), new(8)))
def device_arrays(a, out):
    i = cuda.threadIdx.x
    out[i] = math.sqrt(a[i])


@clean(1, 8, lambda: (np.ones(8, np.bool_), i32(8)))
def bools(a, out):
    i = cuda.threadIdx.x
    if a[i] and a[7 - i]:
        out[i] = 1


@clean(1, 8, lambda: (np.ones(8, np.float16), f32(8)))
def half_floats(a, out):
    i = cuda.threadIdx.x
    out[i] = a[i] + a[7 - i]


@clean(1, 8, lambda: (f32(8), f32(8)))
def loads_and_stores_with_words_to_the_caches(a, out):
    i = cuda.threadIdx.x
    cuda.stcg(out, i, cuda.ldca(a, 7 - i))


@clean(1, 32, lambda: (f32(32), f32(32)))
def syncwarp_twice_in_a_loop(a, out):
    s = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    for _ in range(3):
        s[i] = a[i]
        cuda.syncwarp()
        out[i] += s[i ^ 1]
        cuda.syncwarp()


@clean(1, 64, lambda: (f32(64), f32(2)))
def sums_of_warps(a, out):
    part = cuda.shared.array(2, np.float32)
    i = cuda.threadIdx.x
    v = a[i]
    for step in (16, 8, 4, 2, 1):
        v += cuda.shfl_xor_sync(ALL, v, step)
    if i % 32 == 0:
        part[i // 32] = v
    cuda.syncthreads()
    if i < 2:
        out[i] = part[0] + part[1]


@clean(1, 32, lambda: (f32(32), i32(32)))
def compacted_by_a_ballot(a, out):
    i = cuda.threadIdx.x
    takes = i % 5 == 0
    votes = cuda.ballot_sync(ALL, takes)
    if takes:
        out[cuda.popc(votes & ((1 << i) - 1))] = i


@clean(1, 64, lambda: (count(64), i32(64), i32(1)))
def compacted_by_an_atomic_step(a, out, n):
    i = cuda.threadIdx.x
    if a[i] % 3 == 0:
        out[cuda.atomic.add(n, 0, 1)] = a[i]


@clean(2, 32, lambda: (i32(64), i32(1)))
def all_kinds_of_steps_on_one_element(x, n):
    i = cuda.grid(1)
    x[i] = cuda.atomic.add(n, 0, 1) + cuda.atomic.max(n, 0, i)
    cuda.atomic.min(n, 0, i)
    cuda.atomic.exch(n, 0, i)
    cuda.atomic.cas(n, 0, i, 0)


@clean(1, 64, lambda: (f32(64), f32(64)))
def ping_pong_between_arrays(a, b):
    i = cuda.threadIdx.x
    b[i] = a[(i + 1) % 64]
    cuda.syncthreads()
    a[i] = b[(i + 1) % 64]


@clean(1, 64, lambda: (count(64)[::-1].copy(),))
def bitonic_sort(x):
    s = cuda.shared.array(64, np.int32)
    i = cuda.threadIdx.x
    s[i] = x[i]
    cuda.syncthreads()
    size = 2
    while size <= 64:
        step = size // 2
        while step > 0:
            other = i ^ step
            if other > i:
                a, b = s[i], s[other]
                if (a > b) == ((i & size) == 0):
                    s[i] = b
                    s[other] = a
            cuda.syncthreads()
            step //= 2
        size *= 2
    x[i] = s[i]


@clean(1, (4, 4, 4), lambda: (f32(4, 4, 4), f32(4, 4, 4)))
def block_of_three_axes(a, out):
    s = cuda.shared.array((4, 4, 4), np.float32)
    x, y, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.threadIdx.z
    s[z, y, x] = a[z, y, x]
    cuda.syncthreads()
    out[z, y, x] = s[x, z, y]


@clean(4, 32, lambda: (f32(128), f32(4)))
def sum_of_each_block(a, out):
    s = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[cuda.grid(1)]
    cuda.syncthreads()
    total = block_sum(s, i, 32)
    if i == 0:
        out[cuda.blockIdx.x] = total


@clean(1, 32, lambda: (f32(32), f32(32)))
def read_only_by_all(a, out):
    i = cuda.threadIdx.x
    total = np.float32(0)
    for k in range(a.size):
        total += a[k]
    out[i] = total


@clean(1, 33, lambda: (f32(33), f32(33)))
def one_lane_in_the_last_warp(a, out):
    s = cuda.shared.array(33, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    cuda.syncthreads()
    out[i] = s[32 - i]


@clean(1, 64, lambda: (f32(64), i32(1), f32(1)))
def last_warp_of_a_block(a, n, out):
    s = cuda.shared.array(2, np.float32)
    i = cuda.threadIdx.x
    v = a[i]
    for step in (16, 8, 4, 2, 1):
        v += cuda.shfl_down_sync(ALL, v, step)
    if i % 32 == 0:
        s[i // 32] = v
        cuda.threadfence_block()
        if cuda.atomic.add(n, 0, 1) == 1:
            cuda.threadfence_block()
            out[0] = s[0] + s[1]


@clean(1, 8, lambda: (f32(8),))
def prints_and_reads_clocks(x):
    i = cuda.threadIdx.x
    x[i] += 0 * np.float32(cuda.clock64() & 1)
    cuda.nanosleep(1)


@clean(1, 64, lambda: (f32(48), f32(48)))
def tile_of_which_the_edge_is_not_copied_back(a, out):
    s = cuda.shared.array(64, np.float32)
    t = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    if i < a.size:
        s[i] = a[i]
    cuda.syncthreads()
    t[i] = s[i]
    cuda.syncthreads()
    if i < out.size:
        out[i] = t[i]


@clean(1, 8, lambda: (new(8), new(8)))
def copied_within_the_device(a, out):
    i = cuda.threadIdx.x
    out[i] = a[i]


@clean(1, 8, lambda: (f32(4),))
def local_array_copied_in_part(out):
    v = cuda.local.array(8, np.float32)
    w = cuda.local.array(8, np.float32)
    for k in range(4):
        v[k] = k
    for k in range(8):
        w[k] = v[k]
    if cuda.threadIdx.x < 4:
        out[cuda.threadIdx.x] = w[cuda.threadIdx.x]
