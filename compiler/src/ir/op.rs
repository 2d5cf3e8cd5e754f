//! Operations: what is neither control flow nor a plain assignment, store or call.
//!
//! An [`Op`] is a name with its data; [`Op::row`] says everything about it that a reader besides the back ends asks:
//! its operands and results, the memory that it touches, and which threads have to come to it together. So a new
//! operation is a variant with its row here, and its instructions in the back ends' `op`.

use weft_artifact::Scalar;

use super::{
    CallSiteId, Check, Clock, ConstantId, ExternalId, FaultId, LoadHint, PtxId, Shuffle, StoreHint, Type, Vote,
    WarpReduction, warp_op::OF_WARP,
};

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `old = *pointer; *pointer = f(old, operands)` in one step that no other thread of `scope` sees half of; gives
    /// `old`.
    Atomic {
        /// The function.
        op: AtomicOp,
        /// What the step orders around itself.
        order: Order,
        /// Among which threads.
        scope: Scope,
    },
    /// `bar.sync 0`: all threads of the block that have not returned. Memory is ordered between them.
    Barrier,
    /// All threads of the grid, which must be there at a time: the launch is cooperative. Memory is ordered between them.
    GridBarrier,
    /// `barrier.red`: [`Op::Barrier`], which gives each of the threads something about the values of all of them.
    BarrierReduce(Reduction),
    /// `bar.warp.sync`: the threads of the warp in the mask. Memory is ordered between them.
    WarpBarrier,
    /// `shfl.sync`: a lane's value, of those in the mask. Operands are the mask, the value, the lane or the distance, of
    /// which the last five bits count, and the width of the parts of the warp, a power of two up to 32.
    Shuffle(Shuffle),
    /// `vote.sync`: something about the truth of the values of the lanes in the mask.
    Vote(Vote),
    /// `match.any.sync`: the lanes of the mask that have the thread's own value.
    MatchAny,
    /// `match.all.sync`: the lanes of the mask, and whether all have one value; no lane if they have not.
    MatchAll,
    /// `redux.sync`: the values of the lanes in the mask, taken together.
    WarpReduce(WarpReduction),
    /// `activemask`: the lanes of the warp that are here with the thread. On a GPU nobody waits for them.
    ActiveMask,
    /// Bit by bit, the lowest of the bits with this number in the 32 bytes that a pointer points to. Only the host's own
    /// code has it, where it looks at what the lanes of a warp left in a cell each.
    LaneBits(u8),
    /// A barrier of a warp, behind which a branch stands that runs once a warp, for the number of its first thread, whoever of
    /// it is here. Only the host's own code has it.
    OfWarps,
    /// `membar`: the thread's accesses before it come before those after it, as the threads of the scope see them.
    Fence(Scope),
    /// Prints values by a format of C's `printf`, with the constant's bytes but for the zero at its end. Each operand is an
    /// argument of one conversion: an `I64`, a `U64`, an `F64`, or a pointer to bytes that end with a zero. Nothing that
    /// another thread prints comes between.
    Print(ConstantId),
    /// PTX of the program's, with the operands and results that the module says. It can do whatever PTX can, or, if it is
    /// pure, nothing but compute its results from its operands.
    Ptx {
        /// Which.
        text: PtxId,
        /// It only computes.
        pure: bool,
    },
    /// A call of a function of another language, which can do whatever code can.
    External(ExternalId),
    /// A clock's time now.
    Clock(Clock),
    /// Waits for about so many nanoseconds, or not at all.
    Nanosleep,
    /// `brkpt`: a debugger's stop.
    Breakpoint,
    /// A load with a word to the caches.
    Load(LoadHint),
    /// A store with a word to the caches.
    Store(StoreHint),
    /// Reports a fault, if it is the launch's first. Takes an index and an extent, which are zero where the fault is none of
    /// an index; gives an `I32`: 1, or 2 if this fault is the one that is reported.
    Fault(FaultId),
    /// Adds a call to the fault that is reported, if what a callee gave is 2.
    FaultCall(CallSiteId),
    /// Tells the sanitizer something. Only the host's own code has it, and only where it was asked for.
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
    /// [`Self::Max`], but a number takes the place of a NaN.
    NanMax,
    /// [`Self::Min`], but a number takes the place of a NaN.
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

/// What a barrier says about the values of the threads that came to it; an `I32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// How many are true.
    Count,
    /// 1 if all are true, else 0.
    And,
    /// 1 if one is true, else 0.
    Or,
}

/// What an atomic step orders besides the element itself. C++'s memory orders, as in PTX ISA section 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Nothing.
    Relaxed,
    /// Later accesses come after it.
    Acquire,
    /// Earlier accesses come before it.
    Release,
    /// Both.
    AcquireRelease,
    /// Both, and all such steps and fences have one order that every thread sees.
    Sequential,
}

/// Among which threads something holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Those of the block.
    Block,
    /// All of the device.
    Device,
    /// Those of all devices and of the host.
    System,
}

/// What there is to know of an operation, apart from its instructions.
#[derive(Clone, Copy, Debug)]
pub struct OpRow {
    /// Its name in the text form.
    pub name: &'static str,
    /// What it takes, in order.
    pub operands: &'static [Operand],
    /// What it gives, in order. A statement has a local for each, or none where nobody reads them.
    pub results: &'static [Operand],
    /// What [`Operand::Pointer`] and [`Operand::Element`] may be of.
    pub elements: Elements,
    /// What it does with the memory behind its pointers.
    pub memory: Memory,
    /// It orders the thread's accesses to other memory, as other threads see them.
    pub orders: bool,
    /// Which threads come to it together.
    pub together: SyncScope,
    /// It does something that is not in memory, and that others see.
    pub outside: bool,
    /// It may end the kernel with an error.
    pub may_fault: bool,
    /// What its PTX contains: one of these.
    pub ptx: &'static [&'static str],
}

/// The type of an operand or a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A pointer to elements, in any space.
    Pointer,
    /// A value of the elements' type, which is one for all operands and results.
    Element,
    /// This type.
    Is(Type),
    /// The last one: any number of values, of types that the operation's own data says.
    Rest,
}

/// Which element types an operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// It has none.
    None,
    /// All.
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

/// What an operation does with the memory behind its pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Nothing.
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

/// Which threads come to an operation together: none goes on before all have come. Smallest first.
///
/// On the CPU a kernel is cut there: every thread comes to the end of one piece before any starts the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SyncScope {
    /// Each by itself.
    #[default]
    None,
    /// Those of a warp.
    Warp,
    /// Those of a block.
    Block,
    /// Those of the grid.
    Grid,
}

impl Op {
    /// The atomic steps of Numba's functions.
    pub const fn atomic(op: AtomicOp) -> Self {
        Self::Atomic { op, order: Order::Relaxed, scope: Scope::Device }
    }

    /// What there is to know of it.
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
            Self::OfWarps => OpRow { name: "of_warps", ..OF_WARP },
            Self::Clock(clock) => clock.row(),
            Self::Nanosleep => OpRow {
                name: "nanosleep",
                operands: &[Operand::Is(Type::Scalar(Scalar::U32))],
                ptx: &["nanosleep"],
                ..ORDERS
            },
            Self::Breakpoint => OpRow { name: "breakpoint", ptx: &["brkpt"], ..ORDERS },
            Self::Load(hint) => hint.row(),
            Self::Store(hint) => hint.row(),
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

/// What touches no memory of its own and orders that of others.
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
    /// Other threads may notice when it is done, so that it keeps its place among what they do.
    pub const fn is_noticed(&self) -> bool {
        self.orders || self.outside || self.memory.writes() || !matches!(self.together, SyncScope::None)
    }

    /// It does something besides giving its results.
    pub const fn has_effect(&self) -> bool {
        self.is_noticed() || self.may_fault
    }
}

impl Memory {
    /// It may read.
    pub const fn reads(self) -> bool {
        match self {
            Self::None | Self::Writes => false,
            Self::Reads | Self::Updates | Self::All => true,
        }
    }

    /// It may write.
    pub const fn writes(self) -> bool {
        match self {
            Self::None | Self::Reads => false,
            Self::Writes | Self::Updates | Self::All => true,
        }
    }
}

impl Elements {
    /// Whether a type is one of them.
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
    /// Earlier accesses come before the step.
    pub const fn releases(self) -> bool {
        match self {
            Self::Relaxed | Self::Acquire => false,
            Self::Release | Self::AcquireRelease | Self::Sequential => true,
        }
    }

    /// Later accesses come after the step.
    pub const fn acquires(self) -> bool {
        match self {
            Self::Relaxed | Self::Release => false,
            Self::Acquire | Self::AcquireRelease | Self::Sequential => true,
        }
    }

    /// All orders.
    pub const ALL: [Self; 5] = [Self::Relaxed, Self::Acquire, Self::Release, Self::AcquireRelease, Self::Sequential];

    /// Its name in C++, without `memory_order_`: in kernels, and in the text form, where it is not the usual one.
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

    /// Its name in CUDA C++, without `thread_scope_`: in kernels and in the text form.
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
        // The data of other operations stand behind their name as operands do, or are part of it.
        if let Self::Atomic { op, order, scope } = self
            && *self != Self::atomic(*op)
        {
            write!(f, ".{}.{}", order.name(), scope.name())?;
        }
        if let Self::LaneBits(bit) = self {
            write!(f, ".{bit}")?;
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
