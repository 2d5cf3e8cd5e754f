"""Kernels with wrong barriers, masks and waits."""

import numpy as np
from cases import f32, i32, planted
from weft import cuda

ALL = 0xFFFFFFFF


@planted("synccheck", 1, 64, lambda: (f32(64),))
def barrier_in_a_branch(out):
    i = cuda.threadIdx.x
    if i < 32:
        cuda.syncthreads()  # fault
    out[i] = i


@planted("synccheck", 1, 64, lambda: (f32(64),))
def barrier_in_a_branch_of_a_warp(out):
    i = cuda.threadIdx.x
    if i % 2 == 0:
        cuda.syncthreads()  # fault
    out[i] = i


@planted("synccheck", 1, 64, lambda: (f32(64),))
def barriers_in_both_branches(out):
    i = cuda.threadIdx.x
    if i < 32:
        cuda.syncthreads()  # fault
    else:
        cuda.syncthreads()  # fault
    out[i] = i


@planted("synccheck", 1, 64, lambda: (f32(64),))
def barriers_in_loops_of_different_length(out):
    i = cuda.threadIdx.x
    for _ in range(1 + i // 32):
        cuda.syncthreads()  # fault
    out[i] = i


@planted("synccheck", 1, 64, lambda: (f32(64),))
def barrier_behind_break(out):
    i = cuda.threadIdx.x
    for turn in range(4):
        if turn == 2 and i == 0:
            break
        cuda.syncthreads()  # fault
    out[i] = i


@planted("synccheck", 1, 64, lambda: (f32(64), i32(64)))
def count_in_a_branch(a, out):
    i = cuda.threadIdx.x
    out[i] = 0
    if i < 40:
        out[i] = cuda.syncthreads_count(a[i] > 0)  # fault


@planted("synccheck", 1, 64, lambda: (f32(64),))
def different_barriers(out):
    i = cuda.threadIdx.x
    if i == 0:
        cuda.syncthreads()  # fault
        out[0] = 1
        cuda.syncthreads()  # may
    else:
        cuda.syncthreads()  # fault
        cuda.syncthreads()  # may


@planted("synccheck", 1, 32, lambda: (f32(32),))
def syncwarp_without_the_caller(out):
    i = cuda.threadIdx.x
    cuda.syncwarp(0x0000FFFF)  # fault
    out[i] = i


@planted("synccheck", 1, 32, lambda: (f32(32),))
def ballot_without_the_caller(out):
    i = cuda.threadIdx.x
    out[i] = cuda.ballot_sync(0xFFFF, i < 3)  # fault


@planted("synccheck", 1, 32, lambda: (f32(32), f32(32)))
def shuffle_in_a_branch_names_all(a, out):
    i = cuda.threadIdx.x
    v = a[i]
    if i < 16:
        v = cuda.shfl_sync(ALL, v, 0)  # fault
    out[i] = v


@planted("synccheck", 1, 32, lambda: (f32(32), f32(32)))
def ballot_in_a_branch_names_all(a, out):
    i = cuda.threadIdx.x
    out[i] = 0
    if i % 2:
        out[i] = cuda.ballot_sync(ALL, a[i] > 0)  # fault


@planted("synccheck", 1, 32, lambda: (f32(32), f32(32)))
def shuffles_at_two_places(a, out):
    i = cuda.threadIdx.x
    if i < 16:
        out[i] = cuda.shfl_xor_sync(ALL, a[i], 1)  # fault
    else:
        out[i] = cuda.shfl_xor_sync(ALL, a[i], 1)  # fault


@planted("synccheck", 1, 32, lambda: (f32(32), f32(32)))
def vote_and_shuffle(a, out):
    i = cuda.threadIdx.x
    if i < 16:
        out[i] = cuda.shfl_sync(ALL, a[i], 0)  # fault
    else:
        out[i] = cuda.ballot_sync(ALL, a[i] > 0)  # fault


@planted("synccheck", 1, 32, lambda: (f32(32),))
def masks_that_differ(out):
    i = cuda.threadIdx.x
    mask = ALL
    if i == 5:
        mask = 0x000000FF
    cuda.syncwarp(mask)  # fault
    out[i] = i


@planted("synccheck", 1, 32, lambda: (f32(32), f32(32)))
def shuffle_from_a_lane_outside_of_the_mask(a, out):
    i = cuda.threadIdx.x
    if i < 16:
        out[i] = cuda.shfl_sync(0xFFFF, a[i], 20)  # fault


@planted("synccheck", 1, 32, lambda: (f32(32), f32(32)))
def shuffle_down_out_of_the_mask(a, out):
    i = cuda.threadIdx.x
    if i < 8:
        out[i] = cuda.shfl_down_sync(0xFF, a[i], 4)  # fault


@planted("synccheck", 1, 20, lambda: (f32(20), f32(20)))
def shuffle_from_a_lane_that_there_is_not(a, out):
    i = cuda.threadIdx.x
    out[i] = cuda.shfl_sync(ALL, a[i], 25)  # fault


@planted("synccheck", 1, 64, lambda: (f32(64),))
def syncwarp_against_barrier(out):
    i = cuda.threadIdx.x
    if i < 16:
        cuda.syncwarp()  # fault
    cuda.syncthreads()  # fault
    out[i] = i


@planted("synccheck", 1, 32, lambda: (i32(1),))
def flag_that_nobody_sets(flag):
    if cuda.threadIdx.x == 0:
        while cuda.atomic.add(flag, 0, 0) == 0:  # fault
            pass


@planted("synccheck", 1, 64, lambda: (i32(1),))
def flag_set_behind_the_barrier(flag):
    i = cuda.threadIdx.x
    if i == 0:
        while cuda.atomic.add(flag, 0, 0) == 0:  # fault
            pass
    cuda.syncthreads()  # fault
    if i == 1:
        cuda.atomic.exch(flag, 0, 1)


@planted("synccheck", 1, 2, lambda: (i32(2),))
def locks_taken_in_different_order(lock):
    i = cuda.threadIdx.x
    while cuda.atomic.cas(lock, i, 0, 1) != 0:
        pass
    cuda.syncwarp(3)
    while cuda.atomic.cas(lock, 1 - i, 0, 1) != 0:  # fault
        pass
    cuda.atomic.exch(lock, 1 - i, 0)
    cuda.atomic.exch(lock, i, 0)


@planted("synccheck", 1, 1, lambda: (i32(1),))
def lock_taken_twice(lock):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:  # fault
        pass


@planted("synccheck", 1, 32, lambda: (f32(32), f32(32)))
def match_in_a_branch_names_all(a, out):
    i = cuda.threadIdx.x
    out[i] = 0
    if i < 30:
        out[i] = cuda.match_any_sync(ALL, i // 8)  # fault


@planted("synccheck", 2, 64, lambda: (f32(100), f32(100)))
def barrier_in_a_guard(a, out):
    s = cuda.shared.array(64, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    s[t] = 0
    if i < a.size:
        s[t] = a[i]
        cuda.syncthreads()  # fault
        out[i] = s[63 - t]


@planted("synccheck", 1, 64, lambda: (f32(64),))
def return_before_a_barrier_of_which_others_skip_one(out):
    t = cuda.threadIdx.x
    if t > 40:
        return
    out[t] = t
    if t < 20:
        cuda.syncthreads()  # fault
