//! Conditional expressions, `and` and `or`: expressions that need only one of their operands.
//!
//! Expressions have no side effects, so both operands may be evaluated, and usually that is cheaper than a branch. On
//! PTX it is not, if an operand contains a square root, a division or a function of the math library: each is dozens of
//! instructions.

use inkwell::values::{BasicValueEnum, IntValue};
use weft_artifact::Scalar;

use super::{FunctionEmitter, Result, function::int, internal, math::is_long};
use crate::ir::{BinaryOp, ExprId, ExprKind, Type, for_each_expr};

impl<'ctx> FunctionEmitter<'_, 'ctx> {
    /// `a` if `c` is true, else `b`.
    pub(super) fn emit_select(&self, c: ExprId, a: ExprId, b: ExprId) -> Result<BasicValueEnum<'ctx>> {
        if self.is_long(a) || self.is_long(b) {
            let cond = self.emit_int(c)?;
            return self.either(cond, || self.emit_expr(a), || self.emit_expr(b));
        }
        let (c, a, b) = (self.emit_int(c)?, self.emit_expr(a)?, self.emit_expr(b)?);
        Ok(self.builder.build_select(c, a, b, "")?)
    }

    /// `a and b` or `a or b` of truth values, with a branch if `b` is expensive.
    pub(super) fn short_circuit(&self, op: BinaryOp, a: ExprId, b: ExprId) -> Result<Option<IntValue<'ctx>>> {
        let is_truth = self.function.exprs[a].ty == Type::BOOL;
        if !is_truth || !matches!(op, BinaryOp::And | BinaryOp::Or) || !self.is_long(b) {
            return Ok(None);
        }
        let left = self.emit_int(a)?;
        let decided = || Ok(left.into());
        let right = || self.emit_expr(b);
        let value =
            if op == BinaryOp::And { self.either(left, right, decided)? } else { self.either(left, decided, right)? };
        int(value).map(Some)
    }

    /// One of two values; a branch evaluates only that one.
    fn either(
        &self,
        cond: IntValue<'ctx>,
        a: impl FnOnce() -> Result<BasicValueEnum<'ctx>>,
        b: impl FnOnce() -> Result<BasicValueEnum<'ctx>>,
    ) -> Result<BasicValueEnum<'ctx>> {
        let (then, otherwise, end) = (self.block("chosen"), self.block("otherwise"), self.block("either"));
        self.builder.build_conditional_branch(cond, then, otherwise)?;
        self.builder.position_at_end(then);
        let a = a()?;
        let then = self.current()?;
        self.go(end)?;
        self.builder.position_at_end(otherwise);
        let b = b()?;
        let otherwise = self.current()?;
        self.go(end)?;
        self.builder.position_at_end(end);
        if a.get_type() != b.get_type() {
            return internal(format!("a choice of {a} or {b}"));
        }
        let value = self.builder.build_phi(a.get_type(), "")?;
        value.add_incoming(&[(&a, then), (&b, otherwise)]);
        Ok(value.as_basic_value())
    }

    /// Whether an expression is so expensive that a branch around it is worthwhile.
    fn is_long(&self, id: ExprId) -> bool {
        if !self.cx.ptx || !self.cx.options.opt {
            return false;
        }
        let mut found = false;
        for_each_expr(self.function, id, &mut |part| {
            let expr = &self.function.exprs[part];
            // With `fastmath`, 32-bit operations have short forms.
            let exact = !self.cx.options.fastmath || expr.ty == Type::Scalar(Scalar::F64);
            found |= match &expr.kind {
                ExprKind::Binary(BinaryOp::Div | BinaryOp::Pow, ..) => exact,
                ExprKind::Binary(
                    BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::DivNonneg | BinaryOp::ModNonneg,
                    _,
                    divisor,
                ) => self.function.int(*divisor).is_none(),
                ExprKind::Math(function, _) => exact && is_long(*function),
                ExprKind::Binary(..)
                | ExprKind::Const(_)
                | ExprKind::Local(_)
                | ExprKind::Special(_)
                | ExprKind::Unary(..)
                | ExprKind::Compare(..)
                | ExprKind::Select(..)
                | ExprKind::Convert(_)
                | ExprKind::Load(..)
                | ExprKind::Offset { .. }
                | ExprKind::ByteOffset { .. }
                | ExprKind::SharedBase(_)
                | ExprKind::ConstBase(_)
                | ExprKind::DynamicShared
                | ExprKind::LocalBase(_)
                | ExprKind::Wrap { .. } => false,
            };
        });
        found
    }
}
