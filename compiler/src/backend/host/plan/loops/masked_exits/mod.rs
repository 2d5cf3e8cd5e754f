//! Masked loops: loops with divergent exits (`break`, `while`, `for k in range(lengths[i])`), rewritten so that a strip
//! of threads runs all iterations in lockstep while any lane is active.
//!
//! Each lane has a predicate, `alive`, which says whether it is still in the loop. The body of an iteration becomes a
//! branch on it, and each jump becomes a branch around the statements that it skips:
//!
//! ```text
//! for k in range(n):                    for k in range(n):
//!     if total > limit:                     if alive:
//!         break                                 if total > limit: alive = 0
//!     total += table[k]                     if no thread is alive: break
//!                                           value = table[k]
//!                                           if alive:
//!                                               total += value
//! ```
//!
//! After the test for active lanes, at least one lane runs the start of the body, so loads from uniform addresses need
//! no mask there. Once a strip has `MAX_SERIAL_LANES` active lanes or fewer, from iteration `MIN_SERIAL_ITERATION`
//! on, these lanes run their remaining iterations one after the other.
//!
//! Legal if lanes that have left may go on counting: the loop's counter is read by no other code, or a copy of it counts.
//! Does not pay if the rewritten loop needs masks, that is, if its remaining exits are not uniform, and for loops that
//! divide by varying integers or call math functions that are not vectorized, loops with accesses that are neither
//! uniform nor contiguous in a row, and loops that LLVM vectorizes within a single thread.
//!
//! Profitable also for math functions: a full strip inlines them, and LLVM computes them for a vector of lanes. The
//! lanes that run alone, and the last lanes of a row, call them.

mod build;

use crate::{
    analysis::{Rematerializable, escapes, for_each_mention},
    backend::host::plan::{
        analysis::{
            candidates,
            divergence::Uniformity,
            guarded::Regions,
            recurrences,
            structure::{counter, cut_here, list_at},
            vectorizable,
        },
        plan_ir::{CountMasks, ExitAssignments, MaskedLoop, Refusal, Refused, Transformation},
    },
    ir::{
        Arith, BinaryOp, Block, Class, Const, ExprId, ExprKind, Function, LocalId, MathFn, Stmt, StmtKind, Type,
        for_each_expr_of_stmt, for_each_stmt,
    },
    normalize::jumps,
    source::Span,
};
use build::{Build, is_exit};

/// Most calls of math functions in a masked loop: the code of each is inlined.
const MAX_MATH_CALLS: u32 = 16;

/// Rewrites the loops of a kernel's body that have divergent exits and whose accesses are uniform or contiguous in a
/// row. Rewritten loops are profitable only as part of a strip; the caller plans again if a strip does not hold
/// one.
///
/// With `may_compute`, loops may call math functions, which the strip must inline. Adds the loops with divergent exits
/// that are not rewritten to `refused`.
pub(crate) fn mask_loops(
    function: &mut Function,
    body: &mut Block,
    (exits, may_compute): (ExitAssignments, bool),
    (masks, refused): (CountMasks, &mut Vec<Refused>),
) -> Vec<MaskedLoop> {
    let mut masked_loops = Vec::new();
    // In reverse order, because rewriting a loop shifts the indices of the statements after it.
    for (path, span) in candidates::candidates(function, body).loops.into_iter().rev() {
        let tried = may_mask(function, body, &path, may_compute).and_then(|()| {
            let attempt = |own_test| attempt(function, body, &path, (own_test, exits), masks);
            attempt(false).or_else(|first| attempt(true).map_err(|second| second.or(first)))
        });
        match tried {
            Ok((rewritten, block, masked_loop)) => {
                (*function, *body) = (rewritten, block);
                masked_loops.push(masked_loop);
            }
            Err(why) => refused.extend(why.map(|why| Refused { span, what: Transformation::Mask, why })),
        }
    }
    masked_loops
}

/// Whether a loop has divergent exits and vectors of threads may pay.
///
/// # Errors
///
/// The reason why they do not pay; `None` if the loop has no divergent exits.
fn may_mask(function: &Function, body: &Block, path: &[usize], may_compute: bool) -> Result<(), Option<Refusal>> {
    let mut body = body.clone();
    let Some((&index, outer)) = path.split_last() else { return Err(None) };
    let Some(Stmt { kind: StmtKind::Loop { body: iteration, .. }, span }) =
        list_at(&mut body, outer).and_then(|list| list.get_mut(index))
    else {
        return Err(None);
    };
    // A branch with a barrier inside may be a guarded region, in which a counter with a uniform first value is uniform.
    iteration.push(cut_here(*span));
    let fixed = Rematerializable::of(function, &body);
    let regions = Regions::of(function, &body, &fixed, &[]);
    // No local is pinned as varying: a counter is uniform even where each thread's own code increments it.
    let uniformity = Uniformity::of(function, &body, &regions, &[]);
    let Some(stmt) = list_at(&mut body, outer).and_then(|list| list.get(index)) else { return Err(None) };
    let here = std::slice::from_ref(stmt);
    if !uniformity.splits_loop(stmt) {
        return Err(None);
    }
    if let Some(span) = vectorizable::division(function, here) {
        return Err(Some(Refusal::Divides(span)));
    }
    if vectorizable::calls_math(function, here) && !(may_compute && has_vector_math(function, here)) {
        return Err(Some(Refusal::Math));
    }
    Ok(())
}

/// Whether a strip of threads may call the math functions of a loop: LLVM vectorizes each of them once it is inlined, and
/// they are not too many. Functions with a loop of their own are not vectorized.
fn has_vector_math(function: &Function, list: &[Stmt]) -> bool {
    let (mut calls, mut has_loops) = (0, false);
    for_each_stmt(list, &mut |stmt| {
        for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
            if let Class::Arith(Arith::Math(of, _)) = function.class(id) {
                calls += u32::from(!vectorizable::is_short_math(of));
                has_loops |= matches!(of, MathFn::Gamma | MathFn::Lgamma | MathFn::Fmod | MathFn::Remainder);
            }
        });
    });
    calls <= MAX_MATH_CALLS && !has_loops
}

/// The body with one loop rewritten, if the result needs no mask and its accesses are uniform or contiguous. With
/// `own_test` the loop's first test is evaluated per lane; otherwise it remains the loop's uniform exit.
///
/// # Errors
///
/// The reason, if it is known.
fn attempt(
    function: &Function,
    body: &Block,
    path: &[usize],
    how: (bool, ExitAssignments),
    masks: CountMasks,
) -> Result<(Function, Block, MaskedLoop), Option<Refusal>> {
    let (&index, outer) = path.split_last().ok_or(None)?;
    let before = masks(function, body);
    let (mut function, mut body) = (function.clone(), body.clone());
    let mut mentions = vec![0_u32; function.locals.len()];
    for_each_mention(&function, &body, &mut |local| mentions[local.index()] += 1);
    let list = list_at(&mut body, outer).ok_or(None)?;
    let (masked_loop, index) = rewrite(&mut function, list, index, &mentions, how)?;
    let divergence = masks(&function, &body).excess(&before);
    if divergence.is_some() {
        return Err(divergence);
    }
    let (fixed, uniformity) = candidates::uniformity(&function, &body);
    let rewritten = list_at(&mut body, outer).and_then(|list| list.get(index)).cloned();
    let Some(Stmt { kind: StmtKind::Loop { body: iteration, step }, .. }) = rewritten else { return Err(None) };
    let alone = |stmt: &Stmt| matches!(stmt.kind, StmtKind::If { cond, .. } if cond == masked_loop.few_active);
    let together: Block = iteration.iter().chain(&step).filter(|stmt| !alone(stmt)).cloned().collect();
    vectorizable::check_accesses(&function, &together, &body, &fixed, &uniformity)?;
    // LLVM vectorizes such a loop within one thread.
    let is_uniform = |pointer: ExprId| vectorizable::is_row_uniform(&function, &fixed, &uniformity, pointer);
    if masked_loop.is_reorderable && accesses(&function, &together).into_iter().all(is_uniform) {
        return Err(Some(Refusal::WithinThread));
    }
    let rewritten = list_at(&mut body, outer).and_then(|list| list.get_mut(index));
    let Some(Stmt { kind: StmtKind::Loop { body: iteration, .. }, .. }) = rewritten else { return Err(None) };
    share_loads(&mut function, iteration, &fixed, &uniformity);
    Ok((function, body, masked_loop))
}

/// Rewrites one loop of a list. Returns the loop's description and its new index.
///
/// # Errors
///
/// The reason, if it is known.
fn rewrite(
    function: &mut Function,
    list: &mut Block,
    index: usize,
    mentions: &[u32],
    (own_test, exits): (bool, ExitAssignments),
) -> Result<(MaskedLoop, usize), Option<Refusal>> {
    let here = list.get(index).cloned();
    let Some(Stmt { kind: StmtKind::Loop { body: mut iteration, mut step }, span }) = here else { return Err(None) };
    let has_trip_count = counter(function, &iteration, &step).is_some();
    let is_reorderable =
        has_trip_count && !escapes(&iteration[1..]).breaks && !recurrences::has_some(function, &iteration, &step);
    let uniform_counter = uniform_counter(function, list, index, mentions).ok_or(Some(Refusal::CounterStops))?;
    let mut build = Build { function, span };
    while build.named_test(&mut iteration, mentions) || build.part_test(&mut iteration) {}
    let (alive, iterations) = (build.local("alive"), build.local("turns"));
    let mut first = vec![build.assign(alive, 1), build.assign(iterations, 0)];
    let mut left = Block::new();
    let mut own = None;
    if let Some(UniformCounter { increments_in_body, local, first_value }) = uniform_counter {
        if increments_in_body {
            step = vec![iteration.pop().ok_or(None)?];
        }
        let new = build.function.locals.push(build.function.locals[local].clone());
        own = Some((local, new));
        if let Some(value) = first_value {
            let ty = build.function.locals[local].ty;
            let value = build.push(ExprKind::Const(Const::Int(value)), ty);
            first.push(build.stmt(StmtKind::Assign(new, value)));
            build.rename(&mut iteration, local, new);
            build.rename(&mut step, local, new);
            left.push(build.gets(local, new));
            own = Some((new, local));
        }
        build.read_counter(&mut iteration, if first_value.is_some() { new } else { local }, mentions);
    }
    let mut alone = build.alone(&iteration, &step, own);
    alone.push(build.assign(alive, 0));
    let mut whole = Block::new();
    let mut after_loop: Option<(ExprId, Stmt)> = None;
    if !own_test {
        let test = iteration.drain(..1.min(iteration.len())).next().ok_or(None)?;
        let StmtKind::If { cond, mut then, otherwise } = test.kind else { return Err(None) };
        if !is_exit(&then, &otherwise) {
            return Err(None);
        }
        // Lanes that are still active run the assignments before the jump.
        let jump = then.pop().ok_or(None)?;
        then.extend(build.again(&left));
        let mut leaves = Block::new();
        if !then.is_empty() {
            match exits {
                ExitAssignments::AfterLoop => {
                    let cond = build.is_set(alive);
                    after_loop = Some((cond, build.stmt(StmtKind::If { cond, then, otherwise: Block::new() })));
                }
                ExitAssignments::InExitBranch => leaves.push(build.when(alive, then)),
            }
        }
        leaves.push(jump);
        whole.push(build.stmt(StmtKind::If { cond, then: leaves, otherwise }));
    }
    let rest = iteration.split_off(build.tests(&iteration));
    let mut leave = |span: Span| {
        build.span = span;
        let mut leaves = build.again(&left);
        leaves.push(build.assign(alive, 0));
        (leaves, build.is_set(alive))
    };
    let tests = jumps::branched(&iteration, Some(&mut leave)).ok_or(None)?;
    let rest = jumps::branched(&rest, Some(&mut leave)).ok_or(None)?;
    build.span = span;
    if !tests.is_empty() {
        whole.push(build.when(alive, tests));
    }
    let [few_active, none_active] = [0, 1].map(|_| build.is_set(iterations));
    let jump = || Stmt { kind: StmtKind::Break, span };
    let leaves = build.stmt(StmtKind::If { cond: none_active, then: vec![jump()], otherwise: Block::new() });
    let then = vec![leaves, build.when(alive, alone), jump()];
    whole.push(build.stmt(StmtKind::If { cond: few_active, then, otherwise: Block::new() }));
    whole.push(build.when(alive, rest));
    let (before, one) = (build.read(iterations), build.push(ExprKind::Const(Const::Int(1)), Type::I32));
    let count = build.push(ExprKind::Binary(BinaryOp::Add, before, one), Type::I32);
    whole.push(build.stmt(StmtKind::Assign(iterations, count)));
    whole.push(cut_here(span));
    list[index].kind = StmtKind::Loop { body: whole, step };
    let at = index + first.len();
    let (cond_after, after_loop) = after_loop.unzip();
    if let Some(after_loop) = after_loop {
        list.insert(index + 1, after_loop);
    }
    list.splice(index..index, first);
    Ok((
        MaskedLoop {
            alive,
            iterations,
            few_active,
            none_active,
            after_loop: cond_after,
            has_trip_count,
            is_reorderable,
            runs_alone: true,
        },
        at,
    ))
}

/// The uniform counter of a loop.
struct UniformCounter {
    /// The increment is the last statement of the body, not the loop's step.
    increments_in_body: bool,
    /// The induction variable.
    local: LocalId,
    /// Its constant first value, if other code reads the local: a copy of it counts in the loop.
    first_value: Option<i128>,
}

/// The counter of a loop, if it has one. Returns `None` if the loop cannot be rewritten because its counter must stop
/// for lanes that have left.
#[expect(clippy::option_option, reason = "that nothing counts is an answer, too")]
fn uniform_counter(
    function: &Function,
    list: &[Stmt],
    index: usize,
    mentions: &[u32],
) -> Option<Option<UniformCounter>> {
    let here = list.get(index..=index)?;
    let StmtKind::Loop { body, step } = &here.first()?.kind else { return None };
    let (stmt, increments_in_body) = match (step.as_slice(), body.last()) {
        ([stmt], _) => (stmt, false),
        ([], Some(stmt)) if legal!("masked_exits.increment-runs", !escapes(body).continues) => (stmt, true),
        ([], _) => return Some(None),
        ([_, _, ..], _) => return None,
    };
    let none = if increments_in_body { Some(None) } else { None };
    let StmtKind::Assign(local, value) = stmt.kind else { return none };
    let ExprKind::Binary(BinaryOp::Add | BinaryOp::AddExact | BinaryOp::Sub | BinaryOp::SubExact, a, by) =
        function.exprs[value].kind
    else {
        return none;
    };
    let is_int = matches!(function.locals[local].ty, Type::I64 | Type::I32);
    let (mut inside, mut assigned) = (0, 0);
    for_each_mention(function, here, &mut |of| inside += u32::from(of == local));
    for_each_stmt(here, &mut |stmt| assigned += stmt.kind.assigned().iter().filter(|&&of| of == local).count());
    let is_counter = function.local(a) == Some(local) && function.int(by).is_some() && is_int;
    // A counter with several increments differs between lanes.
    if !is_counter || assigned != 1 {
        return none;
    }
    let mut starts = None;
    let mut known = 0;
    for stmt in &list[..index] {
        let mut seen = 0;
        for_each_mention(function, std::slice::from_ref(stmt), &mut |of| seen += u32::from(of == local));
        if let StmtKind::Assign(to, value) = stmt.kind
            && to == local
            && seen == 1
        {
            known += 1;
            starts = function.int(value);
        } else if seen > 0 {
            starts = None;
        }
    }
    let is_own = legal!("masked_exits.own-counter", mentions.get(local.index()) == Some(&(inside + known)));
    if is_own && known > 0 {
        return Some(Some(UniformCounter { increments_in_body, local, first_value: None }));
    }
    match starts {
        Some(value) => Some(Some(UniformCounter { increments_in_body, local, first_value: Some(value) })),
        None => none,
    }
}

/// Hoists loads from uniform addresses out of the branch on `alive`, so that they run once for all lanes. Legal because
/// at least one lane is active after the exit of the loop.
fn share_loads(function: &mut Function, iteration: &mut Block, fixed: &Rematerializable, uniformity: &Uniformity) {
    // Two statements follow the branch: the increment of the iteration count, and the barrier.
    let Some(at) = iteration.len().checked_sub(3) else { return };
    let Some(Stmt { kind: StmtKind::If { then, .. }, span }) = iteration.get_mut(at) else { return };
    let loads = Build { function, span: *span }
        .loads_of_all(then, &|function, pointer| vectorizable::is_row_uniform(function, fixed, uniformity, pointer));
    iteration.splice(at..at, loads);
}

/// The addresses of all accesses in statements.
fn accesses(function: &Function, list: &[Stmt]) -> Vec<ExprId> {
    let mut found = Vec::new();
    for_each_stmt(list, &mut |stmt| {
        if let StmtKind::Store { pointer, .. } = stmt.kind {
            found.push(pointer);
        }
        for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
            if let ExprKind::Load(pointer, _) = function.exprs[id].kind {
                found.push(pointer);
            }
        });
    });
    found
}
