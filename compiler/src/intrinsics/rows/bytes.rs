//! Rows of `cuda.fp8`: conversions to and from floats of 8 bits.

use super::{
    super::{Intrinsic, Lowering, Signature},
    tables::{numbers, row},
};
use crate::ir::MathFn;

/// Floats of all types, to bits.
const TO_BYTE: &[Signature] = numbers![F16 -> U8, BF16 -> U8, F32 -> U8, F64 -> U8];
/// Bits, to a float.
const OF_BYTE: &[Signature] = numbers![U8 -> F32];

pub(super) const FP8: &[Intrinsic] = &[
    row(
        "weft.cuda.fp8.to_e4m3",
        TO_BYTE,
        Lowering::Prelude("fp8_to_e4m3"),
        "The bits of the nearest e4m3 number (4 bits of exponent, 3 of fraction), ties to even, rounded once. Numbers \
         beyond ±448, and infinities, become ±448; NaN becomes 0x7F.",
    ),
    row(
        "weft.cuda.fp8.to_e5m2",
        TO_BYTE,
        Lowering::Prelude("fp8_to_e5m2"),
        "The bits of the nearest e5m2 number (5 bits of exponent, 2 of fraction), ties to even, rounded once. Numbers \
         beyond ±57344, and infinities, become ±57344; NaN becomes 0x7F.",
    ),
    row(
        "weft.cuda.fp8.from_e4m3",
        OF_BYTE,
        Lowering::Math(MathFn::OfE4M3),
        "The e4m3 number with these bits, exactly. 0x7F and 0xFF are NaN; there are no infinities.",
    ),
    row(
        "weft.cuda.fp8.from_e5m2",
        OF_BYTE,
        Lowering::Prelude("fp8_from_e5m2"),
        "The e5m2 number with these bits, exactly. 0x7C and 0xFC are infinities, larger magnitudes NaN.",
    ),
];
