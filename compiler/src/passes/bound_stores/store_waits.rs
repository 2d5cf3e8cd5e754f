//! Finds loops that a thread may never exit if its out-of-bounds store is skipped, because no thread can load the
//! value.

use crate::{
    analysis::{any_expr, escapes, for_each_read},
    ir::{ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, for_each_stmt},
};

/// Whether values that a loop reads decide its trip count: a condition of an exit, or of an assignment that such a
/// condition depends on, depends on memory or on the result of an operation or a call.
pub(super) fn ends_by_memory(function: &Function, body: &[Stmt], step: &[Stmt]) -> bool {
    let mut read = vec![false; function.locals.len()];
    loop {
        let before = read.clone();
        for part in [body, step] {
            note(function, part, false, &mut read);
        }
        if read == before {
            break;
        }
    }
    leaves_by(function, body, step.is_empty(), &read)
}

/// Marks the locals that depend on loaded values; `under`: whether the execution of the statements depends on them.
fn note(function: &Function, block: &[Stmt], under: bool, read: &mut [bool]) {
    let mut under = under;
    for stmt in block {
        let from_memory = match &stmt.kind {
            StmtKind::Op { .. } | StmtKind::Call { .. } => true,
            StmtKind::Assign(_, value) => depends(function, *value, read),
            StmtKind::Store { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => false,
        };
        for local in stmt.kind.assigned() {
            read[LocalId::index(local)] |= from_memory || under;
        }
        let depends = matches!(stmt.kind, StmtKind::If { cond, .. } if depends(function, cond, read));
        for inner in stmt.kind.blocks().into_iter().flatten() {
            note(function, inner, under || depends, read);
        }
        // Statements after an exit run only if it was not taken.
        under |= depends && escapes(std::slice::from_ref(stmt)).any();
    }
}

fn depends(function: &Function, root: ExprId, read: &[bool]) -> bool {
    let mut found = any_expr(function, root, &|kind| matches!(kind, ExprKind::Load(..)));
    for_each_read(function, root, &mut |local| found |= read[local.index()]);
    found
}

/// Whether such a condition controls an exit; or the end of an iteration, if only the iteration advances the loop.
fn leaves_by(function: &Function, block: &[Stmt], by_iteration: bool, read: &[bool]) -> bool {
    let mut found = false;
    for_each_stmt(block, &mut |stmt| {
        let StmtKind::If { cond, then, otherwise } = &stmt.kind else { return };
        let out = [then, otherwise].map(|arm| escapes(arm));
        let leaves = out.iter().any(|out| out.breaks || out.returns || (by_iteration && out.continues));
        found |= leaves && depends(function, *cond, read);
    });
    found
}
