//! Loop transformations: how the threads of a block run sequential loops.

pub(crate) mod candidates;
pub(crate) mod coalesce;
pub(crate) mod grid_stride;
pub(crate) mod interchange;
pub(crate) mod lane_trip_counts;
pub(crate) mod masked_exits;
pub(crate) mod split_guards;
pub(crate) mod unswitch_signs;
pub(crate) mod version_extent;
