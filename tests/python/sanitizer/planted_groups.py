"""Kernels with faults in cooperative groups and device functions, and uses of uninitialized values."""

import numpy as np
from cases import clean, f32, i32, planted
from weft import cuda
from weft.cuda import cg


@planted("synccheck", 1, 32, lambda: (f32(32),))
def tile_syncs_in_a_branch(out):
    tile = cg.tiled_partition(cg.this_thread_block(), 32)
    i = cuda.threadIdx.x
    if i < 16:
        tile.sync()  # fault
    out[i] = i


@planted("synccheck", 1, 64, lambda: (f32(64),))
def block_syncs_in_a_branch(out):
    block = cg.this_thread_block()
    i = cuda.threadIdx.x
    if i < 40:
        block.sync()  # fault
    out[i] = i


@planted("synccheck", 1, 32, lambda: (f32(32), i32(32)))
def shuffle_of_a_tile_in_a_branch(a, out):
    tile = cg.tiled_partition(cg.this_thread_block(), 16)
    i = cuda.threadIdx.x
    out[i] = 0
    if i % 2 == 0:
        out[i] = tile.shfl(a[i], 0)  # fault


@planted("synccheck", 1, 32, lambda: (f32(32), i32(32)))
def group_that_has_shrunk(a, out):
    group = cg.coalesced_threads()
    i = cuda.threadIdx.x
    out[i] = 0
    if a[i] * i < 8:
        out[i] = group.any(i == 3)  # fault


@planted("synccheck", 1, 64, lambda: (f32(64),))
def barriers_of_a_block_at_two_places(out):
    block = cg.this_thread_block()
    i = cuda.threadIdx.x
    if i < 32:
        block.sync()  # fault
    else:
        block.sync()  # fault
    out[i] = i


@clean(1, 64, lambda: (f32(64), f32(64)))
def groups_that_all_come_to(a, out):
    block = cg.this_thread_block()
    tile = cg.tiled_partition(block, 8)
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    tile.sync()
    v = s[i ^ 1] + tile.shfl_xor(a[i], 2)
    block.sync()
    s[i] = v
    block.sync()
    out[i] = s[63 - i]


@clean(1, 32, lambda: (f32(32), i32(32)))
def group_of_those_that_are_there(a, out):
    i = cuda.threadIdx.x
    out[i] = 0
    if a[i] * i < 8:
        group = cg.coalesced_threads()
        out[i] = group.size()
        group.sync()


@cuda.jit(device=True)
def meets():
    cuda.syncthreads()


@clean(1, 64, lambda: (f32(64),))
def one_barrier_called_from_two_places(out):
    i = cuda.threadIdx.x
    if i < 32:
        meets()
    else:
        meets()
    out[i] = i


@clean((2, 2), (3, 3), lambda: (f32(5, 5), f32(5, 5)))
def edge_of_a_tile_that_nobody_stores(a, out):
    tile = cuda.shared.array((3, 3), np.float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    if x < 5 and y < 5:
        tile[ty, tx] = a[y, x]
    cuda.syncthreads()
    total = np.float32(0)
    for k in range(3):
        total += tile[ty, k] * 2
    cuda.syncthreads()
    if x < 5 and y < 5:
        limit = min(3, 5 - 3 * cuda.blockIdx.x)
        total = np.float32(0)
        for k in range(limit):
            total += tile[ty, k]
        out[y, x] = total


@planted("initcheck", 1, 8, lambda: (f32(8),))
def sum_that_is_stored(out):
    s = cuda.shared.array(16, np.float32)
    i = cuda.threadIdx.x
    s[i] = i
    cuda.syncthreads()
    total = np.float32(0)
    for k in range(9):
        total += s[k]  # fault
    out[i] = total


@planted("initcheck", 1, 8, lambda: (f32(8),))
def branch_on_a_computed_value(out):
    own = cuda.local.array(4, np.int32)
    i = cuda.threadIdx.x
    own[0] = i
    v = own[1] * 2 + 1  # fault
    if v > 3:
        out[i] = 1


@planted("initcheck", 1, 8, lambda: (f32(8), f32(8)))
def address_that_is_computed(a, out):
    own = cuda.local.array(4, np.int32)
    i = cuda.threadIdx.x
    v = own[i % 4] & 7  # fault
    out[i] = a[v]


@planted("initcheck", 1, 8, lambda: (i32(1),))
def step_by_a_computed_value(n):
    own = cuda.local.array(2, np.int32)
    v = own[0] + own[1]  # fault
    cuda.atomic.add(n, 0, v)


@planted("racecheck", 1, 64, lambda: (f32(64),))
def race_in_two_dimensions(out):
    tile = cuda.shared.array((2, 32), np.float32)
    i = cuda.threadIdx.x
    tile[i // 32, i % 32] = i  # fault
    out[i] = tile[1 - i // 32, i % 32]  # fault
