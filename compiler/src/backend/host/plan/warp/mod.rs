//! Warp operations on the CPU.

pub(crate) mod cells;
pub(crate) mod divergent_barrier;
pub(crate) mod lanes;
pub(crate) mod lower;
pub(crate) mod regions;
