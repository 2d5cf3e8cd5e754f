//! Operations on floats. Rounded operations are exact in all roundings. Approximate functions are computed in float64
//! and rounded, which is within the error that PTX documents; a GPU may have other last bits.

#![expect(clippy::inline_always, reason = "the callers are compiled twice: see `simple::block`")]

use super::{
    lanes::{Lanes, map1, map2, map3, set},
    round,
};
use crate::decode::{FloatOp, Format, Mode, Reg, Rounding};

/// The minimum or maximum that PTX defines: a number rather than NaN, and -0 below +0.
macro_rules! extremum {
    ($x:expr, $y:expr, $is_min:expr) => {{
        let (x, y) = ($x, $y);
        if x.is_nan() {
            y
        } else if y.is_nan() || x.total_cmp(&y).is_lt() == $is_min {
            x
        } else {
            y
        }
    }};
}

/// Operations on float32.
#[inline(always)]
pub(super) fn single<const FUSED: bool>(op: FloatOp, mode: Mode, bank: &mut [Lanes<u32>], r: &[Reg; 4], mask: u32) {
    if mode.rounding != Rounding::Nearest || mode.ftz || mode.sat {
        return rare_single(op, mode, bank, r, mask);
    }
    macro_rules! one {
        ($f:expr) => {
            map1(bank, r, mask, |x| $f(f32::from_bits(x)).to_bits())
        };
    }
    macro_rules! two {
        ($f:expr) => {{
            let f = $f;
            map2(bank, r, mask, |x, y| f(f32::from_bits(x), f32::from_bits(y)).to_bits())
        }};
    }
    match op {
        FloatOp::Add => two!(|x: f32, y: f32| x + y),
        FloatOp::Sub => two!(|x: f32, y: f32| x - y),
        FloatOp::Mul => two!(|x: f32, y: f32| x * y),
        FloatOp::Fma => fused::<FUSED>(bank, r, mask, false, false),
        FloatOp::MulSub => fused::<FUSED>(bank, r, mask, false, true),
        FloatOp::SubMul => fused::<FUSED>(bank, r, mask, true, false),
        FloatOp::Div => two!(|x: f32, y: f32| x / y),
        FloatOp::Sqrt => one!(f32::sqrt),
        FloatOp::Rcp => one!(f32::recip),
        FloatOp::Abs => map1(bank, r, mask, |x| x & 0x7fff_ffff),
        FloatOp::Neg => map1(bank, r, mask, |x| x ^ 0x8000_0000),
        FloatOp::Min => two!(|x: f32, y: f32| extremum!(x, y, true)),
        FloatOp::Max => two!(|x: f32, y: f32| extremum!(x, y, false)),
        FloatOp::MinNan
        | FloatOp::MaxNan
        | FloatOp::Rsqrt
        | FloatOp::Copysign
        | FloatOp::Ex2
        | FloatOp::Lg2
        | FloatOp::Sin
        | FloatOp::Cos
        | FloatOp::Tanh => rare_single(op, mode, bank, r, mask),
    }
}

/// Operations on float32 that are not common, and those in all modes.
#[inline(never)]
fn rare_single(op: FloatOp, mode: Mode, bank: &mut [Lanes<u32>], r: &[Reg; 4], mask: u32) {
    if let (Some(function), Rounding::Nearest, false) = (function(op), mode.rounding, mode.sat) {
        let flushed = |x: f32| if mode.ftz { flush(x) } else { x };
        map1(bank, r, mask, |x| flushed(function(f64::from(flushed(f32::from_bits(x)))) as f32).to_bits());
    } else {
        map3(bank, r, mask, |x, y, z| single_in_mode(op, mode, [x, y, z].map(f32::from_bits)).to_bits());
    }
}

/// The function of an operation that is computed in float64 and rounded.
fn function(op: FloatOp) -> Option<fn(f64) -> f64> {
    match op {
        FloatOp::Rsqrt => Some(|x| 1.0 / x.sqrt()),
        FloatOp::Ex2 => Some(f64::exp2),
        FloatOp::Lg2 => Some(f64::log2),
        FloatOp::Sin => Some(f64::sin),
        FloatOp::Cos => Some(f64::cos),
        FloatOp::Tanh => Some(f64::tanh),
        FloatOp::Add
        | FloatOp::Sub
        | FloatOp::Mul
        | FloatOp::Fma
        | FloatOp::MulSub
        | FloatOp::SubMul
        | FloatOp::Div
        | FloatOp::Sqrt
        | FloatOp::Rcp
        | FloatOp::Min
        | FloatOp::Max
        | FloatOp::MinNan
        | FloatOp::MaxNan
        | FloatOp::Abs
        | FloatOp::Neg
        | FloatOp::Copysign => None,
    }
}

/// `±a * b ± c` with one rounding: an instruction if the CPU has it (`FUSED`). Otherwise the float64 sum is rounded twice only where it is between two float32, or denormal.
#[inline(always)]
fn fused<const FUSED: bool>(
    bank: &mut [Lanes<u32>],
    r: &[Reg; 4],
    mask: u32,
    negates_product: bool,
    negates_summand: bool,
) {
    if FUSED {
        let signed = |x: f32, is_negated: bool| if is_negated { -x } else { x };
        map3(bank, r, mask, |a, b, c| {
            let [a, b, c] = [a, b, c].map(f32::from_bits);
            signed(a, negates_product).mul_add(b, signed(c, negates_summand)).to_bits()
        });
        return;
    }
    let (a, b, c) = (&bank[r[1] as usize], &bank[r[2] as usize], &bank[r[3] as usize]);
    let (sign_a, sign_c) = (u32::from(negates_product) << 31, u32::from(negates_summand) << 31);
    let wide = |x: u32| f64::from(f32::from_bits(x));
    let (mut values, mut is_rare) = ([0; 32], false);
    for lane in 0..32 {
        let sum = wide(a[lane] ^ sign_a) * wide(b[lane]) + wide(c[lane] ^ sign_c);
        let value = sum as f32;
        values[lane] = value.to_bits();
        is_rare |= sum.to_bits() & 0x1fff_ffff == 0x1000_0000 || sum != 0.0 && value.abs() < f32::MIN_POSITIVE;
    }
    if is_rare {
        for lane in 0..32 {
            let sum = round::fma_to_odd(wide(a[lane] ^ sign_a), wide(b[lane]), wide(c[lane] ^ sign_c));
            values[lane] = (sum as f32).to_bits();
        }
    }
    set(bank, r[0], mask, &values);
}

fn flush(x: f32) -> f32 {
    if x.is_subnormal() { 0.0_f32.copysign(x) } else { x }
}

fn single_in_mode(op: FloatOp, mode: Mode, operands: [f32; 3]) -> f32 {
    let [a, b, c] = if mode.ftz { operands.map(flush) } else { operands };
    let [x, y, z] = [a, b, c].map(f64::from);
    let rounded = |value: f64| f32::from_bits(round::convert(value, Format::F32, mode.rounding) as u32);
    let sum = |a: f64, b: f64, c: f64| {
        let value = round::fma_to_odd(a, b, c);
        // An exact zero of values that cancel has the sign of the rounding.
        let differ = (a * b).is_sign_negative() != c.is_sign_negative();
        if value == 0.0 && mode.rounding == Rounding::Down && differ { -0.0 } else { rounded(value) }
    };
    let value = match op {
        FloatOp::Add => sum(x, 1.0, y),
        FloatOp::Sub => sum(x, 1.0, -y),
        FloatOp::Mul => rounded(x * y),
        FloatOp::Fma => sum(x, y, z),
        FloatOp::MulSub => sum(x, y, -z),
        FloatOp::SubMul => sum(-x, y, z),
        FloatOp::Div => rounded(round::div_to_odd(x, y)),
        FloatOp::Rcp => rounded(round::div_to_odd(1.0, x)),
        FloatOp::Sqrt => rounded(round::sqrt_to_odd(x)),
        FloatOp::Rsqrt => rounded(1.0 / x.sqrt()),
        FloatOp::Ex2 => rounded(x.exp2()),
        FloatOp::Lg2 => rounded(x.log2()),
        FloatOp::Sin => rounded(x.sin()),
        FloatOp::Cos => rounded(x.cos()),
        FloatOp::Tanh => rounded(x.tanh()),
        FloatOp::Min => extremum!(a, b, true),
        FloatOp::Max => extremum!(a, b, false),
        FloatOp::MinNan if a.is_nan() || b.is_nan() => f32::NAN,
        FloatOp::MaxNan if a.is_nan() || b.is_nan() => f32::NAN,
        FloatOp::MinNan => extremum!(a, b, true),
        FloatOp::MaxNan => extremum!(a, b, false),
        FloatOp::Abs => a.abs(),
        FloatOp::Neg => -a,
        FloatOp::Copysign => b.copysign(a),
    };
    let value = if mode.ftz { flush(value) } else { value };
    if mode.sat { if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) } } else { value }
}

/// Operations on float64.
#[inline(always)]
pub(super) fn double<const FUSED: bool>(op: FloatOp, mode: Mode, bank: &mut [Lanes<u64>], r: &[Reg; 4], mask: u32) {
    macro_rules! three {
        ($f:expr) => {{
            let f = $f;
            map3(bank, r, mask, |x, y, z| f(f64::from_bits(x), f64::from_bits(y), f64::from_bits(z)).to_bits())
        }};
    }
    macro_rules! two {
        ($f:expr) => {{
            let f = $f;
            map2(bank, r, mask, |x, y| f(f64::from_bits(x), f64::from_bits(y)).to_bits())
        }};
    }
    match (op, mode.rounding) {
        (FloatOp::Add, Rounding::Nearest) => two!(|x: f64, y: f64| x + y),
        (FloatOp::Sub, Rounding::Nearest) => two!(|x: f64, y: f64| x - y),
        (FloatOp::Mul, Rounding::Nearest) => two!(|x: f64, y: f64| x * y),
        (FloatOp::Div, Rounding::Nearest) => two!(|x: f64, y: f64| x / y),
        (FloatOp::Fma, Rounding::Nearest) if FUSED => three!(|x: f64, y: f64, z: f64| x.mul_add(y, z)),
        (FloatOp::MulSub, Rounding::Nearest) if FUSED => three!(|x: f64, y: f64, z: f64| x.mul_add(y, -z)),
        (FloatOp::SubMul, Rounding::Nearest) if FUSED => three!(|x: f64, y: f64, z: f64| (-x).mul_add(y, z)),
        (FloatOp::Abs, _) => map1(bank, r, mask, |x| x & (u64::MAX >> 1)),
        (FloatOp::Neg, _) => map1(bank, r, mask, |x| x ^ 1 << 63),
        _ => rare_double(op, mode, bank, r, mask),
    }
}

/// Operations on float64 that are not common, and those in all modes.
#[inline(never)]
fn rare_double(op: FloatOp, mode: Mode, bank: &mut [Lanes<u64>], r: &[Reg; 4], mask: u32) {
    map3(bank, r, mask, |x, y, z| double_in_mode(op, mode, [x, y, z].map(f64::from_bits)).to_bits());
}

fn double_in_mode(op: FloatOp, mode: Mode, [a, b, c]: [f64; 3]) -> f64 {
    let way = mode.rounding;
    let is_nearest = way == Rounding::Nearest;
    let fma = |x: f64, y: f64, z: f64| if is_nearest { x.mul_add(y, z) } else { round::fma(x, y, z, way) };
    // Only approximate functions of float64 flush; the low half of their results is zero.
    let approximate = |x: f64| f64::from_bits(x.to_bits() & 0xffff_ffff_0000_0000);
    match op {
        FloatOp::Add => fma(a, 1.0, b),
        FloatOp::Sub => fma(a, 1.0, -b),
        FloatOp::Mul if is_nearest || a == 0.0 || b == 0.0 => a * b,
        FloatOp::Mul => fma(a, b, 0.0_f64.copysign(a) * 1.0_f64.copysign(b)),
        FloatOp::Fma => fma(a, b, c),
        FloatOp::MulSub => fma(a, b, -c),
        FloatOp::SubMul => fma(-a, b, c),
        FloatOp::Rcp if mode.ftz => approximate(1.0 / a),
        FloatOp::Rsqrt => approximate(1.0 / a.sqrt()),
        FloatOp::Div if is_nearest => a / b,
        FloatOp::Div => round::div(a, b, way),
        FloatOp::Rcp if is_nearest => 1.0 / a,
        FloatOp::Rcp => round::div(1.0, a, way),
        FloatOp::Sqrt if is_nearest => a.sqrt(),
        FloatOp::Sqrt => round::sqrt(a, way),
        FloatOp::Min => extremum!(a, b, true),
        FloatOp::Max => extremum!(a, b, false),
        FloatOp::MinNan | FloatOp::MaxNan if a.is_nan() || b.is_nan() => f64::NAN,
        FloatOp::MinNan => extremum!(a, b, true),
        FloatOp::MaxNan => extremum!(a, b, false),
        FloatOp::Abs => a.abs(),
        FloatOp::Neg => -a,
        FloatOp::Copysign => b.copysign(a),
        FloatOp::Ex2 => a.exp2(),
        FloatOp::Lg2 => a.log2(),
        FloatOp::Sin => a.sin(),
        FloatOp::Cos => a.cos(),
        FloatOp::Tanh => a.tanh(),
    }
}

/// Operations on floats of 16 bits, one or two in a word.
#[inline(never)]
pub(super) fn half(
    op: FloatOp,
    mode: Mode,
    format: Format,
    is_pair: bool,
    bank: &mut [Lanes<u32>],
    (r, mask): (&[Reg; 4], u32),
) {
    let one = |operands: [u32; 3]| half_in_mode(op, mode, format, operands.map(|x| x & 0xffff));
    map3(bank, r, mask, |x, y, z| {
        let low = one([x, y, z]);
        if is_pair { low | one([x >> 16, y >> 16, z >> 16]) << 16 } else { low }
    });
}

fn half_in_mode(op: FloatOp, mode: Mode, format: Format, operands: [u32; 3]) -> u32 {
    if op == FloatOp::Abs {
        return operands[0] & 0x7fff;
    }
    if op == FloatOp::Neg {
        return operands[0] ^ 0x8000;
    }
    let [a, b, c] = operands.map(|bits| round::widen(bits, format));
    let value = match op {
        FloatOp::Add => round::fma_to_odd(a, 1.0, b),
        FloatOp::Sub => round::fma_to_odd(a, 1.0, -b),
        FloatOp::Mul => a * b,
        FloatOp::Fma => round::fma_to_odd(a, b, c),
        FloatOp::MulSub => round::fma_to_odd(a, b, -c),
        FloatOp::SubMul => round::fma_to_odd(-a, b, c),
        FloatOp::Div
        | FloatOp::Sqrt
        | FloatOp::Rcp
        | FloatOp::Rsqrt
        | FloatOp::Min
        | FloatOp::Max
        | FloatOp::MinNan
        | FloatOp::MaxNan
        | FloatOp::Copysign
        | FloatOp::Ex2
        | FloatOp::Lg2
        | FloatOp::Sin
        | FloatOp::Cos
        | FloatOp::Tanh
        | FloatOp::Abs
        | FloatOp::Neg => double_in_mode(op, Mode { rounding: Rounding::Nearest, ftz: false, ..mode }, [a, b, c]),
    };
    let value = if mode.sat { if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) } } else { value };
    round::convert(value, format, mode.rounding) as u32
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the results are exact")]
mod tests {
    use super::*;

    const NEAREST: Mode = Mode { rounding: Rounding::Nearest, ftz: false, sat: false, contracts: false };

    fn apply(op: FloatOp, mode: Mode, operands: [f32; 3]) -> f32 {
        let mut bank = [[0; 32], [operands[0].to_bits(); 32], [operands[1].to_bits(); 32], [operands[2].to_bits(); 32]];
        let mut other = bank;
        single::<false>(op, mode, &mut bank, &[0, 1, 2, 3], u32::MAX);
        single::<true>(op, mode, &mut other, &[0, 1, 2, 3], u32::MAX);
        assert_eq!(bank[0], other[0], "{op:?} {operands:?}");
        f32::from_bits(bank[0][9])
    }

    #[test]
    fn extrema_prefer_numbers_and_order_zeros() {
        assert_eq!(apply(FloatOp::Min, NEAREST, [f32::NAN, 2.0, 0.0]), 2.0);
        assert_eq!(apply(FloatOp::Max, NEAREST, [3.0, f32::NAN, 0.0]), 3.0);
        assert!(apply(FloatOp::Min, NEAREST, [0.0, -0.0, 0.0]).is_sign_negative());
        assert!(apply(FloatOp::Min, NEAREST, [-0.0, 0.0, 0.0]).is_sign_negative());
        assert!(apply(FloatOp::Max, NEAREST, [-0.0, 0.0, 0.0]).is_sign_positive());
        assert_eq!(apply(FloatOp::Min, NEAREST, [1.0, 2.0, 0.0]), 1.0);
        assert_eq!(apply(FloatOp::Max, NEAREST, [1.0, 2.0, 0.0]), 2.0);
        assert!(apply(FloatOp::MinNan, NEAREST, [1.0, f32::NAN, 0.0]).is_nan());
        assert_eq!(apply(FloatOp::Copysign, NEAREST, [-1.0, 2.0, 0.0]), -2.0);
    }

    #[test]
    fn fused_products_round_once() {
        let (a, b) = (1.0 + f32::EPSILON, 1.0 - f32::EPSILON);
        assert_eq!(apply(FloatOp::Fma, NEAREST, [a, b, -1.0]), a.mul_add(b, -1.0));
        assert_eq!(apply(FloatOp::SubMul, NEAREST, [a, b, 1.0]), (-a).mul_add(b, 1.0));
        assert_eq!(apply(FloatOp::MulSub, NEAREST, [a, b, 1.0]), a.mul_add(b, -1.0));
        // Between two float32 in float64, if rounded twice.
        let tie = [1.0 + f32::EPSILON, 1.0, 2.0_f32.powi(-24) + 2.0_f32.powi(-47)];
        assert_eq!(apply(FloatOp::Fma, NEAREST, tie), tie[0].mul_add(tie[1], tie[2]));
        let tiny = [f32::MIN_POSITIVE * 1.5, 0.5, f32::from_bits(1)];
        assert_eq!(apply(FloatOp::Fma, NEAREST, tiny), tiny[0].mul_add(tiny[1], tiny[2]));
    }

    #[test]
    fn directions_flushing_and_saturation() {
        let down = Mode { rounding: Rounding::Down, ..NEAREST };
        let up = Mode { rounding: Rounding::Up, ..NEAREST };
        assert_eq!(apply(FloatOp::Div, down, [1.0, 3.0, 0.0]), (1.0_f32 / 3.0).next_down());
        assert_eq!(apply(FloatOp::Div, up, [1.0, 3.0, 0.0]), 1.0_f32 / 3.0);
        assert_eq!(apply(FloatOp::Add, up, [1.0, 1e-30, 0.0]), 1.0_f32.next_up());
        assert!(apply(FloatOp::Sub, down, [1.0, 1.0, 0.0]).is_sign_negative());
        let flushed = Mode { ftz: true, ..NEAREST };
        assert_eq!(apply(FloatOp::Mul, flushed, [f32::MIN_POSITIVE, 0.5, 0.0]), 0.0);
        let saturated = Mode { sat: true, ..NEAREST };
        assert_eq!(apply(FloatOp::Add, saturated, [1.0, 1.0, 0.0]), 1.0);
        assert_eq!(apply(FloatOp::Add, saturated, [f32::NAN, 1.0, 0.0]), 0.0);
    }
}
