//! Checks of a function whose types are not known: undefined names, and statements and expressions that kernels do not
//! support. The front end reports these and more errors for functions with types.

use std::collections::BTreeSet;

use weft_compiler::{
    diagnostic::{Code, Diagnostic},
    frontend, intrinsics,
    source::Span,
    syntax::{
        ast::{Expr, ExprKind, Stmt, StmtKind},
        free_chains,
    },
};

use crate::program::{KernelDef, Program};

/// The errors of a function, in source order.
pub(crate) fn check(program: &Program, kernel: &KernelDef<'_>) -> Vec<Diagnostic> {
    let ast = &kernel.function.ast;
    let roots = free_chains(ast).into_iter().map(|chain| chain.split('.').next().unwrap_or_default().to_owned());
    let is_python = |name: &str| intrinsics::is_known(&format!("builtins.{name}")) || intrinsics::is_exception(name);
    let is_unknown = |name: &String| !program.defines(kernel, name) && !is_python(name);
    let (absent, undefined) = roots.filter(is_unknown).partition(|name| intrinsics::is_builtin(name));
    let mut visitor = NameVisitor { undefined, absent, faults: Vec::new(), text: program.text(kernel) };
    visitor.stmts(&ast.body, false);
    visitor.faults.sort_by_key(|fault| fault.span);
    visitor.faults
}

struct NameVisitor<'a> {
    /// Undefined names, each reported at its first use.
    undefined: BTreeSet<String>,
    /// Python builtins that kernels do not support, each reported at its first use.
    absent: BTreeSet<String>,
    faults: Vec<Diagnostic>,
    text: &'a str,
}

impl NameVisitor<'_> {
    fn stmts(&mut self, stmts: &[Stmt], in_loop: bool) {
        for stmt in stmts {
            self.stmt(stmt, in_loop);
        }
    }

    fn stmt(&mut self, stmt: &Stmt, in_loop: bool) {
        match &stmt.kind {
            StmtKind::Assign { targets, value } => {
                self.expr(value);
                self.exprs(targets);
            }
            StmtKind::AnnAssign { target, annotation: _, value } => {
                self.exprs(value.as_slice());
                self.expr(target);
            }
            StmtKind::AugAssign { target, op: _, value } => {
                self.expr(value);
                self.expr(target);
            }
            StmtKind::Expr(value) => self.expr(value),
            StmtKind::If { test, body, orelse } => {
                self.expr(test);
                self.stmts(body, in_loop);
                self.stmts(orelse, in_loop);
            }
            StmtKind::While { test, body, orelse } => {
                self.expr(test);
                self.stmts(body, true);
                self.stmts(orelse, in_loop);
            }
            StmtKind::For { target, iter, body, orelse } => {
                self.expr(iter);
                self.expr(target);
                self.stmts(body, true);
                self.stmts(orelse, in_loop);
            }
            StmtKind::Return(value) => self.exprs(value.as_slice()),
            StmtKind::Assert { test, message } => {
                self.expr(test);
                self.exprs(message.as_slice());
            }
            StmtKind::Break if !in_loop => self.misplaced("break", stmt.span),
            StmtKind::Continue if !in_loop => self.misplaced("continue", stmt.span),
            StmtKind::Break | StmtKind::Continue | StmtKind::Pass => {}
            StmtKind::Raise(_) => self.unsupported("a `raise` statement", stmt.span),
            // A nested function is checked when it is called.
            StmtKind::FunctionDef(_) | StmtKind::Delete(_) => {}
            // The names that it binds are known only when the function is compiled.
            StmtKind::Global(_) | StmtKind::Nonlocal(_) => {}
            StmtKind::Unsupported(what) => self.unsupported(what, stmt.span),
        }
    }

    fn misplaced(&mut self, what: &str, span: Span) {
        self.faults.push(Diagnostic::error(Code::MisplacedStatement, span, format!("`{what}` outside a loop")));
    }

    /// Reports the first line of the statement.
    fn unsupported(&mut self, what: &str, span: Span) {
        let lines = self.text.get(span.start as usize..span.end as usize);
        let first = lines.and_then(|lines| lines.find('\n')).map_or(span.end, |length| span.start + length as u32);
        let span = Span { end: first, ..span };
        self.faults.push(Diagnostic::error(Code::UnsupportedStatement, span, format!("a kernel cannot have {what}")));
    }

    fn exprs(&mut self, exprs: &[Expr]) {
        for expr in exprs {
            self.expr(expr);
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Name(name) if self.undefined.remove(name) => {
                let message = format!("name `{name}` is not defined");
                self.faults.push(Diagnostic::error(Code::UnknownName, expr.span, message));
            }
            ExprKind::Name(name) if self.absent.remove(name) => {
                self.faults.push(frontend::no_builtin(name, expr.span));
            }
            ExprKind::List(_) => {
                let error = Diagnostic::error(Code::UnsupportedExpression, expr.span, "a kernel cannot make a list");
                self.faults.push(error.help("use a tuple, or `cuda.local.array(shape, dtype)`"));
            }
            ExprKind::Unsupported(what) => {
                let message = format!("a kernel cannot have {} {what}", weft_artifact::article(what));
                self.faults.push(Diagnostic::error(Code::UnsupportedExpression, expr.span, message));
            }
            ExprKind::Name(_)
            | ExprKind::Constant(_)
            | ExprKind::Binary { .. }
            | ExprKind::Unary { .. }
            | ExprKind::Bool { .. }
            | ExprKind::Compare { .. }
            | ExprKind::IfExp { .. }
            | ExprKind::Call { .. }
            | ExprKind::Attribute { .. }
            | ExprKind::Subscript { .. }
            | ExprKind::Slice { .. }
            | ExprKind::Tuple(_)
            | ExprKind::Starred(_)
            | ExprKind::Named { .. }
            | ExprKind::Lambda(_)
            | ExprKind::Comprehension { .. } => {}
        }
        for child in expr.children() {
            self.expr(child);
        }
    }
}
