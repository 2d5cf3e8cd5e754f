//! A strip of threads, as the emitted code runs it: its rows, its lanes, and the arrays of its values.

use std::collections::HashMap;

use inkwell::values::{IntValue, PointerValue};

use crate::{
    backend::host::emit::{access_groups::Shape, guard_values::RangeValues},
    ir::{LocalArrayId, LocalId},
};

/// A strip: adjacent threads (lanes) of one row or of several rows.
#[derive(Clone, Debug)]
pub(crate) struct Strip<'ctx> {
    /// The rows of the strip.
    pub(crate) rows: Vec<StripRow<'ctx>>,
    /// `threadIdx.x` of the first lane in each row.
    pub(crate) from: IntValue<'ctx>,
    /// Number of lanes in a row.
    pub(crate) width: IntValue<'ctx>,
    /// Upper bound of the width.
    pub(crate) most: u32,
    /// The width is rounded up, so the last lanes may be absent. Absent lanes hold zeros, because tests over all lanes,
    /// such as *any lane active*, read them.
    pub(crate) padded: bool,
    /// How LLVM compiles the lane loop.
    pub(crate) shape: Shape,
    /// The current lane: the index of its row, and the lane's number in it.
    pub(crate) present: Option<(usize, IntValue<'ctx>)>,
    /// Ranges that each lane tests before it runs.
    pub(crate) asked: Vec<RangeValues<'ctx>>,
    /// Thread-local arrays of lanes, and the addresses of their first elements of the first lane.
    pub(crate) arrays: Vec<(LocalArrayId, PointerValue<'ctx>)>,
}

/// The lanes of a strip in one row.
#[derive(Clone, Debug)]
pub(crate) struct StripRow<'ctx> {
    pub(crate) row: Row<'ctx>,
    /// The arrays of locals that are live across nodes, with one element for each lane.
    pub(crate) places: Places<'ctx>,
}

/// `threadIdx.y` and `.z` of a row, and the linear index of its first thread.
pub(crate) type Row<'ctx> = ([IntValue<'ctx>; 2], IntValue<'ctx>);

pub(crate) type Places<'ctx> = HashMap<LocalId, PointerValue<'ctx>>;

/// A range of threads in a row; the end is excluded.
pub(crate) type Span<'ctx> = (IntValue<'ctx>, IntValue<'ctx>);

impl<'ctx> Strip<'ctx> {
    /// The strip of a warp that is a block: one row, which begins at thread 0 of the frame. Its arrays are on the
    /// stack.
    pub(crate) fn of_warp(zero: IntValue<'ctx>, lanes: IntValue<'ctx>, places: Places<'ctx>, shape: Shape) -> Self {
        let rows = vec![StripRow { row: ([zero, zero], zero), places }];
        let most = lanes.get_zero_extended_constant().unwrap_or_default() as u32;
        Self {
            rows,
            from: zero,
            width: lanes,
            most,
            padded: false,
            shape,
            present: None,
            asked: Vec::new(),
            arrays: Vec::new(),
        }
    }

    /// Whether LLVM compiles the lane loop to vectors.
    pub(crate) fn has_vectors(&self) -> bool {
        self.shape == Shape::Vectors
    }

    /// The array of a local that is live across nodes, and the index of the current lane in it.
    pub(crate) fn element(&self, local: LocalId) -> Option<(PointerValue<'ctx>, IntValue<'ctx>)> {
        let (row, lane) = self.present?;
        Some((*self.rows.get(row)?.places.get(&local)?, lane))
    }
}
