//! Building expressions and statements with their types.
//!
//! A [`Builder`] holds the function that is being built and a stack of open blocks. It neither folds nor checks;
//! [`super::verify`] checks. A dry builder builds no code. It records only what the typing of a function needs: the
//! type of each expression, which expressions are constants or reads, and whether an open block has statements.

use weft_artifact::Scalar;

use super::{
    Arith, BinaryOp, Block, Class, CompareOp, Const, Expr, ExprId, ExprKind, Function, Leaf, Local, LocalId, LocalKind,
    MathFn, Op, SpecialRegister, Stmt, StmtKind, Type, UnaryOp, for_each_expr,
};
use crate::source::Span;

/// Builds one function.
#[derive(Debug)]
pub struct Builder {
    /// The function under construction; [`Builder::finish`] sets its body. The function of a dry builder has only
    /// locals.
    pub function: Function,
    blocks: Vec<Block>,
    /// The span of everything that is built, in place of its own.
    fixed_span: Option<Span>,
    /// The expressions of a dry builder; `None` in one that builds.
    dry: Option<Vec<(Built, Type)>>,
}

/// The kind of an expression, as far as the front end may distinguish it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Built {
    /// A constant.
    Const(Const),
    /// A read of a local.
    Local(LocalId),
    /// A conversion of an expression.
    Convert(ExprId),
    /// Anything else.
    Other,
}

impl Built {
    fn of(kind: &ExprKind) -> Self {
        match kind.class() {
            Class::Leaf(Leaf::Const(value)) => Self::Const(value),
            Class::Leaf(Leaf::Local(local)) => Self::Local(local),
            Class::Arith(Arith::Convert(inner)) => Self::Convert(inner),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => Self::Other,
        }
    }
}

impl Builder {
    /// A builder with one open block, the body.
    pub fn new(function: Function) -> Self {
        Self { function, blocks: vec![Block::new()], fixed_span: None, dry: None }
    }

    /// A builder that builds no code.
    pub fn dry(function: Function) -> Self {
        Self { function, blocks: vec![Block::new()], fixed_span: None, dry: Some(Vec::new()) }
    }

    /// Whether this builder builds no code.
    pub fn is_dry(&self) -> bool {
        self.dry.is_some()
    }

    /// Sets one span for everything that is built from here on; with `None`, each item gets its own span again. Returns
    /// the previous setting.
    pub fn set_span(&mut self, fixed_span: Option<Span>) -> Option<Span> {
        std::mem::replace(&mut self.fixed_span, fixed_span)
    }

    /// The span that overrides all others, if one was set.
    pub fn fixed_span(&self) -> Option<Span> {
        self.fixed_span
    }

    /// Opens a block: statements go there until [`Builder::close`].
    pub fn open(&mut self) {
        self.blocks.push(Block::new());
    }

    /// Closes the innermost open block and returns its statements.
    pub fn close(&mut self) -> Block {
        self.blocks.pop().unwrap_or_default()
    }

    /// Closes the body and returns the function.
    pub fn finish(mut self) -> Function {
        self.function.body = self.blocks.pop().unwrap_or_default();
        self.function
    }

    /// Adds an expression.
    pub fn expr(&mut self, kind: ExprKind, ty: Type, span: Span) -> ExprId {
        let span = self.fixed_span.unwrap_or(span);
        match &mut self.dry {
            None => self.function.exprs.push(Expr { kind, ty, span }),
            Some(exprs) => {
                exprs.push((Built::of(&kind), ty));
                ExprId::new(exprs.len() as u32 - 1)
            }
        }
    }

    /// Adds a statement to the innermost open block. A dry builder only records that the block has a statement.
    pub fn stmt(&mut self, kind: StmtKind, span: Span) {
        let span = self.fixed_span.unwrap_or(span);
        let Some(block) = self.blocks.last_mut() else { return };
        if self.dry.is_none() {
            block.push(Stmt { kind, span });
        } else if block.is_empty() {
            block.push(Stmt { kind: StmtKind::Return(Vec::new()), span });
        }
    }

    /// Adds an operation.
    pub fn op(&mut self, op: Op, results: Vec<LocalId>, args: Vec<ExprId>, span: Span) {
        self.stmt(StmtKind::Op { op, results, args }, span);
    }

    /// Declares a local.
    pub fn local(&mut self, name: impl Into<String>, ty: Type) -> LocalId {
        self.function.locals.push(Local::new(name, LocalKind::Variable, ty))
    }

    /// Declares a part of a variable.
    pub fn part(&mut self, name: impl Into<String>, ty: Type) -> LocalId {
        self.function.locals.push(Local::new(name, LocalKind::Part, ty))
    }

    /// Declares a temporary. The next statement must assign it.
    pub fn new_temp(&mut self, ty: Type) -> LocalId {
        self.function.locals.push(Local::new("t", LocalKind::Temp, ty))
    }

    /// The type of an expression.
    pub fn ty(&self, expr: ExprId) -> Type {
        match &self.dry {
            None => self.function.exprs[expr].ty,
            Some(exprs) => exprs[expr.index()].1,
        }
    }

    /// Returns the kind of an expression.
    pub fn built(&self, expr: ExprId) -> Built {
        match &self.dry {
            None => Built::of(&self.function.exprs[expr].kind),
            Some(exprs) => exprs[expr.index()].0,
        }
    }

    /// A copy of a constant, a read of a local, or a conversion of one. Another expression is returned itself, because
    /// a copy would be evaluated twice.
    pub fn again(&mut self, expr: ExprId, span: Span) -> ExprId {
        let ty = self.ty(expr);
        match self.built(expr) {
            Built::Const(value) => self.expr(ExprKind::Const(value), ty, span),
            Built::Local(local) => self.expr(ExprKind::Local(local), ty, span),
            Built::Convert(inner) => {
                let inner = self.again(inner, span);
                self.expr(ExprKind::Convert(inner), ty, span)
            }
            Built::Other => expr,
        }
    }

    /// Whether evaluating an expression reads one of `locals`. A dry builder only knows plain reads.
    pub fn reads(&self, expr: ExprId, locals: &[LocalId]) -> bool {
        if self.is_dry() {
            return matches!(self.built(expr), Built::Local(local) if locals.contains(&local));
        }
        let mut found = false;
        for_each_expr(&self.function, expr, &mut |expr| {
            found |= matches!(&self.function.exprs[expr].kind, ExprKind::Local(local) if locals.contains(local));
        });
        found
    }

    /// Reads a local.
    pub fn read(&mut self, local: LocalId, span: Span) -> ExprId {
        let ty = self.function.locals[local].ty;
        self.expr(ExprKind::Local(local), ty, span)
    }

    /// Adds `$local = value`.
    pub fn assign(&mut self, local: LocalId, value: ExprId, span: Span) {
        self.stmt(StmtKind::Assign(local, value), span);
    }

    /// Stores a value in a fresh temporary, to use it more than once or to evaluate it now. Constants are returned
    /// unchanged.
    pub fn temp(&mut self, value: ExprId, span: Span) -> LocalId {
        let ty = self.ty(value);
        let local = self.new_temp(ty);
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
        self.expr(ExprKind::Const(Const::Float(scalar.nearest(value))), Type::Scalar(scalar), span)
    }

    /// The zero value of a type: 0, 0.0, `False`, a null pointer.
    pub fn zero(&mut self, ty: Type, span: Span) -> ExprId {
        let value = match ty {
            Type::Scalar(Scalar::Bool) => Const::Bool(false),
            Type::Scalar(scalar) if scalar.is_float() => Const::Float(0.0),
            Type::Scalar(_) => Const::Int(0),
            Type::Ptr(..) => Const::Null,
        };
        self.expr(ExprKind::Const(value), ty, span)
    }

    /// `a op b`, with the type of `a`.
    pub fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId, span: Span) -> ExprId {
        let ty = self.ty(a);
        self.expr(ExprKind::Binary(op, a, b), ty, span)
    }

    /// `op a`, with the type of `a`.
    pub fn unary(&mut self, op: UnaryOp, a: ExprId, span: Span) -> ExprId {
        let ty = self.ty(a);
        self.expr(ExprKind::Unary(op, a), ty, span)
    }

    /// `a op b`, a `Bool`.
    pub fn compare(&mut self, op: CompareOp, a: ExprId, b: ExprId, span: Span) -> ExprId {
        self.expr(ExprKind::Compare(op, a, b), Type::BOOL, span)
    }

    /// `c ? a : b`.
    pub fn select(&mut self, c: ExprId, a: ExprId, b: ExprId, span: Span) -> ExprId {
        let ty = self.ty(a);
        self.expr(ExprKind::Select(c, a, b), ty, span)
    }

    /// `a` converted to `to`; `a` itself if it already has that type.
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
