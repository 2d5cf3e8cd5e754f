//! Special registers, shared and local memory, and operations of PTX.

use std::cell::RefCell;

use inkwell::{
    AddressSpace,
    module::Linkage,
    types::BasicTypeEnum,
    values::{BasicValueEnum, GlobalValue, IntValue, PointerValue},
};

use super::{
    SPACES, approximate, atomics, bytes, clusters,
    copies::{self, CopyTarget},
    divide, export, external, fault, grid, hints, inline, matrix, print, proxy,
    reconverge::{gather, mask_of},
    waits::{FunctionWaits, Waits},
    warps,
};
use crate::{
    backend::{
        llvm::{Division, FunctionEmitter, Hooks, ModuleContext, OperandValue, Result, atomic::WORD, internal, leave},
        symbol,
    },
    ir::{
        Circles, Clock, ExprId, FuncId, FunctionKind, LocalArrayId, MathFn, Op, Reduction, SharedId, SpecialRegister,
        Stmt, Type,
    },
};

/// The symbol of dynamic shared memory. Because of the `$` it cannot be a function's name.
const DYNAMIC_SHARED: &str = "weft$dynamic_shared";

/// The target hooks, with the module's declarations besides functions.
pub(super) struct NvptxHooks<'ctx> {
    shared: Vec<GlobalValue<'ctx>>,
    dynamic: Option<GlobalValue<'ctx>>,
    /// Whether the lanes of a warp must be reconverged before operations that require convergence.
    gathers: bool,
    /// The module's loops in which threads wait for others.
    waits: Waits,
    /// The loads on which the waits of the current function depend.
    waited: RefCell<FunctionWaits>,
    /// Whether the async proxy must see what the threads write to shared memory before they synchronize.
    fences_proxy: bool,
    /// What the PTX of asynchronous copies depends on.
    copies: CopyTarget,
    /// The number of the SM.
    sm: u32,
    /// The PTX ISA.
    isa: (u32, u32),
    /// The local arrays of the current function, in its entry block.
    local_arrays: RefCell<Vec<PointerValue<'ctx>>>,
}

impl<'ctx> NvptxHooks<'ctx> {
    /// Declares the module's shared memory.
    pub(super) fn new(cx: &ModuleContext<'_, 'ctx>, (sm, isa): (u32, (u32, u32))) -> Result<Self> {
        let space = Some(AddressSpace::from(SPACES.shared));
        let mut shared = Vec::new();
        for (id, array) in cx.ir.shared.iter() {
            let element = cx.types.memory(Type::Scalar(array.elem))?;
            // Whole words, because atomic operations swap words.
            let in_word = WORD.div_ceil(array.elem.size_bytes());
            let Ok(len) = u32::try_from(array.len.next_multiple_of(in_word)) else {
                return internal("a shared array beyond 4 GiB");
            };
            let ty = match element {
                BasicTypeEnum::FloatType(float) => float.array_type(len),
                BasicTypeEnum::IntType(int) => int.array_type(len),
                other @ (BasicTypeEnum::ArrayType(_)
                | BasicTypeEnum::PointerType(_)
                | BasicTypeEnum::StructType(_)
                | BasicTypeEnum::VectorType(_)
                | BasicTypeEnum::ScalableVectorType(_)) => return internal(format!("a shared array of {other}")),
            };
            let name = format!("{}$shared{}", symbol(&array.name), id.index());
            let global = cx.module.add_global(ty, space, &name);
            global.set_linkage(Linkage::Internal);
            global.set_initializer(&ty.get_undef());
            global.set_alignment(array.align.max(WORD) as u32);
            shared.push(global);
        }
        let dynamic = cx.ir.dynamic_shared.then(|| {
            let global = cx.module.add_global(cx.types.context.i8_type().array_type(0), space, DYNAMIC_SHARED);
            global.set_linkage(Linkage::External);
            global.set_alignment(cx.ir.dynamic_shared_align.max(WORD) as u32);
            global
        });
        let gathers = !Circles::of(cx.ir).is_empty();
        let waits = Waits::of(cx.ir, sm);
        let fences_proxy = proxy::needs_fences(cx.ir);
        Ok(Self {
            shared,
            dynamic,
            gathers,
            fences_proxy,
            copies: CopyTarget::of(cx.ir, sm),
            waits,
            waited: RefCell::default(),
            sm,
            isa,
            local_arrays: RefCell::default(),
        })
    }

    /// Begins a function at the current position, which is in its entry block.
    pub(super) fn enter(&self, emitter: &FunctionEmitter<'_, 'ctx>, func: FuncId) -> Result<()> {
        self.declare_local_arrays(emitter)?;
        *self.waited.borrow_mut() = self.waits.of_function(emitter.function);
        self.waits.enter(emitter, func)
    }

    /// Allocates the function's local arrays.
    fn declare_local_arrays(&self, emitter: &FunctionEmitter<'_, 'ctx>) -> Result<()> {
        let mut arrays = Vec::new();
        for (_, array) in emitter.function.local_arrays.iter() {
            let element = emitter.cx.types.memory(Type::Scalar(array.elem))?;
            let len = emitter.cx.types.context.i64_type().const_int(array.len, false);
            let place = emitter.builder.build_array_alloca(element, len, &array.name)?;
            if let Some(alloca) = place.as_instruction() {
                let set = alloca.set_alignment(array.align.max(1) as u32);
                set.or_else(|error| internal(format!("an alignment of {}: {error}", array.align)))?;
            }
            arrays.push(place);
        }
        *self.local_arrays.borrow_mut() = arrays;
        Ok(())
    }
}

/// Calls an intrinsic without a result.
pub(super) fn effect<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    name: &str,
    args: &[BasicValueEnum<'ctx>],
) -> Result<Vec<BasicValueEnum<'ctx>>> {
    let args: Vec<_> = args.iter().map(|&arg| arg.into()).collect();
    emitter.builder.build_call(emitter.cx.intrinsic(name, &[])?, &args, "")?;
    Ok(Vec::new())
}

impl<'ctx> Hooks<'ctx> for NvptxHooks<'ctx> {
    fn special(&self, emitter: &FunctionEmitter<'_, 'ctx>, register: SpecialRegister) -> Result<IntValue<'ctx>> {
        let axis = |kind: &str, axis: u8| match axis {
            0..=2 => Ok(format!("{kind}.{}", ['x', 'y', 'z'][usize::from(axis)])),
            _ => internal(format!("axis {axis} of a special register")),
        };
        let name = match register {
            SpecialRegister::ThreadIdx(i) => axis("tid", i)?,
            SpecialRegister::BlockIdx(i) => axis("ctaid", i)?,
            SpecialRegister::BlockDim(i) => axis("ntid", i)?,
            SpecialRegister::GridDim(i) => axis("nctaid", i)?,
            SpecialRegister::LaneId => "laneid".to_owned(),
            SpecialRegister::WarpSize => return Ok(emitter.cx.types.context.i32_type().const_int(32, false)),
            SpecialRegister::DynamicSharedBytes => "dynamic_smem_size".to_owned(),
            SpecialRegister::OfRow(_) => return internal("a work-item loop on a GPU"),
        };
        let read = emitter.cx.intrinsic(&format!("llvm.nvvm.read.ptx.sreg.{name}"), &[])?;
        match emitter.call(read, &[])? {
            BasicValueEnum::IntValue(value) => Ok(value),
            other @ (BasicValueEnum::ArrayValue(_)
            | BasicValueEnum::FloatValue(_)
            | BasicValueEnum::PointerValue(_)
            | BasicValueEnum::StructValue(_)
            | BasicValueEnum::VectorValue(_)
            | BasicValueEnum::ScalableVectorValue(_)) => internal(format!("a special register gives {other}")),
        }
    }

    fn shared_base(&self, _emitter: &FunctionEmitter<'_, 'ctx>, array: SharedId) -> Result<PointerValue<'ctx>> {
        let global = self.shared.get(array.index());
        global.map_or_else(|| internal("a shared array that is not declared"), |global| Ok(global.as_pointer_value()))
    }

    fn dynamic_shared(&self, _emitter: &FunctionEmitter<'_, 'ctx>) -> Result<PointerValue<'ctx>> {
        let global = self.dynamic;
        global.map_or_else(|| internal("dynamic shared memory is not declared"), |global| Ok(global.as_pointer_value()))
    }

    fn local_base(&self, _emitter: &FunctionEmitter<'_, 'ctx>, array: LocalArrayId) -> Result<PointerValue<'ctx>> {
        let place = self.local_arrays.borrow().get(array.index()).copied();
        place.map_or_else(|| internal("a local array that is not declared"), Ok)
    }

    fn reads_anew(&self, load: ExprId) -> bool {
        self.waited.borrow().loads.contains(&load)
    }

    fn iteration(&self, emitter: &FunctionEmitter<'_, 'ctx>, body: &[Stmt], step: &[Stmt]) -> Result<()> {
        if self.waited.borrow().calls { self.waits.iteration(emitter, body, step) } else { Ok(()) }
    }

    fn op(
        &self,
        emitter: &FunctionEmitter<'_, 'ctx>,
        op: Op,
        operands: &[OperandValue<'ctx>],
    ) -> Result<Vec<BasicValueEnum<'ctx>>> {
        let values: Vec<_> = operands.iter().map(|operand| operand.value).collect();
        if self.gathers
            && let Some(mask) = mask_of(emitter, op, &values)?
        {
            gather(emitter, mask)?;
        }
        if self.fences_proxy && proxy::synchronizes(op) {
            proxy::fence(emitter, self.copies.clusters)?;
        }
        match op {
            Op::Atomic { op, order, scope } => Ok(vec![atomics::step(emitter, self.sm, op, order, scope, operands)?]),
            Op::Barrier => {
                let zero = emitter.cx.types.context.i32_type().const_zero();
                effect(emitter, "llvm.nvvm.barrier.cta.sync.aligned.all", &[zero.into()])
            }
            Op::BarrierReduce(reduction) => {
                let (name, is_flag) = match reduction {
                    Reduction::Count => ("popc", false),
                    Reduction::And => ("and", true),
                    Reduction::Or => ("or", true),
                };
                let int = emitter.cx.types.context.i32_type();
                let name = format!("llvm.nvvm.barrier.cta.red.{name}.aligned.all");
                let mut args = vec![int.const_zero().into()];
                args.extend(values);
                let value = emitter.call(emitter.cx.intrinsic(&name, &[])?, &args)?;
                if let BasicValueEnum::IntValue(flag) = value
                    && is_flag
                {
                    return Ok(vec![emitter.builder.build_int_z_extend(flag, int, "")?.into()]);
                }
                Ok(vec![value])
            }
            Op::WarpBarrier => effect(emitter, "llvm.nvvm.bar.warp.sync", &values),
            Op::GridBarrier => grid::barrier(emitter),
            Op::Shuffle(shuffle) => Ok(vec![warps::shuffle(emitter, shuffle, &values)?]),
            Op::Vote(vote) => Ok(vec![warps::vote(emitter, vote, &values)?]),
            Op::MatchAny => Ok(vec![warps::match_any(emitter, operands, &values)?]),
            Op::MatchAll => warps::match_all(emitter, operands, &values),
            Op::WarpReduce(reduction) => Ok(vec![warps::reduce(emitter, self.sm, reduction, operands)?]),
            Op::Multiply(product) => matrix::multiply(emitter, product, &values),
            Op::MatrixLoad(load) => matrix::load(emitter, load, &values),
            Op::ProductWait(wait) => matrix::wait(emitter, wait, &values),
            Op::ActiveMask => Ok(vec![emitter.call(emitter.cx.intrinsic("llvm.nvvm.activemask", &[])?, &[])?]),
            Op::LaneBits(_)
            | Op::LaneFold(_)
            | Op::OfWarps
            | Op::WarpRegion(_)
            | Op::MultiplyCells(_)
            | Op::Check(_) => internal(format!("a {op}, which is the host's own")),
            Op::Fence(scope) => atomics::membar(emitter, scope),
            Op::Ptx { text, pure } => inline::emit(emitter, text, pure, operands),
            Op::External(function) => external::emit(emitter, function, operands),
            Op::Print(format) => print::emit(emitter, format, &values),
            Op::Clock(clock) => {
                let name = match clock {
                    Clock::Cycles32 => "clock",
                    Clock::Cycles64 => "clock64",
                    Clock::Nanoseconds => "globaltimer",
                };
                let read = emitter.cx.intrinsic(&format!("llvm.nvvm.read.ptx.sreg.{name}"), &[])?;
                Ok(vec![emitter.call(read, &[])?])
            }
            Op::SetRegisters { count, more } => {
                let way = if more { "inc" } else { "dec" };
                proxy::instruction(emitter, &format!("setmaxnreg.{way}.sync.aligned.u32 {count};")).map(|()| Vec::new())
            }
            Op::Nanosleep => effect(emitter, "llvm.nvvm.nanosleep", &values),
            Op::Breakpoint => effect(emitter, "llvm.debugtrap", &[]),
            Op::AsyncCopy(copy) => copies::emit(emitter, self.copies, copy, operands),
            Op::Cluster(cluster) => clusters::emit(emitter, cluster, operands),
            Op::Load(hint) => Ok(vec![hints::load(emitter, hint, operands)?]),
            Op::Store(hint) => hints::store(emitter, hint, operands).map(|()| Vec::new()),
            Op::Fault(id) => Ok(vec![fault::raise(self, emitter, id, &values)?]),
            Op::FaultCall(place) => {
                fault::call(emitter, place, &values)?;
                Ok(Vec::new())
            }
        }
    }

    fn emit_return(&self, emitter: &FunctionEmitter<'_, 'ctx>, values: &[BasicValueEnum<'ctx>]) -> Result<()> {
        match emitter.function.kind {
            FunctionKind::Export => export::leave(emitter, values),
            FunctionKind::Kernel | FunctionKind::Device => leave(emitter, values),
        }
    }

    fn divide(
        &self,
        emitter: &FunctionEmitter<'_, 'ctx>,
        division: Division,
        a: IntValue<'ctx>,
        b: IntValue<'ctx>,
    ) -> Result<Option<IntValue<'ctx>>> {
        divide::call(emitter, division, a, b)
    }

    fn approximate(
        &self,
        emitter: &FunctionEmitter<'_, 'ctx>,
        function: MathFn,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<BasicValueEnum<'ctx>>> {
        approximate::emit(emitter, function, args)
    }

    fn of_bytes(
        &self,
        emitter: &FunctionEmitter<'_, 'ctx>,
        function: MathFn,
        value: BasicValueEnum<'ctx>,
    ) -> Result<Option<BasicValueEnum<'ctx>>> {
        bytes::emit(emitter, function, value, (self.sm, self.isa))
    }
}
