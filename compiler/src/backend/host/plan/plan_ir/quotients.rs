//! The divisions by which rows are split.

use crate::ir::ExprId;

/// The divisions of a kernel's index, computed once for each part of a row.
#[derive(Clone, Debug)]
pub(crate) struct Quotients {
    /// The global index of the block's first thread.
    pub first: ExprId,
    /// The condition under which a launch runs the copy.
    pub is_worth: ExprId,
    /// In the order of their computation.
    pub divisions: Vec<Division>,
}

/// A division by a value that is uniform in the launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Division {
    /// The dividend.
    pub dividend: Dividend,
    /// The divisor, uniform in the launch.
    pub by: ExprId,
}

/// The dividend of a division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dividend {
    /// The thread's global index.
    Index,
    /// The remainder of an earlier division.
    Remainder(usize),
    /// The quotient of an earlier division: it is uniform in the part.
    Quotient(usize),
}

impl Division {
    /// The number of the register that holds the quotient of division `of`.
    pub(crate) const fn quotient(of: usize) -> usize {
        1 + 2 * of
    }

    /// The number of the register that holds the remainder of division `of` for the part's first thread.
    pub(crate) const fn remainder(of: usize) -> usize {
        2 + 2 * of
    }
}
