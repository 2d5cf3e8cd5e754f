//! The split of a thread loop's index set: copies of a segment's body for parts of a row.

use crate::{backend::host::plan::plan_ir::Guard, ir::Block};

/// How a segment splits the threads of a row that pass its guard. The passes of `domain/` create it; a segment has at
/// most one.
///
/// Legal because threads have no order within a segment. The emitted code tests for each row what a part of the split
/// needs; if a row does not meet it, the row runs the segment's own body.
#[derive(Clone, Debug)]
pub(crate) struct Split {
    /// How the threads are divided among the pieces.
    pub by: SplitBy,
    /// The values that divide them, computed for each row.
    pub of: Guard,
    /// The pieces. [`SplitBy`] says how many there are, and what the threads do that are in no piece.
    pub pieces: Vec<Piece>,
}

/// How the threads of a row are divided among the pieces of a [`Split`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SplitBy {
    /// One piece without statements: its threads do nothing. The other threads run the segment's body, which is invalid
    /// for those of the piece.
    ExcludedRange,
    /// One piece, which omits the tests that its guard implies. The other threads run the segment's body.
    SteadyState,
    /// Two pieces, for the threads in whose index a bit is clear, and for those in whose index it is set. The only range
    /// of [`Split::of`] has the index as its value and the bit as its bound.
    Bit,
    /// One piece, for the threads of one residue class. The others do nothing. The first range of [`Split::of`] has the
    /// dividend as its value and the residue as its bound; a second one has the modulus as its bound, if that is not a
    /// constant.
    ResidueClass {
        /// The modulus, if it is a constant.
        modulus: Option<i64>,
        /// The modulus is 2, and the class is that of the other residue.
        other: bool,
    },
    /// One piece, whose indices grow by more than one from thread to thread, without tests for negative indices.
    /// [`Split::of`] has two ranges for each index. The first has the value for the row's first thread and the value it
    /// is compared with; the bound of the second is the growth per thread.
    Scaled {
        /// The first indices limit the threads, if their growth is positive: each of their conditions holds for the
        /// threads up to a position, or from it on. The other indices are nonnegative for these threads.
        bounds: usize,
    },
}

/// A copy of a segment's body, specialized for a part of its threads.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// The guard that selects these threads, among those of the part.
    pub guard: Guard,
    /// The segment's body without the code that has no effect for them.
    pub body: Block,
}

impl Split {
    /// A split with one piece, which its guard alone selects.
    pub(crate) fn by_range(by: SplitBy, piece: Piece) -> Self {
        Self { by, of: Guard::default(), pieces: vec![piece] }
    }

    /// Every guard of the split.
    pub(crate) fn guards(&self) -> impl Iterator<Item = &Guard> {
        std::iter::once(&self.of).chain(self.pieces.iter().map(|piece| &piece.guard))
    }
}
