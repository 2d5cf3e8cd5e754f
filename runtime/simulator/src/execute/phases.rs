//! A barrier in shared memory: its phases, the arrivals and bytes that the current one waits for, and the copies that are
//! not made yet.

use std::collections::VecDeque;

use super::copies::Copy;

/// The largest number of arrivals of a phase, and of bytes that it waits for.
const MOST: i64 = (1 << 20) - 1;

/// A barrier.
#[derive(Debug)]
pub(super) struct Barrier {
    /// The number of completed phases.
    phase: u64,
    /// The arrivals of each further phase.
    arrivals: u32,
    /// The arrivals that the current phase still waits for.
    pending: u32,
    /// The bytes that it still waits for. Negative if copies were made before they were expected.
    bytes: i64,
    /// Copies that are not made yet, the oldest first.
    pub(super) copies: VecDeque<Copy>,
}

impl Barrier {
    /// A barrier for a number of arrivals in each phase.
    pub(super) fn new(arrivals: u32) -> Result<Self, String> {
        if arrivals == 0 || i64::from(arrivals) > MOST {
            return Err(format!("a barrier in shared memory waits for 1 to {MOST} arrivals, not {arrivals}"));
        }
        Ok(Self { phase: 0, arrivals, pending: arrivals, bytes: 0, copies: VecDeque::new() })
    }

    /// What an arrival returns: the number of completed phases, and the arrivals that the phase waited for before.
    pub(super) fn state(&self) -> u64 {
        self.phase & u64::from(u32::MAX) | u64::from(self.pending) << 32
    }

    /// The arrivals of a state that the phase waited for.
    pub(super) fn pending_of_state(state: u64) -> u32 {
        (state >> 32) as u32
    }

    /// Whether the phase of a state has completed.
    pub(super) fn has_completed_state(&self, state: u64) -> bool {
        self.phase as u32 != state as u32
    }

    /// Whether the latest phase with a parity has completed.
    pub(super) fn has_completed_parity(&self, parity: u32) -> bool {
        self.phase & 1 != u64::from(parity & 1)
    }

    /// Whether the phase has all its arrivals, and waits only for bytes.
    pub(super) fn waits_for_bytes(&self) -> bool {
        self.pending == 0 && self.bytes > 0
    }

    /// The phase waits for further bytes.
    pub(super) fn expect(&mut self, bytes: u32) -> Result<(), String> {
        self.bytes += i64::from(bytes);
        if self.bytes > MOST {
            return Err(format!("a phase waits for more than {MOST} bytes"));
        }
        self.complete();
        Ok(())
    }

    /// Threads arrive. With `drops`, further phases wait for fewer arrivals.
    pub(super) fn arrive(&mut self, count: u32, drops: bool) -> Result<bool, String> {
        if count > self.pending {
            return Err(format!(
                "{count} arrivals at a barrier in shared memory whose phase waits for only {} more",
                self.pending
            ));
        }
        if drops {
            self.arrivals -= count;
        }
        self.pending -= count;
        Ok(self.complete())
    }

    /// Bytes have been copied. Returns whether the phase has completed.
    pub(super) fn add(&mut self, bytes: u64) -> bool {
        self.bytes -= bytes as i64;
        self.complete()
    }

    fn complete(&mut self) -> bool {
        let is_complete = self.pending == 0 && self.bytes == 0;
        if is_complete {
            self.phase += 1;
            self.pending = self.arrivals;
        }
        is_complete
    }

    /// What the phase lacks.
    pub(super) fn missing(&self) -> String {
        let copies = match self.copies.len() {
            0 => String::new(),
            1 => "; 1 copy has begun".to_owned(),
            n => format!("; {n} copies have begun"),
        };
        match (self.pending, self.bytes) {
            (pending, bytes @ ..0) => {
                format!("it lacks {pending} arrivals, and has {} bytes more than it expects", bytes.unsigned_abs())
            }
            (0, bytes) => format!("it lacks {bytes} bytes{copies}"),
            (pending, 0) => format!("it lacks {pending} arrivals"),
            (pending, bytes) => format!("it lacks {pending} arrivals and {bytes} bytes{copies}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_completes_by_arrivals_and_bytes() {
        let mut barrier = Barrier::new(2).expect("is a barrier");
        let state = barrier.state();
        assert!(barrier.has_completed_parity(1) && !barrier.has_completed_parity(0));
        barrier.expect(32).expect("is possible");
        assert_eq!((barrier.arrive(1, false), barrier.arrive(1, false)), (Ok(false), Ok(false)));
        assert!(barrier.waits_for_bytes() && !barrier.add(16) && barrier.add(16));
        assert!(barrier.has_completed_state(state) && barrier.has_completed_parity(0));
        // Bytes that come before they are expected complete nothing.
        assert!(!barrier.add(16));
        assert_eq!(barrier.arrive(2, false), Ok(false));
        assert_eq!(barrier.missing(), "it lacks 0 arrivals, and has 16 bytes more than it expects");
        barrier.expect(16).expect("is possible");
        assert!(barrier.has_completed_parity(1));
    }

    #[test]
    fn wrong_counts_are_errors() {
        assert!(Barrier::new(0).is_err() && Barrier::new(1 << 20).is_err());
        let mut barrier = Barrier::new(3).expect("is a barrier");
        assert!(barrier.arrive(4, false).is_err());
        assert_eq!((barrier.arrive(1, true), barrier.arrive(2, false)), (Ok(false), Ok(true)));
        assert_eq!(barrier.arrive(2, false), Ok(true));
        assert!(barrier.expect(1 << 20).is_err());
    }
}
