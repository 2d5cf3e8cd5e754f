//! Sets of sectors: those that a block has loaded, and how often atomics update each.

use std::collections::HashMap;

/// The bits of a sector's number: addresses have 47 bits.
const SECTOR_BITS: u32 = 42;
/// The most entries of a [`Loaded`]: what is not in it then counts as loaded.
const MOST: usize = 1 << 22;

/// The sectors that a block has loaded: a hash table that a new block empties at once.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The number of the block and that of the sector.
    slots: Vec<u64>,
    len: usize,
    block: u64,
}

impl Loaded {
    pub(crate) fn new() -> Self {
        Self { slots: vec![0; 1024], len: 0, block: 1 }
    }

    /// Begins a block, which has loaded nothing.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.block += 1;
        if self.block >> (64 - SECTOR_BITS) != 0 {
            self.slots.fill(0);
            self.block = 1;
        }
    }

    /// Adds a sector. Returns whether it is new.
    pub(crate) fn insert(&mut self, sector: u64) -> bool {
        if 2 * self.len >= self.slots.len() {
            if self.slots.len() >= MOST {
                return false;
            }
            let bigger = vec![0; 4 * self.slots.len()];
            let old = std::mem::replace(&mut self.slots, bigger);
            self.len = 0;
            for slot in old {
                if slot >> SECTOR_BITS == self.block {
                    self.insert_slot(slot);
                }
            }
        }
        self.insert_slot(self.block << SECTOR_BITS | (sector & ((1 << SECTOR_BITS) - 1)))
    }

    fn insert_slot(&mut self, slot: u64) -> bool {
        let mask = self.slots.len() - 1;
        // Neighbors are next to each other, and arrays of rows are spread.
        let mut at = (slot ^ (slot & ((1 << SECTOR_BITS) - 1)) >> 10) as usize & mask;
        while self.slots[at] >> SECTOR_BITS == self.block {
            if self.slots[at] == slot {
                return false;
            }
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
        self.len += 1;
        true
    }
}

/// The most sectors of which [`Updates`] counts atomics. Later ones are not counted: those with many come early.
const MOST_UPDATED: usize = 1 << 16;

/// Atomics by sector. L2 executes rounds of one sector one after the other.
#[derive(Debug, Default)]
pub(crate) struct Updates {
    rounds: HashMap<u64, SectorAtomics>,
}

/// Rounds of atomics of one sector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SectorAtomics {
    /// Of integers.
    pub integer: u64,
    /// Of floats.
    pub float: u64,
}

impl SectorAtomics {
    /// The clocks for which L2 is busy with them: 1.2 for integers, 3.5 for floats, as measured on an H200 with sums.
    pub fn clocks(self) -> f64 {
        1.2 * self.integer as f64 + 3.5 * self.float as f64
    }
}

impl Updates {
    pub(crate) fn add(&mut self, sector: u64, rounds: u64, is_float: bool) {
        let has_room = self.rounds.len() < MOST_UPDATED;
        let sum = match self.rounds.get_mut(&sector) {
            Some(sum) => sum,
            None if has_room => self.rounds.entry(sector).or_default(),
            None => return,
        };
        *(if is_float { &mut sum.float } else { &mut sum.integer }) += rounds;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (sector, SectorAtomics { integer, float }) in &other.rounds {
            self.add(*sector, *integer, false);
            self.add(*sector, *float, true);
        }
    }

    pub(crate) fn scale(&mut self, scale: impl Fn(&mut u64)) {
        for SectorAtomics { integer, float } in self.rounds.values_mut() {
            scale(integer);
            scale(float);
        }
    }

    /// Those of the sector that is busy for longest.
    pub(crate) fn hottest(&self) -> SectorAtomics {
        self.rounds.values().copied().max_by(|a, b| a.clocks().total_cmp(&b.clocks())).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_loads_a_sector_once() {
        let mut loaded = Loaded::new();
        for round in 0..3 {
            let new = (0..5000_u64).filter(|n| loaded.insert(n * 128)).count();
            assert_eq!(new, if round == 0 { 5000 } else { 0 });
        }
        loaded.clear();
        assert!(loaded.insert(128) && !loaded.insert(128));
    }

    #[test]
    fn the_sector_with_the_most_rounds_is_hottest() {
        let (mut updates, mut other) = (Updates::default(), Updates::default());
        updates.add(7, 10, false);
        other.add(9, 4, true);
        updates.merge(&other);
        assert_eq!(updates.hottest(), SectorAtomics { integer: 0, float: 4 });
        updates.scale(|count| *count *= 3);
        assert_eq!(updates.hottest().float, 12);
    }
}
