//! Queries on statements: barriers, counted loops, and paths to statements.

use crate::{
    ir::{
        Arith, BinaryOp, Block, Class, CompareOp, ExprId, ExprKind, Function, LocalId, Op, Stmt, StmtKind, SyncScope,
        Type, UnaryOp, for_each_stmt,
    },
    source::Span,
};

/// `true` if a statement is a convergence point of threads.
pub(crate) fn is_barrier(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Op { op, .. } => op.row().together > SyncScope::None,
        StmtKind::Assign(..)
        | StmtKind::Store { .. }
        | StmtKind::Call { .. }
        | StmtKind::If { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return(_) => false,
    }
}

/// `true` if a statement is a barrier or contains one.
pub(crate) fn holds_barrier(stmt: &Stmt) -> bool {
    let mut found = false;
    for_each_stmt(std::slice::from_ref(stmt), &mut |inner| found |= is_barrier(inner));
    found
}

/// The path to a statement: the indices of the enclosing statements, outermost first, and its own index. An index has
/// [`OTHERWISE`] added if the path continues in the second block of a branch.
pub(crate) type Path = Vec<usize>;

/// The flag in the index of a branch whose second block contains the statement.
pub(crate) const OTHERWISE: usize = 1 << 31;

/// The list that a path without its last index leads to.
pub(crate) fn list_at<'a>(body: &'a mut Block, path: &[usize]) -> Option<&'a mut Block> {
    let mut list = body;
    for &index in path {
        match &mut list.get_mut(index & !OTHERWISE)?.kind {
            StmtKind::If { otherwise, .. } if index & OTHERWISE != 0 => list = otherwise,
            StmtKind::If { then: first, .. } | StmtKind::Loop { body: first, .. } => list = first,
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => return None,
        }
    }
    Some(list)
}

/// The induction variable and the limit of a counted loop: the loop tests `counter < limit` first, and its step adds
/// one, which cannot overflow below a limit.
pub(crate) fn counter(function: &Function, body: &[Stmt], step: &[Stmt]) -> Option<(LocalId, ExprId)> {
    counter_by(function, body, step).and_then(|(counter, limit, by)| (by == 1).then_some((counter, limit)))
}

/// Like [`counter`], for any positive constant step, which is also returned.
pub(crate) fn counter_by(function: &Function, body: &[Stmt], step: &[Stmt]) -> Option<(LocalId, ExprId, i128)> {
    let kind = |id: ExprId| &function.exprs[id].kind;
    let [Stmt { kind: StmtKind::Assign(local, sum), .. }] = step else { return None };
    let ExprKind::Binary(BinaryOp::Add | BinaryOp::AddExact, a, b) = *kind(*sum) else { return None };
    let by = function.int(b).filter(|&by| by > 0)?;
    if function.local(a) != Some(*local) || !matches!(function.locals[*local].ty, Type::I64 | Type::I32) {
        return None;
    }
    let (test, rest) = body.split_first()?;
    let ExprKind::Unary(UnaryOp::Not, holds) = *kind(test.kind.exit_condition()?) else { return None };
    let ExprKind::Compare(CompareOp::Lt, counter, limit) = *kind(holds) else { return None };
    let mut assigned = false;
    for_each_stmt(rest, &mut |stmt| assigned |= stmt.kind.assigned().contains(local));
    (!assigned && function.local(counter) == Some(*local)).then_some((*local, limit, by))
}

/// The induction variable of a loop that ends: [`counter`] of a loop that counts up, or the variable of a loop that
/// counts down by one while it is greater than a limit.
pub(crate) fn induction_variable(function: &Function, body: &[Stmt], step: &[Stmt]) -> Option<LocalId> {
    counter(function, body, step).map(|(counter, _)| counter).or_else(|| counter_down(function, body, step))
}

/// The induction variable of a loop that tests `counter > limit` or `counter >= constant` first, and whose step
/// subtracts one, which cannot overflow above a limit.
fn counter_down(function: &Function, body: &[Stmt], step: &[Stmt]) -> Option<LocalId> {
    let local = decremented(function, step).filter(|&(_, by)| by == 1)?.0;
    let (test, rest) = body.split_first()?;
    let ExprKind::Unary(UnaryOp::Not, holds) = function.exprs[test.kind.exit_condition()?].kind else { return None };
    let ExprKind::Compare(op, counter, limit) = function.exprs[holds].kind else { return None };
    let ends = match op {
        CompareOp::Gt => true,
        CompareOp::Ge => function.int(limit).is_some_and(|limit| limit > i128::from(i32::MIN)),
        CompareOp::Eq | CompareOp::Ne | CompareOp::Lt | CompareOp::Le => false,
    };
    let mut assigned = false;
    for_each_stmt(rest, &mut |stmt| assigned |= stmt.kind.assigned().contains(&local));
    (ends && !assigned && function.local(counter) == Some(local)).then_some(local)
}

/// The local from which the step of a loop subtracts a positive constant, and that constant.
pub(crate) fn decremented(function: &Function, step: &[Stmt]) -> Option<(LocalId, i128)> {
    let [Stmt { kind: StmtKind::Assign(local, value), .. }] = step else { return None };
    let ExprKind::Binary(op, counter, by) = function.exprs[*value].kind else { return None };
    let by = function.int(by)?;
    let by = match op {
        BinaryOp::Add | BinaryOp::AddExact => by.checked_neg()?,
        BinaryOp::Sub | BinaryOp::SubExact => by,
        BinaryOp::Mul
        | BinaryOp::MulExact
        | BinaryOp::Div
        | BinaryOp::FloorDiv
        | BinaryOp::FloorMod
        | BinaryOp::DivNonneg
        | BinaryOp::ModNonneg
        | BinaryOp::Pow
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Xor
        | BinaryOp::Min
        | BinaryOp::Max
        | BinaryOp::Shl
        | BinaryOp::Shr => return None,
    };
    let is_counter =
        function.local(counter) == Some(*local) && matches!(function.locals[*local].ty, Type::I64 | Type::I32);
    (is_counter && by > 0).then_some((*local, by))
}

/// A barrier at the end of an iteration, which marks the loop for interchange with the thread loop. It is legal because
/// nothing orders the threads between two barriers.
pub(crate) fn cut_here(span: Span) -> Stmt {
    Stmt { kind: StmtKind::Op { op: Op::Barrier, results: Vec::new(), args: Vec::new() }, span }
}

/// The operands of a conjunction.
pub(crate) fn conjuncts(function: &Function, cond: ExprId, parts: &mut Vec<ExprId>) {
    match function.class(cond) {
        Class::Arith(Arith::Binary(BinaryOp::And, a, b)) if function.exprs[cond].ty == Type::BOOL => {
            conjuncts(function, a, parts);
            conjuncts(function, b, parts);
        }
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => parts.push(cond),
    }
}

/// By the local's index: the value of its only assignment. Code never reads a local before that.
pub(crate) fn sole_values(function: &Function, body: &[Stmt]) -> Vec<Option<ExprId>> {
    let mut values = vec![None; function.locals.len()];
    let mut is_assigned = vec![false; function.locals.len()];
    for_each_stmt(body, &mut |stmt| {
        for local in stmt.kind.assigned() {
            let value = if let StmtKind::Assign(_, value) = stmt.kind { Some(value) } else { None };
            values[local.index()] = value.filter(|_| !is_assigned[local.index()]);
            is_assigned[local.index()] = true;
        }
    });
    values
}
