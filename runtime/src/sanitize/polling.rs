//! Threads that poll memory in loops: detects which threads wait, and whether anything changes for them.
//!
//! A thread waits, as far as the sanitizer can see, if it pauses in a loop, has read since its last pause the same
//! values at the same addresses as before, and has changed nothing. That only decides how many iterations it runs until
//! it yields: one for a waiting thread, dozens for another. Whether all threads wait forever is decided by the launch,
//! which then [inspects](Launch::look) all accesses.

use weft_artifact::AccessBits;

use super::launch::{AccessRecord, Launch, LiveThread};

/// The most addresses that a waiting loop polls.
const RECENT: usize = 4;

/// Iterations of its loops after which a thread yields, at first and at most.
pub const FIRST_ITERATIONS: u64 = 4;
const MOST_ITERATIONS: u64 = 64;

/// An address that a thread has polled.
#[derive(Clone, Copy, Debug, Default)]
struct PolledLocation {
    /// Its address and its bytes.
    at: (u64, u32),
    /// The value there, if it was polled twice.
    value: Option<u64>,
}

/// A thread's polled addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// Its last accesses: a waiting thread polls the same addresses repeatedly.
    recent: [PolledLocation; RECENT],
    /// It reported an access since its last pause.
    looks: bool,
    /// One of them changed something, or found it changed, or was at another address.
    stirs: bool,
    /// How many iterations of its loops it has.
    iterations: u64,
}

impl Default for Look {
    fn default() -> Self {
        Self { recent: [PolledLocation::default(); RECENT], looks: false, stirs: false, iterations: FIRST_ITERATIONS }
    }
}

impl Look {
    /// An access to an address. Returns the value there if the address is known. A new address is not read: it may be
    /// unmapped, which the access itself detects.
    #[inline]
    fn at(&mut self, at: (u64, u32), read: impl Fn() -> u64) -> Option<u64> {
        self.looks = true;
        if let Some(known) = self.recent.iter_mut().find(|known| known.at == at) {
            let value = read();
            self.stirs |= known.value.replace(value) != Some(value);
            return Some(value);
        }
        self.stirs = true;
        self.recent.rotate_right(1);
        self.recent[0] = PolledLocation { at, value: None };
        None
    }

    /// Whether it waits, of a thread that pauses.
    fn pause(&mut self) -> bool {
        let waits = self.looks && !self.stirs;
        (self.looks, self.stirs) = (false, false);
        self.iterations = if waits { 1 } else { (self.iterations * 2).clamp(FIRST_ITERATIONS, MOST_ITERATIONS) };
        waits
    }
}

/// The state of a thread that yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// It waits, as far as can be seen.
    pub waits: bool,
    /// How many iterations of its loops it has until it pauses again.
    pub iterations: u64,
}

impl Launch {
    /// An access of a thread that has a stack; `read` returns the value before it.
    #[inline]
    pub(super) fn record_poll(&mut self, caller: LiveThread, record: AccessRecord, read: impl Fn() -> u64) {
        let AccessRecord { address, bits, value, .. } = record;
        let Some(thread) = self.thread(caller) else { return };
        let Some(before) = thread.look.at((address, bits & AccessBits::SIZE), read) else {
            self.changes += u64::from(self.looks);
            return;
        };
        let is_step = bits & AccessBits::ATOMIC != 0;
        let changes = !is_step && bits & AccessBits::WRITES != 0 && before != value;
        thread.look.stirs |= changes;
        if self.looks {
            self.changes += u64::from(changes);
            if is_step {
                self.changes += u64::from(self.seen.insert(address, before) != Some(before));
            }
        }
    }

    /// A thread yields in a loop. One that reads no memory makes progress by itself.
    pub fn paused(&mut self, caller: LiveThread) -> Pause {
        let looks = self.looks;
        let Some(thread) = self.thread(caller) else { return Pause { waits: false, iterations: MOST_ITERATIONS } };
        let (waits, has_looked) = (thread.look.pause(), thread.has_looked());
        // Where nothing changes it is seen sooner so that all wait for ever.
        let iterations = if looks { MOST_ITERATIONS } else { thread.look.iterations };
        if !has_looked {
            self.changes += 1;
        }
        Pause { waits, iterations }
    }

    /// The number of detected changes that a thread may wait for.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Sets whether accesses are inspected for changes that a thread may wait for.
    pub fn look(&mut self, looks: bool) {
        if looks != std::mem::replace(&mut self.looks, looks) {
            (0..self.blocks.len()).for_each(|slot| self.show_block(slot));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FIRST_ITERATIONS, Look, MOST_ITERATIONS};

    #[test]
    fn who_finds_what_was_there_waits() {
        let mut look = Look::default();
        let at = |look: &mut Look, place, value| look.at((place, 4), || value);
        assert!(!look.pause());
        assert_eq!((look.at((8, 4), || panic!("it is not read")), at(&mut look, 16, 1)), (None, None));
        assert!(!look.pause());
        assert_eq!((at(&mut look, 8, 1), at(&mut look, 16, 1)), (Some(1), Some(1)));
        assert!(!look.pause());
        for _ in 0..3 {
            at(&mut look, 8, 1);
            at(&mut look, 16, 1);
            assert!(look.pause());
            assert_eq!(look.iterations, 1);
        }
        at(&mut look, 8, 2);
        assert!(!look.pause());
        at(&mut look, 24, 0);
        at(&mut look, 24, 0);
        assert!(!look.pause());
        // A thread that polls nothing computes.
        let iterations = [0; 5].map(|_| {
            assert!(!look.pause());
            look.iterations
        });
        assert_eq!(iterations, [16, 32, MOST_ITERATIONS, MOST_ITERATIONS, MOST_ITERATIONS]);
        at(&mut look, 24, 0);
        assert!(look.pause());
        at(&mut look, 24, 1);
        assert!(!look.pause());
        assert_eq!(look.iterations, FIRST_ITERATIONS);
    }
}
