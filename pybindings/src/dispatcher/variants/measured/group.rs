//! The launches that share measurements.

use weft_runtime::LaunchConfig;

use super::super::coarsened::blocks;

/// Launches that have the same block size, the same power of two below their number of blocks, and grids that are
/// divisible by the same block factors. All of them therefore have the same candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LaunchGroup {
    pub(super) block: [u32; 3],
    pub(super) grid: u32,
    /// Along each axis 1, 2 or 4.
    pub(super) multiples: [u32; 3],
}

impl LaunchGroup {
    pub(super) fn of(config: &LaunchConfig) -> Self {
        let multiples = config.grid.map(|extent| 1 << extent.trailing_zeros().min(2));
        Self { block: config.block, grid: blocks(config).max(1).ilog2(), multiples }
    }

    /// The block and the grid, as text.
    pub(super) fn shown(self) -> String {
        let shown = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
        let multiples =
            if self.multiples == [1; 3] { String::new() } else { format!(", a multiple of {}", shown(self.multiples)) };
        format!("blocks of {}, a grid of at least 2^{} blocks{multiples}", shown(self.block), self.grid)
    }
}
