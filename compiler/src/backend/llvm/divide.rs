//! Python's `//` and `%`.

use inkwell::{
    FloatPredicate, IntPredicate,
    values::{FloatValue, IntValue},
};

use super::{
    FunctionEmitter, Result,
    function::{float, int},
};
use crate::ir::MathFn;

impl<'ctx> FunctionEmitter<'_, 'ctx> {
    /// Quotient rounded to minus infinity, and the remainder with the divisor's sign. By zero both are 0; the minimum
    /// by -1 gives 0 and 0. LLVM drops the tests where the divisor is a constant, and the part that is not used.
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
            // The remainder by one is the zero that is wanted.
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
        // Division truncates: one too large where the remainder is not zero and has the other sign.
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

    /// `a // b` and `a % b` of floats as CPython's `float_divmod` computes them, except that by zero the quotient is
    /// `a / b` and the remainder NaN. No flags: each step is exact or rounds once.
    pub(crate) fn float_divmod(
        &self,
        a: FloatValue<'ctx>,
        b: FloatValue<'ctx>,
    ) -> Result<(FloatValue<'ctx>, FloatValue<'ctx>)> {
        let builder = &self.builder;
        let ty = a.get_type();
        let (zero, one, half) = (ty.const_zero(), ty.const_float(1.0), ty.const_float(0.5));
        let truncated = float(self.emit_math(MathFn::Fmod, &[a.into(), b.into()])?)?;
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

        // The quotient is within rounding of an integer: snap to it.
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
