//! Loop interchange: moves a sequential loop out of the thread loop.
//!
//! ```text
//! for each thread t:                      for k in range(n):
//!     for k in range(n):                      for each thread t:
//!         total += a[k, t]                        total += a[k, t]
//! ```
//!
//! The pass inserts a barrier at the end of the loop's body. [`form::cut`] then makes the loop a loop of the block,
//! with thread loops inside, as it does for a loop that has a barrier in the program.
//!
//! Legal for a loop with a uniform exit, because threads have no order between two barriers. The pass therefore rejects
//! a loop that needs a mask after the barrier is inserted ([`masks`]), and innermost loops with calls, atomics or other
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

use crate::{
    analysis::{Rematerializable, escapes},
    backend::host::plan::{
        analysis::{
            divergence::Uniformity,
            gathers::Loaded,
            recurrences,
            strides::{Form, Forms},
            structure::{counter, cut_here, decremented, induction_variable, list_at},
        },
        loops::{
            candidates::{self, uniformity},
            grid_stride::{self, Stride},
            lane_trip_counts::{self, LaneTripCounts},
            masked_exits, split_guards,
        },
        regions::form,
        shared_by_block,
    },
    ir::{
        Arith, Block, Class, ExprId, ExprKind, Function, LocalId, MathFn, SpecialRegister, Stmt, StmtKind, Unit,
        for_each_expr, for_each_expr_of_stmt, for_each_stmt,
    },
};

/// Largest constant trip count of a short loop, which LLVM unrolls.
const MAX_SHORT_TRIP_COUNT: i128 = 32;

/// Least trip count of a short loop that several rows run as a tile.
const MIN_TILE_TRIP_COUNT: i128 = 16;

/// The loops that [`interchange_loops`] interchanged.
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
}

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
) -> InterchangedLoops {
    let mut interchanged = InterchangedLoops::default();
    split_guards::nest_guards(function, body);
    split_guards::split_arms(function, body);
    while let Some(rewritten) = grid_stride::rewrite_one(function, body, &masks) {
        interchanged.any = true;
        interchanged.may_wrap |= rewritten.may_wrap;
        interchanged.strides.push(rewritten.stride);
    }
    for path in candidates::candidates(function, body) {
        if let Some(loop_) = interchange_uniform(function, body, &path, kinds) {
            interchanged.any = true;
            interchanged.counters.extend(loop_.counter);
            interchanged.strided.extend(loop_.counter.filter(|_| loop_.strided));
            interchanged.strided_math.extend(loop_.counter.filter(|_| loop_.strided && loop_.calls_math));
            interchanged.lane_trip_counts.extend(loop_.lane_trip_counts);
            interchanged.tiles.extend(loop_.counter.filter(|_| loop_.is_short));
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
    interchanged.counters.retain(|counter| loops[counter.index()] == 1);
    interchanged
}

/// Whether a loop calls math functions other than those of a few instructions.
pub(crate) fn calls_math(function: &Function, block: &[Stmt]) -> bool {
    let mut calls_math = false;
    for_each_stmt(block, &mut |stmt| {
        for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
            if let Class::Arith(Arith::Math(of, _)) = function.class(id) {
                calls_math |= !is_short_math(of);
            }
        });
    });
    calls_math
}

/// Whether a math function is a few instructions.
pub(crate) fn is_short_math(of: MathFn) -> bool {
    matches!(
        of,
        MathFn::Bits
            | MathFn::CanonicalNan
            | MathFn::Ceil
            | MathFn::Copysign
            | MathFn::Floor
            | MathFn::Fma
            | MathFn::Isfinite
            | MathFn::Isinf
            | MathFn::Isnan
            | MathFn::OfBits
            | MathFn::RoundEven
            | MathFn::Sqrt
            | MathFn::Trunc
    )
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
/// threads hides their latency.
fn interchange_uniform(
    function: &mut Function,
    body: &mut Block,
    path: &[usize],
    kinds: InterchangeKinds,
) -> Option<InterchangedLoop> {
    let InterchangeKinds { strided: may_stride, math: may_compute, .. } = kinds;
    let mut attempt = body.clone();
    let (&index, outer) = path.split_last()?;
    let (before, list) = list_at(&mut attempt, outer)?.split_at_mut_checked(index)?;
    let Some(Stmt { kind: StmtKind::Loop { body: iteration, step }, span }) = list.first_mut() else { return None };
    let counts = counter(function, iteration, step);
    let counter = induction_variable(function, iteration, step);
    let calls_math = may_compute && calls_math(function, iteration);
    // LLVM does not vectorize a loop that it has unrolled if the threads leave it by another exit.
    let has_exits = iteration.get(1..).is_some_and(|rest| escapes(rest).breaks);
    let trip_count = short_trip_count(function, before, iteration, step).filter(|_| !calls_math && !has_exits);
    let is_short = trip_count.is_some();
    // [`rows_share`] is tested below, because it takes longer. The trip count of a tile loop is about the length of a
    // row; a shorter row does not fill a strip.
    if is_short && (trip_count < Some(MIN_TILE_TRIP_COUNT) || !may_stride || counter.is_none()) {
        return None;
    }
    let has_recurrence = may_stride && counter.is_some() && recurrences::has_some(function, iteration, step);
    let span = *span;
    let in_turns = counter.map_or(0, |counter| {
        lane_trip_counts::reads(function, iteration, counter) + lane_trip_counts::reads(function, step, counter)
    });
    iteration.push(cut_here(span));
    let mut lane_trip_counts = None;
    if masks(function, &attempt) > masks(function, body) {
        // After the rewrite the counter is uniform; a read after the loop would need each thread's own value.
        let is_local = counter.is_some_and(|counter| lane_trip_counts::reads(function, &attempt, counter) == in_turns);
        if !may_stride || !kinds.lane_trip_counts || !(has_recurrence || calls_math) || !is_local {
            return None;
        }
        let list = list_at(&mut attempt, outer)?;
        let Some(Stmt { kind: StmtKind::Loop { body: iteration, step }, .. }) = list.get_mut(index) else {
            return None;
        };
        iteration.pop();
        lane_trip_counts = Some(lane_trip_counts::rewrite(function, counts?, iteration, step)?);
        iteration.push(cut_here(span));
        if masks(function, &attempt) > masks(function, body) {
            return None;
        }
    }
    let (fixed, uniformity) = uniformity(function, &attempt);
    let interchanged = list_at(&mut attempt, outer).and_then(|list| list.get(index)).cloned();
    let Some(Stmt { kind: StmtKind::Loop { body: iteration, .. }, .. }) = interchanged else { return None };
    let access_patterns = access_patterns(function, &iteration, &attempt, &fixed, &uniformity);
    let gathers = access_patterns.next && !masked_exits::divides(function, &iteration);
    let strided = access_patterns.strided || (access_patterns.gathers && !gathers);
    // Vectors of math functions gain more than accesses without unit stride lose, unless these can be transposed.
    let may_transpose = access_patterns.strided && !access_patterns.gathers && may_stride && counter.is_some();
    let strided_math = may_transpose && calls_math && kinds.strided_math;
    let strided = strided && (!calls_math || strided_math);
    if (lane_trip_counts.is_some() && !(strided && may_transpose))
        || (strided && !has_recurrence && !strided_math)
        || (is_short && (strided || !rows_share(function, &iteration, &fixed, &uniformity)))
    {
        return None;
    }
    *body = attempt;
    Some(InterchangedLoop { counter, strided, calls_math, is_short, lane_trip_counts })
}

/// Whether a kernel reads `threadIdx.y`.
fn knows_rows(function: &Function) -> bool {
    function.exprs.iter().any(|(_, expr)| expr.kind == ExprKind::Special(SpecialRegister::ThreadIdx(1)))
}

/// The number of masks that a body needs.
pub(crate) fn masks(function: &Function, body: &[Stmt]) -> u32 {
    let mut function = function.clone();
    let fixed = Rematerializable::of(&function, body);
    let (regions, uniformity) = shared_by_block(&function, body, &fixed);
    form::cut(&mut function, body, &uniformity, &regions, (&[], &[]), None).masks
}

/// The access patterns of a row in a loop.
#[derive(Clone, Copy, Debug, Default)]
struct AccessPatterns {
    /// An access without unit stride whose index is not loaded.
    strided: bool,
    /// A gather: a load whose index was loaded.
    gathers: bool,
    /// A load with unit stride.
    next: bool,
}

/// Whether each access of the loop is uniform in a row or has unit stride along it.
pub(crate) fn is_vectorizable(
    function: &Function,
    iteration: &[Stmt],
    body: &[Stmt],
    fixed: &Rematerializable,
    uniformity: &Uniformity,
) -> bool {
    let AccessPatterns { strided, gathers, .. } = access_patterns(function, iteration, body, fixed, uniformity);
    !strided && !gathers
}

/// The access patterns of a row in a loop.
fn access_patterns(
    function: &Function,
    iteration: &[Stmt],
    body: &[Stmt],
    fixed: &Rematerializable,
    uniformity: &Uniformity,
) -> AccessPatterns {
    let mut values: Vec<Option<ExprId>> = vec![None; function.locals.len()];
    let mut counts = vec![0_u32; function.locals.len()];
    for_each_stmt(body, &mut |stmt| {
        for local in stmt.kind.assigned() {
            counts[local.index()] += 1;
            values[local.index()] = if let StmtKind::Assign(_, value) = stmt.kind { Some(value) } else { None };
        }
    });
    let shared = |local: LocalId| !uniformity.local_varies(local);
    let sole = |local: LocalId| if counts[local.index()] == 1 { values[local.index()] } else { None };
    let forms = Forms { function, fixed, shared: &shared, sole: &sole, axis: 0 };
    let loaded = Loaded::of(function, body);
    let mut access_patterns = AccessPatterns::default();
    for_each_stmt(iteration, &mut |stmt| {
        if let StmtKind::Store { pointer, .. } = stmt.kind {
            access_patterns.strided |= !is_unit_stride_or_uniform(&forms, pointer);
        }
        for root in stmt.kind.exprs() {
            for_each_expr(function, root, &mut |id| {
                let ExprKind::Load(pointer, _) = function.exprs[id].kind else { return };
                if is_unit_stride_or_uniform(&forms, pointer) {
                    access_patterns.next |= forms.form(pointer) != Form::Same;
                } else if loaded.is_lookup(function, pointer) {
                    access_patterns.gathers = true;
                } else {
                    access_patterns.strided = true;
                }
            });
        }
    });
    access_patterns
}

/// Whether some loads have unit stride along `x` and are uniform along `y`, and others vary along `y`: a tile of
/// several rows makes the former once for all its rows.
pub(crate) fn rows_share(
    function: &Function,
    list: &[Stmt],
    fixed: &Rematerializable,
    uniformity: &Uniformity,
) -> bool {
    let shared = |local: LocalId| !uniformity.local_varies(local);
    let [along_x, along_y] = [0, 1].map(|axis| Forms { function, fixed, shared: &shared, sole: &|_| None, axis });
    let (mut shares, mut differs) = (false, false);
    for_each_stmt(list, &mut |stmt| {
        for root in stmt.kind.exprs() {
            for_each_expr(function, root, &mut |id| {
                if let ExprKind::Load(pointer, _) = function.exprs[id].kind
                    && let Class::Address { base, by, .. } = function.class(pointer)
                {
                    let alike = along_y.form(base) == Form::Same && along_y.form(by) == Form::Same;
                    shares |= alike && along_x.form(by) == Form::Step;
                    differs |= !alike;
                }
            });
        }
    });
    shares && differs && knows_rows(function)
}

/// Whether a value is uniform in a row.
pub(crate) fn is_row_uniform(
    function: &Function,
    fixed: &Rematerializable,
    uniformity: &Uniformity,
    value: ExprId,
) -> bool {
    let shared = |local: LocalId| !uniformity.local_varies(local);
    Forms { function, fixed, shared: &shared, sole: &|_| None, axis: 0 }.form(value) == Form::Same
}

pub(crate) fn is_unit_stride_or_uniform(forms: &Forms<'_>, pointer: ExprId) -> bool {
    match forms.function.class(pointer) {
        Class::Address { base, by, unit: Unit::Elements } => {
            forms.form(base) == Form::Same && forms.form(by) != Form::Other
        }
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => forms.form(pointer) == Form::Same,
    }
}
