//! The counts of a launch, by the rules of compute capability 9.0. The names are Nsight Compute's.

mod access;
mod machine;
mod request;
mod sectors;
mod table;

pub(crate) use access::{
    AtomicKind, Lanes, constant, global, global_atomic, local, matrices, shared, shared_atomic, updates,
};
pub use machine::MachineCode;
pub use request::Request;
pub(crate) use request::Requests;
pub use sectors::SectorAtomics;
pub(crate) use sectors::{Loaded, Updates};
pub use table::{Class, Count, Counts, Row, Stride, Waits};
pub(crate) use table::{Counters, NO_REGION};
#[cfg(test)]
mod tests;
