//! Floats of 8 bits: conversions of a `float32` to them, and of them to `float16`.

use std::cmp::Ordering;

use super::round;
use crate::{
    decode::{self, Rounding},
    parse::Type,
};

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// 4 bits of exponent, no infinities.
    E4m3,
    /// 5 bits of exponent: the upper half of a `float16`.
    E5m2,
}

/// The bits of NaN that a conversion gives, in both formats.
const NAN: u64 = 0x7F;

impl Format {
    /// The format of a type.
    pub(super) fn of(ty: Type) -> Option<Self> {
        [(Type::E4m3, Self::E4m3), (Type::E5m2, Self::E5m2)].into_iter().find(|(own, _)| *own == ty).map(|(_, of)| of)
    }

    /// The bits of the largest number.
    const fn largest(self) -> u64 {
        match self {
            Self::E4m3 => 0x7E,
            Self::E5m2 => 0x7B,
        }
    }

    /// A number as `float16`, whose bits these are. All are exact; NaN is the canonical one.
    pub(super) fn half(self, bits: u64) -> u64 {
        let (sign, magnitude) = (bits & 0x80, bits & 0x7F);
        match self {
            Self::E5m2 if magnitude > 0x7C => 0x7FFF,
            Self::E4m3 if magnitude == NAN => 0x7FFF,
            Self::E5m2 => bits << 8,
            // As a `float16`, it is too small by the difference of the biases.
            Self::E4m3 => {
                let small = round::widen((magnitude << 7) as u32, decode::Format::F16);
                sign << 8 | round::convert(small * 256.0, decode::Format::F16, Rounding::Nearest)
            }
        }
    }

    /// The bits of the nearest number, ties to even. Larger numbers become the largest one.
    pub(super) fn nearest(self, x: f32) -> u64 {
        if x.is_nan() {
            return NAN;
        }
        let magnitude = f64::from(x.abs());
        let value = |bits: u64| round::widen(self.half(bits) as u32, decode::Format::F16);
        // The numbers ascend with their bits.
        let (mut below, mut above) = (0, self.largest());
        while above - below > 1 {
            let middle = u64::midpoint(below, above);
            *(if value(middle) <= magnitude { &mut below } else { &mut above }) = middle;
        }
        let (down, up) = (magnitude - value(below), value(above) - magnitude);
        let found = match down.total_cmp(&up) {
            Ordering::Less => below,
            Ordering::Equal if below % 2 == 0 => below,
            Ordering::Equal | Ordering::Greater => above,
        };
        u64::from(x.is_sign_negative()) << 7 | found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_even_and_saturate() {
        for format in [Format::E4m3, Format::E5m2] {
            for bits in (0..=format.largest()).chain(0x80..=format.largest() | 0x80) {
                let value = round::widen(format.half(bits) as u32, decode::Format::F16) as f32;
                assert_eq!(format.nearest(value), bits, "{format:?}");
            }
            assert_eq!(format.nearest(f32::NAN), NAN);
            assert_eq!(format.nearest(f32::NEG_INFINITY), format.largest() | 0x80);
        }
        let ties = [(1.0625, 0x38), (1.1875, 0x3A), (0.000_976_562_5, 0), (464.0, 0x7E), (480.0, 0x7E)];
        for (value, bits) in ties {
            assert_eq!(Format::E4m3.nearest(value), bits, "{value}");
        }
        assert_eq!(Format::E5m2.nearest(1.125), 0x3C);
        assert_eq!(Format::E5m2.nearest(61440.0), 0x7B);
    }
}
