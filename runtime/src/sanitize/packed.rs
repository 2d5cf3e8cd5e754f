//! Packed cells for one or two bytes of memory: equal accesses are stored once for all cells of a page.
//!
//! The accesses of a warp's lanes at one source location between two barriers are an *event*. A cell stores the number
//! of an event in its page and the lane, in 16 bits: most cells of an array of bytes differ in the lane alone. Reads by
//! several lanes are events with a lane mask. So a page takes two to six bytes for each cell, and 20 for each event, of
//! which it has at most as many as fit into 16 bytes per byte: events that no cell refers to are dropped when new ones
//! need their room.
//!
//! Sanitized code also reads and changes cells, where the event of an access is known: `inline_checks.ll` of the compiler's
//! host back end implements the same.

use super::{
    page::PAGE,
    record::{Reads, Write},
    shadow::{ByNumber, address_of},
};

/// The most events of a page: with its cells and other state they take 16 bytes per byte.
const fn most_events(n_cells: usize) -> usize {
    (16 * PAGE as usize - 3 * size_of::<u16>() * n_cells - 600) / size_of::<Reads>()
}

/// The number of events of a page at which unreferenced ones are searched for.
const MANY_EVENTS: usize = 256;

/// The initial capacity for a page's events.
const FEW_EVENTS: usize = 32;

/// The directory slot of the last event of a site, a warp and lanes.
const SLOTS: usize = 128;

/// Bits of a lane in a cell.
const LANE_BITS: u32 = 5;

/// A page has more events than it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

/// The part of a page by which compiled code finds the number of an event, and adds one.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Directory {
    /// The address of the events.
    events: u64,
    /// The number of events, and the capacity.
    n_events: u32,
    room: u32,
    /// The numbers of some of them; 0 is an empty slot.
    slots: [u16; SLOTS],
}

/// The state of a page.
#[derive(Debug)]
pub(super) struct Packed {
    directory: Directory,
    /// By number, with spare capacity. An event without a lane mask is of the lane in the cell.
    events: Vec<Reads>,
    n_cells: usize,
    /// Empty, or a number and a lane for each cell.
    writes: Vec<u16>,
    /// The first ones of all cells, and then the second ones.
    reads: Vec<u16>,
}

/// The slot of an event in a directory: compiled code computes the same for events without a lane mask.
#[inline]
const fn slot(event: &Reads) -> usize {
    let spread = event.lanes.wrapping_mul(0x9e37_79b9) >> 25;
    event.spot_bits().wrapping_add(event.warp()).wrapping_add(spread) as usize % SLOTS
}

impl Packed {
    /// Cells without state.
    pub(super) fn of(n_cells: usize) -> Self {
        let directory = Directory { events: 0, n_events: 1, room: 0, slots: [0; SLOTS] };
        let mut packed = Self { directory, events: Vec::new(), n_cells, writes: Vec::new(), reads: Vec::new() };
        packed.set_room(FEW_EVENTS);
        packed
    }

    pub(super) const fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The writes of all cells, if there are any.
    pub(super) fn writes(&self) -> Option<&[u16]> {
        Some(self.writes.as_slice()).filter(|writes| !writes.is_empty())
    }

    /// The reads of all cells, if there are any: the second ones follow the first ones.
    pub(super) fn all_reads(&self) -> Option<&[u16]> {
        Some(self.reads.as_slice()).filter(|reads| !reads.is_empty())
    }

    /// The event of a cell.
    #[inline]
    fn event(&self, cell: u16) -> Reads {
        let number = usize::from(cell >> LANE_BITS);
        let event = self.events.get(number).copied().unwrap_or_default();
        if number == 0 || event.lanes != 0 { event } else { Reads { lanes: 1 << (cell & 31), ..event } }
    }

    pub(super) fn write(&self, cell: usize) -> Write {
        let event = self.event(self.writes.get(cell).copied().unwrap_or(0));
        event.each().next().map_or_else(Write::default, |when| Write::of(&when))
    }

    pub(super) fn reads(&self, which: usize, cell: usize) -> Reads {
        self.event(self.reads.get(which * self.n_cells + cell).copied().unwrap_or(0))
    }

    /// Each access in a cell, and whether it is the last write. Lanes are not identified.
    pub(super) fn each(&self, mut each: impl FnMut(usize, &Reads, bool)) {
        let mut visit = |cell: usize, said: u16, is_write: bool| {
            let number = usize::from(said >> LANE_BITS);
            if let Some(event) = self.events.get(number).filter(|_| number != 0) {
                each(cell, event, is_write);
            }
        };
        self.writes.iter().enumerate().for_each(|(cell, &said)| visit(cell, said, true));
        self.reads.iter().enumerate().for_each(|(at, &said)| visit(at % self.n_cells, said, false));
    }

    pub(super) fn set_write(&mut self, cell: usize, write: Write, first: u32) -> Result<(), Full> {
        let number = if write == Write::default() { 0 } else { self.cell(Reads::of(&write.when()), first)? };
        if self.writes.is_empty() {
            self.writes = vec![0; self.n_cells];
        }
        if let Some(kept) = self.writes.get_mut(cell) {
            *kept = number;
        }
        self.clear_reads(cell);
        Ok(())
    }

    pub(super) fn set_reads(&mut self, which: usize, cell: usize, reads: Reads, first: u32) -> Result<(), Full> {
        let number = self.cell(reads, first)?;
        if self.reads.is_empty() {
            self.reads = vec![0; self.n_cells * 2];
        }
        if let Some(kept) = self.reads.get_mut(which * self.n_cells + cell) {
            *kept = number;
        }
        Ok(())
    }

    pub(super) fn forget(&mut self, cell: usize) {
        if let Some(write) = self.writes.get_mut(cell) {
            *write = 0;
        }
        self.clear_reads(cell);
    }

    fn clear_reads(&mut self, cell: usize) {
        for which in 0..2 {
            if let Some(reads) = self.reads.get_mut(which * self.n_cells + cell) {
                *reads = 0;
            }
        }
    }

    /// The cell for accesses.
    #[inline]
    fn cell(&mut self, reads: Reads, first: u32) -> Result<u16, Full> {
        let (event, lane) = if reads.lanes.is_power_of_two() {
            (Reads { lanes: 0, ..reads }, reads.lanes.trailing_zeros() as u16)
        } else {
            (reads, 0)
        };
        Ok(self.number(event, first)? << LANE_BITS | lane)
    }

    /// The number of an event.
    fn number(&mut self, event: Reads, first: u32) -> Result<u16, Full> {
        let slot = slot(&event);
        let known = self.directory.slots[slot];
        if self.events.get(usize::from(known)) == Some(&event) {
            return Ok(known);
        }
        if self.directory.n_events == self.directory.room {
            self.make_room(first)?;
        }
        Ok(self.add(event))
    }

    /// Adds an event, for which there is room.
    fn add(&mut self, event: Reads) -> u16 {
        let number = self.directory.n_events;
        if let Some(place) = self.events.get_mut(number as usize) {
            *place = event;
        }
        self.directory.n_events += 1;
        self.directory.slots[slot(&event)] = number as u16;
        number as u16
    }

    fn set_room(&mut self, n_events: usize) {
        self.events.reserve_exact(n_events - self.events.len());
        self.events.resize(n_events, Reads::default());
        (self.directory.events, self.directory.room) = (address_of(&self.events), n_events as u32);
    }

    /// Grows the capacity for events.
    #[cold]
    fn make_room(&mut self, first: u32) -> Result<(), Full> {
        if self.events.len() >= MANY_EVENTS {
            self.collect(first);
        }
        let room = self.events.len();
        if self.directory.n_events as usize > room / 4 * 3 {
            // Most are needed: more room, or none that would last.
            let wanted = (room * 2).min(most_events(self.n_cells));
            if wanted <= room {
                return Err(Full);
            }
            self.set_room(wanted);
        }
        Ok(())
    }

    /// Drops events that no cell refers to, and those of finished blocks; the rest remain unique.
    fn collect(&mut self, first: u32) {
        let before = self.events.clone();
        let (mut writes, mut reads) = (std::mem::take(&mut self.writes), std::mem::take(&mut self.reads));
        (self.directory.n_events, self.directory.slots) = (1, [0; SLOTS]);
        let mut numbers: Vec<Option<u16>> = vec![None; before.len()];
        let mut known: ByNumber<Reads, u16> = ByNumber::default();
        for cell in writes.iter_mut().chain(reads.iter_mut()).filter(|cell| **cell >> LANE_BITS != 0) {
            let at = usize::from(*cell >> LANE_BITS);
            let Some((event, number)) = before.get(at).zip(numbers.get_mut(at)) else { continue };
            let number = *number.get_or_insert_with(|| {
                if event.block < first { 0 } else { *known.entry(*event).or_insert_with(|| self.add(*event)) }
            });
            *cell = if number == 0 { 0 } else { number << LANE_BITS | *cell & 31 };
        }
        (self.writes, self.reads) = (writes, reads);
    }

    /// The number of cells after one that equal it.
    #[inline]
    pub(super) fn alike(&self, cells: std::ops::Range<usize>) -> usize {
        let said = |cell: usize| {
            let reads = |which: usize| self.reads.get(which * self.n_cells + cell);
            (self.writes.get(cell), reads(0), reads(1))
        };
        let first = said(cells.start);
        cells.clone().find(|&cell| said(cell) != first).unwrap_or(cells.end)
    }

    /// Stores the value of the first cell in all of them.
    #[inline]
    pub(super) fn copy_first(&mut self, cells: std::ops::Range<usize>) {
        let Self { writes, reads, n_cells, .. } = self;
        if let Some(writes) = writes.get_mut(cells.clone()) {
            let first = writes[0];
            writes.fill(first);
        }
        for which in 0..2 {
            let from = which * *n_cells;
            if let Some(reads) = reads.get_mut(from + cells.start..from + cells.end) {
                let first = reads[0];
                reads.fill(first);
            }
        }
    }

    /// Bytes that it takes.
    pub(super) fn size(&self) -> usize {
        let cells = (self.writes.capacity() + self.reads.capacity()) * size_of::<u16>();
        size_of::<Self>() + cells + self.events.capacity() * size_of::<Reads>()
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::{Directory, Full, Packed, SLOTS, most_events, slot};
    use crate::sanitize::record::{Reads, Spot, When, Write};

    fn when(block: u32, thread: u32, site: u32) -> When {
        When { block, thread, epoch: 3, clock: 1, how: 0, spot: Spot::new(site, 0) }
    }

    #[test]
    fn cells_say_what_they_were_told() {
        let mut packed = Packed::of(2048);
        for cell in 0..2048 {
            let at = when(7, cell as u32 % 256, 5);
            assert_eq!(packed.set_reads(1, cell, Reads::of(&at), 0), Ok(()));
            assert_eq!(packed.set_write(cell, Write::of(&at), 0), Ok(()));
            let both = Reads { lanes: 5 << (cell % 29), ..Reads::of(&at) };
            assert_eq!(packed.set_reads(0, cell, both, 0), Ok(()));
            assert_eq!(packed.set_reads(1, cell, Reads::of(&at), 0), Ok(()));
        }
        for cell in 0..2048 {
            let at = when(7, cell as u32 % 256, 5);
            assert_eq!((packed.write(cell), packed.reads(1, cell)), (Write::of(&at), Reads::of(&at)));
            assert_eq!(packed.reads(0, cell).lanes, 5 << (cell % 29));
        }
        // A write forgets the reads.
        assert_eq!(packed.set_write(9, Write::of(&when(8, 1, 6)), 0), Ok(()));
        assert_eq!((packed.write(9).block, packed.reads(0, 9).lanes, packed.reads(1, 9).lanes), (8, 0, 0));
        packed.forget(9);
        assert_eq!(packed.write(9), Write::default());
        assert!(packed.size() < 2048 * 16);
    }

    #[test]
    fn events_that_no_cell_has_are_forgotten() {
        let mut packed = Packed::of(2048);
        for turn in 1..100_000 {
            assert_eq!(packed.set_write(turn as usize % 700, Write::of(&when(turn, 40, turn)), 0), Ok(()));
        }
        assert!((99_300..100_000).all(|turn| packed.write(turn as usize % 700) == Write::of(&when(turn, 40, turn))));
        assert!(packed.events.capacity() <= most_events(2048));
        // Slots of finished blocks are empty, or still there.
        for turn in 100_000..200_000_u32 {
            assert_eq!(packed.set_write(turn as usize % 2048, Write::of(&when(turn, 40, turn)), turn - 600), Ok(()));
        }
        assert!((199_400..200_000_u32).all(|turn| packed.write(turn as usize % 2048).block == turn));
        // More than it can have.
        let mut set = |turn: u32| packed.set_write(turn as usize % 2048, Write::of(&when(turn, 40, turn)), 0);
        assert!((300_000..302_048).any(|turn| set(turn) == Err(Full)));
    }

    /// As `inline_checks.ll` counts.
    #[test]
    fn fields_lie_where_code_looks() {
        assert_eq!((offset_of!(Directory, events), offset_of!(Directory, slots), SLOTS), (0, 16, 128));
        assert_eq!((offset_of!(Directory, n_events), offset_of!(Directory, room)), (8, 12));
        let event = Reads { lanes: 0, ..Reads::of(&when(1, 33, 250)) };
        assert_eq!(slot(&event), (250 + 1) % 128);
    }
}
