//! Functions of other languages, which are linked with the kernel: declarations, and calls.
//!
//! A value is passed as `docs/design/foreign-code.md` says. LLVM's parameters of less than 32 bits are 32 bits in PTX, as
//! nvcc's are, whose callees read no more than the type's own.

use inkwell::{
    AddressSpace,
    attributes::{Attribute, AttributeLoc},
    module::Linkage,
    types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum},
    values::{BasicMetadataValueEnum, BasicValueEnum},
};
use weft_artifact::Scalar;

use super::{SPACES, abi};
use crate::{
    backend::llvm::{FunctionEmitter, ModuleContext, OperandValue, Result, internal},
    ir::{self, ExternalId, Type},
    request::Abi,
};

/// C++ may write a complex number at once: 16 bytes.
const LARGEST_ALIGN: u32 = 16;

/// Declares every function that the module calls, before there are others, so that their symbols are theirs.
pub(super) fn declare(cx: &ModuleContext<'_, '_>) -> Result<()> {
    for (_, external) in cx.ir.externals.iter() {
        declare_one(cx, external)?;
    }
    Ok(())
}

fn declare_one(cx: &ModuleContext<'_, '_>, external: &ir::External) -> Result<()> {
    let context = cx.types.context;
    let mut params: Vec<BasicMetadataTypeEnum<'_>> = Vec::new();
    // What a result has above its own bits is not known, so none is here.
    let mut narrow: Vec<(AttributeLoc, Scalar)> = Vec::new();
    if external.writes {
        params.push(context.ptr_type(AddressSpace::from(SPACES.generic)).into());
    }
    for ty in &external.operands {
        let place = AttributeLoc::Param(params.len() as u32);
        narrow.extend(ty.scalar().map(|scalar| (place, scalar)));
        params.push(passed(cx, external, *ty)?.into());
    }
    let function = match (external.results.as_slice(), external.writes) {
        (_, true) => context.i32_type().fn_type(&params, false),
        ([], false) => context.void_type().fn_type(&params, false),
        ([one], false) => passed(cx, external, *one)?.fn_type(&params, false),
        _ => return internal(format!("@{} returns several values", external.symbol)),
    };
    let value = cx.module.add_function(&external.symbol, function, Some(Linkage::External));
    for name in ["nounwind", "convergent"] {
        cx.attribute(value, name);
    }
    for (place, scalar) in narrow {
        if scalar.size_bytes() < 4 {
            let kind = if scalar.is_signed_int() { "signext" } else { "zeroext" };
            let kind = Attribute::get_named_enum_kind_id(kind);
            value.add_attribute(place, context.create_enum_attribute(kind, 0));
        }
    }
    Ok(())
}

/// The type that a value is passed as, and has in memory.
fn passed<'ctx>(cx: &ModuleContext<'_, 'ctx>, external: &ir::External, ty: Type) -> Result<BasicTypeEnum<'ctx>> {
    abi::alone(&cx.types, ty, if external.writes { Abi::Numba } else { Abi::C })
}

/// Calls a function; gives its results.
pub(super) fn emit<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    function: ExternalId,
    operands: &[OperandValue<'ctx>],
) -> Result<Vec<BasicValueEnum<'ctx>>> {
    let cx = emitter.cx;
    let Some(external) = cx.ir.externals.get(function) else { return internal("a function that is not declared") };
    let Some(callee) = cx.module.get_function(&external.symbol) else {
        return internal(format!("@{} has no declaration", external.symbol));
    };
    let mut args: Vec<BasicMetadataValueEnum<'ctx>> = Vec::new();
    let written = external.results.get(usize::from(external.writes)..).unwrap_or_default();
    let mut place = None;
    if external.writes {
        let fields = written.iter().map(|ty| passed(cx, external, *ty)).collect::<Result<Vec<_>>>()?;
        // One that gives nothing may write a null pointer there, as Numba's own functions do.
        let memory = if fields.is_empty() {
            cx.types.context.i64_type().into()
        } else {
            cx.types.context.struct_type(&fields, false).into()
        };
        let pointer = emitter.stack(memory, "result", LARGEST_ALIGN)?;
        args.push(pointer.into());
        place = Some((pointer, fields));
    }
    for operand in operands {
        args.push(given(emitter, external, operand.ty, operand.value)?.into());
    }
    let call = emitter.builder.build_call(callee, &args, "")?;
    cx.make_convergent(call);
    let returned = call.try_as_basic_value().basic();
    let Some((pointer, fields)) = place else {
        return match (external.results.as_slice(), returned) {
            ([], _) => Ok(Vec::new()),
            ([one], Some(value)) => Ok(vec![taken(emitter, *one, value)?]),
            _ => internal(format!("@{} gives nothing", external.symbol)),
        };
    };
    let Some(status) = returned else { return internal(format!("@{} returns no status", external.symbol)) };
    let mut values = vec![status];
    let all = if fields.is_empty() { None } else { Some(cx.types.context.struct_type(&fields, false)) };
    for (index, (ty, field)) in written.iter().zip(&fields).enumerate() {
        let Some(all) = all else { break };
        let at = emitter.builder.build_struct_gep(all, pointer, index as u32, "")?;
        let value = emitter.builder.build_load(*field, at, "")?;
        values.push(taken(emitter, *ty, value)?);
    }
    Ok(values)
}

/// A value as it is passed.
fn given<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    external: &ir::External,
    ty: Type,
    value: BasicValueEnum<'ctx>,
) -> Result<BasicValueEnum<'ctx>> {
    let to = passed(emitter.cx, external, ty)?;
    match (ty, value, to) {
        (Type::Scalar(Scalar::Bool), BasicValueEnum::IntValue(flag), BasicTypeEnum::IntType(byte)) => {
            Ok(emitter.builder.build_int_z_extend(flag, byte, "")?.into())
        }
        (Type::Scalar(scalar), value, to) if scalar.is_half() => Ok(emitter.builder.build_bit_cast(value, to, "")?),
        (Type::Scalar(_) | Type::Ptr(..), value, _) => Ok(value),
    }
}

/// A value that was passed, as the kernel has it: of a byte every value but 0 is true.
fn taken<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    ty: Type,
    value: BasicValueEnum<'ctx>,
) -> Result<BasicValueEnum<'ctx>> {
    match (ty, value) {
        (Type::Scalar(Scalar::Bool), BasicValueEnum::IntValue(byte)) => {
            let zero = byte.get_type().const_zero();
            Ok(emitter.builder.build_int_compare(inkwell::IntPredicate::NE, byte, zero, "")?.into())
        }
        (Type::Scalar(scalar), value) if scalar.is_half() => {
            Ok(emitter.builder.build_bit_cast(value, emitter.cx.types.value(ty)?, "")?)
        }
        (Type::Scalar(_) | Type::Ptr(..), value) => Ok(value),
    }
}
