//! Loads and stores with cache operators, as inline PTX, because LLVM cannot express them otherwise.
//!
//! A cache operator applies to global memory (PTX ISA, "Cache Operators"). In shared and local memory the access is a
//! plain one. Elements are passed as bits, a byte in a 16-bit register.

use inkwell::{
    types::{BasicMetadataTypeEnum, IntType},
    values::BasicValueEnum,
};
use weft_artifact::Scalar;

use crate::{
    backend::llvm::{FunctionEmitter, OperandValue, Result, internal},
    ir::{LoadHint, Space, StoreHint, Type},
};

/// The state space in the instruction, if cache operators apply to the pointer's space.
fn space_name(space: Space) -> Option<&'static str> {
    match space {
        Space::Global => Some(".global"),
        // Numba emits `.global` here. A generic pointer may point to another space, but gets the operator, too.
        Space::Generic => Some(""),
        Space::Shared | Space::Local | Space::Constant => None,
    }
}

/// The number of bits of an element, the type of the register for them, and the register's constraint letter.
fn register<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>, element: Scalar) -> (u64, IntType<'ctx>, char) {
    let context = emitter.cx.types.context;
    match element.size_bytes() {
        1 => (8, context.i16_type(), 'h'),
        2 => (16, context.i16_type(), 'h'),
        4 => (32, context.i32_type(), 'r'),
        _ => (64, context.i64_type(), 'l'),
    }
}

/// Emits a load; returns the element.
pub(super) fn load<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    hint: LoadHint,
    operands: &[OperandValue<'ctx>],
) -> Result<BasicValueEnum<'ctx>> {
    let [OperandValue { ty: Type::Ptr(element, space), value: BasicValueEnum::PointerValue(pointer) }] = operands
    else {
        return internal("a load without its pointer");
    };
    let builder = &emitter.builder;
    let memory = emitter.cx.types.memory(Type::Scalar(*element))?;
    let Some(space) = space_name(*space) else { return Ok(builder.build_load(memory, *pointer, "")?) };
    let (bits, word, letter) = register(emitter, *element);
    let text = format!("ld{space}.{}.b{bits} $0, [$1];", hint.name());
    let ty = word.fn_type(&[pointer.get_type().into()], false);
    let constraints = format!("={letter},l,~{{memory}}");
    let asm = emitter.cx.types.context.create_inline_asm(ty, text, constraints, true, false, None, false);
    let call = builder.build_indirect_call(ty, asm, &[(*pointer).into()], "")?;
    let Some(BasicValueEnum::IntValue(value)) = call.try_as_basic_value().basic() else {
        return internal("a load gives nothing");
    };
    let value =
        if bits == 8 { builder.build_int_truncate(value, emitter.cx.types.context.i8_type(), "")? } else { value };
    Ok(builder.build_bit_cast(value, memory, "")?)
}

/// Emits a store.
pub(super) fn store<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    hint: StoreHint,
    operands: &[OperandValue<'ctx>],
) -> Result<()> {
    let [OperandValue { ty: Type::Ptr(element, space), value: BasicValueEnum::PointerValue(pointer) }, value] =
        operands
    else {
        return internal("a store without its pointer");
    };
    let builder = &emitter.builder;
    let value = value.value;
    let Some(space) = space_name(*space) else {
        builder.build_store(*pointer, value)?;
        return Ok(());
    };
    let (bits, word, letter) = register(emitter, *element);
    let value = match value {
        BasicValueEnum::IntValue(byte) if bits == 8 => builder.build_int_z_extend(byte, word, "")?.into(),
        BasicValueEnum::ArrayValue(_)
        | BasicValueEnum::IntValue(_)
        | BasicValueEnum::FloatValue(_)
        | BasicValueEnum::PointerValue(_)
        | BasicValueEnum::StructValue(_)
        | BasicValueEnum::VectorValue(_)
        | BasicValueEnum::ScalableVectorValue(_) => builder.build_bit_cast(value, word, "")?,
    };
    let text = format!("st{space}.{}.b{bits} [$0], $1;", hint.name());
    let params: [BasicMetadataTypeEnum<'ctx>; 2] = [pointer.get_type().into(), word.into()];
    let ty = emitter.cx.types.context.void_type().fn_type(&params, false);
    let constraints = format!("l,{letter},~{{memory}}");
    let asm = emitter.cx.types.context.create_inline_asm(ty, text, constraints, true, false, None, false);
    builder.build_indirect_call(ty, asm, &[(*pointer).into(), value.into()], "")?;
    Ok(())
}
