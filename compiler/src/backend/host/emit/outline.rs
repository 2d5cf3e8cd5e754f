//! Outlining: each parallel region of a large kernel becomes a function.
//!
//! For each loop, LLVM's passes inspect all code that precedes it in the function, so compile time grows faster than
//! the number of thread loops. Regions share only scratch memory and uniform locals, which the function gets as
//! arguments. It pays for kernels with more than [`MAX_SEGMENTS`](crate::backend::host::plan::MAX_SEGMENTS) regions.

use std::collections::BTreeSet;

use inkwell::{
    attributes::{Attribute, AttributeLoc},
    module::Linkage,
    types::{BasicMetadataTypeEnum, BasicTypeEnum},
    values::BasicMetadataValueEnum,
};

use crate::{
    analysis::{for_each_mention, for_each_read},
    backend::{
        host::{
            emit::{
                entry::annotate_scratch,
                kernel::{Carried, KernelEmitter},
                position::{Frame, fields},
                state::HostHooks,
                watch::Watch,
            },
            plan::{Guard, Segment, Split},
        },
        llvm::{FunctionEmitter, Result, internal},
    },
    ir::{ExprId, LocalId},
};

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// Emits a region as a function, and the call of it.
    pub(crate) fn outlined(&mut self, segment: &Segment) -> Result<()> {
        let cx = self.emitter.cx;
        let function = self.emitter.function;
        let frame = self.hooks.frame.get();
        // Outside of thread loops, the thread index is not defined: the frame must not pass the one of the last loop.
        let frame = Frame { thread: [cx.types.context.i32_type().const_zero(); 3], ..frame };
        let mut types = Frame::types(&cx.types);
        let mut args: Vec<BasicMetadataValueEnum<'ctx>> = frame.values();
        let hidden = types.len();
        let shared = self.shared_by(segment);
        for &local in &shared {
            let ty = cx.types.memory(function.locals[local].ty)?;
            let place = self.emitter.slot(local)?;
            args.push(self.emitter.builder.build_load(ty, place, "")?.into());
            types.push(ty);
        }
        let params: Vec<BasicMetadataTypeEnum<'ctx>> =
            types.iter().map(|&ty: &BasicTypeEnum<'ctx>| ty.into()).collect();
        let ty = cx.types.context.void_type().fn_type(&params, false);
        let value = cx.module.add_function("weft$segment", ty, Some(Linkage::Internal));
        for name in ["nounwind", "noinline"] {
            cx.attribute(value, name);
        }
        let (noalias, scratch) = (Attribute::get_named_enum_kind_id("noalias"), Frame::SCRATCH);
        value.add_attribute(AttributeLoc::Param(scratch), cx.types.context.create_enum_attribute(noalias, 0));
        let align = Attribute::get_named_enum_kind_id("align");
        value.add_attribute(AttributeLoc::Param(scratch), cx.types.context.create_enum_attribute(align, 64));
        annotate_scratch(cx.types.context, value, scratch, self.offsets);
        self.emitter.builder.build_call(value, &args, "")?;
        if self.goes_on_for_long(segment) {
            self.hooks.look_up(&self.emitter)?;
        }

        let allocas = cx.types.context.create_builder();
        allocas.position_at_end(cx.types.context.append_basic_block(value, "entry"));
        let (frame, _) = Frame::received(value)?;
        let hooks = HostHooks::new(self.offsets, frame, (&self.plan.polling, &self.plan.fixed));
        let config = fields(&cx.types, &allocas, frame.context)?.config;
        hooks.watch.set(Some(Watch::of(&cx.types, &allocas, config)?));
        let mut emitter = FunctionEmitter::new(cx, function, value, &hooks);
        let body = emitter.current()?;
        for (index, &local) in shared.iter().enumerate() {
            let Some(param) = value.get_nth_param((hidden + index) as u32) else {
                return internal("a segment with too few parameters");
            };
            let info = &function.locals[local];
            let place = allocas.build_alloca(cx.types.memory(info.ty)?, &info.name)?;
            emitter.builder.build_store(place, param)?;
            emitter.slots[local.index()] = Some(place);
        }
        let [x, y, z] = frame.block_dim;
        let plane = emitter.builder.build_int_nuw_mul(x, y, "")?;
        let threads = emitter.builder.build_int_nuw_mul(plane, z, "threads")?;
        let int = cx.types.context.i32_type();
        let row_index = [allocas.build_alloca(int, "y")?, allocas.build_alloca(int, "z")?];
        let block_end = emitter.block("end");
        let mut inner = KernelEmitter {
            emitter,
            hooks: &hooks,
            plan: self.plan,
            offsets: self.offsets,
            parallel: self.parallel,
            allocas,
            own_slots: vec![None; function.locals.len()],
            enclosing: Vec::new(),
            carried: Carried::default(),
            row_slots: vec![None; function.locals.len()],
            row_index,
            threads,
            block_end,
            outlines: false,
            loops: Vec::new(),
            strip: None,
            replacements: Vec::new(),
            at_boundary: false,
            regions: &[],
        };
        inner.emitter.in_step = self.emitter.in_step;
        inner.declare_own()?;
        inner.segment(segment)?;
        inner.emitter.go(block_end)?;
        inner.emitter.builder.position_at_end(block_end);
        inner.emitter.builder.build_return(None)?;
        inner.allocas.build_unconditional_branch(body)?;
        Ok(())
    }

    /// The uniform locals that a region reads. Its threads assign none of them.
    fn shared_by(&self, segment: &Segment) -> Vec<LocalId> {
        let function = self.emitter.function;
        let mut shared = BTreeSet::new();
        let mut note = |local: LocalId| {
            if !self.is_own(local) {
                shared.insert(local);
            }
        };
        for_each_mention(function, &segment.body, &mut note);
        let mut roots: Vec<ExprId> = Vec::new();
        let guards = segment.guard.iter().chain(segment.split.iter().flat_map(Split::guards));
        for Guard { recompute, rows, ranges } in guards {
            roots.extend(recompute.iter().filter_map(|&local| self.plan.fixed.value(local)));
            roots.extend(rows.iter().map(|&(cond, _)| cond));
            roots.extend(ranges.iter().flat_map(|range| [range.value, range.bound]));
        }
        roots.extend(segment.shape.iter().flat_map(|shape| [shape.width, shape.rows]));
        roots.extend(segment.recompute.iter().filter_map(|&local| self.plan.fixed.value(local)));
        for ahead in &segment.stride_prefetches {
            roots.extend([ahead.pointer, ahead.step]);
            roots.extend(ahead.before.iter().map(|&(_, value)| value));
        }
        for root in roots {
            for_each_read(function, root, &mut note);
        }
        shared.into_iter().collect()
    }
}
