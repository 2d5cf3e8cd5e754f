//! Sanitized kernels: which may run as thread loops, and which accesses cannot race.

pub(crate) mod eligible;
pub(crate) mod race_free;
