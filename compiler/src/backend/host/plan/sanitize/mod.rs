//! Sanitized kernels: eligibility for thread loops, and detection of reads that cannot race.

pub(crate) mod eligible;
pub(crate) mod race_free;
