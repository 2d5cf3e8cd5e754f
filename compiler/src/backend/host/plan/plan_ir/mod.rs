//! The IR of the planner: nodes, segments (parallel regions) and guards, with traversals over them.
//!
//! A plan is a tree of [`Node`]s. Control flow that contains a barrier, or that is interchanged with the thread loop,
//! is a node at the level of the block. A [`Segment`] is code without a barrier, which becomes a thread loop.
//!
//! Passes know each other only through these types. `plan` is the plan of a kernel. `arrays`, `loops`, `quotients` and
//! `rewrites` are what passes record for later passes and for the emitter. `guards` moves the guards of a segment's body
//! into its bounds, `split` describes the parts of a row, and `cells` builds accesses of shared memory with one element for each thread. `refusals` are the reasons
//! why passes leave loops as they are, and `record` keeps them for remarks.

mod arrays;
pub(crate) mod cells;
pub(crate) mod guards;
mod loops;
mod plan;
mod quotients;
mod record;
mod refusals;
mod rewrites;
mod split;

pub(crate) use arrays::{COMBINED_ELEMENTS, LiveAcross, Privatized, bytes_of};
pub(crate) use loops::{Coalesced, ExitAssignments, InterchangedLoops, LaneTripCounts, MaskedLoop, Stride};
pub(crate) use plan::{MAX_SEGMENTS, MergedSize, Plan, Vectors, max_segments};
pub(crate) use quotients::{Dividend, Division, Quotients};
pub(crate) use record::Record;
pub(crate) use refusals::{Divergence, Masks, Ordered, Refusal, Refused, Transformation};
pub(crate) use rewrites::{ALL, Rewrites};
pub(crate) use split::{Piece, Split, SplitBy};

use crate::{
    ir::{Block, CompareOp, ExprId, Function, LocalArrayId, LocalId, SharedId, Stmt},
    source::Span,
};

/// The maximum number of threads of a block.
pub(crate) const MAX_THREADS: u64 = 1024;

/// Threads of a warp.
pub(crate) const LANES: u64 = 32;

/// The maximum number of threads of a row of merged blocks without context arrays.
pub(crate) const MAX_ROW: u64 = 16 * MAX_THREADS;

/// The number of a mask: an array with one byte for each thread, nonzero if the thread is active.
pub(crate) type MaskId = u32;

/// Counts the masks that the nodes of a body need. `regions/form` makes the nodes; passes over statements use the count
/// to reject a rewrite that needs more masks than the body before it.
pub(crate) type CountMasks = fn(&Function, &[Stmt]) -> Masks;

/// One step of a block's code. A list of nodes runs in order.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// Statements on uniform values, executed once for the block.
    Once {
        /// Set if a mask is in effect and the statements contain a loop or a load. They then run only if a thread of
        /// this mask that passes the guard is left: a loop might not terminate, or a load might be invalid, for values
        /// that no thread has. If `None`, the statements run unconditionally.
        active: Option<MaskId>,
        /// The guard of the enclosing nodes.
        guard: Option<Guard>,
        /// The statements.
        block: Block,
    },
    /// Statements that all threads execute before the next node begins.
    Segment(Box<Segment>),
    /// A uniform branch.
    If {
        /// A uniform `Bool`, or the exit test of a loop with divergent exits, which the strip computes
        /// ([`MaskedLoop`](super::MaskedLoop)).
        cond: ExprId,
        /// The nodes that run if the condition is true.
        then: Vec<Node>,
        /// The nodes that run if the condition is false.
        otherwise: Vec<Node>,
    },
    /// Nodes for the threads that pass a guard. Skipped if no thread of the block does.
    Guarded {
        /// The guard.
        guard: Guard,
        /// The guarded nodes. Each segment inside has the guard, too.
        inside: Vec<Node>,
    },
    /// A divergent branch: the threads of one arm run first, then those of the other.
    Split {
        /// The mask of the threads that reach the branch. All if `None`; the guard applies in addition.
        active: Option<MaskId>,
        /// The guard of the enclosing nodes.
        guard: Option<Guard>,
        /// The condition of each thread. It is live across the boundary from the preceding segment.
        cond: LocalId,
        /// The mask of the threads that run `then`.
        then_mask: MaskId,
        /// The mask of the threads that run `otherwise`.
        else_mask: MaskId,
        /// The nodes of the threads whose condition is true.
        then: Vec<Node>,
        /// The nodes of the threads whose condition is false.
        otherwise: Vec<Node>,
    },
    /// A barrier. Strip mining does not fuse nodes over it.
    Barrier,
    /// A barrier, then statements that each warp runs on its own: a plan of
    /// [`Plan::warp_regions`](super::Plan::warp_regions) in which each warp is a block.
    WarpRegion(u32),
    /// Nodes that run to completion for one strip of a row before the next strip begins.
    Strips(Box<Strips>),
    /// A loop at the level of the block: it contains a barrier, or is interchanged with the thread loop.
    Loop {
        /// The induction variable, if the loop counts up or down to a limit.
        counter: Option<LocalId>,
        /// The mask of the threads that reach the loop. All if `None`; the guard applies in addition.
        active: Option<MaskId>,
        /// The guard of the enclosing nodes.
        guard: Option<Guard>,
        /// The mask of the threads that are still in the loop, if its exits are divergent.
        mask: Option<MaskId>,
        /// The mask of the threads that have not skipped the rest of the iteration, if a `continue` is divergent.
        continue_mask: Option<MaskId>,
        /// The body.
        body: Vec<Node>,
        /// The latch: nodes that run between two iterations.
        step: Vec<Node>,
        /// The loop in the program.
        span: Span,
    },
    /// Several iterations of the enclosing loop at once, in which each thread traverses its own row.
    TransposedRows(Box<TransposedRows>),
    /// All threads leave the innermost [`Node::Loop`].
    Break,
    /// All threads continue with the step of the innermost [`Node::Loop`].
    Continue,
    /// All threads leave the kernel.
    Return,
}

/// Nodes without a barrier that run for a few neighboring threads at a time. Values that are live between the nodes are
/// in registers, and not in context arrays. [`strip_mine`](super::vector::strip_mine) creates them.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(crate) struct Strips {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The common guard of the segments.
    pub guard: Option<Guard>,
    /// Threads of a strip along `x`.
    pub width: u32,
    /// Rows of a strip.
    pub rows: u32,
    /// The width is a constant of the program, so the rows consist of whole strips. The remainder strip is not
    /// vectorized.
    pub exact: bool,
    /// The nodes contain strided accesses: the code of the lanes is interleaved as scalar code and not vectorized.
    pub scalar: bool,
    /// All loops with strided accesses are transposed ([`Node::TransposedRows`]). The remainder strip is vectorized,
    /// too.
    pub transposed: bool,
    /// Uniform locals that the nodes assign. Each strip begins with their values from before the first strip.
    pub shared: Vec<LocalId>,
    /// Context locals that have an element for each lane of the strip.
    pub lane_locals: Vec<LocalId>,
    /// Those of `lane_locals` that are live into the strip.
    pub live_in: Vec<LocalId>,
    /// Those of `lane_locals` that are live out of the strip.
    pub live_out: Vec<LocalId>,
    /// Segments before the strip whose prefetches for the next iteration the strip emits, row by row
    /// ([`Segment::iteration_prefetches`]).
    pub before: Vec<Segment>,
    /// Full strips inline the math functions that they call: LLVM vectorizes no calls.
    pub inlines_math: bool,
    /// Thread-local arrays that the strip stores as `[element][lane]`. Strips with such arrays have one row.
    pub lane_arrays: Vec<LocalArrayId>,
}

impl Strips {
    /// Threads of a strip in rows of a single block, if other widths may leave a remainder.
    pub(crate) const BLOCK_WIDTH: u32 = 16;

    /// `true` if several rows of `width` threads consist of whole strips, without a remainder.
    pub(crate) fn is_of_rows(&self, width: u64) -> bool {
        self.rows > 1 && self.guard.is_none() && width.is_multiple_of(u64::from(self.width))
    }
}

/// Iterations of a loop in strips in which each thread accesses consecutive elements of its own row.
///
/// The strip runs up to 16 iterations at once: it loads a vector of each row, transposes the vectors in registers into
/// one vector of lanes per iteration, and runs the iterations in order. Stores are transposed the other way round.
/// [`transpose`](super::vector::transpose) creates it.
#[derive(Clone, Debug)]
pub(crate) struct TransposedRows {
    /// The induction variable. At least one iteration is left.
    pub counter: LocalId,
    /// The limit of the induction variable. It is loop-invariant.
    pub limit: ExprId,
    /// The limit of each thread, if trip counts differ between threads.
    pub lane_limit: Option<ExprId>,
    /// Context locals that the iterations store, if trip counts differ between threads. A thread keeps the values of
    /// its own last iteration.
    pub last_values: Vec<LocalId>,
    /// A segment without a body: the locals that a thread loads and recomputes to evaluate its addresses.
    pub rows: Segment,
    /// The loads that are executed before the iterations.
    pub loads: Vec<TransposedLoad>,
    /// The stores that are executed after the iterations.
    pub stores: Vec<TransposedStore>,
    /// Pairs of pointers that may alias. If a pair does, the strip runs one iteration of `nodes`.
    pub alias_checks: Vec<AliasCheck>,
    /// Loads of one element for all threads, each with the same load as each iteration executes it once for the strip.
    pub uniform_loads: Vec<(ExprId, ExprId)>,
    /// Values of the induction variable for which a thread does not execute all of the loads. The strip runs such an
    /// iteration as one iteration of `nodes`.
    pub partial: Vec<ExprId>,
    /// An iteration has no effect that an inactive lane must not have, except for the transposed loads and stores: the
    /// body needs no mask.
    pub unmasked: bool,
    /// The nodes of one iteration, without the loop test.
    pub nodes: Vec<Node>,
    /// The same for iterations in which all threads execute all loads, without the branches that test for that.
    pub unconditional: Vec<Node>,
    /// The latch of the loop.
    pub step: Vec<Node>,
}

/// A load of the next element of a row in each iteration.
#[derive(Clone, Debug)]
pub(crate) struct TransposedLoad {
    /// The loads.
    pub loads: Vec<ExprId>,
    /// The address that the next iteration loads from.
    pub pointer: ExprId,
    /// The distance between the addresses of neighboring threads is uniform.
    pub uniform_stride: bool,
}

/// A store to the next element of a row in each iteration.
#[derive(Clone, Debug)]
pub(crate) struct TransposedStore {
    /// The pointers of the stores in [`TransposedRows::unconditional`]. No other expression contains them.
    pub pointers: Vec<ExprId>,
    /// Loads of the value that the same iteration has stored.
    pub reads: Vec<ExprId>,
    /// The address that the next iteration stores to.
    pub pointer: ExprId,
    /// The distance between the addresses of neighboring threads is uniform.
    pub uniform_stride: bool,
}

/// Two pointers of a thread that clash if `from < second - first < to`, in bytes: several iterations at once would then
/// differ from the same iterations in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AliasCheck {
    /// The first pointer.
    pub first: ExprId,
    /// The second pointer.
    pub second: ExprId,
    /// The exclusive lower bound of the distance, in bytes.
    pub from: i64,
    /// The exclusive upper bound of the distance, in bytes.
    pub to: i64,
}

/// A parallel region: statements without a barrier, which a thread loop runs for each thread.
///
/// [`form`](super::regions::form) fills in the first group of fields; [`context`](super::regions::context) and the
/// later passes fill in the second.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(crate) struct Segment {
    /// The statements.
    pub body: Block,
    /// The mask of the threads that run the segment. All if `None`.
    pub active: Option<MaskId>,
    /// The masks that `Return` clears for a thread.
    pub on_return: Vec<MaskId>,
    /// The masks that `Break` clears for a thread.
    pub on_break: Vec<MaskId>,
    /// The masks that `Continue` clears for a thread.
    pub on_continue: Vec<MaskId>,
    /// The threads that the segment runs for.
    pub runs: Runs,
    /// The segment is in a loop of the block, so it may run several times for the same thread.
    pub repeats: bool,

    /// The varying locals that the segment mentions. Each has a stack slot while the segment runs.
    pub locals: Vec<LocalId>,
    /// Rematerializable locals that are recomputed at the start, in this order.
    pub recompute: Vec<LocalId>,
    /// Context locals that are loaded at the start.
    pub load: Vec<LocalId>,
    /// Context locals that are stored at the end.
    pub store: Vec<LocalId>,
    /// In strips: the guard that selects the lanes that run the segment.
    pub lane_guard: Option<Guard>,
    /// In strips: the segment only computes the maximum of an expression over the lanes and assigns it to a uniform
    /// local.
    pub lane_max: Option<(LocalId, ExprId)>,
    /// In vectorized strips: the segment cannot be vectorized, and runs for one lane after the other.
    pub scalar_lanes: bool,
    /// The guard of the segment: a thread that does not pass it has no effect. [`form`](super::regions::form) sets it
    /// to the guards of the enclosing nodes; [`guards`] adds those of the body.
    pub guard: Option<Guard>,
    /// The accesses of different threads may be annotated as independent: nothing orders the threads, and they share no
    /// local arrays.
    pub parallel: bool,
    /// Loads of a later iteration to prefetch. [`next_stride`](super::prefetch::next_stride) finds them.
    pub stride_prefetches: Vec<StridePrefetch>,
    /// Loads of the next iteration of the enclosing loop to prefetch.
    /// [`next_iteration`](super::prefetch::next_iteration) finds them.
    pub iteration_prefetches: Vec<IterationPrefetch>,
    /// The parts of the threads, among those that pass the guard, that run a copy of the body.
    pub split: Option<Split>,
    /// In sanitized code: shared arrays whose reads cannot race. [`race_free`](super::sanitize::race_free) finds them.
    pub race_free: Vec<SharedId>,
    /// The threads store at an unknown distance from each other: the loop is not vectorized.
    pub scatters: bool,
    /// The segment runs for the cells of a tile in place of the block's threads.
    /// [`coalesce`](super::loops::coalesce) sets it.
    pub shape: Option<TileShape>,
}

/// The shape of a tile: `threadIdx.x` and `threadIdx.y` in a segment are a cell's column and row. Both values are
/// uniform and of type `I64`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileShape {
    /// The length of a row.
    pub width: ExprId,
    /// The number of rows.
    pub rows: ExprId,
}

/// The threads that a segment runs for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Runs {
    /// Every active thread.
    #[default]
    EachThread,
    /// Once for each warp, as its first thread, even if only other lanes of the warp are active. It has neither mask
    /// nor guard.
    Warps,
    /// Once for the active threads of a row whose `threadIdx.x` differs only in the lowest five bits. All of them
    /// receive the values that it stores. It has no mask.
    Groups,
    /// At most the first thread of each such group.
    FirstOfGroups,
    /// At most the first lane of each warp.
    FirstLanes,
    /// At most one thread of a row, which the guard names.
    OneThread,
}

/// A unit-stride load of a thread loop, and the distance to the address of the next iteration.
#[derive(Clone, Debug)]
pub(crate) struct StridePrefetch {
    /// The address of a thread's element.
    pub pointer: ExprId,
    /// The distance in elements: a uniform `I64`.
    pub step: ExprId,
    /// Locals that the address reads, with their values. They are computed first, in this order.
    pub before: Vec<(LocalId, ExprId)>,
}

/// A unit-stride load of a thread loop in the next iteration of a uniform loop around it.
#[derive(Clone, Debug)]
pub(crate) struct IterationPrefetch {
    /// The address of a thread's element.
    pub pointer: ExprId,
    /// The size of an element in bytes.
    pub size: u64,
    /// The values, in the next iteration, of the locals that the address reads. Each may depend on those before it.
    pub values: Vec<(LocalId, ExprId)>,
    /// The strips after the segment emit the prefetches, if rows have the expected length.
    pub by_strips: bool,
}

/// A body that is cut at its barriers.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The number of masks.
    pub masks: u32,
    /// The mask of the threads that have not returned. It is set when the block begins.
    pub alive: Option<MaskId>,
    /// The divergent control flow that needs the masks, in program order.
    pub divergences: Vec<Divergence>,
}

/// A conjunction of conditions that selects threads of a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    /// Rematerializable locals that the other fields read. They are computed first, in this order.
    pub recompute: Vec<LocalId>,
    /// Conditions that are uniform in the row, and whether each is negated.
    pub rows: Vec<(ExprId, bool)>,
    /// Bounds on the threads of the row.
    pub ranges: Vec<Range>,
}

impl Guard {
    /// `true` if both have the same conditions and bounds.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.rows == other.rows && self.ranges == other.ranges
    }

    /// `true` if all threads pass.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.ranges.is_empty()
    }

    /// `true` if at most one thread of a row passes.
    pub(crate) fn names_one(&self) -> bool {
        self.ranges.iter().any(|range| range.op == CompareOp::Eq && range.times == 1)
    }

    /// The conditions that follow those of `first`, or `None` if the guard does not begin with them.
    pub(crate) fn after(&self, first: &Self) -> Option<Self> {
        let rows = self.rows.strip_prefix(first.rows.as_slice())?.to_vec();
        let ranges = self.ranges.strip_prefix(first.ranges.as_slice())?.to_vec();
        Some(Self { recompute: self.recompute.clone(), rows, ranges })
    }

    /// Adds the conditions of another guard.
    pub(crate) fn add(&mut self, other: &Self) {
        self.rows.extend(&other.rows);
        self.ranges.extend(&other.ranges);
    }
}

/// `value op bound * times + plus`, where `value` has unit stride along the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// The left side; `I32` or `I64`.
    pub value: ExprId,
    /// Any operator except `Ne`.
    pub op: CompareOp,
    /// The right side, of the same type. It is uniform in the row.
    pub bound: ExprId,
    /// The factor of the bound. The product does not overflow.
    pub times: i64,
    /// The constant term, less than `times`.
    pub plus: i64,
    /// The value may overflow within a row and wrap around.
    pub wraps: bool,
}

/// A condition, split into conjuncts.
#[derive(Debug, Default)]
pub(crate) struct SplitCondition {
    /// The conjuncts that become the guard of a row.
    pub guard: Guard,
    /// The conjuncts that each thread tests, and whether each is negated.
    pub residual: Vec<(ExprId, bool)>,
}

impl Segment {
    /// The copy of the body for the steady state.
    pub(crate) fn steady_state(&self) -> Option<&Piece> {
        self.split.as_ref().filter(|split| split.by == SplitBy::SteadyState)?.pieces.first()
    }

    /// The body and its copies for parts of the threads.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = &Block> {
        let pieces = self.split.iter().flat_map(|split| &split.pieces);
        std::iter::once(&self.body).chain(pieces.map(|piece| &piece.body))
    }
}

impl Node {
    /// The lists of child nodes.
    pub(crate) fn parts(&self) -> [&[Self]; 2] {
        match self {
            Self::If { then: first, otherwise: second, .. }
            | Self::Split { then: first, otherwise: second, .. }
            | Self::Loop { body: first, step: second, .. } => [first, second],
            Self::Guarded { inside, .. } => [inside, &[]],
            Self::Strips(strips) => [&strips.nodes, &[]],
            Self::TransposedRows(transposed) => [&transposed.nodes, &transposed.step],
            Self::Segment(_)
            | Self::Once { .. }
            | Self::Barrier
            | Self::WarpRegion(_)
            | Self::Break
            | Self::Continue
            | Self::Return => [&[], &[]],
        }
    }

    pub(crate) fn parts_mut(&mut self) -> [&mut [Self]; 2] {
        match self {
            Self::If { then: first, otherwise: second, .. }
            | Self::Split { then: first, otherwise: second, .. }
            | Self::Loop { body: first, step: second, .. } => [first, second],
            Self::Guarded { inside, .. } => [inside, &mut []],
            Self::Strips(strips) => [&mut strips.nodes, &mut []],
            Self::TransposedRows(transposed) => [&mut transposed.nodes, &mut transposed.step],
            Self::Segment(_)
            | Self::Once { .. }
            | Self::Barrier
            | Self::WarpRegion(_)
            | Self::Break
            | Self::Continue
            | Self::Return => [&mut [], &mut []],
        }
    }
}

/// Calls `visit` on every segment.
pub(crate) fn for_each_segment(nodes: &mut [Node], visit: &mut dyn FnMut(&mut Segment)) {
    for node in nodes {
        if let Node::Segment(segment) = node {
            visit(segment);
        }
        for part in node.parts_mut() {
            for_each_segment(part, visit);
        }
    }
}

/// Calls `visit` on every guard, except those of segments.
pub(crate) fn for_each_guard(nodes: &mut [Node], visit: &mut dyn FnMut(&mut Guard)) {
    for node in nodes {
        if let Node::Split { guard: Some(guard), .. }
        | Node::Once { guard: Some(guard), .. }
        | Node::Loop { guard: Some(guard), .. }
        | Node::Guarded { guard, .. } = node
        {
            visit(guard);
        }
        if let Node::Strips(strips) = node {
            strips.guard.iter_mut().for_each(&mut *visit);
        }
        for part in node.parts_mut() {
            for_each_guard(part, visit);
        }
    }
}

/// Calls `visit` on the condition of every [`Node::Split`].
pub(crate) fn for_each_split(nodes: &[Node], visit: &mut dyn FnMut(LocalId)) {
    for node in nodes {
        if let Node::Split { cond, .. } = node {
            visit(*cond);
        }
        for part in node.parts() {
            for_each_split(part, visit);
        }
    }
}
