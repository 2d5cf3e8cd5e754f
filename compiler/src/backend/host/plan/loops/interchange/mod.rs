//! Loop interchange: moves a sequential loop out of the thread loop.
//!
//! ```text
//! for each thread t:                      for k in range(n):
//!     for k in range(n):                      for each thread t:
//!         total += a[k, t]                        total += a[k, t]
//! ```
//!
//! The pass inserts a barrier at the end of the loop's body. `regions/form` then makes the loop a loop of the block,
//! with thread loops inside, as it does for a loop that has a barrier in the program.
//!
//! Legal for a loop with a uniform exit, because threads have no order between two barriers. The pass therefore rejects
//! a loop that needs a mask after the barrier is inserted ([`CountMasks`]), and innermost loops with calls, atomics or other
//! operations. [`grid_stride`] and [`lane_trip_counts`] first make some divergent exits uniform; [`masked_exits`] is a
//! pass of its own.
//!
//! A *row* is the threads of a block along `x`. Interchange pays for innermost loops, and with them for the loops
//! around them, if
//!
//! - each access is uniform in a row or has unit stride along it, so that LLVM vectorizes over the row; gathers are
//!   accepted beside loads with unit stride, if the loop divides no integers;
//! - each thread accesses its own row of memory, and the loop has a recurrence that LLVM cannot vectorize: a strip of
//!   threads then interleaves the recurrences, or transposes the accesses;
//! - the loop calls math functions, which are faster for vectors whatever the strides are;
//! - the loop has few iterations, and several rows load the same elements: a tile of rows shares these loads.
//!
//! LLVM unrolls other loops of few iterations, and each other loop stays inside the thread loop.

mod grid_stride;
mod lane_trip_counts;
mod split_guards;

use crate::{
    analysis::escapes,
    backend::host::plan::{
        analysis::{
            candidates::{self, uniformity},
            recurrences,
            structure::{OTHERWISE, counter, cut_here, decremented, induction_variable, list_at},
            vectorizable::{MAX_INLINED_MATH, access_patterns, division, math_calls, rows_share},
        },
        plan_ir::{CountMasks, InterchangedLoops, LaneTripCounts, Refusal, Refused, Transformation},
    },
    ir::{Block, ExprKind, Function, LocalId, Stmt, StmtKind, for_each_expr, for_each_stmt},
};

/// Largest constant trip count of a short loop, which LLVM unrolls.
const MAX_SHORT_TRIP_COUNT: i128 = 32;

/// Least trip count of a short loop that several rows run as a tile.
const MIN_TILE_TRIP_COUNT: i128 = 16;

/// The kinds of loops that are interchanged in addition to those with uniform and unit-stride accesses.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(crate) struct InterchangeKinds {
    /// Loops in which each thread accesses its own row of memory.
    pub strided: bool,
    /// Those of them that call math functions.
    pub strided_math: bool,
    /// Those of them with a trip count for each lane.
    pub lane_trip_counts: bool,
    /// Loops that call math functions, whatever their strides are.
    pub math: bool,
}

/// Interchanges loops of a kernel's body.
pub(crate) fn interchange_loops(
    function: &mut Function,
    body: &mut Block,
    kinds: InterchangeKinds,
    masks: CountMasks,
) -> InterchangedLoops {
    let mut interchanged = InterchangedLoops::default();
    split_guards::nest_guards(function, body);
    split_guards::split_arms(function, body);
    while let Some(rewritten) = grid_stride::rewrite_one(function, body, masks) {
        interchanged.any = true;
        interchanged.may_wrap |= rewritten.may_wrap;
        interchanged.strides.push(rewritten.stride);
    }
    let candidates::Found { loops, refused } = candidates::candidates(function, body);
    interchanged.refused = refused;
    for (path, span) in loops {
        match interchange_uniform(function, body, &path, kinds, masks) {
            Ok(loop_) => {
                interchanged.any = true;
                interchanged.counters.extend(loop_.counter);
                interchanged.strided.extend(loop_.counter.filter(|_| loop_.strided));
                interchanged.strided_math.extend(loop_.counter.filter(|_| loop_.strided && loop_.calls_math));
                interchanged.lane_trip_counts.extend(loop_.lane_trip_counts);
                interchanged.tiles.extend(loop_.counter.filter(|_| loop_.is_short));
            }
            Err(why) => {
                let what = Transformation::Interchange;
                interchanged.refused.extend(why.map(|why| Refused { span, what, why }));
            }
        }
    }
    let mut loops = vec![0_u32; function.locals.len()];
    for_each_stmt(body, &mut |stmt| {
        if let StmtKind::Loop { body, step } = &stmt.kind
            && let Some(counter) = induction_variable(function, body, step)
        {
            loops[counter.index()] += 1;
        }
    });
    // A loop that shares its counter with another loop is not strip-mined.
    interchanged.counters.retain(|counter| legal!("interchange.own-counter", loops[counter.index()] == 1));
    interchanged
}

/// The trip count of a loop, if it seems to be at most [`MAX_SHORT_TRIP_COUNT`]: the constant that the exit test at the
/// start of the body compares with, or the distance to it from the constant that a loop begins to count down from.
/// `before` are the statements before the loop.
fn short_trip_count(function: &Function, before: &[Stmt], body: &[Stmt], step: &[Stmt]) -> Option<i128> {
    let Some(Stmt { kind: StmtKind::If { cond, .. }, .. }) = body.first() else { return None };
    let counts_down = decremented(function, step);
    let mut trip_count = None;
    for_each_expr(function, *cond, &mut |id| {
        let ExprKind::Compare(_, a, b) = function.exprs[id].kind else { return };
        let Some(limit) = [a, b].into_iter().find_map(|side| function.int(side)) else { return };
        let compared = [a, b].map(|side| function.local(side));
        let this = match counts_down {
            Some((counter, by)) if compared.contains(&Some(counter)) => {
                let last = before.iter().rev().find(|stmt| stmt.kind.assigned().contains(&counter));
                let Some(Stmt { kind: StmtKind::Assign(_, first), .. }) = last else { return };
                function.int(*first).map(|first| (first - limit).max(0) / by)
            }
            Some(_) | None => Some(limit.abs()),
        };
        trip_count = trip_count.or(this.filter(|&this| this <= MAX_SHORT_TRIP_COUNT));
    });
    trip_count
}

/// Whether all loops of a list have a short constant trip count, except for a loop and those around it. `path` leads to that
/// loop.
fn others_are_short(function: &Function, list: &[Stmt], path: Option<&[usize]>) -> bool {
    list.iter().enumerate().all(|(index, stmt)| {
        let Some(blocks) = stmt.kind.blocks() else { return true };
        let paths = [index, index | OTHERWISE].map(|here| match path {
            Some([next, rest @ ..]) if *next == here => Some(rest),
            Some(_) | None => None,
        });
        let is_around = paths.iter().any(Option::is_some);
        let is_short = if let StmtKind::Loop { body, step } = &stmt.kind {
            is_around || short_trip_count(function, list.get(..index).unwrap_or_default(), body, step).is_some()
        } else {
            true
        };
        is_short && blocks.into_iter().zip(paths).all(|(block, path)| others_are_short(function, block, path))
    })
}

/// A loop that was interchanged.
struct InterchangedLoop {
    counter: Option<LocalId>,
    /// It has accesses without unit stride.
    strided: bool,
    /// It calls math functions.
    calls_math: bool,
    /// It has few iterations.
    is_short: bool,
    /// Each lane has its own trip count.
    lane_trip_counts: Option<LaneTripCounts>,
}

/// Interchanges a loop, if its exit is uniform and the accesses of a row are uniform or contiguous. With
/// `kinds.strided`, other accesses are accepted if the loop has a recurrence: interleaving the recurrences of several
/// threads hides their latency. Otherwise returns the reason; `None` if the path does not lead to a loop.
fn interchange_uniform(
    function: &mut Function,
    body: &mut Block,
    path: &[usize],
    kinds: InterchangeKinds,
    masks: CountMasks,
) -> Result<InterchangedLoop, Option<Refusal>> {
    let InterchangeKinds { strided: may_stride, math: may_compute, .. } = kinds;
    let only_short = others_are_short(function, body, Some(path));
    let mut attempt = body.clone();
    let (&index, outer) = path.split_last().ok_or(None)?;
    let list = list_at(&mut attempt, outer).and_then(|list| list.split_at_mut_checked(index));
    let Some((before, [Stmt { kind: StmtKind::Loop { body: iteration, step }, span }, ..])) = list else {
        return Err(None);
    };
    let counts = counter(function, iteration, step);
    let counter = induction_variable(function, iteration, step);
    let math_calls = math_calls(function, iteration);
    let calls_math = may_compute && math_calls > 0;
    // LLVM does not vectorize a loop that it has unrolled if the threads leave it by another exit.
    let has_exits = iteration.get(1..).is_some_and(|rest| escapes(rest).breaks);
    // LLVM unrolls a loop with few math functions and vectorizes its copies, unless another loop stays in the region.
    let is_inlined =
        |trip_count: i128| !calls_math || (trip_count * math_calls as i128 <= MAX_INLINED_MATH as i128 && only_short);
    let trip_count =
        short_trip_count(function, before, iteration, step).filter(|&count| !has_exits && is_inlined(count));
    let is_short = trip_count.is_some();
    // [`rows_share`] is tested below, because it takes longer. The trip count of a tile loop is about the length of a
    // row; a shorter row does not fill a strip.
    if is_short && (trip_count < Some(MIN_TILE_TRIP_COUNT) || !may_stride || counter.is_none()) {
        return Err(Some(Refusal::FewIterations));
    }
    let has_recurrence = may_stride && counter.is_some() && recurrences::has_some(function, iteration, step);
    let span = *span;
    let in_turns = counter.map_or(0, |counter| {
        lane_trip_counts::reads(function, iteration, counter) + lane_trip_counts::reads(function, step, counter)
    });
    iteration.push(cut_here(span));
    let mut lane_trip_counts = None;
    let divergence = masks(function, &attempt).excess(&masks(function, body));
    if !legal!("interchange.uniform-exit", divergence.is_none()) {
        // After the rewrite the counter is uniform; a read after the loop would need each thread's own value.
        let is_local = counter.is_some_and(|counter| lane_trip_counts::reads(function, &attempt, counter) == in_turns);
        let is_local = legal!("lane_trip_counts.counter-in-loop", is_local);
        if !may_stride || !kinds.lane_trip_counts || !(has_recurrence || calls_math) || !is_local {
            return Err(divergence);
        }
        let list = list_at(&mut attempt, outer).and_then(|list| list.get_mut(index));
        let Some(Stmt { kind: StmtKind::Loop { body: iteration, step }, .. }) = list else { return Err(None) };
        iteration.pop();
        let rewritten = counts.and_then(|counts| lane_trip_counts::rewrite(function, counts, iteration, step));
        lane_trip_counts = Some(rewritten.ok_or(divergence)?);
        iteration.push(cut_here(span));
        if masks(function, &attempt).excess(&masks(function, body)).is_some() {
            return Err(divergence);
        }
    }
    let (fixed, uniformity) = uniformity(function, &attempt);
    let interchanged = list_at(&mut attempt, outer).and_then(|list| list.get(index)).cloned();
    let Some(Stmt { kind: StmtKind::Loop { body: iteration, .. }, .. }) = interchanged else { return Err(None) };
    let access_patterns = access_patterns(function, &iteration, &attempt, &fixed, &uniformity);
    let gathers = access_patterns.next && division(function, &iteration).is_none();
    let refusal = access_patterns.refusal(gathers, may_stride && counter.is_some());
    let strided = refusal.is_some();
    // Vectors of math functions gain more than accesses without unit stride lose, unless these can be transposed.
    let has_strided = access_patterns.strided.is_some() && access_patterns.gathers.is_none();
    let may_transpose = has_strided && may_stride && counter.is_some();
    let strided_math = may_transpose && calls_math && kinds.strided_math;
    let strided = strided && (!calls_math || strided_math);
    if lane_trip_counts.is_some() && !(strided && may_transpose) {
        return Err(divergence);
    }
    if strided && !has_recurrence && !strided_math {
        return Err(refusal);
    }
    if is_short && (strided || !rows_share(function, &iteration, &fixed, &uniformity)) {
        return Err(Some(Refusal::FewIterations));
    }
    *body = attempt;
    Ok(InterchangedLoop { counter, strided, calls_math, is_short, lane_trip_counts })
}
