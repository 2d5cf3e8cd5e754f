//! Clocks, loads and stores with cache operators, asynchronous copies, and the barriers that count them.
//!
//! A cache operator is a hint: such a load or store has the same result as a plain one.

use weft_artifact::Scalar;

use super::{
    Type,
    op::{Elements, Memory, ORDERS, OpRow, Operand},
};

/// A clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clock {
    /// The cycles of the multiprocessor, or of the core, an `I32`.
    Cycles32,
    /// As [`Self::Cycles32`], an `I64`.
    Cycles64,
    /// Nanoseconds of a clock of the device, an `I64`.
    Nanoseconds,
}

/// Cache operators of loads. PTX ISA, "Cache Operators".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoadHint {
    /// `ca`: likely to be used again.
    All,
    /// `cg`: cached in L2 only.
    Global,
    /// `cs`: likely to be used once.
    Streaming,
    /// `lu`: the last use.
    LastUse,
    /// `cv`: not cached, fetched again.
    Volatile,
}

/// Cache operators of stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreHint {
    /// `wb`: written back on eviction.
    Back,
    /// `cg`: cached in L2 only.
    Global,
    /// `cs`: likely to be used once.
    Streaming,
    /// `wt`: written through to memory.
    Through,
}

/// Asynchronous copies to and from shared memory, in groups or with a barrier in shared memory that counts them. PTX ISA,
/// "cp.async", "cp.async.bulk" and "mbarrier".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AsyncCopy {
    /// Begins to copy the bytes of an element: to the first pointer, from the second one.
    Element {
        /// The number of bytes: 4, 8 or 16.
        bytes: u8,
    },
    /// Makes a group of the thread's copies since the previous group.
    Commit,
    /// Waits until at most this number of the thread's groups are pending.
    Wait {
        /// The number of groups.
        pending: u8,
        /// A group of copies to global memory is complete when its sources have been read.
        read: bool,
    },
    /// Initializes barriers in adjacent words of shared memory, for the number of arrivals in each of their phases.
    BarrierInit {
        /// The number of barriers.
        barriers: u32,
    },
    /// Arrives at a barrier.
    BarrierArrive {
        /// The barrier is that of a block of the cluster. Returns `false` if this block has not initialized it; only the
        /// host detects that.
        remote: bool,
    },
    /// Arrives at a barrier whose phase also waits for this number of bytes of copies.
    BarrierExpect {
        /// As for [`Self::BarrierArrive`].
        remote: bool,
    },
    /// Waits until the phase of this parity has completed. Returns `false` if no thread can complete it; only the host
    /// detects that.
    BarrierWait,
    /// Begins to copy bytes: to the first pointer, from the second one. The barrier, at the third pointer, counts them.
    /// Returns `false` if an address or the size is not aligned; only the host detects that.
    Bulk {
        /// The last operand is a mask of the ranks of the blocks of the cluster that receive the bytes, each at the same
        /// offset in its shared memory. In each, the barrier at the same offset counts them. Returns `false` also if a block
        /// of the mask is not in the cluster or has not initialized the barrier.
        multicast: bool,
    },
    /// Begins to copy a box of an array: to the first pointer, by the tensor map at the second one. The barrier, at the
    /// third pointer, counts the bytes. The other operands are the box's first indices, the first dimension's first.
    /// Returns as [`Self::Bulk`].
    Box {
        /// The number of dimensions, from 1 to 5.
        dims: u8,
        /// As for [`Self::Bulk`].
        multicast: bool,
    },
    /// Begins to copy bytes to global memory, as a part of a group: to the first pointer, from the second one. Returns as
    /// [`Self::Bulk`].
    BulkStore,
    /// Begins to copy to a box of an array, as a part of a group: by the tensor map at the first pointer, from the second
    /// one. The other operands are as for [`Self::Box`].
    BoxStore {
        /// The number of dimensions, from 1 to 5.
        dims: u8,
    },
    /// Makes a tensor map in global memory, which the host has written, visible to the copies of boxes of the thread.
    BoxMap,
}

/// The operands of [`AsyncCopy::Box`] of five dimensions with a mask.
const BOX_OPERANDS: &[Operand] = &[
    Operand::Pointer,
    Operand::Pointer,
    Operand::Pointer,
    Operand::Is(Type::I32),
    Operand::Is(Type::I32),
    Operand::Is(Type::I32),
    Operand::Is(Type::I32),
    Operand::Is(Type::I32),
    Operand::Is(Type::I32),
];
/// The operands of [`AsyncCopy::Bulk`] with a mask.
const BULK_OPERANDS: &[Operand] = &[
    Operand::Pointer,
    Operand::Pointer,
    Operand::Pointer,
    Operand::Is(Type::Scalar(Scalar::U32)),
    Operand::Is(Type::I32),
];

impl AsyncCopy {
    /// The PTX instruction, without operands.
    pub const fn ptx(self) -> &'static str {
        match self {
            // L1 does not cache what goes to shared memory, where that is possible.
            Self::Element { bytes: 16 } => "cp.async.cg.shared.global",
            Self::Element { .. } => "cp.async.ca.shared.global",
            Self::Commit => "cp.async.commit_group",
            Self::Wait { .. } => "cp.async.wait_group",
            Self::BarrierInit { .. } => "mbarrier.init.shared.b64",
            Self::BarrierArrive { remote: false } => "mbarrier.arrive.shared.b64",
            Self::BarrierArrive { remote: true } => "mbarrier.arrive.shared::cluster.b64",
            Self::BarrierExpect { remote: false } => "mbarrier.arrive.expect_tx.shared.b64",
            Self::BarrierExpect { remote: true } => "mbarrier.arrive.expect_tx.shared::cluster.b64",
            // Newer SMs have `try_wait`, which suspends the thread.
            Self::BarrierWait => "mbarrier.test_wait.parity.shared.b64",
            Self::Bulk { .. } => "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
            Self::Box { .. } => "cp.async.bulk.tensor.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
            Self::BulkStore => "cp.async.bulk.global.shared::cta.bulk_group",
            Self::BoxStore { .. } => "cp.async.bulk.tensor.global.shared::cta.tile.bulk_group",
            Self::BoxMap => "fence.proxy.tensormap::generic.acquire.sys",
        }
    }

    /// The number of its results.
    pub const fn results(self) -> usize {
        self.row().results.len()
    }

    /// Whether it copies through the async proxy.
    pub const fn is_bulk(self) -> bool {
        matches!(self, Self::Bulk { .. } | Self::Box { .. }) || self.is_store()
    }

    /// Whether it copies to global memory.
    pub const fn is_store(self) -> bool {
        matches!(self, Self::BulkStore | Self::BoxStore { .. })
    }

    /// Whether it accesses shared memory of other blocks of the cluster.
    pub const fn is_of_cluster(self) -> bool {
        matches!(
            self,
            Self::BarrierArrive { remote: true }
                | Self::BarrierExpect { remote: true }
                | Self::Bulk { multicast: true }
                | Self::Box { multicast: true, .. }
        )
    }

    /// Whether threads that wait for a barrier, or the copy itself, see what the thread wrote before.
    pub const fn releases(self) -> bool {
        matches!(self, Self::BarrierArrive { .. } | Self::BarrierExpect { .. }) || self.is_store()
    }

    /// Whether it is an operation of a barrier in shared memory, or copies that such a barrier counts.
    pub const fn has_barrier(self) -> bool {
        match self {
            Self::Element { .. } | Self::Commit | Self::Wait { .. } | Self::BulkStore | Self::BoxStore { .. } => false,
            Self::BarrierInit { .. }
            | Self::BarrierArrive { .. }
            | Self::BarrierExpect { .. }
            | Self::BarrierWait
            | Self::Bulk { .. }
            | Self::Box { .. }
            | Self::BoxMap => true,
        }
    }

    /// The properties of the operation.
    pub(super) const fn row(self) -> OpRow {
        /// An operation on a barrier.
        const BARRIER: OpRow = OpRow { elements: Elements::Any, memory: Memory::Updates, ..ORDERS };
        /// Whether the host has done it.
        const DONE: &[Operand] = &[Operand::Is(Type::BOOL)];
        match self {
            Self::Element { .. } => OpRow {
                name: "async_copy",
                operands: &[Operand::Pointer, Operand::Pointer],
                elements: Elements::Any,
                memory: Memory::Updates,
                orders: false,
                ptx: &["cp.async"],
                ..ORDERS
            },
            Self::Commit => OpRow { name: "async_copy.commit", ptx: &["cp.async.commit_group"], ..ORDERS },
            Self::Wait { read: true, .. } => {
                OpRow { name: "async_copy.wait.read", ptx: &["cp.async.bulk.wait_group.read"], ..ORDERS }
            }
            Self::Wait { read: false, .. } => {
                OpRow { name: "async_copy.wait", ptx: &["cp.async.wait_group"], ..ORDERS }
            }
            Self::BarrierInit { .. } => OpRow {
                name: "shared_barrier.init",
                operands: &[Operand::Pointer, Operand::Is(Type::Scalar(Scalar::U32))],
                ptx: &["mbarrier.init"],
                ..BARRIER
            },
            Self::BarrierArrive { remote } => OpRow {
                name: if remote { "shared_barrier.arrive.remote" } else { "shared_barrier.arrive" },
                operands: &[Operand::Pointer],
                results: if remote { DONE } else { &[] },
                ptx: &["mbarrier.arrive"],
                ..BARRIER
            },
            Self::BarrierExpect { remote } => OpRow {
                name: if remote { "shared_barrier.expect.remote" } else { "shared_barrier.expect" },
                operands: &[Operand::Pointer, Operand::Is(Type::Scalar(Scalar::U32))],
                results: if remote { DONE } else { &[] },
                ptx: &["mbarrier.arrive.expect_tx"],
                ..BARRIER
            },
            Self::BarrierWait => OpRow {
                name: "shared_barrier.wait",
                operands: &[Operand::Pointer, Operand::Is(Type::Scalar(Scalar::U32))],
                results: DONE,
                ptx: &["mbarrier.try_wait", "mbarrier.test_wait"],
                ..BARRIER
            },
            Self::Bulk { multicast } => OpRow {
                name: if multicast { "bulk_copy.multicast" } else { "bulk_copy" },
                operands: BULK_OPERANDS.split_at(4 + multicast as usize).0,
                results: DONE,
                ptx: &["cp.async.bulk"],
                ..BARRIER
            },
            Self::Box { dims, multicast } => OpRow {
                name: if multicast { "box_copy.multicast" } else { "box_copy" },
                operands: BOX_OPERANDS.split_at(3 + dims as usize + multicast as usize).0,
                results: DONE,
                ptx: &["cp.async.bulk.tensor"],
                ..BARRIER
            },
            Self::BulkStore => OpRow {
                name: "bulk_store",
                operands: &[Operand::Pointer, Operand::Pointer, Operand::Is(Type::Scalar(Scalar::U32))],
                results: DONE,
                ptx: &["cp.async.bulk"],
                ..BARRIER
            },
            // It writes the memory that the map describes, which may be that of any argument.
            Self::BoxStore { dims } => OpRow {
                name: "box_store",
                operands: BOX_OPERANDS.split_at(3 + dims as usize).0.split_at(1).1,
                results: DONE,
                memory: Memory::All,
                ptx: &["cp.async.bulk.tensor"],
                ..BARRIER
            },
            Self::BoxMap => OpRow {
                name: "box_copy.map",
                operands: &[Operand::Pointer],
                memory: Memory::Reads,
                ptx: &["fence.proxy.tensormap"],
                ..BARRIER
            },
        }
    }
}

impl LoadHint {
    /// PTX's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "ca",
            Self::Global => "cg",
            Self::Streaming => "cs",
            Self::LastUse => "lu",
            Self::Volatile => "cv",
        }
    }

    /// The properties of the load.
    pub(super) const fn row(self) -> OpRow {
        let (name, ptx): (_, &[&str]) = match self {
            Self::All => ("load.ca", &["ld.global.ca"]),
            Self::Global => ("load.cg", &["ld.global.cg"]),
            Self::Streaming => ("load.cs", &["ld.global.cs"]),
            Self::LastUse => ("load.lu", &["ld.global.lu"]),
            Self::Volatile => ("load.cv", &["ld.global.cv"]),
        };
        OpRow {
            name,
            operands: &[Operand::Pointer],
            results: &[Operand::Element],
            elements: Elements::Numbers,
            memory: Memory::Reads,
            orders: false,
            ptx,
            ..ORDERS
        }
    }
}

impl StoreHint {
    /// PTX's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Back => "wb",
            Self::Global => "cg",
            Self::Streaming => "cs",
            Self::Through => "wt",
        }
    }

    /// The properties of the store.
    pub(super) const fn row(self) -> OpRow {
        let (name, ptx): (_, &[&str]) = match self {
            Self::Back => ("store.wb", &["st.global.wb"]),
            Self::Global => ("store.cg", &["st.global.cg"]),
            Self::Streaming => ("store.cs", &["st.global.cs"]),
            Self::Through => ("store.wt", &["st.global.wt"]),
        };
        OpRow {
            name,
            operands: &[Operand::Pointer, Operand::Element],
            elements: Elements::Numbers,
            memory: Memory::Writes,
            orders: false,
            ptx,
            ..ORDERS
        }
    }
}

impl Clock {
    /// The properties of the clock read.
    pub(super) const fn row(self) -> OpRow {
        let (name, results, ptx): (_, &[Operand], &[&str]) = match self {
            Self::Cycles32 => ("clock", &[Operand::Is(Type::I32)], &["%clock"]),
            Self::Cycles64 => ("clock64", &[Operand::Is(Type::I64)], &["%clock64"]),
            Self::Nanoseconds => ("globaltimer", &[Operand::Is(Type::I64)], &["%globaltimer"]),
        };
        OpRow { name, results, ptx, ..ORDERS }
    }
}
