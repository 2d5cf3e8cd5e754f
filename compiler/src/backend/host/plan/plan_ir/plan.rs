//! The plan of a kernel.

use crate::{
    analysis::Rematerializable,
    backend::host::plan::{
        analysis::yield_points::Polling,
        plan_ir::{Cut, LiveAcross, MaskedLoop, Privatized, Quotients, Record, Rewrites},
    },
    ir::{Effects, FuncId, LocalArrayId, Module},
};

/// Plans with more segments than this have one function for each segment.
pub(crate) const MAX_SEGMENTS: u64 = 24;

/// The same for plans in which each warp is a block: a segment is a few vector operations then.
const MAX_WARP_SEGMENTS: u64 = 64;

/// The vector properties of the planned CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vectors {
    /// It has two units for vector multiplication.
    pub pairs: bool,
    /// It has masked loads and stores for all element types.
    pub masks: bool,
    /// It has masked loads and stores for elements of four and eight bytes.
    pub word_masks: bool,
}

impl Vectors {
    /// No property: valid for every CPU.
    pub(crate) const PLAIN: Self = Self { pairs: false, masks: false, word_masks: false };
}

/// The most threads of a merged block without context arrays and masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MergedSize {
    /// A few times as many as the largest block: a row accesses lines of memory that the next rows access again, which are
    /// to be in a core's cache.
    Tile,
    /// A row has as many as the largest block: indices may wrap in a longer one.
    BlockRow,
    /// A row may be longer than a block.
    LongRow,
}

/// The plan of a kernel.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(crate) struct Plan {
    /// The module. Every function that reaches a barrier is inlined.
    pub module: Module,
    /// The effects of each function.
    pub effects: Vec<Effects>,
    /// The kernel.
    pub kernel: FuncId,
    /// The body, cut at the barriers.
    pub cut: Cut,
    /// The number of segments.
    pub segments: u64,
    /// The context arrays: values that are live across barriers.
    pub live_across: LiveAcross,
    /// By the local's index: the local is varying, so each thread has its own value.
    pub varying: Vec<bool>,
    /// The rematerializable locals.
    pub fixed: Rematerializable,
    /// The yield points.
    pub polling: Polling,
    /// Neighboring blocks along `x` may be merged if `blockDim.x` equals each of these numbers. `None` if they never
    /// may.
    pub merge_extents: Option<Vec<i64>>,
    /// A block may run as several with a shorter `blockDim.x`.
    pub may_split_blocks: bool,
    /// The most threads of a merged block.
    pub merged_size: MergedSize,
    /// The loops with divergent exits.
    pub masked_loops: Vec<MaskedLoop>,
    /// The divisions by which rows are split.
    pub quotients: Option<Quotients>,
    /// The axis of the launch that is exchanged with `x`.
    pub x_axis: u8,
    /// The program has barriers, and its code is optimized.
    pub has_barriers: bool,
    /// The expected row length of a block with barriers.
    pub row_width: Option<u64>,
    /// Each warp is a block: the plan is for launches whose `blockDim.x` is a multiple of 32.
    pub warp_blocks: bool,
    /// Each row is a block.
    pub row_blocks: bool,
    /// Rows are expected to be one warp each. Only with `warp_blocks`.
    pub warp_rows: bool,
    /// Arrays that each worker accumulates into a private copy.
    pub privatized: Vec<Privatized>,
    /// The plans of the warp regions. Each warp is a block in them.
    pub warp_regions: Vec<Self>,
    /// Thread-local arrays became locals.
    pub replaces_arrays: bool,
    /// Thread-local arrays of which a strip stores the same element of all lanes side by side.
    pub lane_arrays: Vec<LocalArrayId>,
    /// The names of the rewrites that changed the kernel, if they are recorded.
    pub rewrites: Rewrites,
    /// What passes report about loops that the plan does not show.
    pub record: Record,
}

impl Plan {
    /// A plan before the first pass.
    pub(crate) fn empty(module: Module, effects: Vec<Effects>, kernel: FuncId, record_rewrites: bool) -> Self {
        Self {
            module,
            effects,
            kernel,
            cut: Cut::default(),
            segments: 0,
            live_across: LiveAcross::default(),
            varying: Vec::new(),
            fixed: Rematerializable::default(),
            polling: Polling::default(),
            merge_extents: None,
            may_split_blocks: false,
            merged_size: MergedSize::LongRow,
            masked_loops: Vec::new(),
            quotients: None,
            x_axis: 0,
            has_barriers: false,
            row_width: None,
            warp_blocks: false,
            row_blocks: false,
            warp_rows: false,
            privatized: Vec::new(),
            warp_regions: Vec::new(),
            replaces_arrays: false,
            lane_arrays: Vec::new(),
            rewrites: Rewrites::new(record_rewrites),
            record: Record::default(),
        }
    }

    /// Whether each segment is a function of its own, because there are many.
    pub(crate) fn outlines(&self) -> bool {
        self.segments > max_segments(self.warp_blocks)
    }
}

/// The maximum number of segments in one function.
pub(crate) fn max_segments(warp_blocks: bool) -> u64 {
    if warp_blocks { MAX_WARP_SEGMENTS } else { MAX_SEGMENTS }
}
