//! A `continue` as a branch around what it skips: threads that take it then do not seem to part, so that a row may take the loop
//! together.

use crate::{
    analysis::escapes,
    backend::host::plan::analysis::structure::holds_barrier,
    ir::{Block, ExprId, Stmt, StmtKind},
    source::Span,
};

/// Turns each `continue` into a branch, in loops that threads need not go through together, where branches alone can say it.
pub(crate) fn without_continue(list: &mut Block) {
    for stmt in list {
        let waits = holds_barrier(stmt);
        for inner in stmt.kind.blocks_mut().into_iter().flatten() {
            without_continue(inner);
        }
        if let StmtKind::Loop { body, .. } = &mut stmt.kind
            && !waits
            && escapes(body).continues
            && let Some(branches) = branched(body, None)
        {
            *body = branches;
        }
    }
}

/// What a thread does in place of a `break`, and the condition of those that have not done so.
pub(crate) type Left<'a> = dyn FnMut(Span) -> (Block, ExprId) + 'a;

/// Statements without a `continue` of theirs; without a `break`, too, if `left` says what stands in its place.
pub(crate) fn branched(list: &[Stmt], mut left: Option<&mut Left<'_>>) -> Option<Block> {
    let mut done = Block::new();
    for (index, stmt) in list.iter().enumerate() {
        match &stmt.kind {
            // Nothing behind a jump is reached.
            StmtKind::Continue => return Some(done),
            StmtKind::Break | StmtKind::Return(_) => {
                match left {
                    Some(left) if matches!(stmt.kind, StmtKind::Break) => done.extend(left(stmt.span).0),
                    Some(_) | None => done.push(stmt.clone()),
                }
                return Some(done);
            }
            StmtKind::If { cond, then, otherwise } => {
                let ways = [escapes(then), escapes(otherwise)];
                let (skips, leaves) = (ways.iter().any(|way| way.continues), ways.iter().any(|way| way.breaks));
                if !(skips || (leaves && left.is_some())) {
                    done.push(stmt.clone());
                    continue;
                }
                // What comes behind is for the arm that gets there; for both it would stand twice.
                let rest = &list[index + 1..];
                let both = !rest.is_empty() && !ends(then) && !ends(otherwise);
                if both && skips {
                    return None;
                }
                let mut arm = |arm: &[Stmt]| {
                    let left = left.as_deref_mut();
                    if both || ends(arm) { branched(arm, left) } else { branched(&[arm, rest].concat(), left) }
                };
                let (then, otherwise) = (arm(then)?, arm(otherwise)?);
                done.push(Stmt { kind: StmtKind::If { cond: *cond, then, otherwise }, span: stmt.span });
                if both {
                    let left = left?;
                    let cond = left(stmt.span).1;
                    let then = branched(rest, Some(left))?;
                    let kind = StmtKind::If { cond, then, otherwise: Block::new() };
                    done.push(Stmt { kind, span: stmt.span });
                }
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
