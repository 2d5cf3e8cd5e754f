//! Trip counts that differ between lanes: `for k in range(i + 1)` over the rows of a triangle.
//!
//! ```text
//! for k in range(limit):                  for k in range(max_limit):
//!     body                                    has_iteration = k < limit
//!                                             if has_iteration: body
//! ```
//!
//! The loop runs for the maximum trip count over the lanes of a strip, and each iteration tests per lane whether it is
//! within that lane's own count. The strip computes the maximum before the loop.
//!
//! Legal if no iteration changes the lane's limit and the limit is not loaded. It is meant for strips that transpose
//! strided accesses; idle iterations of some lanes cost nothing there, because the other lanes need them anyway.

use std::collections::BTreeSet;

use crate::{
    analysis::{any_expr, for_each_read},
    backend::host::plan::plan_ir::LaneTripCounts,
    ir::{
        Block, Class, CompareOp, Expr, ExprId, ExprKind, Function, Leaf, Local, LocalId, Stmt, StmtKind, Type, UnaryOp,
        for_each_stmt,
    },
    source::Span,
};

/// Rewrites the body of a loop that counts up to `limit`; returns `None` if the limit may change.
pub(crate) fn rewrite(
    function: &mut Function,
    (counter, limit): (LocalId, ExprId),
    iteration: &mut Block,
    step: &[Stmt],
) -> Option<LaneTripCounts> {
    let mut assigned = BTreeSet::new();
    for list in [iteration.as_slice(), step] {
        for_each_stmt(list, &mut |stmt| assigned.extend(stmt.kind.assigned()));
    }
    let changes = any_expr(function, limit, &|kind| match kind.class() {
        // A loop with a loaded limit could not be transposed.
        Class::Load(_) => true,
        Class::Leaf(Leaf::Local(local)) => !legal!("lane_trip_counts.same-limit", !assigned.contains(&local)),
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } => false,
    });
    let (Some(Stmt { kind: StmtKind::If { cond, .. }, span }), false) = (iteration.first(), changes) else {
        return None;
    };
    let (cond, span) = (*cond, *span);
    let ExprKind::Unary(UnaryOp::Not, holds) = function.exprs[cond].kind else { return None };
    let ty = function.locals[counter].ty;
    let max_limit = local(function, counter, "most", ty);
    let flag = local(function, counter, "has_turn", Type::BOOL);
    let mut push = |kind, ty, span: Span| function.exprs.push(Expr { kind, ty, span });
    let counts = push(ExprKind::Local(counter), ty, span);
    let largest = push(ExprKind::Local(max_limit), ty, span);
    let some = push(ExprKind::Compare(CompareOp::Lt, counts, largest), Type::BOOL, span);
    let no_lane = push(ExprKind::Unary(UnaryOp::Not, some), Type::BOOL, span);
    let has_iteration = push(ExprKind::Local(flag), Type::BOOL, span);
    let then = iteration.split_off(1);
    if let Some(Stmt { kind: StmtKind::If { cond, .. }, .. }) = iteration.first_mut() {
        *cond = no_lane;
    }
    // The flag is a local, so that the condition does not become a guard, which would split the row.
    iteration.push(Stmt { kind: StmtKind::Assign(flag, holds), span });
    iteration.push(Stmt { kind: StmtKind::If { cond: has_iteration, then, otherwise: Block::new() }, span });
    Some(LaneTripCounts { counter, limit, max_limit, has_iteration })
}

/// The number of reads of a local in statements.
pub(crate) fn reads(function: &Function, list: &[Stmt], local: LocalId) -> usize {
    let mut reads = 0;
    for_each_stmt(list, &mut |stmt| {
        for root in stmt.kind.exprs() {
            for_each_read(function, root, &mut |read| reads += usize::from(read == local));
        }
    });
    reads
}

/// Makes a new local of the same kind as another one.
fn local(function: &mut Function, beside: LocalId, name: &str, ty: Type) -> LocalId {
    let beside = function.locals[beside].clone();
    let more = Local { name: name.to_owned(), ty, nonneg: false, counts: false, offset: false, ..beside };
    function.locals.push(more)
}
