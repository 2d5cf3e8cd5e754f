//! Detection of loop-carried recurrences, in which each iteration waits for the one before, such as a sum of floats.

use crate::{
    backend::host::plan::analysis::liveness::Uses,
    ir::{BinaryOp, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, Type, for_each_stmt},
};

/// `true` if a loop has a recurrence that LLVM must execute in order. Induction variables and integer reductions are
/// none.
pub(crate) fn has_some(function: &Function, body: &[Stmt], step: &[Stmt]) -> bool {
    let counts = |local: LocalId| step.iter().any(|stmt| stmt.kind.assigned().contains(&local));
    let iteration = Uses::of(function, body);
    iteration.assigned.iter().any(|&local| {
        let mut sums = true;
        for_each_stmt(body, &mut |stmt| {
            if stmt.kind.assigned().contains(&local) {
                sums &= matches!(stmt.kind, StmtKind::Assign(_, value) if is_sum(function, local, value));
            }
        });
        iteration.exposed.contains(&local) && !counts(local) && !sums
    })
}

/// `true` for an integer reduction `local op …` with an associative and commutative operation.
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
