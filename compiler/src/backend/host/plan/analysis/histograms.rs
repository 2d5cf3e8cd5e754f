//! Loops of threads that count: histograms in the block's memory.

use crate::ir::{Function, Op, Space, Stmt, StmtKind, Type, for_each_expr_of_stmt};

/// Expressions of the largest body of which several turns stand in a loop.
const MOST_TO_COUNT: usize = 24;

/// Whether a body does nothing but atomic operations on the block's memory, and what little these need: as a loop it takes as long as its
/// own steps.
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
