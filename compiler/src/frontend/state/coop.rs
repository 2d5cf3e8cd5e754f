//! The shared memory of the calls of `cuda.coop`.

use std::collections::BTreeMap;

use weft_artifact::Scalar;

use crate::{
    ir::{Arena, SharedArray, SharedId, SharedKind},
    source::Span,
};

/// A buffer in shared memory that all calls share.
#[derive(Clone, Copy, Debug)]
pub(in crate::frontend) enum Piece {
    Scratch,
    Cells,
    /// A value of each thread, on the CPU.
    Staged,
    /// The combined values before each thread's own, on the CPU.
    Prefixes,
    /// One part per thread, which its group of lanes accesses without a block barrier. Calls whose parts have equal
    /// sizes share one; others have disjoint ones, since a group may be ahead of the others.
    Warps,
}

/// The buffers that have been declared.
#[derive(Debug, Default)]
pub(in crate::frontend) struct CoopMemory {
    scratch: Option<SharedId>,
    cells: Option<SharedId>,
    staged: Option<SharedId>,
    prefixes: Option<SharedId>,
    /// The buffers of groups of lanes, by the sizes of the part and of an item in bytes.
    warps: BTreeMap<(u64, u64), SharedId>,
    /// The span of the last call.
    pub(in crate::frontend) call: Option<Span>,
}

impl CoopMemory {
    /// The array of a buffer, with at least `bytes` bytes; `size` is that of an item, and `here` the span of the use.
    pub(in crate::frontend) fn array(
        &mut self,
        shared: &mut Arena<SharedArray>,
        piece: Piece,
        (bytes, size): (u64, u64),
        here: Span,
    ) -> SharedId {
        let span = self.call.unwrap_or(here);
        let mut new = |name: &str, kind: SharedKind| {
            shared.push(SharedArray {
                name: name.to_owned(),
                kind,
                elem: Scalar::U8,
                len: 0,
                shape: Vec::new(),
                align: 16,
                span,
            })
        };
        let id = match piece {
            Piece::Scratch => *self.scratch.get_or_insert_with(|| new("coop", SharedKind::Coop)),
            Piece::Cells => *self.cells.get_or_insert_with(|| new("coop_cells", SharedKind::Coop)),
            Piece::Staged => *self.staged.get_or_insert_with(|| new("coop_staged", SharedKind::Staged)),
            Piece::Prefixes => *self.prefixes.get_or_insert_with(|| new("coop_prefixes", SharedKind::Staged)),
            Piece::Warps => *self.warps.entry((bytes, size)).or_insert_with(|| new("coop_warps", SharedKind::Coop)),
        };
        let array = &mut shared[id];
        if array.len < bytes {
            (array.len, array.span) = (bytes, span);
        }
        id
    }
}
