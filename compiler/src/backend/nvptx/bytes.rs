//! Conversions to and from floats of 8 bits: `cvt`, which converts pairs, since compute capability 8.9.

use inkwell::values::BasicValueEnum;

use crate::{
    backend::llvm::{FunctionEmitter, Result, float, int, internal},
    ir::MathFn,
    target::needs,
};

/// The instruction of a conversion, if an SM and the driver have it.
#[expect(clippy::wildcard_enum_match_arm, reason = "the other functions are no such conversions")]
pub(in crate::backend) fn instruction(
    function: MathFn,
    number: u32,
    driver: Option<(u32, u32)>,
) -> Option<&'static str> {
    let text = match function {
        MathFn::OfE4M3 => "cvt.rn.f16x2.e4m3x2 $0, $1;",
        MathFn::ToE4M3 => "cvt.rn.satfinite.e4m3x2.f32 $0, $1, $2;",
        MathFn::ToE5M2 => "cvt.rn.satfinite.e5m2x2.f32 $0, $1, $2;",
        _ => return None,
    };
    let isa = needs::lowest_isa(text, number, "")?;
    driver.is_none_or(|driver| isa <= driver).then_some(text)
}

/// Emits a conversion for an SM and a PTX ISA, if they have the instruction. The other number of the pair is zero.
pub(super) fn emit<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    function: MathFn,
    value: BasicValueEnum<'ctx>,
    (number, isa): (u32, (u32, u32)),
) -> Result<Option<BasicValueEnum<'ctx>>> {
    let Some(text) = instruction(function, number, Some(isa)) else { return Ok(None) };
    let (builder, context) = (&emitter.builder, emitter.cx.types.context);
    let (pair, single, word) = (context.i16_type(), context.f32_type(), context.i32_type());
    let (ty, constraints, args) = if function == MathFn::OfE4M3 {
        let bits = builder.build_int_z_extend(int(value)?, pair, "")?;
        (word.fn_type(&[pair.into()], false), "=r,h", vec![bits.into()])
    } else {
        let args = vec![single.const_zero().into(), float(value)?.into()];
        (pair.fn_type(&[single.into(), single.into()], false), "=h,f,f", args)
    };
    let asm = context.create_inline_asm(ty, text.to_owned(), constraints.to_owned(), false, false, None, false);
    let call = builder.build_indirect_call(ty, asm, &args, "")?;
    let Some(found) = call.try_as_basic_value().basic() else { return internal(format!("{text} without a result")) };
    let found = int(found)?;
    Ok(Some(if function == MathFn::OfE4M3 {
        let half = builder.build_int_truncate(found, pair, "")?;
        let half = float(builder.build_bit_cast(half, context.f16_type(), "")?)?;
        builder.build_float_ext(half, single, "")?.into()
    } else {
        builder.build_int_truncate(found, context.i8_type(), "")?.into()
    }))
}
