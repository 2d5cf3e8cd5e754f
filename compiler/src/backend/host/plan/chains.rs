//! Chains of operations through a loop, each of which waits for the one before: a sum of floats, a recurrence.

use super::crossing::Uses;
use crate::ir::{
    BinaryOp, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, Type, for_each_expr_of_stmt, for_each_stmt,
};

/// Expressions of a turn that are done while an addition waits for the one before.
const MOST_OPERATIONS: usize = 48;

/// `true` if a turn of a loop needs a value of the turn before in a way that LLVM keeps: what it may add up in any order, and
/// the counter, is no chain.
pub(super) fn has_some(function: &Function, body: &[Stmt], step: &[Stmt]) -> bool {
    let counts = |local: LocalId| step.iter().any(|stmt| stmt.kind.assigned().contains(&local));
    let turn = Uses::of(function, body);
    turn.assigned.iter().any(|&local| {
        let mut sums = true;
        for_each_stmt(body, &mut |stmt| {
            if stmt.kind.assigned().contains(&local) {
                sums &= matches!(stmt.kind, StmtKind::Assign(_, value) if is_sum(function, local, value));
            }
        });
        turn.exposed.contains(&local) && !counts(local) && !sums
    })
}

/// `true` if a loop does little else than add to a float in each turn: it takes as long as these additions wait for each
/// other, however many turns LLVM does at once, and turns that are left over would cost a branch that nobody can foresee.
pub(crate) fn adds_up_floats(function: &Function, body: &[Stmt], step: &[Stmt]) -> bool {
    let (mut adds, mut operations, mut inner) = (false, 0, false);
    for_each_stmt(body, &mut |stmt| {
        inner |= matches!(stmt.kind, StmtKind::Loop { .. } | StmtKind::Call { .. } | StmtKind::Op { .. });
        for_each_expr_of_stmt(function, &stmt.kind, &mut |_| operations += 1);
        if let StmtKind::Assign(local, value) = stmt.kind
            && let ExprKind::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) = function.exprs[value].kind
        {
            let is_float = matches!(function.exprs[value].ty, Type::Scalar(scalar) if scalar.is_float());
            adds |= is_float && (function.local(a) == Some(local)) != (function.local(b) == Some(local));
        }
    });
    adds && !inner && operations <= MOST_OPERATIONS && has_some(function, body, step)
}

/// `true` for `local op …` of integers, with an operation that may be done in any order.
fn is_sum(function: &Function, local: LocalId, value: ExprId) -> bool {
    let ExprKind::Binary(op, a, b) = function.exprs[value].kind else { return false };
    let any_order = match op {
        BinaryOp::Add
        | BinaryOp::Mul
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Xor
        | BinaryOp::Min
        | BinaryOp::Max => true,
        BinaryOp::Sub
        | BinaryOp::AddExact
        | BinaryOp::SubExact
        | BinaryOp::MulExact
        | BinaryOp::Div
        | BinaryOp::FloorDiv
        | BinaryOp::FloorMod
        | BinaryOp::DivNonneg
        | BinaryOp::ModNonneg
        | BinaryOp::Pow
        | BinaryOp::Shl
        | BinaryOp::Shr => false,
    };
    let of_ints = matches!(function.exprs[value].ty, Type::Scalar(scalar) if scalar.is_int());
    any_order && of_ints && (function.local(a) == Some(local)) != (function.local(b) == Some(local))
}
