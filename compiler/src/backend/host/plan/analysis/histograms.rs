//! Detection of histograms: thread loops whose body consists of atomic operations on shared memory.

use crate::ir::{Function, Op, Space, Stmt, StmtKind, Type, for_each_expr_of_stmt};

/// The largest body, in expressions, whose thread loop is unrolled.
const MOST_TO_COUNT: usize = 24;

/// Whether a body only executes atomic operations on shared memory and computes their few operands. Loop overhead is a
/// large part of its time, so the thread loop is unrolled.
pub(crate) fn counts_only(function: &Function, body: &[Stmt]) -> bool {
    let mut exprs = 0;
    let all = body.iter().all(|stmt| {
        for_each_expr_of_stmt(function, &stmt.kind, &mut |_| exprs += 1);
        match &stmt.kind {
            StmtKind::Op { op: Op::Atomic { .. }, args, .. } => {
                args.first().is_some_and(|&pointer| matches!(function.exprs[pointer].ty, Type::Ptr(_, Space::Shared)))
            }
            StmtKind::Assign(..) => true,
            StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => false,
        }
    });
    all && exprs <= MOST_TO_COUNT && body.iter().any(|stmt| matches!(stmt.kind, StmtKind::Op { .. }))
}
