//! Drops dead code: assignments to locals that are never read, statements after `break`, `continue` and `return`, and
//! empty branches.
//!
//! ```text
//! $x.shape0 = $n        (nothing: $x.shape0 is never read)
//! if $c {
//!     return            if $c {
//!     barrier               return
//! }                     }
//! ```
//!
//! A local is live if an effect, a condition or the value of a live local reads it. Calls are live, as their callees
//! may have effects; loops are live, as they may not terminate.

use crate::ir::{Block, Function, Module, StmtKind, for_each_expr_of_stmt, for_each_stmt};

/// Runs the pass.
pub(super) fn run(module: &mut Module) {
    for (_, function) in module.functions.iter_mut() {
        clean(function);
    }
}

/// Drops dead code of one function.
pub(super) fn clean(function: &mut Function) {
    drop_unreachable(&mut function.body);
    // An empty branch no longer reads its condition, so more code may be dead.
    loop {
        let live = live_locals(function);
        if !drop_unread(&mut function.body, &live) {
            return;
        }
    }
}

/// Which locals are live, by index.
pub(super) fn live_locals(function: &Function) -> Vec<bool> {
    let mut live = vec![false; function.locals.len()];
    // For each local, what is read to compute its values.
    let mut sources = vec![Vec::new(); function.locals.len()];
    let mut work = Vec::new();
    for_each_stmt(&function.body, &mut |stmt| {
        let mut reads = Vec::new();
        for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
            if let Some(local) = function.local(id) {
                reads.push(local.index());
            }
        });
        if let StmtKind::Assign(local, _) = stmt.kind {
            sources[local.index()].append(&mut reads);
        } else {
            work.append(&mut reads);
        }
    });
    while let Some(local) = work.pop() {
        if !std::mem::replace(&mut live[local], true) {
            work.append(&mut sources[local]);
        }
    }
    live
}

/// Cuts blocks after statements that do not complete.
fn drop_unreachable(block: &mut Block) {
    let mut end = None;
    for (index, stmt) in block.iter_mut().enumerate() {
        for inner in stmt.kind.blocks_mut().into_iter().flatten() {
            drop_unreachable(inner);
        }
        if !stmt.kind.falls_through() {
            end = Some(index + 1);
            break;
        }
    }
    if let Some(end) = end {
        block.truncate(end);
    }
}

/// Drops assignments to dead locals, unused results of operations, and empty branches; `true` if a statement went.
fn drop_unread(block: &mut Block, live: &[bool]) -> bool {
    let mut changed = false;
    for stmt in block.iter_mut() {
        if let StmtKind::Op { results, .. } = &mut stmt.kind
            && !results.iter().any(|local| live[local.index()])
        {
            results.clear();
        }
        for inner in stmt.kind.blocks_mut().into_iter().flatten() {
            changed |= drop_unread(inner, live);
        }
    }
    let before = block.len();
    block.retain(|stmt| match &stmt.kind {
        StmtKind::Assign(local, _) => live[local.index()],
        StmtKind::If { then, otherwise, .. } => !(then.is_empty() && otherwise.is_empty()),
        StmtKind::Op { op, results, .. } => !results.is_empty() || op.row().has_effect(),
        StmtKind::Store { .. }
        | StmtKind::Call { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return(_) => true,
    });
    changed || block.len() != before
}
