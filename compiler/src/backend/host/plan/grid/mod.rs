//! Passes that change which thread, block or warp does what.

pub(crate) mod merge_blocks;
pub(crate) mod permute_axes;
pub(crate) mod privatize;
pub(crate) mod split_warps;
