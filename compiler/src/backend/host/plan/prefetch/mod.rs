//! Software prefetches: for the next block, for the next iteration of a loop with barriers, and several iterations
//! ahead in grid-stride loops. Unit-stride traversals are left to the hardware prefetcher.

pub(crate) mod next_block;
pub(crate) mod next_iteration;
pub(crate) mod next_stride;
