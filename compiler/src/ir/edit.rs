//! Edits a function that exists: adds expressions, and copies expressions and statements.
//!
//! Expressions form trees, so a pass that uses one twice copies it.

use super::{BinaryOp, CompareOp, Const, Expr, ExprId, ExprKind, Function, LocalId, Stmt, Type};
use crate::source::Span;

/// Adds expressions with one span to a function.
#[derive(Debug)]
pub struct Editor<'a> {
    /// The function.
    pub function: &'a mut Function,
    /// The span.
    pub span: Span,
}

impl Editor<'_> {
    /// Adds an expression.
    pub fn expr(&mut self, kind: ExprKind, ty: Type) -> ExprId {
        self.function.exprs.push(Expr { kind, ty, span: self.span })
    }

    /// An integer constant.
    pub fn int(&mut self, value: i128, ty: Type) -> ExprId {
        self.expr(ExprKind::Const(Const::Int(value)), ty)
    }

    /// A read of a local.
    pub fn read(&mut self, local: LocalId) -> ExprId {
        self.expr(ExprKind::Local(local), self.function.locals[local].ty)
    }

    /// `a op b`, with the type of `a`.
    pub fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        self.expr(ExprKind::Binary(op, a, b), self.function.exprs[a].ty)
    }

    /// `a op b`, a `Bool`.
    pub fn compare(&mut self, op: CompareOp, a: ExprId, b: ExprId) -> ExprId {
        self.expr(ExprKind::Compare(op, a, b), Type::BOOL)
    }
}

impl Function {
    /// An editor that adds expressions with a span.
    pub fn edit(&mut self, span: Span) -> Editor<'_> {
        Editor { function: self, span }
    }

    /// Copies an expression with all its operands.
    pub fn copy_expr(&mut self, id: ExprId) -> ExprId {
        let Expr { kind, ty, span } = self.exprs[id].clone();
        let kind = kind.map_operands(&mut |child| self.copy_expr(child));
        self.exprs.push(Expr { kind, ty, span })
    }

    /// Copies an expression, with other expressions in place of those for which `replace` returns one.
    pub fn copy_with(&mut self, id: ExprId, replace: &mut dyn FnMut(&mut Self, ExprId) -> Option<ExprId>) -> ExprId {
        if let Some(other) = replace(self, id) {
            return other;
        }
        let Expr { kind, ty, span } = self.exprs[id].clone();
        let kind = kind.map_operands(&mut |operand| self.copy_with(operand, replace));
        self.exprs.push(Expr { kind, ty, span })
    }

    /// Copies a statement with all its expressions.
    pub fn copy_stmt(&mut self, stmt: &Stmt) -> Stmt {
        Stmt { kind: stmt.kind.clone().map_exprs(&mut |id| self.copy_expr(id)), span: stmt.span }
    }

    /// Copies statements with all their expressions.
    pub fn copy_stmts(&mut self, stmts: &[Stmt]) -> Vec<Stmt> {
        stmts.iter().map(|stmt| self.copy_stmt(stmt)).collect()
    }
}
