//! Versioning of sanitized parallel regions: a version of a [`Segment`] in which race-free reads have no checks.
//!
//! Reads of a shared array that no thread writes between two barriers cannot race, nor can reads of an array that the
//! kernel only reads. They need no check if all bytes of the arrays are written. This condition is uniform, so the
//! block tests it once before the thread loop and selects a version. In the other version, a read of such a shared
//! array only tests whether its own bytes are written.
//!
//! ```text
//! if all bytes of the arrays are written:
//!     thread loop, race-free reads without checks
//! else:
//!     thread loop, race-free reads of shared memory test their own bytes
//! ```

use std::mem::offset_of;

use inkwell::{
    IntPredicate,
    types::BasicTypeEnum,
    values::{BasicValueEnum, IntValue, PointerValue},
};
use weft_artifact::{ArgType, HostChecks, HostSeen};

use crate::{
    backend::{
        host::{
            checked::{
                calls::{Instrumentation, Settled, Told},
                inline_checks,
                seen::Seen,
            },
            emit::{kernel::KernelEmitter, position::known_offset},
            plan::Segment,
        },
        llvm::{FunctionEmitter, Result, internal},
    },
    ir::{Base, Class, ExprId, Function, Type, for_each_expr_of_block},
};

impl<'ctx> Seen<'ctx> {
    /// Whether all bytes of a read of shared memory are written. If it is out of bounds, the result is arbitrary.
    fn is_written(
        &self,
        emitter: &FunctionEmitter<'_, 'ctx>,
        told: &Told<'ctx>,
        is_within: IntValue<'ctx>,
    ) -> Result<IntValue<'ctx>> {
        let llvm = emitter.cx.types.context;
        let (builder, long) = (&emitter.builder, llvm.i64_type());
        let pointer = llvm.ptr_type(inkwell::AddressSpace::default());
        let load = |ty: BasicTypeEnum<'ctx>, offset: usize| -> Result<BasicValueEnum<'ctx>> {
            Ok(builder.build_load(ty, known_offset(emitter, self.memory, offset as u64)?, "")?)
        };
        let bits = load(pointer.into(), offset_of!(HostSeen, bits))?;
        let scratch = load(long.into(), offset_of!(HostSeen, scratch))?.into_int_value();
        let page = builder.build_and(scratch, long.const_int(!(inline_checks::PAGE - 1), false), "")?;
        let address = builder.build_ptr_to_int(told.place, long, "")?;
        let byte = builder.build_int_sub(address, page, "")?;
        let byte = builder.build_select(is_within, byte, long.const_zero(), "")?.into_int_value();
        let shift = llvm.i32_type().const_int(u64::from(told.bytes().trailing_zeros()), false);
        let call =
            builder.build_call(inline_checks::clear(emitter)?, &[bits.into(), byte.into(), shift.into()], "written")?;
        match call.try_as_basic_value().basic() {
            Some(BasicValueEnum::IntValue(written)) => Ok(written),
            _ => internal("it is not said what is written"),
        }
    }
}

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// Emits a segment of sanitized code, in two versions if it has race-free reads.
    pub(crate) fn checked_segment(&mut self, segment: &Segment) -> Result<()> {
        let Some(all) = self.settles(segment)? else { return self.rows(segment) };
        let (quick, slow, end) =
            (self.emitter.block("settled"), self.emitter.block("open"), self.emitter.block("segment_end"));
        self.emitter.builder.build_conditional_branch(all, quick, slow)?;
        let Some(instrumentation) = &self.hooks.instrumentation else {
            return internal("sanitized code without instrumentation");
        };
        let arrays = segment.race_free.clone();
        instrumentation.settled.replace(Some(Settled { arrays: arrays.clone(), all: true }));
        self.emitter.builder.position_at_end(quick);
        self.rows(segment)?;
        self.emitter.go(end)?;
        instrumentation.settled.replace(Some(Settled { arrays, all: false }));
        self.emitter.builder.position_at_end(slow);
        self.rows(segment)?;
        self.emitter.go(end)?;
        instrumentation.settled.replace(None);
        self.emitter.builder.position_at_end(end);
        Ok(())
    }

    /// The condition under which no race-free read of the segment needs a check; `None` if there is no such read.
    fn settles(&self, segment: &Segment) -> Result<Option<IntValue<'ctx>>> {
        let (Some(instrumentation), Some(seen)) = (&self.hooks.instrumentation, self.hooks.seen.get()) else {
            return Ok(None);
        };
        let llvm = self.emitter.cx.types.context;
        let (builder, long) = (&self.emitter.builder, llvm.i64_type());
        let function = self.emitter.function;
        let mut parameters = 0_u64;
        for_each_expr_of_block(function, &segment.body, &mut |id| {
            if let Class::Load(pointer) = function.class(id) {
                parameters |= instrumentation.settled_parameter(function, pointer);
            }
        });
        let mut all: Option<IntValue<'ctx>> = None;
        let mut also = |cond: IntValue<'ctx>| -> Result<()> {
            all = Some(match all {
                Some(before) => builder.build_and(before, cond, "")?,
                None => cond,
            });
            Ok(())
        };
        if parameters != 0 {
            let wanted = long.const_int(parameters, false);
            let quiet = builder.build_and(seen.quiet(&self.emitter)?, wanted, "")?;
            also(builder.build_int_compare(IntPredicate::EQ, quiet, wanted, "quiet")?)?;
        }
        if !segment.race_free.is_empty() {
            let pointer = llvm.ptr_type(inkwell::AddressSpace::default());
            let place = known_offset(&self.emitter, seen.memory, offset_of!(HostSeen, bits) as u64)?;
            let bits = builder.build_load(pointer, place, "bits")?;
            let scratch = builder.build_ptr_to_int(self.hooks.frame.get().scratch, long, "")?;
            let in_page = builder.build_and(scratch, long.const_int(inline_checks::PAGE - 1, false), "")?;
            for &array in &segment.race_free {
                let Some(offset) = self.offsets.shared(array) else {
                    return internal("a shared array without an offset");
                };
                let shared = &self.emitter.cx.ir.shared[array];
                let bytes = shared.len.saturating_mul(shared.elem.size_bytes());
                let from = builder.build_int_add(in_page, long.const_int(offset, false), "")?;
                let to = builder.build_int_add(from, long.const_int(bytes, false), "")?;
                let written = inline_checks::written(&self.emitter)?;
                let call = builder.build_call(written, &[bits.into(), from.into(), to.into()], "written")?;
                match call.try_as_basic_value().basic() {
                    Some(BasicValueEnum::IntValue(written)) => also(written)?,
                    _ => return internal("it is not said what is written"),
                }
            }
        }
        Ok(all)
    }
}

impl<'ctx> Instrumentation<'_> {
    /// The bit of the parameter to whose array a load's pointer points, if a launch may decide that no reads of the
    /// array are recorded, at any address; otherwise 0.
    pub(crate) fn settled_parameter(&self, function: &Function, pointer: ExprId) -> u64 {
        let bit = self.recorder.parameter(self.function, function, pointer);
        let Type::Ptr(element, _) = function.exprs[pointer].ty else { return 0 };
        let bytes = element.size_bytes();
        let known = (bit != 0).then(|| self.recorder.module.params.get(bit.trailing_zeros() as usize)).flatten();
        match known.map(|param| &param.ty) {
            // The size of the access divides that of an element, so an access at an element is within the array.
            Some(ArgType::Array(array)) if matches!(bytes, 1 | 2 | 4 | 8) && array.dtype.size_bytes() % bytes == 0 => {
                bit
            }
            Some(_) | None => 0,
        }
    }

    /// The condition under which a read needs no check; `None` if it always needs one.
    pub(crate) fn settled(
        &self,
        emitter: &FunctionEmitter<'_, 'ctx>,
        told: &Told<'ctx>,
        seen: Option<Seen<'ctx>>,
    ) -> Result<Option<IntValue<'ctx>>> {
        let settled = self.settled.borrow();
        let (Some(Settled { arrays, all }), Some(pointer), Some(seen)) = (&*settled, told.loads, seen) else {
            return Ok(None);
        };
        let function = emitter.function;
        let is_settled = match self.recorder.pointers.declared(function, pointer) {
            Some(Base::Shared(array)) => arrays.contains(&array),
            Some(Base::Const(_) | Base::Dynamic | Base::Local(_)) => false,
            None => *all && self.settled_parameter(function, pointer) != 0,
        };
        if !is_settled || !told.bytes().is_power_of_two() {
            return Ok(None);
        }
        let mut is_settled = match self.recorder.pointers.within(function, pointer) {
            Some(cond) => emitter.emit_int(cond)?,
            // An index out of the bounds of the array or of a view of it gives an address near `HostChecks::NOWHERE`.
            None => {
                let (builder, long) = (&emitter.builder, emitter.cx.types.context.i64_type());
                let address = builder.build_ptr_to_int(told.place, long, "")?;
                let nowhere = long.const_int(HostChecks::NOWHERE >> 1, false);
                builder.build_int_compare(IntPredicate::ULT, address, nowhere, "")?
            }
        };
        if !all {
            let is_written = seen.is_written(emitter, told, is_settled)?;
            is_settled = emitter.builder.build_and(is_settled, is_written, "")?;
        }
        if told.copy != 0 && told.copy != HostChecks::FOLLOWED {
            is_settled = emitter.builder.build_and(is_settled, seen.copies_nothing(emitter)?, "")?;
        }
        Ok(Some(is_settled))
    }

    /// Emits the check of a read, which calls the runtime only if the condition is false. Returns the address to
    /// access.
    pub(crate) fn settled_read(
        emitter: &FunctionEmitter<'_, 'ctx>,
        context: PointerValue<'ctx>,
        (told, site): (&Told<'ctx>, u32),
        is_settled: IntValue<'ctx>,
    ) -> Result<PointerValue<'ctx>> {
        let builder = &emitter.builder;
        let (ask, go_on) = (emitter.block("ask"), emitter.block("go_on"));
        let before = emitter.current()?;
        builder.build_conditional_branch(is_settled, go_on, ask)?;
        builder.position_at_end(ask);
        let place = Self::ask(emitter, context, (told, site))?;
        let asked = emitter.current()?;
        builder.build_unconditional_branch(go_on)?;
        builder.position_at_end(go_on);
        let phi = builder.build_phi(told.place.get_type(), "place")?;
        phi.add_incoming(&[(&told.place, before), (&place, asked)]);
        Ok(phi.as_basic_value().into_pointer_value())
    }
}
