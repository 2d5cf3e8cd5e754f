//! Reads of variables on a path that does not assign them, while another path does.
//!
//! Python raises `UnboundLocalError` if the path is taken; Numba warns. In a kernel the thread ends, as for a failed
//! assertion. It is an error (E0204) if no assignment precedes the read, and if only a part of an expression reads the
//! variable (`a if c else b`).

use crate::{
    diagnostic::Diagnostic,
    frontend::{
        expr::{binds, used_before},
        lowerer::FnLowerer,
        object::Exception,
    },
    source::Span,
    syntax::{
        ast::{Expr, ExprKind, Stmt, StmtKind},
        bound_names,
    },
};

impl FnLowerer<'_> {
    /// Records the variables that unreachable statements assign, so that reads of them are not reported as mistakes.
    pub(super) fn skipped(&mut self, stmts: &[Stmt]) {
        self.names.given.extend(bound_names(stmts));
    }

    /// Ends the thread before a statement that certainly reads such a variable; returns whether it does.
    pub(super) fn ends_unset(&mut self, stmt: &Stmt) -> bool {
        let Some(env) = &self.env else { return false };
        let unset = |name: &str| self.names.given.contains(name) && !env.contains_key(name);
        let mut reads = Vec::new();
        own_reads(&stmt.kind, &mut reads);
        let Some((name, span)) = reads.into_iter().find(|(name, _)| unset(name)) else { return false };
        let Diagnostic { code, message, help, .. } = used_before(name, span);
        let warning = Diagnostic { help, ..Diagnostic::warning(code, span, message) };
        self.report(warning.note("a thread that reaches this line ends, as after a failed assertion"));
        let what = format!("cannot access local variable '{name}' where it is not associated with a value");
        self.end_thread(Exception::builtin("UnboundLocalError", &what), span);
        self.env = None;
        true
    }
}

/// The names that a statement certainly reads, up to the first `:=`. Returns whether there is no `:=`.
fn own_reads<'s>(stmt: &'s StmtKind, out: &mut Vec<(&'s str, Span)>) -> bool {
    match stmt {
        StmtKind::Assign { targets, value } => reads(value, out) && targets.iter().all(|target| stored(target, out)),
        StmtKind::AnnAssign { target, annotation: _, value: Some(value) } => reads(value, out) && stored(target, out),
        StmtKind::AugAssign { target, op: _, value } => reads(target, out) && reads(value, out),
        StmtKind::Expr(value) | StmtKind::Return(Some(value)) => reads(value, out),
        StmtKind::If { test, .. } | StmtKind::While { test, .. } | StmtKind::Assert { test, .. } => reads(test, out),
        StmtKind::For { iter, .. } => reads(iter, out),
        StmtKind::AnnAssign { value: None, .. }
        | StmtKind::Return(None)
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Pass
        | StmtKind::Raise(_)
        | StmtKind::FunctionDef(_)
        | StmtKind::Delete(_)
        | StmtKind::Global(_)
        | StmtKind::Nonlocal(_)
        | StmtKind::Unsupported(_) => true,
    }
}

/// The names that an assignment's target reads: none for a name.
fn stored<'s>(target: &'s Expr, out: &mut Vec<(&'s str, Span)>) -> bool {
    if matches!(target.kind, ExprKind::Name(_)) {
        return true;
    }
    let items = matches!(target.kind, ExprKind::Tuple(_) | ExprKind::List(_) | ExprKind::Starred(_));
    target.children().into_iter().all(|child| if items { stored(child, out) } else { reads(child, out) })
}

fn reads<'s>(expr: &'s Expr, out: &mut Vec<(&'s str, Span)>) -> bool {
    match &expr.kind {
        ExprKind::Name(name) => out.push((name, expr.span)),
        // The first operand is always evaluated.
        ExprKind::IfExp { .. } | ExprKind::Bool { .. } | ExprKind::Compare { .. } => {
            return expr.children().first().is_none_or(|first| reads(first, out)) && !binds(expr);
        }
        ExprKind::Named { .. } => return false,
        ExprKind::Lambda(_) | ExprKind::Comprehension { .. } => return !binds(expr),
        ExprKind::Constant(_)
        | ExprKind::Binary { .. }
        | ExprKind::Unary { .. }
        | ExprKind::Call { .. }
        | ExprKind::Attribute { .. }
        | ExprKind::Subscript { .. }
        | ExprKind::Slice { .. }
        | ExprKind::Tuple(_)
        | ExprKind::List(_)
        | ExprKind::Starred(_)
        | ExprKind::Unsupported(_) => return expr.children().into_iter().all(|child| reads(child, out)),
    }
    true
}
