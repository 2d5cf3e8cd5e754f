//! Rows of warp functions: shuffles, votes, matches, reductions, and lane masks.

use weft_artifact::Scalar::{Bool, I32, I64, U32, U64};

use super::{
    super::{Arg, Custom, Intrinsic, Lowering, Ptx, Returns, Signature},
    tables::{numbers, row},
};
use crate::ir::{Op, Shuffle, Vote, WarpReduction};

/// A mask, a number, and a lane or an offset.
const SHUFFLED: &[Signature] = numbers![
    I32 BOOL I32 -> BOOL, I32 I8 I32 -> I8, I32 U8 I32 -> U8, I32 I16 I32 -> I16, I32 U16 I32 -> U16,
    I32 I32 I32 -> I32, I32 U32 I32 -> U32, I32 I64 I32 -> I64, I32 U64 I32 -> U64,
    I32 F16 I32 -> F16, I32 BF16 I32 -> BF16, I32 F32 I32 -> F32, I32 F64 I32 -> F64,
    I32 C64 I32 -> C64, I32 C128 I32 -> C128, I32 F32 I32 I32 -> F32,
];

/// A mask and a bool.
const VOTED: &[Signature] = numbers![I32 BOOL -> BOOL];

/// A mask and a number whose bits are compared.
const MATCHED: &[Signature] = numbers![
    I32 I32 -> I32, I32 U32 -> I32, I32 I64 -> I32, I32 U64 -> I32, I32 F32 -> I32, I32 F64 -> I32,
];

const MATCHED_ALL: &[Signature] = &[
    Signature { args: &[Arg::Scalar(I32), Arg::Scalar(I32)], returns: Returns::Tuple(&[I32, Bool]) },
    Signature { args: &[Arg::Scalar(I32), Arg::Scalar(U32)], returns: Returns::Tuple(&[I32, Bool]) },
    Signature { args: &[Arg::Scalar(I32), Arg::Scalar(I64)], returns: Returns::Tuple(&[I32, Bool]) },
    Signature { args: &[Arg::Scalar(I32), Arg::Scalar(U64)], returns: Returns::Tuple(&[I32, Bool]) },
];

/// A mask and a number.
const ADDED: &[Signature] = numbers![
    I32 I32 -> I32, I32 U32 -> U32, I32 I64 -> I64, I32 U64 -> U64, I32 F32 -> F32, I32 F64 -> F64,
    I32 C64 -> C64, I32 C128 -> C128,
];

/// A mask and a real number.
const COMPARED: &[Signature] = numbers![
    I32 I32 -> I32, I32 U32 -> U32, I32 I64 -> I64, I32 U64 -> U64, I32 F32 -> F32, I32 F64 -> F64,
];

/// A mask and an integer.
const BITWISE: &[Signature] = numbers![I32 I32 -> I32, I32 U32 -> U32, I32 I64 -> I64, I32 U64 -> U64];

const VOTED_FOR: &[Signature] = numbers![I32 -> BOOL];

const NO_ARGUMENTS: &[Signature] = &[Signature { args: &[], returns: Returns::Scalar(U32) }];

const fn warp(
    path: &'static str,
    signatures: &'static [Signature],
    lowering: Lowering,
    doc: &'static str,
) -> Intrinsic {
    Intrinsic { path, signatures, lowering, ptx: Ptx::Operation, doc }
}

const fn reduction(
    path: &'static str,
    signatures: &'static [Signature],
    of: WarpReduction,
    function: &'static str,
    doc: &'static str,
) -> Intrinsic {
    row(path, signatures, Lowering::WordOp(Op::WarpReduce(of), function), doc)
}

const fn lanes(path: &'static str, function: &'static str, doc: &'static str) -> Intrinsic {
    row(path, NO_ARGUMENTS, Lowering::Prelude(function), doc)
}

const fn shuffle(path: &'static str, shuffle: Shuffle, instruction: &'static str, doc: &'static str) -> Intrinsic {
    let custom = match shuffle {
        Shuffle::Index => Custom::ShflSync,
        Shuffle::Up => Custom::ShflUpSync,
        Shuffle::Down => Custom::ShflDownSync,
        Shuffle::Xor => Custom::ShflXorSync,
    };
    Intrinsic { path, signatures: SHUFFLED, lowering: Lowering::Custom(custom), ptx: Ptx::Has(instruction), doc }
}

pub(super) const WARP: &[Intrinsic] = &[
    shuffle(
        "weft.cuda.shfl_sync",
        Shuffle::Index,
        "shfl.sync.idx",
        "`shfl_sync(mask, value, src_lane, width=32)`: the value of the lane `src_lane` (modulo `width`), among the \
         lanes of the mask. Takes any number, or a tuple of numbers. PTX ISA, `shfl.sync`.",
    ),
    shuffle(
        "weft.cuda.shfl_up_sync",
        Shuffle::Up,
        "shfl.sync.up",
        "`shfl_up_sync(mask, value, delta, width=32)`: the value of the lane `delta` below; the first `delta` lanes \
         get their own value. PTX ISA, `shfl.sync`.",
    ),
    shuffle(
        "weft.cuda.shfl_down_sync",
        Shuffle::Down,
        "shfl.sync.down",
        "`shfl_down_sync(mask, value, delta, width=32)`: the value of the lane `delta` above; the last `delta` lanes \
         get their own value. PTX ISA, `shfl.sync`.",
    ),
    shuffle(
        "weft.cuda.shfl_xor_sync",
        Shuffle::Xor,
        "shfl.sync.bfly",
        "`shfl_xor_sync(mask, value, lane_mask, width=32)`: the value of the lane whose index is this lane's XOR \
         `lane_mask`. PTX ISA, `shfl.sync`.",
    ),
    warp(
        "weft.cuda.all_sync",
        VOTED,
        Lowering::Op(Op::Vote(Vote::All)),
        "`all_sync(mask, predicate)`: whether the predicate is true in all lanes of the mask that have not returned. PTX ISA, `vote.sync`.",
    ),
    warp(
        "weft.cuda.any_sync",
        VOTED,
        Lowering::Op(Op::Vote(Vote::Any)),
        "`any_sync(mask, predicate)`: whether the predicate is true in any lane of the mask. PTX ISA, `vote.sync`.",
    ),
    warp(
        "weft.cuda.eq_sync",
        VOTED,
        Lowering::Op(Op::Vote(Vote::Uniform)),
        "`eq_sync(mask, predicate)`: whether the predicate is true in all lanes of the mask, or false in all. PTX ISA, `vote.sync`.",
    ),
    warp(
        "weft.cuda.ballot_sync",
        numbers![I32 BOOL -> I32],
        Lowering::Op(Op::Vote(Vote::Ballot)),
        "`ballot_sync(mask, predicate)`: an integer with a bit set for each lane of the mask in which the predicate \
         is true. PTX ISA, `vote.sync`.",
    ),
    Intrinsic {
        path: "weft.cuda.match_any_sync",
        signatures: MATCHED,
        lowering: Lowering::Custom(Custom::MatchAnySync),
        ptx: Ptx::Has("match.any.sync"),
        doc: "`match_any_sync(mask, value)`: the mask of the lanes whose value has the same bits as this thread's. \
            PTX ISA, `match.sync`.",
    },
    Intrinsic {
        path: "weft.cuda.match_all_sync",
        signatures: MATCHED_ALL,
        lowering: Lowering::Custom(Custom::MatchAllSync),
        ptx: Ptx::Has("match.all.sync"),
        doc: "`match_all_sync(mask, value)`: a tuple of the mask if the values of all its lanes have the same bits, \
            else 0, and of whether they have. PTX ISA, `match.sync`.",
    },
    warp(
        "weft.cuda.activemask",
        NO_ARGUMENTS,
        Lowering::Op(Op::ActiveMask),
        "The mask of the lanes of the warp that execute this call together. Divergent lanes may not have reconverged; \
         on the CPU, lanes on the same path are together. PTX ISA, `activemask`.",
    ),
    lanes("weft.cuda.lanemask_lt", "lanemask_lt", "The mask of the lanes below this thread's. CUDA's `%lanemask_lt`."),
    lanes(
        "weft.cuda.lanemask_le",
        "lanemask_le",
        "The mask of the lanes below this thread's, and its own. CUDA's `%lanemask_le`.",
    ),
    lanes("weft.cuda.lanemask_eq", "lanemask_eq", "The mask of this thread's own lane. CUDA's `%lanemask_eq`."),
    lanes(
        "weft.cuda.lanemask_ge",
        "lanemask_ge",
        "The mask of the lanes above this thread's, and its own. CUDA's `%lanemask_ge`.",
    ),
    lanes("weft.cuda.lanemask_gt", "lanemask_gt", "The mask of the lanes above this thread's. CUDA's `%lanemask_gt`."),
    row(
        "weft.cuda.elect_sync",
        VOTED_FOR,
        Lowering::Prelude("elect_sync"),
        "`elect_sync(mask)`: True in one lane of the mask, the lowest that has not returned, and False in the others.",
    ),
    reduction(
        "weft.cuda.reduce_add_sync",
        ADDED,
        WarpReduction::Add,
        "lanes_add",
        "`reduce_add_sync(mask, value)`: the sum of the values of the lanes in the mask, with the same bits in all \
         lanes. Integers wrap around. CUDA's `__reduce_add_sync`. Uses PTX ISA's `redux.sync` for 32-bit integers if \
         the SM has it, else shuffles.",
    ),
    reduction(
        "weft.cuda.reduce_min_sync",
        COMPARED,
        WarpReduction::Min,
        "lanes_min",
        "`reduce_min_sync(mask, value)`: the smallest value of the lanes in the mask. PTX ISA, `redux.sync`.",
    ),
    reduction(
        "weft.cuda.reduce_max_sync",
        COMPARED,
        WarpReduction::Max,
        "lanes_max",
        "`reduce_max_sync(mask, value)`: the largest value of the lanes in the mask. PTX ISA, `redux.sync`.",
    ),
    reduction(
        "weft.cuda.reduce_and_sync",
        BITWISE,
        WarpReduction::And,
        "lanes_and",
        "`reduce_and_sync(mask, value)`: the bits that all lanes in the mask have set. PTX ISA, `redux.sync`.",
    ),
    reduction(
        "weft.cuda.reduce_or_sync",
        BITWISE,
        WarpReduction::Or,
        "lanes_or",
        "`reduce_or_sync(mask, value)`: the bits that any lane in the mask has set. PTX ISA, `redux.sync`.",
    ),
    reduction(
        "weft.cuda.reduce_xor_sync",
        BITWISE,
        WarpReduction::Xor,
        "lanes_xor",
        "`reduce_xor_sync(mask, value)`: the bits that an odd number of lanes in the mask have set. PTX ISA, `redux.sync`.",
    ),
];
