//! What is known about the size of an integer, and how operators carry it on.
//!
//! A [`Bound`] is an upper bound in bits of a value that is not negative. Where arithmetic may pass the bits of its type,
//! nothing is known any more: it wraps, and a negative number is then as good an index as any.

use weft_artifact::{EXTENT_BITS, Scalar};

use crate::ir::{BinaryOp, SpecialRegister, Type};

/// What is known about an integer; ordered from the strongest claim to none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Bound {
    /// `0 <= value < 2^bits`.
    Bits(u32),
    /// Anything.
    Unknown,
}

impl Bound {
    /// The strongest claim about a type's values that holds for all of them.
    pub(super) fn of_type(ty: Type) -> Self {
        match ty {
            Type::Scalar(Scalar::Bool) => Self::Bits(1),
            Type::Scalar(scalar) if scalar.is_unsigned_int() => Self::Bits(width(scalar)),
            Type::Scalar(_) | Type::Ptr(..) => Self::Unknown,
        }
    }

    /// The strongest claim that holds for all non-negative values of a type.
    pub(super) fn nonneg_of_type(ty: Type) -> Self {
        match ty {
            Type::Scalar(scalar) if scalar.is_signed_int() => Self::Bits(width(scalar) - 1),
            Type::Scalar(_) | Type::Ptr(..) => Self::of_type(ty),
        }
    }

    /// An array's extent, which whoever launches looks at.
    pub(super) const EXTENT: Self = Self::Bits(EXTENT_BITS);

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
            (Self::Bits(_), Type::Ptr(..)) | (Self::Unknown, _) => false,
        }
    }

    /// The bound, if there is one.
    pub(super) fn bits(self) -> Option<u32> {
        match self {
            Self::Bits(bits) => Some(bits),
            Self::Unknown => None,
        }
    }

    /// The claim that holds for a value that is one of two.
    pub(super) fn join(self, other: Self) -> Self {
        self.max(other)
    }

    /// A result of arithmetic in `ty` whose exact value has at most so many bits.
    fn arithmetic(exact: Option<u32>, ty: Type) -> Self {
        let room = Self::nonneg_of_type(ty).bits();
        match (exact, room) {
            (Some(bits), Some(room)) if bits <= room => Self::Bits(bits),
            (Some(_) | None, _) => Self::of_type(ty),
        }
    }

    /// `local + by` where `local` is below a bound of so many bits.
    pub(super) fn stepped(below: u32, by: Self, ty: Type) -> Self {
        Self::arithmetic(by.bits().map(|by| sum(below, by)), ty)
    }

    /// The weakest bound of the type, for one that grows without end; what grows beyond it is a weaker claim.
    pub(super) fn without_bound(self, ty: Type) -> Self {
        match self {
            Self::Bits(bits) => Self::Bits(bits).max(Self::nonneg_of_type(ty)),
            Self::Unknown => self,
        }
    }

    /// The absolute value; it wraps at the minimum.
    pub(super) fn abs(self, ty: Type) -> Self {
        if self.is_certain(ty) { self } else { Self::of_type(ty) }
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
            Self::Bits(_) | Self::Unknown => Self::of_type(to),
        }
    }

    /// `a op b` in `ty`; `amount` is the right operand if it is a constant.
    pub(super) fn binary(op: BinaryOp, a: Self, b: Self, amount: Option<u32>, ty: Type) -> Self {
        let both = a.bits().zip(b.bits());
        // Shift amounts are taken modulo the width.
        let shift = ty.scalar().and_then(|scalar| amount.map(|amount| amount % width(scalar)));
        let at_most = |bits: Option<u32>| bits.map_or(Self::of_type(ty), Self::Bits);
        match op {
            BinaryOp::Add => Self::arithmetic(both.map(|(a, b)| sum(a, b)), ty),
            BinaryOp::Mul => Self::arithmetic(both.map(|(a, b)| product(a, b)), ty),
            BinaryOp::Pow => {
                let exact = a.bits().zip(amount).map(|(bits, power)| bits.saturating_mul(power).max(1));
                Self::arithmetic(exact, ty)
            }
            BinaryOp::Shl => {
                Self::arithmetic(a.bits().zip(shift).map(|(bits, amount)| bits.saturating_add(amount)), ty)
            }
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
            BinaryOp::Min => at_most(both.map(|(a, b)| a.min(b))),
            BinaryOp::Max => match (a, b) {
                (Self::Bits(a), Self::Bits(b)) => Self::Bits(a.max(b)),
                (Self::Bits(_), _) | (_, Self::Bits(_)) => Self::nonneg_of_type(ty),
                (Self::Unknown, Self::Unknown) => Self::of_type(ty),
            },
            BinaryOp::Sub | BinaryOp::Div => Self::of_type(ty),
        }
    }
}

/// Bits of an integer type.
fn width(scalar: Scalar) -> u32 {
    8 * scalar.size_bytes() as u32
}

fn sum(a: u32, b: u32) -> u32 {
    // Zero bits is the number 0, which adds nothing.
    if a == 0 || b == 0 { a.max(b) } else { a.max(b) + 1 }
}

fn product(a: u32, b: u32) -> u32 {
    if a == 0 || b == 0 { 0 } else { a + b }
}
