//! `assert test[, message]`
//!
//! As in numba-cuda without `debug=True`, a thread whose assertion fails ends at once. In a kernel that is a return. A
//! device function that can end its thread has one more result, a `Bool` that says so, and whoever calls it then ends
//! the thread in turn.

use crate::{
    frontend::{
        lowerer::{FnLowerer, Truth},
        optional::facts,
        ty::Ty,
    },
    ir::{ExprId, StmtKind as Ir, UnaryOp},
    source::Span,
    syntax::ast::Expr,
};

impl FnLowerer<'_> {
    pub(super) fn assert_statement(&mut self, test: &Expr, _message: Option<&Expr>, span: Span) {
        let value = self.expr_or_none(test);
        match self.truth(value, test.span) {
            Truth::Known(true) | Truth::Poison => {}
            Truth::Known(false) => {
                self.end_thread(span);
                self.env = None;
            }
            Truth::Expr(cond) => {
                let fails = self.b.unary(UnaryOp::Not, cond, span);
                self.end_thread_if(fails, span);
                self.narrow(&facts(test, true));
            }
        }
    }

    /// `if cond:` the thread ends.
    pub(in crate::frontend) fn end_thread_if(&mut self, cond: ExprId, span: Span) {
        self.b.open();
        self.end_thread(span);
        let then = self.b.close();
        self.stmt(Ir::If { cond, then, otherwise: Vec::new() }, span);
    }

    pub(super) fn end_thread(&mut self, span: Span) {
        self.ends_thread = true;
        let mut values = Vec::new();
        if let Some(returns) = &self.returns {
            // What the caller does not read.
            let parts = returns.expected.as_ref().map(Ty::parts).unwrap_or_default();
            values.extend(parts.into_iter().map(|(_, ty)| self.b.zero(ty, span)));
            values.push(self.b.bool(true, span));
        }
        self.stmt(Ir::Return(values), span);
    }
}
