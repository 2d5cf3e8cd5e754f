//! Building expressions and statements with their types.
//!
//! A [`Builder`] holds the function that is being built and a stack of open blocks. It folds nothing and checks
//! nothing; [`super::verify`] does.

use weft_artifact::Scalar;

use super::{
    BinaryOp, Block, CompareOp, Const, Expr, ExprId, ExprKind, Function, Local, LocalId, MathFn, SpecialRegister, Stmt,
    StmtKind, Type, UnaryOp,
};
use crate::source::Span;

/// Builds one function.
#[derive(Debug)]
pub struct Builder {
    /// The function so far; its body is filled by [`Builder::finish`].
    pub function: Function,
    blocks: Vec<Block>,
}

/// A state of a builder to go back to, when a loop body is lowered again with wider types.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    exprs: usize,
    locals: usize,
    local_arrays: usize,
    depth: usize,
    stmts: usize,
}

impl Builder {
    /// A builder with one open block, the body.
    pub fn new(function: Function) -> Self {
        Self { function, blocks: vec![Block::new()] }
    }

    /// Opens a block: statements go there until [`Builder::close`].
    pub fn open(&mut self) {
        self.blocks.push(Block::new());
    }

    /// Closes the innermost open block and gives its statements.
    pub fn close(&mut self) -> Block {
        self.blocks.pop().unwrap_or_default()
    }

    /// Closes the body and gives the function.
    pub fn finish(mut self) -> Function {
        self.function.body = self.blocks.pop().unwrap_or_default();
        self.function
    }

    /// The present state.
    pub fn mark(&self) -> Mark {
        Mark {
            exprs: self.function.exprs.len(),
            locals: self.function.locals.len(),
            local_arrays: self.function.local_arrays.len(),
            depth: self.blocks.len(),
            stmts: self.blocks.last().map_or(0, Vec::len),
        }
    }

    /// Drops everything built since `mark`.
    pub fn rewind(&mut self, mark: Mark) {
        self.function.exprs.truncate(mark.exprs);
        self.function.locals.truncate(mark.locals);
        self.function.local_arrays.truncate(mark.local_arrays);
        self.blocks.truncate(mark.depth);
        if let Some(block) = self.blocks.last_mut() {
            block.truncate(mark.stmts);
        }
    }

    /// Adds an expression.
    pub fn expr(&mut self, kind: ExprKind, ty: Type, span: Span) -> ExprId {
        self.function.exprs.push(Expr { kind, ty, span })
    }

    /// Adds a statement to the innermost open block.
    pub fn stmt(&mut self, kind: StmtKind, span: Span) {
        if let Some(block) = self.blocks.last_mut() {
            block.push(Stmt { kind, span });
        }
    }

    /// Declares a local.
    pub fn local(&mut self, name: impl Into<String>, ty: Type) -> LocalId {
        self.function.locals.push(Local { name: name.into(), ty, nonneg: false, counts: false })
    }

    /// The type of an expression.
    pub fn ty(&self, expr: ExprId) -> Type {
        self.function.exprs[expr].ty
    }

    /// Reads a local.
    pub fn read(&mut self, local: LocalId, span: Span) -> ExprId {
        let ty = self.function.locals[local].ty;
        self.expr(ExprKind::Local(local), ty, span)
    }

    /// `$local = value`.
    pub fn assign(&mut self, local: LocalId, value: ExprId, span: Span) {
        self.stmt(StmtKind::Assign(local, value), span);
    }

    /// The value in a fresh temporary: to be used more than once, or evaluated now. Constants stay as they are.
    pub fn temp(&mut self, value: ExprId, span: Span) -> LocalId {
        let ty = self.ty(value);
        let local = self.local("t", ty);
        self.assign(local, value, span);
        local
    }

    /// An integer constant.
    pub fn int(&mut self, scalar: Scalar, value: i128, span: Span) -> ExprId {
        self.expr(ExprKind::Const(Const::Int(value)), Type::Scalar(scalar), span)
    }

    /// An `I64` constant.
    pub fn i64(&mut self, value: i64, span: Span) -> ExprId {
        self.int(Scalar::I64, i128::from(value), span)
    }

    /// A `Bool` constant.
    pub fn bool(&mut self, value: bool, span: Span) -> ExprId {
        self.expr(ExprKind::Const(Const::Bool(value)), Type::BOOL, span)
    }

    /// A float constant; for `F32` the value is rounded first.
    pub fn float(&mut self, scalar: Scalar, value: f64, span: Span) -> ExprId {
        let value = if scalar == Scalar::F32 { f64::from(value as f32) } else { value };
        self.expr(ExprKind::Const(Const::Float(value)), Type::Scalar(scalar), span)
    }

    /// `a op b`, of `a`'s type.
    pub fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId, span: Span) -> ExprId {
        let ty = self.ty(a);
        self.expr(ExprKind::Binary(op, a, b), ty, span)
    }

    /// `op a`, of `a`'s type.
    pub fn unary(&mut self, op: UnaryOp, a: ExprId, span: Span) -> ExprId {
        let ty = self.ty(a);
        self.expr(ExprKind::Unary(op, a), ty, span)
    }

    /// `a op b` as a `Bool`.
    pub fn compare(&mut self, op: CompareOp, a: ExprId, b: ExprId, span: Span) -> ExprId {
        self.expr(ExprKind::Compare(op, a, b), Type::BOOL, span)
    }

    /// `c ? a : b`.
    pub fn select(&mut self, c: ExprId, a: ExprId, b: ExprId, span: Span) -> ExprId {
        let ty = self.ty(a);
        self.expr(ExprKind::Select(c, a, b), ty, span)
    }

    /// `a` as `to`; `a` itself where it has that type.
    pub fn convert(&mut self, a: ExprId, to: Type, span: Span) -> ExprId {
        if self.ty(a) == to { a } else { self.expr(ExprKind::Convert(a), to, span) }
    }

    /// A math function on arguments of one float type.
    pub fn math(&mut self, function: MathFn, args: Vec<ExprId>, ty: Type, span: Span) -> ExprId {
        self.expr(ExprKind::Math(function, args), ty, span)
    }

    /// A special register.
    pub fn special(&mut self, register: SpecialRegister, span: Span) -> ExprId {
        self.expr(ExprKind::Special(register), Type::I32, span)
    }
}
