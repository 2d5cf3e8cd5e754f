//! Analyses of the planner. They do not change the IR.

pub(crate) mod address_difference;
pub(crate) mod affine_bounds;
pub(crate) mod array_elements;
pub(crate) mod barrier_intervals;
pub(crate) mod block_uniformity;
pub(crate) mod candidates;
pub(crate) mod dependence;
pub(crate) mod divergence;
pub(crate) mod fixed_rows;
pub(crate) mod gathers;
pub(crate) mod grid_stride_loops;
pub(crate) mod guarded;
pub(crate) mod histograms;
pub(crate) mod in_bounds;
pub(crate) mod liveness;
pub(crate) mod recurrences;
pub(crate) mod source_lines;
pub(crate) mod strides;
pub(crate) mod structure;
pub(crate) mod thread_order;
pub(crate) mod vectorizable;
pub(crate) mod yield_points;
