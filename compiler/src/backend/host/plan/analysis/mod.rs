//! Analyses of the planner. They do not change the IR.

pub(crate) mod address_difference;
pub(crate) mod affine_bounds;
pub(crate) mod dependence;
pub(crate) mod divergence;
pub(crate) mod gathers;
pub(crate) mod histograms;
pub(crate) mod recurrences;
pub(crate) mod strides;
pub(crate) mod structure;
