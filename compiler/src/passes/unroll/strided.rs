//! Unrolls strided loops by four, or short read-only ones by eight, so that the loads of several iterations are in
//! flight at a time.
//!
//! ```text
//! loop {                                     loop {
//!     if not $c < $n { break }                   if not ($c < $n) & ($n - $c > 3 * $s) & (0 < $s) & … { break }
//!     $sum = $sum + load $x[$c]                  $sum = $sum + load $x[$c]
//! } step {                                       $c = $c + $s
//!     $c = $c + $s                               …three times more
//! }                                          }
//!                                            loop { …as before, for the remaining iterations }
//! ```
//!
//! LLVM unrolls loops with a step of one. It skips strided ones, since their trip count is a division; the test above
//! needs none. It skips loops with convergent operations, too, because the lanes of a warp may run different numbers of
//! iterations, and so reach different copies of an operation. For shuffles this is legal: a lane waits for those of its
//! mask to reach any shuffle, and unrolling changes no lane's sequence of them.
//!
//! The pass handles only loops with a 64-bit counter that counts up from a non-negative number, and whose bodies read
//! global memory and have no loop, barrier, call or jump: the loads of all iterations can then be hoisted
//! ([`super::front`]). The bodies may write shared and local memory. They may write global memory, and shuffle, if the
//! arrays that an iteration reads do not overlap those that it writes, or only at [elements](super::own) of its own. The order of the iterations is preserved.

use std::collections::BTreeSet;

use weft_artifact::Scalar;

use super::{Constant, front, mentions_grid, own::own_loads};
use crate::{
    ir::{
        Arith, BinaryOp, Block, Class, CompareOp, Expr, ExprId, ExprKind, Function, LocalId, Op, Space, Stmt, StmtKind,
        SyncScope, Type, UnaryOp, for_each_expr_of_stmt, for_each_stmt,
    },
    source::Span,
};

/// The unroll factor.
const UNROLL_FACTOR: i128 = 4;
/// The unroll factor of a short loop that changes only locals, so that more loads are in flight. A loop unrolled by
/// [`UNROLL_FACTOR`] follows it, for the remainder.
const READ_UNROLL_FACTOR: i128 = 8;
/// The maximum number of expressions of a short loop's body.
const SHORT: usize = 48;
/// The maximum stride, so that a multiple cannot overflow.
const LARGEST_STRIDE: i128 = 1 << 60;

/// A loop that can be unrolled.
pub(super) struct Strided {
    pub counter: LocalId,
    /// The operand that the counter is compared with, and the one that is added to it.
    pub stop: ExprId,
    pub stride: ExprId,
    /// The unrolled loop ends where the counter reaches this value, at the latest.
    pub end: i128,
    /// The addresses of loads from elements that only their own iteration changes.
    pub own: BTreeSet<ExprId>,
}

pub(super) fn unroll_in(function: &mut Function, block: &mut Block, constant: Option<&Constant>) {
    let mut index = 0;
    while let Some(stmt) = block.get_mut(index) {
        match &mut stmt.kind {
            StmtKind::If { then, otherwise, .. } => {
                unroll_in(function, then, constant);
                unroll_in(function, otherwise, constant);
            }
            StmtKind::Loop { body, step } => {
                unroll_in(function, body, constant);
                if let Some(strided) = strided(function, body, step, constant) {
                    let (mut iteration, span) = (body.get(1..).unwrap_or_default().to_vec(), stmt.span);
                    let step = step.clone();
                    let in_front = body
                        .first()
                        .map_or_else(Vec::new, |head| front::front(function, head, &mut iteration, &strided, constant));
                    // The remainder loop has the same statements.
                    body.truncate(1);
                    body.extend(iteration.iter().cloned());
                    let iterations: &[i128] = if is_short_read(function, &iteration) {
                        &[READ_UNROLL_FACTOR, UNROLL_FACTOR]
                    } else {
                        &[UNROLL_FACTOR]
                    };
                    for &iterations in iterations {
                        let unrolled = unrolled(function, &strided, (&iteration, &step), (&in_front, iterations), span);
                        block.insert(index, unrolled);
                        index += 1;
                    }
                }
            }
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => {}
        }
        index += 1;
    }
}

fn strided(function: &Function, body: &Block, step: &Block, constant: Option<&Constant>) -> Option<Strided> {
    let [Stmt { kind: StmtKind::Assign(counter, next), .. }] = step.as_slice() else { return None };
    let ExprKind::Binary(BinaryOp::Add, now, stride) = function.exprs[*next].kind else { return None };
    let local = &function.locals[*counter];
    if function.exprs[now].kind != ExprKind::Local(*counter) || !local.nonneg || local.ty != Type::I64 {
        return None;
    }
    let (head, iteration) = body.split_first()?;
    let least = if shuffles(iteration) { 1 } else { 2 };
    let steps = function.int(stride).is_some_and(|stride| (least..=LARGEST_STRIDE).contains(&stride));
    if !steps && function.local(stride).is_none() {
        return None;
    }
    let ExprKind::Unary(UnaryOp::Not, goes_on) = function.exprs[head.kind.exit_condition()?].kind else { return None };
    let stop = upper_bound(function, goes_on, *counter)?;
    // A loop that writes with a stride of the whole grid is not unrolled: one iteration of each thread saturates
    // memory, and the addresses of four iterations are far apart.
    let constant = constant.filter(|constant| !mentions_grid(function, stride, &constant.of_grid));
    let own = own_loads(function, iteration, *counter, constant);
    can_unroll(function, iteration, (*counter, &own), constant).then_some(Strided {
        counter: *counter,
        stop,
        stride,
        end: i128::from(i64::MAX) - LARGEST_STRIDE,
        own,
    })
}

/// The `stop` of `counter < stop`, alone or as the test for positive steps.
fn upper_bound(function: &Function, test: ExprId, counter: LocalId) -> Option<ExprId> {
    match function.class(test) {
        Class::Arith(Arith::Compare(CompareOp::Lt, now, stop))
            if function.local(now) == Some(counter)
                && matches!(function.exprs[stop].kind, ExprKind::Local(_) | ExprKind::Const(_)) =>
        {
            Some(stop)
        }
        Class::Arith(Arith::Select(_, upwards, _) | Arith::Binary(BinaryOp::And, _, upwards)) => {
            upper_bound(function, upwards, counter)
        }
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
    }
}

/// Whether an iteration reads global memory and changes only locals and memory that does not delay these loads.
fn can_unroll(
    function: &Function,
    iteration: &[Stmt],
    (counter, own): (LocalId, &BTreeSet<ExprId>),
    constant: Option<&Constant>,
) -> bool {
    let mut plain = true;
    let may_change = |pointer: ExprId| is_own(function, pointer) || constant.is_some() && is_global(function, pointer);
    let may_change_if_pointer = |arg: &ExprId| function.exprs[*arg].ty.scalar().is_some() || may_change(*arg);
    for_each_stmt(iteration, &mut |stmt| {
        plain &= match &stmt.kind {
            StmtKind::Assign(local, _) => *local != counter,
            StmtKind::If { .. } => true,
            StmtKind::Store { pointer, .. } => may_change(*pointer),
            StmtKind::Op { op, results, args } => {
                let row = op.row();
                let moves = !row.orders && row.together == SyncScope::None && !row.outside && !row.may_fault
                    || matches!(op, Op::Shuffle(_));
                moves && !results.contains(&counter) && args.iter().all(may_change_if_pointer)
            }
            StmtKind::Call { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => false,
        };
    });
    let held_up = delays_loads(function, iteration);
    let may_be_first = |pointer| {
        !held_up || own.contains(&pointer) || constant.is_some_and(|constant| constant.holds(function, pointer))
    };
    // A load that depends on memory that an earlier iteration changes has to wait even in an unrolled loop.
    let (mut reads, mut waits) = (false, false);
    for_each_stmt(iteration, &mut |stmt| {
        for_each_expr_of_stmt(function, &stmt.kind, &mut |expr| {
            if let ExprKind::Load(pointer, _) = function.exprs[expr].kind
                && !is_own(function, pointer)
            {
                let first = may_be_first(pointer);
                reads |= first && is_global(function, pointer);
                waits |= !first;
            }
        });
    });
    reads && !waits && plain
}

/// Whether an iteration shuffles values.
fn shuffles(iteration: &[Stmt]) -> bool {
    let mut found = false;
    for_each_stmt(iteration, &mut |stmt| found |= matches!(stmt.kind, StmtKind::Op { op: Op::Shuffle(_), .. }));
    found
}

/// Whether an iteration changes global memory, or synchronizes with threads that may.
pub(super) fn delays_loads(function: &Function, iteration: &[Stmt]) -> bool {
    let mut changes = false;
    for_each_stmt(iteration, &mut |stmt| {
        changes |= match &stmt.kind {
            StmtKind::Store { pointer, .. } => !is_own(function, *pointer),
            StmtKind::Op { op, args, .. } => {
                op.row().together != SyncScope::None
                    || args.iter().any(|arg| function.exprs[*arg].ty.scalar().is_none() && !is_own(function, *arg))
            }
            StmtKind::Assign(..)
            | StmtKind::If { .. }
            | StmtKind::Call { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => false,
        };
    });
    changes
}

pub(super) fn is_own(function: &Function, pointer: ExprId) -> bool {
    matches!(function.exprs[pointer].ty, Type::Ptr(_, Space::Shared | Space::Local))
}

pub(super) fn is_global(function: &Function, pointer: ExprId) -> bool {
    matches!(function.exprs[pointer].ty, Type::Ptr(_, Space::Global))
}

/// Whether an iteration is short and changes only locals.
fn is_short_read(function: &Function, iteration: &[Stmt]) -> bool {
    let (mut exprs, mut changes) = (0, false);
    for_each_stmt(iteration, &mut |stmt| {
        changes |= matches!(stmt.kind, StmtKind::Store { .. } | StmtKind::Op { .. });
        for_each_expr_of_stmt(function, &stmt.kind, &mut |_| exprs += 1);
    });
    !changes && exprs <= SHORT
}

/// The loop unrolled by `iterations`.
fn unrolled(
    function: &mut Function,
    strided: &Strided,
    iteration: (&[Stmt], &[Stmt]),
    (in_front, iterations): (&[bool], i128),
    span: Span,
) -> Stmt {
    let go_on = test(function, strided, iterations, span);
    let leave = function.exprs.push(Expr { kind: ExprKind::Unary(UnaryOp::Not, go_on), ty: Type::BOOL, span });
    let exit = vec![Stmt { kind: StmtKind::Break, span }];
    let mut body = vec![Stmt { kind: StmtKind::If { cond: leave, then: exit, otherwise: Block::new() }, span }];
    body.extend(front::iterations(function, strided, iteration, in_front, iterations));
    Stmt { kind: StmtKind::Loop { body, step: Block::new() }, span }
}

/// `(counter < stop) & (min(stop, …) - counter > (iterations - 1) * stride)`, and that the stride is positive and not
/// too large.
///
/// The counter is not negative, so below `stop` the difference cannot overflow. [`Strided::end`] is one stride or more
/// below the maximum of the type, so adding a stride does not overflow either. The loops that follow run the remaining
/// iterations.
pub(super) fn test(function: &mut Function, strided: &Strided, iterations: i128, span: Span) -> ExprId {
    let ty = function.locals[strided.counter].ty;
    let scalar = ty.scalar().unwrap_or(Scalar::I64);
    let push = |function: &mut Function, kind, ty| function.exprs.push(Expr { kind, ty, span });
    let int = |function: &mut Function, value| function.exprs.push(Expr::int(scalar, value, span));
    let compare = |function: &mut Function, op, a, b| push(function, ExprKind::Compare(op, a, b), Type::BOOL);
    let now = push(function, ExprKind::Local(strided.counter), ty);
    let stop = function.copy_expr(strided.stop);
    let below = compare(function, CompareOp::Lt, now, stop);
    let now = push(function, ExprKind::Local(strided.counter), ty);
    let stop = function.copy_expr(strided.stop);
    let end = int(function, strided.end);
    let stop = push(function, ExprKind::Binary(BinaryOp::Min, stop, end), ty);
    let left = push(function, ExprKind::Binary(BinaryOp::Sub, stop, now), ty);
    let (stride, more) = (function.copy_expr(strided.stride), int(function, iterations - 1));
    let needed = push(function, ExprKind::Binary(BinaryOp::Mul, stride, more), ty);
    let enough = compare(function, CompareOp::Gt, left, needed);
    let mut all = push(function, ExprKind::Binary(BinaryOp::And, below, enough), Type::BOOL);
    if !matches!(function.exprs[strided.stride].kind, ExprKind::Const(_)) {
        for (op, bound) in [(CompareOp::Gt, 0), (CompareOp::Lt, LARGEST_STRIDE)] {
            let (stride, bound) = (function.copy_expr(strided.stride), int(function, bound));
            let inside = compare(function, op, stride, bound);
            all = push(function, ExprKind::Binary(BinaryOp::And, all, inside), Type::BOOL);
        }
    }
    all
}
