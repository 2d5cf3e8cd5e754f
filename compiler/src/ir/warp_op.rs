//! Operations of the lanes of a warp.

use super::{Elements, OpRow, Operand, SyncScope, Type, op::ORDERS};

/// The lane whose value a shuffle returns. If that lane is outside the thread's segment of the warp, the thread's own
/// value is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shuffle {
    /// That of a number in the part.
    Index,
    /// The lane at a distance below.
    Up,
    /// The lane at a distance above.
    Down,
    /// That whose number has the same bits but for these.
    Xor,
}

/// The result of a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vote {
    /// All are true; a `Bool`.
    All,
    /// One is true; a `Bool`.
    Any,
    /// All are the same; a `Bool`.
    Uniform,
    /// Which are true: an `I32` with a bit a lane.
    Ballot,
}

/// How the values of a warp are taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the operator of its name")]
pub enum WarpReduction {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
}

/// The row of operations that synchronize a warp. CUDA orders memory only at a warp's barriers, but kernels rely on
/// more.
pub(super) const OF_WARP: OpRow = OpRow { together: SyncScope::Warp, ..ORDERS };

impl Shuffle {
    /// The properties of the operation.
    pub(super) const fn row(self) -> OpRow {
        OpRow {
            name: match self {
                Shuffle::Index => "shuffle.index",
                Shuffle::Up => "shuffle.up",
                Shuffle::Down => "shuffle.down",
                Shuffle::Xor => "shuffle.xor",
            },
            operands: &[Operand::Is(Type::I32), Operand::Element, Operand::Is(Type::I32), Operand::Is(Type::I32)],
            results: &[Operand::Element],
            elements: Elements::Any,
            ptx: match self {
                Shuffle::Index => &["shfl.sync.idx"],
                Shuffle::Up => &["shfl.sync.up"],
                Shuffle::Down => &["shfl.sync.down"],
                Shuffle::Xor => &["shfl.sync.bfly"],
            },
            ..OF_WARP
        }
    }
}

impl Vote {
    /// The properties of the operation.
    pub(super) const fn row(self) -> OpRow {
        OpRow {
            name: match self {
                Vote::All => "vote.all",
                Vote::Any => "vote.any",
                Vote::Uniform => "vote.uniform",
                Vote::Ballot => "vote.ballot",
            },
            operands: &[Operand::Is(Type::I32), Operand::Is(Type::BOOL)],
            results: match self {
                Vote::All | Vote::Any | Vote::Uniform => &[Operand::Is(Type::BOOL)],
                Vote::Ballot => &[Operand::Is(Type::I32)],
            },
            ptx: match self {
                Vote::All => &["vote.sync.all"],
                Vote::Any => &["vote.sync.any"],
                Vote::Uniform => &["vote.sync.uni"],
                Vote::Ballot => &["vote.sync.ballot"],
            },
            ..OF_WARP
        }
    }
}

impl WarpReduction {
    /// The properties of the operation.
    pub(super) const fn row(self) -> OpRow {
        OpRow {
            name: match self {
                WarpReduction::Add => "warp_reduce.add",
                WarpReduction::Min => "warp_reduce.min",
                WarpReduction::Max => "warp_reduce.max",
                WarpReduction::And => "warp_reduce.and",
                WarpReduction::Or => "warp_reduce.or",
                WarpReduction::Xor => "warp_reduce.xor",
            },
            operands: &[Operand::Is(Type::I32), Operand::Element],
            results: &[Operand::Element],
            elements: Elements::Ints,
            ptx: &["redux.sync", "shfl.sync.idx"],
            ..OF_WARP
        }
    }
}
