//! Loop transformations: how the threads of a block run sequential loops.

pub(crate) mod coalesce;
pub(crate) mod interchange;
pub(crate) mod lane_arrays;
pub(crate) mod masked_exits;
pub(crate) mod unswitch_signs;
pub(crate) mod version_extent;
