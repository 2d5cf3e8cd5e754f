//! The products of matrices that a warp computes, with the bits of a GPU of a compute capability ([`MatrixRules`]).
//!
//! The rules for 9.0, as measured on an H100 and an H200:
//!
//! - `float16`, `bfloat16` and tf32: one instruction adds all its products and the accumulator at once. Each term is cut
//!   toward zero at 25 bits below the largest exponent among them, the sum is exact, and it is cut to a `float32`.
//!   Subnormal numbers are exact, a NaN is `0x7fffffff`, a zero is `+0`.
//! - Floats of 8 bits in a warpgroup: in the same way, but at 13 bits below the largest exponent, and the result is cut to
//!   13 bits of fraction.
//! - Floats of 8 bits in a warp: there is no such instruction, and `ptxas` replaces it by two of `float16` and an addition
//!   ([`bytes`]).
//! - `float64`: a fused multiply-add for each `k`, in ascending order.
//! - Integers: exact, modulo 2^32.
//!
//! The rules for others are published (arXiv 2511.10909), and no GPU confirmed them for weft. They differ in the number of
//! bits, and in how much of `k` is added at once:
//!
//! - 8.0 to 8.9: 24 bits, and each half of the instruction's `k` is such a sum, to which the sum of the first half is the
//!   accumulator of the second. Floats of 8 bits (8.9) in the same way, at 13 bits as those of a warpgroup.
//! - 10.0 to 11.0: as 9.0. `ptxas` also replaces floats of 8 bits there.
//! - 12.0 and 12.1: as 9.0, and floats of 8 bits in one sum at 25 bits.
//!
//! Matrices are slices of the elements' bits: A by rows, B by columns, C by rows.

#![expect(clippy::inline_always, reason = "the caller compiles it for the machine's vectors")]

mod bytes;

use super::{MatrixKind, MatrixPart, MatrixTile};
use crate::number::Scalar;

/// The bits of a `float32` NaN.
const NAN: u32 = 0x7FFF_FFFF;
/// The bits of an infinite `float32`.
const INFINITY: u32 = 0x7F80_0000;
/// The sign of a `float32`.
const SIGN: u32 = 0x8000_0000;
/// Bits of a `float32` that a sum at [`CUT_OF_8`] does not have.
const UNUSED_OF_8: u64 = (1 << 10) - 1;
/// The bits of a sum below the largest exponent: of floats of 8 bits, before 9.0, and since.
const CUT_OF_8: u32 = 13;
const CUT_OF_HALVES: [u32; 2] = [24, 25];
/// Products that are added in 32 bits without an overflow.
const OF_WORD: usize = 16;
/// The least exponent that terms are aligned to.
const LOWEST: i32 = -133;
/// The exponent of a zero, below all others.
const OF_ZERO: i32 = -(1 << 20);
/// The columns of an instruction.
const COLUMNS: usize = 8;

/// A floating-point format of elements.
#[derive(Clone, Copy)]
struct Format {
    exponent_bits: u32,
    fraction_bits: u32,
    /// Lowest bits of an element, which the operation does not read.
    unread: u32,
    /// It has no infinities, and only one NaN, with all bits set.
    is_finite: bool,
}

/// The GPUs whose bits products have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixRules {
    /// Compute capability 8.0 to 8.9.
    Cc8,
    /// 9.0 to 11.0.
    Cc9,
    /// 12.0 and 12.1.
    Cc12,
}

impl MatrixRules {
    /// The rules of a compute capability, major and minor.
    pub const fn of((major, _): (u32, u32)) -> Self {
        match major {
            0..9 => Self::Cc8,
            9..12 => Self::Cc9,
            12.. => Self::Cc12,
        }
    }
}

/// The formats of A and B, the number of bits below the largest exponent at which terms are cut, and the extent along `k`
/// of one sum.
#[derive(Clone, Copy)]
struct Formats {
    a: Format,
    b: Format,
    cut: u32,
    step: usize,
}

impl Formats {
    /// Of a tile's sums. `None` if they are not of this file, or the instruction is [replaced](bytes).
    fn of(rules: MatrixRules, tile: MatrixTile) -> Option<Self> {
        let kind = tile.kind();
        let (a, b) = match kind {
            MatrixKind::F16 => (Format::F16, Format::F16),
            MatrixKind::BF16 => (Format::BF16, Format::BF16),
            MatrixKind::TF32 => (Format::TF32, Format::TF32),
            MatrixKind::E4M3 => (Format::E4M3, Format::E4M3),
            MatrixKind::E5M2 => (Format::E5M2, Format::E5M2),
            MatrixKind::E4M3E5M2 => (Format::E4M3, Format::E5M2),
            MatrixKind::E5M2E4M3 => (Format::E5M2, Format::E4M3),
            MatrixKind::F64 | MatrixKind::S8 | MatrixKind::U8 | MatrixKind::S8U8 | MatrixKind::U8S8 => return None,
        };
        // Only 9.0 has instructions of a warpgroup.
        let is_of_bytes = kind.is_of_bytes();
        let rules = if tile.is_of_warpgroup() { MatrixRules::Cc9 } else { rules };
        let (cut, parts) = match rules {
            MatrixRules::Cc8 => (if is_of_bytes { CUT_OF_8 } else { CUT_OF_HALVES[0] }, 2),
            MatrixRules::Cc9 if is_of_bytes && !tile.is_of_warpgroup() => return None,
            MatrixRules::Cc9 => (if is_of_bytes { CUT_OF_8 } else { CUT_OF_HALVES[1] }, 1),
            MatrixRules::Cc12 => (CUT_OF_HALVES[1], 1),
        };
        Some(Self { a, b, cut, step: usize::from(kind.instruction()[2]) / parts })
    }
}

impl Format {
    const fn new(exponent_bits: u32, fraction_bits: u32) -> Self {
        Self { exponent_bits, fraction_bits, unread: 0, is_finite: false }
    }

    const F16: Self = Self::new(5, 10);
    const BF16: Self = Self::new(8, 7);
    const TF32: Self = Self { unread: 13, ..Self::new(8, 10) };
    const E4M3: Self = Self { is_finite: true, ..Self::new(4, 3) };
    const E5M2: Self = Self::new(5, 2);
    /// The format of accumulators.
    const F32: Self = Self::new(8, 23);
}

/// A number: `(-1)^sign * significand * 2^(exponent - fraction bits)`. A subnormal number has the least exponent.
#[derive(Clone, Copy, Default)]
struct Decoded {
    /// 0 or -1.
    sign: i32,
    significand: i32,
    exponent: i32,
    is_infinite: bool,
    is_nan: bool,
}

impl Decoded {
    #[inline(always)]
    fn of(format: Format, bits: u64) -> Self {
        let bits = (bits as u32) >> format.unread;
        let fraction = bits & ((1 << format.fraction_bits) - 1);
        let largest = (1_u32 << format.exponent_bits) - 1;
        let field = (bits >> format.fraction_bits) & largest;
        let sign = -((bits >> (format.fraction_bits + format.exponent_bits) & 1).cast_signed());
        let significand = if field > 0 { fraction | 1 << format.fraction_bits } else { fraction };
        let exponent = field.max(1).cast_signed() - (largest >> 1).cast_signed();
        let ones = (1 << format.fraction_bits) - 1;
        let is_special = field == largest && (!format.is_finite || fraction == ones);
        Self {
            sign,
            significand: significand.cast_signed(),
            exponent: if significand == 0 { OF_ZERO } else { exponent },
            is_infinite: is_special && fraction == 0,
            is_nan: is_special && fraction != 0,
        }
    }

    const fn is_special(self) -> bool {
        self.is_infinite || self.is_nan
    }
}

/// Eight columns of a row of B, in separate arrays so that they are vectors.
#[derive(Clone, Copy, Default)]
struct Row {
    sign: [i32; COLUMNS],
    significand: [i32; COLUMNS],
    exponent: [i32; COLUMNS],
}

/// The product of a tile: `c += a * b`. The slices have the sizes of the tile's matrices.
#[inline(always)]
pub fn product(rules: MatrixRules, tile: MatrixTile, a: &[u64], b: &[u64], c: &mut [u64]) {
    match tile.kind() {
        MatrixKind::F16
        | MatrixKind::BF16
        | MatrixKind::TF32
        | MatrixKind::E4M3
        | MatrixKind::E5M2
        | MatrixKind::E4M3E5M2
        | MatrixKind::E5M2E4M3 => {
            let [_, n, k] = tile.shape().map(usize::from);
            match Formats::of(rules, tile) {
                Some(formats) => floats(formats, [n, k], a, b, c),
                None => bytes::product(tile, a, b, c),
            }
        }
        MatrixKind::F64 => doubles(tile, a, b, c),
        MatrixKind::S8 | MatrixKind::U8 | MatrixKind::S8U8 | MatrixKind::U8S8 => integers(tile, a, b, c),
    }
}

/// The products in `float32`, of matrices of `n` columns and an extent `k`.
#[inline(always)]
fn floats(formats: Formats, [n, k]: [usize; 2], a: &[u64], b: &[u64], c: &mut [u64]) {
    let step = formats.step;
    let decode = |format: Format| move |bits: &u64| Decoded::of(format, *bits);
    let a: Vec<Decoded> = a.iter().map(decode(formats.a)).collect();
    let b: Vec<Decoded> = b.iter().map(decode(formats.b)).collect();
    let special = a.iter().chain(&b).any(|number| number.is_special());
    let mut rows = vec![Row::default(); n / COLUMNS * k];
    for (column, numbers) in b.chunks(k).enumerate() {
        for (at, number) in numbers.iter().enumerate() {
            let row = &mut rows[column / COLUMNS * k + at];
            row.sign[column % COLUMNS] = number.sign;
            row.significand[column % COLUMNS] = number.significand;
            row.exponent[column % COLUMNS] = number.exponent;
        }
    }
    for (row, out) in a.chunks(k).zip(c.chunks_mut(n)) {
        for (block, out) in out.chunks_mut(COLUMNS).enumerate() {
            for start in (0..k).step_by(step) {
                let numbers = &row[start..start + step];
                let before: [u64; COLUMNS] = std::array::from_fn(|column| out[column]);
                fused(formats, numbers, &rows[block * k + start..][..step], out);
                if !special && before.iter().all(|&bits| bits as u32 & INFINITY != INFINITY) {
                    continue;
                }
                for (column, (out, before)) in out.iter_mut().zip(before).enumerate() {
                    let others = &b[(block * COLUMNS + column) * k + start..][..step];
                    if let Some(bits) = special_sum(numbers, others, Decoded::of(Format::F32, before)) {
                        *out = bits.into();
                    }
                }
            }
        }
    }
}

/// The sum of products and of an accumulator some of which are infinite or NaN; `None` if none is.
fn special_sum(a: &[Decoded], b: &[Decoded], c: Decoded) -> Option<u32> {
    let mut is_nan = c.is_nan;
    // Infinities that are positive and negative.
    let mut infinite = [c.is_infinite && c.sign == 0, c.is_infinite && c.sign != 0];
    for (a, b) in a.iter().zip(b) {
        let is_infinite = a.is_infinite || b.is_infinite;
        let is_zero = a.significand == 0 || b.significand == 0;
        is_nan |= a.is_nan || b.is_nan || is_infinite && is_zero;
        infinite[usize::from(a.sign != b.sign)] |= is_infinite;
    }
    match (is_nan, infinite) {
        (true, _) | (_, [true, true]) => Some(NAN),
        (_, [true, false]) => Some(INFINITY),
        (_, [false, true]) => Some(INFINITY | SIGN),
        (_, [false, false]) => None,
    }
}

/// One sum for a row of A and eight columns of B, if no number is infinite or NaN.
#[inline(always)]
fn fused(formats: Formats, a: &[Decoded], b: &[Row], c: &mut [u64]) {
    let before: [Decoded; COLUMNS] = std::array::from_fn(|column| Decoded::of(Format::F32, c[column]));
    let mut top = before.map(|number| number.exponent.max(LOWEST));
    for (a, b) in a.iter().zip(b) {
        for (top, exponent) in top.iter_mut().zip(b.exponent) {
            *top = (*top).max(a.exponent + exponent);
        }
    }
    // A product has the fraction bits of both. Its significand is below 2^(cut + 2) after the shift.
    let Formats { a: of_a, b: of_b, cut, step: _ } = formats;
    let up = cut - of_a.fraction_bits - of_b.fraction_bits;
    // The accumulator's fraction is shifted to the cut.
    let (c_up, c_down) = (cut.saturating_sub(Format::F32.fraction_bits), Format::F32.fraction_bits.saturating_sub(cut));
    let unused = if c_down > 0 { UNUSED_OF_8 } else { 0 };
    let mut totals = [0_i64; COLUMNS];
    for (a, b) in a.chunks(OF_WORD).zip(b.chunks(OF_WORD)) {
        let mut sums = [0_i32; COLUMNS];
        for (a, b) in a.iter().zip(b) {
            let factors = b.exponent.iter().zip(&b.significand).zip(&b.sign);
            for ((sum, top), ((exponent, significand), sign)) in sums.iter_mut().zip(top).zip(factors) {
                let below = (top - (a.exponent + exponent)).min(31);
                let magnitude = ((a.significand * significand) << up) >> below;
                let sign = a.sign ^ sign;
                *sum += (magnitude ^ sign) - sign;
            }
        }
        for (total, sum) in totals.iter_mut().zip(sums) {
            *total += i64::from(sum);
        }
    }
    for (((out, number), top), total) in c.iter_mut().zip(before).zip(top).zip(totals) {
        let below = (top - number.exponent + c_down.cast_signed()).min(31);
        let magnitude = (number.significand << c_up) >> below;
        let total = total + i64::from((magnitude ^ number.sign) - number.sign);
        *out = u64::from(cut_to_float(total, top - cut.cast_signed())) & !unused;
    }
}

/// The bits of `total * 2^unit`, cut toward zero to a `float32`.
#[inline(always)]
fn cut_to_float(total: i64, unit: i32) -> u32 {
    if total == 0 {
        return 0;
    }
    let magnitude = total.unsigned_abs();
    let exponent = (unit + 63 - magnitude.leading_zeros().cast_signed()).max(-126);
    let drop = exponent - 23 - unit;
    let significand = if drop < 0 { magnitude << -drop } else { magnitude >> drop };
    // The leading bit of the significand adds one to the exponent.
    let bits = (significand as u32).saturating_add(((exponent + 126) as u32) << 23).min(INFINITY);
    if bits != 0 && total < 0 { bits | SIGN } else { bits }
}

/// The products in `float64`.
#[inline(always)]
fn doubles(tile: MatrixTile, a: &[u64], b: &[u64], c: &mut [u64]) {
    let [_, n, k] = tile.shape().map(usize::from);
    for (row, out) in a.chunks(k).zip(c.chunks_mut(n)) {
        for (column, out) in b.chunks(k).zip(out) {
            for (&a, &b) in row.iter().zip(column) {
                *out = fma(a, b, *out);
            }
        }
    }
}

/// A fused multiply-add. A NaN operand is the result, in the order B, C, A.
#[inline(always)]
fn fma(a: u64, b: u64, c: u64) -> u64 {
    const QUIET: u64 = 1 << 51;
    const INVALID: u64 = 0xFFF8 << 48;
    let sum = f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c));
    if !sum.is_nan() {
        return sum.to_bits();
    }
    [b, c, a].into_iter().find(|&bits| f64::from_bits(bits).is_nan()).map_or(INVALID, |bits| bits | QUIET)
}

/// The products of integers.
#[inline(always)]
fn integers(tile: MatrixTile, a: &[u64], b: &[u64], c: &mut [u64]) {
    let [_, n, k] = tile.shape().map(usize::from);
    let widen = |part: MatrixPart| {
        let is_signed = tile.kind().element(part) == Scalar::I8;
        move |bits: &u64| if is_signed { i32::from(*bits as i8) } else { i32::from(*bits as u8) }
    };
    let a: Vec<i32> = a.iter().map(widen(MatrixPart::A)).collect();
    let b: Vec<i32> = b.iter().map(widen(MatrixPart::B)).collect();
    for (row, out) in a.chunks(k).zip(c.chunks_mut(n)) {
        for (column, out) in b.chunks(k).zip(out) {
            let sum = row.iter().zip(column).fold(*out as i32, |sum, (a, b)| sum.wrapping_add(a * b));
            *out = u64::from(sum.cast_unsigned());
        }
    }
}

#[cfg(test)]
mod tests;
