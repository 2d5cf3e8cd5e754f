//! Strip mining: a constant number of neighboring threads runs all nodes between two barriers before the next threads
//! do.
//!
//! ```text
//! for k in 0..n:                            for strip in row by 16:
//!     for x in row:                             for k in 0..n:
//!         total[x] += a[x + k]                      total[0..16] += a[strip + 0..16 + k]
//! ```
//!
//! After loop interchange, a sequential loop contains a thread loop over the whole row. Values that a thread carries
//! from iteration to iteration are in its context array, which each iteration loads and stores. In a strip, LLVM keeps
//! these values in registers, and compiles the threads of a strip to straight code of vectors. The last threads of a
//! row run the same nodes as one shorter strip.
//!
//! If several rows load the same elements (`a[i, k] * b[k, j]`), a strip has several rows, which share these loads
//! (unroll-and-jam). For strided accesses, a strip is eight threads whose scalar code is interleaved.
//!
//! Legal for nodes without barriers and masks, whose segments run for each thread. With strided
//! accesses, conditions of a segment on which the whole block agrees become branches of the strip.
//!
//! Pays only if the segments have the same guard, or one that each lane tests in a grid-stride loop whose stride is the
//! width of the strip. A loop in a strip is a counted loop, a grid-stride loop, or a loop that tests whether any lane is
//! active.
//!
//! Does not pay for loops in which each iteration accesses another row of a matrix, and loads as many elements as it changes
//! values of a thread. Memory limits such a loop, and a strip accesses only a few cache lines of a row before the next
//! one. In a loop over the whole row, the hardware prefetches, and the carried values remain in the nearest cache.
//!
//! Otherwise pays if the nodes have a loop, and if a strip has several rows, threads carry values over iterations,
//! accesses are strided, or the stride of a grid-stride loop is short. Values and code per strip are limited.

mod accesses;
mod loops_in_strips;
mod nodes;

use std::{cell::RefCell, collections::BTreeSet};

use crate::{
    analysis::escapes,
    backend::host::plan::{
        analysis::vectorizable,
        plan_ir::{
            Guard, InterchangedLoops, MaskedLoop, Node, Refusal, Refused, Runs, Segment, SplitBy, Stride, Strips,
            Transformation, bytes_of, for_each_segment, for_each_split, guards::Peeler,
        },
    },
    ir::{ExprId, LocalArrayId, LocalId},
    source::Span,
};
use accesses::{all_stream, share_loads};
pub(crate) use loops_in_strips::{
    are_in_strips, are_transposed, exit_assignments_are_in_strips, lane_arrays_are_in_strips,
    masked_loops_are_in_strips, masked_loops_are_in_warp,
};
use nodes::{
    assigned_once, carries, computes, count_loads, counters_of, expose, has_masked_loop, holds_loop, leaves,
    mentioned_arrays, used,
};

/// Threads of a strip in blocks that are merged: their rows are long.
const MAX_WIDTH: u32 = 256;

/// Most threads of a strip in rows of a single block. A strip of several vectors hides the latency of its sums, and
/// accesses several consecutive cache lines of each row of a matrix, which the hardware prefetches.
const MAX_BLOCK_WIDTH: u32 = 64;

/// Rows of a strip, if several rows load the same elements.
const ROWS: u32 = 4;

/// Rows of a strip, if the number of rows of a block is expected to be a multiple of eight. A strip then has twice as
/// many independent sums; CPUs with two 512-bit multiply units need eight.
pub(crate) const MAX_ROWS: u32 = 8;

/// Most bytes that the threads of a strip may carry: half of 32 registers of 64 bytes.
const MAX_BYTES: u64 = 1024;

/// The same for 16 registers of 32 bytes: a strip of a block is not made wider than these.
const MAX_SHORT_BYTES: u64 = 256;

/// Most expressions of the nodes of a strip, whose code is duplicated.
const MAX_EXPRS: usize = 2000;

/// Most threads of a strip with divergent exits: the strip runs for the maximum trip count over its lanes.
const MAX_MASKED_WIDTH: u32 = 64;

/// Threads of a strip with strided accesses. Each thread uses a cache line of its own, and these lines may fall into
/// the same cache set.
const STRIDED_WIDTH: u32 = 8;

/// Rows of up to this many threads run a grid-stride loop in strips even if they carry nothing: the start of a thread
/// loop costs as much as its iterations.
const MAX_SHORT_ROW: u32 = 64;

/// Replaces nodes by strips where this is legal and pays. The guards of segments are moved already. `interchanged` says
/// in which loops accesses are strided, and which loops pay only in strips of several rows. Returns the loops that are in
/// no strip.
pub(crate) fn make(
    peeler: &Peeler<'_>,
    (is_merged, row, short_row, by_eights, has_long_vectors): (bool, Option<u32>, Option<u32>, bool, bool),
    (interchanged, masked_loops, lane_arrays): (&InterchangedLoops, &[MaskedLoop], &[LocalArrayId]),
    nodes: &mut Vec<Node>,
) -> Vec<Refused> {
    let InterchangedLoops { strided, strided_math, tiles, strides, .. } = interchanged;
    let mut loads = vec![0; peeler.function.locals.len()];
    count_loads(nodes, &mut loads);
    for_each_split(nodes, &mut |cond| loads[cond.index()] += 1);
    // Rows of merged blocks are long enough for loops of their own.
    let ragged = !is_merged;
    let width = if is_merged { MAX_WIDTH } else { Strips::BLOCK_WIDTH };
    let most_rows = if by_eights { MAX_ROWS } else { ROWS };
    let maker = Maker {
        peeler,
        width,
        has_long_vectors,
        strided,
        strided_math,
        tiles,
        masked_loops,
        lane_arrays,
        strides,
        loads,
        ragged,
        row,
        short_row,
        most_rows,
        refused: &RefCell::default(),
    };
    maker.list(nodes, &Guard::default(), false);
    maker.refused.take()
}

/// The locals that need a context array in scratch memory. A local that only one strip uses needs none.
pub(crate) fn context_locals(nodes: &[Node]) -> Vec<LocalId> {
    let mut context_locals = BTreeSet::new();
    collect_context_locals(nodes, &mut context_locals);
    for_each_split(nodes, &mut |cond| {
        context_locals.insert(cond);
    });
    context_locals.into_iter().collect()
}

fn collect_context_locals(nodes: &[Node], context_locals: &mut BTreeSet<LocalId>) {
    for node in nodes {
        match node {
            Node::Strips(strips) => context_locals.extend(strips.live_in.iter().chain(&strips.live_out)),
            Node::Segment(segment) => context_locals.extend(segment.load.iter().chain(&segment.store)),
            Node::Once { .. }
            | Node::TransposedRows(_)
            | Node::If { .. }
            | Node::Guarded { .. }
            | Node::Split { .. }
            | Node::Barrier
            | Node::WarpRegion(_)
            | Node::Loop { .. }
            | Node::Break
            | Node::Continue
            | Node::Return => node.parts().iter().for_each(|part| collect_context_locals(part, context_locals)),
        }
    }
}

/// Which lanes of a strip run an iteration of its loops.
enum ActiveLanes {
    /// All lanes.
    All,
    /// Some lanes: each segment tests per lane whether it has an iteration left, as in a warp that traverses a row
    /// together. A strip has as many threads as the loop's stride.
    PerLane { stride_length: u32, guessed: bool },
    /// As `PerLane`, but the stride is unknown, too large, or too large for loops that call math functions.
    StrideTooLarge,
}

struct Maker<'a> {
    peeler: &'a Peeler<'a>,
    width: u32,
    /// Vectors are as long as a cache line.
    has_long_vectors: bool,
    strided: &'a [LocalId],
    strided_math: &'a [LocalId],
    tiles: &'a [LocalId],
    masked_loops: &'a [MaskedLoop],
    /// Thread-local arrays of lanes.
    lane_arrays: &'a [LocalArrayId],
    strides: &'a [Stride],
    /// The number of segments that load each local, by the local's index.
    loads: Vec<u32>,
    /// Segments of grid-stride loops may test each lane for an iteration left.
    ragged: bool,
    /// The expected number of threads of a row of a block.
    row: Option<u32>,
    /// The same, if it is so small that such rows have a copy.
    short_row: Option<u32>,
    /// Rows of a strip, if several rows load the same elements.
    most_rows: u32,
    /// The loops that are in no strip.
    refused: &'a RefCell<Vec<Refused>>,
}

impl Maker<'_> {
    /// Makes strips in a list of nodes under a guard.
    fn list(&self, nodes: &mut Vec<Node>, guard: &Guard, repeats: bool) {
        let mut done = Vec::new();
        let mut run = Vec::new();
        for node in nodes.drain(..) {
            match (self.check_in_strip(&node, guard, false), &node) {
                (Ok(()), _) => {
                    run.push(node);
                    continue;
                }
                (Err(why), Node::Loop { span, .. }) => self.refuse(*span, why),
                (Err(_), _) => {}
            }
            self.close(&mut run, &mut done, guard, repeats);
            done.push(self.inside(node, guard, repeats));
        }
        self.close(&mut run, &mut done, guard, repeats);
        *nodes = done;
    }

    /// Makes strips inside a node that cannot itself be in a strip.
    fn inside(&self, mut node: Node, guard: &Guard, repeats: bool) -> Node {
        match &mut node {
            Node::If { then: first, otherwise: second, .. } => {
                self.list(first, guard, repeats);
                self.list(second, guard, repeats);
            }
            Node::Loop { mask: None, continue_mask: None, active: None, body, step, .. } => {
                self.list(body, guard, true);
                self.list(step, guard, true);
            }
            Node::Guarded { guard: more, inside } => {
                let mut all = guard.clone();
                all.add(more);
                self.list(inside, &all, repeats);
            }
            // A strip has no mask.
            Node::Split { .. } | Node::Loop { .. } => {}
            Node::Segment(_)
            | Node::Once { .. }
            | Node::Barrier
            | Node::WarpRegion(_)
            | Node::Strips(_)
            | Node::TransposedRows(_)
            | Node::Break
            | Node::Continue
            | Node::Return => {}
        }
        node
    }

    fn refuse(&self, span: Span, why: Refusal) {
        self.refused.borrow_mut().push(Refused { span, what: Transformation::Strips, why });
    }

    /// Whether a strip may contain a node. Breaks and continues are accepted only in a loop of the strip.
    ///
    /// # Errors
    ///
    /// The reason why it may not.
    fn check_in_strip(&self, node: &Node, guard: &Guard, in_loop: bool) -> Result<(), Refusal> {
        let all =
            |nodes: &[Node], in_loop: bool| nodes.iter().try_for_each(|node| self.check_in_strip(node, guard, in_loop));
        let unless = |refused: bool, why: Refusal| if refused { Err(why) } else { Ok(()) };
        match node {
            Node::Segment(segment) => {
                let same = segment.guard.as_ref().map_or(guard.is_empty(), |own| own.is_same(guard))
                    || self.uniform_conditions(segment, guard).is_some()
                    || (self.ragged && in_loop && after(segment, guard).is_some());
                let Segment { split, runs, body, .. } = segment.as_ref();
                // A steady-state copy gains more than registers do, but less than strips for loops with strided
                // accesses.
                let is_whole = match split.as_ref().map(|split| split.by) {
                    // The body is invalid for the threads of the range.
                    Some(SplitBy::ExcludedRange) => legal!("strip_mine.whole-body", false),
                    Some(SplitBy::SteadyState | SplitBy::Bit) => !self.strided.is_empty(),
                    Some(SplitBy::ResidueClass { .. } | SplitBy::Scaled { .. }) | None => true,
                };
                unless(!legal!("strip_mine.each-thread", *runs == Runs::EachThread), Refusal::OtherThreads)?;
                unless(!same, Refusal::OwnGuard)?;
                unless(!is_whole, Refusal::PartsOfRows)?;
                // LLVM vectorizes no lanes with jumps.
                unless(escapes(body).any(), Refusal::DivergentJump)
            }
            Node::Once { .. } => Ok(()),
            Node::If { then, otherwise, .. } => all(then, in_loop).and_then(|()| all(otherwise, in_loop)),
            Node::Loop { counter, active, mask, continue_mask, body, step, .. } => {
                let is_counted = counter.is_some()
                    || (self.ragged && self.stride(step).is_some())
                    || body.iter().any(|node| leaves(node, self.masked_loops));
                all(body, true)?;
                all(step, true)?;
                let is_masked = active.is_some() || mask.is_some() || continue_mask.is_some();
                // The segments in a loop without a mask, and those beside it, have no mask either.
                unless(!legal!("strip_mine.no-masked-loop", !is_masked), Refusal::Mask)?;
                unless(!is_counted, Refusal::NotCounted)
            }
            Node::Break | Node::Continue => unless(!legal!("strip_mine.own-loop", in_loop), Refusal::DivergentJump),
            Node::Barrier => unless(!legal!("strip_mine.no-barrier", false), Refusal::Barrier),
            Node::WarpRegion(_) => unless(!legal!("strip_mine.no-warp-region", false), Refusal::WarpRegion),
            Node::Split { .. } => unless(!legal!("strip_mine.no-split", false), Refusal::Mask),
            Node::Guarded { .. } => unless(!legal!("strip_mine.no-guarded-region", false), Refusal::OtherThreads),
            Node::Strips(_) | Node::TransposedRows(_) => Err(Refusal::OtherThreads),
            Node::Return => unless(!legal!("strip_mine.no-return", false), Refusal::DivergentJump),
        }
    }

    /// Ends a list of consecutive nodes: replaces them by strips, if that pays.
    fn close(&self, run: &mut Vec<Node>, done: &mut Vec<Node>, guard: &Guard, repeats: bool) {
        let mut nodes = std::mem::take(run);
        match self.strips(&mut nodes, guard, repeats) {
            Ok(strips) => done.push(Node::Strips(Box::new(Strips { nodes, ..strips }))),
            Err(why) if self.ragged && nodes.iter().any(holds_loop) => {
                let plain = Self { loads: self.loads.clone(), ragged: false, ..*self };
                let before = self.refused.borrow().len();
                plain.list(&mut nodes, guard, repeats);
                // A loop with a guard of its own is only in ragged strips.
                for refused in &mut self.refused.borrow_mut()[before..] {
                    refused.why = why.filter(|_| refused.why == Refusal::OwnGuard).unwrap_or(refused.why);
                }
                done.append(&mut nodes);
            }
            Err(why) => {
                if let Some(why) = why {
                    self.refuse_all(&nodes, why);
                }
                done.append(&mut nodes);
            }
        }
    }

    /// Leaves all loops of some nodes in no strip.
    fn refuse_all(&self, nodes: &[Node], why: Refusal) {
        for node in nodes {
            if let Node::Loop { span, .. } = node {
                self.refuse(*span, why);
            }
            node.parts().into_iter().for_each(|part| self.refuse_all(part, why));
        }
    }

    /// Threads of a strip in rows of a single block, of which each carries `bytes`: the most that leave no remainder if
    /// rows are as long as expected, and that half of the registers hold.
    fn block_width(&self, bytes: u64) -> u32 {
        let most = if self.has_long_vectors { MAX_BYTES } else { MAX_SHORT_BYTES };
        let fits =
            |width: &u32| self.row.is_some_and(|row| row.is_multiple_of(*width)) && u64::from(*width) * bytes <= most;
        [MAX_BLOCK_WIDTH, MAX_BLOCK_WIDTH / 2].into_iter().find(fits).unwrap_or(Strips::BLOCK_WIDTH)
    }

    /// Threads of a strip whose arrays have `bytes` per thread.
    fn array_width(&self, bytes: u64) -> u32 {
        let widths = [MAX_MASKED_WIDTH, MAX_MASKED_WIDTH / 2];
        let fits = |width: &u32| *width <= self.width.max(Strips::BLOCK_WIDTH) && u64::from(*width) * bytes <= 8192;
        widths.into_iter().find(fits).unwrap_or(Strips::BLOCK_WIDTH)
    }

    /// The stride of the grid-stride loop with this step.
    fn stride(&self, step: &[Node]) -> Option<&Stride> {
        let mut counts = BTreeSet::new();
        assigned_once(step, &mut counts);
        self.strides.iter().find(|stride| counts.contains(&stride.offset))
    }

    /// Which lanes of a strip run an iteration of its loops.
    fn active_lanes(&self, nodes: &[Node], guard: &Guard) -> ActiveLanes {
        let (mut stride_lengths, mut whole) = (Vec::new(), false);
        self.stride_lengths(nodes, guard, &mut stride_lengths, &mut whole);
        let Some(&first) = stride_lengths.first() else { return ActiveLanes::All };
        let alike = !whole && stride_lengths.iter().all(|&stride_length| stride_length == first);
        let mut computes = false;
        self.computes(nodes, &mut computes);
        let most = if computes { MAX_SHORT_ROW } else { MAX_WIDTH };
        match first {
            Some((stride_length, guessed)) if alike && (Strips::BLOCK_WIDTH..=most).contains(&stride_length) => {
                ActiveLanes::PerLane { stride_length, guessed }
            }
            Some(_) | None => ActiveLanes::StrideTooLarge,
        }
    }

    /// Collects the strides of all loops with segments that test each lane, and sets `whole` if there is a loop without
    /// such a segment. Returns `true` if there is a loop with one.
    fn stride_lengths(
        &self,
        nodes: &[Node],
        guard: &Guard,
        all: &mut Vec<Option<(u32, bool)>>,
        whole: &mut bool,
    ) -> bool {
        let before = all.len();
        for node in nodes {
            if let Node::Loop { body, step, .. } = node {
                let tests_lanes =
                    |node: &Node| matches!(node, Node::Segment(segment) if self.tests_lanes(segment, guard));
                if body.iter().any(tests_lanes) {
                    let stride_length =
                        self.stride(step).and_then(|stride| match self.peeler.function.int(stride.step) {
                            Some(by) => Some((u32::try_from(by).ok()?, false)),
                            None => match self.row {
                                // Accesses are contiguous over a whole row.
                                Some(row) if row > MAX_SHORT_ROW => None,
                                row => Some((row.unwrap_or(MAX_WIDTH), true)),
                            },
                        });
                    all.push(stride_length);
                    self.stride_lengths(body, guard, all, whole);
                } else {
                    *whole |= !self.stride_lengths(body, guard, all, whole);
                }
            } else {
                node.parts().iter().for_each(|part| {
                    self.stride_lengths(part, guard, all, whole);
                });
            }
        }
        all.len() > before
    }

    /// Sets `computes` if a segment calls math functions.
    fn computes(&self, nodes: &[Node], computes: &mut bool) {
        for node in nodes {
            if let Node::Segment(segment) = node {
                *computes |= vectorizable::calls_math(self.peeler.function, &segment.body);
            }
            node.parts().iter().for_each(|part| self.computes(part, computes));
        }
    }

    /// The strips for some nodes, without the nodes.
    ///
    /// # Errors
    ///
    /// Why they are not legal or do not pay; `None` if the nodes have no loop.
    fn strips(&self, nodes: &mut [Node], guard: &Guard, repeats: bool) -> Result<Strips, Option<Refusal>> {
        let function = &*self.peeler.function;
        if !nodes.iter().any(holds_loop) {
            return Err(None);
        }
        // LLVM may leave a function with two call sites as calls, which it does not vectorize.
        if nodes.iter().any(|node| computes((function, self.strided_math, self.masked_loops), node, false)) {
            return Err(Some(Refusal::Math));
        }
        let active_lanes = if self.ragged { self.active_lanes(nodes, guard) } else { ActiveLanes::All };
        let (stride_length, guessed) = match active_lanes {
            ActiveLanes::All => (None, false),
            ActiveLanes::PerLane { stride_length, guessed } => (Some(stride_length), guessed),
            ActiveLanes::StrideTooLarge => return Err(Some(Refusal::StrideTooLarge)),
        };
        let (slots, stored, exprs) = used(function, nodes);
        if exprs > MAX_EXPRS {
            return Err(Some(Refusal::TooLarge));
        }
        let mut counters = Vec::new();
        counters_of(nodes, &mut counters);
        let has_strided = counters.iter().any(|counter| self.strided.contains(counter));
        let mut shares = false;
        for node in &*nodes {
            share_loads(self.peeler, node, false, &mut shares);
        }
        let wraps = guard.ranges.iter().any(|range| range.wraps);
        let has_masked_loops = nodes.iter().any(|node| has_masked_loop(node, self.masked_loops));
        if !legal!("strip_mine.masked-or-ragged", !has_masked_loops || stride_length.is_none()) {
            return Err(Some(Refusal::Combination));
        }
        let bytes: u64 = slots.iter().map(|local| function.locals[*local].ty.host_bytes()).sum();
        // If one of two rows has left a loop, it would load elements that its own threads do not load.
        let lane_arrays = mentioned_arrays(function, nodes, self.lane_arrays);
        let single = !legal!("strip_mine.single-arrays", lane_arrays.is_empty())
            || !legal!("strip_mine.single-strided", !has_strided)
            || !legal!("strip_mine.single-wrapping", !wraps)
            || !legal!("strip_mine.single-masked", !has_masked_loops)
            || !legal!("strip_mine.single-ragged", stride_length.is_none());
        let rows = [self.most_rows, ROWS].into_iter().find(|&rows| {
            let holds = u64::from(Strips::BLOCK_WIDTH) * u64::from(rows) * bytes <= MAX_BYTES;
            shares && !single && exprs * rows as usize <= MAX_EXPRS && holds
        });
        let rows = rows.unwrap_or(1);
        let mut width = stride_length.unwrap_or(if has_masked_loops {
            self.width.min(MAX_MASKED_WIDTH)
        } else if rows == 1 {
            self.width.max(self.block_width(bytes))
        } else {
            self.width
        });
        let most = if stride_length.is_some() { 2 * MAX_BYTES } else { MAX_BYTES };
        if !lane_arrays.is_empty() {
            width = self.array_width(bytes_of(function, &lane_arrays));
        }
        while u64::from(width) * u64::from(rows) * bytes > most && width > Strips::BLOCK_WIDTH {
            width /= 2;
        }
        // If the stride is the size of a block or of the grid, accesses are contiguous over a whole row.
        if stride_length.is_some_and(|stride_length| stride_length > MAX_SHORT_ROW && stride_length > width) {
            return Err(Some(Refusal::StrideTooLarge));
        }
        let rows = if u64::from(width) * u64::from(rows) * bytes > most { 1 } else { rows };
        if rows == 1 && counters.iter().any(|counter| self.tiles.contains(counter)) {
            return Err(Some(Refusal::NoTile));
        }
        let carries = nodes.iter().any(|node| carries(node, false));
        let has_plain_lanes = !has_strided && !has_masked_loops && stride_length.is_none();
        // A loop around it in a block loads the same rows again.
        let repeats_in_block = self.width == Strips::BLOCK_WIDTH && repeats;
        let has_arrays = !lane_arrays.is_empty();
        if rows == 1 && !repeats_in_block && has_plain_lanes && !has_arrays && all_stream(self.peeler, nodes) {
            return Err(Some(Refusal::Streams));
        }
        let is_short = stride_length.is_some_and(|stride_length| stride_length <= MAX_SHORT_ROW);
        if rows == 1 && !has_strided && !carries && !is_short && !has_arrays {
            return Err(Some(Refusal::CarriesNothing));
        }
        let is_ragged = stride_length.is_some();
        if !legal!("strip_mine.strided-or-ragged", !is_ragged || !has_strided)
            || !legal!("strip_mine.wrapping-or-ragged", !is_ragged || !wraps)
        {
            return Err(Some(Refusal::Combination));
        }
        // A strip that is wider than the row would be a remainder.
        if let Some(short_row) = self.short_row.filter(|_| rows == 1 && stride_length.is_none()) {
            width = width.min(short_row);
        }
        let mut inside = vec![0; self.loads.len()];
        count_loads(nodes, &mut inside);
        let (mut exposed, mut always) = (BTreeSet::new(), BTreeSet::new());
        expose(nodes, &mut always, &mut exposed);
        let is_dead = |local: &LocalId| {
            legal!("strip_mine.not-read-after", self.loads[local.index()] <= inside[local.index()])
                && legal!("strip_mine.not-carried", !repeats || !exposed.contains(local))
        };
        let live_out: Vec<LocalId> = stored.into_iter().filter(|local| !is_dead(local)).collect();
        // A local that a strip stores, but does not always assign, must have its old value.
        exposed.extend(live_out.iter().filter(|local| !legal!("strip_mine.always-stored", always.contains(local))));
        let mut shared = BTreeSet::new();
        assigned_once(nodes, &mut shared);
        self.branch_on_uniform(nodes, guard);
        for_each_segment(nodes, &mut |segment| {
            segment.split = None;
            segment.lane_guard = after(segment, guard);
        });
        Ok(Strips {
            nodes: Vec::new(),
            guard: (!guard.is_empty()).then(|| guard.clone()),
            width: if has_strided { STRIDED_WIDTH } else { width },
            rows,
            exact: stride_length.is_some() && !guessed,
            scalar: has_strided,
            transposed: false,
            shared: shared.into_iter().collect(),
            lane_locals: slots.into_iter().collect(),
            live_in: exposed.into_iter().collect(),
            live_out,
            before: Vec::new(),
            inlines_math: has_masked_loops,
            lane_arrays,
        })
    }

    /// The conditions of a segment's guard in addition to those of the guard around it, if there are any and the whole
    /// block agrees on each of them.
    fn uniform_conditions(&self, segment: &Segment, guard: &Guard) -> Option<Vec<(ExprId, bool)>> {
        let more = after(segment, guard)?;
        let Peeler { function, uniformity, .. } = self.peeler;
        // Other loops remain over whole rows, where the condition is tested once for a row.
        let is_uniform = !self.strided.is_empty()
            && legal!("strip_mine.no-range", more.ranges.is_empty())
            && legal!(
                "strip_mine.uniform-condition",
                more.rows.iter().all(|&(cond, _)| !uniformity.varies(function, cond))
            );
        is_uniform.then_some(more.rows)
    }

    /// Whether each lane tests whether it runs the segment.
    fn tests_lanes(&self, segment: &Segment, guard: &Guard) -> bool {
        after(segment, guard).is_some() && self.uniform_conditions(segment, guard).is_none()
    }

    /// Makes uniform branches of the uniform conditions of segments: all segments of a strip have the same guard.
    fn branch_on_uniform(&self, nodes: &mut [Node], guard: &Guard) {
        for node in nodes {
            if let Node::Segment(segment) = node {
                let conditions = self.uniform_conditions(segment, guard).unwrap_or_default();
                if !conditions.is_empty() {
                    let mut rest = Guard { recompute: Vec::new(), ..guard.clone() };
                    self.peeler.complete(&mut rest);
                    segment.guard = (!rest.is_empty()).then_some(rest);
                }
                for (cond, negated) in conditions.into_iter().rev() {
                    let inside = vec![std::mem::replace(node, Node::Barrier)];
                    let (then, otherwise) = if negated { (Vec::new(), inside) } else { (inside, Vec::new()) };
                    *node = Node::If { cond, then, otherwise };
                }
            } else {
                node.parts_mut().into_iter().for_each(|part| self.branch_on_uniform(part, guard));
            }
        }
    }
}

/// The conditions of a segment's guard in addition to those of the guard around it.
fn after(segment: &Segment, guard: &Guard) -> Option<Guard> {
    segment.guard.as_ref().and_then(|own| own.after(guard)).filter(|more| !more.is_empty())
}
