//! The bits of floats: conversions between numbers and the bits of `float16`, `bfloat16`, `float32` and `float64`,
//! rounded once, to nearest even.
//!
//! The executors convert arguments, and the compiler converts constants, with these functions. Compiled code rounds the
//! same way.

use crate::number::Scalar;

/// The layout of a 16-bit float.
#[derive(Clone, Copy)]
struct Format {
    exponent: u32,
    mantissa: u32,
}

const F16: Format = Format { exponent: 5, mantissa: 10 };
const BF16: Format = Format { exponent: 8, mantissa: 7 };

impl Format {
    const fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.mantissa
    }

    const fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    fn encode(self, value: f64) -> u64 {
        let bits = value.to_bits();
        let sign = bits >> 63 << 15;
        let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
        if value.is_nan() {
            // A NaN with its highest mantissa bit set, and the upper bits of the payload.
            return sign | self.infinity() | 1 << (self.mantissa - 1) | fraction >> (52 - self.mantissa);
        }
        let significand = if exponent == 0 { fraction } else { fraction | 1 << 52 };
        let exponent = exponent - 1023 + self.bias();
        // Subnormal results lose more bits, at most 63.
        let dropped = (52 - self.mantissa as i32 + (1 - exponent).max(0)).min(63) as u32;
        let (kept, rest, half) = (significand >> dropped, significand & ((1 << dropped) - 1), 1 << (dropped - 1));
        let kept = kept + u64::from(rest > half || (rest == half && kept & 1 == 1));
        // A carry out of the significand increments the exponent.
        let magnitude = ((exponent - 1).max(0) as u64) << self.mantissa;
        sign | (magnitude + kept).min(self.infinity())
    }

    fn decode(self, bits: u64) -> f64 {
        let sign = if bits >> 15 & 1 == 1 { -1.0 } else { 1.0 };
        let (exponent, fraction) =
            ((bits >> self.mantissa) as i32 & ((1 << self.exponent) - 1), bits & ((1 << self.mantissa) - 1));
        if exponent == (1 << self.exponent) - 1 {
            let carried = fraction << (52 - self.mantissa);
            return f64::from_bits((bits >> 15 & 1) << 63 | 0x7ff << 52 | carried);
        }
        let significand = if exponent == 0 { fraction } else { fraction | 1 << self.mantissa };
        sign * significand as f64 * 2_f64.powi(exponent.max(1) - self.bias() - self.mantissa as i32)
    }
}

impl Scalar {
    fn half_format(self) -> Option<Format> {
        match self {
            Self::F16 => Some(F16),
            Self::BF16 => Some(BF16),
            Self::Bool
            | Self::I8
            | Self::I16
            | Self::I32
            | Self::I64
            | Self::U8
            | Self::U16
            | Self::U32
            | Self::U64
            | Self::F32
            | Self::F64 => None,
        }
    }

    /// The bits of a number as a float of this type; as a `float64` for types that are not floats.
    pub fn float_bits(self, value: f64) -> u64 {
        match self.half_format() {
            Some(format) => format.encode(value),
            None if self == Self::F32 => u64::from((value as f32).to_bits()),
            None => value.to_bits(),
        }
    }

    /// The number that the bits of a float of this type represent: the inverse of [`Scalar::float_bits`].
    pub fn float_of_bits(self, bits: u64) -> f64 {
        match self.half_format() {
            Some(format) => format.decode(bits),
            None if self == Self::F32 => f64::from(f32::from_bits(bits as u32)),
            None => f64::from_bits(bits),
        }
    }

    /// The float of this type that is nearest to a number.
    pub fn nearest(self, value: f64) -> f64 {
        self.float_of_bits(self.float_bits(value))
    }

    /// The float of this type that is nearest to an integer.
    pub fn nearest_int(self, value: i128) -> f64 {
        if self == Self::F32 {
            return f64::from(value as f32);
        }
        if self.half_format().is_none() {
            return value as f64;
        }
        // Bits beyond a float64's precision set its last bit (a sticky bit), so that the second rounding sees no false
        // tie.
        let excess = (128 - value.unsigned_abs().leading_zeros()).saturating_sub(53);
        let lost = value & ((1 << excess) - 1) != 0;
        let kept = value >> excess | i128::from(lost);
        self.nearest((kept << excess) as f64)
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "a number is one of these or it is not")]
mod tests {
    use super::*;

    #[test]
    fn all_bits_are_read_back() {
        for scalar in [Scalar::F16, Scalar::BF16] {
            for bits in 0..1_u64 << 16 {
                let value = scalar.float_of_bits(bits);
                let quiet = if scalar == Scalar::F16 { 1 << 9 } else { 1 << 6 };
                let expected = if value.is_nan() { bits | quiet } else { bits };
                assert_eq!(scalar.float_bits(value), expected, "{scalar} {bits:#x}");
            }
        }
        assert_eq!(Scalar::F16.float_of_bits(0x3555), 0.333_251_953_125);
        assert_eq!(Scalar::F16.float_of_bits(0x8001), -(2_f64.powi(-24)));
        assert_eq!(Scalar::BF16.float_of_bits(0x3eab), f64::from(f32::from_bits(0x3eab_0000)));
        assert_eq!(Scalar::BF16.float_of_bits(1), f64::from(f32::from_bits(0x1_0000)));
    }

    /// The midpoint of two neighbors rounds to the even one, other numbers to the nearer one.
    #[test]
    fn numbers_go_to_the_nearest_once() {
        for scalar in [Scalar::F16, Scalar::BF16] {
            let infinity = scalar.float_bits(f64::INFINITY);
            for below in 0..infinity {
                let (a, even) = (scalar.float_of_bits(below), below + (below & 1));
                let above = if below + 1 == infinity {
                    2.0 * a - scalar.float_of_bits(below - 1)
                } else {
                    scalar.float_of_bits(below + 1)
                };
                let middle = f64::midpoint(a, above);
                for (value, expected) in [(middle, even), (middle.next_down(), below), (middle.next_up(), below + 1)] {
                    assert_eq!(scalar.float_bits(value), expected, "{scalar} {value:e}");
                    assert_eq!(scalar.float_bits(-value), expected | 1 << 15, "{scalar} {value:e}");
                }
            }
        }
    }

    #[test]
    fn integers_go_to_the_nearest_once() {
        let tie = 0x101 << 40;
        assert_eq!(Scalar::BF16.nearest_int(tie), 2_f64.powi(48));
        assert_eq!(Scalar::BF16.nearest_int(tie + 1), (0x102_i64 << 40) as f64);
        assert_eq!(Scalar::BF16.nearest_int(-tie - 1), -((0x102_i64 << 40) as f64));
        let tie = 0x101_i128 << 55;
        assert_eq!(Scalar::BF16.nearest_int(tie), 2_f64.powi(63));
        assert_eq!(Scalar::BF16.nearest_int(tie + 1), (0x102_i128 << 55) as f64);
        assert_eq!(Scalar::BF16.nearest_int(-tie - 1), -((0x102_i128 << 55) as f64));
        assert_eq!(Scalar::F16.nearest_int(2049), 2048.0);
        assert_eq!(Scalar::F16.nearest_int(65519), 65504.0);
        assert_eq!(Scalar::F16.nearest_int(-65520), f64::NEG_INFINITY);
        assert_eq!(Scalar::F32.nearest_int((1 << 54) + (1 << 30) + 1), f64::from(((1_i64 << 54) + (1 << 31)) as f32));
    }
}
