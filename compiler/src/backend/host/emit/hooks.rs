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

#![expect(unsafe_code, reason = "inkwell's getelementptr is unsafe")]

use std::cell::{Cell, RefCell};

use inkwell::{
    AtomicOrdering, FloatPredicate,
    basic_block::BasicBlock,
    types::BasicTypeEnum,
    values::{AsValueRef, BasicMetadataValueEnum, BasicValue, BasicValueEnum, FloatValue, IntValue, PointerValue},
};
use weft_artifact::{HostContext, Scalar};

use crate::{
    analysis::Rematerializable,
    backend::{
        host::{
            checked::{
                calls::{self, Instrumentation},
                seen::Seen,
            },
            emit::{clock, frame::Offsets, stop::Watch},
            fibers,
            plan::Polling,
        },
        llvm::{
            AccessSite, FunctionEmitter, Hooks, OperandValue, Result, Types,
            atomic::{instruction, parts},
            float, int, internal,
        },
    },
    ir::{
        AtomicOp, Check, Class, ExprId, FuncId, Leaf, LoadHint, LocalArrayId, Op, Order, Scope, SharedId, Space,
        SpecialRegister, Stmt, StoreHint, Type,
    },
    source::Span,
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
    pub(crate) fn received(function: inkwell::values::FunctionValue<'ctx>) -> Result<(Self, usize)> {
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

/// The hooks of one function of the host.
pub(crate) struct HostHooks<'a, 'ctx> {
    offsets: &'a Offsets,
    /// The current thread.
    pub frame: Cell<Frame<'ctx>>,
    /// Values of [`SpecialRegister::OfRow`]: the index, quotients and remainders of the first thread in a part of a
    /// row. Where a warp is a block: the warp's coordinates in its block, and the number of warps in a row.
    pub of_row: RefCell<Vec<IntValue<'ctx>>>,
    /// Addresses of the cell arrays on the stack, by the shared array's index, where a warp is a block.
    pub cells: RefCell<Vec<Option<PointerValue<'ctx>>>>,
    /// Addresses of the current thread's local arrays, by index.
    pub arrays: RefCell<Vec<Option<PointerValue<'ctx>>>>,
    /// Target of a kernel's `return`. A device function returns to its caller.
    pub return_to: Cell<Option<BasicBlock<'ctx>>>,
    /// Records accesses for the sanitizer, in sanitized code.
    pub instrumentation: Option<Instrumentation<'a>>,
    /// The sanitizer's state that accesses are compared with, in sanitized code.
    pub seen: Cell<Option<Seen<'ctx>>>,
    /// Each thread has a stack of its own: it runs on a fiber.
    pub stacks: bool,
    /// The loops and calls at which threads poll.
    pub polling: &'a Polling,
    /// The function's rematerializable locals.
    pub fixed: &'a Rematerializable,
    /// The cancellation flag that thread loops poll.
    pub watch: Cell<Option<Watch<'ctx>>>,
    /// Target of a poll that finds the launch cancelled.
    pub stop_to: Cell<Option<BasicBlock<'ctx>>>,
    /// Number of the next `activemask` site.
    pub next_site: Cell<u32>,
}

impl<'a, 'ctx> HostHooks<'a, 'ctx> {
    /// Hooks with an initial frame.
    pub(crate) fn new(
        offsets: &'a Offsets,
        frame: Frame<'ctx>,
        (polling, fixed): (&'a Polling, &'a Rematerializable),
    ) -> Self {
        Self {
            offsets,
            frame: Cell::new(frame),
            of_row: RefCell::default(),
            cells: RefCell::default(),
            arrays: RefCell::default(),
            return_to: Cell::new(None),
            instrumentation: None,
            seen: Cell::new(None),
            stacks: false,
            polling,
            fixed,
            watch: Cell::new(None),
            stop_to: Cell::new(None),
            next_site: Cell::new(0),
        }
    }

    /// Reloads the state that accesses are compared with, in sanitized code. The preceding operation may have changed
    /// it.
    pub(crate) fn reload(&self, emitter: &FunctionEmitter<'_, 'ctx>) -> Result<()> {
        self.seen.get().map_or(Ok(()), |seen| seen.reload(emitter))
    }

    /// Number of a function's first `activemask` site. Numbers are unique in a module.
    pub(crate) fn first_site(function: FuncId) -> u32 {
        (function.index() as u32) << 16
    }

    /// Returns a new site number.
    fn site(&self) -> u32 {
        let site = self.next_site.get();
        self.next_site.set(site + 1);
        site
    }
}

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

impl<'ctx> HostHooks<'_, 'ctx> {
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
            Op::BarrierReduce(_) | Op::Shuffle(_) | Op::Vote(_) | Op::MatchAny | Op::MatchAll | Op::WarpReduce(_) => {
                internal(format!("a {op} that was not lowered"))
            }
            Op::ActiveMask if !self.stacks => internal(format!("a {op} that was not lowered")),
            Op::ActiveMask => Ok(vec![fibers::lanes_here(emitter, self.frame.get().context, self.site())?.into()]),
            Op::LaneBits(bit) => {
                let Some(OperandValue { value: BasicValueEnum::PointerValue(cells), .. }) = operands.first() else {
                    return internal(format!("a {op} without its cells"));
                };
                Ok(vec![lane_bits(emitter, *cells, bit)?.into()])
            }
            Op::OfWarps | Op::WarpRegion(_) => internal(format!("a {op} inside a thread's code")),
            Op::Barrier | Op::WarpBarrier if !self.stacks => internal(format!("a {op} inside a thread loop")),
            Op::GridBarrier => {
                if !self.stacks {
                    return internal(format!("a {op} inside a thread loop"));
                }
                let int = emitter.cx.types.context.i32_type();
                let of_grid = int.const_int(u64::from(HostContext::OF_GRID), false);
                fibers::wait(emitter, self.frame.get().context, int.const_all_ones(), of_grid)?;
                Ok(Vec::new())
            }
            Op::Barrier => {
                let int = emitter.cx.types.context.i32_type();
                let of_block = int.const_int(u64::from(HostContext::OF_BLOCK), false);
                fibers::wait(emitter, self.frame.get().context, int.const_all_ones(), of_block)?;
                Ok(Vec::new())
            }
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
            Op::Nanosleep | Op::Breakpoint => Ok(Vec::new()),
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
            if let Some(place) = instrumentation.of_op(emitter, (context, self.seen.get()), op, operands)? {
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

    /// On x86-64 with AVX-512, LLVM 22 returns the NaN for `llvm.maximumnum` of a NaN and a scalar that it knows not to
    /// be a NaN, such as a converted integer. So on every x86-64 machine this emits `llvm.maximum`, which returns a NaN
    /// if either operand is one, and then selects the operand that is not a NaN.
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
        let builder = &emitter.builder;
        let name = if largest { "llvm.maximum" } else { "llvm.minimum" };
        let extreme = emitter.call_intrinsic(name, &[a.into(), b.into()])?;
        let b_is_nan = builder.build_float_compare(FloatPredicate::UNO, b, b, "")?;
        let without_b = builder.build_select(b_is_nan, a.into(), extreme, "")?;
        let a_is_nan = builder.build_float_compare(FloatPredicate::UNO, a, a, "")?;
        Ok(Some(float(builder.build_select(a_is_nan, b.into(), without_b, "")?)?))
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
