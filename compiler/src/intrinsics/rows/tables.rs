//! Lists of overloads that several rows share, and short forms of rows.

use weft_artifact::Number;

use super::super::{Arg, Intrinsic, Lowering, Ptx, Returns, Signature};

/// A row without a single PTX instruction.
pub(super) const fn row(
    path: &'static str,
    signatures: &'static [Signature],
    lowering: Lowering,
    doc: &'static str,
) -> Intrinsic {
    Intrinsic { path, signatures, lowering, ptx: Ptx::Computed, doc }
}

/// A number as an argument.
pub(super) const fn arg(number: Number) -> Arg {
    match number {
        Number::Real(scalar) => Arg::Scalar(scalar),
        Number::Complex(complex) => Arg::Complex(complex),
    }
}

/// A number as a result.
pub(super) const fn gives(number: Number) -> Returns {
    match number {
        Number::Real(scalar) => Returns::Scalar(scalar),
        Number::Complex(complex) => Returns::Complex(complex),
    }
}

/// Overloads of numbers: `numbers![F32 F32 -> BOOL, F64 F64 -> BOOL]`.
macro_rules! numbers {
    ($($($from:ident)+ -> $to:ident),+ $(,)?) => {
        &[$(Signature {
            args: &[$(crate::intrinsics::rows::tables::arg(weft_artifact::Number::$from)),+],
            returns: crate::intrinsics::rows::tables::gives(weft_artifact::Number::$to),
        }),+]
    };
}

/// Overloads of numbers that return two numbers of one type: `pairs![F32 -> F32]`.
macro_rules! pairs {
    ($($($from:ident)+ -> $to:ident),+ $(,)?) => {
        &[$(Signature {
            args: &[$(Arg::Scalar(weft_artifact::Scalar::$from)),+],
            returns: Returns::Tuple(&[weft_artifact::Scalar::$to, weft_artifact::Scalar::$to]),
        }),+]
    };
}

/// Overloads of arrays, followed by numbers: `arrays![[F32] -> F32, [F32] [F32] -> BOOL, [F32] I64 -> F32]`.
macro_rules! arrays {
    ($($([$of:ident])* $($from:ident)* -> $to:ident),+ $(,)?) => {
        &[$(Signature {
            args: &[
                $(Arg::Array(weft_artifact::Number::$of),)*
                $(crate::intrinsics::rows::tables::arg(weft_artifact::Number::$from),)*
            ],
            returns: crate::intrinsics::rows::tables::gives(weft_artifact::Number::$to),
        }),+]
    };
}

pub(super) use {arrays, numbers, pairs};

/// A float of any type, or an integer as a float64.
pub(super) const EVERY_FLOAT: &[Signature] = numbers![F16 -> F16, BF16 -> BF16, F32 -> F32, F64 -> F64];
/// A float of 32 or 64 bits; a 16-bit float is converted to float32, and an integer to float64.
pub(super) const FLOAT: &[Signature] = numbers![F32 -> F32, F64 -> F64];
/// The same, or a complex number.
pub(super) const INEXACT: &[Signature] =
    numbers![F16 -> F16, BF16 -> BF16, F32 -> F32, F64 -> F64, C64 -> C64, C128 -> C128];
/// A complex number; a real one is converted to complex.
pub(super) const COMPLEX: &[Signature] = numbers![C64 -> C64, C128 -> C128];
/// Two floats.
pub(super) const FLOATS: &[Signature] = numbers![F16 F16 -> F16, BF16 BF16 -> BF16, F32 F32 -> F32, F64 F64 -> F64];
/// A test of a float.
pub(super) const FLOAT_TEST: &[Signature] = numbers![F16 -> BOOL, BF16 -> BOOL, F32 -> BOOL, F64 -> BOOL];
/// A test of any number.
pub(super) const INEXACT_TEST: &[Signature] =
    numbers![F16 -> BOOL, BF16 -> BOOL, F32 -> BOOL, F64 -> BOOL, C64 -> BOOL, C128 -> BOOL];
/// Two integers of one type.
pub(super) const INTEGERS: &[Signature] = numbers![
    I8 I8 -> I8, U8 U8 -> U8, I16 I16 -> I16, U16 U16 -> U16,
    I32 I32 -> I32, U32 U32 -> U32, I64 I64 -> I64, U64 U64 -> U64,
];
/// Two integers of one type, or bools.
pub(super) const BITS: &[Signature] = numbers![
    BOOL BOOL -> BOOL, I8 I8 -> I8, U8 U8 -> U8, I16 I16 -> I16, U16 U16 -> U16,
    I32 I32 -> I32, U32 U32 -> U32, I64 I64 -> I64, U64 U64 -> U64,
];
/// A number of any type but bool.
pub(super) const NUMBER: &[Signature] = numbers![
    I8 -> I8, U8 -> U8, I16 -> I16, U16 -> U16, I32 -> I32, U32 -> U32, I64 -> I64, U64 -> U64,
    F16 -> F16, BF16 -> BF16, F32 -> F32, F64 -> F64, C64 -> C64, C128 -> C128,
];
/// A real number, or a bool.
pub(super) const REAL: &[Signature] = numbers![
    BOOL -> BOOL, I8 -> I8, U8 -> U8, I16 -> I16, U16 -> U16, I32 -> I32, U32 -> U32, I64 -> I64, U64 -> U64,
    F16 -> F16, BF16 -> BF16, F32 -> F32, F64 -> F64,
];
/// Two real numbers of one type, not bools.
pub(super) const REALS: &[Signature] = numbers![
    I8 I8 -> I8, U8 U8 -> U8, I16 I16 -> I16, U16 U16 -> U16,
    I32 I32 -> I32, U32 U32 -> U32, I64 I64 -> I64, U64 U64 -> U64, F16 F16 -> F16, BF16 BF16 -> BF16, F32 F32 -> F32, F64 F64 -> F64,
];
/// Two numbers of one type, not bools.
pub(super) const NUMBERS: &[Signature] = numbers![
    I8 I8 -> I8, U8 U8 -> U8, I16 I16 -> I16, U16 U16 -> U16,
    I32 I32 -> I32, U32 U32 -> U32, I64 I64 -> I64, U64 U64 -> U64, F16 F16 -> F16, BF16 BF16 -> BF16, F32 F32 -> F32, F64 F64 -> F64,
    C64 C64 -> C64, C128 C128 -> C128,
];
/// Two numbers of one type.
pub(super) const ANY: &[Signature] = numbers![
    BOOL BOOL -> BOOL, I8 I8 -> I8, U8 U8 -> U8, I16 I16 -> I16, U16 U16 -> U16,
    I32 I32 -> I32, U32 U32 -> U32, I64 I64 -> I64, U64 U64 -> U64, F16 F16 -> F16, BF16 BF16 -> BF16, F32 F32 -> F32, F64 F64 -> F64,
    C64 C64 -> C64, C128 C128 -> C128,
];
/// A comparison; operands of different signedness are compared exactly.
pub(super) const COMPARISON: &[Signature] = numbers![
    BOOL BOOL -> BOOL, I8 I8 -> BOOL, U8 U8 -> BOOL, I16 I16 -> BOOL, U16 U16 -> BOOL, I32 I32 -> BOOL,
    U32 U32 -> BOOL, I64 I64 -> BOOL, U64 U64 -> BOOL, I64 U64 -> BOOL, U64 I64 -> BOOL,
    F16 F16 -> BOOL, BF16 BF16 -> BOOL, F32 F32 -> BOOL, F64 F64 -> BOOL, C64 C64 -> BOOL, C128 C128 -> BOOL,
];
/// Truth values of two numbers of any type.
pub(super) const TRUTHS: &[Signature] = numbers![
    BOOL BOOL -> BOOL, I8 I8 -> BOOL, U8 U8 -> BOOL, I16 I16 -> BOOL, U16 U16 -> BOOL, I32 I32 -> BOOL,
    U32 U32 -> BOOL, I64 I64 -> BOOL, U64 U64 -> BOOL,
    F16 F16 -> BOOL, BF16 BF16 -> BOOL, F32 F32 -> BOOL, F64 F64 -> BOOL, C64 C64 -> BOOL, C128 C128 -> BOOL,
];
/// The sum of an array; that of integers has 64 bits.
pub(super) const SUM: &[Signature] = arrays![
    [BOOL] -> I64, [I8] -> I64, [U8] -> U64, [I16] -> I64, [U16] -> U64, [I32] -> I64, [U32] -> U64,
    [I64] -> I64, [U64] -> U64, [F16] -> F16, [BF16] -> BF16, [F32] -> F32, [F64] -> F64, [C64] -> C64, [C128] -> C128,
];
/// The mean of an array; that of integers is a float64.
pub(super) const MEAN: &[Signature] = arrays![
    [BOOL] -> F64, [I8] -> F64, [U8] -> F64, [I16] -> F64, [U16] -> F64, [I32] -> F64, [U32] -> F64,
    [I64] -> F64, [U64] -> F64, [F16] -> F16, [BF16] -> BF16, [F32] -> F32, [F64] -> F64, [C64] -> C64, [C128] -> C128,
];
/// The variance or standard deviation of an array; that of complex numbers is a float.
pub(super) const SPREAD: &[Signature] = arrays![
    [BOOL] -> F64, [I8] -> F64, [U8] -> F64, [I16] -> F64, [U16] -> F64, [I32] -> F64, [U32] -> F64,
    [I64] -> F64, [U64] -> F64, [F16] -> F16, [BF16] -> BF16, [F32] -> F32, [F64] -> F64, [C64] -> F32, [C128] -> F64,
];
/// An element of an array.
pub(super) const ELEMENT: &[Signature] = arrays![
    [BOOL] -> BOOL, [I8] -> I8, [U8] -> U8, [I16] -> I16, [U16] -> U16, [I32] -> I32, [U32] -> U32,
    [I64] -> I64, [U64] -> U64, [F16] -> F16, [BF16] -> BF16, [F32] -> F32, [F64] -> F64, [C64] -> C64, [C128] -> C128,
];
/// The index of an array's element, or a number of elements.
pub(super) const NUMBER_OF: &[Signature] = arrays![
    [BOOL] -> I64, [I8] -> I64, [U8] -> I64, [I16] -> I64, [U16] -> I64, [I32] -> I64, [U32] -> I64,
    [I64] -> I64, [U64] -> I64, [F16] -> I64, [BF16] -> I64, [F32] -> I64, [F64] -> I64, [C64] -> I64, [C128] -> I64,
];
