//! Host code for special registers, memory spaces and operations of the IR.
//!
//! | IR | host |
//! |---|---|
//! | special registers | values of the thread loops around the current position ([`Frame`]) |
//! | shared and local arrays | offsets into the worker's scratch memory, or `alloca`s |
//! | atomic operations on shared memory | plain loads and stores, because one OS thread runs the block |
//! | atomic operations on global memory | LLVM's atomic instructions, or a loop of compare-and-swap |
//! | barriers, `activemask` | calls that switch fibers; in thread loops the plan has removed them |
//! | loop iterations and calls | polls for cancellation, where [`Polling`] requires them |
//! | accesses in sanitized code | calls that record them first |

use inkwell::{
    AtomicOrdering, FloatPredicate,
    values::{BasicMetadataValueEnum, BasicValue, BasicValueEnum, FloatValue, IntValue, PointerValue},
};
use weft_artifact::{HostContext, Scalar, SiteKind};

use crate::{
    backend::{
        host::{
            checked::calls,
            emit::{clock, clusters, copies, lane_folds, position::known_offset, state::HostHooks},
            fibers,
        },
        llvm::{
            AccessSite, FunctionEmitter, Hooks, OperandValue, Result,
            atomic::{instruction, parts},
            float, int, internal,
        },
    },
    ir::{
        AsyncCopy, AtomicOp, Check, Class, ClusterOp, ExprId, FuncId, Leaf, LoadHint, LocalArrayId, Op, Order, Scope,
        SharedId, Space, SpecialRegister, Stmt, StoreHint, Type,
    },
    source::Span,
};

/// Whether an operation accesses shared memory. One OS thread runs all threads of a block and switches between them
/// only in calls, so no other thread runs between two instructions.
fn points_to_shared(operands: &[OperandValue<'_>]) -> bool {
    matches!(operands.first(), Some(OperandValue { ty: Type::Ptr(_, Space::Shared), .. }))
}

/// The address of an operation's element, and its type.
fn place<'ctx>(operands: &[OperandValue<'ctx>]) -> Result<(PointerValue<'ctx>, Scalar)> {
    match operands.first() {
        Some(OperandValue { ty: Type::Ptr(element, _), value: BasicValueEnum::PointerValue(pointer) }) => {
            Ok((*pointer, *element))
        }
        Some(_) | None => internal("an operation on an element without a pointer"),
    }
}

/// Emits an atomic operation that threads of other blocks observe. Its scope is LLVM's system scope, whose name is
/// empty: all threads belong to one process.
pub(crate) fn step<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    op: AtomicOp,
    order: Order,
    operands: &[OperandValue<'ctx>],
) -> Result<BasicValueEnum<'ctx>> {
    let (_, element, _) = parts(op, operands)?;
    // A 16-bit float is compared and exchanged as its bits.
    let at_once = match op {
        AtomicOp::Cas => element != Scalar::Bool,
        AtomicOp::Exchange => true,
        // The loop of these operations only reads if memory has the extreme value already.
        AtomicOp::Max | AtomicOp::Min | AtomicOp::NanMax | AtomicOp::NanMin => false,
        AtomicOp::Add
        | AtomicOp::Sub
        | AtomicOp::And
        | AtomicOp::Or
        | AtomicOp::Xor
        | AtomicOp::Inc
        | AtomicOp::Dec => !element.is_half() && instruction(op, element).is_some(),
    };
    if at_once {
        return emitter.emit_atomic(op, order, "", operands);
    }
    emitter.fenced(order, "", || emitter.emit_atomic_loop(op, order, "", operands, false))
}

/// Packs bit `bit` of each of 32 bytes into an `i32`.
fn lane_bits<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>, cells: PointerValue<'ctx>, bit: u8) -> Result<IntValue<'ctx>> {
    let (builder, context) = (&emitter.builder, emitter.cx.types.context);
    let bytes = context.i8_type().vec_type(32);
    let states = builder.build_load(bytes, cells, "states")?;
    if let Some(load) = states.as_instruction_value() {
        load.set_alignment(32).or_else(|error| internal(format!("an alignment of 32: {error}")))?;
    }
    let states = states.into_vector_value();
    let wanted = context.i8_type().const_int(1 << bit, false);
    let wanted = inkwell::types::VectorType::const_vector(&[wanted; 32]);
    let set = builder.build_and(states, wanted, "")?;
    let set = builder.build_int_compare(inkwell::IntPredicate::NE, set, bytes.const_zero(), "")?;
    int(builder.build_bit_cast(set, context.i32_type(), "")?)
}

impl<'ctx> HostHooks<'_, 'ctx> {
    /// Waits for all threads of a block, a cluster or the grid.
    fn barrier(&self, emitter: &FunctionEmitter<'_, 'ctx>, of: u32) -> Result<Vec<BasicValueEnum<'ctx>>> {
        let int = emitter.cx.types.context.i32_type();
        let of = int.const_int(of.into(), false);
        fibers::wait(emitter, self.frame.get().context, int.const_all_ones(), of)?;
        Ok(Vec::new())
    }

    /// Emits an operation. In sanitized code, the access has been recorded before.
    fn emit_op(
        &self,
        emitter: &FunctionEmitter<'_, 'ctx>,
        op: Op,
        operands: &[OperandValue<'ctx>],
    ) -> Result<Vec<BasicValueEnum<'ctx>>> {
        match op {
            Op::Check(check) => {
                let Some(instrumentation) = &self.instrumentation else {
                    return internal(format!("a {op} without instrumentation"));
                };
                instrumentation.check(emitter, self.frame.get().context, check, operands)
            }
            Op::Atomic { op, .. } if points_to_shared(operands) => Ok(vec![emitter.emit_unshared(op, operands)?]),
            // LLVM's system scope has an empty name. All threads belong to one process.
            Op::Atomic { op, order, scope: Scope::Block | Scope::Device | Scope::System } => {
                Ok(vec![step(emitter, op, order, operands)?])
            }
            Op::BarrierReduce(_)
            | Op::Shuffle(_)
            | Op::Vote(_)
            | Op::MatchAny
            | Op::MatchAll
            | Op::WarpReduce(_)
            | Op::Multiply(_) => internal(format!("a {op} that was not lowered")),
            Op::MatrixLoad(_) | Op::ProductWait(_) => internal(format!("a {op}, which is a GPU's own")),
            Op::MultiplyCells(product) => {
                let site = self.instrumentation.as_ref().map_or(0, |checked| checked.site(emitter, SiteKind::Read));
                fibers::multiply(emitter, self.frame.get().context, (product, site), operands)?;
                Ok(Vec::new())
            }
            Op::AsyncCopy(copy) => {
                let kind = if copy.has_barrier() && !copy.is_bulk() { SiteKind::Phase } else { SiteKind::Write };
                let site = self.instrumentation.as_ref().map_or(0, |checked| {
                    let reads = if copy.is_bulk() { checked.site(emitter, SiteKind::Read) } else { 0 };
                    u64::from(checked.site(emitter, kind)) | u64::from(reads) << 32
                });
                copies::emit(emitter, &self.frame.get(), (copy, site), operands)
            }
            Op::ActiveMask if !self.stacks => internal(format!("a {op} that was not lowered")),
            Op::ActiveMask => Ok(vec![fibers::lanes_here(emitter, self.frame.get().context, self.site())?.into()]),
            Op::LaneBits(bit) => {
                let Some(OperandValue { value: BasicValueEnum::PointerValue(cells), .. }) = operands.first() else {
                    return internal(format!("a {op} without its cells"));
                };
                Ok(vec![lane_bits(emitter, *cells, bit)?.into()])
            }
            Op::LaneFold(reduction) => Ok(vec![lane_folds::fold(emitter, reduction, place(operands)?)?]),
            Op::OfWarps | Op::WarpRegion(_) => internal(format!("a {op} inside a thread's code")),
            Op::Barrier | Op::WarpBarrier if !self.stacks => internal(format!("a {op} inside a thread loop")),
            Op::GridBarrier | Op::Cluster(_) if !self.stacks => internal(format!("a {op} inside a thread loop")),
            Op::Cluster(ClusterOp::Sync) => Ok(vec![fibers::meet_cluster(emitter, self.frame.get().context)?.into()]),
            Op::Cluster(cluster) => clusters::emit(emitter, &self.frame.get(), cluster, operands),
            Op::GridBarrier => self.barrier(emitter, HostContext::OF_GRID),
            Op::Barrier => self.barrier(emitter, HostContext::OF_BLOCK),
            Op::WarpBarrier => {
                let Some(OperandValue { value: BasicValueEnum::IntValue(mask), .. }) = operands.first() else {
                    return internal("a warp's barrier without a mask");
                };
                let of_warp = u64::from(HostContext::OF_WARP);
                let of_warp = emitter.cx.types.context.i32_type().const_int(of_warp, false);
                fibers::wait(emitter, self.frame.get().context, *mask, of_warp)?;
                Ok(Vec::new())
            }
            Op::Ptx { .. } | Op::External(_) => internal(format!("{op} in a kernel for a CPU")),
            Op::Fault(id) => Ok(vec![fibers::fault(emitter, &self.frame.get(), id, operands)?]),
            Op::FaultCall(place) => {
                fibers::called(emitter, self.frame.get().context, place, operands)?;
                Ok(Vec::new())
            }
            Op::Print(format) => {
                fibers::print(emitter, self.frame.get().context, format, operands)?;
                Ok(Vec::new())
            }
            Op::Clock(clock) => Ok(vec![clock::now(emitter, clock)?.into()]),
            // The host ignores these hints.
            Op::Nanosleep | Op::Breakpoint | Op::SetRegisters { .. } => Ok(Vec::new()),
            Op::Load(hint) => {
                let (pointer, element) = place(operands)?;
                let memory = emitter.cx.types.memory(Type::Scalar(element))?;
                let value = emitter.builder.build_load(memory, pointer, "")?;
                if let (LoadHint::Volatile, Some(load)) = (hint, value.as_instruction_value()) {
                    let set = load.set_atomic_ordering(AtomicOrdering::Monotonic);
                    set.or_else(|error| internal(format!("no atomic load of {element}: {error}")))?;
                }
                Ok(vec![value])
            }
            Op::Store(StoreHint::Back | StoreHint::Global | StoreHint::Streaming | StoreHint::Through) => {
                let (pointer, _) = place(operands)?;
                let Some(OperandValue { value, .. }) = operands.get(1) else { return internal("a store of nothing") };
                emitter.builder.build_store(pointer, *value)?;
                Ok(Vec::new())
            }
            Op::Fence(Scope::Block | Scope::Device | Scope::System) => {
                emitter.builder.build_fence(AtomicOrdering::SequentiallyConsistent, false, "")?;
                Ok(Vec::new())
            }
        }
    }
}

impl<'ctx> Hooks<'ctx> for HostHooks<'_, 'ctx> {
    fn never_written(&self, emitter: &FunctionEmitter<'_, 'ctx>, mut pointer: ExprId) -> bool {
        loop {
            match emitter.function.class(pointer) {
                Class::Address { base, .. } => pointer = base,
                Class::Leaf(Leaf::Local(local)) => match self.fixed.value(local) {
                    Some(value) => pointer = value,
                    None => return emitter.function.locals[local].never_written,
                },
                Class::Leaf(_) | Class::Arith(_) | Class::Load(_) => return false,
            }
        }
    }

    fn special(&self, emitter: &FunctionEmitter<'_, 'ctx>, register: SpecialRegister) -> Result<IntValue<'ctx>> {
        let frame = self.frame.get();
        let builder = &emitter.builder;
        let axis = |values: [IntValue<'ctx>; 3], axis: u8| {
            values.get(usize::from(axis)).copied().map_or_else(|| internal("an axis beyond z"), Ok)
        };
        let int = emitter.cx.types.context.i32_type();
        match register {
            SpecialRegister::ThreadIdx(i) => axis(frame.thread, i),
            SpecialRegister::BlockIdx(i) => axis(frame.block, i),
            SpecialRegister::BlockDim(i) => axis(frame.block_dim, i),
            SpecialRegister::GridDim(i) => axis(frame.grid_dim, i),
            SpecialRegister::LaneId => {
                let [x, y, z] = frame.thread;
                let [dim_x, dim_y, _] = frame.block_dim;
                let rows = builder.build_int_nuw_mul(z, dim_y, "")?;
                let row = builder.build_int_nuw_add(rows, y, "")?;
                let before = builder.build_int_nuw_mul(row, dim_x, "")?;
                let linear = builder.build_int_nuw_add(before, x, "")?;
                Ok(builder.build_and(linear, int.const_int(31, false), "lane")?)
            }
            SpecialRegister::WarpSize => Ok(int.const_int(32, false)),
            SpecialRegister::DynamicSharedBytes => Ok(frame.dynamic_bytes),
            SpecialRegister::OfRow(i) => {
                let value = self.of_row.borrow().get(usize::from(i)).copied();
                value.map_or_else(|| internal("a row without its numbers"), Ok)
            }
        }
    }

    fn shared_base(&self, emitter: &FunctionEmitter<'_, 'ctx>, array: SharedId) -> Result<PointerValue<'ctx>> {
        if let Some(place) = self.cells.borrow().get(array.index()).copied().flatten() {
            return Ok(place);
        }
        let Some(offset) = self.offsets.shared(array) else { return internal("a shared array without an offset") };
        known_offset(emitter, self.frame.get().scratch, offset)
    }

    fn dynamic_shared(&self, emitter: &FunctionEmitter<'_, 'ctx>) -> Result<PointerValue<'ctx>> {
        known_offset(emitter, self.frame.get().scratch, self.offsets.dynamic_offset)
    }

    fn local_base(&self, _emitter: &FunctionEmitter<'_, 'ctx>, array: LocalArrayId) -> Result<PointerValue<'ctx>> {
        let place = self.arrays.borrow().get(array.index()).copied().flatten();
        place.map_or_else(|| internal("a local array without an address"), Ok)
    }

    fn local_stride(&self, array: LocalArrayId) -> u64 {
        self.array_strides.borrow().get(array.index()).copied().unwrap_or(1)
    }

    fn op(
        &self,
        emitter: &FunctionEmitter<'_, 'ctx>,
        op: Op,
        operands: &[OperandValue<'ctx>],
    ) -> Result<Vec<BasicValueEnum<'ctx>>> {
        let mut moved = Vec::new();
        let mut operands = operands;
        if let Some(instrumentation) = &self.instrumentation {
            let context = self.frame.get().context;
            if let Op::Fence(scope) = op {
                calls::fence(emitter, context, scope)?;
            }
            if let Op::AsyncCopy(AsyncCopy::Element { bytes }) = op {
                moved = instrumentation.of_copy(emitter, (context, self.seen.get()), bytes, operands)?;
                operands = &moved;
            } else if let Some(place) = instrumentation.of_op(emitter, (context, self.seen.get()), op, operands)? {
                moved.extend_from_slice(operands);
                moved[0].value = place.into();
                operands = &moved;
            }
        }
        let values = self.emit_op(emitter, op, operands)?;
        // These operations do not change the state that accesses are compared with.
        let stays = matches!(
            op,
            Op::Check(
                Check::Bounds(_) | Check::Meets(_) | Check::Lanes(..) | Check::Returns | Check::Unwritten | Check::Used
            ) | Op::Load(_)
                | Op::Store(_)
        );
        if !stays {
            self.reload(emitter)?;
        }
        Ok(values)
    }

    fn at(&self, span: Span) {
        if let Some(instrumentation) = &self.instrumentation {
            instrumentation.span.set(span);
        }
    }
    fn access(&self, emitter: &FunctionEmitter<'_, 'ctx>, access: &AccessSite<'ctx>) -> Result<PointerValue<'ctx>> {
        match &self.instrumentation {
            Some(instrumentation) => {
                instrumentation.access(emitter, (self.frame.get().context, self.seen.get()), access)
            }
            None => Ok(access.address),
        }
    }

    fn iteration(&self, emitter: &FunctionEmitter<'_, 'ctx>, body: &[Stmt], step: &[Stmt]) -> Result<()> {
        let function = emitter.function;
        if !self.polling.in_loop(function, self.fixed, body, step) {
            return Ok(());
        }
        if self.stacks {
            fibers::turn(emitter, self.frame.get().context, self.polling.waits(function, body, step))?;
            self.reload(emitter)
        } else {
            self.look_up(emitter)
        }
    }

    fn called(&self, emitter: &FunctionEmitter<'_, 'ctx>, callee: FuncId) -> Result<()> {
        self.reload(emitter)?;
        if !self.stacks && self.polling.after_call(callee) { self.look_up(emitter) } else { Ok(()) }
    }

    fn hidden_args(&self, _emitter: &FunctionEmitter<'_, 'ctx>) -> Result<Vec<BasicMetadataValueEnum<'ctx>>> {
        Ok(self.frame.get().values())
    }

    /// On x86-64, the instruction for a minimum is `a < b ? a : b`: it returns `b` if one of them is a NaN, or if both are
    /// zeros. This emits that, with `a | b` for equal operands (`a & b` for a maximum), of which only zeros differ, and
    /// `a` if `b` is a NaN. LLVM 22 makes 10 instructions of `llvm.minimumnum` where this has 6; with AVX-512 it returns
    /// the NaN if the other operand is a scalar that it knows not to be a NaN, such as a converted integer.
    fn float_extreme(
        &self,
        emitter: &FunctionEmitter<'_, 'ctx>,
        largest: bool,
        a: FloatValue<'ctx>,
        b: FloatValue<'ctx>,
    ) -> Result<Option<FloatValue<'ctx>>> {
        if !cfg!(target_arch = "x86_64") {
            return Ok(None);
        }
        let constant = |value: FloatValue<'ctx>| if value.is_undef() { None } else { value.get_constant() };
        let (a, b) = if constant(a).is_some() { (b, a) } else { (a, b) };
        let builder = &emitter.builder;
        let before = if largest { FloatPredicate::OGT } else { FloatPredicate::OLT };
        let is_before = builder.build_float_compare(before, a, b, "")?;
        let extreme = float(builder.build_select(is_before, a, b, "")?)?;
        // The zero that is the result for the other one, and a number without an equal one that differs.
        if constant(b).is_some_and(|(b, _)| if b == 0.0 { b.is_sign_positive() == largest } else { !b.is_nan() }) {
            return Ok(Some(extreme));
        }
        let (ty, context) = (a.get_type(), emitter.cx.types.context);
        let bits = match ty.get_bit_width() {
            16 => context.i16_type(),
            32 => context.i32_type(),
            64 => context.i64_type(),
            other => return internal(format!("a minimum of floats of {other} bits")),
        };
        let [a_bits, b_bits] =
            [a, b].map(|value| builder.build_bit_cast(value, bits, "").map(|bits| bits.into_int_value()));
        let both =
            if largest { builder.build_and(a_bits?, b_bits?, "")? } else { builder.build_or(a_bits?, b_bits?, "")? };
        let both = builder.build_bit_cast(both, ty, "")?;
        let is_equal = builder.build_float_compare(FloatPredicate::OEQ, a, b, "")?;
        let extreme = builder.build_select(is_equal, both, extreme.into(), "")?;
        let b_is_nan = builder.build_float_compare(FloatPredicate::UNO, b, b, "")?;
        Ok(Some(float(builder.build_select(b_is_nan, a.into(), extreme, "")?)?))
    }

    fn emit_return(&self, emitter: &FunctionEmitter<'_, 'ctx>, values: &[BasicValueEnum<'ctx>]) -> Result<()> {
        match (self.return_to.get(), values) {
            (Some(target), _) => emitter.builder.build_unconditional_branch(target)?,
            (None, []) => emitter.builder.build_return(None)?,
            (None, [one]) => emitter.builder.build_return(Some(one))?,
            (None, many) => emitter.builder.build_aggregate_return(many)?,
        };
        Ok(())
    }
}
