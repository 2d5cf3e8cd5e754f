//! A kernel's signature and attributes, and the initialization of its parameter locals.

#![expect(unsafe_code, reason = "LLVM's C interface, for the attribute `range`, which inkwell has not")]

use inkwell::{
    IntPredicate,
    attributes::{Attribute, AttributeLoc},
    context::AsContextRef,
    llvm_sys::core::LLVMCreateConstantRangeAttribute,
    values::{BasicValueEnum, FunctionValue},
};

use weft_artifact::{ALIGNED, ArgItem, SlotField, SlotSource};

use crate::{
    analysis::{Interval, argument_range},
    backend::{
        llvm::{FunctionEmitter, ModuleContext, Result, internal},
        symbol,
    },
    ir::{self, FunctionKind, Type},
    request::LaunchBounds,
};

/// LLVM's number of the calling convention `ptx_kernel`.
pub(super) const PTX_KERNEL: u32 = 71;

/// Declares the kernel: one parameter per slot, in order, with attributes.
pub(super) fn declare<'ctx>(cx: &ModuleContext<'_, 'ctx>, kernel: &ir::Function) -> Result<FunctionValue<'ctx>> {
    let context = cx.types.context;
    let mut params = Vec::new();
    for (index, &local) in kernel.params.iter().enumerate() {
        let ty = if is_narrow(cx.ir, kernel, index) { Type::I32 } else { kernel.locals[local].ty };
        params.push(cx.types.memory(ty)?.into());
    }
    let value = cx.module.add_function(&symbol(&kernel.name), context.void_type().fn_type(&params, false), None);
    value.set_call_conventions(PTX_KERNEL);
    cx.attribute(value, "nounwind");
    for index in 0..kernel.params.len() {
        describe(cx, kernel, index, value, index as u32);
    }
    bound(cx, value);
    Ok(value)
}

/// Adds the attributes of a slot that is a parameter.
pub(super) fn describe<'ctx>(
    cx: &ModuleContext<'_, 'ctx>,
    function: &ir::Function,
    slot: usize,
    value: FunctionValue<'ctx>,
    param: u32,
) {
    let Some(local) = function.params.get(slot).map(|&local| &function.locals[local]) else { return };
    let place = AttributeLoc::Param(param);
    if let Some(param) = value.get_nth_param(param) {
        param.set_name(&local.name);
    }
    match local.ty {
        Type::Ptr(element, _) => {
            let assumed = cx.ir.assumed();
            let bytes = if assumed.aligned { ALIGNED.max(element.align_bytes()) } else { element.align_bytes() };
            let attribute =
                |name, value| cx.types.context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), value);
            value.add_attribute(place, attribute("align", bytes));
            // `noalias` only for read-only arrays: LLVM would otherwise cache values in registers across barriers,
            // although other threads may write them.
            if assumed.disjoint && is_only_read(cx, function, slot) {
                value.add_attribute(place, attribute("noalias", 0));
            }
        }
        Type::Scalar(scalar) if scalar.is_int() => {
            let mut range = argument_range(cx.ir, function, slot);
            if let Some(end) = extent_end(cx, function, slot) {
                range = range.meet(Interval::new(0, i128::from(end) - 1));
            }
            let Some(BasicValueEnum::IntValue(param)) = value.get_nth_param(param) else { return };
            let bits = param.get_type().get_bit_width();
            let is_half = u64::from(bits) < scalar.size_bytes() * 8;
            let all = Interval::of_type(if is_half { Type::I32 } else { local.ty });
            if range != all && !range.is_none() {
                value.add_attribute(place, within(cx, bits, range));
            }
        }
        Type::Scalar(_) => {}
    }
}

/// Whether warps change the number of their registers.
fn sets_registers(module: &ir::Module) -> bool {
    let mut sets = false;
    for (_, function) in module.functions.iter() {
        ir::for_each_stmt(&function.body, &mut |stmt| {
            sets |= matches!(stmt.kind, ir::StmtKind::Op { op: ir::Op::SetRegisters { .. }, .. });
        });
    }
    sets
}

/// Adds the kernel's launch bounds.
pub(super) fn bound<'ctx>(cx: &ModuleContext<'_, 'ctx>, kernel: FunctionValue<'ctx>) {
    if let Some(LaunchBounds { threads, blocks, cluster }) = cx.options.launch_bounds {
        cx.string_attribute(kernel, "nvvm.maxntid", &format!("{threads},1,1"));
        // Without a number of blocks, `ptxas` ignores `setmaxnreg`: it does not know the registers at the launch.
        let blocks = blocks.or_else(|| (cx.options.max_registers.is_none() && sets_registers(cx.ir)).then_some(1));
        for (key, bound) in [("nvvm.minctasm", blocks), ("nvvm.maxclusterrank", cluster)] {
            if let Some(bound) = bound {
                cx.string_attribute(kernel, key, &bound.to_string());
            }
        }
    }
    if let Some(registers) = cx.options.max_registers {
        cx.string_attribute(kernel, "nvvm.maxnreg", &registers.to_string());
    }
}

/// One more than the largest possible extent of an array, if the parameter is an extent. NumPy limits the size in bytes
/// of an array, even of a broadcast one, to less than 2^63.
fn extent_end(cx: &ModuleContext<'_, '_>, function: &ir::Function, index: usize) -> Option<u64> {
    let SlotSource::Argument { param, path, field: SlotField::Shape(_) } = function.slots.get(index)? else {
        return None;
    };
    match cx.ir.params.get(*param as usize)?.ty.leaf(path)? {
        ArgItem::Array(array) => Some((1 << 63) / array.dtype.size_bytes().max(1)),
        ArgItem::Value(_) | ArgItem::Record(_) | ArgItem::Pointer(_) => None,
    }
}

/// Whether a slot is the data pointer of an array that the kernel reads but does not write.
fn is_only_read(cx: &ModuleContext<'_, '_>, function: &ir::Function, index: usize) -> bool {
    let Some(SlotSource::Argument { param, field: SlotField::Data, .. }) = function.slots.get(index) else {
        return false;
    };
    cx.ir.params.get(*param as usize).is_some_and(|param| param.access.reads && !param.access.writes)
}

/// `range(iN low, end)`, for an interval that is neither empty nor the whole type.
pub(super) fn within(cx: &ModuleContext<'_, '_>, bits: u32, range: Interval) -> Attribute {
    let kind = Attribute::get_named_enum_kind_id("range");
    // LLVM takes bounds modulo 2^N, and reads only the lower N bits of a word.
    let mask = u64::MAX >> (64 - bits);
    let (low, high) = ([range.low as u64 & mask], [(range.high + 1) as u64 & mask]);
    let context = cx.types.context.as_ctx_ref();
    // SAFETY: the context is alive; each bound has one word, as LLVM expects up to 64 bits; LLVM copies them.
    let range = unsafe { LLVMCreateConstantRangeAttribute(context, kind, bits, low.as_ptr(), high.as_ptr()) };
    // SAFETY: `range` is the attribute just made.
    unsafe { Attribute::new(range) }
}

/// Whether a slot of 64 bits is a parameter of 32, because its value fits in every launch. The driver copies as many bytes
/// of a slot as the parameter has, and those of the lower half come first. LLVM cannot narrow a parameter, and extends the
/// lower half by two shifts, which `ptxas` does not combine with products.
fn is_narrow(module: &ir::Module, kernel: &ir::Function, slot: usize) -> bool {
    let ty = kernel.locals[kernel.params[slot]].ty;
    let is_wide = ty.scalar().is_some_and(|scalar| scalar.is_int() && scalar.size_bytes() == 8);
    is_wide && argument_range(module, kernel, slot).fits(Type::I32)
}

/// Stores the arguments into the stack slots of their locals.
pub(super) fn receive(emitter: &FunctionEmitter<'_, '_>) -> Result<()> {
    let function = emitter.function;
    for (index, &local) in function.params.iter().enumerate() {
        let Some(value) = emitter.value.get_nth_param(index as u32) else {
            return internal(format!("@{} has too few parameters", function.name));
        };
        match value {
            BasicValueEnum::IntValue(byte)
                if function.kind == FunctionKind::Kernel && function.locals[local].ty == Type::BOOL =>
            {
                // A `bool` from the host is a byte: every value but 0 is true.
                let zero = byte.get_type().const_zero();
                let value = emitter.builder.build_int_compare(IntPredicate::NE, byte, zero, "")?;
                emitter.set_local(local, value.into())?;
            }
            BasicValueEnum::IntValue(half)
                if function.kind == FunctionKind::Kernel && is_narrow(emitter.cx.ir, function, index) =>
            {
                let wide = emitter.cx.types.context.i64_type();
                let value = if argument_range(emitter.cx.ir, function, index).is_nonneg() {
                    emitter.builder.build_int_z_extend(half, wide, "")?
                } else {
                    emitter.builder.build_int_s_extend(half, wide, "")?
                };
                emitter.set_local(local, value.into())?;
            }
            other @ (BasicValueEnum::ArrayValue(_)
            | BasicValueEnum::IntValue(_)
            | BasicValueEnum::FloatValue(_)
            | BasicValueEnum::PointerValue(_)
            | BasicValueEnum::StructValue(_)
            | BasicValueEnum::VectorValue(_)
            | BasicValueEnum::ScalableVectorValue(_)) => emitter.set_local(local, other)?,
        }
    }
    Ok(())
}
