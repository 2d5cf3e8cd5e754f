//! Atomic steps that may be taken elsewhere first: what several of them make of a neutral value is one step.

use weft_artifact::Scalar;

use super::AtomicOp;

/// What steps whose order nobody sees make of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Accumulation {
    /// The sum, rounded after each addition; the others are of integers. Few steps change the largest float so far, and those who do not
    /// only read it.
    Sum,
    /// What is set in all.
    And,
    /// What is set in one.
    Or,
    /// What is set in an odd number of them.
    Xor,
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

impl Accumulation {
    /// What steps on elements accumulate, if they do. Elements are of four or eight bytes.
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

    /// The step that takes what was accumulated.
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

    /// The bits of the value that changes no element; of floats' sums it is the negative zero.
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
