//! Integer powers: products for small constant exponents, else a call of a helper that uses repeated squaring.

use inkwell::{
    IntPredicate,
    module::Linkage,
    types::IntType,
    values::{BasicValueEnum, FunctionValue, IntValue, PhiValue},
};

use super::{FunctionEmitter, ModuleContext, Result, function::int, internal};

/// The largest constant exponent that is emitted as inline products.
const LARGEST_UNROLLED: u64 = 16;

impl<'ctx> FunctionEmitter<'_, 'ctx> {
    /// `a ** b` as `BinaryOp::Pow` defines it.
    pub(crate) fn int_pow(&self, signed: bool, a: IntValue<'ctx>, b: IntValue<'ctx>) -> Result<IntValue<'ctx>> {
        match b.get_zero_extended_constant() {
            Some(exponent @ 0..=LARGEST_UNROLLED) => self.product(a, exponent),
            _ => int(self.call(self.cx.power(a.get_type(), signed)?, &[a.into(), b.into()])?),
        }
    }

    fn product(&self, a: IntValue<'ctx>, exponent: u64) -> Result<IntValue<'ctx>> {
        let mut result: Option<IntValue<'ctx>> = None;
        let (mut square, mut rest) = (a, exponent);
        while rest > 0 {
            if rest & 1 == 1 {
                let next = result.map_or(Ok(square), |result| self.builder.build_int_mul(result, square, ""))?;
                result = Some(next);
            }
            rest >>= 1;
            if rest > 0 {
                square = self.builder.build_int_mul(square, square, "")?;
            }
        }
        Ok(result.unwrap_or_else(|| a.get_type().const_int(1, false)))
    }
}

impl<'ctx> ModuleContext<'_, 'ctx> {
    /// The helper function for a type. The first use emits it.
    fn power(&self, ty: IntType<'ctx>, signed: bool) -> Result<FunctionValue<'ctx>> {
        let name = format!("weft$pow_{}{}", if signed { 'i' } else { 'u' }, ty.get_bit_width());
        if let Some(function) = self.module.get_function(&name) {
            return Ok(function);
        }
        let function =
            self.module.add_function(&name, ty.fn_type(&[ty.into(), ty.into()], false), Some(Linkage::Internal));
        let (Some(BasicValueEnum::IntValue(base)), Some(BasicValueEnum::IntValue(exponent))) =
            (function.get_nth_param(0), function.get_nth_param(1))
        else {
            return internal("a power of something that is no integer");
        };
        let builder = self.types.context.create_builder();
        let block = |name: &str| self.types.context.append_basic_block(function, name);
        let (zero, one, minus_one) = (ty.const_zero(), ty.const_int(1, false), ty.const_all_ones());

        let entry = block("entry");
        let head = block("head");
        let body = block("body");
        let end = block("end");
        builder.position_at_end(entry);
        if signed {
            let negative = block("negative");
            let is_negative = builder.build_int_compare(IntPredicate::SLT, exponent, zero, "")?;
            builder.build_conditional_branch(is_negative, negative, head)?;
            builder.position_at_end(negative);
            let odd = builder.build_int_truncate(exponent, self.types.context.bool_type(), "")?;
            let sign = int(builder.build_select(odd, minus_one, one, "")?)?;
            let minimum = ty.const_int(1 << (ty.get_bit_width() - 1), false);
            let mut result = zero;
            for (special, value) in [(one, one), (minus_one, sign), (zero, minimum)] {
                let is_special = builder.build_int_compare(IntPredicate::EQ, base, special, "")?;
                result = int(builder.build_select(is_special, value, result, "")?)?;
            }
            builder.build_return(Some(&result))?;
        } else {
            builder.build_unconditional_branch(head)?;
        }

        builder.position_at_end(head);
        let (power, square, rest) =
            (builder.build_phi(ty, "power")?, builder.build_phi(ty, "square")?, builder.build_phi(ty, "rest")?);
        let values = [power, square, rest].map(PhiValue::as_basic_value);
        let [power_now, square_now, rest_now] = [int(values[0])?, int(values[1])?, int(values[2])?];
        let done = builder.build_int_compare(IntPredicate::EQ, rest_now, zero, "")?;
        builder.build_conditional_branch(done, end, body)?;

        builder.position_at_end(body);
        let odd = builder.build_int_truncate(rest_now, self.types.context.bool_type(), "")?;
        let multiplied = builder.build_int_mul(power_now, square_now, "")?;
        let next_power = int(builder.build_select(odd, multiplied, power_now, "")?)?;
        let next_square = builder.build_int_mul(square_now, square_now, "")?;
        let next_rest = builder.build_right_shift(rest_now, one, false, "")?;
        builder.build_unconditional_branch(head)?;

        power.add_incoming(&[(&one, entry), (&next_power, body)]);
        square.add_incoming(&[(&base, entry), (&next_square, body)]);
        rest.add_incoming(&[(&exponent, entry), (&next_rest, body)]);
        builder.position_at_end(end);
        builder.build_return(Some(&power_now))?;
        Ok(function)
    }
}
