//! Rows of `cuda.atomic`: atomic operations on an element of an array.
//!
//! All return the old element, and have the keyword arguments `order` and `scope`, which `frontend/builtins/atomics.rs`
//! reads.

use super::{
    super::{Arg, Intrinsic, Lowering, Ptx, Signature},
    tables::{arg, gives},
};
use crate::ir::{AtomicOp, Op};

/// Overloads for arrays of numbers, an index, and a number of values: `steps![I32 1, U32 1]`.
macro_rules! steps {
    (@args $of:ident 1) => {
        &[Arg::Array(weft_artifact::Number::$of), Arg::Index, arg(weft_artifact::Number::$of)]
    };
    (@args $of:ident 2) => {
        &[
            Arg::Array(weft_artifact::Number::$of), Arg::Index,
            arg(weft_artifact::Number::$of), arg(weft_artifact::Number::$of),
        ]
    };
    // Implicitly the first element, without an index.
    (@args $of:ident 3) => {
        &[Arg::Array(weft_artifact::Number::$of), arg(weft_artifact::Number::$of), arg(weft_artifact::Number::$of)]
    };
    ($count:tt: $($of:ident)+) => {
        &[$(Signature { args: steps!(@args $of $count), returns: gives(weft_artifact::Number::$of) }),+]
    };
}

const SUMS: &[Signature] = steps![1: I8 U8 I16 U16 I32 U32 I64 U64 F16 BF16 F32 F64 C64 C128];
const NUMBERS: &[Signature] = steps![1: I8 U8 I16 U16 I32 U32 I64 U64 F16 BF16 F32 F64];
const BITS: &[Signature] = steps![1: BOOL I8 U8 I16 U16 I32 U32 I64 U64];
const UNSIGNED: &[Signature] = steps![1: U8 U16 U32 U64];
const ANY: &[Signature] = steps![1: BOOL I8 U8 I16 U16 I32 U32 I64 U64 F16 BF16 F32 F64];
const PAIRS: &[Signature] = steps![2: BOOL I8 U8 I16 U16 I32 U32 I64 U64 F16 BF16 F32 F64];
const FIRST: &[Signature] = steps![3: BOOL I8 U8 I16 U16 I32 U32 I64 U64 F16 BF16 F32 F64];

const fn row(path: &'static str, signatures: &'static [Signature], op: AtomicOp, doc: &'static str) -> Intrinsic {
    Intrinsic { path, signatures, lowering: Lowering::Op(Op::atomic(op)), ptx: Ptx::Operation, doc }
}

pub(super) const ATOMIC: &[Intrinsic] = &[
    row(
        "weft.cuda.atomic.add",
        SUMS,
        AtomicOp::Add,
        "`array[index] += value`, atomically; returns the old element. For a complex number, each part is a separate \
         atomic operation. PTX ISA, `atom`, `red`.",
    ),
    row(
        "weft.cuda.atomic.sub",
        SUMS,
        AtomicOp::Sub,
        "`array[index] -= value`, atomically; returns the old element. For a complex number, each part is a separate \
         atomic operation.",
    ),
    row(
        "weft.cuda.atomic.and_",
        BITS,
        AtomicOp::And,
        "`array[index] &= value`, atomically; returns the old element. PTX ISA, `atom`, `red`.",
    ),
    row(
        "weft.cuda.atomic.or_",
        BITS,
        AtomicOp::Or,
        "`array[index] |= value`, atomically; returns the old element. PTX ISA, `atom`, `red`.",
    ),
    row(
        "weft.cuda.atomic.xor",
        BITS,
        AtomicOp::Xor,
        "`array[index] ^= value`, atomically; returns the old element. PTX ISA, `atom`, `red`.",
    ),
    row(
        "weft.cuda.atomic.max",
        NUMBERS,
        AtomicOp::Max,
        "Stores the maximum of `array[index]` and the value, atomically; returns the old element. If either is NaN, \
         the element is unchanged. PTX ISA, `atom`, `red`.",
    ),
    row(
        "weft.cuda.atomic.min",
        NUMBERS,
        AtomicOp::Min,
        "Stores the minimum of `array[index]` and the value, atomically; returns the old element. If either is NaN, \
         the element is unchanged. PTX ISA, `atom`, `red`.",
    ),
    row(
        "weft.cuda.atomic.nanmax",
        NUMBERS,
        AtomicOp::NanMax,
        "Like `max`, but a value that is not NaN replaces a NaN.",
    ),
    row(
        "weft.cuda.atomic.nanmin",
        NUMBERS,
        AtomicOp::NanMin,
        "Like `min`, but a value that is not NaN replaces a NaN.",
    ),
    row(
        "weft.cuda.atomic.inc",
        UNSIGNED,
        AtomicOp::Inc,
        "Increments `array[index]`, or sets it to 0 if it is at least the value, atomically; returns the old element. \
         PTX ISA, `atom`, `red`.",
    ),
    row(
        "weft.cuda.atomic.dec",
        UNSIGNED,
        AtomicOp::Dec,
        "Decrements `array[index]`, or sets it to the value if it is 0 or greater than the value, atomically; returns \
         the old element. PTX ISA, `atom`, `red`.",
    ),
    row(
        "weft.cuda.atomic.exch",
        ANY,
        AtomicOp::Exchange,
        "`array[index] = value`, atomically; returns the old element. PTX ISA, `atom`.",
    ),
    row(
        "weft.cuda.atomic.cas",
        PAIRS,
        AtomicOp::Cas,
        "`cas(array, index, old, value)`: `array[index] = value` if the element equals `old`, atomically; returns the \
         previous element. Floats are compared by their bits. PTX ISA, `atom`.",
    ),
    row(
        "weft.cuda.atomic.compare_and_swap",
        FIRST,
        AtomicOp::Cas,
        "`compare_and_swap(array, old, value)`: `cas` on the first element.",
    ),
];
