//! Operations that report events to the sanitizer.

use weft_artifact::SiteKind;

use super::{OpRow, Operand, Shuffle, Type, op::ORDERS};

/// Events for the sanitizer other than accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Check {
    /// An index of this axis is out of bounds; takes the index and the extent.
    Bounds(u8),
    /// The thread reaches a barrier of this kind, which is the next statement; takes the mask of its lanes.
    Meets(SiteKind),
    /// The thread reaches a warp operation, which is the next statement. Takes the mask, and for a shuffle the distance
    /// and the width (else zeros).
    Lanes(SiteKind, Option<Shuffle>),
    /// The kernel's thread returns.
    Returns,
    /// The thread calls a function in the next statement.
    Enters,
    /// The thread has returned from the called function.
    Leaves,
    /// Returns the number of the unwritten value that the previous statement has read, or 0.
    Unwritten,
    /// The thread uses the value with such a number.
    Used,
}

impl Check {
    /// The properties of the operation.
    pub(super) const fn row(self) -> OpRow {
        OpRow {
            name: match self {
                Self::Bounds(_) => "check.bounds",
                Self::Meets(_) => "check.meets",
                Self::Lanes(..) => "check.lanes",
                Self::Returns => "check.returns",
                Self::Enters => "check.enters",
                Self::Leaves => "check.leaves",
                Self::Unwritten => "check.unwritten",
                Self::Used => "check.used",
            },
            operands: match self {
                Self::Bounds(_) => &[Operand::Is(Type::I64), Operand::Is(Type::I64)],
                Self::Meets(_) | Self::Used => &[Operand::Is(Type::I32)],
                Self::Lanes(..) => &[Operand::Is(Type::I32), Operand::Is(Type::I32), Operand::Is(Type::I32)],
                Self::Returns | Self::Enters | Self::Leaves | Self::Unwritten => &[],
            },
            results: match self {
                Self::Unwritten => &[Operand::Is(Type::I32)],
                Self::Bounds(_)
                | Self::Meets(_)
                | Self::Lanes(..)
                | Self::Returns
                | Self::Enters
                | Self::Leaves
                | Self::Used => &[],
            },
            outside: true,
            ..ORDERS
        }
    }
}
