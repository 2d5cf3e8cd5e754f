"""Kernels whose blocks communicate in ways that CUDA allows."""

import numpy as np
from cases import clean, count, f32, i32, new
from weft import cuda

TABLE = np.arange(8, dtype=np.float32)


@clean(4, 32, lambda: (count(128), i32(8)))
def histogram_by_atomics(x, out):
    cuda.atomic.add(out, x[cuda.grid(1)] % 8, 1)


@clean(4, 32, lambda: (f32(128), f32(1)))
def sums_by_atomics(a, out):
    cuda.atomic.add(out, 0, a[cuda.grid(1)])


@clean(4, 32, lambda: (f32(4), i32(1), f32(1)))
def last_block(part, n, out):
    b = cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        part[b] = b
        cuda.threadfence()
        if cuda.atomic.add(n, 0, 1) == 3:
            cuda.threadfence()
            total = np.float32(0)
            for k in range(4):
                total += part[k]
            out[0] = total


@clean(4, 32, lambda: (f32(128), np.zeros(1, np.uint32), f32(1)))
def last_block_of_all_threads(part, n, out):
    last = cuda.shared.array(1, np.int32)
    i = cuda.threadIdx.x
    part[cuda.grid(1)] = i
    cuda.threadfence()
    cuda.syncthreads()
    if i == 0:
        last[0] = cuda.atomic.inc(n, 0, 3)
    cuda.syncthreads()
    if last[0] == 3:
        total = np.float32(0)
        for k in range(i, 128, 32):
            total += part[k]
        cuda.atomic.add(out, 0, total)


@clean(4, 32, lambda: (f32(128), i32(1), f32(1)))
def last_block_with_one_fence(part, n, out):
    last = cuda.shared.array(1, np.int32)
    i = cuda.threadIdx.x
    part[cuda.grid(1)] = i
    cuda.syncthreads()
    if i == 0:
        cuda.threadfence()
        last[0] = cuda.atomic.add(n, 0, 1)
    cuda.syncthreads()
    if last[0] == 3 and i == 0:
        total = np.float32(0)
        for k in range(128):
            total += part[k]
        out[0] = total


@clean(8, 1, lambda: (i32(1), f32(1)))
def lock(lock, x):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    cuda.threadfence()
    x[0] += 1
    cuda.threadfence()
    cuda.atomic.exch(lock, 0, 0)


@clean(8, 1, lambda: (i32(1), f32(1)))
def lock_by_orders(lock, x):
    while cuda.atomic.cas(lock, 0, 0, 1, order="acquire") != 0:
        pass
    x[0] += 1
    cuda.atomic.exch(lock, 0, 0, order="release")


@clean(4, 32, lambda: (i32(1), f32(32)))
def lock_of_a_block(lock, x):
    i = cuda.threadIdx.x
    if i == 0:
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:
            pass
        cuda.threadfence()
    cuda.syncthreads()
    x[31 - i] += 1
    cuda.syncthreads()
    if i == 0:
        cuda.threadfence()
        cuda.atomic.exch(lock, 0, 0)


@clean(4, 1, lambda: (i32(2), f32(1)))
def ticket(ticket, x):
    mine = cuda.atomic.add(ticket, 0, 1)
    while cuda.atomic.add(ticket, 1, 0) != mine:
        pass
    cuda.threadfence()
    x[0] += 1
    cuda.threadfence()
    cuda.atomic.add(ticket, 1, 1)


@clean(2, 1, lambda: (i32(1), f32(1), f32(1)))
def flag(flag, x, out):
    if cuda.blockIdx.x == 0:
        x[0] = 5
        cuda.threadfence()
        cuda.atomic.exch(flag, 0, 1)
    else:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        cuda.threadfence()
        out[0] = x[0]


@clean(2, 1, lambda: (i32(1), f32(1), f32(1)))
def flag_of_a_later_block(flag, x, out):
    if cuda.blockIdx.x == 1:
        x[0] = 5
        cuda.threadfence()
        cuda.atomic.exch(flag, 0, 1)
    else:
        while cuda.atomic.cas(flag, 0, 1, 1) == 0:
            pass
        cuda.threadfence()
        out[0] = x[0]


@clean(2, 1, lambda: (i32(1), f32(1), f32(1)))
def flag_by_orders(flag, x, out):
    if cuda.blockIdx.x == 0:
        x[0] = 5
        cuda.atomic.exch(flag, 0, 1, order="release")
    else:
        while cuda.atomic.add(flag, 0, 0, order="acquire") == 0:
            pass
        out[0] = x[0]


@clean(2, 1, lambda: (i32(1), f32(1), f32(1)))
def flag_read_by_a_volatile_load(flag, x, out):
    if cuda.blockIdx.x == 0:
        x[0] = 5
        cuda.threadfence()
        cuda.atomic.exch(flag, 0, 1)
    else:
        while cuda.ldcv(flag, 0) == 0:
            pass
        cuda.threadfence()
        out[0] = x[0]


@clean(2, 32, lambda: (i32(1), f32(32), f32(32)))
def flag_for_a_whole_block(flag, x, out):
    i = cuda.threadIdx.x
    if cuda.blockIdx.x == 0:
        x[i] = i
        cuda.syncthreads()
        if i == 0:
            cuda.threadfence()
            cuda.atomic.exch(flag, 0, 1)
    else:
        if i == 0:
            while cuda.atomic.add(flag, 0, 0) == 0:
                pass
            cuda.threadfence()
        cuda.syncthreads()
        out[i] = x[31 - i]


@clean(4, 1, lambda: (i32(4), f32(4), f32(4)))
def look_back(ready, total, out):
    b = cuda.blockIdx.x
    before = np.float32(0)
    if b > 0:
        while cuda.atomic.add(ready, b - 1, 0) == 0:
            pass
        cuda.threadfence()
        before = total[b - 1]
    total[b] = before + 1
    cuda.threadfence()
    cuda.atomic.exch(ready, b, 1)
    out[b] = before


@clean(3, 1, lambda: (i32(2), f32(1), f32(1)))
def handed_on_by_a_third_block(flags, x, out):
    b = cuda.blockIdx.x
    if b == 0:
        x[0] = 5
        cuda.threadfence()
        cuda.atomic.exch(flags, 0, 1)
    elif b == 1:
        while cuda.atomic.add(flags, 0, 0) == 0:
            pass
        cuda.threadfence()
        cuda.atomic.exch(flags, 1, 1)
    else:
        while cuda.atomic.add(flags, 1, 0) == 0:
            pass
        cuda.threadfence()
        out[0] = x[0]


@clean(4, 32, lambda: (f32(128), f32(128)))
def stencil_into_another_array(a, out):
    i = cuda.grid(1)
    if 0 < i < a.size - 1:
        out[i] = a[i - 1] + a[i + 1]


@clean(4, 32, lambda: (f32(100),))
def guarded(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


@clean(2, 32, lambda: (f32(500),))
def grid_stride(x):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        x[i] += i


@clean((2, 2), (8, 8), lambda: (f32(16, 16), f32(16, 16)))
def transposed(a, out):
    tile = cuda.shared.array((8, 9), np.float32)
    x, y = cuda.grid(2)
    tile[cuda.threadIdx.y, cuda.threadIdx.x] = a[y, x]
    cuda.syncthreads()
    tx = cuda.blockIdx.y * 8 + cuda.threadIdx.x
    ty = cuda.blockIdx.x * 8 + cuda.threadIdx.y
    out[ty, tx] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


@clean(2, 32, lambda: (i32(1), i32(64)))
def slots_by_an_atomic_counter(n, out):
    at = cuda.atomic.add(n, 0, 1)
    out[at] = 1


@clean(2, 32, lambda: (f32(64), f32(1)))
def maximum_by_atomics(a, best):
    cuda.atomic.max(best, 0, a[cuda.grid(1)])


@clean(4, 32, lambda: (np.zeros(128, np.uint8),))
def bytes_of_all_blocks(x):
    x[cuda.grid(1)] = 1


@clean(2, 33, lambda: (np.zeros(66, np.uint8),))
def blocks_share_a_word(x):
    x[cuda.grid(1)] += 1


@clean(1, 8, lambda: (new(8), f32(8)))
def device_array_written_first(a, out):
    i = cuda.threadIdx.x
    a[i] = i
    out[i] = a[i] * 2


@clean(1, 8, lambda: (new(8), new(8)))
def copies_are_no_use(a, out):
    i = cuda.threadIdx.x
    v = a[i]
    out[7 - i] = v


@clean(1, 8, lambda: (new(8), f32(4)))
def written_in_part_and_read_in_part(a, out):
    i = cuda.threadIdx.x
    if i < 4:
        a[i] = i
        out[i] = a[i] + 1


@clean(1, 8, lambda: (cuda.to_device(f32(8)), f32(8)))
def copied_to_the_device(a, out):
    i = cuda.threadIdx.x
    out[i] = a[i] + 1


@clean(1, 8, lambda: (f32(8),))
def constant_array(out):
    i = cuda.threadIdx.x
    out[i] = TABLE[i] + TABLE[-1 - i]


@clean(1, 4, lambda: (f32(4, 8),))
def all_ways_to_index(m):
    i = cuda.threadIdx.x
    m[i, -1] = m[i][0] + m[i, :4][3] + m[i, 1:][-1] + m[i, ::2][3] + m[-1 - i][1]


@clean(1, (2, 2, 2), lambda: (f32(2, 2, 2),))
def all_of_three_axes(x):
    i, j, k = cuda.grid(3)
    x[i, j, k] += 1


@clean(1, 8, lambda: (np.asfortranarray(f32(8, 4)), f32(32)[::4]))
def other_layouts(m, x):
    i = cuda.threadIdx.x
    m[i, 3] = x[i]


@clean(1, 16, lambda: (f32(16),))
def slices_are_clipped(x):
    i = cuda.threadIdx.x
    part = x[i : i + 100]
    x[i] = part[0] + part.size
