//! A `continue` as a branch around what it skips: threads that take it then do not seem to part, so that a row may take the loop
//! together.

use super::walk::holds_barrier;
use crate::{
    analysis::escapes,
    ir::{Block, Stmt, StmtKind},
};

/// Turns each `continue` into a branch, in loops that threads need not go through together, where branches alone can say it.
pub(super) fn without_continue(list: &mut Block) {
    for stmt in list {
        let waits = holds_barrier(stmt);
        for inner in stmt.kind.blocks_mut().into_iter().flatten() {
            without_continue(inner);
        }
        if let StmtKind::Loop { body, .. } = &mut stmt.kind
            && !waits
            && escapes(body).continues
            && let Some(branches) = branched(body)
        {
            *body = branches;
        }
    }
}

/// Statements without a `continue` of theirs.
fn branched(list: &[Stmt]) -> Option<Block> {
    let mut done = Block::new();
    for (index, stmt) in list.iter().enumerate() {
        match &stmt.kind {
            // Nothing behind a jump is reached.
            StmtKind::Continue => return Some(done),
            StmtKind::Break | StmtKind::Return(_) => {
                done.push(stmt.clone());
                return Some(done);
            }
            StmtKind::If { cond, then, otherwise } => {
                if !escapes(then).continues && !escapes(otherwise).continues {
                    done.push(stmt.clone());
                    continue;
                }
                // What comes behind is for the arm that gets there; for both it would stand twice.
                let rest = &list[index + 1..];
                if !rest.is_empty() && !ends(then) && !ends(otherwise) {
                    return None;
                }
                let arm = |arm: &[Stmt]| if ends(arm) { branched(arm) } else { branched(&[arm, rest].concat()) };
                let (then, otherwise) = (arm(then)?, arm(otherwise)?);
                let kind = StmtKind::If { cond: *cond, then, otherwise };
                done.push(Stmt { kind, span: stmt.span });
                return Some(done);
            }
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Loop { .. } => done.push(stmt.clone()),
        }
    }
    Some(done)
}

/// Whether no thread gets behind some statements.
fn ends(list: &[Stmt]) -> bool {
    list.iter().any(|stmt| match &stmt.kind {
        StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => true,
        StmtKind::If { then, otherwise, .. } => ends(then) && ends(otherwise),
        StmtKind::Assign(..)
        | StmtKind::Store { .. }
        | StmtKind::Op { .. }
        | StmtKind::Call { .. }
        | StmtKind::Loop { .. } => false,
    })
}
