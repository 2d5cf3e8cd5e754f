//! Products of floats of 8 bits in a warp, as `ptxas` replaces `mma.sync` of them for compute capability 9.0 to 11.0: by
//! conversions to `float16`, two products of `float16`, and an addition of the accumulator, which rounds to nearest even.
//! The first product has the pairs of `k` whose remainder by 4 is 0 and 1, and the second one the other pairs.

use super::{CUT_OF_HALVES, Decoded, Format, Formats, NAN, floats};
use crate::matrix::{MatrixKind, MatrixTile};

/// The extent along `k` of the instruction, and of one of `float16`.
const STEP: usize = 32;
const STEP_OF_HALVES: usize = 16;
/// The bits of a `float16` NaN.
const NAN_OF_HALF: u64 = 0x7FFF;
/// The smallest subnormal number of the format e4m3 is `2^-9`, in which a `float16` has an exponent field of 6.
const FIELD_OF_LEAST: u32 = 6;

/// The product of a tile, as [`super::product`].
#[inline(always)]
pub(super) fn product(tile: MatrixTile, a: &[u64], b: &[u64], c: &mut [u64]) {
    let of_halves = Formats { a: Format::F16, b: Format::F16, cut: CUT_OF_HALVES[1], step: STEP_OF_HALVES };
    let [_, n, k] = tile.shape().map(usize::from);
    let [a_is_e4m3, b_is_e4m3] = match tile.kind() {
        MatrixKind::E4M3 => [true, true],
        MatrixKind::E4M3E5M2 => [true, false],
        MatrixKind::E5M2E4M3 => [false, true],
        MatrixKind::E5M2 => [false, false],
        MatrixKind::F16
        | MatrixKind::BF16
        | MatrixKind::TF32
        | MatrixKind::F64
        | MatrixKind::S8
        | MatrixKind::U8
        | MatrixKind::S8U8
        | MatrixKind::U8S8 => return,
    };
    let mut sums = vec![0; c.len()];
    for start in (0..k).step_by(STEP) {
        sums.fill(0);
        let (a, b) = (halves(a, k, start, a_is_e4m3), halves(b, k, start, b_is_e4m3));
        floats(of_halves, [n, STEP], &a, &b, &mut sums);
        for (c, sum) in c.iter_mut().zip(&sums) {
            let sum = f32::from_bits(*c as u32) + f32::from_bits(*sum as u32);
            *c = u64::from(if sum.is_nan() { NAN } else { sum.to_bits() });
        }
    }
}

/// The elements from `start` on of each row of `k`, as `float16`, in the order of the two products.
fn halves(elements: &[u64], k: usize, start: usize, is_e4m3: bool) -> Vec<u64> {
    let in_order = [0, 2].into_iter().flat_map(|pair| (0..STEP).filter(move |at| at % 4 / 2 == pair / 2));
    let order: Vec<usize> = in_order.collect();
    let widened = |bits: u64| if is_e4m3 { half_of_e4m3(bits) } else { bits << 8 };
    elements.chunks(k).flat_map(|row| order.iter().map(move |at| widened(row[start + at]))).collect()
}

/// The `float16` of a number of the format e4m3.
fn half_of_e4m3(bits: u64) -> u64 {
    let Decoded { significand, exponent, is_nan, .. } = Decoded::of(Format::E4M3, bits);
    if is_nan {
        return NAN_OF_HALF;
    }
    let sign = (bits & 0x80) << 8;
    let magnitude = match significand.cast_unsigned() {
        0 => 0,
        // A subnormal number: its leading bit is that of the significand.
        low @ 1..8 => {
            let leading = low.ilog2();
            (FIELD_OF_LEAST + leading) << 10 | (low << (10 - leading)) & 0x3FF
        }
        normal => (exponent + 15).cast_unsigned() << 10 | (normal & 7) << 7,
    };
    sign | u64::from(magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_numbers_of_the_format_e4m3_are_float16() {
        for bits in 0..256_u64 {
            let (field, fraction) = ((bits >> 3 & 15) as i32, (bits & 7) as f64);
            let magnitude =
                if field == 0 { fraction * 2_f64.powi(-9) } else { (8.0 + fraction) * 2_f64.powi(field - 10) };
            let expected = if bits & 0x80 == 0 { magnitude } else { -magnitude };
            let found = crate::Scalar::F16.float_of_bits(half_of_e4m3(bits));
            assert!(
                if bits & 0x7F == 0x7F { found.is_nan() } else { found.to_bits() == expected.to_bits() },
                "{bits:x}"
            );
        }
    }
}
