//! Warp operations.

use weft_artifact::{MatrixPart, MatrixProduct, MatrixTile, Scalar};

use super::{Elements, Memory, OpRow, Operand, SyncScope, Type, op::ORDERS};

/// The lane whose value a shuffle returns. If that lane is outside the thread's segment of the warp, the thread's own
/// value is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shuffle {
    /// The lane with this number in the segment.
    Index,
    /// The lane whose number is lower by the distance.
    Up,
    /// The lane whose number is higher by the distance.
    Down,
    /// The lane whose number is the thread's own XOR the operand.
    Xor,
}

/// The result of a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vote {
    /// Whether all predicates are true; a `Bool`.
    All,
    /// Whether any predicate is true; a `Bool`.
    Any,
    /// Whether all predicates are equal; a `Bool`.
    Uniform,
    /// The lanes whose predicates are true: an `I32` with one bit per lane.
    Ballot,
}

/// The reduction over the values of a warp.
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

/// `ldmatrix`: how many matrices, and whether they are transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatrixLoad {
    /// Two matrices. Lanes 0 to 15 have the addresses of their rows.
    Two {
        /// Whether they are transposed.
        transposed: bool,
    },
    /// Four matrices.
    Four {
        /// Whether they are transposed.
        transposed: bool,
    },
}

/// A wait for products of a warpgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProductWait {
    /// The tile of the product whose accumulators become numbers; `None` if the wait returns nothing.
    pub tile: Option<MatrixTile>,
    /// The left matrix is in registers, which are operands.
    pub left_in_registers: bool,
    /// The number of latest products for which it does not wait.
    pub pending: u8,
}

impl ProductWait {
    /// The number of operands with the left matrix.
    pub const fn n_left(self) -> usize {
        match self.tile {
            Some(tile) if self.left_in_registers => tile.registers(MatrixPart::A),
            Some(_) | None => 0,
        }
    }

    /// The number of accumulators.
    pub const fn n_values(self) -> usize {
        match self.tile {
            Some(tile) => tile.values(),
            None => 0,
        }
    }
}

/// The row of a wait for products of a warpgroup.
pub(super) const PRODUCT_WAIT: OpRow = OpRow {
    name: "product_wait",
    operands: &[Operand::Rest],
    results: &[Operand::Rest],
    ptx: &["wgmma.wait_group"],
    ..OF_WARP
};

/// The row of a product of matrices. The tile gives the numbers and types of operands and results.
pub(super) const fn multiply(product: MatrixProduct) -> OpRow {
    OpRow {
        name: "multiply",
        operands: &[Operand::Rest],
        results: &[Operand::Rest],
        memory: if product.reads_memory() { Memory::Reads } else { Memory::None },
        ptx: if product.tile.is_of_warpgroup() { &["wgmma.mma_async"] } else { &["mma.sync"] },
        ..OF_WARP
    }
}

/// The row of operations that synchronize a warp. In CUDA, only a warp's barriers order memory accesses, but kernels
/// rely on more.
pub(super) const OF_WARP: OpRow = OpRow { together: SyncScope::Warp, ..ORDERS };

impl WarpReduction {
    /// The name of the operator.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Min => "min",
            Self::Max => "max",
            Self::And => "and",
            Self::Or => "or",
            Self::Xor => "xor",
        }
    }
}

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

impl MatrixLoad {
    /// The properties of the operation.
    pub(super) const fn row(self) -> OpRow {
        const WORD: Operand = Operand::Is(Type::Scalar(Scalar::U32));
        OpRow {
            name: match self {
                MatrixLoad::Two { transposed: false } => "matrix_load.two",
                MatrixLoad::Two { transposed: true } => "matrix_load.two.transposed",
                MatrixLoad::Four { transposed: false } => "matrix_load.four",
                MatrixLoad::Four { transposed: true } => "matrix_load.four.transposed",
            },
            operands: &[Operand::Pointer],
            results: match self {
                MatrixLoad::Two { .. } => &[WORD, WORD],
                MatrixLoad::Four { .. } => &[WORD, WORD, WORD, WORD],
            },
            elements: Elements::Any,
            memory: Memory::Reads,
            ptx: &["ldmatrix"],
            ..OF_WARP
        }
    }
}
