//! The state of the emitter for a kernel with thread loops. The files of `emit/` add the methods that emit each kind of
//! node.

use inkwell::{
    basic_block::BasicBlock,
    builder::Builder,
    types::BasicTypeEnum,
    values::{BasicValueEnum, FunctionValue, IntValue, PointerValue},
};

use crate::{
    backend::{
        host::{
            emit::{access_groups::Parallel, frame::Offsets, state::HostHooks, strip::Strip},
            plan::{Guard, Plan},
        },
        llvm::FunctionEmitter,
    },
    ir::ExprId,
};

/// Emits one kernel.
pub(crate) struct KernelEmitter<'a, 'ctx> {
    /// Emits statements at the current position.
    pub emitter: FunctionEmitter<'a, 'ctx>,
    /// The values of special registers at the position.
    pub hooks: &'a HostHooks<'a, 'ctx>,
    /// The plan to emit.
    pub plan: &'a Plan,
    /// The layout of scratch memory.
    pub offsets: &'a Offsets,
    /// Annotates thread loops as parallel.
    pub parallel: &'a Parallel<'ctx>,
    /// Emits into the entry block, which contains every `alloca`.
    pub allocas: Builder<'ctx>,
    /// The slot of each private local, by the local's index.
    pub own_slots: Vec<Option<PointerValue<'ctx>>>,
    /// Guards around the position that hold for all lanes, where a warp is a block.
    pub enclosing: Vec<Guard>,
    /// The arrays of the warp, where a warp is a block.
    pub carried: Carried<'ctx>,
    /// The slot for the value of each rematerializable local in a row, by the local's index.
    pub row_slots: Vec<Option<PointerValue<'ctx>>>,
    /// The slots of the current row's `threadIdx.y` and `.z`.
    pub row_index: [PointerValue<'ctx>; 2],
    /// Number of threads in the block, an `i32`. A merged block counts as one.
    pub threads: IntValue<'ctx>,
    /// The basic block in which the current thread block ends.
    pub block_end: BasicBlock<'ctx>,
    /// Each region becomes a function ([`crate::backend::host::emit::outline`]).
    pub outlines: bool,
    /// The exit and the step of each [`Node::Loop`](crate::backend::host::plan::Node::Loop) around the position.
    pub loops: Vec<(BasicBlock<'ctx>, BasicBlock<'ctx>)>,
    /// The current strip, inside a strip-mined thread loop and where a warp is a block.
    pub strip: Option<Strip<'ctx>>,
    /// The replacements of loads and stores in the current iteration of a transposed loop.
    pub replacements: Vec<Replacement<'ctx>>,
    /// The position is in a loop over the threads on either side of a steady state.
    pub at_boundary: bool,
    /// The functions of the plan's warp regions.
    pub regions: &'a [FunctionValue<'ctx>],
}

/// The arrays of a warp that is a block: values that are live across barriers, masks, and cells, through which lanes
/// exchange values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carried<'ctx> {
    /// Context arrays, by the local's index.
    pub locals: Vec<Option<PointerValue<'ctx>>>,
    /// Masks, by number.
    pub masks: Vec<Option<PointerValue<'ctx>>>,
    /// Cell arrays, by the shared array's index.
    pub cells: Vec<Option<PointerValue<'ctx>>>,
}

/// The replacement of a load or a store in an iteration.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Replacement<'ctx> {
    /// Of a load: the element of each lane.
    PerLane(ExprId, PointerValue<'ctx>, BasicTypeEnum<'ctx>),
    /// Of a load: one value for all lanes.
    Uniform(ExprId, BasicValueEnum<'ctx>),
    /// Of a store, or of a load of what it stores: the element of each lane, which is stored after the iterations.
    Stored(ExprId, PointerValue<'ctx>, BasicTypeEnum<'ctx>),
}
