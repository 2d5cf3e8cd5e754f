//! Floats in the roundings that the CPU does not have, and formats of 16 bits.
//!
//! A result is an exact integer times a power of two, with a sticky bit for what is below; [`round`] rounds it to a
//! format. For float32 and narrower formats, a float64 result that is rounded to odd is exact enough for every
//! rounding.

use crate::decode::{Format, Rounding};

/// An exact value: `(-1)^negative * mantissa * 2^exponent`, plus something less than the last bit if `sticky`.
#[derive(Debug, Clone, Copy)]
struct Exact {
    negative: bool,
    mantissa: u128,
    exponent: i32,
    sticky: bool,
}

/// The bits of the mantissa with the hidden one, the least exponent of a normal number, and the greatest.
fn limits(format: Format) -> (i32, i32, i32) {
    match format {
        Format::F16 => (11, -14, 15),
        Format::Bf16 => (8, -126, 127),
        Format::F32 => (24, -126, 127),
        Format::F64 => (53, -1022, 1023),
    }
}

fn total_bits(format: Format) -> u32 {
    match format {
        Format::F16 | Format::Bf16 => 16,
        Format::F32 => 32,
        Format::F64 => 64,
    }
}

/// Rounds an exact value that is not zero to a format. Returns its bits.
fn round(value: Exact, format: Format, rounding: Rounding) -> u64 {
    let (precision, least, greatest) = limits(format);
    let sign = u64::from(value.negative) << (total_bits(format) - 1);
    let length = 128 - value.mantissa.leading_zeros() as i32;
    let top = value.exponent + length - 1;
    // The weight of the last bit of the result.
    let unit = top.max(least) - (precision - 1);
    let shift = unit - value.exponent;
    let (kept, half, rest) = if shift <= 0 {
        (value.mantissa << -shift, false, value.sticky)
    } else if shift > 127 {
        (0, false, true)
    } else {
        let half = value.mantissa >> (shift - 1) & 1 != 0;
        let below = value.mantissa & ((1 << (shift - 1)) - 1) != 0;
        (value.mantissa >> shift, half, below || value.sticky)
    };
    let up = match rounding {
        Rounding::Nearest => half && (rest || kept & 1 != 0),
        Rounding::Zero => false,
        Rounding::Down => value.negative && (half || rest),
        Rounding::Up => !value.negative && (half || rest),
    };
    let mut mantissa = kept as u64 + u64::from(up);
    let mut exponent = unit + precision - 1;
    if mantissa >> precision != 0 {
        mantissa >>= 1;
        exponent += 1;
    }
    let hidden = 1_u64 << (precision - 1);
    if exponent > greatest {
        let to_infinity = match rounding {
            Rounding::Nearest => true,
            Rounding::Zero => false,
            Rounding::Down => value.negative,
            Rounding::Up => !value.negative,
        };
        let infinity = ((greatest - least + 2) as u64) << (precision - 1);
        return sign | (infinity - u64::from(!to_infinity));
    }
    let biased = if mantissa & hidden == 0 { 0 } else { (exponent - least + 1) as u64 };
    sign | biased << (precision - 1) | mantissa & (hidden - 1)
}

/// A finite float64 that is not zero as an exact value.
fn exact(x: f64) -> Exact {
    let bits = x.to_bits();
    let (biased, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    let (mantissa, exponent) = if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) };
    Exact { negative: x.is_sign_negative(), mantissa: u128::from(mantissa), exponent, sticky: false }
}

/// The bits of a float64 in a format.
pub(super) fn convert(x: f64, format: Format, rounding: Rounding) -> u64 {
    if x == 0.0 || !x.is_finite() {
        return special(x, format);
    }
    round(exact(x), format, rounding)
}

/// The bits of zero, infinity or NaN.
fn special(x: f64, format: Format) -> u64 {
    let (precision, least, greatest) = limits(format);
    let sign = u64::from(x.is_sign_negative()) << (total_bits(format) - 1);
    let infinity = ((greatest - least + 2) as u64) << (precision - 1);
    if x.is_nan() {
        // The canonical NaN of NVIDIA GPUs.
        return (1 << (total_bits(format) - 1)) - 1;
    }
    if x == 0.0 { sign } else { sign | infinity }
}

/// The bits of an integer in a format.
pub(super) fn from_integer(x: i128, format: Format, rounding: Rounding) -> u64 {
    if x == 0 {
        return 0;
    }
    round(Exact { negative: x < 0, mantissa: x.unsigned_abs(), exponent: 0, sticky: false }, format, rounding)
}

/// A float of 16 bits as float64.
pub(super) fn widen(bits: u32, format: Format) -> f64 {
    if format == Format::Bf16 {
        return f64::from(f32::from_bits(bits << 16));
    }
    let (sign, biased, fraction) = (bits >> 15 & 1, bits >> 10 & 31, bits & 1023);
    let magnitude = match biased {
        0 => f64::from(fraction) * (-24_f64).exp2(),
        31 if fraction == 0 => f64::INFINITY,
        31 => f64::NAN,
        _ => f64::from(fraction | 1024) * f64::from(biased as i32 - 25).exp2(),
    };
    if sign == 1 { -magnitude } else { magnitude }
}

/// The nearest float64 of a value rounded to odd: `error` is the sign of the exact value minus `nearest`.
fn to_odd(nearest: f64, error: f64) -> f64 {
    if error == 0.0 || !nearest.is_finite() || nearest.to_bits() & 1 != 0 {
        return nearest;
    }
    if error > 0.0 { nearest.next_up() } else { nearest.next_down() }
}

/// `a * b + c` rounded to odd, for float32 and narrower operands, whose product is exact in float64.
pub(super) fn fma_to_odd(a: f64, b: f64, c: f64) -> f64 {
    let product = a * b;
    let sum = product + c;
    let virtual_c = sum - product;
    let error = (product - (sum - virtual_c)) + (c - virtual_c);
    to_odd(sum, error)
}

/// `a / b` rounded to odd, for float32 and narrower operands.
pub(super) fn div_to_odd(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    if !quotient.is_finite() || quotient == 0.0 {
        return quotient;
    }
    let remainder = (-quotient).mul_add(b, a);
    to_odd(quotient, if b < 0.0 { -remainder } else { remainder })
}

/// The square root rounded to odd, for float32 and narrower operands.
pub(super) fn sqrt_to_odd(x: f64) -> f64 {
    let root = x.sqrt();
    if !root.is_finite() || root == 0.0 {
        return root;
    }
    to_odd(root, (-root).mul_add(root, x))
}

/// `a * b + c` of float64 in a rounding.
pub(super) fn fma(a: f64, b: f64, c: f64, rounding: Rounding) -> f64 {
    let nearest = a.mul_add(b, c);
    if !(a.is_finite() && b.is_finite() && c.is_finite()) {
        return nearest;
    }
    if a == 0.0 || b == 0.0 {
        if c != 0.0 {
            return c;
        }
        return zero_sum(a * b, c, rounding);
    }
    let (x, y) = (exact(a), exact(b));
    let product = Exact {
        negative: x.negative ^ y.negative,
        mantissa: x.mantissa * y.mantissa,
        exponent: x.exponent + y.exponent,
        sticky: false,
    };
    let sum = if c == 0.0 { product } else { add(product, exact(c)) };
    if sum.mantissa == 0 {
        return zero_sum(1.0, -1.0, rounding);
    }
    f64::from_bits(round(sum, Format::F64, rounding))
}

/// The sum of two zeros, or of two values that cancel: negative only if both are, or if rounding down.
fn zero_sum(a: f64, b: f64, rounding: Rounding) -> f64 {
    let (negative_a, negative_b) = (a.is_sign_negative(), b.is_sign_negative());
    let negative = if negative_a == negative_b { negative_a } else { rounding == Rounding::Down };
    if negative { -0.0 } else { 0.0 }
}

/// The sum of two values that are not zero, with enough bits to round it to float64.
fn add(a: Exact, b: Exact) -> Exact {
    // The leading bits are moved to bit 124, so that a sum does not overflow.
    let align = |v: Exact| {
        let shift = v.mantissa.leading_zeros() as i32 - 3;
        Exact { mantissa: v.mantissa << shift, exponent: v.exponent - shift, ..v }
    };
    let (mut high, mut low) = (align(a), align(b));
    if (low.exponent, low.mantissa) > (high.exponent, high.mantissa) {
        (high, low) = (low, high);
    }
    let distance = (high.exponent - low.exponent) as u32;
    let shifted = low.mantissa.checked_shr(distance).unwrap_or(0);
    let lost = distance > 127 || shifted << distance != low.mantissa;
    if high.negative == low.negative {
        return Exact { mantissa: high.mantissa + shifted, sticky: lost, ..high };
    }
    // With lost bits the difference is a little less than that of the bits that are there.
    Exact { mantissa: high.mantissa - shifted - u128::from(lost), sticky: lost, ..high }
}

/// `a / b` of float64 in a rounding.
pub(super) fn div(a: f64, b: f64, rounding: Rounding) -> f64 {
    let nearest = a / b;
    if !a.is_finite() || !b.is_finite() || a == 0.0 || b == 0.0 {
        return nearest;
    }
    let (x, y) = (exact(a), exact(b));
    let scale = x.mantissa.leading_zeros() as i32;
    let dividend = x.mantissa << scale;
    let quotient = Exact {
        negative: x.negative ^ y.negative,
        mantissa: dividend / y.mantissa,
        exponent: x.exponent - scale - y.exponent,
        sticky: !dividend.is_multiple_of(y.mantissa),
    };
    f64::from_bits(round(quotient, Format::F64, rounding))
}

/// The square root of float64 in a rounding.
pub(super) fn sqrt(x: f64, rounding: Rounding) -> f64 {
    if !x.is_finite() || x <= 0.0 {
        return x.sqrt();
    }
    let value = exact(x);
    let mut scale = value.mantissa.leading_zeros() as i32;
    if (value.exponent - scale) % 2 != 0 {
        scale -= 1;
    }
    let scaled = value.mantissa << scale;
    let root = scaled.isqrt();
    let exact_root = Exact {
        negative: false,
        mantissa: root,
        exponent: (value.exponent - scale) / 2,
        sticky: root * root != scaled,
    };
    f64::from_bits(round(exact_root, Format::F64, rounding))
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the results are exact")]
mod tests {
    use super::*;

    /// A sequence of floats of all exponents.
    fn floats(count: usize) -> impl Iterator<Item = (f64, f64, f64)> {
        let mut state = 1_u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f64::from_bits(state ^ state >> 29)
        };
        (0..count).map(move |_| (next(), next(), next())).filter(|(a, b, c)| (a + b + c).is_finite())
    }

    #[test]
    fn nearest_is_the_hardware() {
        for (a, b, c) in floats(20_000) {
            let same = |x: f64, y: f64| assert_eq!(x.to_bits(), y.to_bits(), "{a:e} {b:e} {c:e}");
            same(fma(a, b, c, Rounding::Nearest), a.mul_add(b, c));
            same(fma(a, 1.0, b, Rounding::Nearest), a + b);
            same(div(a, b, Rounding::Nearest), a / b);
            same(sqrt(a.abs(), Rounding::Nearest), a.abs().sqrt());
            let small = (a as f32, b as f32);
            assert_eq!(convert(a, Format::F32, Rounding::Nearest) as u32, small.0.to_bits());
            let (x, y) = (f64::from(small.0), f64::from(small.1));
            if (small.0 * small.1).is_finite() {
                let product = fma_to_odd(x, y, f64::from(small.0));
                let fused = small.0.mul_add(small.1, small.0);
                assert_eq!(convert(product, Format::F32, Rounding::Nearest) as u32, fused.to_bits());
            }
        }
    }

    #[test]
    fn directions_enclose_the_exact_result() {
        for (a, b, c) in floats(20_000) {
            let (down, up) = (fma(a, b, c, Rounding::Down), fma(a, b, c, Rounding::Up));
            let nearest = a.mul_add(b, c);
            if !nearest.is_finite() {
                continue;
            }
            assert!(down <= nearest && nearest <= up, "{a:e} {b:e} {c:e}");
            assert!(up == down || up == down.next_up(), "{a:e} {b:e} {c:e}");
            let zero = fma(a, b, c, Rounding::Zero);
            assert_eq!(zero, if nearest > 0.0 { down } else { up });
        }
        assert_eq!(div(1.0, 3.0, Rounding::Up), (1.0_f64 / 3.0).next_up());
        assert_eq!(sqrt(2.0, Rounding::Down), 2.0_f64.sqrt().next_down());
        assert_eq!(sqrt(4.0, Rounding::Up), 2.0);
        assert!(fma(1.0, 1.0, -1.0, Rounding::Down).is_sign_negative());
        assert_eq!(fma(f64::MAX, 2.0, 0.0, Rounding::Zero), f64::MAX);
        assert_eq!(fma(f64::MIN_POSITIVE, 0.5, f64::from_bits(1), Rounding::Up).to_bits(), (1 << 51) + 1);
    }

    #[test]
    fn halves() {
        for bits in 0..0x7c00 {
            let x = widen(bits, Format::F16);
            assert_eq!(convert(x, Format::F16, Rounding::Nearest), u64::from(bits));
        }
        assert_eq!(convert(65520.0, Format::F16, Rounding::Nearest), 0x7c00);
        assert_eq!(convert(65520.0, Format::F16, Rounding::Zero), 0x7bff);
        assert_eq!(convert(1.0 + 1.0 / 256.0, Format::Bf16, Rounding::Nearest), 0x3f80);
        assert_eq!(from_integer(-2049, Format::F16, Rounding::Nearest), 0xe800);
        assert_eq!(from_integer(-2049, Format::F16, Rounding::Down), 0xe801);
    }
}
