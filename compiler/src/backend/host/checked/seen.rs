//! What sanitized code compares its accesses with, in registers: the runtime's memory has it, too.
//!
//! It is read where a function begins and where something may have changed it, and not at each access, of which LLVM does not
//! know that none does. Where threads are loops, all of a block have one [`HostSeen`], in which each says who it is when it goes
//! on: the runtime knows the rest.

use std::mem::offset_of;

use inkwell::{
    IntPredicate,
    builder::Builder,
    types::BasicTypeEnum,
    values::{BasicMetadataValueEnum, BasicValueEnum, IntValue, PointerValue},
};
use weft_artifact::{HostContext, HostSeen};

use crate::backend::{
    host::{emit::hooks::known_offset, fibers::field},
    llvm::{FunctionEmitter, Result, Types},
};

/// The places of the values, which LLVM makes registers of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'ctx> {
    /// The runtime's.
    pub(crate) memory: PointerValue<'ctx>,
    /// The pages that are found at once.
    near: PointerValue<'ctx>,
    /// The block and its epoch.
    time: PointerValue<'ctx>,
    /// The calls that led here, and who reads.
    read: PointerValue<'ctx>,
    /// The calls that led here, and who writes.
    write: PointerValue<'ctx>,
    /// The bit of the lane.
    lane: PointerValue<'ctx>,
    /// The parameters of whose arrays nothing is to be remembered.
    quiet: PointerValue<'ctx>,
    /// The thread's last access is kept.
    notes: bool,
}

impl<'ctx> Seen<'ctx> {
    /// Makes the places at a position in the first block of a function; `notes` where threads have stacks.
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

    /// Reads what may have changed.
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

    /// From here on another thread of the block runs, whose threads are loops. Each has the first clock: they wait for nobody.
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

    /// The parameters of whose arrays nothing is to be remembered, before a thread of the block has begun.
    pub(crate) fn quiet(&self, emitter: &FunctionEmitter<'_, 'ctx>) -> Result<IntValue<'ctx>> {
        let long = emitter.cx.types.context.i64_type();
        let place = known_offset(emitter, self.memory, offset_of!(HostSeen, unrecorded) as u64)?;
        Ok(emitter.builder.build_load(long, place, "quiet")?.into_int_value())
    }

    /// Whether a thread's values on their way from one place to another are all written.
    pub(crate) fn copies_nothing(&self, emitter: &FunctionEmitter<'_, 'ctx>) -> Result<IntValue<'ctx>> {
        let int = emitter.cx.types.context.i32_type();
        let place = known_offset(emitter, self.memory, offset_of!(HostSeen, copies) as u64)?;
        let copies = emitter.builder.build_load(int, place, "copies")?.into_int_value();
        Ok(emitter.builder.build_int_compare(IntPredicate::EQ, copies, int.const_zero(), "")?)
    }

    /// Whether threads are loops.
    pub(crate) const fn is_of_loops(&self) -> bool {
        !self.notes
    }

    /// What [`crate::backend::host::checked::inline_checks`]'s functions take of it: of a read or of a write.
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
        // A write also compares itself with reads, a read with parameters.
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
