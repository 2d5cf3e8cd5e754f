//! Loops that a thread may not leave if what it writes beside an array is nowhere to be read.

use crate::{
    analysis::{any_expr, escapes, for_each_read},
    ir::{ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, for_each_stmt},
};

/// Whether what is read in a loop's turns decides how many there are: a condition around a way out of it, or around an
/// assignment that such a condition depends on, depends on memory, or on what an operation or a call gives.
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

/// Notes the locals that depend on what is read; `under` says that whether the statements run does.
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
        // What comes after a way out runs only where it was not taken.
        under |= depends && escapes(std::slice::from_ref(stmt)).any();
    }
}

fn depends(function: &Function, root: ExprId, read: &[bool]) -> bool {
    let mut found = any_expr(function, root, &|kind| matches!(kind, ExprKind::Load(..)));
    for_each_read(function, root, &mut |local| found |= read[local.index()]);
    found
}

/// Whether such a condition decides of a way out; of a turn's end too, if the turn is all that moves the loop on.
fn leaves_by(function: &Function, block: &[Stmt], by_turns: bool, read: &[bool]) -> bool {
    let mut found = false;
    for_each_stmt(block, &mut |stmt| {
        let StmtKind::If { cond, then, otherwise } = &stmt.kind else { return };
        let out = [then, otherwise].map(|arm| escapes(arm));
        let leaves = out.iter().any(|out| out.breaks || out.returns || (by_turns && out.continues));
        found |= leaves && depends(function, *cond, read);
    });
    found
}
