//! What functions do that matters to the cut: barriers, ordering between threads, local arrays.

use super::walk::{any_expr, for_each, stmt_exprs};
use crate::ir::{ExprKind, FuncId, Function, Module, Stmt, StmtKind};

/// What a function does, callees included.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    /// It may reach a barrier, of the block or of a warp.
    pub barrier: bool,
    /// It orders memory between threads: an atomic or a fence. Its threads may not be run side by side.
    pub ordered: bool,
    /// It has thread-local arrays, which stay in one place for all turns of a thread loop.
    pub arrays: bool,
}

/// The facts of every function; a callee stands before its callers.
pub(crate) fn of_module(module: &Module) -> Vec<Facts> {
    let mut all = Vec::with_capacity(module.functions.len());
    for (_, function) in module.functions.iter() {
        let mut facts = of_block(function, &function.body, &all);
        facts.arrays |= !function.local_arrays.is_empty();
        all.push(facts);
    }
    all
}

/// The facts of some statements of a function; `callees` holds those of the functions that it calls.
pub(crate) fn of_block(function: &Function, stmts: &[Stmt], callees: &[Facts]) -> Facts {
    let mut facts = Facts::default();
    for_each(stmts, &mut |stmt| {
        match &stmt.kind {
            StmtKind::Barrier | StmtKind::WarpBarrier(_) => facts.barrier = true,
            StmtKind::Atomic { .. } | StmtKind::Fence(_) => facts.ordered = true,
            StmtKind::Call { func, .. } => {
                if let Some(callee) = fact(callees, *func) {
                    facts.barrier |= callee.barrier;
                    facts.ordered |= callee.ordered;
                    facts.arrays |= callee.arrays;
                }
            }
            _ => {}
        }
        for root in stmt_exprs(&stmt.kind) {
            facts.arrays |= any_expr(function, root, &|kind| matches!(kind, ExprKind::LocalBase(_)));
        }
    });
    facts
}

/// The facts of one function.
pub(crate) fn fact(all: &[Facts], func: FuncId) -> Option<Facts> {
    all.get(func.index()).copied()
}
