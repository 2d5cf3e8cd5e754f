//! Statements: one file per kind.

mod assign;
mod r#for;
mod generated;
mod r#if;
mod raise;
mod r#return;
mod unset;
mod r#while;

use super::{
    lowerer::FnLowerer,
    object::Static,
    refusals,
    ty::shown_path,
    value::{LibraryName, Value},
};
use crate::{
    diagnostic::{Code, Diagnostic},
    ir::StmtKind as Ir,
    source::Span,
    stop,
    syntax::ast::{Expr, ExprKind, Stmt, StmtKind},
};

impl FnLowerer<'_> {
    /// Lowers statements in order; unreachable ones are skipped.
    pub(super) fn stmts(&mut self, stmts: &[Stmt]) {
        for (at, stmt) in stmts.iter().enumerate() {
            if self.env.is_none() || self.ends_unset(stmt) {
                self.skipped(&stmts[at..]);
                return;
            }
            self.statement(stmt);
        }
    }

    fn statement(&mut self, stmt: &Stmt) {
        stop::check();
        let span = stmt.span;
        match &stmt.kind {
            StmtKind::Assign { targets, value } => self.assign(targets, value, span),
            StmtKind::AnnAssign { target, value, .. } => {
                if let Some(value) = value {
                    self.assign(std::slice::from_ref(target), value, span);
                }
            }
            StmtKind::AugAssign { target, op, value } => self.aug_assign(target, *op, value, span),
            StmtKind::Expr(expr) => {
                if !matches!(expr.kind, ExprKind::Constant(_)) {
                    let value = self.expr_or_none(expr);
                    self.check_called(expr, &value);
                }
            }
            StmtKind::If { test, body, orelse } => self.if_statement(test, body, orelse, span),
            StmtKind::While { test, body, orelse } => self.while_statement(test, body, orelse, span),
            StmtKind::For { target, iter, body, orelse } => self.for_statement(target, iter, body, orelse, span),
            StmtKind::Break => self.jump(true, span),
            StmtKind::Continue => self.jump(false, span),
            StmtKind::Return(value) => self.return_statement(value.as_ref(), span),
            StmtKind::Pass => {}
            StmtKind::Assert { test, message } => self.assert_statement(test, message.as_ref(), span),
            StmtKind::Raise(value) => self.raise_statement(value.as_ref(), span),
            StmtKind::FunctionDef(function) => {
                if !function.decorators.is_empty() {
                    let help = "remove it: an inner function needs none; or define the function outside";
                    self.unsupported("a decorator on a nested function", help, span);
                    return;
                }
                let value = self.closure(function);
                self.assign_var(&function.name, value, function.name_span);
            }
            StmtKind::Delete(targets) => {
                for target in targets {
                    self.delete(target);
                }
            }
            StmtKind::Global(names) => {
                if let Some(name) = names.iter().find(|name| self.names.bound.contains(*name)) {
                    let what = format!("assign to the global `{name}`");
                    self.cannot(
                        &what,
                        "a global is a constant in a kernel: return the value, or write it into an array",
                        span,
                    );
                }
            }
            StmtKind::Nonlocal(names) => {
                // The names that the function can declare are its captured variables, which are its own parameters.
                if let Some(name) = names.iter().find(|name| !self.names.writes.contains(*name)) {
                    let what = format!("assign to `{name}`, a variable of a function outside the kernel");
                    let help = "it is a constant in a kernel: return the value, and assign it where the function is \
                        called";
                    self.cannot(&what, help, span);
                    self.env = None;
                }
            }
            StmtKind::Unsupported(what) => {
                self.unsupported(what, refusals::suggestion(what), span);
            }
        }
    }

    /// Reports an expression statement that is only a function: a call was probably intended.
    fn check_called(&mut self, expr: &Expr, value: &Value) {
        let name = if let Value::Static(Static::Known(LibraryName::Row(row))) = value {
            shown_path(row.path)
        } else if let Value::Static(Static::Function(def)) = value {
            def.ast.name.as_str()
        } else {
            return;
        };
        if matches!(expr.kind, ExprKind::Name(_) | ExprKind::Attribute { .. }) {
            let message = format!("`{name}` is not called here: the line does nothing");
            let diagnostic = Diagnostic::error(Code::ArgumentCount, expr.span, message);
            self.report(diagnostic.help(format!("call it: `{name}()`, with its arguments")));
        }
    }

    /// `del name`: the name has no value from here on.
    fn delete(&mut self, target: &Expr) {
        match &target.kind {
            ExprKind::Name(name) => {
                self.expr_or_none(target);
                if let Some(env) = &mut self.env {
                    env.remove(name.as_str());
                }
                self.names.given.remove(name);
            }
            ExprKind::Tuple(targets) | ExprKind::List(targets) => {
                for target in targets {
                    self.delete(target);
                }
            }
            ExprKind::Constant(_)
            | ExprKind::Binary { .. }
            | ExprKind::Unary { .. }
            | ExprKind::Bool { .. }
            | ExprKind::Compare { .. }
            | ExprKind::IfExp { .. }
            | ExprKind::Call { .. }
            | ExprKind::Attribute { .. }
            | ExprKind::Subscript { .. }
            | ExprKind::Slice { .. }
            | ExprKind::Starred(_)
            | ExprKind::Named { .. }
            | ExprKind::Lambda(_)
            | ExprKind::Comprehension { .. }
            | ExprKind::Unsupported(_) => {
                let diagnostic =
                    Diagnostic::error(Code::UnsupportedStatement, target.span, "a kernel can only delete names");
                self.report(diagnostic.help("items of arrays and tuples cannot be deleted"));
            }
        }
    }

    fn unsupported(&mut self, what: &str, help: &str, span: Span) {
        self.cannot(&format!("have {what}"), help, span);
    }

    fn cannot(&mut self, what: &str, help: &str, span: Span) {
        let first_line = self.first_line(span);
        let message = format!("a kernel cannot {what}");
        self.report(Diagnostic::error(Code::UnsupportedStatement, first_line, message).help(help));
    }

    /// The part of a span on its first line: messages do not show a compound statement as a whole.
    pub(super) fn first_line(&self, span: Span) -> Span {
        let text = &self.def.source.text;
        let end = text
            .get(span.start as usize..span.end as usize)
            .and_then(|body| body.find('\n'))
            .map_or(span.end, |length| span.start + length as u32);
        Span { end, ..span }
    }

    /// `break` or `continue`.
    fn jump(&mut self, leaves: bool, span: Span) {
        let env = self.env.clone();
        let Some(state) = self.loops.open.last_mut() else {
            let what = if leaves { "break" } else { "continue" };
            self.error(Code::MisplacedStatement, span, format!("`{what}` outside a loop"));
            return;
        };
        let target = if leaves {
            state.breaks.push(env);
            state.exit.clone()
        } else {
            state.continues.push(env);
            state.header.clone()
        };
        self.convert_env(&target, span);
        self.stmt(if leaves { Ir::Break } else { Ir::Continue }, span);
        self.env = None;
    }
}
