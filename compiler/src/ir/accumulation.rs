//! Atomic operations that can be accumulated: several operations, applied to a neutral value, are equal to one
//! operation.

use weft_artifact::Scalar;

use super::AtomicOp;

/// How operations whose order is unobservable accumulate in an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Accumulation {
    /// The sum, rounded after each addition. The other accumulations are for integers: few operations change the
    /// maximum of floats, and the others only read it.
    Sum,
    /// Bits that are set in all values.
    And,
    /// Bits that are set in any value.
    Or,
    /// Bits that are set in an odd number of values.
    Xor,
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

impl Accumulation {
    /// The accumulation of an atomic operation on elements, if it has one. Elements have four or eight bytes.
    pub fn of(op: AtomicOp, element: Scalar) -> Option<Self> {
        let (is_int, is_float) = (element.is_int(), element.is_float());
        if !matches!(element.size_bytes(), 4 | 8) || !(is_int || is_float) {
            return None;
        }
        match op {
            AtomicOp::Add | AtomicOp::Sub => Some(Self::Sum),
            AtomicOp::And => is_int.then_some(Self::And),
            AtomicOp::Or => is_int.then_some(Self::Or),
            AtomicOp::Xor => is_int.then_some(Self::Xor),
            AtomicOp::Max | AtomicOp::NanMax => is_int.then_some(Self::Max),
            AtomicOp::Min | AtomicOp::NanMin => is_int.then_some(Self::Min),
            AtomicOp::Inc | AtomicOp::Dec | AtomicOp::Exchange | AtomicOp::Cas => None,
        }
    }

    /// The atomic operation that combines an accumulated value with an element.
    pub const fn step(self) -> AtomicOp {
        match self {
            Self::Sum => AtomicOp::Add,
            Self::And => AtomicOp::And,
            Self::Or => AtomicOp::Or,
            Self::Xor => AtomicOp::Xor,
            Self::Max => AtomicOp::Max,
            Self::Min => AtomicOp::Min,
        }
    }

    /// The bits of the neutral value, which changes no element; for sums of floats it is the negative zero.
    pub fn neutral(self, element: Scalar) -> u64 {
        let sign = element.sign_bit();
        let all = sign | (sign - 1);
        match (self, element.is_float(), element.is_signed_int()) {
            (Self::Sum, true, _) => sign,
            (Self::Sum, false, _) | (Self::Or | Self::Xor, _, _) | (Self::Max, _, false) => 0,
            (Self::And, _, _) | (Self::Min, _, false) => all,
            (Self::Max, _, true) => sign,
            (Self::Min, _, true) => sign - 1,
        }
    }
}
