//! Sets of sectors: those that a block has loaded, and how often atomics update each.

use std::collections::HashMap;

/// The bits of a line's number: addresses have 47 bits.
const LINE_BITS: u32 = 40;
/// The sectors of a line of 128 bytes.
const PER_LINE: usize = 4;

/// The sectors of a block that its part of L1 holds: a hash table of lines that a new block empties at once. The sector
/// that was loaded first is replaced first.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// At least two for each sector that fits; none if nothing is counted.
    slots: Vec<Slot>,
    /// The slots in use, also of sectors that were replaced.
    len: usize,
    block: u64,
    /// The sectors that fit, and those that were loaded.
    capacity: u64,
    loads: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// The number of the block and that of the line.
    key: u64,
    /// The number of the load of each sector, from 1.
    loads: [u64; PER_LINE],
}

impl Loaded {
    /// With room for some sectors; with 0, nothing is counted.
    pub(crate) fn new(capacity: u64) -> Self {
        let slots = if capacity == 0 { 0 } else { (2 * capacity as usize).next_power_of_two() };
        Self { slots: vec![Slot::default(); slots], len: 0, block: 1, capacity, loads: 0 }
    }

    /// Begins a block, which has loaded nothing.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.block += 1;
        if self.block >> (64 - LINE_BITS) != 0 {
            self.slots.fill(Slot::default());
            self.block = 1;
        }
    }

    /// Loads the sectors of some bytes in ascending order. Returns the number of those that L1 does not hold.
    pub(crate) fn load(&mut self, address: u64, size: u64) -> u64 {
        if self.capacity == 0 {
            return 0;
        }
        let (mut sector, last, mut new) = (address >> 5, (address + size - 1) >> 5, 0);
        while sector <= last {
            let line = sector / PER_LINE as u64;
            let at = self.slot(line);
            while sector <= last && sector / PER_LINE as u64 == line {
                let load = &mut self.slots[at].loads[sector as usize % PER_LINE];
                if *load == 0 || self.loads - *load >= self.capacity {
                    self.loads += 1;
                    *load = self.loads;
                    new += 1;
                }
                sector += 1;
            }
        }
        new
    }

    /// The slot of a line.
    fn slot(&mut self, line: u64) -> usize {
        if 4 * self.len >= 3 * self.slots.len() {
            self.drop_replaced();
        }
        let key = self.block << LINE_BITS | (line & ((1 << LINE_BITS) - 1));
        let at = self.find(key);
        if self.slots[at].key != key {
            self.len += 1;
            self.slots[at] = Slot { key, loads: [0; PER_LINE] };
        }
        at
    }

    /// Empties the slots of lines of which L1 holds no sector.
    fn drop_replaced(&mut self) {
        let empty = vec![Slot::default(); self.slots.len()];
        let old = std::mem::replace(&mut self.slots, empty);
        self.len = 0;
        for slot in old {
            let is_held = |load: &u64| *load != 0 && self.loads - load < self.capacity;
            if slot.key >> LINE_BITS == self.block && slot.loads.iter().any(is_held) {
                let at = self.find(slot.key);
                self.slots[at] = slot;
                self.len += 1;
            }
        }
    }

    /// The slot of a key: the one that has it, or the one for it.
    fn find(&self, key: u64) -> usize {
        let mask = self.slots.len() - 1;
        // Neighbors are next to each other, and rows of arrays are spread.
        let mut at = (key ^ (key & ((1 << LINE_BITS) - 1)) >> 8) as usize & mask;
        while self.slots[at].key >> LINE_BITS == self.block && self.slots[at].key != key {
            at = (at + 1) & mask;
        }
        at
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
        let mut loaded = Loaded::new(5000);
        for round in 0..3 {
            let new: u64 = (0..5000_u64).map(|n| loaded.load(4096 * n, 32)).sum();
            assert_eq!(new, if round == 0 { 5000 } else { 0 });
        }
        loaded.clear();
        assert!(loaded.load(4096, 1) == 1 && loaded.load(4096 + 31, 2) == 1 && loaded.load(4096, 64) == 0);
        // 300 bytes from the middle of a sector are in ten sectors, of which two are held.
        assert_eq!(loaded.load(4096 + 16, 300), 8);
    }

    #[test]
    fn a_full_cache_replaces_the_first_sector() {
        let mut loaded = Loaded::new(4);
        assert!(loaded.load(0, 128) == 4 && loaded.load(0, 32) == 0);
        assert!(loaded.load(128, 32) == 1 && loaded.load(0, 32) == 1 && loaded.load(64, 32) == 0);
        // Replaced sectors do not fill the table.
        let mut one = |sector: u64| loaded.load(sector * 32, 32) == 1;
        assert!((100..1000).all(&mut one) && !one(999) && one(100));
        assert!(loaded.slots.len() == 8 && Loaded::new(0).load(32, 32) == 0);
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
