//! What is known about the size of an integer, and how operators carry it on.
//!
//! A [`Fact`] is an upper bound in bits where one is certain, or the weaker claim that only an overflow of 63 bits could
//! have made the value negative. Such a value is out of every array, whether or not Python's wrap-around is applied to
//! it, so the weak claim is enough to drop a wrap. It is not enough for anything that brings a value back into range
//! (division, modulo, shifts, masks, narrowing): there an overflowed value is a legitimate one, as in a hash.

use weft_artifact::Scalar;

use crate::ir::{BinaryOp, SpecialRegister, Type};

/// What is known about an integer; ordered from the strongest claim to none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fact {
    /// `0 <= value < 2^bits`.
    Bits(u32),
    /// Negative only if 64-bit signed arithmetic overflowed.
    Hopeful,
    /// Anything.
    Unknown,
}

impl Fact {
    /// The strongest claim about a type's values that holds for all of them.
    pub(super) fn of_type(ty: Type) -> Self {
        match ty {
            Type::Scalar(Scalar::Bool) => Self::Bits(1),
            Type::Scalar(scalar) if scalar.is_unsigned_int() => Self::Bits(width(scalar)),
            _ => Self::Unknown,
        }
    }

    /// The strongest claim that holds for all non-negative values of a type.
    pub(super) fn nonneg_of_type(ty: Type) -> Self {
        match ty {
            Type::Scalar(scalar) if scalar.is_signed_int() => Self::Bits(width(scalar) - 1),
            _ => Self::of_type(ty),
        }
    }

    pub(super) fn of_constant(value: i128) -> Self {
        if value < 0 { Self::Unknown } else { Self::Bits(128 - value.leading_zeros()) }
    }

    pub(super) fn of_register(register: SpecialRegister) -> Self {
        // PTX ISA section 10 and the table of limits: 1024 threads a block, 2^31 - 1 blocks in x, 65535 in y and z.
        Self::Bits(match register {
            SpecialRegister::ThreadIdx(_) => 10,
            SpecialRegister::BlockDim(_) => 11,
            SpecialRegister::BlockIdx(0) | SpecialRegister::GridDim(0) => 31,
            SpecialRegister::BlockIdx(_) | SpecialRegister::GridDim(_) => 16,
            SpecialRegister::LaneId => 5,
            SpecialRegister::WarpSize => 6,
            SpecialRegister::DynamicSharedBytes => 31,
        })
    }

    /// Certainly not negative as a signed value of `ty`.
    pub(super) fn is_certain(self, ty: Type) -> bool {
        match (self, ty) {
            (Self::Bits(bits), Type::Scalar(scalar)) if scalar.is_signed_int() => bits < width(scalar),
            (Self::Bits(_), Type::Scalar(scalar)) => scalar.is_unsigned_int(),
            _ => false,
        }
    }

    /// An index that needs no wrap-around.
    pub(super) fn is_hopeful(self) -> bool {
        self != Self::Unknown
    }

    fn bits(self) -> Option<u32> {
        match self {
            Self::Bits(bits) => Some(bits),
            Self::Hopeful | Self::Unknown => None,
        }
    }

    /// The claim that holds for a value that is one of two.
    pub(super) fn join(self, other: Self) -> Self {
        self.max(other)
    }

    /// A result of arithmetic in `ty` whose exact value has at most so many bits, or is not negative at all.
    fn arithmetic(exact: Self, ty: Type) -> Self {
        let Some(scalar) = ty.scalar() else { return Self::Unknown };
        match exact {
            Self::Bits(bits) if scalar.is_unsigned_int() => Self::Bits(bits.min(width(scalar))),
            Self::Hopeful | Self::Unknown if scalar.is_unsigned_int() => Self::Bits(width(scalar)),
            Self::Bits(bits) if bits < width(scalar) => exact,
            // Narrow types overflow in real programs, and a negative number is then a good index.
            Self::Bits(_) | Self::Hopeful if scalar == Scalar::I64 => Self::Hopeful,
            _ => Self::Unknown,
        }
    }

    /// The weakest bound of the type, for one that grows without end; what grows beyond it is a weaker claim.
    pub(super) fn without_bound(self, ty: Type) -> Self {
        match self {
            Self::Bits(bits) => Self::Bits(bits).max(Self::nonneg_of_type(ty)),
            Self::Hopeful | Self::Unknown => self,
        }
    }

    /// The absolute value; it wraps at the minimum, which as an index is out of every array.
    pub(super) fn abs(self, ty: Type) -> Self {
        if self.is_certain(ty) { self } else { Self::arithmetic(Self::Hopeful, ty) }
    }

    /// The operand converted from one type to another.
    pub(super) fn convert(self, from: Type, to: Type) -> Self {
        let (Some(from), Some(target)) = (from.scalar(), to.scalar()) else { return Self::Unknown };
        if !target.is_int() {
            return Self::of_type(to);
        }
        match self {
            Self::Bits(bits) if from.is_int() || from == Scalar::Bool => {
                let room = if target.is_signed_int() { width(target) - 1 } else { width(target) };
                if bits <= room { self } else { Self::of_type(to) }
            }
            _ => Self::of_type(to),
        }
    }

    /// `a op b` in `ty`; `amount` is the right operand if it is a constant.
    pub(super) fn binary(op: BinaryOp, a: Self, b: Self, amount: Option<u32>, ty: Type) -> Self {
        let both = a.bits().zip(b.bits());
        let hopeful = if a.is_hopeful() && b.is_hopeful() { Self::Hopeful } else { Self::Unknown };
        // Shift amounts are taken modulo the width.
        let shift = ty.scalar().and_then(|scalar| amount.map(|amount| amount % width(scalar)));
        let at_most = |bits: Option<u32>| bits.map_or(Self::of_type(ty), Self::Bits);
        match op {
            BinaryOp::Add => Self::arithmetic(both.map_or(hopeful, |(a, b)| sum(a, b)), ty),
            BinaryOp::Mul => Self::arithmetic(both.map_or(hopeful, |(a, b)| product(a, b)), ty),
            BinaryOp::Pow => match (a.bits(), amount) {
                (Some(bits), Some(power)) => Self::arithmetic(Self::Bits(bits.saturating_mul(power).max(1)), ty),
                _ => Self::arithmetic(hopeful, ty),
            },
            BinaryOp::Shl => match (a.bits(), shift) {
                (Some(bits), Some(amount)) => Self::arithmetic(Self::Bits(bits.saturating_add(amount)), ty),
                _ => Self::arithmetic(hopeful, ty),
            },
            // `x // 0` is 0.
            BinaryOp::FloorDiv => at_most(both.map(|(a, _)| a)),
            BinaryOp::DivNonneg => a.bits().map_or(Self::nonneg_of_type(ty), Self::Bits),
            // The result has the sign of the divisor; `x % 0` is 0.
            BinaryOp::FloorMod => at_most(b.bits().map(|bits| a.bits().map_or(bits, |a| a.min(bits)))),
            BinaryOp::ModNonneg => match (a.bits(), b.bits()) {
                (None, None) => Self::nonneg_of_type(ty),
                (a, b) => Self::Bits(a.unwrap_or(u32::MAX).min(b.unwrap_or(u32::MAX))),
            },
            BinaryOp::Shr => at_most(a.bits().map(|bits| bits.saturating_sub(shift.unwrap_or(0)))),
            BinaryOp::And => match (a.bits(), b.bits()) {
                (None, None) => Self::of_type(ty),
                (a, b) => Self::Bits(a.unwrap_or(u32::MAX).min(b.unwrap_or(u32::MAX))),
            },
            BinaryOp::Or | BinaryOp::Xor => at_most(both.map(|(a, b)| a.max(b))),
            BinaryOp::Min => both.map_or_else(|| hopeful.min(Self::of_type(ty)), |(a, b)| Self::Bits(a.min(b))),
            BinaryOp::Max => match (a, b) {
                (Self::Bits(a), Self::Bits(b)) => Self::Bits(a.max(b)),
                (Self::Bits(_), _) | (_, Self::Bits(_)) => Self::nonneg_of_type(ty),
                (Self::Hopeful, _) | (_, Self::Hopeful) => Self::Hopeful,
                (Self::Unknown, Self::Unknown) => Self::Unknown,
            },
            BinaryOp::Sub | BinaryOp::Div => Self::of_type(ty),
        }
    }
}

/// Bits of an integer type.
fn width(scalar: Scalar) -> u32 {
    8 * scalar.size_bytes() as u32
}

fn sum(a: u32, b: u32) -> Fact {
    // Zero bits is the number 0, which adds nothing.
    Fact::Bits(if a == 0 || b == 0 { a.max(b) } else { a.max(b) + 1 })
}

fn product(a: u32, b: u32) -> Fact {
    Fact::Bits(if a == 0 || b == 0 { 0 } else { a + b })
}
