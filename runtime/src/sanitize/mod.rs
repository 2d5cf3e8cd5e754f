//! The sanitizer: checks the accesses of a launch on the CPU by the guarantees of CUDA, not by the order in which the
//! CPU happens to run threads.
//!
//! [`Launch`] is the state of one launch; the code that runs threads reports each access and each barrier to it. It
//! accesses no memory of the program, and depends on neither a compiler nor an executor. [`memory`] has the state that
//! outlives a launch: which bytes of the device's memory were ever written.
//!
//! *Happens-before.* A thread's accesses are numbered by its *epoch*, the barriers of its block that it has passed, and
//! its *clock*, which advances where it releases: a `syncwarp`, a release. An access happens before another one if the
//! other's thread knows of it: it is its own, its block has passed a barrier since, its warp has passed one since, or
//! an acquire has seen a later release ([`clock::Vector`]). All blocks are concurrent. Shuffles and votes order
//! nothing.

mod access;
mod advice;
mod argument;
mod barriers;
mod calls;
mod claims;
mod clock;
mod clusters;
#[cfg(test)]
mod element_size_tests;
mod finding;
mod in_flight;
mod kinds;
mod launch;
mod launch_parts;
#[cfg(test)]
mod launch_parts_tests;
pub mod memory;
mod messages;
mod numbers;
mod packed;
mod page;
mod page_pool;
mod phases;
mod polling;
mod products;
mod races;
mod record;
mod release_logs;
mod shadow;
mod stores;
#[cfg(test)]
mod tests;
mod versions;

use std::sync::atomic::{AtomicBool, Ordering};

pub use argument::Argument;
pub use claims::{Lines, Read};
pub use finding::{Finding, ThreadLocation};
pub use launch::{AccessRecord, Launch, LiveThread, Shape, Verdict};
pub use launch_parts::{FinishedParts, LaunchParts, Overlaps};
pub use phases::{PhaseState, Range};
pub use polling::{FIRST_ITERATIONS, Pause};

static REPORT_BENIGN_RACES: AtomicBool = AtomicBool::new(true);

/// Sets whether benign races are reported: those in which a thread writes the value that is there already.
pub fn report_benign_races(report: bool) {
    REPORT_BENIGN_RACES.store(report, Ordering::Relaxed);
}

/// Whether benign races are reported.
pub fn reports_benign_races() -> bool {
    REPORT_BENIGN_RACES.load(Ordering::Relaxed)
}
