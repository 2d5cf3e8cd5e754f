//! Passes that change how the blocks and threads of the grid map to blocks and thread loops of the CPU.

pub(crate) mod merge_blocks;
pub(crate) mod permute_axes;
pub(crate) mod privatize;
pub(crate) mod split_rows;
pub(crate) mod split_warps;
