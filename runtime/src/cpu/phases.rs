//! Barriers in shared memory, and the copies that they count. A phase of a barrier completes when all its arrivals and
//! all its bytes have come.
//!
//! A copy is made as late as possible: where a thread waits for a phase in which only bytes are missing. A program that
//! reads without waiting thus reads what was there before.

use std::collections::VecDeque;

use super::boxes::{self, BoxAt};
use crate::sanitize::{PhaseState, Range};

/// A copy that is not made yet.
#[derive(Clone, Copy, Debug)]
pub(super) enum BulkCopy {
    /// Of contiguous bytes.
    Bytes {
        /// The address to copy to.
        to: u64,
        /// The address to copy from.
        from: u64,
        /// The number of bytes.
        bytes: u64,
    },
    /// Of a box of an array.
    Box {
        /// The address to copy to.
        to: u64,
        /// The box.
        from: BoxAt,
    },
}

/// A barrier.
#[derive(Debug, Default)]
pub(super) struct Barrier {
    /// The number of completed phases.
    phase: u64,
    /// The number of arrivals in each phase.
    arrivals: u64,
    /// The number of arrivals that the current phase still waits for.
    missing: u64,
    /// The number of bytes that it still waits for. Negative if copies have been made before they were expected.
    bytes: i64,
    /// The copies that are not made yet, the oldest first.
    copies: VecDeque<BulkCopy>,
    /// The block has synchronized with the other blocks of its cluster since it made the barrier, so that they may use it.
    pub(super) is_synchronized: bool,
    /// The addresses to which copies were made since the last [`Self::take_made`].
    made: Vec<u64>,
}

impl Barrier {
    /// A barrier for a number of arrivals in each phase.
    pub(super) fn new(arrivals: u64) -> Self {
        Self { arrivals, missing: arrivals, ..Self::default() }
    }

    /// A thread is about to arrive. An arrival follows a wait for the phase before, unless the program has too many arrivals.
    /// Then only the copies may be missing.
    pub(super) fn complete_before_arrival(&mut self) {
        if self.missing == 0 {
            self.complete_by_copies();
        }
    }

    /// A thread arrives, and the phase waits for further bytes.
    pub(super) fn arrive(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add_unsigned(bytes);
        self.missing = self.missing.saturating_sub(1);
        self.complete();
    }

    /// A thread begins a copy.
    pub(super) fn begin(&mut self, copy: BulkCopy) {
        self.copies.push_back(copy);
    }

    /// Makes the copies for which alone the phase waits. Returns whether it has completed.
    pub(super) fn complete_by_copies(&mut self) -> bool {
        if self.missing > 0 || self.bytes <= 0 {
            return false;
        }
        while self.bytes > 0 {
            let Some(copy) = self.copies.pop_front() else { return false };
            let bytes = copy.make();
            self.made.push(copy.target());
            self.bytes = self.bytes.saturating_sub_unsigned(bytes);
        }
        self.complete()
    }

    fn complete(&mut self) -> bool {
        let is_complete = self.arrivals > 0 && self.missing == 0 && self.bytes == 0;
        if is_complete {
            self.phase += 1;
            self.missing = self.arrivals;
        }
        is_complete
    }

    /// The addresses to which copies were made since the last call.
    pub(super) fn take_made(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.made)
    }

    /// Its state, for the sanitizer.
    pub(super) const fn state(&self) -> PhaseState {
        PhaseState { completed: self.phase, arrivals: self.arrivals, missing: self.missing, bytes: self.bytes }
    }

    /// Whether the latest phase of this parity has completed.
    pub(super) fn has_completed(&self, parity: u64) -> bool {
        self.phase & 1 != parity & 1
    }
}

impl BulkCopy {
    /// The copy to an address at a distance, in the memory of another block.
    pub(super) fn at_distance(self, distance: u64) -> Self {
        match self {
            Self::Bytes { to, from, bytes } => Self::Bytes { to: to.wrapping_add(distance), from, bytes },
            Self::Box { to, from } => Self::Box { to: to.wrapping_add(distance), from },
        }
    }

    /// The address to copy to.
    pub(super) const fn target(self) -> u64 {
        match self {
            Self::Bytes { to, .. } | Self::Box { to, .. } => to,
        }
    }

    /// The range that it writes, and those that it reads.
    pub(super) fn ranges(self) -> (Range, Vec<Range>) {
        match self {
            Self::Bytes { to, from, bytes } => ((to, bytes), vec![(from, bytes)]),
            Self::Box { to, from } => {
                let map = from.map();
                ((to, map.box_bytes()), map.ranges(from.indices))
            }
        }
    }

    /// Copies. Returns the number of bytes.
    fn make(self) -> u64 {
        match self {
            Self::Bytes { to, from, bytes } => {
                boxes::copy(to, from, bytes as usize);
                bytes
            }
            Self::Box { to, from } => {
                let map = from.map();
                boxes::load(to, &map, from.indices);
                map.box_bytes()
            }
        }
    }
}
