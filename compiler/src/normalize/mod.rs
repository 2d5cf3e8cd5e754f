//! Normalization of the IR that the passes of a GPU and the CPU's planner share.

pub(crate) mod split_live_ranges;
