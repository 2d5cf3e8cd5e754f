//! Saturating conversions of floats to integers.
//!
//! LLVM's `fptosi` of an out-of-range value is poison, but libclc relies on saturation: it indexes tables with
//! `min(fptosi(x), 36)`. Hence all conversions in a module, also in the library, are emitted here.

use inkwell::{
    FloatPredicate,
    builder::Builder,
    types::IntType,
    values::{
        AnyValue, AnyValueEnum, BasicValueEnum, CallSiteValue, FloatValue, InstructionOpcode, InstructionValue,
        IntValue, Operand,
    },
};

use super::{
    ModuleContext, Result,
    function::{float, int},
    internal,
};

/// The used bits of a saturated integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsedBits {
    /// All.
    All,
    /// Only the lowest 16 or fewer.
    Low,
}

impl<'ctx> ModuleContext<'_, 'ctx> {
    /// Truncates a float to an integer. Out-of-range values saturate, and NaN becomes 0.
    pub(crate) fn saturate(
        &self,
        builder: &Builder<'ctx>,
        value: FloatValue<'ctx>,
        to: IntType<'ctx>,
        signed: bool,
        wanted: UsedBits,
    ) -> Result<IntValue<'ctx>> {
        let ptx_name = match (to.get_bit_width(), signed) {
            (32, true) => "i",
            (32, false) => "ui",
            (64, true) => "ll",
            (64, false) => "ull",
            _ => "",
        };
        if !self.ptx {
            return self.saturate_in_steps(builder, value, to, signed);
        }
        if ptx_name.is_empty() {
            let name = if signed { "llvm.fptosi.sat" } else { "llvm.fptoui.sat" };
            let convert = self.intrinsic(name, &[to.into(), value.get_type().into()])?;
            return called(builder.build_call(convert, &[value.into()], "")?.try_as_basic_value().basic());
        }
        // PTX's `cvt` saturates. It converts NaN to 0 if both types have 32 bits, else to the highest bit (PTX ISA,
        // cvt), which does not affect the low bits.
        let double = value.get_type() == self.types.context.f64_type();
        let name = format!("llvm.nvvm.{}2{ptx_name}.rz", if double { "d" } else { "f" });
        let convert = self.intrinsic(&name, &[])?;
        let converted = called(builder.build_call(convert, &[value.into()], "")?.try_as_basic_value().basic())?;
        if wanted == UsedBits::Low || (!double && to.get_bit_width() == 32) {
            return Ok(converted);
        }
        // Test the value before rounding, so that ptxas rounds and converts in one instruction.
        let given = unrounded(value).unwrap_or(value);
        let nan = builder.build_float_compare(FloatPredicate::UNO, given, given, "")?;
        int(builder.build_select(nan, to.const_zero(), converted, "")?)
    }

    /// Converts with instructions that a CPU also has for vectors. LLVM scalarizes its own saturating conversions.
    fn saturate_in_steps(
        &self,
        builder: &Builder<'ctx>,
        value: FloatValue<'ctx>,
        to: IntType<'ctx>,
        signed: bool,
    ) -> Result<IntValue<'ctx>> {
        let ty = value.get_type();
        let is_double = ty == self.types.context.f64_type();
        let bits = to.get_bit_width();
        let magnitude = if signed { bits - 1 } else { bits };
        let beyond = 2_f64.powi(magnitude.cast_signed());
        let (greatest, digits) = if is_double {
            (beyond.next_down(), f64::MANTISSA_DIGITS)
        } else {
            (f64::from((beyond as f32).next_down()), f32::MANTISSA_DIGITS)
        };
        let lowest = ty.const_float(if signed { -beyond } else { 0.0 });
        let (beyond, greatest) = (ty.const_float(beyond), ty.const_float(greatest));
        // NaN is clamped to the lowest value, so every conversion is in range.
        let above = builder.build_float_compare(FloatPredicate::OGT, value, lowest, "")?;
        let clamped = float(builder.build_select(above, value, lowest, "")?)?;
        let below = builder.build_float_compare(FloatPredicate::OLT, clamped, greatest, "")?;
        let clamped = float(builder.build_select(below, clamped, greatest, "")?)?;
        // Narrow integers are truncated from 32 bits, for which there are vector conversions.
        let wide = self.types.context.i32_type();
        let converted = if bits < wide.get_bit_width() {
            builder.build_int_truncate(builder.build_float_to_signed_int(clamped, wide, "")?, to, "")?
        } else if signed {
            builder.build_float_to_signed_int(clamped, to, "")?
        } else {
            builder.build_float_to_unsigned_int(clamped, to, "")?
        };
        let mut result = converted;
        if digits < magnitude {
            let most = if signed { u64::MAX >> (65 - bits) } else { u64::MAX >> (64 - bits) };
            let exceeds = builder.build_float_compare(FloatPredicate::OGE, value, beyond, "")?;
            result = int(builder.build_select(exceeds, to.const_int(most, false), result, "")?)?;
        }
        if signed {
            let nan = builder.build_float_compare(FloatPredicate::UNO, value, value, "")?;
            result = int(builder.build_select(nan, to.const_zero(), result, "")?)?;
        }
        Ok(result)
    }

    /// Makes all conversions in the linked functions saturate.
    #[expect(clippy::wildcard_enum_match_arm, reason = "LLVM's opcodes: two of them convert")]
    pub(crate) fn saturate_conversions(&self) -> Result<()> {
        let builder = self.types.context.create_builder();
        for function in self.module.get_functions() {
            for block in function.get_basic_block_iter() {
                let mut next = block.get_first_instruction();
                while let Some(instruction) = next {
                    next = instruction.get_next_instruction();
                    let signed = match instruction.get_opcode() {
                        InstructionOpcode::FPToSI => true,
                        InstructionOpcode::FPToUI => false,
                        _ => continue,
                    };
                    self.replace_conversion(&builder, instruction, signed)?;
                }
            }
        }
        Ok(())
    }

    fn replace_conversion(
        &self,
        builder: &Builder<'ctx>,
        conversion: InstructionValue<'ctx>,
        signed: bool,
    ) -> Result<()> {
        let (Some(operand), AnyValueEnum::IntValue(old)) =
            (conversion.get_operand(0).and_then(Operand::value), conversion.as_any_value_enum())
        else {
            return internal(format!("a conversion that is not one of scalars: {conversion}"));
        };
        builder.position_before(&conversion);
        let new = self.saturate(builder, float(operand)?, old.get_type(), signed, UsedBits::All)?;
        old.replace_all_uses_with(new);
        conversion.erase_from_basic_block();
        Ok(())
    }
}

/// The operand of a rounding to an integral value, if `value` is one.
fn unrounded(value: FloatValue<'_>) -> Option<FloatValue<'_>> {
    const ROUNDINGS: [&[u8]; 4] = [b"llvm.floor.", b"llvm.ceil.", b"llvm.roundeven.", b"llvm.trunc."];
    let instruction = value.as_instruction()?;
    if instruction.get_opcode() != InstructionOpcode::Call {
        return None;
    }
    let callee = CallSiteValue::try_from(instruction).ok()?.get_called_fn_value()?;
    let name = callee.get_name().to_bytes();
    ROUNDINGS.iter().any(|rounding| name.starts_with(rounding)).then_some(())?;
    instruction.get_operand(0).and_then(Operand::value).and_then(|operand| float(operand).ok())
}

fn called(value: Option<BasicValueEnum<'_>>) -> Result<IntValue<'_>> {
    value.map_or_else(|| internal("a conversion that gives nothing"), int)
}
