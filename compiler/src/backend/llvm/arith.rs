//! Operators, comparisons and conversions, as `ir/expr.rs` defines them.
//!
//! Float operators have the flag `contract`, so that a product and a sum become one fused multiply-add, as in numba.
//! With `fastmath` they have all flags, and with `reproducible` none. Integer arithmetic wraps, so it has no flags.

use inkwell::{
    FloatPredicate, IntPredicate,
    values::{BasicValueEnum, FastMathFlags, FloatValue, IntValue},
};
use weft_artifact::Scalar;

use super::{
    Division, FunctionEmitter, Result,
    function::{float, int},
    internal,
    saturate::UsedBits,
};
use crate::ir::{BinaryOp, CompareOp, ExprId, Type, UnaryOp};

impl<'ctx> FunctionEmitter<'_, 'ctx> {
    /// The scalar type of an expression.
    fn scalar(&self, expr: ExprId) -> Result<Scalar> {
        match self.function.exprs[expr].ty {
            Type::Scalar(scalar) => Ok(scalar),
            other @ Type::Ptr(..) => internal(format!("a {other} instead of a scalar")),
        }
    }

    /// Sets the fast-math flags of the request on a float instruction. A folded constant has none.
    pub(crate) fn flagged(&self, value: FloatValue<'ctx>) -> Result<FloatValue<'ctx>> {
        if self.cx.options.reproducible {
            // An earlier pass has formed the fused multiply-adds.
            return Ok(value);
        }
        let flags = if self.cx.options.fastmath { FastMathFlags::all() } else { FastMathFlags::AllowContract };
        if let Some(instruction) = value.as_instruction() {
            let set = instruction.set_fast_math_flags(flags);
            set.or_else(|error| internal(format!("no fast-math flags on {instruction}: {error}")))?;
        }
        Ok(value)
    }

    /// `op a`.
    pub(crate) fn emit_unary(&self, op: UnaryOp, a: ExprId) -> Result<BasicValueEnum<'ctx>> {
        let scalar = self.scalar(a)?;
        let value = self.emit_expr(a)?;
        if scalar.is_half() {
            return self.half_unary(op, value);
        }
        if scalar.is_float() {
            return match op {
                UnaryOp::Neg => Ok(self.builder.build_float_neg(float(value)?, "")?.into()),
                UnaryOp::Abs => self.call_intrinsic("llvm.fabs", &[value]),
                UnaryOp::Not => internal("bitwise not of a float"),
            };
        }
        let value = int(value)?;
        Ok(match op {
            UnaryOp::Neg => self.builder.build_int_neg(value, "")?.into(),
            UnaryOp::Not => self.builder.build_not(value, "")?.into(),
            UnaryOp::Abs if scalar.is_signed_int() => {
                let wraps = self.cx.types.context.bool_type().const_zero();
                self.call_intrinsic("llvm.abs", &[value.into(), wraps.into()])?
            }
            UnaryOp::Abs => value.into(),
        })
    }

    /// `a op b`.
    pub(crate) fn emit_binary(&self, op: BinaryOp, a: ExprId, b: ExprId) -> Result<BasicValueEnum<'ctx>> {
        let scalar = self.scalar(a)?;
        if let Some(truth) = self.short_circuit(op, a, b)? {
            return Ok(truth.into());
        }
        let (a, b) = (self.emit_expr(a)?, self.emit_expr(b)?);
        if scalar.is_half() {
            return self.half_binary(op, scalar, a, b);
        }
        if scalar.is_float() {
            return Ok(self.float_binary(op, float(a)?, float(b)?)?.into());
        }
        Ok(self.int_binary(op, scalar, int(a)?, int(b)?)?.into())
    }

    pub(super) fn float_binary(
        &self,
        op: BinaryOp,
        a: FloatValue<'ctx>,
        b: FloatValue<'ctx>,
    ) -> Result<FloatValue<'ctx>> {
        let builder = &self.builder;
        match op {
            BinaryOp::Add => self.flagged(builder.build_float_add(a, b, "")?),
            BinaryOp::Sub => self.flagged(builder.build_float_sub(a, b, "")?),
            BinaryOp::Mul => self.flagged(builder.build_float_mul(a, b, "")?),
            BinaryOp::Div => self.flagged(builder.build_float_div(a, b, "")?),
            BinaryOp::FloorDiv => Ok(self.float_divmod(a, b)?.0),
            BinaryOp::FloorMod => Ok(self.float_divmod(a, b)?.1),
            BinaryOp::Min | BinaryOp::Max => {
                if let Some(value) = self.hooks.float_extreme(self, op == BinaryOp::Max, a, b)? {
                    return Ok(value);
                }
                let name = if op == BinaryOp::Min { "llvm.minimumnum" } else { "llvm.maximumnum" };
                float(self.call_intrinsic(name, &[a.into(), b.into()])?)
            }
            BinaryOp::AddExact
            | BinaryOp::SubExact
            | BinaryOp::MulExact
            | BinaryOp::DivNonneg
            | BinaryOp::ModNonneg
            | BinaryOp::Pow
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor => internal(format!("{op:?} of floats")),
        }
    }

    fn int_binary(&self, op: BinaryOp, scalar: Scalar, a: IntValue<'ctx>, b: IntValue<'ctx>) -> Result<IntValue<'ctx>> {
        let builder = &self.builder;
        let signed = scalar.is_signed_int();
        Ok(match op {
            BinaryOp::Add => builder.build_int_add(a, b, "")?,
            BinaryOp::Sub => builder.build_int_sub(a, b, "")?,
            BinaryOp::Mul => builder.build_int_mul(a, b, "")?,
            BinaryOp::AddExact if signed => builder.build_int_nsw_add(a, b, "")?,
            BinaryOp::AddExact => builder.build_int_nuw_add(a, b, "")?,
            BinaryOp::SubExact if signed => builder.build_int_nsw_sub(a, b, "")?,
            BinaryOp::SubExact => builder.build_int_nuw_sub(a, b, "")?,
            BinaryOp::MulExact if signed => builder.build_int_nsw_mul(a, b, "")?,
            BinaryOp::MulExact => builder.build_int_nuw_mul(a, b, "")?,
            BinaryOp::FloorDiv if signed => self.int_division(Division::Floor, a, b)?,
            BinaryOp::FloorMod if signed => self.int_division(Division::Modulo, a, b)?,
            BinaryOp::DivNonneg if signed => self.int_division(Division::NonnegQuotient, a, b)?,
            BinaryOp::ModNonneg if signed => self.int_division(Division::NonnegRemainder, a, b)?,
            BinaryOp::FloorDiv | BinaryOp::DivNonneg => self.int_divmod(false, a, b)?.0,
            BinaryOp::FloorMod | BinaryOp::ModNonneg => self.int_divmod(false, a, b)?.1,
            BinaryOp::Pow => self.int_pow(signed, a, b)?,
            BinaryOp::Shl => builder.build_left_shift(a, self.shift_amount(b)?, "")?,
            BinaryOp::Shr => builder.build_right_shift(a, self.shift_amount(b)?, signed, "")?,
            BinaryOp::And => builder.build_and(a, b, "")?,
            BinaryOp::Or => builder.build_or(a, b, "")?,
            BinaryOp::Xor => builder.build_xor(a, b, "")?,
            BinaryOp::Min | BinaryOp::Max => {
                let name = match (op, signed) {
                    (BinaryOp::Min, true) => "llvm.smin",
                    (BinaryOp::Min, false) => "llvm.umin",
                    (_, true) => "llvm.smax",
                    (_, false) => "llvm.umax",
                };
                int(self.call_intrinsic(name, &[a.into(), b.into()])?)?
            }
            BinaryOp::Div => return internal(format!("true division of {scalar}")),
        })
    }

    /// A shift amount modulo the width, which is a power of two.
    fn shift_amount(&self, amount: IntValue<'ctx>) -> Result<IntValue<'ctx>> {
        let width = u64::from(amount.get_type().get_bit_width());
        let mask = amount.get_type().const_int(width - 1, false);
        Ok(self.builder.build_and(amount, mask, "")?)
    }

    /// `a op b` as an `i1`.
    pub(crate) fn emit_compare(&self, op: CompareOp, a: ExprId, b: ExprId) -> Result<IntValue<'ctx>> {
        let scalar = self.scalar(a)?;
        let (mut a, mut b) = (self.emit_expr(a)?, self.emit_expr(b)?);
        if scalar.is_half() && !a.is_float_value() {
            (a, b) = (self.widen(a, scalar)?.into(), self.widen(b, scalar)?.into());
        }
        if scalar.is_float() {
            let predicate = match op {
                CompareOp::Eq => FloatPredicate::OEQ,
                CompareOp::Ne => FloatPredicate::UNE,
                CompareOp::Lt => FloatPredicate::OLT,
                CompareOp::Le => FloatPredicate::OLE,
                CompareOp::Gt => FloatPredicate::OGT,
                CompareOp::Ge => FloatPredicate::OGE,
            };
            return Ok(self.builder.build_float_compare(predicate, float(a)?, float(b)?, "")?);
        }
        let predicate = match (op, scalar.is_signed_int()) {
            (CompareOp::Eq, _) => IntPredicate::EQ,
            (CompareOp::Ne, _) => IntPredicate::NE,
            (CompareOp::Lt, true) => IntPredicate::SLT,
            (CompareOp::Le, true) => IntPredicate::SLE,
            (CompareOp::Gt, true) => IntPredicate::SGT,
            (CompareOp::Ge, true) => IntPredicate::SGE,
            (CompareOp::Lt, false) => IntPredicate::ULT,
            (CompareOp::Le, false) => IntPredicate::ULE,
            (CompareOp::Gt, false) => IntPredicate::UGT,
            (CompareOp::Ge, false) => IntPredicate::UGE,
        };
        Ok(self.builder.build_int_compare(predicate, int(a)?, int(b)?, "")?)
    }

    /// Converts `a` to `to`.
    pub(crate) fn emit_convert(&self, a: ExprId, to: Type) -> Result<BasicValueEnum<'ctx>> {
        let value = self.emit_expr(a)?;
        match (self.function.exprs[a].ty, to) {
            (Type::Scalar(from), Type::Scalar(to)) => self.convert_scalar(value, from, to),
            (Type::Ptr(_, from), Type::Ptr(_, to)) => {
                let BasicValueEnum::PointerValue(pointer) = value else { return internal("a pointer that is none") };
                let ty = self.cx.types.pointer(to);
                // Two address spaces of the IR may be the same one on the target.
                if from == to || pointer.get_type() == ty {
                    return Ok(value);
                }
                Ok(self.builder.build_address_space_cast(pointer, ty, "")?.into())
            }
            (Type::Ptr(..), Type::Scalar(Scalar::U64)) => {
                let BasicValueEnum::PointerValue(pointer) = value else { return internal("a pointer that is none") };
                Ok(self.builder.build_ptr_to_int(pointer, self.cx.types.context.i64_type(), "")?.into())
            }
            (from, to) => internal(format!("a conversion from {from} to {to}")),
        }
    }

    /// Converts a scalar as `ExprKind::Convert` defines it.
    pub(crate) fn convert_scalar(
        &self,
        value: BasicValueEnum<'ctx>,
        from: Scalar,
        to: Scalar,
    ) -> Result<BasicValueEnum<'ctx>> {
        let (builder, types) = (&self.builder, &self.cx.types);
        if from == to {
            return Ok(value);
        }
        if to.is_half() {
            return self.convert_to_half(value, from, to);
        }
        let (value, from) = if from.is_half() { (self.widen(value, from)?.into(), Scalar::F32) } else { (value, from) };
        if from == to {
            return Ok(value);
        }
        if to == Scalar::Bool {
            return Ok(match value {
                BasicValueEnum::FloatValue(value) => {
                    let zero = value.get_type().const_zero();
                    builder.build_float_compare(FloatPredicate::UNE, value, zero, "")?.into()
                }
                other @ (BasicValueEnum::ArrayValue(_)
                | BasicValueEnum::IntValue(_)
                | BasicValueEnum::PointerValue(_)
                | BasicValueEnum::StructValue(_)
                | BasicValueEnum::VectorValue(_)
                | BasicValueEnum::ScalableVectorValue(_)) => {
                    let value = int(other)?;
                    let zero = value.get_type().const_zero();
                    builder.build_int_compare(IntPredicate::NE, value, zero, "")?.into()
                }
            });
        }
        Ok(match (from.is_float(), to.is_float()) {
            (true, true) if from == Scalar::F32 => builder.build_float_ext(float(value)?, types.float(to)?, "")?.into(),
            (true, true) => builder.build_float_trunc(float(value)?, types.float(to)?, "")?.into(),
            (false, true) if from.is_signed_int() => {
                builder.build_signed_int_to_float(int(value)?, types.float(to)?, "")?.into()
            }
            // For a conversion of 0 or 1 to `f64` and a negation, ptxas 13.0 creates a select of two floats with 0.0
            // instead of -0.0. It does not change a select of floats.
            (false, true) if from == Scalar::Bool && self.cx.ptx => {
                let ty = types.float(to)?;
                builder.build_select(int(value)?, ty.const_float(1.0), ty.const_zero(), "")?
            }
            (false, true) => builder.build_unsigned_int_to_float(int(value)?, types.float(to)?, "")?.into(),
            (true, false) => {
                // Narrow integers are the low bits of a saturated 32-bit integer.
                let narrow = to.size_bytes() < 4;
                let wide = types.int(if narrow { Scalar::I32 } else { to })?;
                let wanted = if narrow { UsedBits::Low } else { UsedBits::All };
                let signed = narrow || to.is_signed_int();
                let saturated = self.cx.saturate(builder, float(value)?, wide, signed, wanted)?;
                if narrow {
                    builder.build_int_truncate(saturated, types.int(to)?, "")?.into()
                } else {
                    saturated.into()
                }
            }
            (false, false) => {
                let (value, ty) = (int(value)?, types.int(to)?);
                let (old, new) = (value.get_type().get_bit_width(), ty.get_bit_width());
                if new < old {
                    builder.build_int_truncate(value, ty, "")?.into()
                } else if new == old {
                    value.into()
                } else if from.is_signed_int() {
                    builder.build_int_s_extend(value, ty, "")?.into()
                } else {
                    builder.build_int_z_extend(value, ty, "")?.into()
                }
            }
        })
    }
}
