//! Sets of sectors: those that a block has loaded, and how often atomics update each.

use std::collections::HashMap;

/// The bits of a sector's number: addresses have 47 bits.
const SECTOR_BITS: u32 = 42;
/// The sectors of a block that its part of L1 holds: a hash table that a new block empties at once. The sector that was
/// loaded first is replaced first.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// At least four for each sector that fits; none if nothing is counted.
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
    /// The number of the block and that of the sector.
    key: u64,
    /// The number of its load.
    load: u64,
}

impl Loaded {
    /// With room for some sectors; with 0, nothing is counted.
    pub(crate) fn new(capacity: u64) -> Self {
        let slots = if capacity == 0 { 0 } else { (4 * capacity as usize).next_power_of_two() };
        Self { slots: vec![Slot::default(); slots], len: 0, block: 1, capacity, loads: 0 }
    }

    /// Begins a block, which has loaded nothing.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.block += 1;
        if self.block >> (64 - SECTOR_BITS) != 0 {
            self.slots.fill(Slot::default());
            self.block = 1;
        }
    }

    /// Loads a sector. Returns whether L1 does not hold it.
    pub(crate) fn insert(&mut self, sector: u64) -> bool {
        if self.capacity == 0 {
            return false;
        }
        if 2 * self.len >= self.slots.len() {
            self.drop_replaced();
        }
        let key = self.block << SECTOR_BITS | (sector & ((1 << SECTOR_BITS) - 1));
        let at = self.find(key);
        let slot = self.slots[at];
        if slot.key == key && self.is_held(slot) {
            return false;
        }
        self.len += usize::from(slot.key != key);
        self.loads += 1;
        self.slots[at] = Slot { key, load: self.loads };
        true
    }

    /// Whether L1 holds a sector that the block has loaded.
    fn is_held(&self, slot: Slot) -> bool {
        slot.key >> SECTOR_BITS == self.block && self.loads - slot.load < self.capacity
    }

    /// Empties the slots of sectors that L1 no longer holds.
    fn drop_replaced(&mut self) {
        let empty = vec![Slot::default(); self.slots.len()];
        let old = std::mem::replace(&mut self.slots, empty);
        self.len = 0;
        for slot in old.into_iter().filter(|slot| self.is_held(*slot)).collect::<Vec<_>>() {
            let at = self.find(slot.key);
            self.slots[at] = slot;
            self.len += 1;
        }
    }

    /// The slot of a key: the one that has it, or the one for it.
    fn find(&self, key: u64) -> usize {
        let mask = self.slots.len() - 1;
        // Neighbors are next to each other, and rows of arrays are spread.
        let mut at = (key ^ (key & ((1 << SECTOR_BITS) - 1)) >> 10) as usize & mask;
        while self.slots[at].key >> SECTOR_BITS == self.block && self.slots[at].key != key {
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
            let new = (0..5000_u64).filter(|n| loaded.insert(n * 128)).count();
            assert_eq!(new, if round == 0 { 5000 } else { 0 });
        }
        loaded.clear();
        assert!(loaded.insert(128) && !loaded.insert(128));
    }

    #[test]
    fn a_full_cache_replaces_the_first_sector() {
        let mut loaded = Loaded::new(4);
        assert!((0..4).all(|sector| loaded.insert(sector)) && !loaded.insert(0));
        assert!(loaded.insert(4) && loaded.insert(0) && !loaded.insert(2));
        // Replaced sectors do not fill the table.
        assert!((100..1000).all(|sector| loaded.insert(sector)) && !loaded.insert(999) && loaded.insert(100));
        assert!(loaded.slots.len() == 16 && !Loaded::new(0).insert(1));
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
