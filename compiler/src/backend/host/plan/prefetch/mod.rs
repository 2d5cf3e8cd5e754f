//! Software prefetches.

pub(crate) mod next_block;
pub(crate) mod next_iteration;
pub(crate) mod next_stride;
