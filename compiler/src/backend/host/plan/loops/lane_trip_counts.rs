//! Loops of which each thread has its own number of turns, as `for k in range(i + 1)` over a row of a triangle.
//!
//! Threads that walk along rows take such a loop together: all turns up to those of the thread with most of them, and in each of these
//! every thread is asked whether it has it. How many the thread with most of them has is found out by the strip, in front of the loop.
//! It does so whatever the numbers are, so nothing is lost by threads that have few: the others would walk on in any case.

use std::collections::BTreeSet;

use crate::{
    analysis::{any_expr, for_each_read},
    ir::{
        Block, Class, CompareOp, Expr, ExprId, ExprKind, Function, Leaf, Local, LocalId, Stmt, StmtKind, Type, UnaryOp,
        for_each_stmt,
    },
    source::Span,
};

/// A loop that was rewritten.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uneven {
    /// What it counts by.
    pub counter: LocalId,
    /// Up to what a thread counts; no turn changes it.
    pub limit: ExprId,
    /// The largest of a strip's limits, which nothing assigns but the strip.
    pub most: LocalId,
    /// Whether a thread has a turn: asked around all of it.
    pub has_turn: ExprId,
}

/// Rewrites the body of a loop that counts up to a limit of each thread's own; `None` if that limit may change.
pub(crate) fn rewrite(
    function: &mut Function,
    (counter, limit): (LocalId, ExprId),
    turn: &mut Block,
    step: &[Stmt],
) -> Option<Uneven> {
    let mut assigned = BTreeSet::new();
    for list in [turn.as_slice(), step] {
        for_each_stmt(list, &mut |stmt| assigned.extend(stmt.kind.assigned()));
    }
    let changes = any_expr(function, limit, &|kind| match kind.class() {
        Class::Load(_) => true,
        Class::Leaf(Leaf::Local(local)) => assigned.contains(&local),
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } => false,
    });
    let (Some(Stmt { kind: StmtKind::If { cond, .. }, span }), false) = (turn.first(), changes) else { return None };
    let (cond, span) = (*cond, *span);
    let ExprKind::Unary(UnaryOp::Not, holds) = function.exprs[cond].kind else { return None };
    let ty = function.locals[counter].ty;
    let most = local(function, counter, "most", ty);
    let flag = local(function, counter, "has_turn", Type::BOOL);
    let mut push = |kind, ty, span: Span| function.exprs.push(Expr { kind, ty, span });
    let counts = push(ExprKind::Local(counter), ty, span);
    let largest = push(ExprKind::Local(most), ty, span);
    let some = push(ExprKind::Compare(CompareOp::Lt, counts, largest), Type::BOOL, span);
    let nobody = push(ExprKind::Unary(UnaryOp::Not, some), Type::BOOL, span);
    let has_turn = push(ExprKind::Local(flag), Type::BOOL, span);
    let then = turn.split_off(1);
    if let Some(Stmt { kind: StmtKind::If { cond, .. }, .. }) = turn.first_mut() {
        *cond = nobody;
    }
    // As a local it is no guard, which would part a row.
    turn.push(Stmt { kind: StmtKind::Assign(flag, holds), span });
    turn.push(Stmt { kind: StmtKind::If { cond: has_turn, then, otherwise: Block::new() }, span });
    Some(Uneven { counter, limit, most, has_turn })
}

/// How often statements read a local.
pub(crate) fn reads(function: &Function, list: &[Stmt], local: LocalId) -> usize {
    let mut reads = 0;
    for_each_stmt(list, &mut |stmt| {
        for root in stmt.kind.exprs() {
            for_each_read(function, root, &mut |read| reads += usize::from(read == local));
        }
    });
    reads
}

/// A new local, beside another one.
fn local(function: &mut Function, beside: LocalId, name: &str, ty: Type) -> LocalId {
    let beside = function.locals[beside].clone();
    let more = Local { name: name.to_owned(), ty, nonneg: false, counts: false, offset: false, ..beside };
    function.locals.push(more)
}
