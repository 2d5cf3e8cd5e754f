//! Clocks, loads and stores with cache operators, and asynchronous copies.
//!
//! A cache operator is a hint: such a load or store has the same result as a plain one.

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

/// Asynchronous copies to shared memory, in groups. PTX ISA, "cp.async".
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
    },
}

impl AsyncCopy {
    /// The PTX instruction, without operands.
    pub const fn ptx(self) -> &'static str {
        match self {
            // L1 does not cache what goes to shared memory, where that is possible.
            Self::Element { bytes: 16 } => "cp.async.cg.shared.global",
            Self::Element { .. } => "cp.async.ca.shared.global",
            Self::Commit => "cp.async.commit_group",
            Self::Wait { .. } => "cp.async.wait_group",
        }
    }

    /// The properties of the operation.
    pub(super) const fn row(self) -> OpRow {
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
            Self::Wait { .. } => OpRow { name: "async_copy.wait", ptx: &["cp.async.wait_group"], ..ORDERS },
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
