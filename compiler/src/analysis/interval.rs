//! Intervals of integers, and the operators on them.
//!
//! An [`Interval`] contains all values that an integer may have, and possibly others. If the exact result of an
//! operation may overflow its type, the result is the whole range of the type, since it wraps.

use weft_artifact::Scalar;

use crate::ir::{BinaryOp, Type, UnaryOp};

/// The integers from `low` to `high`, inclusive; empty if `low` is above `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    /// The minimum.
    pub low: i128,
    /// The maximum.
    pub high: i128,
}

impl Interval {
    /// The empty interval, for a value that has not been computed.
    pub(crate) const NONE: Self = Self { low: 1, high: 0 };

    /// An interval of one value.
    pub(crate) const fn of(value: i128) -> Self {
        Self { low: value, high: value }
    }

    /// An interval, by its bounds.
    pub(crate) const fn new(low: i128, high: i128) -> Self {
        Self { low, high }
    }

    /// All values of a type; for a type that is not an integer, all numbers.
    pub(crate) fn of_type(ty: Type) -> Self {
        match ty.scalar() {
            Some(Scalar::Bool) => Self::new(0, 1),
            Some(scalar) if scalar.is_unsigned_int() => Self::new(0, (1 << width(scalar)) - 1),
            Some(scalar) if scalar.is_signed_int() => {
                let half = 1_i128 << (width(scalar) - 1);
                Self::new(-half, half - 1)
            }
            Some(_) | None => Self::new(i128::MIN, i128::MAX),
        }
    }

    /// Whether it is empty.
    pub(crate) const fn is_none(self) -> bool {
        self.low > self.high
    }

    /// Whether no value is negative.
    pub(crate) const fn is_nonneg(self) -> bool {
        self.low >= 0
    }

    /// Whether all values are in another interval.
    pub(crate) const fn within(self, other: Self) -> bool {
        self.is_none() || (self.low >= other.low && self.high <= other.high)
    }

    /// Whether all values are values of a type.
    pub(crate) fn fits(self, ty: Type) -> bool {
        self.within(Self::of_type(ty))
    }

    /// The only value, if there is one.
    pub(crate) fn single(self) -> Option<i128> {
        (self.low == self.high).then_some(self.low)
    }

    /// The smallest interval that contains both.
    pub(crate) fn join(self, other: Self) -> Self {
        if self.is_none() {
            return other;
        }
        if other.is_none() {
            return self;
        }
        Self::new(self.low.min(other.low), self.high.max(other.high))
    }

    /// The intersection of both.
    pub(crate) fn meet(self, other: Self) -> Self {
        Self::new(self.low.max(other.low), self.high.min(other.high))
    }

    /// The exact sum.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self::new(self.low.saturating_add(other.low), self.high.saturating_add(other.high))
    }

    /// The exact difference.
    pub(crate) fn minus(self, other: Self) -> Self {
        self.plus(other.negated())
    }

    /// The exact negation.
    pub(crate) fn negated(self) -> Self {
        Self::new(self.high.saturating_neg(), self.low.saturating_neg())
    }

    /// The exact product.
    pub(crate) fn times(self, other: Self) -> Self {
        let ends = [
            self.low.saturating_mul(other.low),
            self.low.saturating_mul(other.high),
            self.high.saturating_mul(other.low),
            self.high.saturating_mul(other.high),
        ];
        Self::hull(&ends)
    }

    fn hull(ends: &[i128]) -> Self {
        let low = ends.iter().copied().min().unwrap_or(i128::MIN);
        let high = ends.iter().copied().max().unwrap_or(i128::MAX);
        Self::new(low, high)
    }

    /// The result of an operation in a type, from its exact result.
    pub(crate) fn wrapped(self, ty: Type) -> Self {
        if self.fits(ty) { self } else { Self::of_type(ty) }
    }

    /// The operand converted from one type to another.
    pub(crate) fn converted(self, from: Type, to: Type) -> Self {
        let whole = |ty: Type| ty.scalar().is_some_and(|scalar| scalar.is_int() || scalar == Scalar::Bool);
        if !whole(from) || !whole(to) {
            return Self::of_type(to);
        }
        if to == Type::BOOL {
            return match (self.low, self.high) {
                (0, 0) => Self::of(0),
                (low, high) if low > 0 || high < 0 => Self::of(1),
                _ => Self::new(0, 1),
            };
        }
        self.wrapped(to)
    }

    /// `op a` in `ty`.
    pub(crate) fn unary(op: UnaryOp, a: Self, ty: Type) -> Self {
        match op {
            UnaryOp::Neg => a.negated().wrapped(ty),
            UnaryOp::Abs => {
                let low =
                    if a.low <= 0 && a.high >= 0 { 0 } else { a.low.saturating_abs().min(a.high.saturating_abs()) };
                Self::new(low, a.low.saturating_abs().max(a.high.saturating_abs())).wrapped(ty)
            }
            UnaryOp::Not if ty == Type::BOOL => Self::new(1 - a.high, 1 - a.low),
            // `-1 - a` in a signed type.
            UnaryOp::Not => match ty.scalar() {
                Some(scalar) if scalar.is_signed_int() => Self::of(-1).minus(a).wrapped(ty),
                Some(_) | None => Self::of_type(ty),
            },
        }
    }

    /// `a op b` in `ty`.
    pub(crate) fn binary(op: BinaryOp, a: Self, b: Self, ty: Type) -> Self {
        let all = Self::of_type(ty);
        let nonneg = a.is_nonneg() && b.is_nonneg();
        match op {
            BinaryOp::Add | BinaryOp::AddExact => a.plus(b).wrapped(ty),
            BinaryOp::Sub | BinaryOp::SubExact => a.minus(b).wrapped(ty),
            BinaryOp::Mul | BinaryOp::MulExact => a.times(b).wrapped(ty),
            BinaryOp::Min => Self::new(a.low.min(b.low), a.high.min(b.high)),
            BinaryOp::Max => Self::new(a.low.max(b.low), a.high.max(b.high)),
            BinaryOp::FloorDiv | BinaryOp::DivNonneg => Self::quotient(a, b).map_or(all, |found| found.meet(all)),
            BinaryOp::FloorMod | BinaryOp::ModNonneg => Self::remainder(a, b),
            BinaryOp::Pow => match b.single() {
                Some(power @ 0..=127) if nonneg => {
                    let raised = |base: i128| base.saturating_pow(power as u32);
                    Self::new(raised(a.low), raised(a.high)).wrapped(ty)
                }
                _ => all,
            },
            BinaryOp::Shl => match shift(b, ty) {
                Some((least, most)) if a.is_nonneg() => {
                    let shifted = |value: i128, by: u32| value.saturating_mul(1 << by);
                    Self::new(shifted(a.low, least), shifted(a.high, most)).wrapped(ty)
                }
                Some(_) | None => all,
            },
            BinaryOp::Shr => match shift(b, ty) {
                Some((least, most)) => {
                    let low = if a.low < 0 { a.low >> least } else { a.low >> most };
                    let high = if a.high < 0 { a.high >> most } else { a.high >> least };
                    Self::new(low, high)
                }
                None if a.is_nonneg() => Self::new(0, a.high),
                None => all,
            },
            BinaryOp::And if a.is_nonneg() || b.is_nonneg() => {
                let most = |of: Self| if of.is_nonneg() { of.high } else { i128::MAX };
                Self::new(0, most(a).min(most(b)))
            }
            BinaryOp::Or | BinaryOp::Xor if nonneg => Self::new(0, bits_of(a.high.max(b.high))),
            // The number of bits of both, without the sign.
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => {
                let bits = |of: Self| bits_of(of.high.max(!of.low));
                let most = bits(a).max(bits(b));
                Self::new(!most, most).meet(all)
            }
            BinaryOp::Div => all,
        }
    }

    /// `a // b`. Division by zero gives 0, and so does the type's minimum divided by -1.
    fn quotient(a: Self, b: Self) -> Option<Self> {
        let divisors = [b.low, b.high, -1, 1];
        let mut ends = if b.low <= 0 && b.high >= 0 { vec![0] } else { Vec::new() };
        for by in divisors.into_iter().filter(|by| *by != 0 && (b.low..=b.high).contains(by)) {
            ends.push(floor_div(a.low, by)?);
            ends.push(floor_div(a.high, by)?);
        }
        // The type's minimum divided by -1 is 0.
        if b.low <= -1 && b.high >= -1 {
            ends.push(0);
        }
        (!ends.is_empty()).then(|| Self::hull(&ends))
    }

    /// `a % b`, which has the divisor's sign. Modulo zero is 0.
    fn remainder(a: Self, b: Self) -> Self {
        if a.is_nonneg() && b.low > a.high {
            return a;
        }
        let low = if b.low < 0 { b.low.saturating_add(1) } else { 0 };
        let high = if b.high > 0 { b.high - 1 } else { 0 };
        let of_operand = if a.is_nonneg() && b.is_nonneg() { a.high } else { i128::MAX };
        Self::new(low, high.min(of_operand))
    }
}

/// The number of bits of an integer type.
fn width(scalar: Scalar) -> u32 {
    8 * scalar.size_bytes() as u32
}

/// The smallest number of the form 2^n - 1 that is not below a non-negative number.
fn bits_of(value: i128) -> i128 {
    if value <= 0 { 0 } else { i128::MAX >> (value.leading_zeros() - 1) }
}

/// The minimum and maximum shift amount; amounts are taken modulo the width.
fn shift(by: Interval, ty: Type) -> Option<(u32, u32)> {
    let bits = i128::from(width(ty.scalar()?));
    (by.low >= 0 && by.high < bits).then_some((by.low as u32, by.high as u32))
}

fn floor_div(a: i128, b: i128) -> Option<i128> {
    let quotient = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exact result of an operator in `int8`.
    fn exact(op: BinaryOp, a: i128, b: i128) -> Option<i128> {
        let wrap = |value: i128| i128::from(value as i8);
        Some(match op {
            BinaryOp::Add => wrap(a + b),
            BinaryOp::Sub => wrap(a - b),
            BinaryOp::Mul => wrap(a * b),
            BinaryOp::Min => a.min(b),
            BinaryOp::Max => a.max(b),
            BinaryOp::FloorDiv | BinaryOp::FloorMod if b == 0 => 0,
            BinaryOp::FloorDiv if (a, b) == (-128, -1) => 0,
            BinaryOp::FloorDiv => floor_div(a, b)?,
            BinaryOp::FloorMod => a - b * floor_div(a, b)?,
            BinaryOp::Shl => wrap(a << b.rem_euclid(8)),
            BinaryOp::Shr => a >> b.rem_euclid(8),
            BinaryOp::And => a & b,
            BinaryOp::Or => a | b,
            BinaryOp::Xor => a ^ b,
            BinaryOp::Pow => (0..u32::try_from(b).ok()?).try_fold(1_i128, |power, _| Some(wrap(power * a)))?,
            BinaryOp::AddExact
            | BinaryOp::SubExact
            | BinaryOp::MulExact
            | BinaryOp::DivNonneg
            | BinaryOp::ModNonneg
            | BinaryOp::Div => return None,
        })
    }

    #[test]
    fn every_result_is_in_the_interval() {
        let ty = Type::Scalar(Scalar::I8);
        let ends = [-128, -127, -65, -8, -3, -1, 0, 1, 2, 5, 7, 8, 63, 127];
        let ops = [
            BinaryOp::Add,
            BinaryOp::Sub,
            BinaryOp::Mul,
            BinaryOp::Min,
            BinaryOp::Max,
            BinaryOp::FloorDiv,
            BinaryOp::FloorMod,
            BinaryOp::Shl,
            BinaryOp::Shr,
            BinaryOp::And,
            BinaryOp::Or,
            BinaryOp::Xor,
            BinaryOp::Pow,
        ];
        let mut seen = 0;
        for (i, &a_low) in ends.iter().enumerate() {
            for &a_high in &ends[i..ends.len().min(i + 4)] {
                for (j, &b_low) in ends.iter().enumerate() {
                    for &b_high in &ends[j..ends.len().min(j + 4)] {
                        for op in ops {
                            let found =
                                Interval::binary(op, Interval::new(a_low, a_high), Interval::new(b_low, b_high), ty);
                            for a in [a_low, i128::midpoint(a_low, a_high), a_high] {
                                for b in [b_low, i128::midpoint(b_low, b_high), b_high, b_low.max(-1).min(b_high)] {
                                    let Some(value) = exact(op, a, b) else { continue };
                                    assert!(
                                        (found.low..=found.high).contains(&value),
                                        "{a} {op:?} {b} is {value}, not in {found:?} of [{a_low}, {a_high}] and [{b_low}, {b_high}]"
                                    );
                                    seen += 1;
                                }
                            }
                        }
                    }
                }
            }
        }
        assert!(seen > 50_000, "{seen}");
    }

    #[test]
    fn intervals_are_tight_where_nothing_wraps() {
        let of = Interval::new;
        let binary = |op, a, b| Interval::binary(op, a, b, Type::I64);
        assert_eq!(binary(BinaryOp::Add, of(0, 7), of(-1, 1)), of(-1, 8));
        assert_eq!(binary(BinaryOp::FloorMod, of(-9, 9), of(1, 4)), of(0, 3));
        assert_eq!(binary(BinaryOp::FloorMod, of(0, 2), of(1, 4)), of(0, 2));
        assert_eq!(binary(BinaryOp::FloorDiv, of(0, 100), of(4, 10)), of(0, 25));
        assert_eq!(binary(BinaryOp::Shr, of(0, 100), Interval::of(2)), of(0, 25));
        assert_eq!(binary(BinaryOp::And, of(-5, 100), Interval::of(31)), of(0, 31));
        assert_eq!(Interval::unary(UnaryOp::Abs, of(-5, 3), Type::I64), of(0, 5));
        assert_eq!(of(0, i128::from(i64::MAX)).plus(Interval::of(1)).wrapped(Type::I64), Interval::of_type(Type::I64));
    }
}
