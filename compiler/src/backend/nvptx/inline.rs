//! Inline PTX in the program, as LLVM inline assembly.

use inkwell::{
    AddressSpace,
    types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum},
    values::{BasicMetadataValueEnum, BasicValueEnum},
};
use weft_artifact::Scalar;

use super::SPACES;
use crate::{
    backend::llvm::{FunctionEmitter, OperandValue, Result, internal},
    ir::{PtxId, Type},
};

/// Emits inline PTX with its operands; returns its results.
pub(super) fn emit<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    text: PtxId,
    pure: bool,
    operands: &[OperandValue<'ctx>],
) -> Result<Vec<BasicValueEnum<'ctx>>> {
    let Some(ptx) = emitter.cx.ir.inline_ptx.get(text) else { return internal("PTX that is not declared") };
    let types = emitter.cx.types;
    let mut args: Vec<BasicMetadataValueEnum<'ctx>> = Vec::new();
    let mut arg_types: Vec<BasicMetadataTypeEnum<'ctx>> = Vec::new();
    for operand in operands {
        let value = in_register(emitter, operand)?;
        arg_types.push(value.get_type().into());
        args.push(value.into());
    }
    let mut results = Vec::new();
    for ty in &ptx.results {
        results.push(register_of(emitter, *ty)?);
    }
    let function = match results.as_slice() {
        [] => types.context.void_type().fn_type(&arg_types, false),
        [one] => one.fn_type(&arg_types, false),
        many => types.context.struct_type(many, false).fn_type(&arg_types, false),
    };
    let mut constraints = ptx.constraints.join(",");
    if !pure {
        constraints.push_str(if constraints.is_empty() { "~{memory}" } else { ",~{memory}" });
    }
    let asm = types.context.create_inline_asm(function, ptx.text.clone(), constraints, !pure, false, None, false);
    let call = emitter.builder.build_indirect_call(function, asm, &args, "")?;
    if !pure {
        emitter.cx.make_convergent(call);
    }
    let mut values = Vec::new();
    match (call.try_as_basic_value().basic(), ptx.results.as_slice()) {
        (_, []) => {}
        (Some(value), [one]) => values.push(out_of_register(emitter, value, *one)?),
        (Some(BasicValueEnum::StructValue(all)), many) => {
            for (index, ty) in many.iter().enumerate() {
                let value = emitter.builder.build_extract_value(all, index as u32, "")?;
                values.push(out_of_register(emitter, value, *ty)?);
            }
        }
        _ => return internal("inline PTX without a result"),
    }
    Ok(values)
}

/// The type of the register that holds a value. 16-bit floats are in integer registers.
fn register_of<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>, ty: Type) -> Result<BasicTypeEnum<'ctx>> {
    match ty {
        Type::Scalar(Scalar::F16 | Scalar::BF16) => Ok(emitter.cx.types.context.i16_type().into()),
        Type::Scalar(_) => emitter.cx.types.value(ty),
        Type::Ptr(..) => Ok(emitter.cx.types.context.i64_type().into()),
    }
}

fn in_register<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    operand: &OperandValue<'ctx>,
) -> Result<BasicValueEnum<'ctx>> {
    let to = register_of(emitter, operand.ty)?;
    match (operand.ty, operand.value) {
        (Type::Ptr(..), BasicValueEnum::PointerValue(pointer)) => {
            let generic = emitter.cx.types.context.ptr_type(AddressSpace::from(SPACES.generic));
            let pointer = emitter.builder.build_address_space_cast(pointer, generic, "")?;
            Ok(emitter.builder.build_ptr_to_int(pointer, emitter.cx.types.context.i64_type(), "")?.into())
        }
        (Type::Scalar(Scalar::F16 | Scalar::BF16), value) => Ok(emitter.builder.build_bit_cast(value, to, "")?),
        (Type::Scalar(_) | Type::Ptr(..), value) => Ok(value),
    }
}

fn out_of_register<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    value: BasicValueEnum<'ctx>,
    ty: Type,
) -> Result<BasicValueEnum<'ctx>> {
    match ty {
        Type::Scalar(Scalar::F16 | Scalar::BF16) => {
            Ok(emitter.builder.build_bit_cast(value, emitter.cx.types.value(ty)?, "")?)
        }
        Type::Scalar(_) | Type::Ptr(..) => Ok(value),
    }
}
