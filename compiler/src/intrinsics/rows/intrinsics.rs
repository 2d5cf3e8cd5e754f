//! Rows of `cuda`: bit and number functions, clocks, and loads and stores with cache operators.

use super::{
    super::{Arg, Intrinsic, Lowering, Ptx, Returns, Signature},
    tables::{FLOAT, arg, gives, numbers},
};
use crate::ir::{Clock, LoadHint, MathFn, Op, StoreHint};

const INTEGER: &[Signature] =
    numbers![I8 -> I8, U8 -> U8, I16 -> I16, U16 -> U16, I32 -> I32, U32 -> U32, I64 -> I64, U64 -> U64];
const WORD: &[Signature] = numbers![U32 -> U32, U64 -> U64];
const PLACE: &[Signature] = numbers![I32 -> U32, U32 -> U32, I64 -> U32, U64 -> U32];
const THREE_WORDS: &[Signature] = numbers![U32 U32 U32 -> U32];
const FMA: &[Signature] = numbers![F32 F32 F32 -> F32, F64 F64 F64 -> F64];
const CHOICE: &[Signature] = numbers![
    BOOL BOOL BOOL -> BOOL, BOOL I8 I8 -> I8, BOOL U8 U8 -> U8, BOOL I16 I16 -> I16, BOOL U16 U16 -> U16,
    BOOL I32 I32 -> I32, BOOL U32 U32 -> U32, BOOL I64 I64 -> I64, BOOL U64 U64 -> U64,
    BOOL F16 F16 -> F16, BOOL BF16 BF16 -> BF16, BOOL F32 F32 -> F32, BOOL F64 F64 -> F64,
];

/// Overloads for arrays of numbers and an index: of loads, and of stores, which take a value after the index.
macro_rules! elements {
    (loads: $($of:ident)+) => {
        &[$(Signature {
            args: &[Arg::Array(weft_artifact::Number::$of), Arg::Index],
            returns: gives(weft_artifact::Number::$of),
        }),+]
    };
    (stores: $($of:ident)+) => {
        &[$(Signature {
            args: &[Arg::Array(weft_artifact::Number::$of), Arg::Index, arg(weft_artifact::Number::$of)],
            returns: Returns::Nothing,
        }),+]
    };
}

const LOADS: &[Signature] = elements![loads: I8 U8 I16 U16 I32 U32 I64 U64 F16 BF16 F32 F64];
const STORES: &[Signature] = elements![stores: I8 U8 I16 U16 I32 U32 I64 U64 F16 BF16 F32 F64];

/// A bit or number function, and its instruction.
const fn row(
    path: &'static str,
    signatures: &'static [Signature],
    lowering: Lowering,
    ptx: Ptx,
    doc: &'static str,
) -> Intrinsic {
    Intrinsic { path, signatures, lowering, ptx, doc }
}

/// A row that is lowered to an operation.
const fn op(path: &'static str, signatures: &'static [Signature], op: Op, doc: &'static str) -> Intrinsic {
    Intrinsic { path, signatures, lowering: Lowering::Op(op), ptx: Ptx::Operation, doc }
}

pub(super) const INTRINSICS: &[Intrinsic] = &[
    row(
        "weft.cuda.popc",
        INTEGER,
        Lowering::Math(MathFn::Popcount),
        Ptx::Has("popc"),
        "The number of set bits, in the argument's type.",
    ),
    row(
        "weft.cuda.clz",
        INTEGER,
        Lowering::Math(MathFn::LeadingZeros),
        Ptx::Has("clz"),
        "The number of leading zero bits, in the argument's type; its width for 0.",
    ),
    row(
        "weft.cuda.ffs",
        PLACE,
        Lowering::Prelude("libdevice_ffs"),
        Ptx::Computed,
        "The position of the lowest set bit, counted from 1; 0 for 0.",
    ),
    row(
        "weft.cuda.brev",
        WORD,
        Lowering::Math(MathFn::ReverseBits),
        Ptx::Has("brev"),
        "The bits in reverse order, as an unsigned number. As in Numba, an `int64` counts as a `uint32`: write \
         `cuda.brev(cuda.uint64(x))`.",
    ),
    row(
        "weft.cuda.byte_perm",
        THREE_WORDS,
        Lowering::Prelude("libdevice_byte_perm"),
        Ptx::Has("prmt"),
        "`byte_perm(x, y, s)`: four of the eight bytes of x and y, each chosen by three bits of four of s.",
    ),
    row(
        "weft.cuda.funnelshift_l",
        THREE_WORDS,
        Lowering::Prelude("libdevice_funnel_left"),
        Ptx::Has("shf.l.wrap"),
        "`funnelshift_l(low, high, n)`: the upper 32 bits of the 64, shifted left by n modulo 32.",
    ),
    row(
        "weft.cuda.funnelshift_lc",
        THREE_WORDS,
        Lowering::Prelude("libdevice_funnel_left_clamped"),
        Ptx::Has("shf.l"),
        "`funnelshift_lc(low, high, n)`: the same, shifted by at most 32.",
    ),
    row(
        "weft.cuda.funnelshift_r",
        THREE_WORDS,
        Lowering::Prelude("libdevice_funnel_right"),
        Ptx::Has("shf.r.wrap"),
        "`funnelshift_r(low, high, n)`: the lower 32 bits of the 64, shifted right by n modulo 32.",
    ),
    row(
        "weft.cuda.funnelshift_rc",
        THREE_WORDS,
        Lowering::Prelude("libdevice_funnel_right_clamped"),
        Ptx::Has("shf.r"),
        "`funnelshift_rc(low, high, n)`: the same, shifted by at most 32.",
    ),
    row(
        "weft.cuda.fma",
        FMA,
        Lowering::Math(MathFn::Fma),
        Ptx::Has("fma.rn"),
        "`fma(x, y, z, rounding=\"rn\")`: x * y + z, rounded once: to nearest, toward zero (`\"rz\"`), down \
         (`\"rd\"`) or up (`\"ru\"`). PTX ISA, `fma`.",
    ),
    row("weft.cuda.cbrt", FLOAT, Lowering::Math(MathFn::Cbrt), Ptx::Computed, "Cube root."),
    row("weft.cuda.rsqrt", FLOAT, Lowering::Prelude("libdevice_rsqrt"), Ptx::Computed, "1 / sqrt(x)."),
    row(
        "weft.cuda.selp",
        CHOICE,
        Lowering::Prelude("libdevice_selp"),
        Ptx::Computed,
        "`selp(p, a, b)`: a if p is true, else b.",
    ),
    op(
        "weft.cuda.clock",
        &[Signature { args: &[], returns: Returns::Scalar(weft_artifact::Scalar::I32) }],
        Op::Clock(Clock::Cycles32),
        "The cycle counter of the multiprocessor, its lower 32 bits; on the CPU, the CPU's cycle counter. PTX ISA, \
         special registers: `%clock`.",
    ),
    op(
        "weft.cuda.clock64",
        &[Signature { args: &[], returns: Returns::Scalar(weft_artifact::Scalar::I64) }],
        Op::Clock(Clock::Cycles64),
        "The cycle counter of the multiprocessor; on the CPU, the CPU's cycle counter. PTX ISA, special registers: \
         `%clock64`.",
    ),
    op(
        "weft.cuda.globaltimer",
        &[Signature { args: &[], returns: Returns::Scalar(weft_artifact::Scalar::I64) }],
        Op::Clock(Clock::Nanoseconds),
        "A clock in nanoseconds that all threads share. PTX ISA, special registers: `%globaltimer`.",
    ),
    op(
        "weft.cuda.nanosleep",
        &[Signature { args: &[Arg::Scalar(weft_artifact::Scalar::U32)], returns: Returns::Nothing }],
        Op::Nanosleep,
        "`nanosleep(ns)`: suspends the thread for about `ns` nanoseconds; no effect on the CPU. PTX ISA, `nanosleep`.",
    ),
    op(
        "weft.cuda.ldca",
        LOADS,
        Op::Load(LoadHint::All),
        "`ldca(array, index)`: load with the cache operator `ca`: cache at all levels. PTX ISA, \"Cache Operators\", \
         as for the next ones.",
    ),
    op(
        "weft.cuda.ldcg",
        LOADS,
        Op::Load(LoadHint::Global),
        "`ldcg(array, index)`: load with the cache operator `cg`: cache in L2 only.",
    ),
    op(
        "weft.cuda.ldcs",
        LOADS,
        Op::Load(LoadHint::Streaming),
        "`ldcs(array, index)`: load with the cache operator `cs`: streaming, likely to be used once.",
    ),
    op(
        "weft.cuda.ldlu",
        LOADS,
        Op::Load(LoadHint::LastUse),
        "`ldlu(array, index)`: load with the cache operator `lu`: last use.",
    ),
    op(
        "weft.cuda.ldcv",
        LOADS,
        Op::Load(LoadHint::Volatile),
        "`ldcv(array, index)`: load with the cache operator `cv`: volatile, fetched from memory again.",
    ),
    op(
        "weft.cuda.stcg",
        STORES,
        Op::Store(StoreHint::Global),
        "`stcg(array, index, value)`: store with the cache operator `cg`: cache in L2 only.",
    ),
    op(
        "weft.cuda.stcs",
        STORES,
        Op::Store(StoreHint::Streaming),
        "`stcs(array, index, value)`: store with the cache operator `cs`: streaming, likely to be used once.",
    ),
    op(
        "weft.cuda.stwb",
        STORES,
        Op::Store(StoreHint::Back),
        "`stwb(array, index, value)`: store with the cache operator `wb`: write-back at all levels.",
    ),
    op(
        "weft.cuda.stwt",
        STORES,
        Op::Store(StoreHint::Through),
        "`stwt(array, index, value)`: store with the cache operator `wt`: write-through to memory.",
    ),
];
