//! `if test: … elif … else: …`
//!
//! If a test is a compile-time constant (a captured constant, `is None`), only the taken branch is typed and lowered.

use crate::{
    frontend::{
        lowerer::{FnLowerer, Truth},
        optional::narrowings,
        state::{self, Env, Var},
    },
    ir::StmtKind as Ir,
    source::Span,
    syntax::ast::{Expr, ExprKind, Stmt},
};

impl FnLowerer<'_> {
    pub(super) fn if_statement(&mut self, test: &Expr, body: &[Stmt], orelse: &[Stmt], span: Span) {
        let value = self.expr_or_none(test);
        let mut bound = std::mem::take(&mut self.where_true);
        if !matches!(test.kind, ExprKind::Bool { and: true, .. }) {
            bound.clear();
        }
        match self.truth(value, test.span) {
            Truth::Known(true) => {
                self.skipped(orelse);
                self.stmts(body);
            }
            Truth::Known(false) => {
                self.skipped(body);
                self.stmts(orelse);
            }
            Truth::Poison => {
                // Both branches are lowered for their own errors.
                self.branch(None, test, (body, bound), orelse, span);
            }
            Truth::Expr(cond) => self.branch(Some(cond), test, (body, bound), orelse, span),
        }
    }

    /// `bound` has the variables with a different type if the test is true.
    fn branch(
        &mut self,
        cond: Option<crate::ir::ExprId>,
        test: &Expr,
        (body, bound): (&[Stmt], Vec<(String, Var)>),
        orelse: &[Stmt],
        span: Span,
    ) {
        let before = self.env.clone();
        let mut holds = before.clone();
        if let Some(holds) = &mut holds {
            holds.extend(bound);
        }
        let arm = |this: &mut Self, env, stmts: &[Stmt], holds| {
            this.in_block(env, |this| {
                this.narrow(&narrowings(test, holds));
                this.stmts(stmts);
            })
        };
        let then_end = arm(self, holds, body, true);
        let then = self.b.close();
        let else_end = arm(self, before, orelse, false);
        let otherwise = self.b.close();
        let joined = state::join(&[&then_end, &else_end], self.typing());
        let then = self.reopen(then, then_end, &joined, span);
        let otherwise = self.reopen(otherwise, else_end, &joined, span);
        self.env = joined;
        if let Some(cond) = cond {
            self.stmt(Ir::If { cond, then, otherwise }, span);
        }
    }

    /// Adds the conversions to a joined environment at the end of a block.
    fn reopen(&mut self, mut block: crate::ir::Block, end: Env, joined: &Env, span: Span) -> crate::ir::Block {
        self.b.open();
        block.extend(self.close_arm(end, joined, span));
        block
    }
}
