//! Copies parameters that the kernel assigns.

use crate::ir::{Expr, ExprKind, Function, Stmt, StmtKind, for_each_stmt};

/// Replaces each parameter that the body assigns by a new local, which is copied to the old one at entry. Parameters
/// are then never assigned.
pub(crate) fn copy_assigned_params(function: &mut Function) {
    let mut changed = Vec::new();
    for_each_stmt(&function.body, &mut |stmt| changed.extend(stmt.kind.assigned()));
    let span = function.span;
    let mut copies = Vec::new();
    for index in 0..function.params.len() {
        let param = function.params[index];
        if changed.contains(&param) {
            let local = function.locals[param].clone();
            let ty = local.ty;
            let passed = function.locals.push(local);
            function.params[index] = passed;
            let value = function.exprs.push(Expr { kind: ExprKind::Local(passed), ty, span });
            copies.push(Stmt { kind: StmtKind::Assign(param, value), span });
        }
    }
    function.body.splice(0..0, copies);
}
