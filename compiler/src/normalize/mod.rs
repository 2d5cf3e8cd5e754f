//! Rewrites of the IR that know no target: live-range splitting for both back ends, unrolling, the removal of jumps
//! and of dead assignments for passes of the CPU planner.

pub(crate) mod drop_unread;
pub(crate) mod fold_constants;
pub(crate) mod jumps;
pub(crate) mod split_live_ranges;
pub(crate) mod unroll;
