//! Functions in other languages that are linked with the kernel: declarations, and calls.
//!
//! Values are passed as `docs/design/exported-functions.md` describes. Parameters of less than 32 bits take 32 bits in
//! PTX. nvcc does the same, and its callees read only the bits of the type.

#![expect(unsafe_code, reason = "inkwell's getelementptr is unsafe")]

use inkwell::{
    AddressSpace, IntPredicate,
    attributes::{Attribute, AttributeLoc},
    module::Linkage,
    types::{BasicMetadataTypeEnum, BasicType},
    values::{BasicMetadataValueEnum, BasicValueEnum, PointerValue},
};

use super::{
    SPACES,
    abi::{self, Param, Shape},
    export::extension,
};
use crate::{
    backend::llvm::{FunctionEmitter, ModuleContext, OperandValue, Result, internal},
    ir::{self, ExternalId, Space, Type},
    request::Abi,
};

/// C++ may store a complex number in one 16-byte access.
const LARGEST_ALIGN: u32 = 16;

/// Declares the external functions of the module. This comes before all other functions, so that no other function
/// takes their symbols.
pub(super) fn declare(cx: &ModuleContext<'_, '_>) -> Result<()> {
    for (_, external) in cx.ir.externals.iter() {
        declare_one(cx, external)?;
    }
    Ok(())
}

fn abi_of(external: &ir::External) -> Abi {
    if external.writes { Abi::Numba } else { Abi::C }
}

/// The parameters, without the leading one that points to the result.
fn params(external: &ir::External) -> impl Iterator<Item = Param> {
    external.params.iter().flat_map(|ty| abi::params(ty, abi_of(external), Space::Generic))
}

/// The memory layout of its result.
fn result(external: &ir::External) -> Shape {
    let shape = external.returns.as_ref().map(|ty| Shape::of(ty, abi_of(external), Space::Generic));
    shape.unwrap_or_default()
}

fn declare_one(cx: &ModuleContext<'_, '_>, external: &ir::External) -> Result<()> {
    let context = cx.types.context;
    let mut types: Vec<BasicMetadataTypeEnum<'_>> = Vec::new();
    let mut attributes: Vec<(AttributeLoc, &str, u64)> = Vec::new();
    if external.writes {
        types.push(context.ptr_type(AddressSpace::from(SPACES.generic)).into());
    }
    for param in params(external) {
        let place = AttributeLoc::Param(types.len() as u32);
        match param {
            Param::Part(part) => {
                attributes.extend(extension(part.ty).map(|extension| (place, extension, 0)));
                types.push(abi::alone(&cx.types, part.ty, abi_of(external))?.into());
            }
            Param::Struct(shape) => {
                attributes.push((place, "alignstack", shape.align));
                types.push(shape.llvm(&cx.types)?.0.into());
            }
        }
    }
    let shape = result(external);
    let function = match (shape.parts.as_slice(), external.writes) {
        (_, true) => context.i32_type().fn_type(&types, false),
        ([], false) => context.void_type().fn_type(&types, false),
        // A small integer is returned without an extension attribute, because its upper bits are not known.
        ([part], false) if shape.alone => abi::alone(&cx.types, part.ty, Abi::C)?.fn_type(&types, false),
        (_, false) => {
            attributes.push((AttributeLoc::Return, "alignstack", shape.align));
            shape.llvm(&cx.types)?.0.fn_type(&types, false)
        }
    };
    let value = cx.module.add_function(&external.symbol, function, Some(Linkage::External));
    for name in ["nounwind", "convergent"] {
        cx.attribute(value, name);
    }
    for (place, name, number) in attributes {
        let kind = Attribute::get_named_enum_kind_id(name);
        value.add_attribute(place, context.create_enum_attribute(kind, number));
    }
    Ok(())
}

/// Calls a function and returns its results.
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
    let shape = result(external);
    let mut args: Vec<BasicMetadataValueEnum<'ctx>> = Vec::new();
    let mut place = None;
    if external.writes {
        // A function without a result may write a null pointer there, as numba-cuda's own functions do.
        let bytes = u32::try_from(shape.size.max(8)).unwrap_or(u32::MAX);
        let pointer = emitter.stack(cx.types.context.i8_type().array_type(bytes).into(), "result", LARGEST_ALIGN)?;
        args.push(pointer.into());
        place = Some(pointer);
    }
    let mut operands = operands.iter();
    let mut next = || match operands.next() {
        Some(operand) => emitter.to_memory(operand.value),
        None => internal(format!("@{} gets too few operands", external.symbol)),
    };
    for param in params(external) {
        match param {
            Param::Part(part) => {
                let (value, wanted) = (next()?, abi::alone(&cx.types, part.ty, abi_of(external))?);
                let same = value.get_type() == wanted;
                let value = if same { value } else { emitter.builder.build_bit_cast(value, wanted, "")? };
                args.push(value.into());
            }
            Param::Struct(shape) => {
                let (ty, places) = shape.llvm(&cx.types)?;
                let mut whole = ty.get_undef();
                for place in places {
                    whole = emitter.builder.build_insert_value(whole, next()?, place, "")?.into_struct_value();
                }
                args.push(whole.into());
            }
        }
    }
    let call = emitter.builder.build_call(callee, &args, "")?;
    cx.make_convergent(call);
    let returned = call.try_as_basic_value().basic();
    let mut values = Vec::new();
    let parts: Vec<BasicValueEnum<'ctx>> = match (place, returned) {
        (Some(place), Some(status)) => {
            values.push(status);
            shape.parts.iter().map(|part| written(emitter, place, part)).collect::<Result<_>>()?
        }
        (None, None) => Vec::new(),
        (None, Some(BasicValueEnum::StructValue(whole))) => {
            let (_, places) = shape.llvm(&cx.types)?;
            let parts = places.into_iter().map(|place| emitter.builder.build_extract_value(whole, place, ""));
            parts.collect::<std::result::Result<_, _>>()?
        }
        (None, Some(value)) => vec![value],
        (Some(_), None) => return internal(format!("@{} returns no status", external.symbol)),
    };
    for (part, value) in shape.parts.iter().zip(parts) {
        values.push(taken(emitter, part.ty, value)?);
    }
    Ok(values)
}

/// Loads a part of a result from the memory where the callee stored it.
fn written<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    place: PointerValue<'ctx>,
    part: &abi::AbiScalar,
) -> Result<BasicValueEnum<'ctx>> {
    let context = emitter.cx.types.context;
    let offset = context.i64_type().const_int(part.offset, false);
    // SAFETY: one index on an integer type is a valid getelementptr; `place` has room for the result.
    let at = unsafe { emitter.builder.build_in_bounds_gep(context.i8_type(), place, &[offset], "")? };
    Ok(emitter.builder.build_load(emitter.cx.types.memory(part.ty)?, at, "")?)
}

/// Converts a value to the kernel's representation: a `bool` is a byte of which every value but 0 is true.
fn taken<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    ty: Type,
    value: BasicValueEnum<'ctx>,
) -> Result<BasicValueEnum<'ctx>> {
    if let (Type::BOOL, BasicValueEnum::IntValue(byte)) = (ty, value) {
        let zero = byte.get_type().const_zero();
        return Ok(emitter.builder.build_int_compare(IntPredicate::NE, byte, zero, "")?.into());
    }
    Ok(value)
}
