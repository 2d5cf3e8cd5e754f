//! Emits LLVM IR for a plan.

pub(crate) mod absent_lanes;
pub(crate) mod access_groups;
pub(crate) mod clock;
pub(crate) mod div_mod;
pub(crate) mod entry;
pub(crate) mod fixed_rows;
pub(crate) mod frame;
pub(crate) mod hooks;
pub(crate) mod lane_trip_counts;
pub(crate) mod nodes;
pub(crate) mod outline;
pub(crate) mod parts;
pub(crate) mod prefetch;
pub(crate) mod privatized;
pub(crate) mod register_transpose;
pub(crate) mod row_bounds;
pub(crate) mod scaled;
pub(crate) mod stop;
pub(crate) mod strips;
pub(crate) mod threads;
pub(crate) mod transpose;
pub(crate) mod transposed_stores;
pub(crate) mod warps;
