//! Rewrites of the IR that know no target: live-range splitting for both back ends, unrolling and the removal of jumps
//! for passes of the CPU planner.

pub(crate) mod jumps;
pub(crate) mod split_live_ranges;
pub(crate) mod unroll;
