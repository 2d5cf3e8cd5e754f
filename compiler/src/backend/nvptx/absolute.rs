//! Replaces `llvm.abs` of values that may be the smallest integer, because ptxas miscompiles `abs` of it.
//!
//! According to the PTX ISA, `abs` of the smallest integer wraps (9.7.1.10 names no exception), and so does the
//! hardware. But ptxas assumes that the result of `abs` is not negative: it removes a later test of the sign, and it
//! merges `abs.s16` with a conversion to a wider type. LLVM creates `llvm.abs`, and from it the instruction `abs`, from
//! every way to write it, including `-x if x < 0 else x`. Hence this pass runs after LLVM's passes and replaces the
//! remaining calls by inline PTX. It ignores calls whose flag excludes the smallest integer, because ptxas compiles
//! these correctly.

use inkwell::{
    builder::Builder,
    context::Context,
    module::Module,
    values::{BasicValue, BasicValueEnum, InstructionValue, IntValue, Operand},
};

use super::calls::calls;
use crate::backend::llvm::{Result, internal};

/// Replaces each call of `llvm.abs` in the module whose operand may be the smallest integer.
pub(super) fn rewrite(context: &Context, module: &Module<'_>) -> Result<()> {
    let builder = context.create_builder();
    for call in calls(module, may_see_the_minimum) {
        builder.position_before(&call);
        let Some(value) = call.get_operand(0).and_then(Operand::value) else {
            return internal("llvm.abs without an operand");
        };
        let absolute = match value {
            BasicValueEnum::IntValue(value) => BasicValueEnum::from(scalar(&builder, value)?),
            BasicValueEnum::VectorValue(vector) => {
                let mut result = vector;
                for lane in 0..u64::from(vector.get_type().get_size()) {
                    let lane = context.i32_type().const_int(lane, false);
                    let BasicValueEnum::IntValue(element) = builder.build_extract_element(vector, lane, "")? else {
                        return internal(format!("llvm.abs of {vector}"));
                    };
                    result = builder.build_insert_element(result, scalar(&builder, element)?, lane, "")?;
                }
                result.into()
            }
            other @ (BasicValueEnum::ArrayValue(_)
            | BasicValueEnum::FloatValue(_)
            | BasicValueEnum::PointerValue(_)
            | BasicValueEnum::StructValue(_)
            | BasicValueEnum::ScalableVectorValue(_)) => return internal(format!("llvm.abs of {other}")),
        };
        let Some(new) = absolute.as_instruction_value() else {
            return internal("llvm.abs of a constant is not folded");
        };
        call.replace_all_uses_with(&new);
        call.erase_from_basic_block();
    }
    Ok(())
}

/// Whether a call is one of `llvm.abs(x, false)`.
fn may_see_the_minimum(call: InstructionValue<'_>, name: &[u8]) -> bool {
    let flag = call.get_operand(1).and_then(Operand::value);
    name.starts_with(b"llvm.abs.")
        && flag.is_some_and(|flag| flag.into_int_value().get_zero_extended_constant() == Some(0))
}

/// The maximum of x and -x, in 32 or 64 bits.
fn scalar<'ctx>(builder: &Builder<'ctx>, value: IntValue<'ctx>) -> Result<IntValue<'ctx>> {
    let ty = value.get_type();
    let context = ty.get_context();
    let (wide, text, constraints) = match ty.get_bit_width() {
        1..=32 => (context.i32_type(), "{ .reg .s32 n; neg.s32 n, $1; max.s32 $0, $1, n; }", "=r,r"),
        33..=64 => (context.i64_type(), "{ .reg .s64 n; neg.s64 n, $1; max.s64 $0, $1, n; }", "=l,l"),
        bits => return internal(format!("llvm.abs of {bits} bits")),
    };
    let function = wide.fn_type(&[wide.into()], false);
    let asm = context.create_inline_asm(function, text.to_owned(), constraints.to_owned(), false, false, None, false);
    let extended = builder.build_int_s_extend(value, wide, "")?;
    let call = builder.build_indirect_call(function, asm, &[extended.into()], "")?;
    let Some(BasicValueEnum::IntValue(result)) = call.try_as_basic_value().basic() else {
        return internal("inline PTX without a result");
    };
    Ok(builder.build_int_truncate(result, ty, "")?)
}
