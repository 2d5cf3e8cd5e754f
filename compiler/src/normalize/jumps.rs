//! Removes the jumps of a loop's iteration: the statements after a branch that jumps move into the arm that does not.

use crate::{
    analysis::escapes,
    ir::{Block, ExprId, Stmt, StmtKind},
    source::Span,
};

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
