"""Kernels with a race between blocks, or with locks, flags and tickets whose memory order is too weak."""

import numpy as np
from cases import count, f32, i32, planted
from weft import cuda


@planted("racecheck", 4, 32, lambda: (count(128), i32(8)))
def histogram_of_all_blocks(x, out):
    i = cuda.grid(1)
    out[x[i] % 8] += 1  # fault


@planted("racecheck", 4, 32, lambda: (f32(4),))
def every_block_writes_one(out):
    if cuda.threadIdx.x == 0:
        out[0] = cuda.blockIdx.x  # fault


@planted("racecheck", 4, 32, lambda: (f32(130),))
def stencil_over_blocks(x):
    i = cuda.grid(1) + 1
    v = x[i - 1] + x[i + 1]  # fault
    cuda.syncthreads()
    x[i] = v  # fault


@planted("racecheck", 2, 64, lambda: (f32(64), f32(128)))
def blocks_share_a_buffer(buffer, out):
    i = cuda.threadIdx.x
    buffer[i] = cuda.blockIdx.x  # fault
    cuda.syncthreads()
    out[cuda.grid(1)] = buffer[63 - i]  # fault


@planted("racecheck", 4, 32, lambda: (f32(4), f32(4)))
def neighbors_result_without_grid_barrier(part, out):
    b = cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        part[b] = b  # fault
        out[b] = part[(b + 1) % 4]  # fault


@planted("racecheck", 4, 32, lambda: (f32(4), i32(1), f32(1)))
def last_block_without_fence(part, n, out):
    b = cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        part[b] = b  # fault
        if cuda.atomic.add(n, 0, 1) == 3:
            cuda.threadfence()
            total = np.float32(0)
            for k in range(4):
                total += part[k]  # fault
            out[0] = total


@planted("racecheck", 4, 32, lambda: (f32(4), i32(1), f32(1)))
def last_block_without_acquire(part, n, out):
    b = cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        part[b] = b  # fault
        cuda.threadfence()
        if cuda.atomic.add(n, 0, 1) == 3:
            total = np.float32(0)
            for k in range(4):
                total += part[k]  # fault
            out[0] = total


@planted("racecheck", 4, 32, lambda: (f32(4), i32(1), f32(1)))
def last_block_with_fence_of_block(part, n, out):
    b = cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        part[b] = b  # fault
        cuda.threadfence_block()
        if cuda.atomic.add(n, 0, 1) == 3:
            cuda.threadfence()
            total = np.float32(0)
            for k in range(4):
                total += part[k]  # fault
            out[0] = total


@planted("racecheck", 4, 32, lambda: (f32(128), i32(1), f32(1)))
def last_block_without_first_barrier(part, n, out):
    last = cuda.shared.array(1, np.int32)
    i = cuda.threadIdx.x
    part[cuda.grid(1)] = i  # fault
    if i == 0:
        cuda.threadfence()
        last[0] = cuda.atomic.add(n, 0, 1)
    cuda.syncthreads()
    if last[0] == 3 and i == 0:
        total = np.float32(0)
        for k in range(128):
            total += part[k]  # fault
        out[0] = total


@planted("racecheck", 4, 1, lambda: (i32(1), f32(1)))
def lock_without_acquire_fence(lock, x):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    x[0] += 1  # fault
    cuda.threadfence()
    cuda.atomic.exch(lock, 0, 0)


@planted("racecheck", 4, 1, lambda: (i32(1), f32(1)))
def lock_without_release_fence(lock, x):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    cuda.threadfence()
    x[0] += 1  # fault
    cuda.atomic.exch(lock, 0, 0)


@planted("racecheck", 4, 1, lambda: (i32(1), f32(1)))
def lock_without_fences(lock, x):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    x[0] += 1  # fault
    cuda.atomic.exch(lock, 0, 0)


@planted("racecheck", 4, 1, lambda: (i32(1), f32(1)))
def lock_released_by_a_store(lock, x):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:  # fault
        pass
    cuda.threadfence()
    x[0] += 1  # may
    cuda.threadfence()
    lock[0] = 0  # fault


@planted("racecheck", 4, 1, lambda: (i32(2), f32(1)))
def two_locks_for_one_thing(lock, x):
    mine = cuda.blockIdx.x % 2
    while cuda.atomic.cas(lock, mine, 0, 1) != 0:
        pass
    cuda.threadfence()
    x[0] += 1  # fault
    cuda.threadfence()
    cuda.atomic.exch(lock, mine, 0)


@planted("racecheck", 2, 1, lambda: (i32(1), f32(1), f32(1)))
def flag_without_fence(flag, x, out):
    if cuda.blockIdx.x == 0:
        x[0] = 5  # fault
        cuda.atomic.exch(flag, 0, 1)
    else:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        cuda.threadfence()
        out[0] = x[0]  # fault


@planted("racecheck", 2, 1, lambda: (i32(1), f32(1), f32(1)))
def flag_without_acquire(flag, x, out):
    if cuda.blockIdx.x == 0:
        x[0] = 5  # fault
        cuda.threadfence()
        cuda.atomic.exch(flag, 0, 1)
    else:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        out[0] = x[0]  # fault


@planted("racecheck", 2, 1, lambda: (i32(1), f32(1), f32(1)))
def flag_set_before_the_data(flag, x, out):
    if cuda.blockIdx.x == 0:
        cuda.threadfence()
        cuda.atomic.exch(flag, 0, 1)
        x[0] = 5  # fault
    else:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        cuda.threadfence()
        out[0] = x[0]  # fault


@planted("racecheck", 2, 1, lambda: (i32(1), f32(1), f32(1)))
def flag_by_a_plain_store(flag, x, out):
    if cuda.blockIdx.x == 0:
        x[0] = 5  # may
        cuda.threadfence()
        flag[0] = 1  # fault
    else:
        while cuda.atomic.add(flag, 0, 0) == 0:  # fault
            pass
        cuda.threadfence()
        out[0] = x[0]  # may


@planted("racecheck", 4, 1, lambda: (i32(1),))
def atomic_of_block_between_blocks(n):
    cuda.atomic.add(n, 0, 1, scope="block")  # fault


@planted("racecheck", 2, 1, lambda: (i32(1), f32(1), f32(1)))
def release_of_block_between_blocks(flag, x, out):
    if cuda.blockIdx.x == 0:
        x[0] = 5  # fault
        cuda.atomic.exch(flag, 0, 1, order="release", scope="block")  # fault
    else:
        while cuda.atomic.add(flag, 0, 0, order="acquire") == 0:  # fault
            pass
        out[0] = x[0]  # fault


@planted("racecheck", 4, 1, lambda: (i32(2), f32(1)))
def ticket_without_fence(ticket, x):
    mine = cuda.atomic.add(ticket, 0, 1)
    while cuda.atomic.add(ticket, 1, 0) != mine:
        pass
    x[0] += 1  # fault
    cuda.atomic.add(ticket, 1, 1)


@planted("racecheck", 4, 1, lambda: (i32(4), f32(4), f32(4)))
def look_back_without_fence(ready, total, out):
    b = cuda.blockIdx.x
    before = np.float32(0)
    if b > 0:
        while cuda.atomic.add(ready, b - 1, 0) == 0:
            pass
        cuda.threadfence()
        before = total[b - 1]  # fault
    total[b] = before + 1  # fault
    cuda.atomic.exch(ready, b, 1)
    out[b] = before


@planted("racecheck", 2, 32, lambda: (f32(1), f32(1)))
def float_maximum_by_hand(a, best):
    v = a[0] * cuda.grid(1)
    if v > best[0]:  # fault
        best[0] = v  # fault


@planted("racecheck", 2, 32, lambda: (i32(1), i32(64)))
def slots_by_a_plain_counter(n, out):
    at = n[0]  # fault
    n[0] = at + 1  # fault
    out[at % 64] = 1  # may


@planted("racecheck", (2, 2), (4, 4), lambda: (f32(8, 8),))
def transposed_in_place(m):
    x, y = cuda.grid(2)
    v = m[y, x]  # fault
    m[x, y] = v  # fault


@planted("racecheck", 4, 32, lambda: (f32(128), f32(64)))
def reduced_grid_stride(a, out):
    i = cuda.grid(1)
    out[i // 2] += a[i]  # fault


@planted("racecheck", 2, 32, lambda: (f32(64), i32(2)))
def spin_on_one_of_two_flags(x, flags):
    i = cuda.threadIdx.x
    if cuda.blockIdx.x == 0:
        x[i] = i  # fault
        cuda.threadfence()
        cuda.syncthreads()
        if i == 0:
            cuda.atomic.exch(flags, 0, 1)
    else:
        if i == 0:
            while cuda.atomic.add(flags, 0, 0) == 0:
                pass
            cuda.threadfence()
        x[i] += 1  # fault
