//! Splits additions of vectors of integers of at most 16 bits into additions of the elements.
//!
//! LLVM's SLP vectorizer merges adjacent additions to `add <2 x i16>`, which is `add.s16x2` from `sm_90` on (PTX ISA
//! 9.7.1.1), and widens shorter integers to that. If one operand is a constant, or ptxas finds that it is, and the
//! program reads only the lower half of the sum, ptxas 13.0 and the driver of that version add 0 instead of the
//! constant (13.5 does not). Hence this pass runs after LLVM's passes. `min` and `max` of such pairs are compiled
//! correctly.

use inkwell::{
    basic_block::BasicBlock,
    builder::Builder,
    context::Context,
    module::Module,
    types::BasicTypeEnum,
    values::{BasicValueEnum, FunctionValue, InstructionOpcode, InstructionValue, Operand, VectorValue},
};

use crate::backend::llvm::{Result, internal};

/// Splits every addition and subtraction of vectors whose elements have at most 16 bits.
pub(super) fn split(context: &Context, module: &Module<'_>) -> Result<()> {
    let builder = context.create_builder();
    let instructions =
        module.get_functions().flat_map(FunctionValue::get_basic_block_iter).flat_map(BasicBlock::get_instructions);
    let sums: Vec<_> = instructions.filter(|&instruction| is_packed(instruction)).collect();
    for sum in sums {
        builder.position_before(&sum);
        let [Some(a), Some(b)] = [0, 1].map(|at| operand(sum, at)) else {
            return internal(format!("a sum of vectors without two operands: {sum}"));
        };
        let result = element_by_element(context, &builder, sum.get_opcode(), a, b)?;
        let Some(new) = result.as_instruction() else {
            return internal("a sum of constants is not folded");
        };
        sum.replace_all_uses_with(&new);
        sum.erase_from_basic_block();
    }
    Ok(())
}

fn is_packed(instruction: InstructionValue<'_>) -> bool {
    matches!(instruction.get_opcode(), InstructionOpcode::Add | InstructionOpcode::Sub)
        && BasicTypeEnum::try_from(instruction.get_type()).is_ok_and(|ty| {
            ty.is_vector_type() && {
                let element = ty.into_vector_type().get_element_type();
                element.is_int_type() && element.into_int_type().get_bit_width() <= 16
            }
        })
}

fn operand(sum: InstructionValue<'_>, at: u32) -> Option<VectorValue<'_>> {
    match sum.get_operand(at).and_then(Operand::value)? {
        BasicValueEnum::VectorValue(vector) => Some(vector),
        BasicValueEnum::ArrayValue(_)
        | BasicValueEnum::FloatValue(_)
        | BasicValueEnum::IntValue(_)
        | BasicValueEnum::PointerValue(_)
        | BasicValueEnum::StructValue(_)
        | BasicValueEnum::ScalableVectorValue(_) => None,
    }
}

fn element_by_element<'ctx>(
    context: &'ctx Context,
    builder: &Builder<'ctx>,
    opcode: InstructionOpcode,
    a: VectorValue<'ctx>,
    b: VectorValue<'ctx>,
) -> Result<VectorValue<'ctx>> {
    let mut result = a.get_type().get_poison();
    for lane in 0..u64::from(a.get_type().get_size()) {
        let lane = context.i32_type().const_int(lane, false);
        let (x, y) = (builder.build_extract_element(a, lane, "")?, builder.build_extract_element(b, lane, "")?);
        let (BasicValueEnum::IntValue(x), BasicValueEnum::IntValue(y)) = (x, y) else {
            return internal(format!("a sum of {a} and {b}"));
        };
        let sum = if opcode == InstructionOpcode::Sub {
            builder.build_int_sub(x, y, "")?
        } else {
            builder.build_int_add(x, y, "")?
        };
        result = builder.build_insert_element(result, sum, lane, "")?;
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use inkwell::memory_buffer::MemoryBuffer;

    use super::*;

    /// Functions with one packed addition or subtraction each.
    const BODIES: &str = "
        define <2 x i16> @a(<2 x i16> %x) { %s = add nuw nsw <2 x i16> %x, <i16 4, i16 5>
            ret <2 x i16> %s }
        define <4 x i16> @b(<4 x i16> %x, <4 x i16> %y) { %s = sub <4 x i16> %x, %y
            ret <4 x i16> %s }
        define <2 x i8> @c(<2 x i8> %x) { %s = add <2 x i8> %x, <i8 1, i8 2>
            ret <2 x i8> %s }
        define <2 x i32> @d(<2 x i32> %x) { %s = add <2 x i32> %x, <i32 1, i32 2>
            ret <2 x i32> %s }";

    #[test]
    fn each_element_has_a_sum_of_its_own() {
        let context = Context::create();
        let text = MemoryBuffer::create_from_memory_range_copy(BODIES.as_bytes(), "sums");
        let module = context.create_module_from_ir(text).expect("LLVM IR");
        split(&context, &module).expect("sums of vectors");
        module.verify().expect("sound IR");
        let text = module.to_string();
        for (sum, times) in
            [("= add i16", 2), ("= sub i16", 4), ("= add i8", 2), ("add nuw nsw", 0), ("= sub <", 0), ("= add <", 1)]
        {
            assert_eq!(text.matches(sum).count(), times, "{sum}\n{text}");
        }
    }
}
