//! Arrays that a plan adds: context arrays and private copies.

use weft_artifact::Scalar;

use crate::ir::{Accumulation, Function, LocalArrayId, LocalId, SharedId};

/// Elements of a copy that are tested at once, as a vector, when the copy is combined with the array.
pub(crate) const COMBINED_ELEMENTS: u64 = 16;

/// An array and its private copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Privatized {
    /// The kernel's parameter.
    pub param: LocalId,
    /// Its element type.
    pub element: Scalar,
    /// The copy.
    pub array: SharedId,
    /// The copy's length, a multiple of [`COMBINED_ELEMENTS`].
    pub len: u64,
    /// The accumulation of the copy's elements.
    pub accumulation: Accumulation,
}

/// The locals and local arrays that are live across barriers.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveAcross {
    /// Locals; each has a context array with one element for each thread.
    pub locals: Vec<LocalId>,
    /// Local arrays; each thread has its own.
    pub arrays: Vec<LocalArrayId>,
}

/// The bytes of some thread-local arrays of one thread.
pub(crate) fn bytes_of(function: &Function, arrays: &[LocalArrayId]) -> u64 {
    let bytes = |array: &LocalArrayId| {
        let array = &function.local_arrays[*array];
        array.len.saturating_mul(array.elem.size_bytes())
    };
    arrays.iter().map(bytes).fold(0, u64::saturating_add)
}
