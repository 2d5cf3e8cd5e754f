//! The kinds of accesses to each byte of a page in a launch.

use std::ops::Range;

use super::{
    page::PAGE,
    record::{ATOMIC, OF_BLOCK, STEP},
};

/// A bit for each kind of access that a byte had.
#[derive(Debug)]
pub(super) struct Kinds([u8; PAGE as usize]);

/// Of a byte.
const WRITE: u8 = 1;
const READ: u8 = 2;
/// Atomic operations that write, and those that only read.
const STEPS: u8 = 4;
const ATOMIC_READ: u8 = 8;

/// Of reads and steps, by how they are.
pub(super) const fn of_reads(how: u32) -> u8 {
    if how & OF_BLOCK != 0 {
        // For another block it is as a plain one.
        return if how & STEP != 0 { WRITE } else { READ };
    }
    match (how & ATOMIC != 0, how & STEP != 0) {
        (true, true) => STEPS,
        (true, false) => ATOMIC_READ,
        (false, true) => WRITE,
        (false, false) => READ,
    }
}

/// Of a plain write.
pub(super) const OF_WRITE: u8 = WRITE;

impl Kinds {
    /// Of bytes that had none.
    pub(super) const fn none() -> Self {
        Self([0; PAGE as usize])
    }

    /// Adds kinds to bytes.
    #[inline]
    pub(super) fn add(&mut self, bytes: Range<usize>, kinds: u8) {
        for byte in self.0.get_mut(bytes).into_iter().flatten() {
            *byte |= kinds;
        }
    }

    /// Adds those of another part.
    pub(super) fn join(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(all, own)| *all |= own);
    }

    /// Whether there may be a race between two parts: both have accessed a byte, and not only by reads, or only by
    /// atomic operations.
    pub(super) fn conflict_with(&self, other: &Self) -> bool {
        let is_race = |(&one, &two): (&u8, &u8)| {
            let all = one | two;
            let is_fine = all & !(READ | ATOMIC_READ) == 0 || all & !(STEPS | ATOMIC_READ) == 0;
            u8::from(one != 0 && two != 0 && !is_fine)
        };
        // Without a branch, as most have none.
        self.0.iter().zip(&other.0).map(is_race).fold(0, |any, race| any | race) != 0
    }

    /// The next bytes from one on that had any.
    pub(super) fn next_range(&self, from: usize) -> Option<Range<usize>> {
        let start = from + self.0.get(from..)?.iter().position(|kinds| *kinds != 0)?;
        let len = self.0.get(start..)?.iter().position(|kinds| *kinds == 0);
        Some(start..len.map_or(self.0.len(), |len| start + len))
    }
}
