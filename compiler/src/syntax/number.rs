//! Python's arithmetic of its own numbers: unbounded integers, floats, complex numbers.
//!
//! A result is bit-identical to CPython's. There is no result if CPython raises an exception, or if an integer would
//! have more than [`MOST_BITS`] bits. A `bool` counts as an integer.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

use super::ast::{BinOp, UnaryOp};

/// The maximum number of bits of a computed integer.
const MOST_BITS: u64 = 4096;

/// The digits after the decimal point of a quotient, enough to distinguish it from every float and every midpoint of
/// two floats.
const DIGITS: usize = 1100;

/// A Python number.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// `int`.
    Int(BigInt),
    /// `float`.
    Float(f64),
    /// `complex`.
    Complex(f64, f64),
}

impl From<i128> for Number {
    fn from(value: i128) -> Self {
        Self::Int(value.into())
    }
}

/// `op number`, if the result is a number.
pub fn unary(op: UnaryOp, number: &Number) -> Option<Number> {
    Some(match (op, number) {
        (UnaryOp::Not, _) | (UnaryOp::Invert, Number::Float(_) | Number::Complex(..)) => return None,
        (UnaryOp::Plus, number) => number.clone(),
        (UnaryOp::Minus, Number::Int(value)) => Number::Int(-value),
        (UnaryOp::Minus, Number::Float(value)) => Number::Float(-value),
        (UnaryOp::Minus, Number::Complex(real, imag)) => Number::Complex(-real, -imag),
        (UnaryOp::Invert, Number::Int(value)) => Number::Int(!value),
    })
}

/// `left op right`.
pub fn binary(op: BinOp, left: &Number, right: &Number) -> Option<Number> {
    match (left, right) {
        (Number::Int(a), Number::Int(b)) => ints(op, a, b),
        (Number::Complex(..), _) | (_, Number::Complex(..)) => complexes(op, complex(left)?, complex(right)?),
        (Number::Float(_), _) | (_, Number::Float(_)) => floats(op, complex(left)?.0, complex(right)?.0),
    }
}

/// Compares an integer and a float exactly; a NaN is unordered.
pub fn order(int: &BigInt, float: f64) -> Option<Ordering> {
    if float.is_nan() || float.is_infinite() {
        return 0.0.partial_cmp(&float);
    }
    // All digits of its integer part, so the comparison is exact.
    let floor: BigInt = format!("{:.0}", float.floor()).parse().ok()?;
    Some(int.cmp(&floor).then(if float.fract() == 0.0 { Ordering::Equal } else { Ordering::Less }))
}

/// Converts a number to complex. An integer is rounded to the nearest float; if it is too large, there is no result
/// (`OverflowError`).
fn complex(number: &Number) -> Option<(f64, f64)> {
    match number {
        Number::Int(value) => Some((float(value)?, 0.0)),
        Number::Float(value) => Some((*value, 0.0)),
        Number::Complex(real, imag) => Some((*real, *imag)),
    }
}

fn float(value: &BigInt) -> Option<f64> {
    if let Ok(value) = i128::try_from(value) {
        return Some(value as f64);
    }
    finite(value.to_string().parse().ok()?)
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn ints(op: BinOp, a: &BigInt, b: &BigInt) -> Option<Number> {
    let fits = |bits: u64| (bits <= MOST_BITS).then_some(());
    let zero = b.sign() == Sign::NoSign;
    Some(Number::Int(match op {
        BinOp::Add => a + b,
        BinOp::Sub => a - b,
        BinOp::Mul => {
            fits(a.bits().saturating_add(b.bits()))?;
            a * b
        }
        BinOp::Div => return quotient(a, b).map(Number::Float),
        BinOp::FloorDiv if !zero => floor_div(a, b),
        BinOp::Mod if !zero => a - floor_div(a, b) * b,
        BinOp::Pow if b.sign() == Sign::Minus => return floats(op, float(a)?, float(b)?),
        BinOp::Pow if a.bits() == 0 && b.sign() == Sign::Plus => a.clone(),
        BinOp::Pow => {
            let exponent = u32::try_from(b).ok()?;
            fits(a.bits().saturating_mul(exponent.into()))?;
            a.pow(exponent)
        }
        BinOp::LShift if a.sign() == Sign::NoSign && b.sign() != Sign::Minus => a.clone(),
        BinOp::LShift => {
            let count = u32::try_from(b).ok()?;
            fits(a.bits().saturating_add(count.into()))?;
            a << count
        }
        BinOp::RShift if b.sign() != Sign::Minus => {
            // A shift by more than the integer's length leaves only the sign.
            a >> u64::try_from(b).map_or(a.bits(), |count| count.min(a.bits()))
        }
        BinOp::BitAnd => a & b,
        BinOp::BitOr => a | b,
        BinOp::BitXor => a ^ b,
        BinOp::FloorDiv | BinOp::Mod | BinOp::RShift | BinOp::MatMul => return None,
    }))
}

fn floor_div(a: &BigInt, b: &BigInt) -> BigInt {
    let quotient = a / b;
    let rest = a - &quotient * b;
    if rest.sign() != Sign::NoSign && rest.sign() != b.sign() { quotient - 1 } else { quotient }
}

/// The float that is nearest to `a / b`.
fn quotient(a: &BigInt, b: &BigInt) -> Option<f64> {
    const EXACT: u64 = f64::MANTISSA_DIGITS as u64;
    if b.sign() == Sign::NoSign {
        return None;
    }
    if a.bits() <= EXACT && b.bits() <= EXACT {
        return Some(float(a)? / float(b)?);
    }
    if a.bits() > MOST_BITS || b.bits() > MOST_BITS {
        return None;
    }
    // In decimal, so that the float parser does the only rounding. A last nonzero digit represents the remainder.
    let scaled: BigInt = a.magnitude().clone().into();
    let scaled = scaled * BigInt::from(10).pow(DIGITS as u32);
    let divisor: BigInt = b.magnitude().clone().into();
    let (whole, rest) = (&scaled / &divisor, &scaled % &divisor);
    let last = if rest.sign() == Sign::NoSign { "" } else { "1" };
    let sign = if (a.sign() == Sign::Minus) == (b.sign() == Sign::Minus) { "" } else { "-" };
    finite(format!("{sign}{whole}{last}e-{}", DIGITS + last.len()).parse().ok()?)
}

fn floats(op: BinOp, a: f64, b: f64) -> Option<Number> {
    Some(Number::Float(match op {
        BinOp::Add => a + b,
        BinOp::Sub => a - b,
        BinOp::Mul => a * b,
        BinOp::Div if b != 0.0 => a / b,
        BinOp::FloorDiv if b != 0.0 => float_divmod(a, b).0,
        BinOp::Mod if b != 0.0 => float_divmod(a, b).1,
        // A negative number has no real root.
        BinOp::Pow if a < 0.0 && a.is_finite() && b.is_finite() && b.fract() != 0.0 => {
            return complexes(op, (a, 0.0), (b, 0.0));
        }
        BinOp::Pow if a != 0.0 || b >= 0.0 || b.is_nan() => {
            let power = a.powf(b);
            // CPython raises an `OverflowError`.
            if power.is_infinite() && a.is_finite() && b.is_finite() {
                return None;
            }
            power
        }
        BinOp::Div
        | BinOp::FloorDiv
        | BinOp::Mod
        | BinOp::Pow
        | BinOp::MatMul
        | BinOp::LShift
        | BinOp::RShift
        | BinOp::BitAnd
        | BinOp::BitOr
        | BinOp::BitXor => return None,
    }))
}

/// The floor of a quotient, and the remainder.
fn float_divmod(a: f64, b: f64) -> (f64, f64) {
    let mut rest = a % b;
    let mut quotient = (a - rest) / b;
    if rest == 0.0 {
        rest = 0.0_f64.copysign(b);
    } else if (b < 0.0) != (rest < 0.0) {
        rest += b;
        quotient -= 1.0;
    }
    if quotient == 0.0 {
        return (0.0_f64.copysign(a / b), rest);
    }
    let floor = quotient.floor();
    (if quotient - floor > 0.5 { floor + 1.0 } else { floor }, rest)
}

type Pair = (f64, f64);

fn complexes(op: BinOp, a: Pair, b: Pair) -> Option<Number> {
    let (real, imag) = match op {
        BinOp::Add => (a.0 + b.0, a.1 + b.1),
        BinOp::Sub => (a.0 - b.0, a.1 - b.1),
        BinOp::Mul => product(a, b),
        BinOp::Div => divided(a, b)?,
        BinOp::Pow => power(a, b)?,
        BinOp::FloorDiv
        | BinOp::Mod
        | BinOp::MatMul
        | BinOp::LShift
        | BinOp::RShift
        | BinOp::BitAnd
        | BinOp::BitOr
        | BinOp::BitXor => return None,
    };
    Some(Number::Complex(real, imag))
}

fn product(a: Pair, b: Pair) -> Pair {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

/// Smith's algorithm, as in CPython.
fn divided(a: Pair, b: Pair) -> Option<Pair> {
    let (real, imag) = (b.0.abs(), b.1.abs());
    if real == 0.0 && imag == 0.0 {
        return None;
    }
    Some(if real >= imag {
        let ratio = b.1 / b.0;
        let divisor = b.0 + b.1 * ratio;
        ((a.0 + a.1 * ratio) / divisor, (a.1 - a.0 * ratio) / divisor)
    } else if imag >= real {
        let ratio = b.0 / b.1;
        let divisor = b.0 * ratio + b.1;
        ((a.0 * ratio + a.1) / divisor, (a.1 * ratio - a.0) / divisor)
    } else {
        (f64::NAN, f64::NAN)
    })
}

/// By multiplications if the exponent is a small integer, else by logarithm and angle, as in CPython.
fn power(a: Pair, b: Pair) -> Option<Pair> {
    /// The largest exponent for which multiplications are used.
    const MOST: f64 = 100.0;
    let (real, imag) = if b.1 == 0.0 && b.0.fract() == 0.0 && b.0.abs() <= MOST {
        let (count, mut result, mut square) = (b.0.abs() as u32, (1.0, 0.0), a);
        for bit in 0..u32::BITS - count.leading_zeros() {
            if count >> bit & 1 == 1 {
                result = product(result, square);
            }
            square = product(square, square);
        }
        if b.0 > 0.0 { result } else { divided((1.0, 0.0), result)? }
    } else if a == (0.0, 0.0) {
        if b.1 != 0.0 || b.0 < 0.0 {
            return None;
        }
        (0.0, 0.0)
    } else {
        let (size, angle) = (a.0.hypot(a.1), a.1.atan2(a.0));
        let (mut length, mut phase) = (size.powf(b.0), angle * b.0);
        if b.1 != 0.0 {
            length /= (angle * b.1).exp();
            phase += b.1 * size.ln();
        }
        (length * phase.cos(), length * phase.sin())
    };
    // CPython raises an `OverflowError`.
    (!real.is_infinite() && !imag.is_infinite()).then_some((real, imag))
}
