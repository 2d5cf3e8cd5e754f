//! Warp operations on the CPU.

pub(crate) mod divergent_barrier;
pub(crate) mod lower;
pub(crate) mod regions;
