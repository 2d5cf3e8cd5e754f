//! Emits LLVM IR for a plan.
//!
//! `entry` emits the loop over blocks, `nodes` the control flow at the level of the block, and `threads` the thread
//! loop of a parallel region. `strips`, `transpose` and `warps` emit strip-mined thread loops. `parts`, `scaled`,
//! `div_mod`, `row_bounds` and `fixed_rows` emit thread loops with split or restricted index sets. `hooks` gives
//! special registers, memory and operations their meaning on the host.
//!
//! `kernel` is the state of the emitter for a kernel, `state` that for a function. Both know only the values that they
//! hold (`position`, `strip`, `guard_values`, `watch`) and none of the files that add methods to them.

pub(crate) mod absent_lanes;
pub(crate) mod access_groups;
pub(crate) mod clock;
pub(crate) mod clusters;
pub(crate) mod copies;
pub(crate) mod div_mod;
pub(crate) mod entry;
pub(crate) mod fixed_rows;
pub(crate) mod frame;
pub(crate) mod guard_values;
pub(crate) mod hooks;
pub(crate) mod kernel;
pub(crate) mod lane_arrays;
pub(crate) mod lane_folds;
pub(crate) mod lane_trip_counts;
pub(crate) mod nodes;
pub(crate) mod outline;
pub(crate) mod parts;
pub(crate) mod position;
pub(crate) mod prefetch;
pub(crate) mod privatized;
pub(crate) mod register_transpose;
pub(crate) mod row_bounds;
pub(crate) mod scaled;
pub(crate) mod state;
pub(crate) mod stop;
pub(crate) mod strip;
pub(crate) mod strips;
pub(crate) mod threads;
pub(crate) mod transpose;
pub(crate) mod transposed_stores;
pub(crate) mod warps;
pub(crate) mod watch;
