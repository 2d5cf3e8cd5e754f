"""Methods of cooperative groups: the first argument is the size for tiles, and the lanes for coalesced groups."""


def block_sync():
    """Synchronize all threads of the block."""
    cuda.syncthreads()


def block_thread_rank():
    """The thread's linear index in its block."""
    row = cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y
    return np.int32(row * cuda.blockDim.x + cuda.threadIdx.x)


def block_num_threads():
    """The number of threads of the block."""
    return np.int32(cuda.blockDim.x * cuda.blockDim.y * cuda.blockDim.z)


def block_size():
    """The same."""
    return block_num_threads()


def block_thread_index():
    """`threadIdx`."""
    return cuda.int32x3(cuda.threadIdx.x, cuda.threadIdx.y, cuda.threadIdx.z)


def block_group_index():
    """`blockIdx`."""
    return cuda.int32x3(cuda.blockIdx.x, cuda.blockIdx.y, cuda.blockIdx.z)


def block_dim_threads():
    """`blockDim`."""
    return cuda.int32x3(cuda.blockDim.x, cuda.blockDim.y, cuda.blockDim.z)


def block_group_dim():
    """The same."""
    return block_dim_threads()


def grid_num_blocks():
    """The number of blocks of the grid."""
    return cuda.gridDim.x * cuda.gridDim.y * cuda.gridDim.z


def grid_block_rank():
    """The block's linear index in the grid."""
    return (cuda.blockIdx.z * cuda.gridDim.y + cuda.blockIdx.y) * cuda.gridDim.x + cuda.blockIdx.x


def grid_num_threads():
    """The number of threads of the grid."""
    return grid_num_blocks() * block_num_threads()


def grid_size():
    """The same."""
    return grid_num_threads()


def grid_thread_rank():
    """The thread's linear index in the grid."""
    return grid_block_rank() * block_num_threads() + block_thread_rank()


def grid_block_index():
    """`blockIdx`."""
    return block_group_index()


def grid_dim_blocks():
    """`gridDim`."""
    return cuda.int32x3(cuda.gridDim.x, cuda.gridDim.y, cuda.gridDim.z)


def grid_is_valid():
    """Whether the grid's threads can synchronize."""
    return True


def tile_mask(size):
    """The mask of the lanes of the thread's tile."""
    return ((1 << size) - 1) << (cuda.laneid // size * size)


def tile_bits(size, lanes):
    """Shifts a mask of the warp's lanes to those of the tile, with its first lane in the lowest bit."""
    return np.uint32((np.uint32(lanes) & np.uint32(tile_mask(size))) >> (cuda.laneid // size * size))


def tile_sync(size):
    """Synchronize the lanes of the tile."""
    cuda.syncwarp(tile_mask(size))


def tile_thread_rank(size):
    """The thread's index in its tile."""
    return np.int32(cuda.laneid % size)


def tile_num_threads(size):
    """The number of threads of a tile."""
    return np.int32(size)


def tile_size(size):
    """The same."""
    return np.int32(size)


def tile_meta_group_rank(size):
    """The tile's index in the block."""
    return np.int32(block_thread_rank() // size)


def tile_meta_group_size(size):
    """The number of tiles of the block."""
    return np.int32((block_num_threads() + size - 1) // size)


def tile_shfl(size, value, rank):
    """The value of the thread with this index."""
    return cuda.shfl_sync(tile_mask(size), value, rank, size)


def tile_shfl_up(size, value, delta):
    """The value of the thread whose index is lower by `delta`."""
    return cuda.shfl_up_sync(tile_mask(size), value, delta, size)


def tile_shfl_down(size, value, delta):
    """The value of the thread whose index is higher by `delta`."""
    return cuda.shfl_down_sync(tile_mask(size), value, delta, size)


def tile_shfl_xor(size, value, lane_mask):
    """The value of the thread whose index differs in these bits."""
    return cuda.shfl_xor_sync(tile_mask(size), value, lane_mask, size)


def tile_any(size, predicate):
    """Whether it is true for any thread."""
    return cuda.any_sync(tile_mask(size), predicate)


def tile_all(size, predicate):
    """Whether it is true for all threads."""
    return cuda.all_sync(tile_mask(size), predicate)


def tile_ballot(size, predicate):
    """The threads for which it is true."""
    return tile_bits(size, cuda.ballot_sync(tile_mask(size), predicate))


def tile_match_any(size, value):
    """The threads with the same value."""
    return tile_bits(size, cuda.match_any_sync(tile_mask(size), value))


def tile_match_all(size, value):
    """All threads, if they have the same value, and whether they have."""
    lanes, alike = cuda.match_all_sync(tile_mask(size), value)
    return tile_bits(size, lanes), alike


def lane_of(lanes, rank):
    """The lane at an index among some lanes; 32 if there is none."""
    lane = 0
    while lane < 32:
        if lanes >> lane & 1:
            if rank == 0:
                break
            rank -= 1
        lane += 1
    return lane


def packed(lanes, some):
    """The indices of some lanes in a set of lanes, as bits."""
    bits = 0
    rank = 0
    for lane in range(32):
        if lanes >> lane & 1:
            bits |= (some >> lane & 1) << rank
            rank += 1
    return np.uint32(bits)


def coalesced_sync(lanes):
    """Synchronize the lanes."""
    cuda.syncwarp(lanes)


def coalesced_thread_rank(lanes):
    """The thread's index among the lanes."""
    return np.int32(np.bitwise_count(np.uint32(lanes & lanemask_lt())))


def coalesced_num_threads(lanes):
    """The number of lanes."""
    return np.int32(np.bitwise_count(np.uint32(lanes)))


def coalesced_size(lanes):
    """The same."""
    return coalesced_num_threads(lanes)


def coalesced_meta_group_rank(lanes):
    """Always 0: it is the only one."""
    del lanes
    return np.int32(0)


def coalesced_meta_group_size(lanes):
    """Always 1: it is the only one."""
    del lanes
    return np.int32(1)


def coalesced_shfl(lanes, value, rank):
    """The value of the lane at an index."""
    return cuda.shfl_sync(lanes, value, lane_of(lanes, rank))


def coalesced_shfl_up(lanes, value, delta):
    """The value of the lane whose rank is smaller by `delta`."""
    rank = coalesced_thread_rank(lanes) - delta
    lane = np.int64(cuda.laneid)
    if 0 <= rank < 32:
        lane = np.int64(lane_of(lanes, rank))
    return cuda.shfl_sync(lanes, value, lane)


def coalesced_shfl_down(lanes, value, delta):
    """The value of the lane whose rank is larger by `delta`."""
    rank = coalesced_thread_rank(lanes) + delta
    lane = np.int64(cuda.laneid)
    if 0 <= rank < coalesced_num_threads(lanes):
        lane = np.int64(lane_of(lanes, rank))
    return cuda.shfl_sync(lanes, value, lane)


def coalesced_any(lanes, predicate):
    """Whether it is true in any lane."""
    return cuda.any_sync(lanes, predicate)


def coalesced_all(lanes, predicate):
    """Whether it is true in all lanes."""
    return cuda.all_sync(lanes, predicate)


def coalesced_ballot(lanes, predicate):
    """The indices of the lanes in which it is true, as bits."""
    return packed(np.int64(lanes), np.int64(np.uint32(cuda.ballot_sync(lanes, predicate))))


def coalesced_match_any(lanes, value):
    """The indices of the lanes with the same value, as bits."""
    return packed(np.int64(lanes), np.int64(np.uint32(cuda.match_any_sync(lanes, value))))


def coalesced_match_all(lanes, value):
    """The indices of all lanes, if they have the same value, and whether they have."""
    some, alike = cuda.match_all_sync(lanes, value)
    return packed(np.int64(lanes), np.int64(np.uint32(some))), alike
