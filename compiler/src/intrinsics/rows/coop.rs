//! Rows of `cuda.coop`: functions that the threads of a block, or the lanes of a warp, compute cooperatively. They are
//! implemented in the prelude, and have CUB's names.

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
        "`reduce(x, op, valid=None, broadcast=True)`: combines the values of all threads of the block, or of the \
         first `valid`, with an associative function `op(a, b)` in the order of the threads. Every thread gets the \
         result, or only the first with `broadcast=False`. Two barriers. CUB's `BlockReduce::Reduce`.",
    ),
    coop(
        "weft.cuda.coop.block.sum",
        &Coop { function: "coop_block_sum", params: &[Items, Plain, Flag] },
        "`sum(x, valid=None, broadcast=True)`: the sum of the values, in the type of `x`; a `boolean` counts as an \
         `int32`. CUB's `BlockReduce::Sum`.",
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
        "`inclusive_scan(x, op, aggregate=False)`: combines the values of the threads up to and including this one \
         with an associative function. With `aggregate=True`, returns a tuple of that and of the result for all \
         threads. Two barriers. CUB's `BlockScan::InclusiveScan`.",
    ),
    coop(
        "weft.cuda.coop.block.exclusive_scan",
        &Coop { function: "coop_block_exclusive_scan", params: &[Items, Plain, Plain, Flag] },
        "`exclusive_scan(x, op, initial, aggregate=False)`: combines the initial value and the values of the threads \
         before this one. The aggregate does not include the initial value. Two barriers. CUB's \
         `BlockScan::ExclusiveScan`.",
    ),
    coop(
        "weft.cuda.coop.block.inclusive_sum",
        &Coop { function: "coop_block_inclusive_sum", params: &[Items, Flag] },
        "`inclusive_sum(x, aggregate=False)`: the sum of the values of the threads up to and including this one. Two \
         barriers. CUB's `BlockScan::InclusiveSum`.",
    ),
    coop(
        "weft.cuda.coop.block.exclusive_sum",
        &Coop { function: "coop_block_exclusive_sum", params: &[Items, Flag] },
        "`exclusive_sum(x, aggregate=False)`: the sum of the values of the threads before this one. Two barriers. CUB's `BlockScan::ExclusiveSum`.",
    ),
    coop(
        "weft.cuda.coop.block.load",
        &Coop { function: "coop_block_load", params: &[Plain, Items, Plain, Plain, Algorithm, Count] },
        "`load(source, items, valid=None, default=None, algorithm=\"direct\")`: fills each thread's array with its \
         items of `source`. Items from `valid` on get the default, or are not written if there is none. `\"direct\"`, \
         `\"vectorize\"` (two or four at once), `\"transpose\"` and `\"warp_transpose\"` (neighbors read neighbors, \
         and exchange) give item `k` of thread `t` the element `t * len(items) + k`, `\"striped\"` the element `k * \
         threads + t`. `\"transpose\"` has two barriers. CUB's `BlockLoad`.",
    ),
    coop(
        "weft.cuda.coop.block.store",
        &Coop { function: "coop_block_store", params: &[Plain, Items, Plain, Algorithm, Count] },
        "`store(target, items, valid=None, algorithm=\"direct\")`: the reverse of `load`, for an array of items or a \
         single item. Elements from `valid` on are unchanged. CUB's `BlockStore`.",
    ),
    coop(
        "weft.cuda.coop.block.striped_to_blocked",
        &Coop { function: "coop_block_striped_to_blocked", params: &[Items, Count] },
        "`striped_to_blocked(items)`: rearranges the items of the block. Item `k` of thread `t` is number `k * \
         threads + t` before, and number `t * len(items) + k` after. Two barriers, and shared memory for all items. \
         CUB's `BlockExchange::StripedToBlocked`.",
    ),
    coop(
        "weft.cuda.coop.block.blocked_to_striped",
        &Coop { function: "coop_block_blocked_to_striped", params: &[Items, Count] },
        "`blocked_to_striped(items)`: the reverse of `striped_to_blocked`. CUB's `BlockExchange::BlockedToStriped`.",
    ),
    coop(
        "weft.cuda.coop.block.scatter_to_blocked",
        &Coop { function: "coop_block_scatter_to_blocked", params: &[Items, Items, Count] },
        "`scatter_to_blocked(items, ranks)`: moves each item to position `ranks[k]` of the blocked arrangement, in \
         which each thread holds consecutive items. CUB's `BlockExchange::ScatterToBlocked`.",
    ),
    coop(
        "weft.cuda.coop.block.scatter_to_striped",
        &Coop { function: "coop_block_scatter_to_striped", params: &[Items, Items, Count] },
        "`scatter_to_striped(items, ranks)`: moves each item to position `ranks[k]` of the striped arrangement, in \
         which consecutive items belong to consecutive threads. CUB's `BlockExchange::ScatterToStriped`.",
    ),
    coop(
        "weft.cuda.coop.block.merge_sort_keys",
        &Coop { function: "coop_block_merge_sort_keys", params: &[Items, Plain, Plain, Count] },
        "`merge_sort_keys(keys, less=None, valid=None)`: stable sort of the block's items in ascending order (NaN \
         last), or in the order of `less(a, b)`. With `valid`, sorts only the first `valid` items. Arrays are sorted \
         in place; for a single number per thread, returns the thread's number. Two barriers for every doubling of \
         the threads. CUB's `BlockMergeSort`.",
    ),
    coop(
        "weft.cuda.coop.block.merge_sort_pairs",
        &Coop { function: "coop_block_merge_sort_pairs", params: &[Items, Items, Plain, Plain, Count] },
        "`merge_sort_pairs(keys, values, less=None, valid=None)`: the same with a value for each key; for numbers, \
         returns a tuple.",
    ),
    coop(
        "weft.cuda.coop.block.radix_sort_keys",
        &Coop { function: "coop_block_radix_sort_keys", params: &[Items, Plain, Plain, Count] },
        "`radix_sort_keys(keys, begin_bit=0, end_bit=None)`: stable sort of the block's integers or floats by their \
         bits, in ascending order. Six or seven barriers for every four bits. CUB's `BlockRadixSort::Sort`.",
    ),
    coop(
        "weft.cuda.coop.block.radix_sort_keys_descending",
        &Coop { function: "coop_block_radix_sort_keys_descending", params: &[Items, Plain, Plain, Count] },
        "`radix_sort_keys_descending(keys, begin_bit=0, end_bit=None)`: the same in descending order.",
    ),
    coop(
        "weft.cuda.coop.block.radix_sort_pairs",
        &Coop { function: "coop_block_radix_sort_pairs", params: &[Items, Items, Plain, Plain, Count] },
        "`radix_sort_pairs(keys, values, begin_bit=0, end_bit=None)`: the same with a value for each key; for \
         numbers, returns a tuple.",
    ),
    coop(
        "weft.cuda.coop.block.radix_sort_pairs_descending",
        &Coop { function: "coop_block_radix_sort_pairs_descending", params: &[Items, Items, Plain, Plain, Count] },
        "`radix_sort_pairs_descending(keys, values, begin_bit=0, end_bit=None)`: `radix_sort_pairs` in descending \
         order.",
    ),
    coop(
        "weft.cuda.coop.warp.reduce",
        &Coop { function: "coop_warp_reduce", params: &[Items, Plain, Lanes, Plain] },
        "`reduce(x, op, threads=32, valid=None)`: combines the values of the lanes of the warp, or of each group of \
         `threads` lanes (a power of two), or of the first `valid` lanes of each, in the order of the lanes. Every \
         lane gets the result. CUB's `WarpReduce::Reduce`.",
    ),
    coop(
        "weft.cuda.coop.warp.sum",
        &Coop { function: "coop_warp_sum", params: &[Items, Lanes, Plain] },
        "`sum(x, threads=32, valid=None)`: the sum of the values. CUB's `WarpReduce::Sum`.",
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
        "`inclusive_scan(x, op, threads=32, aggregate=False)`: combines the values of the lanes of the group up to \
         and including this one. CUB's `WarpScan::InclusiveScan`.",
    ),
    coop(
        "weft.cuda.coop.warp.exclusive_scan",
        &Coop { function: "coop_warp_exclusive_scan", params: &[Items, Plain, Plain, Lanes, Flag] },
        "`exclusive_scan(x, op, initial, threads=32, aggregate=False)`: combines the initial value and the values of \
         the lanes before this one. CUB's `WarpScan::ExclusiveScan`.",
    ),
    coop(
        "weft.cuda.coop.warp.inclusive_sum",
        &Coop { function: "coop_warp_inclusive_sum", params: &[Items, Lanes, Flag] },
        "`inclusive_sum(x, threads=32, aggregate=False)`: the sum of the values of the lanes up to and including this \
         one. CUB's `WarpScan::InclusiveSum`.",
    ),
    coop(
        "weft.cuda.coop.warp.exclusive_sum",
        &Coop { function: "coop_warp_exclusive_sum", params: &[Items, Lanes, Flag] },
        "`exclusive_sum(x, threads=32, aggregate=False)`: the sum of the values of the lanes before this one. CUB's `WarpScan::ExclusiveSum`.",
    ),
    coop(
        "weft.cuda.coop.warp.striped_to_blocked",
        &Coop { function: "coop_warp_striped_to_blocked", params: &[Items, Lanes, Count] },
        "`striped_to_blocked(items, threads=32)`: like `cuda.coop.block.striped_to_blocked`, among the lanes of the \
         warp or of each group. CUB's `WarpExchange`.",
    ),
    coop(
        "weft.cuda.coop.warp.blocked_to_striped",
        &Coop { function: "coop_warp_blocked_to_striped", params: &[Items, Lanes, Count] },
        "`blocked_to_striped(items, threads=32)`: the reverse of `striped_to_blocked`.",
    ),
    coop(
        "weft.cuda.coop.warp.merge_sort_keys",
        &Coop { function: "coop_warp_merge_sort_keys", params: &[Items, Plain, Lanes, Plain, Count] },
        "`merge_sort_keys(keys, less=None, threads=32, valid=None)`: sorts the items of the warp, or of each group of lanes. CUB's `WarpMergeSort`.",
    ),
];
