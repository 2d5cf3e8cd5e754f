//! Clocks, and loads and stores with cache operators.
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
