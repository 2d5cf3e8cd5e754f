//! The position of a thread in its launch ([`Frame`]), and the addresses of what belongs to it: fields of the context,
//! arguments, local arrays.

#![expect(unsafe_code, reason = "inkwell's getelementptr is unsafe")]

use std::mem::offset_of;

use inkwell::{
    IntPredicate,
    builder::Builder,
    types::BasicTypeEnum,
    values::{AsValueRef, BasicMetadataValueEnum, BasicValue, BasicValueEnum, FunctionValue, IntValue, PointerValue},
};
use weft_artifact::HostContext;

use crate::{
    backend::{
        host::plan::MAX_THREADS,
        llvm::{FunctionEmitter, ModuleContext, Result, Types, internal},
        slot_type,
    },
    ir::{Function, LocalArray, Space, Type},
};

/// The position of a thread in its launch, and its memory. All integers are `i32`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'ctx> {
    /// `threadIdx`.
    pub thread: [IntValue<'ctx>; 3],
    /// `blockIdx`.
    pub block: [IntValue<'ctx>; 3],
    /// `blockDim`.
    pub block_dim: [IntValue<'ctx>; 3],
    /// `gridDim`.
    pub grid_dim: [IntValue<'ctx>; 3],
    /// Trip count of the loop along `x`: `blockDim.x`, the length of a row of merged blocks or of a part of it, or 32
    /// where a warp is a block.
    pub row: IntValue<'ctx>,
    /// Number of rows along `y` and `z`.
    pub rows: [IntValue<'ctx>; 2],
    /// Bytes of dynamic shared memory.
    pub dynamic_bytes: IntValue<'ctx>,
    /// The worker's scratch memory.
    pub scratch: PointerValue<'ctx>,
    /// The context of the call.
    pub context: PointerValue<'ctx>,
}

/// Number of integers that a frame is passed as.
const FRAME_INTS: usize = 13;

impl<'ctx> Frame<'ctx> {
    /// The types of a frame that is passed to a device function.
    pub(crate) fn types(types: &Types<'ctx>) -> Vec<BasicTypeEnum<'ctx>> {
        let mut all = vec![types.context.i32_type().into(); FRAME_INTS];
        let pointer: BasicTypeEnum<'ctx> = types.pointer(Space::Generic).into();
        all.extend([pointer, pointer]);
        all
    }

    /// Index of the parameter that is the scratch memory.
    pub(crate) const SCRATCH: u32 = FRAME_INTS as u32;

    /// The frame as a device function's first arguments.
    pub(crate) fn values(&self) -> Vec<BasicMetadataValueEnum<'ctx>> {
        let ints = [self.thread, self.block, self.block_dim, self.grid_dim];
        let mut all: Vec<_> = ints.iter().flatten().map(|&int| int.into()).collect();
        all.push(self.dynamic_bytes.into());
        all.push(self.scratch.into());
        all.push(self.context.into());
        all
    }

    /// The frame that a device function receives, and the number of its parameters.
    pub(crate) fn received(function: FunctionValue<'ctx>) -> Result<(Self, usize)> {
        let mut ints = Vec::with_capacity(FRAME_INTS);
        for index in 0..FRAME_INTS {
            match function.get_nth_param(index as u32) {
                Some(BasicValueEnum::IntValue(value)) => ints.push(value),
                _ => return internal("a device function without its frame"),
            }
        }
        let Some(BasicValueEnum::PointerValue(scratch)) = function.get_nth_param(FRAME_INTS as u32) else {
            return internal("a device function without scratch memory");
        };
        let Some(BasicValueEnum::PointerValue(context)) = function.get_nth_param(FRAME_INTS as u32 + 1) else {
            return internal("a device function without its context");
        };
        let three = |from: usize| [ints[from], ints[from + 1], ints[from + 2]];
        let frame = Self {
            thread: three(0),
            block: three(3),
            block_dim: three(6),
            grid_dim: three(9),
            row: ints[6],
            rows: [ints[7], ints[8]],
            dynamic_bytes: ints[12],
            scratch,
            context,
        };
        Ok((frame, FRAME_INTS + 2))
    }
}

/// The frame of a launch configuration. `threadIdx` and `blockIdx` are zero.
pub(crate) fn frame<'ctx>(
    types: &Types<'ctx>,
    builder: &Builder<'ctx>,
    config: PointerValue<'ctx>,
    scratch: PointerValue<'ctx>,
    context: PointerValue<'ctx>,
) -> Result<Frame<'ctx>> {
    let int = types.context.i32_type();
    let range = types.context.get_kind_id("range");
    let field = |index: u64, name: &str, limit: Option<u64>| -> Result<IntValue<'ctx>> {
        let at = types.context.i64_type().const_int(index, false);
        // SAFETY: the ABI has eight 32-bit fields here.
        let place = unsafe { builder.build_in_bounds_gep(int, config, &[at], "")? };
        let value = builder.build_load(int, place, name)?.into_int_value();
        if let (Some(limit), Some(load)) = (limit, value.as_instruction()) {
            let bounds = [int.const_int(1, false).into(), int.const_int(limit, false).into()];
            let set = load.set_metadata(types.context.metadata_node(&bounds), range);
            set.or_else(|error| internal(format!("LLVM takes no range: {error}")))?;
        }
        Ok(value)
    };
    let (grid_limit, block_limit) = (Some(1 << 31), Some(MAX_THREADS + 1));
    let grid_dim =
        [field(0, "gridDim.x", grid_limit)?, field(1, "gridDim.y", grid_limit)?, field(2, "gridDim.z", grid_limit)?];
    let block_dim = [
        field(3, "blockDim.x", block_limit)?,
        field(4, "blockDim.y", block_limit)?,
        field(5, "blockDim.z", block_limit)?,
    ];
    let dynamic_bytes = field(6, "dynamic_bytes", None)?;
    let zeros = [int.const_zero(); 3];
    let (row, rows) = (block_dim[0], [block_dim[1], block_dim[2]]);
    Ok(Frame { thread: zeros, block: zeros, block_dim, grid_dim, row, rows, dynamic_bytes, scratch, context })
}

/// Converts a linear index to coordinates. `x` varies fastest.
pub(crate) fn place_of<'ctx>(
    types: &Types<'ctx>,
    builder: &Builder<'ctx>,
    number: IntValue<'ctx>,
    [x, y, _]: [IntValue<'ctx>; 3],
) -> Result<[IntValue<'ctx>; 3]> {
    let wide = |value: IntValue<'ctx>| builder.build_int_z_extend(value, types.context.i64_type(), "");
    let (wide_x, wide_y) = (wide(x)?, wide(y)?);
    let rows = builder.build_int_unsigned_div(number, wide_x, "")?;
    let x = builder.build_int_unsigned_rem(number, wide_x, "")?;
    let y = builder.build_int_unsigned_rem(rows, wide_y, "")?;
    let z = builder.build_int_unsigned_div(rows, wide_y, "")?;
    let narrow = |value| builder.build_int_truncate(value, types.context.i32_type(), "");
    Ok([narrow(x)?, narrow(y)?, narrow(z)?])
}

/// The fields of a [`HostContext`] that do not change during a call of the entry.
pub(crate) struct Fields<'ctx> {
    pub slots: PointerValue<'ctx>,
    pub config: PointerValue<'ctx>,
    pub first: IntValue<'ctx>,
    pub last: IntValue<'ctx>,
    pub scratch: PointerValue<'ctx>,
    pub thread: IntValue<'ctx>,
}

/// The address of a context's field, by its offset.
pub(crate) fn field<'ctx>(
    types: &Types<'ctx>,
    builder: &Builder<'ctx>,
    context: PointerValue<'ctx>,
    offset: usize,
) -> Result<PointerValue<'ctx>> {
    let offset = types.context.i64_type().const_int(offset as u64, false);
    // SAFETY: one index on a byte is a valid getelementptr, and the field is in the context.
    Ok(unsafe { builder.build_in_bounds_gep(types.context.i8_type(), context, &[offset], "")? })
}

/// Loads the fields that do not change during a call of the entry.
pub(crate) fn fields<'ctx>(
    types: &Types<'ctx>,
    builder: &Builder<'ctx>,
    context: PointerValue<'ctx>,
) -> Result<Fields<'ctx>> {
    let pointer = |offset: usize, name: &str| -> Result<PointerValue<'ctx>> {
        let place = field(types, builder, context, offset)?;
        Ok(builder.build_load(types.pointer(Space::Generic), place, name)?.into_pointer_value())
    };
    let long = |offset: usize, name: &str| -> Result<IntValue<'ctx>> {
        let place = field(types, builder, context, offset)?;
        Ok(builder.build_load(types.context.i64_type(), place, name)?.into_int_value())
    };
    Ok(Fields {
        slots: pointer(offset_of!(HostContext, slots), "slots")?,
        config: pointer(offset_of!(HostContext, config), "config")?,
        first: long(offset_of!(HostContext, first_block), "first_block")?,
        last: long(offset_of!(HostContext, last_block), "last_block")?,
        scratch: pointer(offset_of!(HostContext, scratch), "scratch")?,
        thread: long(offset_of!(HostContext, thread), "thread")?,
    })
}

/// Loads the launch's arguments into the locals of the parameters. No statement assigns these locals.
pub(crate) fn receive<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    function: &Function,
    slots: PointerValue<'ctx>,
) -> Result<()> {
    let types = emitter.cx.types;
    let mut next = 0;
    for &local in &function.params {
        let info = &function.locals[local];
        let cell = known_offset(emitter, slots, 8 * next)?;
        next += slot_type(info.ty).cells() as u64;
        let value = emitter.builder.build_load(types.memory(info.ty)?, cell, &info.name)?;
        if info.ty == Type::BOOL {
            // The host passes a byte. Every nonzero value is true.
            let byte = value.into_int_value();
            let zero = byte.get_type().const_zero();
            let value = emitter.builder.build_int_compare(IntPredicate::NE, byte, zero, "")?;
            emitter.set_local(local, value.into())?;
            continue;
        }
        if let (true, BasicTypeEnum::IntType(int)) = (info.nonneg, types.memory(info.ty)?) {
            let minimum = 1_u64 << (int.get_bit_width() - 1);
            let bounds = [int.const_zero().into(), int.const_int(minimum, false).into()];
            if let Some(load) = value.as_instruction_value() {
                let set = load.set_metadata(types.context.metadata_node(&bounds), types.context.get_kind_id("range"));
                set.or_else(|error| internal(format!("LLVM takes no range: {error}")))?;
            }
        }
        emitter.set_local(local, value)?;
    }
    Ok(())
}

/// Allocates a thread-local array on the stack; the builder is in the entry block of a function.
pub(crate) fn array_alloca<'ctx>(
    cx: &ModuleContext<'_, 'ctx>,
    builder: &Builder<'ctx>,
    array: &LocalArray,
) -> Result<PointerValue<'ctx>> {
    let element = cx.types.memory(Type::Scalar(array.elem))?;
    let len = cx.types.context.i64_type().const_int(array.len, false);
    let place = builder.build_array_alloca(element, len, &array.name)?;
    if let Some(alloca) = place.as_instruction() {
        let set = alloca.set_alignment(array.align.max(1) as u32);
        set.or_else(|error| internal(format!("an alignment of {}: {error}", array.align)))?;
    }
    Ok(place)
}

/// `base + bytes`. The result must be in the memory that `base` points into.
pub(crate) fn byte_offset<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    base: PointerValue<'ctx>,
    bytes: IntValue<'ctx>,
) -> Result<PointerValue<'ctx>> {
    let byte = emitter.cx.types.context.i8_type();
    // SAFETY: one index on a byte is a valid getelementptr; the caller guarantees that it is in bounds.
    Ok(unsafe { emitter.builder.build_in_bounds_gep(byte, base, &[bytes], "")? })
}

/// `base + offset` for a constant number of bytes.
pub(crate) fn known_offset<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    base: PointerValue<'ctx>,
    offset: u64,
) -> Result<PointerValue<'ctx>> {
    byte_offset(emitter, base, emitter.cx.types.context.i64_type().const_int(offset, false))
}

/// `a + b` for two `i32`. The operands and the sum must not be negative.
pub(crate) fn count<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    a: IntValue<'ctx>,
    b: IntValue<'ctx>,
) -> Result<IntValue<'ctx>> {
    let sum = emitter.builder.build_int_nuw_add(a, b, "")?;
    if sum.as_instruction().is_some() {
        // SAFETY: the sum is the addition that was just built, which supports the flag.
        unsafe { inkwell::llvm_sys::core::LLVMSetNSW(sum.as_value_ref(), 1) };
    }
    Ok(sum)
}

/// A nonnegative `i32`, extended to index memory.
pub(crate) fn index<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>, value: IntValue<'ctx>) -> Result<IntValue<'ctx>> {
    Ok(emitter.builder.build_int_z_extend(value, emitter.cx.types.context.i64_type(), "")?)
}
