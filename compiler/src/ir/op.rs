//! Operations: all statements except control flow, assignments, stores and plain calls.
//!
//! An [`Op`] is a name with its data. [`Op::row`] describes it for everything except the back ends: its operands and
//! results, the memory that it accesses, and which threads must reach it together. A new operation is a variant with
//! its row here, and its instructions in the `op` of each back end.

use weft_artifact::{MatrixProduct, Scalar};

use super::{
    AsyncCopy, CallSiteId, Check, Clock, ClusterOp, ConstantId, ExprId, ExternalId, FaultId, LoadHint, MatrixLoad,
    ProductWait, PtxId, Shuffle, StoreHint, Type, Vote, WarpReduction,
    warp_op::{self, OF_WARP},
};

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `old = *pointer; *pointer = f(old, operands)`, atomically for the threads of `scope`. Returns `old`.
    Atomic {
        /// The function.
        op: AtomicOp,
        /// Its memory order.
        order: Order,
        /// The threads for which it is atomic.
        scope: Scope,
    },
    /// `bar.sync 0`: a barrier of all threads of the block that have not returned. It orders their memory accesses.
    Barrier,
    /// A barrier of all threads of the grid. The launch is cooperative: all blocks are resident. It orders their memory
    /// accesses.
    GridBarrier,
    /// `barrier.red`: [`Op::Barrier`] that also reduces a value of each thread and returns the result to all.
    BarrierReduce(Reduction),
    /// `bar.warp.sync`: a barrier of the threads of the warp in the mask. It orders their memory accesses.
    WarpBarrier,
    /// `shfl.sync`: the value of another lane in the mask. The operands are the mask, the value, the lane or the
    /// distance (modulo 32), and the width of the segments of the warp, a power of two up to 32.
    Shuffle(Shuffle),
    /// `vote.sync`: a vote on the predicates of the lanes in the mask.
    Vote(Vote),
    /// `match.any.sync`: the lanes of the mask that have the thread's own value.
    MatchAny,
    /// `match.all.sync`: returns whether all lanes of the mask have the same value, and the lanes of the mask if they
    /// do, else no lanes.
    MatchAll,
    /// `redux.sync`: a reduction of the values of the lanes in the mask.
    WarpReduce(WarpReduction),
    /// `mma.sync` or `wgmma.mma_async`: the product of two matrices, added to a third one, by all lanes of the warp, or of
    /// the four warps of a warpgroup. The operands are a lane's words of A, its words of B, and its accumulators; the
    /// results are its accumulators. An operand in shared memory has instead of words a pointer to the first element of its
    /// first row and the column in this row; after these a product of a warpgroup has the number of the lane's warp.
    Multiply(MatrixProduct),
    /// `ldmatrix`: loads matrices of 8 by 8 elements of 16 bits from shared memory. Each lane has the address of a row.
    /// Only code for a GPU uses it.
    MatrixLoad(MatrixLoad),
    /// `wgmma.wait_group`: waits for products of a warpgroup that are in flight. The operands are those words of the last
    /// product's A that are in registers, and its accumulators; the results are the accumulators. Only code for a GPU uses it.
    ProductWait(ProductWait),
    /// [`Op::Multiply`] of a warp whose lanes' operands are in cells: the addresses of the first lane's cells. The
    /// results replace the accumulators. Only code for the host uses it.
    MultiplyCells(MatrixProduct),
    /// `activemask`: the active lanes of the warp. On a GPU it does not synchronize the warp.
    ActiveMask,
    /// Gathers one bit of each of the 32 bytes at a pointer into an integer, the lowest byte first. Only code for the
    /// host uses it, to read the cells of the lanes of a warp.
    LaneBits(u8),
    /// Reduces the 32 elements at a pointer: the lower half with the upper half, and so on. Only code for the host uses
    /// it, on the cells of the lanes of a warp.
    LaneFold(WarpReduction),
    /// A barrier of a warp before a branch that runs once per warp, with the number of the warp's first thread. Only
    /// code for the host uses it.
    OfWarps,
    /// A barrier of the block, and statements that each warp runs on its own: the plan of that number in the plan for the
    /// host. Only code for the host uses it.
    WarpRegion(u32),
    /// `membar`: orders the thread's earlier accesses before its later ones, for the threads of the scope.
    Fence(Scope),
    /// Prints values by a format of C's `printf`, which is a constant of the module, terminated by a zero. Each operand
    /// is an argument of one conversion: an `I64`, a `U64`, an `F64`, or a pointer to a zero-terminated string. Output
    /// of other threads does not interleave.
    Print(ConstantId),
    /// Inline PTX of the program. The module declares its operands and results. A pure one only computes its results
    /// from its operands; others may have any effect.
    Ptx {
        /// The PTX.
        text: PtxId,
        /// It is pure.
        pure: bool,
    },
    /// A call of a function of another language, which may have any effect.
    External(ExternalId),
    /// Reads a clock.
    Clock(Clock),
    /// Sleeps for about the given number of nanoseconds; it may return early.
    Nanosleep,
    /// `setmaxnreg`: changes the number of registers of each thread of a warpgroup. Only code for a GPU has it.
    SetRegisters {
        /// The new number: a multiple of 8.
        count: u16,
        /// It is higher than that of the launch.
        more: bool,
    },
    /// `brkpt`: a breakpoint.
    Breakpoint,
    /// A load with a cache operator.
    Load(LoadHint),
    /// A store with a cache operator.
    Store(StoreHint),
    /// An asynchronous copy of an element to shared memory, or a wait for such copies. Only code for a GPU uses it.
    AsyncCopy(AsyncCopy),
    /// An operation of the cluster of the thread's block.
    Cluster(ClusterOp),
    /// Reports a fault if it is the first of the launch. The operands are an index and an extent, or zeros for a fault
    /// without an index. Returns an `I32`: 2 if this fault is the reported one, else 1.
    Fault(FaultId),
    /// Adds a call to the reported fault if the callee returned 2.
    FaultCall(CallSiteId),
    /// Reports an event to the sanitizer. Only sanitized code for the host has it.
    Check(Check),
}

/// Atomic read-modify-write functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicOp {
    /// `old + value`.
    Add,
    /// `old - value`.
    Sub,
    /// `old & value`.
    And,
    /// `old | value`.
    Or,
    /// `old ^ value`.
    Xor,
    /// The larger; floats: `old < value ? value : old`, so that a NaN on either side changes nothing.
    Max,
    /// The smaller; floats: `old > value ? value : old`.
    Min,
    /// [`Self::Max`], but a NaN is replaced by a number.
    NanMax,
    /// [`Self::Min`], but a NaN is replaced by a number.
    NanMin,
    /// `old >= value ? 0 : old + 1`.
    Inc,
    /// `old == 0 || old > value ? value : old - 1`.
    Dec,
    /// `value`.
    Exchange,
    /// `old == compare ? value : old`, floats by their bits; the operands are the pointer, `compare` and `value`.
    Cas,
}

/// The reduction of a barrier over the values of its threads; the result is an `I32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// The number of true values.
    Count,
    /// 1 if all are true, else 0.
    And,
    /// 1 if one is true, else 0.
    Or,
}

/// The memory order of an atomic operation: C++'s orders, as in section 8 of the PTX ISA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// None.
    Relaxed,
    /// Later accesses come after it.
    Acquire,
    /// Earlier accesses come before it.
    Release,
    /// Both.
    AcquireRelease,
    /// Both, and all such operations and fences have one total order.
    Sequential,
}

/// The threads for which a memory order or an atomic operation holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The threads of the block.
    Block,
    /// The threads of the device.
    Device,
    /// The threads of all devices and of the host.
    System,
}

/// The properties of an operation except its instructions.
#[derive(Clone, Copy, Debug)]
pub struct OpRow {
    /// Its name in the text form.
    pub name: &'static str,
    /// Its operands, in order.
    pub operands: &'static [Operand],
    /// Its results, in order. A statement has a local for each result, or no locals if no result is read.
    pub results: &'static [Operand],
    /// The element types of [`Operand::Pointer`] and [`Operand::Element`].
    pub elements: Elements,
    /// How it accesses memory through its pointers.
    pub memory: Memory,
    /// It orders the thread's accesses to other memory, as other threads see them.
    pub orders: bool,
    /// The threads that must reach it together.
    pub together: SyncScope,
    /// It has an effect outside memory that other threads or the host observe.
    pub outside: bool,
    /// It may end the kernel with an error.
    pub may_fault: bool,
    /// The PTX instructions of which its code contains one.
    pub ptx: &'static [&'static str],
}

/// The type of an operand or a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A pointer to elements, in any space.
    Pointer,
    /// A value of the element type, which is the same for all operands and results.
    Element,
    /// A value of this type.
    Is(Type),
    /// The last operand: any number of values, whose types depend on the operation's data.
    Rest,
}

/// The element types that an operation supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// It has no elements.
    None,
    /// All types.
    Any,
    /// Integers and floats.
    Numbers,
    /// Integers and `Bool`.
    Bits,
    /// Unsigned integers.
    Unsigned,
    /// Integers of 32 bits.
    Ints,
    /// Integers of 32 and 64 bits.
    Words,
    /// Bytes.
    Bytes,
}

/// How an operation accesses memory through its pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// No access.
    None,
    /// Reads it.
    Reads,
    /// Writes it.
    Writes,
    /// Reads and writes it.
    Updates,
    /// Reads and writes it and all other memory.
    All,
}

/// The threads that an operation synchronizes: no thread continues before all have reached it. In ascending order.
///
/// On the CPU the kernel is split there into parallel regions: all threads finish one region before any thread starts
/// the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SyncScope {
    /// No synchronization.
    #[default]
    None,
    /// The threads of a warp.
    Warp,
    /// The threads of a block.
    Block,
    /// The threads of a cluster of blocks.
    Cluster,
    /// The threads of the grid.
    Grid,
}

impl Op {
    /// An atomic operation with the default order and scope, as Numba's functions have.
    pub const fn atomic(op: AtomicOp) -> Self {
        Self::Atomic { op, order: Order::Relaxed, scope: Scope::Device }
    }

    /// The operands that point to memory that it reads, and those that point to memory that it writes, of all operands.
    pub fn accessed(self, args: &[ExprId]) -> (&[ExprId], &[ExprId]) {
        let memory = self.row().memory;
        match (self, args) {
            (Self::AsyncCopy(AsyncCopy::Element { .. }), [to, from])
            | (
                Self::AsyncCopy(AsyncCopy::Bulk { .. } | AsyncCopy::Box { .. } | AsyncCopy::BulkStore),
                [to, from, ..],
            ) => (std::slice::from_ref(from), std::slice::from_ref(to)),
            _ => (if memory.reads() { args } else { &[] }, if memory.writes() { args } else { &[] }),
        }
    }

    /// Its properties.
    pub const fn row(self) -> OpRow {
        match self {
            Self::Atomic { op, order, .. } => OpRow {
                name: match op {
                    AtomicOp::Add => "atomic.add",
                    AtomicOp::Sub => "atomic.sub",
                    AtomicOp::And => "atomic.and",
                    AtomicOp::Or => "atomic.or",
                    AtomicOp::Xor => "atomic.xor",
                    AtomicOp::Max => "atomic.max",
                    AtomicOp::Min => "atomic.min",
                    AtomicOp::NanMax => "atomic.nanmax",
                    AtomicOp::NanMin => "atomic.nanmin",
                    AtomicOp::Inc => "atomic.inc",
                    AtomicOp::Dec => "atomic.dec",
                    AtomicOp::Exchange => "atomic.exch",
                    AtomicOp::Cas => "atomic.cas",
                },
                operands: match op {
                    AtomicOp::Cas => &[Operand::Pointer, Operand::Element, Operand::Element],
                    AtomicOp::Add
                    | AtomicOp::Sub
                    | AtomicOp::And
                    | AtomicOp::Or
                    | AtomicOp::Xor
                    | AtomicOp::Max
                    | AtomicOp::Min
                    | AtomicOp::NanMax
                    | AtomicOp::NanMin
                    | AtomicOp::Inc
                    | AtomicOp::Dec
                    | AtomicOp::Exchange => &[Operand::Pointer, Operand::Element],
                },
                results: &[Operand::Element],
                elements: match op {
                    AtomicOp::Add
                    | AtomicOp::Sub
                    | AtomicOp::Max
                    | AtomicOp::Min
                    | AtomicOp::NanMax
                    | AtomicOp::NanMin => Elements::Numbers,
                    AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => Elements::Bits,
                    AtomicOp::Inc | AtomicOp::Dec => Elements::Unsigned,
                    AtomicOp::Exchange | AtomicOp::Cas => Elements::Any,
                },
                memory: Memory::Updates,
                orders: order.acquires() || order.releases(),
                together: SyncScope::None,
                outside: false,
                may_fault: false,
                ptx: &["atom", "red."],
            },
            Self::Barrier => OpRow { name: "barrier", together: SyncScope::Block, ptx: &["bar.sync"], ..ORDERS },
            Self::GridBarrier => {
                OpRow { name: "grid_barrier", together: SyncScope::Grid, ptx: &["%envreg2"], ..ORDERS }
            }
            Self::BarrierReduce(reduction) => OpRow {
                name: match reduction {
                    Reduction::Count => "barrier.count",
                    Reduction::And => "barrier.and",
                    Reduction::Or => "barrier.or",
                },
                operands: &[Operand::Is(Type::BOOL)],
                results: &[Operand::Is(Type::I32)],
                together: SyncScope::Block,
                ptx: match reduction {
                    Reduction::Count => &["red.popc"],
                    Reduction::And => &["red.and"],
                    Reduction::Or => &["red.or"],
                },
                ..ORDERS
            },
            Self::WarpBarrier => OpRow {
                name: "warp_barrier",
                operands: &[Operand::Is(Type::I32)],
                together: SyncScope::Warp,
                ptx: &["bar.warp.sync"],
                ..ORDERS
            },
            Self::Shuffle(shuffle) => shuffle.row(),
            Self::Vote(vote) => vote.row(),
            Self::MatchAny => OpRow {
                name: "match.any",
                operands: &[Operand::Is(Type::I32), Operand::Element],
                results: &[Operand::Is(Type::I32)],
                elements: Elements::Words,
                ptx: &["match.any.sync"],
                ..OF_WARP
            },
            Self::MatchAll => OpRow {
                name: "match.all",
                operands: &[Operand::Is(Type::I32), Operand::Element],
                results: &[Operand::Is(Type::I32), Operand::Is(Type::BOOL)],
                elements: Elements::Words,
                ptx: &["match.all.sync"],
                ..OF_WARP
            },
            Self::WarpReduce(reduction) => reduction.row(),
            Self::Multiply(product) => warp_op::multiply(product),
            Self::MatrixLoad(load) => load.row(),
            Self::ProductWait(_) => warp_op::PRODUCT_WAIT,
            Self::MultiplyCells(_) => {
                OpRow { name: "multiply_cells", operands: &[Operand::Rest], memory: Memory::All, ..ORDERS }
            }
            Self::ActiveMask => OpRow {
                name: "active_mask",
                results: &[Operand::Is(Type::Scalar(Scalar::U32))],
                ptx: &["activemask"],
                ..OF_WARP
            },
            Self::LaneBits(_) => OpRow {
                name: "lane_bits",
                operands: &[Operand::Pointer],
                results: &[Operand::Is(Type::I32)],
                elements: Elements::Bytes,
                memory: Memory::Reads,
                orders: false,
                ..ORDERS
            },
            Self::LaneFold(_) => OpRow {
                name: "lane_fold",
                operands: &[Operand::Pointer],
                results: &[Operand::Element],
                elements: Elements::Numbers,
                memory: Memory::Reads,
                orders: false,
                ..ORDERS
            },
            Self::OfWarps => OpRow { name: "of_warps", ..OF_WARP },
            Self::WarpRegion(_) => {
                OpRow { name: "warp_region", memory: Memory::All, together: SyncScope::Block, ..ORDERS }
            }
            Self::Clock(clock) => clock.row(),
            Self::Nanosleep => OpRow {
                name: "nanosleep",
                operands: &[Operand::Is(Type::Scalar(Scalar::U32))],
                ptx: &["nanosleep"],
                ..ORDERS
            },
            Self::SetRegisters { .. } => OpRow { name: "set_registers", ptx: &["setmaxnreg"], ..OF_WARP },
            Self::Breakpoint => OpRow { name: "breakpoint", ptx: &["brkpt"], ..ORDERS },
            Self::Load(hint) => hint.row(),
            Self::Store(hint) => hint.row(),
            Self::AsyncCopy(copy) => copy.row(),
            Self::Cluster(cluster) => cluster.row(),
            Self::Fence(Scope::Block) => OpRow { name: "fence block", ptx: &["membar.cta"], ..ORDERS },
            Self::Fence(Scope::Device) => OpRow { name: "fence device", ptx: &["membar.gl"], ..ORDERS },
            Self::Fence(Scope::System) => OpRow { name: "fence system", ptx: &["membar.sys"], ..ORDERS },
            Self::Print(_) => OpRow {
                name: "print",
                operands: &[Operand::Rest],
                memory: Memory::Reads,
                orders: false,
                outside: true,
                ptx: &["vprintf"],
                ..ORDERS
            },
            Self::External(_) => OpRow {
                name: "external",
                operands: &[Operand::Rest],
                results: &[Operand::Rest],
                memory: Memory::All,
                outside: true,
                may_fault: true,
                together: SyncScope::Block,
                ptx: &["call.uni"],
                ..ORDERS
            },
            Self::Ptx { text: _, pure } => OpRow {
                name: if pure { "ptx.pure" } else { "ptx" },
                operands: &[Operand::Rest],
                results: &[Operand::Rest],
                memory: if pure { Memory::None } else { Memory::All },
                orders: !pure,
                outside: !pure,
                may_fault: !pure,
                together: if pure { SyncScope::None } else { SyncScope::Block },
                ..ORDERS
            },
            Self::Fault(_) => OpRow {
                name: "fault",
                operands: &[Operand::Is(Type::I64), Operand::Is(Type::I64)],
                results: &[Operand::Is(Type::I32)],
                orders: false,
                outside: true,
                ptx: &["atom"],
                ..ORDERS
            },
            Self::FaultCall(_) => OpRow {
                name: "fault_call",
                operands: &[Operand::Is(Type::I32)],
                orders: false,
                outside: true,
                ptx: &["st.volatile"],
                ..ORDERS
            },
            Self::Check(check) => check.row(),
        }
    }
}

/// The row of an operation that accesses no memory and orders other accesses.
pub(super) const ORDERS: OpRow = OpRow {
    name: "",
    operands: &[],
    results: &[],
    elements: Elements::None,
    memory: Memory::None,
    orders: true,
    together: SyncScope::None,
    outside: false,
    may_fault: false,
    ptx: &[],
};

impl OpRow {
    /// Whether other threads may observe when it executes, so that it must not be reordered with their accesses.
    pub const fn is_noticed(&self) -> bool {
        self.orders || self.outside || self.memory.writes() || !matches!(self.together, SyncScope::None)
    }

    /// Whether it has an effect besides its results.
    pub const fn has_effect(&self) -> bool {
        self.is_noticed() || self.may_fault
    }
}

impl Memory {
    /// Whether it may read.
    pub const fn reads(self) -> bool {
        match self {
            Self::None | Self::Writes => false,
            Self::Reads | Self::Updates | Self::All => true,
        }
    }

    /// Whether it may write.
    pub const fn writes(self) -> bool {
        match self {
            Self::None | Self::Reads => false,
            Self::Writes | Self::Updates | Self::All => true,
        }
    }
}

impl Elements {
    /// Whether a type is supported.
    pub fn contains(self, scalar: Scalar) -> bool {
        match self {
            Self::None => false,
            Self::Any => true,
            Self::Numbers => scalar.is_int() || scalar.is_float(),
            Self::Bits => scalar.is_int() || scalar == Scalar::Bool,
            Self::Unsigned => scalar.is_unsigned_int(),
            Self::Ints => matches!(scalar, Scalar::I32 | Scalar::U32),
            Self::Words => matches!(scalar, Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64),
            Self::Bytes => scalar == Scalar::U8,
        }
    }
}

impl Order {
    /// Whether earlier accesses are ordered before the operation.
    pub const fn releases(self) -> bool {
        match self {
            Self::Relaxed | Self::Acquire => false,
            Self::Release | Self::AcquireRelease | Self::Sequential => true,
        }
    }

    /// Whether later accesses are ordered after the operation.
    pub const fn acquires(self) -> bool {
        match self {
            Self::Relaxed | Self::Release => false,
            Self::Acquire | Self::AcquireRelease | Self::Sequential => true,
        }
    }

    /// All orders.
    pub const ALL: [Self; 5] = [Self::Relaxed, Self::Acquire, Self::Release, Self::AcquireRelease, Self::Sequential];

    /// Its name in C++, without `memory_order_`. Kernels use it, and the text form if it is not the default.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Relaxed => "relaxed",
            Self::Acquire => "acquire",
            Self::Release => "release",
            Self::AcquireRelease => "acq_rel",
            Self::Sequential => "seq_cst",
        }
    }
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 3] = [Self::Block, Self::Device, Self::System];

    /// Its name in CUDA C++, without `thread_scope_`. Kernels and the text form use it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Device => "device",
            Self::System => "system",
        }
    }
}

impl std::fmt::Display for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.row().name)?;
        // The data of other operations is printed after their name like operands, or is part of the name.
        if let Self::Atomic { op, order, scope } = self
            && *self != Self::atomic(*op)
        {
            write!(f, ".{}.{}", order.name(), scope.name())?;
        }
        if let Self::LaneBits(bit) = self {
            write!(f, ".{bit}")?;
        }
        if let Self::LaneFold(reduction) = self {
            write!(f, ".{}", reduction.name())?;
        }
        if let Self::AsyncCopy(
            AsyncCopy::Element { bytes: number }
            | AsyncCopy::Wait { pending: number, .. }
            | AsyncCopy::Box { dims: number, .. }
            | AsyncCopy::BoxStore { dims: number },
        ) = self
        {
            write!(f, ".{number}")?;
        }
        if let Self::AsyncCopy(AsyncCopy::BarrierInit { barriers }) = self {
            write!(f, ".{barriers}")?;
        }
        if let Self::SetRegisters { count, more } = self {
            write!(f, ".{}.{count}", if *more { "inc" } else { "dec" })?;
        }
        if let Self::Multiply(product) | Self::MultiplyCells(product) = self {
            write!(f, ".{product}")?;
        }
        if let Self::ProductWait(ProductWait { pending, .. }) = self {
            write!(f, ".{pending}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{AtomicOp, ConstantId, Op, Order, Scope, SyncScope};

    #[test]
    fn the_usual_order_and_scope_are_not_written() {
        assert_eq!(Op::atomic(AtomicOp::Add).to_string(), "atomic.add");
        let lock = Op::Atomic { op: AtomicOp::Cas, order: Order::Acquire, scope: Scope::Block };
        assert_eq!(lock.to_string(), "atomic.cas.acquire.block");
        assert_eq!(Op::Fence(Scope::System).to_string(), "fence system");
    }

    #[test]
    fn what_prints_is_noticed_and_writes_nothing() {
        let row = Op::Print(ConstantId::new(0)).row();
        assert!(row.is_noticed() && row.has_effect() && row.memory.reads() && !row.memory.writes() && !row.orders);
    }

    #[test]
    fn what_orders_is_noticed() {
        let relaxed = Op::atomic(AtomicOp::Add).row();
        let acquire = Op::Atomic { op: AtomicOp::Add, order: Order::Acquire, scope: Scope::Device }.row();
        assert!(!relaxed.orders && relaxed.memory.writes() && relaxed.is_noticed());
        assert!(acquire.orders && acquire.is_noticed());
        for (op, together) in [(Op::Barrier, SyncScope::Block), (Op::WarpBarrier, SyncScope::Warp)] {
            assert!(op.row().together == together && op.row().orders && op.row().is_noticed());
        }
    }
}
