//! Dead code elimination of assignments, after a rewrite has replaced the reads of locals.

use crate::ir::{Block, Function, LocalId, StmtKind, for_each_expr_of_block};

/// Removes assignments of locals that are never read: expressions have no side effects.
pub(crate) fn drop_unread(function: &Function, body: &mut Block) {
    loop {
        let mut read = vec![false; function.locals.len()];
        for_each_expr_of_block(function, body, &mut |id| {
            if let Some(local) = function.local(id) {
                read[local.index()] = true;
            }
        });
        if !drop_assignments(body, &|local| !read[local.index()]) {
            return;
        }
    }
}

/// Removes the assignments of some locals. Returns whether there were any.
pub(crate) fn drop_assignments(block: &mut Block, drops: &dyn Fn(LocalId) -> bool) -> bool {
    let before = block.len();
    block.retain(|stmt| !matches!(stmt.kind, StmtKind::Assign(local, _) if drops(local)));
    let mut dropped = block.len() < before;
    for stmt in block {
        if let StmtKind::If { then: first, otherwise: second, .. } | StmtKind::Loop { body: first, step: second } =
            &mut stmt.kind
        {
            dropped |= drop_assignments(first, drops);
            dropped |= drop_assignments(second, drops);
        }
    }
    dropped
}
