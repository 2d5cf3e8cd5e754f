//! Dead code elimination of assignments, after a rewrite has replaced the reads of locals.

use crate::ir::{Block, Function, StmtKind, for_each_expr_of_block};

/// Removes assignments of locals that are never read: expressions have no side effects.
pub(crate) fn drop_unread(function: &Function, body: &mut Block) {
    loop {
        let mut read = vec![false; function.locals.len()];
        for_each_expr_of_block(function, body, &mut |id| {
            if let Some(local) = function.local(id) {
                read[local.index()] = true;
            }
        });
        if !drop_from(body, &read) {
            return;
        }
    }
}

fn drop_from(block: &mut Block, read: &[bool]) -> bool {
    let before = block.len();
    block.retain(|stmt| !matches!(stmt.kind, StmtKind::Assign(local, _) if !read[local.index()]));
    let mut dropped = block.len() < before;
    for stmt in block {
        if let StmtKind::If { then: first, otherwise: second, .. } | StmtKind::Loop { body: first, step: second } =
            &mut stmt.kind
        {
            dropped |= drop_from(first, read);
            dropped |= drop_from(second, read);
        }
    }
    dropped
}
