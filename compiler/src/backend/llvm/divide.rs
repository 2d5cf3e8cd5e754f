//! Python's `//` and `%`.

use inkwell::{
    FloatPredicate, IntPredicate,
    values::{FloatValue, IntValue},
};

use super::{
    FunctionEmitter, Result, constant,
    function::{float, int},
};
use crate::ir::MathFn;

/// A division of integers. A division by zero results in 0, and so does the minimum divided by -1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Division {
    /// The quotient of signed numbers, rounded towards minus infinity.
    Floor,
    /// The remainder of `Floor`.
    Modulo,
    /// The quotient of signed numbers that are not negative.
    NonnegQuotient,
    /// The remainder of `NonnegQuotient`.
    NonnegRemainder,
}

/// The integral quotient of the absolute values of two numbers, and the remainder. They are valid if `few` is true.
struct Near<'ctx> {
    quotient: FloatValue<'ctx>,
    rest: FloatValue<'ctx>,
    few: IntValue<'ctx>,
}

impl<'ctx> FunctionEmitter<'_, 'ctx> {
    /// A division of integers in the target's form, if it has one.
    pub(crate) fn int_division(
        &self,
        division: Division,
        a: IntValue<'ctx>,
        b: IntValue<'ctx>,
    ) -> Result<IntValue<'ctx>> {
        if let Some(value) = self.hooks.divide(self, division, a, b)? {
            return Ok(value);
        }
        Ok(match division {
            Division::Floor => self.int_divmod(true, a, b)?.0,
            Division::Modulo => self.int_divmod(true, a, b)?.1,
            Division::NonnegQuotient => self.int_divmod(false, a, b)?.0,
            Division::NonnegRemainder => self.int_divmod(false, a, b)?.1,
        })
    }

    /// Quotient rounded towards minus infinity, and the remainder with the divisor's sign. By zero both are 0, and so
    /// are they for the minimum divided by -1. LLVM removes the tests if the divisor is a constant, and an unused
    /// result.
    pub(crate) fn int_divmod(
        &self,
        signed: bool,
        a: IntValue<'ctx>,
        b: IntValue<'ctx>,
    ) -> Result<(IntValue<'ctx>, IntValue<'ctx>)> {
        let builder = &self.builder;
        let ty = b.get_type();
        let (zero, one) = (ty.const_zero(), ty.const_int(1, false));
        let mut bad = builder.build_int_compare(IntPredicate::EQ, b, zero, "")?;
        if !signed {
            let safe = int(builder.build_select(bad, one, b, "")?)?;
            let quotient = builder.build_int_unsigned_div(a, safe, "")?;
            let remainder = builder.build_int_unsigned_rem(a, safe, "")?;
            let quotient = int(builder.build_select(bad, zero, quotient, "")?)?;
            // The remainder by one is 0, as required.
            return Ok((quotient, remainder));
        }
        let minimum = ty.const_int(1 << (ty.get_bit_width() - 1), false);
        let at_minimum = builder.build_int_compare(IntPredicate::EQ, a, minimum, "")?;
        let by_minus_one = builder.build_int_compare(IntPredicate::EQ, b, ty.const_all_ones(), "")?;
        let overflows = builder.build_and(at_minimum, by_minus_one, "")?;
        bad = builder.build_or(bad, overflows, "")?;
        let safe = int(builder.build_select(bad, one, b, "")?)?;
        let quotient = builder.build_int_signed_div(a, safe, "")?;
        let remainder = builder.build_int_signed_rem(a, safe, "")?;
        // The division truncates: its quotient is one too large if the remainder is not zero and has the other sign.
        let inexact = builder.build_int_compare(IntPredicate::NE, remainder, zero, "")?;
        let signs = builder.build_xor(remainder, safe, "")?;
        let opposite = builder.build_int_compare(IntPredicate::SLT, signs, zero, "")?;
        let adjust = builder.build_and(inexact, opposite, "")?;
        let lower = builder.build_int_sub(quotient, one, "")?;
        let quotient = int(builder.build_select(adjust, lower, quotient, "")?)?;
        let quotient = int(builder.build_select(bad, zero, quotient, "")?)?;
        let raised = builder.build_int_add(remainder, safe, "")?;
        let remainder = int(builder.build_select(adjust, raised, remainder, "")?)?;
        Ok((quotient, remainder))
    }

    /// `a // b` and `a % b` of floats as CPython's `float_divmod` computes them. In a division by zero, the quotient is
    /// `a / b` and the remainder is NaN.
    pub(crate) fn float_divmod(
        &self,
        a: FloatValue<'ctx>,
        b: FloatValue<'ctx>,
    ) -> Result<(FloatValue<'ctx>, FloatValue<'ctx>)> {
        let (builder, context) = (&self.builder, self.cx.types.context);
        let zero = a.get_type().const_zero();
        let Near { quotient, rest, few } = self.near_divmod(a, b)?;
        // If `a` and `b` have the same sign, these are the results, up to the sign of the remainder.
        let b_size = float(self.call_intrinsic("llvm.fabs", &[b.into()])?)?;
        let bits = if a.get_type() == context.f32_type() { context.i32_type() } else { context.i64_type() };
        let a_bits = int(builder.build_bit_cast(a, bits, "")?)?;
        let signs = builder.build_xor(a_bits, int(builder.build_bit_cast(b, bits, "")?)?, "")?;
        let opposite = builder.build_int_compare(IntPredicate::SLT, signs, bits.const_zero(), "")?;
        let inexact = builder.build_float_compare(FloatPredicate::UNE, rest, zero, "")?;
        let adjust = builder.build_and(inexact, opposite, "")?;
        let complement = builder.build_float_sub(b_size, rest, "")?;
        let remainder = builder.build_select(adjust, complement, rest, "")?;
        let near_remainder = float(self.call_intrinsic("llvm.copysign", &[remainder, b.into()])?)?;
        let raised = builder.build_float_add(quotient, constant(quotient, 1.0), "")?;
        let size = float(builder.build_select(adjust, raised, quotient, "")?)?;
        let sign = builder.build_bit_cast(signs, a.get_type(), "")?;
        let near_quotient = float(self.call_intrinsic("llvm.copysign", &[size.into(), sign])?)?;

        let (near, far, end) = (self.current()?, self.block("far"), self.block("divided"));
        builder.build_conditional_branch(few, end, far)?;
        builder.position_at_end(far);
        let (far_quotient, far_remainder) = self.far_divmod(a, b)?;
        let far = self.current()?;
        self.go(end)?;
        builder.position_at_end(end);
        let join = |near_value: FloatValue<'ctx>, far_value: FloatValue<'ctx>| {
            let value = builder.build_phi(a.get_type(), "")?;
            value.add_incoming(&[(&near_value, near), (&far_value, far)]);
            float(value.as_basic_value())
        };
        Ok((join(near_quotient, far_quotient)?, join(near_remainder, far_remainder)?))
    }

    /// `fmod`: the remainder with the dividend's sign, which is exact.
    pub(super) fn fmod(&self, a: FloatValue<'ctx>, b: FloatValue<'ctx>) -> Result<FloatValue<'ctx>> {
        let builder = &self.builder;
        let Near { rest, few, .. } = self.near_divmod(a, b)?;
        let near_value = float(self.call_intrinsic("llvm.copysign", &[rest.into(), a.into()])?)?;
        let (near, far, end) = (self.current()?, self.block("far"), self.block("divided"));
        builder.build_conditional_branch(few, end, far)?;
        builder.position_at_end(far);
        let far_value = float(self.library_math(MathFn::Fmod, "fmod", &[a.into(), b.into()])?)?;
        let far = self.current()?;
        self.go(end)?;
        builder.position_at_end(end);
        let value = builder.build_phi(a.get_type(), "")?;
        value.add_incoming(&[(&near_value, near), (&far_value, far)]);
        float(value.as_basic_value())
    }

    /// The integral quotient of the absolute values of two numbers, and the remainder. Both are exact if the quotient
    /// has few enough bits that its rounding does not matter (`few`). The branch on `few` diverges only if the operands
    /// of the threads differ very much in magnitude.
    ///
    /// A quotient with fewer bits than the type has is within 1/2 of the exact one. Truncated to an integer, it is
    /// correct or one too large. The remainder is a multiple of the smaller operand's last bit and not larger than the
    /// divisor, so a fused multiply-add computes it exactly. Adding the divisor to a negative remainder is exact, too.
    /// With two bits less, CPython's quotient, which it computes from rounded values, is the same. The operations have
    /// no fast-math flags, which would allow inexact results.
    fn near_divmod(&self, a: FloatValue<'ctx>, b: FloatValue<'ctx>) -> Result<Near<'ctx>> {
        let builder = &self.builder;
        let ty = a.get_type();
        let size = |value: FloatValue<'ctx>| float(self.call_intrinsic("llvm.fabs", &[value.into()])?);
        let (a, b) = (size(a)?, size(b)?);
        let rounded = builder.build_float_div(a, b, "")?;
        let bits = if ty == self.cx.types.context.f32_type() { 22 } else { 51 };
        let short = builder.build_float_compare(FloatPredicate::OLT, rounded, constant(a, 2_f64.powi(bits)), "")?;
        // A product with infinity would be NaN.
        let finite = builder.build_float_compare(FloatPredicate::OLT, b, constant(b, f64::INFINITY), "")?;
        let few = builder.build_and(short, finite, "")?;
        let whole = float(self.call_intrinsic("llvm.trunc", &[rounded.into()])?)?;
        let negative = builder.build_float_neg(whole, "")?;
        let rest = float(self.call_intrinsic("llvm.fma", &[negative.into(), b.into(), a.into()])?)?;
        let beyond = builder.build_float_compare(FloatPredicate::OLT, rest, ty.const_zero(), "")?;
        let lower = builder.build_float_sub(whole, constant(whole, 1.0), "")?;
        let raised = builder.build_float_add(rest, b, "")?;
        let quotient = float(builder.build_select(beyond, lower, whole, "")?)?;
        let rest = float(builder.build_select(beyond, raised, rest, "")?)?;
        Ok(Near { quotient, rest, few })
    }

    /// `float_divmod` by the library's `fmod`. No fast-math flags: each operation is exact or rounds once.
    fn far_divmod(&self, a: FloatValue<'ctx>, b: FloatValue<'ctx>) -> Result<(FloatValue<'ctx>, FloatValue<'ctx>)> {
        let builder = &self.builder;
        let ty = a.get_type();
        let (zero, one, half) = (ty.const_zero(), ty.const_float(1.0), ty.const_float(0.5));
        let truncated = float(self.library_math(MathFn::Fmod, "fmod", &[a.into(), b.into()])?)?;
        let quotient = builder.build_float_sub(a, truncated, "")?;
        let quotient = builder.build_float_div(quotient, b, "")?;

        let inexact = builder.build_float_compare(FloatPredicate::UNE, truncated, zero, "")?;
        let b_negative = builder.build_float_compare(FloatPredicate::OLT, b, zero, "")?;
        let r_negative = builder.build_float_compare(FloatPredicate::OLT, truncated, zero, "")?;
        let opposite = builder.build_xor(b_negative, r_negative, "")?;
        let adjust = builder.build_and(inexact, opposite, "")?;
        let raised = builder.build_float_add(truncated, b, "")?;
        let lower = builder.build_float_sub(quotient, one, "")?;
        let quotient = float(builder.build_select(adjust, lower, quotient, "")?)?;
        let remainder = float(builder.build_select(adjust, raised, truncated, "")?)?;
        let signed_zero = self.call_intrinsic("llvm.copysign", &[zero.into(), b.into()])?;
        let remainder = float(builder.build_select(inexact, remainder, float(signed_zero)?, "")?)?;

        // The quotient is within rounding of an integer: round to it.
        let floor = float(self.call_intrinsic("llvm.floor", &[quotient.into()])?)?;
        let above = builder.build_float_sub(quotient, floor, "")?;
        let above = builder.build_float_compare(FloatPredicate::OGT, above, half, "")?;
        let next = builder.build_float_add(floor, one, "")?;
        let snapped = float(builder.build_select(above, next, floor, "")?)?;
        let exact = builder.build_float_div(a, b, "")?;
        let zero_quotient = self.call_intrinsic("llvm.copysign", &[zero.into(), exact.into()])?;
        let is_zero = builder.build_float_compare(FloatPredicate::OEQ, quotient, zero, "")?;
        let snapped = float(builder.build_select(is_zero, float(zero_quotient)?, snapped, "")?)?;

        let by_zero = builder.build_float_compare(FloatPredicate::OEQ, b, zero, "")?;
        let quotient = float(builder.build_select(by_zero, exact, snapped, "")?)?;
        Ok((quotient, remainder))
    }
}
