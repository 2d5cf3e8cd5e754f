//! The sanitizer: what a launch on the CPU tells of its accesses, judged by what CUDA promises and not by the order in
//! which the CPU happens to run threads.
//!
//! [`Launch`] is the state of one launch; whoever runs threads tells it of each access and of where they meet. It
//! touches no memory of the program's, and knows neither a compiler nor an executor. [`memory`] has what lives longer
//! than a launch: which bytes of the device's memory were ever written.
//!
//! *What is ordered.* A thread's accesses are numbered by its *epoch*, the barriers of its block that it has passed, and
//! its *clock*, which goes on where it gives others something to wait for: a `syncwarp`, a release. An access is before
//! another one if the other's thread knows of it: it is its own, its block has passed a barrier since, its warp has met
//! since, or an acquire has seen a release behind it ([`clock::Vector`]). All blocks run at a time. Shuffles and votes
//! order nothing.

mod access;
mod advice;
mod argument;
mod barriers;
mod calls;
mod claims;
mod clock;
#[cfg(test)]
mod element_size_tests;
mod finding;
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
mod polling;
mod races;
mod record;
mod release_logs;
mod shadow;
#[cfg(test)]
mod tests;
mod versions;

use std::sync::atomic::{AtomicBool, Ordering};

pub use argument::Argument;
pub use claims::{Lines, Read};
pub use finding::{Finding, ThreadLocation};
pub use launch::{AccessRecord, Launch, LiveThread, Shape, Verdict};
pub use launch_parts::{FinishedParts, LaunchParts, Overlaps};
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
