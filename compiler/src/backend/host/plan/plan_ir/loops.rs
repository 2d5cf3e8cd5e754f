//! What the passes record about loops for later passes and for the emitter.

use crate::{
    backend::host::plan::plan_ir::{Node, Refused, TileShape},
    ir::{ExprId, LocalId, Stmt, StmtKind},
    source::Span,
};

/// Lanes of a strip finish the loop one after the other when at most `MAX_SERIAL_LANES` are active, from iteration
/// `MIN_SERIAL_ITERATION` on.
const MAX_SERIAL_LANES: u32 = 2;
const MIN_SERIAL_ITERATION: u32 = 8;

/// The loops that [`interchange`](crate::backend::host::plan::loops::interchange) interchanged.
#[derive(Clone, Debug, Default)]
pub(crate) struct InterchangedLoops {
    /// There is at least one.
    pub any: bool,
    /// A grid-stride loop has indices that may come near the largest integer.
    pub may_wrap: bool,
    /// Counters of loops that contain no barrier of the program. No other loop has the same counter.
    pub counters: Vec<LocalId>,
    /// Those of `counters` whose loops have accesses without unit stride: interchanged only as part of a strip.
    pub strided: Vec<LocalId>,
    /// Those of `strided` whose loops call math functions: interchanged only if the strip transposes the accesses.
    pub strided_math: Vec<LocalId>,
    /// The loops with a trip count for each lane: interchanged only if the strip transposes the accesses.
    pub lane_trip_counts: Vec<LaneTripCounts>,
    /// Those of `counters` whose loops are short and load the same elements for several rows: interchanged only as part
    /// of a strip of several rows.
    pub tiles: Vec<LocalId>,
    /// Offsets of grid-stride loops.
    pub strides: Vec<Stride>,
    /// The other loops, and why they are not interchanged.
    pub refused: Vec<Refused>,
}

/// The uniform part of the induction variable of an interchanged grid-stride loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stride {
    /// The local that holds it.
    pub offset: LocalId,
    /// The increment per iteration.
    pub step: ExprId,
}

/// A loop that runs for the maximum trip count over the lanes of a strip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneTripCounts {
    /// The induction variable.
    pub counter: LocalId,
    /// The trip count of a lane; no iteration changes it.
    pub limit: ExprId,
    /// The maximum of `limit` over the lanes of a strip; only the strip assigns it.
    pub max_limit: LocalId,
    /// Whether a lane runs the iteration: the condition of the branch around the body.
    pub has_iteration: ExprId,
}

/// A masked loop, as the strip that runs it sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MaskedLoop {
    /// Not zero while the lane is in the loop; `I32`.
    pub alive: LocalId,
    /// Number of completed iterations, uniform; `I32`.
    pub iterations: LocalId,
    /// Conditions of the two branches that leave the loop: whether few lanes are active, which then finish it one by
    /// one, and whether none is. The strip computes their values.
    pub few_active: ExprId,
    pub none_active: ExprId,
    /// Condition of the branch after the loop that holds the assignments of the loop's first exit, if there are any. It
    /// belongs to the loop's strip, because it reads values that differ between strips.
    pub after_loop: Option<ExprId>,
    /// The loop has a trip count, so it terminates for each thread even without its other exits.
    pub has_trip_count: bool,
    /// The loop has a trip count for each lane and no recurrence, so LLVM may reorder its iterations.
    pub is_reorderable: bool,
    /// The last lanes finish the loop one after the other: the branch on `few_active` has their code. Otherwise the
    /// branch leaves the loop, and holds if no lane is active.
    pub runs_alone: bool,
}

impl MaskedLoop {
    /// If a condition is `few_active` or `none_active`: the number of active lanes up to which it holds, and the
    /// iteration from which on that applies. Before that iteration it holds if no lane is active.
    pub(crate) fn active_lane_test(&self, cond: ExprId) -> Option<(u32, u32)> {
        let most = if cond == self.few_active && self.runs_alone { MAX_SERIAL_LANES } else { 0 };
        (cond == self.few_active || cond == self.none_active).then_some((most, MIN_SERIAL_ITERATION))
    }

    /// Whether a strip of nodes contains the branch after the loop, or there is no such branch.
    pub(crate) fn has_exit_branch_in(&self, strip: &[Node]) -> bool {
        self.after_loop.is_none_or(|after_loop| {
            let is_after_loop = |stmt: &Stmt| matches!(stmt.kind, StmtKind::If { cond, .. } if cond == after_loop);
            strip.iter().any(|node| matches!(node, Node::Segment(segment) if segment.body.iter().any(is_after_loop)))
        })
    }

    /// Whether nodes are the body of the loop.
    pub(crate) fn is_body_of(&self, body: &[Node]) -> bool {
        body.iter().any(|node| matches!(node, Node::If { cond, .. } if *cond == self.few_active))
    }
}

/// Where the threads run the assignments of a loop's first exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitAssignments {
    /// After the loop: its exit is a plain `break`, as in loops with a trip count. Legal if that branch is part of the
    /// loop's strip ([`MaskedLoop::has_exit_branch_in`]): strips leave the loop in different iterations, so values that
    /// are uniform in a strip differ between strips.
    AfterLoop,
    /// In the branch that leaves the loop.
    InExitBranch,
}

/// A coalesced loop.
#[derive(Clone, Debug)]
pub(crate) struct Coalesced {
    /// The condition of the branch whose first arm contains the body.
    pub cond: ExprId,
    /// The shape of its segment.
    pub shape: TileShape,
    /// The loop in the program.
    pub span: Span,
}
