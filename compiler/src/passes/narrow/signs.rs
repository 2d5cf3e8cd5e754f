//! Unsigned 64-bit integers that fit `int64` become signed, since the later passes analyze signed integers.
//!
//! Numba's rules make sums of bytes `uint64`: `image[y, x] + image[y, x + 1]`. Sums and products have the same bits
//! with either signedness, and so have comparisons and quotients of values whose highest bit is clear.

use std::collections::BTreeSet;

use weft_artifact::Scalar;

use crate::{
    analysis::{Interval, Ranges},
    ir::{
        Arith, BinaryOp, Block, Class, Const, Expr, ExprId, ExprKind, Function, Leaf, LocalId, Module, Stmt, StmtKind,
        Type, for_each_stmt,
    },
};

const UNSIGNED: Type = Type::Scalar(Scalar::U64);

/// The values that `int64` and `uint64` share.
const COMMON: Interval = Interval::new(0, i64::MAX as i128);

/// Converts all functions.
pub(super) fn make_signed(module: &mut Module) {
    let has_some = module.functions.iter().any(|(_, function)| {
        function.exprs.iter().any(|(_, expr)| expr.ty == UNSIGNED && matches!(expr.kind.class(), Class::Arith(_)))
    });
    if !has_some {
        return;
    }
    let ranges = Ranges::of(module);
    for ((_, function), ranges) in module.functions.iter_mut().zip(&ranges) {
        let locals = locals(function, ranges);
        let body = std::mem::take(&mut function.body);
        let mut pass = Signs { function, ranges, locals };
        let body = pass.block(body);
        let Signs { function, locals, .. } = pass;
        for local in locals {
            function.locals[local].ty = Type::I64;
            function.locals[local].nonneg = true;
        }
        function.body = body;
    }
}

/// The locals that become signed.
fn locals(function: &Function, ranges: &Ranges) -> BTreeSet<LocalId> {
    let mut found: BTreeSet<LocalId> = function
        .locals
        .iter()
        .filter(|(id, local)| local.ty == UNSIGNED && !local.counts && ranges.local(function, *id).within(COMMON))
        .map(|(id, _)| id)
        .collect();
    for param in &function.params {
        found.remove(param);
    }
    // The result of an operation or a call has a fixed type.
    for_each_stmt(&function.body, &mut |stmt| {
        if !matches!(stmt.kind, StmtKind::Assign(..)) {
            for local in stmt.kind.assigned() {
                found.remove(&local);
            }
        }
    });
    found
}

struct Signs<'a> {
    function: &'a mut Function,
    ranges: &'a Ranges,
    locals: BTreeSet<LocalId>,
}

impl Signs<'_> {
    fn block(&mut self, block: Block) -> Block {
        block.into_iter().map(|stmt| self.stmt(stmt)).collect()
    }

    fn stmt(&mut self, Stmt { kind, span }: Stmt) -> Stmt {
        let kind = match kind {
            StmtKind::Assign(local, value) if self.locals.contains(&local) => {
                StmtKind::Assign(local, self.signed(value))
            }
            StmtKind::If { cond, then, otherwise } => {
                StmtKind::If { cond: self.same(cond), then: self.block(then), otherwise: self.block(otherwise) }
            }
            StmtKind::Loop { body, step } => StmtKind::Loop { body: self.block(body), step: self.block(step) },
            kind @ (StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_)) => kind.map_exprs(&mut |id| self.same(id)),
        };
        Stmt { kind, span }
    }

    fn push(&mut self, kind: ExprKind, ty: Type, like: ExprId) -> ExprId {
        let span = self.function.exprs[like].span;
        self.function.exprs.push(Expr { kind, ty, span })
    }

    /// Whether an original expression is unsigned and fits `int64`.
    fn is_common(&self, id: ExprId) -> bool {
        let range = self.ranges.expr(self.function, id);
        let range = match self.function.local(id) {
            Some(local) => range.meet(self.ranges.local(self.function, local)),
            None => range,
        };
        self.function.exprs[id].ty == UNSIGNED && range.within(COMMON)
    }

    /// The expression with its own type; its operands become signed.
    fn same(&mut self, id: ExprId) -> ExprId {
        let ty = self.function.exprs[id].ty;
        match self.function.class(id) {
            Class::Leaf(Leaf::Local(local)) if self.locals.contains(&local) => {
                let signed = self.push(ExprKind::Local(local), Type::I64, id);
                self.push(ExprKind::Convert(signed), UNSIGNED, id)
            }
            Class::Arith(Arith::Compare(op, a, b)) if self.is_common(a) && self.is_common(b) => {
                let (a, b) = (self.signed(a), self.signed(b));
                self.push(ExprKind::Compare(op, a, b), Type::BOOL, id)
            }
            Class::Arith(Arith::Convert(from)) if self.is_common(from) => {
                let signed = self.signed(from);
                if ty == Type::I64 { signed } else { self.push(ExprKind::Convert(signed), ty, id) }
            }
            Class::Arith(Arith::Binary(..) | Arith::Select(..)) if self.is_common(id) => {
                let signed = self.signed(id);
                self.push(ExprKind::Convert(signed), UNSIGNED, id)
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => self.rebuilt(id),
        }
    }

    /// The same operation on signed operands.
    fn rebuilt(&mut self, id: ExprId) -> ExprId {
        let kind = self.function.exprs[id].kind.clone().map_operands(&mut |operand| self.same(operand));
        self.function.exprs[id].kind = kind;
        id
    }

    /// The 64 bits of an unsigned expression as `int64`; if it is [common](Self::is_common), its value.
    fn signed(&mut self, id: ExprId) -> ExprId {
        let from_int = |from: ExprId| self.function.exprs[from].ty.scalar().is_some_and(Scalar::is_int);
        let kind = match self.function.class(id) {
            Class::Leaf(Leaf::Const(Const::Int(value))) if self.is_common(id) => ExprKind::Const(Const::Int(value)),
            Class::Leaf(Leaf::Local(local)) if self.locals.contains(&local) => ExprKind::Local(local),
            Class::Arith(Arith::Convert(from)) if from_int(from) => {
                let same = self.same(from);
                if self.function.exprs[same].ty == Type::I64 {
                    return same;
                }
                ExprKind::Convert(same)
            }
            Class::Arith(Arith::Binary(op, a, b)) if let Some(op) = self.signed_op(id, op, a, b) => {
                ExprKind::Binary(op, self.signed(a), self.signed(b))
            }
            Class::Arith(Arith::Select(cond, a, b)) => {
                ExprKind::Select(self.same(cond), self.signed(a), self.signed(b))
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => {
                ExprKind::Convert(self.rebuilt(id))
            }
        };
        self.push(kind, Type::I64, id)
    }

    /// The operator on signed operands that gives the same bits, if there is one.
    fn signed_op(&self, id: ExprId, op: BinaryOp, a: ExprId, b: ExprId) -> Option<BinaryOp> {
        let operands = self.is_common(a) && self.is_common(b);
        let exact = operands && self.is_common(id);
        match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => Some(op),
            BinaryOp::AddExact => Some(if exact { op } else { BinaryOp::Add }),
            BinaryOp::SubExact => Some(if exact { op } else { BinaryOp::Sub }),
            BinaryOp::MulExact => Some(if exact { op } else { BinaryOp::Mul }),
            BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::FloorDiv
            | BinaryOp::FloorMod
            | BinaryOp::DivNonneg
            | BinaryOp::ModNonneg
            | BinaryOp::Shl
            | BinaryOp::Shr => operands.then_some(op),
            BinaryOp::Pow | BinaryOp::Div => None,
        }
    }
}
