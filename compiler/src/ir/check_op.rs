//! Operations that report events to the sanitizer.

use weft_artifact::SiteKind;

use super::{OpRow, Operand, Shuffle, Type, op::ORDERS};

/// Events for the sanitizer other than accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Check {
    /// An index of an axis is out of bounds; takes the index and the extent.
    Bounds(u8),
    /// The thread comes to a barrier of this kind, which is next; takes the mask of its lanes.
    Meets(SiteKind),
    /// The thread comes to an operation of its warp, which is next. Takes the mask, and of a shuffle (else 0) by how much, and
    /// the width.
    Lanes(SiteKind, Option<Shuffle>),
    /// The kernel's thread returns.
    Returns,
    /// The thread calls a function, which is next.
    Enters,
    /// It has come back from it.
    Leaves,
    /// Returns the number of the unwritten value that the previous statement has read, or 0.
    Unwritten,
    /// A value with such a number is used.
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
