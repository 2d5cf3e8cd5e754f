//! Rows of cooperative groups: functions that return a group, and the methods of each.

use super::{
    super::{Custom, Intrinsic, Lowering, Ptx, Signature},
    tables::{numbers, row as operator},
};

const SUM: &[Signature] =
    numbers![I64 I64 -> I64, U64 U64 -> U64, F32 F32 -> F32, F64 F64 -> F64, C64 C64 -> C64, C128 C128 -> C128];
const ORDER: &[Signature] = numbers![I64 I64 -> I64, U64 U64 -> U64, F32 F32 -> F32, F64 F64 -> F64];
const BITS: &[Signature] = numbers![BOOL BOOL -> BOOL, I64 I64 -> I64, U64 U64 -> U64];

const fn group(path: &'static str, custom: Custom, doc: &'static str) -> Intrinsic {
    Intrinsic { path, signatures: &[], lowering: Lowering::Custom(custom), ptx: Ptx::Computed, doc }
}

const fn method(path: &'static str, doc: &'static str) -> Intrinsic {
    group(path, Custom::GroupMethod, doc)
}

pub(super) const GROUPS: &[Intrinsic] = &[
    group(
        "weft.cuda.cg.this_grid",
        Custom::ThisGrid,
        "All threads of the grid. A kernel that calls it is launched cooperatively: all of its blocks run at the same \
         time.",
    ),
    group("weft.cuda.cg.this_thread_block", Custom::ThisThreadBlock, "The threads of the block."),
    group(
        "weft.cuda.cg.tiled_partition",
        Custom::TiledPartition,
        "`tiled_partition(group, size)`: splits the threads of a block or of a tile into tiles of 1, 2, 4, 8, 16 or \
         32 lanes.",
    ),
    group(
        "weft.cuda.cg.coalesced_threads",
        Custom::CoalescedThreads,
        "The lanes of the warp that execute this call together, as in `activemask`.",
    ),
    group(
        "weft.cuda.cg.reduce",
        Custom::GroupCollective,
        "`reduce(group, value, op)`: combines the values of all threads of a block, a tile or a coalesced group with \
         an associative function `op(a, b)` in the order of the threads. Every thread gets the result.",
    ),
    group(
        "weft.cuda.cg.inclusive_scan",
        Custom::GroupCollective,
        "`inclusive_scan(group, value, op=plus)`: combines the values of the threads up to and including this one.",
    ),
    group(
        "weft.cuda.cg.exclusive_scan",
        Custom::GroupCollective,
        "`exclusive_scan(group, value, op=plus)`: combines the values of the threads before this one; the first gets \
         0.",
    ),
    operator("weft.cuda.cg.plus", SUM, Lowering::Operator("+"), "`a + b`."),
    operator("weft.cuda.cg.less", ORDER, Lowering::Custom(Custom::Min), "The minimum of two values."),
    operator("weft.cuda.cg.greater", ORDER, Lowering::Custom(Custom::Max), "The maximum of two values."),
    operator("weft.cuda.cg.bit_and", BITS, Lowering::Operator("&"), "`a & b`."),
    operator("weft.cuda.cg.bit_or", BITS, Lowering::Operator("|"), "`a | b`."),
    operator("weft.cuda.cg.bit_xor", BITS, Lowering::Operator("^"), "`a ^ b`."),
    method(
        "weft.cuda.cg.GridGroup.sync",
        "Waits for all threads of the grid that have not returned, and orders memory between them; returns 0.",
    ),
    method("weft.cuda.cg.GridGroup.thread_rank", "The index of the thread in the grid, an `int64`."),
    method("weft.cuda.cg.GridGroup.num_threads", "The number of threads of the grid, an `int64`."),
    method("weft.cuda.cg.GridGroup.size", "The same."),
    method("weft.cuda.cg.GridGroup.block_rank", "The index of the block in the grid, an `int64`."),
    method("weft.cuda.cg.GridGroup.num_blocks", "The number of blocks of the grid, an `int64`."),
    method("weft.cuda.cg.GridGroup.block_index", "`blockIdx`, an `int32x3`."),
    method("weft.cuda.cg.GridGroup.dim_blocks", "`gridDim`, an `int32x3`."),
    method("weft.cuda.cg.GridGroup.is_valid", "`True`."),
    method("weft.cuda.cg.ThreadBlock.sync", "The same as `cuda.syncthreads()`."),
    method("weft.cuda.cg.ThreadBlock.thread_rank", "The index of the thread in its block, an `int32`."),
    method("weft.cuda.cg.ThreadBlock.num_threads", "The number of threads of the block, an `int32`."),
    method("weft.cuda.cg.ThreadBlock.size", "The same."),
    method("weft.cuda.cg.ThreadBlock.thread_index", "`threadIdx`, an `int32x3`."),
    method("weft.cuda.cg.ThreadBlock.group_index", "`blockIdx`, an `int32x3`."),
    method("weft.cuda.cg.ThreadBlock.dim_threads", "`blockDim`, an `int32x3`."),
    method("weft.cuda.cg.ThreadBlock.group_dim", "The same."),
    method("weft.cuda.cg.ThreadBlockTile.sync", "Waits for the threads of the tile, and orders memory between them."),
    method("weft.cuda.cg.ThreadBlockTile.thread_rank", "The index of the thread in its tile, an `int32`."),
    method("weft.cuda.cg.ThreadBlockTile.num_threads", "The number of threads of the tile, an `int32`."),
    method("weft.cuda.cg.ThreadBlockTile.size", "The same."),
    method("weft.cuda.cg.ThreadBlockTile.meta_group_rank", "The index of the tile in its block, an `int32`."),
    method("weft.cuda.cg.ThreadBlockTile.meta_group_size", "The number of tiles of the block, an `int32`."),
    method(
        "weft.cuda.cg.ThreadBlockTile.shfl",
        "`shfl(value, rank)`: the value of the thread with that index, like `shfl_sync`.",
    ),
    method("weft.cuda.cg.ThreadBlockTile.shfl_up", "`shfl_up(value, delta)`: like `shfl_up_sync`."),
    method("weft.cuda.cg.ThreadBlockTile.shfl_down", "`shfl_down(value, delta)`: like `shfl_down_sync`."),
    method("weft.cuda.cg.ThreadBlockTile.shfl_xor", "`shfl_xor(value, lane_mask)`: like `shfl_xor_sync`."),
    method(
        "weft.cuda.cg.ThreadBlockTile.any",
        "`any(predicate)`: whether the predicate is true for any thread of the group.",
    ),
    method(
        "weft.cuda.cg.ThreadBlockTile.all",
        "`all(predicate)`: whether the predicate is true for all threads of the group.",
    ),
    method(
        "weft.cuda.cg.ThreadBlockTile.ballot",
        "`ballot(predicate)`: a `uint32` with a bit set for each thread of the group whose predicate is true; bit 0 \
         is the first thread.",
    ),
    method(
        "weft.cuda.cg.ThreadBlockTile.match_any",
        "`match_any(value)`: a `uint32` with a bit set for each thread of the group that has the same value as this \
         thread.",
    ),
    method(
        "weft.cuda.cg.ThreadBlockTile.match_all",
        "`match_all(value)`: a tuple of the bits of all threads of the group if they have the same value, else 0, and \
         of whether they have.",
    ),
    method("weft.cuda.cg.CoalescedGroup.sync", "Waits for the threads of the group, and orders memory between them."),
    method("weft.cuda.cg.CoalescedGroup.thread_rank", "The index of the thread in the group, an `int32`."),
    method("weft.cuda.cg.CoalescedGroup.num_threads", "The number of threads of the group, an `int32`."),
    method("weft.cuda.cg.CoalescedGroup.size", "The same."),
    method("weft.cuda.cg.CoalescedGroup.meta_group_rank", "0."),
    method("weft.cuda.cg.CoalescedGroup.meta_group_size", "1."),
    method("weft.cuda.cg.CoalescedGroup.shfl", "`shfl(value, rank)`: the value of the thread with that index."),
    method(
        "weft.cuda.cg.CoalescedGroup.shfl_up",
        "`shfl_up(value, delta)`: the value of the thread whose index is `delta` smaller; the first `delta` threads \
         get their own value.",
    ),
    method(
        "weft.cuda.cg.CoalescedGroup.shfl_down",
        "`shfl_down(value, delta)`: the value of the thread whose index is `delta` larger; the last `delta` threads \
         get their own value.",
    ),
    method(
        "weft.cuda.cg.CoalescedGroup.any",
        "`any(predicate)`: whether the predicate is true for any thread of the group.",
    ),
    method(
        "weft.cuda.cg.CoalescedGroup.all",
        "`all(predicate)`: whether the predicate is true for all threads of the group.",
    ),
    method(
        "weft.cuda.cg.CoalescedGroup.ballot",
        "`ballot(predicate)`: a `uint32` with a bit set for each thread of the group whose predicate is true; bit 0 \
         is the first thread.",
    ),
    method(
        "weft.cuda.cg.CoalescedGroup.match_any",
        "`match_any(value)`: a `uint32` with a bit set for each thread of the group that has the same value as this \
         thread.",
    ),
    method(
        "weft.cuda.cg.CoalescedGroup.match_all",
        "`match_all(value)`: a tuple of the bits of all threads of the group if they have the same value, else 0, and \
         of whether they have.",
    ),
];
