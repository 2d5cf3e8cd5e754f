//! Structurization: replaces `continue` by a branch around the statements that it skips.
//!
//! ```text
//! loop {                        loop {
//!     if $a { continue }            if $a { } else { … }
//!     …
//! }                             }
//! ```
//!
//! Legal if no statements have to be duplicated: if both arms of a branch can reach the statements after it and one of
//! them contains a `continue`, the loop is left unchanged. Loops that contain a barrier are left unchanged, too.
//!
//! Profitable because a divergent `continue` prevents the loop's interchange with the thread loop, while a divergent
//! branch does not.

use crate::{
    analysis::escapes,
    backend::host::plan::analysis::structure::{holds_barrier, induction_variable},
    ir::{Block, ExprId, Function, Stmt, StmtKind},
    source::Span,
};

/// Makes the last statement of a loop's body the loop's step, if the loop then has an induction variable, as in
/// `while i < n: …; i += 1`. Legal for loops without a step and without a `continue`: each iteration that does not leave
/// the loop ends with the last statement of its body.
pub(crate) fn with_steps(function: &Function, list: &mut Block) {
    for stmt in list {
        for inner in stmt.kind.blocks_mut().into_iter().flatten() {
            with_steps(function, inner);
        }
        if let StmtKind::Loop { body, step } = &mut stmt.kind
            && step.is_empty()
            && !escapes(body).continues
            && let Some((last, rest)) = body.split_last()
            && induction_variable(function, rest, std::slice::from_ref(last)).is_some()
        {
            step.extend(body.pop());
        }
    }
}

/// Structurizes the loops of a body that contain a `continue` and no barrier.
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

/// Returns the statements that replace a `break`, and the condition under which a thread has not executed them.
pub(crate) type Left<'a> = dyn FnMut(Span) -> (Block, ExprId) + 'a;

/// Copies statements without the `continue` of their loop; with `left`, without its `break`, too. `None` if statements
/// would have to be duplicated.
pub(crate) fn branched(list: &[Stmt], mut left: Option<&mut Left<'_>>) -> Option<Block> {
    let mut done = Block::new();
    for (index, stmt) in list.iter().enumerate() {
        match &stmt.kind {
            // Statements after a jump are unreachable.
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
                // The statements after the branch move into the arm that reaches them. If both arms do, they would have
                // to be duplicated.
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

/// Whether control never reaches the end of some statements.
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
