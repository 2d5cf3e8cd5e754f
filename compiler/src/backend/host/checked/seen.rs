//! The running thread's state for inline checks ([`HostSeen`]), cached in registers.
//!
//! The code loads it from the runtime's memory at the start of a function, and again after each operation that may have
//! changed it. It does not load it at each access: LLVM cannot know that accesses leave it unchanged. With work-item
//! loops, the threads of a block share one [`HostSeen`]. Each thread stores its identity there when its iteration
//! starts; the runtime sets the other fields.

use std::mem::offset_of;

use inkwell::{
    IntPredicate,
    builder::Builder,
    types::BasicTypeEnum,
    values::{BasicMetadataValueEnum, BasicValueEnum, IntValue, PointerValue},
};
use weft_artifact::{HostContext, HostSeen};

use crate::backend::{
    host::emit::position::{field, known_offset},
    llvm::{FunctionEmitter, Result, Types},
};

/// The stack slots of the values, which LLVM promotes to registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'ctx> {
    /// The address of the runtime's [`HostSeen`].
    pub(crate) memory: PointerValue<'ctx>,
    /// The table of pages for inline lookup.
    near: PointerValue<'ctx>,
    /// The block and its epoch.
    time: PointerValue<'ctx>,
    /// The calls that led to the current location, and the thread as a reader.
    read: PointerValue<'ctx>,
    /// The calls that led to the current location, and the thread as a writer.
    write: PointerValue<'ctx>,
    /// The bit of the lane.
    lane: PointerValue<'ctx>,
    /// One bit per parameter: reads of its array are not recorded.
    quiet: PointerValue<'ctx>,
    /// Whether the thread's last access is recorded.
    notes: bool,
}

impl<'ctx> Seen<'ctx> {
    /// Allocates the slots; the builder is in the entry block of a function. `notes` is set if threads have stacks.
    pub(crate) fn declare(
        types: &Types<'ctx>,
        builder: &Builder<'ctx>,
        context: PointerValue<'ctx>,
        notes: bool,
    ) -> Result<Self> {
        let llvm = types.context;
        let (int, long) = (llvm.i32_type(), llvm.i64_type());
        let pointer = llvm.ptr_type(inkwell::AddressSpace::default());
        let place = field(types, builder, context, offset_of!(HostContext, seen))?;
        let memory = builder.build_load(pointer, place, "seen")?.into_pointer_value();
        let alloca = |ty: BasicTypeEnum<'ctx>, name| builder.build_alloca(ty, name);
        Ok(Self {
            memory,
            near: alloca(pointer.into(), "near")?,
            time: alloca(long.into(), "time")?,
            read: alloca(long.into(), "reader")?,
            write: alloca(long.into(), "writer")?,
            lane: alloca(int.into(), "lane")?,
            quiet: alloca(long.into(), "quiet")?,
            notes,
        })
    }

    /// Loads the values again from the runtime's memory.
    pub(crate) fn reload(&self, emitter: &FunctionEmitter<'_, 'ctx>) -> Result<()> {
        let llvm = emitter.cx.types.context;
        let (int, long) = (llvm.i32_type(), llvm.i64_type());
        let pointer = llvm.ptr_type(inkwell::AddressSpace::default());
        let fields: [(BasicTypeEnum<'ctx>, usize, PointerValue<'ctx>); 6] = [
            (pointer.into(), offset_of!(HostSeen, near), self.near),
            (long.into(), offset_of!(HostSeen, block), self.time),
            (long.into(), offset_of!(HostSeen, chain), self.read),
            (long.into(), offset_of!(HostSeen, chain_too), self.write),
            (int.into(), offset_of!(HostSeen, lane), self.lane),
            (long.into(), offset_of!(HostSeen, unrecorded), self.quiet),
        ];
        for (ty, offset, to) in fields {
            let from = known_offset(emitter, self.memory, offset as u64)?;
            let value = emitter.builder.build_load(ty, from, "")?;
            emitter.builder.build_store(to, value)?;
        }
        Ok(())
    }

    /// Emits the start of a thread's iteration in a work-item loop. Each thread is at its first clock, because only the
    /// barriers of the block order these threads.
    pub(crate) fn set_thread(
        &self,
        emitter: &FunctionEmitter<'_, 'ctx>,
        context: PointerValue<'ctx>,
        thread: IntValue<'ctx>,
    ) -> Result<()> {
        let llvm = emitter.cx.types.context;
        let (int, long) = (llvm.i32_type(), llvm.i64_type());
        let builder = &emitter.builder;
        let shifted = |value, by: u64| builder.build_left_shift(value, int.const_int(by, false), "");
        let warp = builder.build_right_shift(thread, int.const_int(5, false), false, "")?;
        let read = builder.build_or(shifted(warp, 3)?, int.const_int(HostSeen::FIRST_READ.into(), false), "")?;
        let write = builder.build_or(shifted(thread, 3)?, int.const_int(HostSeen::FIRST_WRITE.into(), false), "")?;
        let lane = builder.build_and(thread, int.const_int(31, false), "")?;
        let lane = builder.build_left_shift(int.const_int(1, false), lane, "")?;
        let fields = [
            (offset_of!(HostSeen, read), read),
            (offset_of!(HostSeen, write), write),
            (offset_of!(HostSeen, lane), lane),
        ];
        for (offset, value) in fields {
            builder.build_store(known_offset(emitter, self.memory, offset as u64)?, value)?;
        }
        let number = builder.build_int_z_extend(thread, long, "")?;
        let place = known_offset(emitter, context, offset_of!(HostContext, thread) as u64)?;
        builder.build_store(place, number)?;
        self.reload(emitter)
    }

    /// Loads the bits of the parameters whose arrays' reads are not recorded. For code outside the thread loops.
    pub(crate) fn quiet(&self, emitter: &FunctionEmitter<'_, 'ctx>) -> Result<IntValue<'ctx>> {
        let long = emitter.cx.types.context.i64_type();
        let place = known_offset(emitter, self.memory, offset_of!(HostSeen, unrecorded) as u64)?;
        Ok(emitter.builder.build_load(long, place, "quiet")?.into_int_value())
    }

    /// Whether no value that the thread is copying has unwritten bytes.
    pub(crate) fn copies_nothing(&self, emitter: &FunctionEmitter<'_, 'ctx>) -> Result<IntValue<'ctx>> {
        let int = emitter.cx.types.context.i32_type();
        let place = known_offset(emitter, self.memory, offset_of!(HostSeen, copies) as u64)?;
        let copies = emitter.builder.build_load(int, place, "copies")?.into_int_value();
        Ok(emitter.builder.build_int_compare(IntPredicate::EQ, copies, int.const_zero(), "")?)
    }

    /// Whether the code has work-item loops.
    pub(crate) const fn is_of_loops(&self) -> bool {
        !self.notes
    }

    /// The state's arguments of the functions of [`crate::backend::host::checked::inline_checks`], for a read or a
    /// write.
    pub(crate) fn args(
        &self,
        emitter: &FunctionEmitter<'_, 'ctx>,
        writes: bool,
    ) -> Result<[BasicMetadataValueEnum<'ctx>; 7]> {
        let llvm = emitter.cx.types.context;
        let (int, long) = (llvm.i32_type(), llvm.i64_type());
        let pointer = llvm.ptr_type(inkwell::AddressSpace::default());
        let load = |ty: BasicTypeEnum<'ctx>, from| -> Result<BasicValueEnum<'ctx>> {
            Ok(emitter.builder.build_load(ty, from, "")?)
        };
        // A write is also compared with reads, as a reader; a read takes the parameters without records.
        let (from, other) = if writes { (self.write, self.read) } else { (self.read, self.quiet) };
        Ok([
            self.memory.into(),
            load(pointer.into(), self.near)?.into(),
            load(long.into(), self.time)?.into(),
            load(long.into(), from)?.into(),
            load(long.into(), other)?.into(),
            load(int.into(), self.lane)?.into(),
            llvm.bool_type().const_int(u64::from(self.notes), false).into(),
        ])
    }
}
