//! Floats of 8 bits: conversions to and from `float32`, where the target has no instruction for them.

use inkwell::{IntPredicate, values::BasicValueEnum};

use super::{
    FunctionEmitter, Result, constant,
    function::{float, int},
    internal,
};
use crate::ir::MathFn;

/// A format with a sign.
struct Format {
    fraction_bits: u32,
    bias: u32,
    /// The bits of the largest finite number.
    largest: u64,
}

const E4M3: Format = Format { fraction_bits: 3, bias: 7, largest: 0x7E };
const E5M2: Format = Format { fraction_bits: 2, bias: 15, largest: 0x7B };
/// The bits of NaN that a conversion gives, in both formats.
const NAN: u64 = 0x7F;
/// The bits of NaN in a `float32`, as GPUs give it.
const NAN_OF_SINGLE: u64 = 0x7FFF_FFFF;

impl<'ctx> FunctionEmitter<'_, 'ctx> {
    /// Emits a conversion to or from a float of 8 bits.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other functions are no such conversions")]
    pub(super) fn of_bytes(&self, function: MathFn, value: BasicValueEnum<'ctx>) -> Result<BasicValueEnum<'ctx>> {
        if let Some(value) = self.hooks.of_bytes(self, function, value)? {
            return Ok(value);
        }
        match function {
            MathFn::ToE4M3 => self.to_byte(&E4M3, value),
            MathFn::ToE5M2 => self.to_byte(&E5M2, value),
            MathFn::OfE4M3 => self.of_e4m3(value),
            other => internal(format!("{} converts no float of 8 bits", other.name())),
        }
    }

    /// Rounds a `float32` to nearest even. Numbers beyond the largest one become the largest one.
    fn to_byte(&self, format: &Format, value: BasicValueEnum<'ctx>) -> Result<BasicValueEnum<'ctx>> {
        let (builder, context) = (&self.builder, self.cx.types.context);
        let (word, value) = (context.i32_type(), float(value)?);
        let number = |value: u64| word.const_int(value, false);
        let Format { fraction_bits, bias, largest } = *format;
        let all = int(builder.build_bit_cast(value, word, "")?)?;
        let magnitude = builder.build_and(all, number(0x7fff_ffff), "")?;
        let sign = builder.build_right_shift(builder.build_xor(all, magnitude, "")?, number(24), false, "")?;
        // The upper bits, with the exponent of the format, rounded to nearest even.
        let lost = u64::from(23 - fraction_bits);
        let moved = builder.build_int_sub(magnitude, number(u64::from(127 - bias) << 23), "")?;
        let last = builder.build_and(builder.build_right_shift(moved, number(lost), false, "")?, number(1), "")?;
        let up = builder.build_int_add(last, number((1 << (lost - 1)) - 1), "")?;
        let normal = builder.build_right_shift(builder.build_int_add(moved, up, "")?, number(lost), false, "")?;
        let normal = int(self.call_intrinsic("llvm.umin", &[normal.into(), number(largest).into()])?)?;
        // In a `float32` from this power of two on, the last bit has the value of the format's smallest number. Hence
        // adding the power rounds to it.
        let power = 2_f32.powi((24 - bias - fraction_bits).cast_signed());
        let positive = float(builder.build_bit_cast(magnitude, value.get_type(), "")?)?;
        let sum = builder.build_float_add(positive, constant(value, power.into()), "")?;
        let sum = int(builder.build_bit_cast(sum, word, "")?)?;
        let subnormal = builder.build_int_sub(sum, number(power.to_bits().into()), "")?;
        let least_normal = number(u64::from(128 - bias) << 23);
        let is_small = builder.build_int_compare(IntPredicate::ULT, magnitude, least_normal, "")?;
        let finite = int(builder.build_select(is_small, subnormal, normal, "")?)?;
        let signed = builder.build_or(finite, sign, "")?;
        let infinity = number(f32::INFINITY.to_bits().into());
        let is_nan = builder.build_int_compare(IntPredicate::UGT, magnitude, infinity, "")?;
        let result = int(builder.build_select(is_nan, number(NAN), signed, "")?)?;
        Ok(builder.build_int_truncate(result, context.i8_type(), "")?.into())
    }

    /// The `float32` of a number of the format e4m3.
    fn of_e4m3(&self, value: BasicValueEnum<'ctx>) -> Result<BasicValueEnum<'ctx>> {
        let (builder, context) = (&self.builder, self.cx.types.context);
        let (single, word) = (context.f32_type(), context.i32_type());
        let number = |value: u64| word.const_int(value, false);
        let bits = builder.build_int_z_extend(int(value)?, word, "")?;
        let magnitude = builder.build_and(bits, number(0x7f), "")?;
        let sign = builder.build_left_shift(builder.build_xor(bits, magnitude, "")?, number(24), "")?;
        // Exponent and fraction in the positions of a larger format, whose exponent is larger by the difference of the
        // biases. Multiplying by the power of two is exact. On a GPU, which may treat subnormal `float32` as zero, the
        // larger format is `float16`.
        let (small, power) = if self.cx.ptx {
            let moved = builder.build_left_shift(magnitude, number(7), "")?;
            let moved = builder.build_int_truncate(moved, context.i16_type(), "")?;
            let half = float(builder.build_bit_cast(moved, context.f16_type(), "")?)?;
            (builder.build_float_ext(half, single, "")?, 8)
        } else {
            let moved = builder.build_left_shift(magnitude, number(20), "")?;
            (float(builder.build_bit_cast(moved, single, "")?)?, 120)
        };
        let scaled = builder.build_float_mul(small, constant(small, 2_f64.powi(power)), "")?;
        let scaled = int(builder.build_bit_cast(scaled, word, "")?)?;
        let is_nan = builder.build_int_compare(IntPredicate::EQ, magnitude, number(0x7f), "")?;
        let signed = builder.build_or(scaled, sign, "")?;
        let result = builder.build_select(is_nan, number(NAN_OF_SINGLE), signed, "")?;
        Ok(builder.build_bit_cast(result, single, "")?)
    }
}
