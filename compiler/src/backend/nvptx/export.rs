//! Functions for callers outside of weft, and kernels that other software launches: their signatures, arguments and
//! results.

#![expect(unsafe_code, reason = "inkwell's getelementptr, into the caller's slot for a result")]

use inkwell::{
    AddressSpace, IntPredicate,
    attributes::{Attribute, AttributeLoc},
    module::Linkage,
    types::{BasicMetadataTypeEnum, BasicType},
    values::{BasicValueEnum, FunctionValue},
};
use weft_artifact::{ArgType, Scalar, SlotSource};

use super::{
    abi::{self, AbiScalar, Param, Shape},
    kernel::{PTX_KERNEL, bound, describe},
};
use crate::{
    backend::{
        llvm::{FunctionEmitter, ModuleContext, Result, internal},
        symbol,
    },
    ir::{self, Module, Space, Type},
    request::{Abi, Entry, Foreign, Role},
};

/// The status that numba-cuda's functions return: success, an exception ended the thread, and the result is `None`.
const DONE: u64 = 0;
const RAISED: u64 = 1;
const NONE: u64 = -2_i32 as u32 as u64;

impl Role {
    fn abi(self) -> Abi {
        match self {
            Self::Kernel => Abi::Numba,
            Self::Function(abi) => abi,
        }
    }

    /// The address space of its array arguments.
    fn space(self) -> Space {
        match self {
            Self::Kernel => Space::Global,
            Self::Function(_) => Space::Generic,
        }
    }

    /// The number of parameters before those of the arguments: the pointer to the result.
    fn hidden(self) -> u32 {
        match self {
            Self::Kernel | Self::Function(Abi::C) => 0,
            Self::Function(Abi::Numba) => 1,
        }
    }
}

/// The parameters of all arguments, each with the argument's number.
fn params(module: &Module, role: Role) -> Vec<(u32, Param)> {
    let each = module.params.iter().enumerate();
    each.flat_map(|(index, param)| {
        abi::params(&param.ty, role.abi(), role.space()).into_iter().map(move |param| (index as u32, param))
    })
    .collect()
}

/// The memory layout of a function's result.
fn result(module: &Module, abi: Abi) -> Shape {
    match (&module.returns, abi) {
        // The status says whether there is a value.
        (Some(ArgType::Optional(of)), Abi::Numba) => Shape::of(of, abi, Space::Generic),
        (Some(ty), Abi::Numba | Abi::C) => Shape::of(ty, abi, Space::Generic),
        (None, _) => Shape::default(),
    }
}

/// Declares the function.
pub(super) fn declare<'ctx>(
    cx: &ModuleContext<'_, 'ctx>,
    function: &ir::Function,
    foreign: &Foreign,
) -> Result<FunctionValue<'ctx>> {
    let (role, context) = (foreign.role, cx.types.context);
    for param in &cx.ir.params {
        let mut known = true;
        param.ty.for_each_leaf(&mut |_, leaf| known &= abi::known(leaf));
        if !known {
            return internal(format!("{} has no form in other code", param.ty));
        }
    }
    let generic = context.ptr_type(AddressSpace::default());
    let mut types: Vec<BasicMetadataTypeEnum<'ctx>> = vec![generic.into(); role.hidden() as usize];
    let mut aligns = Vec::new();
    for (_, param) in params(cx.ir, role) {
        match param {
            Param::Part(part) => types.push(abi::alone(&cx.types, part.ty, role.abi())?.into()),
            Param::Struct(shape) => {
                aligns.push((AttributeLoc::Param(types.len() as u32), shape.align));
                types.push(shape.llvm(&cx.types)?.0.into());
            }
        }
    }
    let shape = result(cx.ir, role.abi());
    let ty = match role {
        Role::Kernel => context.void_type().fn_type(&types, false),
        Role::Function(Abi::Numba) => context.i32_type().fn_type(&types, false),
        Role::Function(Abi::C) => match shape.parts.as_slice() {
            [] => context.void_type().fn_type(&types, false),
            [part] if shape.alone => abi::alone(&cx.types, part.ty, Abi::C)?.fn_type(&types, false),
            _ => {
                aligns.push((AttributeLoc::Return, shape.align));
                shape.llvm(&cx.types)?.0.fn_type(&types, false)
            }
        },
    };
    let name = foreign.symbol.clone().unwrap_or_else(|| symbol(&function.name));
    let value = cx.module.add_function(&name, ty, Some(Linkage::External));
    cx.attribute(value, "nounwind");
    for (place, align) in aligns {
        let kind = Attribute::get_named_enum_kind_id("alignstack");
        value.add_attribute(place, context.create_enum_attribute(kind, align));
    }
    if let (Role::Function(Abi::C), [part], true) = (role, shape.parts.as_slice(), shape.alone)
        && let Some(extension) = extension(part.ty)
    {
        // The caller reads 32 bits.
        let kind = Attribute::get_named_enum_kind_id(extension);
        value.add_attribute(AttributeLoc::Return, context.create_enum_attribute(kind, 0));
    }
    if role == Role::Kernel {
        value.set_call_conventions(PTX_KERNEL);
        bound(cx, value);
    }
    for (slot, source) in function.slots.iter().enumerate() {
        if let Some((param, None)) = find(cx.ir, role, source) {
            describe(cx, function, slot, value, role.hidden() + param as u32);
        }
    }
    Ok(value)
}

/// How a small integer is extended to 32 bits.
pub(super) fn extension(ty: Type) -> Option<&'static str> {
    match ty {
        Type::Scalar(Scalar::Bool | Scalar::U8 | Scalar::U16) => Some("zeroext"),
        Type::Scalar(Scalar::I8 | Scalar::I16) => Some("signext"),
        Type::Scalar(
            Scalar::I32
            | Scalar::I64
            | Scalar::U32
            | Scalar::U64
            | Scalar::F16
            | Scalar::BF16
            | Scalar::F32
            | Scalar::F64,
        )
        | Type::Ptr(..) => None,
    }
}

/// The parameter that holds a slot, and the slot's index in the parameter's struct, if it is a struct.
fn find(module: &Module, role: Role, source: &SlotSource) -> Option<(usize, Option<usize>)> {
    let SlotSource::Argument { param: number, path, field } = source else { return None };
    let is = |part: &AbiScalar| part.field.as_ref().is_some_and(|(steps, known)| (steps, known) == (path, field));
    params(module, role).into_iter().enumerate().filter(|(_, (owner, _))| owner == number).find_map(
        |(index, (_, param))| match param {
            Param::Part(part) => is(&part).then_some((index, None)),
            Param::Struct(shape) => shape.parts.iter().position(is).map(|part| (index, Some(part))),
        },
    )
}

/// Stores the arguments into the stack slots of their locals.
pub(super) fn receive(emitter: &FunctionEmitter<'_, '_>, foreign: &Foreign) -> Result<()> {
    let (function, cx, role) = (emitter.function, emitter.cx, foreign.role);
    let all = params(cx.ir, role);
    for (source, &local) in function.slots.iter().zip(&function.params) {
        let found = find(cx.ir, role, source);
        let param = found.and_then(|(index, _)| emitter.value.get_nth_param(role.hidden() + index as u32));
        let (Some((index, part)), Some(mut value)) = (found, param) else {
            return internal(format!("@{} has a slot that is no part of its arguments", function.name));
        };
        if let (Some(part), (_, Param::Struct(shape)), BasicValueEnum::StructValue(whole)) = (part, &all[index], value)
        {
            let place = shape.llvm(&cx.types)?.1[part];
            value = emitter.builder.build_extract_value(whole, place, "")?;
        }
        let ty = function.locals[local].ty;
        let wanted = cx.types.memory(ty)?;
        if let (Type::BOOL, BasicValueEnum::IntValue(byte)) = (ty, value) {
            // A `bool` from outside is a byte: every value but 0 is true.
            let zero = byte.get_type().const_zero();
            value = emitter.builder.build_int_compare(IntPredicate::NE, byte, zero, "")?.into();
        } else if value.get_type() != wanted {
            value = emitter.builder.build_bit_cast(value, wanted, "")?;
        }
        emitter.set_local(local, value)?;
    }
    Ok(())
}

/// Returns from the function. `values` are the parts of its result and, if the function can end the thread, whether it
/// does.
pub(super) fn leave<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>, values: &[BasicValueEnum<'ctx>]) -> Result<()> {
    let cx = emitter.cx;
    let Entry::Foreign(Foreign { role: Role::Function(abi), .. }) = cx.options.entry else {
        return internal("an exported function has no ABI");
    };
    let shape = result(cx.ir, abi);
    let builder = &emitter.builder;
    let status = |value| cx.types.context.i32_type().const_int(value, false);
    let fields = cx.ir.returns.as_ref().map(ArgType::fields).unwrap_or_default();
    let (values, ends) = values.split_at(fields.len().min(values.len()));
    if let [BasicValueEnum::IntValue(ends)] = ends {
        let (raised, done) = (emitter.block("raised"), emitter.block("done"));
        builder.build_conditional_branch(*ends, raised, done)?;
        builder.position_at_end(raised);
        match abi {
            Abi::Numba => builder.build_return(Some(&status(RAISED)))?,
            // The C ABI cannot report that the thread ended.
            Abi::C => {
                builder.build_call(cx.intrinsic("llvm.nvvm.exit", &[])?, &[], "")?;
                builder.build_unreachable()?
            }
        };
        builder.position_at_end(done);
    }
    // The memory layout of an optional result differs from the way weft passes it internally.
    let may_be_none = abi == Abi::Numba && matches!(cx.ir.returns, Some(ArgType::Optional(_)));
    if may_be_none {
        let Some(BasicValueEnum::IntValue(given)) = values.first() else {
            return internal("what may be missing does not say whether it is there");
        };
        let (none, some) = (emitter.block("none"), emitter.block("some"));
        builder.build_conditional_branch(*given, some, none)?;
        builder.position_at_end(none);
        builder.build_return(Some(&status(NONE)))?;
        builder.position_at_end(some);
    }
    let value_of = |part: &AbiScalar| {
        let (mut steps, field) = part.field.clone()?;
        if may_be_none {
            steps.insert(0, 1);
        }
        let index = fields.iter().position(|(path, known)| *path == steps && known.field == field)?;
        values.get(index).copied()
    };
    let mut own = Vec::new();
    for (index, part) in shape.parts.iter().enumerate() {
        if let Some(value) = value_of(part) {
            own.push((index, part, emitter.to_memory(value)?));
        }
    }
    match abi {
        Abi::Numba => {
            let Some(BasicValueEnum::PointerValue(place)) = emitter.value.get_nth_param(0) else {
                return internal(format!("@{} has no result slot", emitter.function.name));
            };
            for (_, part, value) in own {
                let offset = cx.types.context.i64_type().const_int(part.offset, false);
                // SAFETY: one index on an integer type is a valid getelementptr; the caller's slot fits the result.
                let to = unsafe { builder.build_in_bounds_gep(cx.types.context.i8_type(), place, &[offset], "")? };
                builder.build_store(to, value)?;
            }
            builder.build_return(Some(&status(DONE)))?;
        }
        Abi::C => match (own.as_slice(), shape.alone) {
            ([], _) => {
                builder.build_return(None)?;
            }
            ([(_, _, one)], true) => {
                builder.build_return(Some(one))?;
            }
            (parts, _) => {
                let (ty, places) = shape.llvm(&cx.types)?;
                let mut whole = ty.get_undef();
                for &(index, _, value) in parts {
                    let set = builder.build_insert_value(whole, value, places[index], "")?;
                    whole = set.into_struct_value();
                }
                builder.build_return(Some(&whole))?;
            }
        },
    }
    Ok(())
}
