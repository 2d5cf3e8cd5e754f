//! The entry of a kernel with thread loops: the parameters, the loop over blocks, and inside it the nodes of the plan.
//!
//! ```text
//! load arguments and launch configuration
//! for block in first..last:       (advances by several blocks where the plan merges neighbors along x)
//!     nodes of the plan
//!     poll for cancellation, if a block may run for long
//! combine privatized accumulators with their arrays
//! ```
//!
//! A warp region of the plan is a function of its own, which runs for one block.
//!
//! A merged block is a block whose rows are as long as those of its parts together. The executor's worker threads run
//! disjoint ranges of blocks.

use inkwell::{
    IntPredicate,
    builder::Builder,
    module::Linkage,
    types::BasicMetadataTypeEnum,
    values::{BasicValueEnum, FunctionValue, IntValue},
};

use crate::{
    backend::{
        host::{
            checked::{calls::Instrumentation, seen::Seen, sites::Recorder},
            emit::{
                access_groups::Parallel,
                frame::Offsets,
                kernel::{Carried, KernelEmitter},
                position::{Frame, array_alloca, fields, frame, place_of, receive},
                state::HostHooks,
                watch::Watch,
            },
            plan::{MAX_ROW, MAX_THREADS, MergedSize, Plan},
        },
        llvm::{FunctionEmitter, ModuleContext, Result, Types, internal},
    },
    ir::{self, LocalId},
};

/// Threads of a merged block whose rows access the lines of memory of the rows before them: as many lines are half of a
/// core's second cache, if it has 1 MiB.
const MAX_TILE: u64 = 8 * MAX_THREADS;

/// Most bytes of the context arrays of a merged block: they are to be in the nearest cache.
const MAX_CONTEXT_BYTES: u64 = 32 * 1024;

/// Threads of a merged block whose context arrays are large: enough for thread loops of several vectors.
const MIN_CONTEXTS: u64 = 128;

/// Declares and fills the entry of a kernel with thread loops: it passes the fields of the context to the function that
/// runs the blocks. That one is a separate function because only a parameter can be `noalias`.
pub(crate) fn declare_outer<'ctx>(
    cx: &ModuleContext<'_, 'ctx>,
    symbol: &str,
    blocks: FunctionValue<'ctx>,
) -> Result<()> {
    let context = cx.types.context;
    let value = cx.module.add_function(
        symbol,
        context.void_type().fn_type(&[cx.types.pointer(ir::Space::Generic).into()], false),
        None,
    );
    cx.attribute(value, "nounwind");
    let builder = context.create_builder();
    builder.position_at_end(context.append_basic_block(value, "entry"));
    let Some(BasicValueEnum::PointerValue(given)) = value.get_nth_param(0) else {
        return internal("the entry has no context");
    };
    let fields = fields(&cx.types, &builder, given)?;
    builder.build_call(
        blocks,
        &[
            fields.slots.into(),
            fields.config.into(),
            fields.first.into(),
            fields.last.into(),
            fields.scratch.into(),
            given.into(),
        ],
        "",
    )?;
    builder.build_return(None)?;
    Ok(())
}

/// Declares the function that runs the blocks: `void(slots, config, first, last, scratch, context)`.
pub(crate) fn declare<'ctx>(cx: &ModuleContext<'_, 'ctx>) -> FunctionValue<'ctx> {
    let long = cx.types.context.i64_type().into();
    declare_with(cx, "weft$blocks", &[long, long])
}

/// Declares the function of a warp region: `void(slots, config, x, y, z, scratch, context)`, where `x`, `y` and `z` are
/// `blockIdx`.
pub(crate) fn declare_region<'ctx>(cx: &ModuleContext<'_, 'ctx>) -> FunctionValue<'ctx> {
    let int = cx.types.context.i32_type().into();
    declare_with(cx, "weft$warps", &[int, int, int])
}

fn declare_with<'ctx>(
    cx: &ModuleContext<'_, 'ctx>,
    name: &str,
    position: &[BasicMetadataTypeEnum<'ctx>],
) -> FunctionValue<'ctx> {
    use inkwell::attributes::{Attribute, AttributeLoc};
    let context = cx.types.context;
    let pointers: &[BasicMetadataTypeEnum<'ctx>] = &[cx.types.pointer(ir::Space::Generic).into(); 2];
    let ty = context.void_type().fn_type(&[pointers, position, pointers].concat(), false);
    let value = cx.module.add_function(name, ty, Some(Linkage::Internal));
    cx.attribute(value, "nounwind");
    cx.attribute(value, "noinline");
    let scratch = 2 + position.len() as u32;
    for index in [0, 1, scratch] {
        for name in ["noalias", "nonnull"] {
            let kind = Attribute::get_named_enum_kind_id(name);
            value.add_attribute(AttributeLoc::Param(index), context.create_enum_attribute(kind, 0));
        }
    }
    let align = Attribute::get_named_enum_kind_id("align");
    for (index, bytes) in [(0, 8), (1, 4), (scratch, 64)] {
        value.add_attribute(AttributeLoc::Param(index), context.create_enum_attribute(align, bytes));
    }
    value
}

/// Annotates the scratch parameter of a function with the bytes that a load may read without a condition.
pub(crate) fn annotate_scratch(
    context: &inkwell::context::Context,
    value: FunctionValue<'_>,
    param: u32,
    offsets: &Offsets,
) {
    use inkwell::attributes::{Attribute, AttributeLoc};
    // Without bytes there is nothing to annotate, and LLVM rejects zero.
    if offsets.dynamic_offset > 0 {
        let kind = Attribute::get_named_enum_kind_id("dereferenceable");
        let attribute = context.create_enum_attribute(kind, offsets.dynamic_offset);
        value.add_attribute(AttributeLoc::Param(param), attribute);
    }
}

/// The values that the function reads first.
struct Start<'ctx> {
    frame: Frame<'ctx>,
    watch: Watch<'ctx>,
    blocks: Blocks<'ctx>,
}

/// The blocks that a function runs.
#[derive(Clone, Copy)]
enum Blocks<'ctx> {
    /// Those from the first number to before the second one.
    Range(IntValue<'ctx>, IntValue<'ctx>),
    /// The block at an index.
    One([IntValue<'ctx>; 3]),
}

/// Fills a function of [`declare`] or [`declare_region`]. `regions` has the functions of the plan's warp regions.
pub(crate) fn emit<'ctx>(
    cx: &ModuleContext<'_, 'ctx>,
    value: FunctionValue<'ctx>,
    plan: &Plan,
    offsets: &Offsets,
    regions: &[FunctionValue<'ctx>],
    (parallel, recorder): (&Parallel<'ctx>, Option<&Recorder<'_>>),
) -> Result<()> {
    let function = &plan.module.functions[plan.kernel];
    // The last parameters are the scratch memory and the context.
    annotate_scratch(cx.types.context, value, value.count_params() - 2, offsets);
    let allocas = cx.types.context.create_builder();
    allocas.position_at_end(cx.types.context.append_basic_block(value, "entry"));
    let body = cx.types.context.append_basic_block(value, "start");
    let builder = cx.types.context.create_builder();
    builder.position_at_end(body);
    let start = read_config(&cx.types, &builder, value)?;
    let mut hooks = HostHooks::new(offsets, start.frame, (&plan.polling, &plan.fixed));
    hooks.watch.set(Some(start.watch));
    hooks.instrumentation = recorder.map(|recorder| Instrumentation::new(recorder, plan.kernel, function.span));
    if recorder.is_some() {
        hooks.seen.set(Some(Seen::declare(&cx.types, &allocas, start.frame.context, false)?));
    }
    let mut emitter = FunctionEmitter::new(cx, function, value, &hooks);
    // The first block of the emitter precedes the loop over blocks.
    let prologue = emitter.current()?;
    builder.build_unconditional_branch(prologue)?;

    let [x, y, z] = start.frame.block_dim;
    let plane = emitter.builder.build_int_nuw_mul(x, y, "")?;
    let threads = emitter.builder.build_int_nuw_mul(plane, z, "threads")?;
    for (id, local) in function.locals.iter() {
        if !plan.varying.get(id.index()).copied().unwrap_or(true) {
            emitter.slots[id.index()] = Some(allocas.build_alloca(cx.types.memory(local.ty)?, &local.name)?);
        }
    }
    let Some(BasicValueEnum::PointerValue(slots)) = value.get_nth_param(0) else {
        return internal("the entry has other parameters");
    };
    receive(&emitter, function, slots)?;
    let block_end = emitter.block("next_block");
    let locals = function.locals.len();
    let int = cx.types.context.i32_type();
    let row_index = [allocas.build_alloca(int, "y")?, allocas.build_alloca(int, "z")?];
    let mut entry = KernelEmitter {
        emitter,
        hooks: &hooks,
        plan,
        offsets,
        parallel,
        allocas,
        own_slots: vec![None; locals],
        enclosing: Vec::new(),
        carried: Carried::default(),
        row_slots: vec![None; locals],
        row_index,
        threads,
        block_end,
        outlines: cx.options.opt && plan.outlines() && recorder.is_none(),
        loops: Vec::new(),
        strip: None,
        replacements: Vec::new(),
        at_boundary: false,
        regions,
    };
    entry.declare_own()?;
    let carried = if plan.warp_blocks { entry.declare_carried(value)? } else { Vec::new() };
    match start.blocks {
        Blocks::Range(first, last) => entry.blocks(start.frame, (first, last), &carried)?,
        Blocks::One(block) => entry.one_block(start.frame, block, &carried)?,
    }
    entry.allocas.build_unconditional_branch(body)?;
    Ok(())
}

/// Reads the launch configuration.
fn read_config<'ctx>(types: &Types<'ctx>, builder: &Builder<'ctx>, value: FunctionValue<'ctx>) -> Result<Start<'ctx>> {
    use BasicValueEnum::{IntValue, PointerValue};
    let params = value.get_params();
    let [_, PointerValue(config), ref position @ .., PointerValue(scratch), PointerValue(context)] = params[..] else {
        return internal("the entry has other parameters");
    };
    let blocks = match *position {
        [IntValue(first), IntValue(last)] => Blocks::Range(first, last),
        [IntValue(x), IntValue(y), IntValue(z)] => Blocks::One([x, y, z]),
        _ => return internal("the entry has other parameters"),
    };
    let frame = frame(types, builder, config, scratch, context)?;
    let watch = Watch::of(types, builder, config)?;
    Ok(Start { frame, watch, blocks })
}

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// Allocates the slots of private locals, and the local arrays that are not live across a barrier.
    pub(crate) fn declare_own(&mut self) -> Result<()> {
        let (cx, function) = (self.emitter.cx, self.emitter.function);
        for (id, local) in function.locals.iter() {
            if self.is_own(id) {
                let place = self.allocas.build_alloca(cx.types.memory(local.ty)?, &local.name)?;
                self.own_slots[id.index()] = Some(place);
            }
        }
        let mut arrays = vec![None; function.local_arrays.len()];
        for (id, array) in function.local_arrays.iter() {
            if self.offsets.array(id).is_none() && !self.plan.lane_arrays.contains(&id) {
                arrays[id.index()] = Some(array_alloca(cx, &self.allocas, array)?);
            }
        }
        *self.hooks.arrays.borrow_mut() = arrays;
        *self.hooks.array_strides.borrow_mut() = vec![1; function.local_arrays.len()];
        Ok(())
    }

    /// Whether a local is private to a thread. Other locals are shared by the block.
    pub(crate) fn is_own(&self, local: LocalId) -> bool {
        self.plan.varying.get(local.index()).copied().unwrap_or(true)
    }

    /// Emits the warps of one block, and the return from the function.
    fn one_block(&mut self, frame: Frame<'ctx>, block: [IntValue<'ctx>; 3], carried: &[Carried<'ctx>]) -> Result<()> {
        self.hooks.frame.set(Frame { block, ..frame });
        self.warps_of_block(carried)?;
        self.emitter.builder.position_at_end(self.block_end);
        self.emitter.builder.build_return(None)?;
        Ok(())
    }

    /// Emits the call of a warp region for the current block.
    pub(crate) fn warp_region(&self, number: u32) -> Result<()> {
        let Some(&region) = self.regions.get(number as usize) else { return internal("a warp region that is unknown") };
        let (Some(slots), Some(config)) = (self.emitter.value.get_nth_param(0), self.emitter.value.get_nth_param(1))
        else {
            return internal("the entry has other parameters");
        };
        let Frame { scratch, context, block: [x, y, z], .. } = self.hooks.frame.get();
        self.emitter.builder.build_call(
            region,
            &[slots.into(), config.into(), x.into(), y.into(), z.into(), scratch.into(), context.into()],
            "",
        )?;
        Ok(())
    }

    /// Emits the loop over blocks `first..last`, and the return from the function.
    fn blocks(
        &mut self,
        frame: Frame<'ctx>,
        (first, last_block): (IntValue<'ctx>, IntValue<'ctx>),
        carried: &[Carried<'ctx>],
    ) -> Result<()> {
        let types = self.emitter.cx.types;
        let (int, long) = (types.context.i32_type(), types.context.i64_type());
        let builder = &self.emitter.builder;
        let [grid_x, grid_y, _] = frame.grid_dim;
        let begin = place_of(&types, builder, first, frame.grid_dim)?;
        let joined = self.most_joined()?;
        self.fill_privatized()?;
        let builder = &self.emitter.builder;
        let prologue = self.emitter.current()?;
        let head = self.emitter.block("block");
        let done = self.emitter.block("done");
        let any = builder.build_int_compare(IntPredicate::ULT, first, last_block, "")?;
        builder.build_conditional_branch(any, head, done)?;
        if !self.plan.privatized.is_empty() {
            // A worker that stops on cancellation still combines its private copies with the arrays.
            self.hooks.stop_to.set(Some(done));
        }

        builder.position_at_end(head);
        let number = builder.build_phi(long, "block")?;
        number.add_incoming(&[(&first, prologue)]);
        let mut phis = Vec::new();
        for (name, begin) in ["blockIdx.x", "blockIdx.y", "blockIdx.z"].into_iter().zip(&begin) {
            let phi = builder.build_phi(int, name)?;
            phi.add_incoming(&[(begin, prologue)]);
            phis.push(phi);
        }
        let block = [0, 1, 2].map(|axis: usize| phis[axis].as_basic_value().into_int_value());
        self.hooks.frame.set(Frame { block, ..self.hooks.frame.get() });
        let one = int.const_int(1, false);
        let width = match joined {
            None => one,
            Some(most) => {
                let left_of_row = builder.build_int_nuw_sub(grid_x, block[0], "")?;
                let left = builder.build_int_nuw_sub(last_block, number.as_basic_value().into_int_value(), "")?;
                let left = self.choose("llvm.umin", left, long.const_int(MAX_ROW, false).into())?;
                let left = self.emitter.builder.build_int_truncate(left, int, "")?;
                let width = self.choose("llvm.umin", left_of_row, left.into())?;
                self.choose("llvm.umin", width, most.into())?
            }
        };
        self.join(width)?;
        match &self.plan.quotients {
            Some(quotients) => self.parts_of_row(quotients)?,
            None if self.plan.warp_blocks => self.warps_of_block(carried)?,
            None if self.plan.row_blocks => self.rows_of_block()?,
            None => self.body()?,
        }

        self.emitter.builder.position_at_end(self.block_end);
        if self.plan.polling.call_is_long(self.plan.kernel) {
            self.hooks.look_up(&self.emitter)?;
        }
        let builder = &self.emitter.builder;
        let last = self.emitter.current()?;
        let wide = builder.build_int_z_extend(width, long, "")?;
        let next = builder.build_int_nuw_add(number.as_basic_value().into_int_value(), wide, "")?;
        let [x, y, z] = block;
        let next_x = builder.build_int_add(x, width, "")?;
        let row_ends = builder.build_int_compare(IntPredicate::EQ, next_x, grid_x, "")?;
        let new_x = builder.build_select(row_ends, int.const_zero(), next_x, "")?;
        let next_y = builder.build_int_add(y, builder.build_int_z_extend(row_ends, int, "")?, "")?;
        let plane_ends = builder.build_int_compare(IntPredicate::EQ, next_y, grid_y, "")?;
        let new_y = builder.build_select(plane_ends, int.const_zero(), next_y, "")?;
        let new_z = builder.build_int_add(z, builder.build_int_z_extend(plane_ends, int, "")?, "")?;
        number.add_incoming(&[(&next, last)]);
        phis[0].add_incoming(&[(&new_x, last)]);
        phis[1].add_incoming(&[(&new_y, last)]);
        phis[2].add_incoming(&[(&new_z, last)]);
        let more = builder.build_int_compare(IntPredicate::ULT, next, last_block, "")?;
        builder.build_conditional_branch(more, head, done)?;
        builder.position_at_end(done);
        self.take_privatized()?;
        self.emitter.builder.build_return(None)?;
        Ok(())
    }

    /// How many neighboring blocks this launch may merge; `None` if the plan does not merge blocks.
    fn most_joined(&self) -> Result<Option<IntValue<'ctx>>> {
        let Some(extents) = self.plan.merge_extents.as_ref().filter(|_| !self.outlines) else { return Ok(None) };
        let builder = &self.emitter.builder;
        let extent = self.hooks.frame.get().block_dim[0];
        let int = extent.get_type();
        let threads = if self.plan.row_blocks { extent } else { self.threads };
        let (limit, of) = match (self.plan.merged_size, self.threads_with_contexts()) {
            (MergedSize::Tile, None) => (MAX_TILE, threads),
            (_, Some(limit)) => (limit, threads),
            (MergedSize::BlockRow, None) => (MAX_THREADS, extent),
            // Each iteration of an interchanged loop accesses a longer contiguous range.
            (MergedSize::LongRow, None) => (MAX_ROW, extent),
        };
        let one = int.const_int(1, false);
        let most = builder.build_int_unsigned_div(int.const_int(limit, false), of, "")?;
        let is_large = builder.build_int_compare(IntPredicate::EQ, most, int.const_zero(), "")?;
        let mut most = builder.build_select(is_large, one, most, "joined")?.into_int_value();
        for &asked in extents {
            let asked = int.const_int(asked.cast_unsigned(), true);
            let holds = builder.build_int_compare(IntPredicate::EQ, extent, asked, "")?;
            most = builder.build_select(holds, most, one, "joined")?.into_int_value();
        }
        Ok(Some(most))
    }

    /// The most threads of a merged block with context arrays or masks, which have one element for each thread of the
    /// largest block; `None` without such arrays.
    fn threads_with_contexts(&self) -> Option<u64> {
        let Plan { live_across, cut, module, kernel, .. } = self.plan;
        let function = &module.functions[*kernel];
        let locals = live_across.locals.iter().map(|&local| function.locals[local].ty.host_bytes());
        let arrays = live_across.arrays.iter().map(|&array| {
            let ir::LocalArray { elem, len, .. } = &function.local_arrays[array];
            len.saturating_mul(elem.size_bytes())
        });
        let bytes = locals.chain(arrays).fold(u64::from(cut.masks), u64::saturating_add);
        (bytes > 0).then(|| (MAX_CONTEXT_BYTES / bytes).clamp(MIN_CONTEXTS, MAX_THREADS))
    }

    /// Makes one block of `width` neighboring blocks along `x`.
    fn join(&mut self, width: IntValue<'ctx>) -> Result<()> {
        let frame = self.hooks.frame.get();
        let [x, y, z] = frame.block_dim;
        let builder = &self.emitter.builder;
        let row = builder.build_int_nuw_mul(x, width, "row")?;
        self.threads = builder.build_int_nuw_mul(builder.build_int_nuw_mul(row, y, "")?, z, "threads")?;
        self.hooks.frame.set(Frame { row, ..frame });
        Ok(())
    }

    /// Emits one block.
    pub(crate) fn body(&mut self) -> Result<()> {
        let plan = self.plan;
        if let Some(alive) = plan.cut.alive {
            self.fill_mask(alive, None, None)?;
        }
        self.nodes(&plan.cut.nodes)?;
        self.emitter.go(self.block_end)
    }
}
