//! `assert test[, message]`
//!
//! As in numba-cuda without `debug=True`: a thread whose assertion fails returns at once. In a device function it
//! returns zeros.

use crate::{
    frontend::lowerer::{FnLowerer, Truth},
    ir::{StmtKind as Ir, UnaryOp},
    source::Span,
    syntax::ast::Expr,
};

impl FnLowerer<'_> {
    pub(super) fn assert_statement(&mut self, test: &Expr, _message: Option<&Expr>, span: Span) {
        let value = self.expr(test);
        match self.truth(value, test.span) {
            Truth::Known(true) | Truth::Poison => {}
            Truth::Known(false) => {
                let zeros = self.zero_results(span);
                self.stmt(Ir::Return(zeros), span);
                self.env = None;
            }
            Truth::Expr(cond) => {
                let fails = self.b.unary(UnaryOp::Not, cond, span);
                self.b.open();
                let zeros = self.zero_results(span);
                self.stmt(Ir::Return(zeros), span);
                let then = self.b.close();
                self.stmt(Ir::If { cond: fails, then, otherwise: Vec::new() }, span);
            }
        }
    }

    /// A zero for each part of what the function returns, as far as known.
    fn zero_results(&mut self, span: Span) -> Vec<crate::ir::ExprId> {
        let Some(expected) = self.returns.as_ref().and_then(|returns| returns.expected.clone()) else {
            return Vec::new();
        };
        expected.parts().into_iter().map(|(_, ty)| self.b.zero(ty, span)).collect()
    }
}
