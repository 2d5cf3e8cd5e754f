//! Rows of `cuda.coop`: what the threads of a block, or the lanes of a warp, compute together. The functions are the
//! prelude's, after CUB's names.

use super::super::{
    Coop,
    CoopParam::{Algorithm, Count, Flag, Items, Lanes, Plain},
    Intrinsic, Lowering, Ptx,
};

const fn coop(path: &'static str, of: &'static Coop, doc: &'static str) -> Intrinsic {
    Intrinsic { path, signatures: &[], lowering: Lowering::Coop(of), ptx: Ptx::Computed, doc }
}

pub(super) const COOP: &[Intrinsic] = &[
    coop(
        "weft.cuda.coop.block.reduce",
        &Coop { function: "coop_block_reduce", params: &[Items, Plain, Plain, Flag] },
        "`reduce(x, op, valid=None, broadcast=True)`: the values of all threads of the block, or of the first `valid`, put together by an associative function `op(a, b)` in the order of the threads. Every thread gets the result, or with `broadcast=False` the first. Two barriers. CUB's `BlockReduce::Reduce`.",
    ),
    coop(
        "weft.cuda.coop.block.sum",
        &Coop { function: "coop_block_sum", params: &[Items, Plain, Flag] },
        "`sum(x, valid=None, broadcast=True)`: the same of a sum, in the type of `x`; a `boolean` counts as an `int32`. CUB's `BlockReduce::Sum`.",
    ),
    coop(
        "weft.cuda.coop.block.min",
        &Coop { function: "coop_block_min", params: &[Items, Plain, Flag] },
        "`min(x, valid=None, broadcast=True)`: the smallest value of the threads, for every thread.",
    ),
    coop(
        "weft.cuda.coop.block.max",
        &Coop { function: "coop_block_max", params: &[Items, Plain, Flag] },
        "`max(x, valid=None, broadcast=True)`: the largest value of the threads, for every thread.",
    ),
    coop(
        "weft.cuda.coop.block.inclusive_scan",
        &Coop { function: "coop_block_inclusive_scan", params: &[Items, Plain, Flag] },
        "`inclusive_scan(x, op, aggregate=False)`: the values of the threads up to this one, put together by an associative function; with `aggregate=True` a tuple of that and of what all threads have together. Two barriers. CUB's `BlockScan::InclusiveScan`.",
    ),
    coop(
        "weft.cuda.coop.block.exclusive_scan",
        &Coop { function: "coop_block_exclusive_scan", params: &[Items, Plain, Plain, Flag] },
        "`exclusive_scan(x, op, initial, aggregate=False)`: the initial value and those of the threads before this one. The aggregate is without the initial value. Two barriers. CUB's `BlockScan::ExclusiveScan`.",
    ),
    coop(
        "weft.cuda.coop.block.inclusive_sum",
        &Coop { function: "coop_block_inclusive_sum", params: &[Items, Flag] },
        "`inclusive_sum(x, aggregate=False)`: the sum of the values up to this thread's. Two barriers. CUB's `BlockScan::InclusiveSum`.",
    ),
    coop(
        "weft.cuda.coop.block.exclusive_sum",
        &Coop { function: "coop_block_exclusive_sum", params: &[Items, Flag] },
        "`exclusive_sum(x, aggregate=False)`: the sum of the values of the threads before this one. Two barriers. CUB's `BlockScan::ExclusiveSum`.",
    ),
    coop(
        "weft.cuda.coop.block.load",
        &Coop { function: "coop_block_load", params: &[Plain, Items, Plain, Plain, Algorithm, Count] },
        "`load(source, items, valid=None, default=None, algorithm=\"direct\")`: fills each thread's array with its items of the first elements of `source`; of elements from `valid` on with the default, or not at all. `\"direct\"`, `\"vectorize\"` (two or four at once), `\"transpose\"` and `\"warp_transpose\"` (neighbors read neighbors, and exchange) give item `k` of thread `t` the element `t * len(items) + k`, `\"striped\"` the element `k * threads + t`. `\"transpose\"` has two barriers. CUB's `BlockLoad`.",
    ),
    coop(
        "weft.cuda.coop.block.store",
        &Coop { function: "coop_block_store", params: &[Plain, Items, Plain, Algorithm, Count] },
        "`store(target, items, valid=None, algorithm=\"direct\")`: the other way, of an array of items or of one. Elements from `valid` on stay what they are. CUB's `BlockStore`.",
    ),
    coop(
        "weft.cuda.coop.block.striped_to_blocked",
        &Coop { function: "coop_block_striped_to_blocked", params: &[Items, Count] },
        "`striped_to_blocked(items)`: item `k` of thread `t` was the one with the number `k * threads + t` of the block's, and becomes the one with `t * len(items) + k`. Two barriers, and shared memory for all items. CUB's `BlockExchange::StripedToBlocked`.",
    ),
    coop(
        "weft.cuda.coop.block.blocked_to_striped",
        &Coop { function: "coop_block_blocked_to_striped", params: &[Items, Count] },
        "`blocked_to_striped(items)`: the other way. CUB's `BlockExchange::BlockedToStriped`.",
    ),
    coop(
        "weft.cuda.coop.block.scatter_to_blocked",
        &Coop { function: "coop_block_scatter_to_blocked", params: &[Items, Items, Count] },
        "`scatter_to_blocked(items, ranks)`: each item comes to the place with the number `ranks[k]`, of those that lie one behind the other in a thread. CUB's `BlockExchange::ScatterToBlocked`.",
    ),
    coop(
        "weft.cuda.coop.block.scatter_to_striped",
        &Coop { function: "coop_block_scatter_to_striped", params: &[Items, Items, Count] },
        "`scatter_to_striped(items, ranks)`: the same of places that are dealt out to the threads in turns. CUB's `BlockExchange::ScatterToStriped`.",
    ),
    coop(
        "weft.cuda.coop.block.merge_sort_keys",
        &Coop { function: "coop_block_merge_sort_keys", params: &[Items, Plain, Plain, Count] },
        "`merge_sort_keys(keys, less=None, valid=None)`: sorts the block's items, the smallest first (NaN last) or as `less(a, b)` says; equal ones stay in order. Of the first `valid` items alone, the others stay where they are. An array is sorted in place, of numbers each thread gets one. Two barriers for every doubling of the threads. CUB's `BlockMergeSort`.",
    ),
    coop(
        "weft.cuda.coop.block.merge_sort_pairs",
        &Coop { function: "coop_block_merge_sort_pairs", params: &[Items, Items, Plain, Plain, Count] },
        "`merge_sort_pairs(keys, values, less=None, valid=None)`: the same with a value for each key; of numbers gives a tuple.",
    ),
    coop(
        "weft.cuda.coop.block.radix_sort_keys",
        &Coop { function: "coop_block_radix_sort_keys", params: &[Items, Plain, Plain, Count] },
        "`radix_sort_keys(keys, begin_bit=0, end_bit=None)`: sorts the block's integers or floats by their bits, the smallest first; equal ones stay in order. Six or seven barriers for every four bits. CUB's `BlockRadixSort::Sort`.",
    ),
    coop(
        "weft.cuda.coop.block.radix_sort_keys_descending",
        &Coop { function: "coop_block_radix_sort_keys_descending", params: &[Items, Plain, Plain, Count] },
        "`radix_sort_keys_descending(keys, begin_bit=0, end_bit=None)`: the largest first.",
    ),
    coop(
        "weft.cuda.coop.block.radix_sort_pairs",
        &Coop { function: "coop_block_radix_sort_pairs", params: &[Items, Items, Plain, Plain, Count] },
        "`radix_sort_pairs(keys, values, begin_bit=0, end_bit=None)`: with a value for each key; of numbers gives a tuple.",
    ),
    coop(
        "weft.cuda.coop.block.radix_sort_pairs_descending",
        &Coop { function: "coop_block_radix_sort_pairs_descending", params: &[Items, Items, Plain, Plain, Count] },
        "`radix_sort_pairs_descending(keys, values, begin_bit=0, end_bit=None)`: the largest first.",
    ),
    coop(
        "weft.cuda.coop.warp.reduce",
        &Coop { function: "coop_warp_reduce", params: &[Items, Plain, Lanes, Plain] },
        "`reduce(x, op, threads=32, valid=None)`: the values of the lanes of the warp, or of each group of `threads` lanes (a power of two), or of the first `valid` of it, in the order of the lanes. Every lane gets the result. CUB's `WarpReduce::Reduce`.",
    ),
    coop(
        "weft.cuda.coop.warp.sum",
        &Coop { function: "coop_warp_sum", params: &[Items, Lanes, Plain] },
        "`sum(x, threads=32, valid=None)`: the same of a sum. CUB's `WarpReduce::Sum`.",
    ),
    coop(
        "weft.cuda.coop.warp.min",
        &Coop { function: "coop_warp_min", params: &[Items, Lanes, Plain] },
        "`min(x, threads=32, valid=None)`: the smallest value of the lanes, for every lane.",
    ),
    coop(
        "weft.cuda.coop.warp.max",
        &Coop { function: "coop_warp_max", params: &[Items, Lanes, Plain] },
        "`max(x, threads=32, valid=None)`: the largest value of the lanes, for every lane.",
    ),
    coop(
        "weft.cuda.coop.warp.inclusive_scan",
        &Coop { function: "coop_warp_inclusive_scan", params: &[Items, Plain, Lanes, Flag] },
        "`inclusive_scan(x, op, threads=32, aggregate=False)`: the values of the lanes of the group up to this one. CUB's `WarpScan::InclusiveScan`.",
    ),
    coop(
        "weft.cuda.coop.warp.exclusive_scan",
        &Coop { function: "coop_warp_exclusive_scan", params: &[Items, Plain, Plain, Lanes, Flag] },
        "`exclusive_scan(x, op, initial, threads=32, aggregate=False)`: the initial value and those of the lanes before this one. CUB's `WarpScan::ExclusiveScan`.",
    ),
    coop(
        "weft.cuda.coop.warp.inclusive_sum",
        &Coop { function: "coop_warp_inclusive_sum", params: &[Items, Lanes, Flag] },
        "`inclusive_sum(x, threads=32, aggregate=False)`: the sum of the values up to this lane's. CUB's `WarpScan::InclusiveSum`.",
    ),
    coop(
        "weft.cuda.coop.warp.exclusive_sum",
        &Coop { function: "coop_warp_exclusive_sum", params: &[Items, Lanes, Flag] },
        "`exclusive_sum(x, threads=32, aggregate=False)`: the sum of the values of the lanes before this one. CUB's `WarpScan::ExclusiveSum`.",
    ),
    coop(
        "weft.cuda.coop.warp.striped_to_blocked",
        &Coop { function: "coop_warp_striped_to_blocked", params: &[Items, Lanes, Count] },
        "`striped_to_blocked(items, threads=32)`: as that of the block, among the lanes of the warp or of groups. CUB's `WarpExchange`.",
    ),
    coop(
        "weft.cuda.coop.warp.blocked_to_striped",
        &Coop { function: "coop_warp_blocked_to_striped", params: &[Items, Lanes, Count] },
        "`blocked_to_striped(items, threads=32)`: the other way.",
    ),
    coop(
        "weft.cuda.coop.warp.merge_sort_keys",
        &Coop { function: "coop_warp_merge_sort_keys", params: &[Items, Plain, Lanes, Plain, Count] },
        "`merge_sort_keys(keys, less=None, threads=32, valid=None)`: sorts the items of the warp, or of each group of lanes. CUB's `WarpMergeSort`.",
    ),
];
