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
mod calls;
mod claims;
mod clock;
mod finding;
mod found;
mod idle;
mod kinds;
mod launch;
mod logs;
mod meet;
pub mod memory;
mod numbers;
mod packed;
mod page;
mod parts;
#[cfg(test)]
mod parts_tests;
mod races;
mod record;
mod shadow;
#[cfg(test)]
mod sizes;
#[cfg(test)]
mod tests;
mod versions;
mod waits;

use std::sync::atomic::{AtomicBool, Ordering};

pub use argument::Argument;
pub use claims::{Lines, Read};
pub use finding::{Finding, Place};
pub use launch::{Launch, Shape, Told, Verdict, Who};
pub use parts::{Leaving, Overlaps, Parts};
pub use waits::{FEW_TURNS, Pause};

static REPORT_BENIGN_RACES: AtomicBool = AtomicBool::new(true);

/// Sets whether benign races are reported: those in which a thread writes the value that is there already.
pub fn report_benign_races(report: bool) {
    REPORT_BENIGN_RACES.store(report, Ordering::Relaxed);
}

/// Whether benign races are reported.
pub fn reports_benign_races() -> bool {
    REPORT_BENIGN_RACES.load(Ordering::Relaxed)
}
