//! What is remembered of memory: the last write and some reads of each element.
//!
//! A page of shadow has cells of one size, that of the first access to the page; the first access that is smaller, or
//! does not lie at a multiple of it, makes them cells of a byte.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// Bytes of memory of a page.
const PAGE: u64 = 512;
/// Pages that are found at once.
const NEAR: usize = 256;

/// Of an access: it was atomic, and so among the threads of a block only.
pub(super) const ATOMIC: u8 = 1;
pub(super) const OF_BLOCK: u8 = 2;
/// An atomic step that writes: it is kept among the reads.
pub(super) const STEP: u8 = 4;

/// The last write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) block: u32,
    pub(super) epoch: u32,
    pub(super) thread: u16,
    /// One more than the site; 0 if there is no write.
    site: u16,
    /// The clock, and three bits of how.
    clock: u32,
}

/// Reads of some lanes of a warp at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reads {
    pub(super) block: u32,
    pub(super) epoch: u32,
    /// Which lanes; 0 if there is no read.
    pub(super) lanes: u32,
    pub(super) warp: u16,
    site: u16,
    clock: u32,
}

/// What is packed of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct When {
    pub(super) block: u32,
    pub(super) thread: u16,
    pub(super) epoch: u32,
    pub(super) clock: u32,
    pub(super) how: u8,
    pub(super) site: u32,
}

impl Write {
    pub(super) fn of(when: When) -> Self {
        let When { block, thread, epoch, clock, how, site } = when;
        Self { block, epoch, thread, site: packed(site), clock: clock << 3 | u32::from(how) }
    }

    pub(super) fn when(&self) -> Option<When> {
        let Self { block, epoch, thread, site, clock } = *self;
        let site = u32::from(site.checked_sub(1)?);
        Some(When { block, thread, epoch, clock: clock >> 3, how: (clock & 7) as u8, site })
    }
}

impl Reads {
    pub(super) fn of(when: When) -> Self {
        let When { block, thread, epoch, clock, how, site } = when;
        let (warp, lane) = (thread / 32, thread % 32);
        Self { block, epoch, lanes: 1 << lane, warp, site: packed(site), clock: clock << 3 | u32::from(how) }
    }

    /// Whether they are steps that write.
    pub(super) fn writes(&self) -> bool {
        self.clock & u32::from(STEP) != 0
    }

    /// Whether a read differs from these in its lane alone.
    pub(super) fn takes(&self, read: &Self) -> bool {
        Self { lanes: 0, ..*self } == Self { lanes: 0, ..*read }
    }

    /// Each of them.
    pub(super) fn each(self) -> impl Iterator<Item = When> {
        (0..32_u16).filter(move |lane| self.lanes >> lane & 1 == 1).map(move |lane| When {
            block: self.block,
            thread: self.warp * 32 + lane,
            epoch: self.epoch,
            clock: self.clock >> 3,
            how: (self.clock & 7) as u8,
            site: u32::from(self.site).saturating_sub(1),
        })
    }
}

fn packed(site: u32) -> u16 {
    u16::try_from(site + 1).unwrap_or(u16::MAX)
}

/// What is remembered of an element.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cell {
    pub(super) write: Write,
    pub(super) reads: [Reads; 2],
}

#[derive(Debug)]
struct Page {
    number: u64,
    /// Bytes of a cell, as a power of two.
    shift: u8,
    cells: Vec<Cell>,
}

/// Numbers of pages are spread well enough by a multiplication.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

/// A map by addresses.
pub(super) type ByAddress<T> = HashMap<u64, T, BuildHasherDefault<Spread>>;

/// What is remembered of all memory.
#[derive(Debug)]
pub(super) struct Shadow {
    pages: Vec<Page>,
    places: ByAddress<u32>,
    near: Box<[(u64, u32); NEAR]>,
}

impl Default for Shadow {
    fn default() -> Self {
        Self { pages: Vec::new(), places: ByAddress::default(), near: Box::new([(u64::MAX, 0); NEAR]) }
    }
}

impl Shadow {
    /// Forgets everything: what comes is behind all that was.
    pub(super) fn clear(&mut self) {
        for page in &mut self.pages {
            page.cells.fill(Cell::default());
        }
    }

    /// Forgets what was done with a range, which belongs to somebody else now.
    pub(super) fn forget(&mut self, start: u64, bytes: u64) {
        for number in start / PAGE..start.saturating_add(bytes).div_ceil(PAGE) {
            if let Some(&at) = self.places.get(&number)
                && let Some(page) = self.pages.get_mut(at as usize)
            {
                page.cells.fill(Cell::default());
            }
        }
    }

    /// The cells of an access of up to eight bytes, one after the other, and whether there are more; `at` is the byte to go
    /// on with.
    pub(super) fn cells(&mut self, address: u64, bytes: u64) -> &mut [Cell] {
        let number = address / PAGE;
        let slot = (number as usize) % NEAR;
        let at = if self.near[slot].0 == number {
            self.near[slot].1
        } else {
            let at = self.page(number, address, bytes);
            self.near[slot] = (number, at);
            at
        };
        let Some(page) = self.pages.get_mut(at as usize) else { return &mut [] };
        let offset = address % PAGE;
        let size = 1 << page.shift;
        if page.shift > 0 && (bytes < size || !offset.is_multiple_of(size)) {
            page.split();
        }
        let first = (offset >> page.shift) as usize;
        let behind = ((offset + bytes).min(PAGE).div_ceil(1 << page.shift)) as usize;
        page.cells.get_mut(first..behind).unwrap_or_default()
    }

    /// How many of an access's bytes lie in the page of its first.
    pub(super) fn in_page(address: u64, bytes: u64) -> u64 {
        bytes.min(PAGE - address % PAGE)
    }

    fn page(&mut self, number: u64, address: u64, bytes: u64) -> u32 {
        let pages = &mut self.pages;
        *self.places.entry(number).or_insert_with(|| {
            let is_whole = bytes.is_power_of_two() && address.is_multiple_of(bytes);
            let shift = if is_whole { bytes.trailing_zeros().min(3) as u8 } else { 0 };
            pages.push(Page { number, shift, cells: vec![Cell::default(); (PAGE >> shift) as usize] });
            (pages.len() - 1) as u32
        })
    }
}

impl Page {
    /// Makes cells of a byte.
    fn split(&mut self) {
        debug_assert!(self.shift > 0, "page {} has cells of a byte", self.number);
        let each = 1 << self.shift;
        self.cells = self.cells.iter().flat_map(|cell| std::iter::repeat_n(*cell, each)).collect();
        self.shift = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{Shadow, When, Write};

    #[test]
    fn cells_have_the_size_of_accesses() {
        let mut shadow = Shadow::default();
        assert_eq!(shadow.cells(4096, 4).len(), 1);
        let when = When { block: 1, thread: 2, epoch: 3, clock: 4, how: 1, site: 5 };
        shadow.cells(4096, 4)[0].write = Write::of(when);
        assert_eq!(shadow.cells(4100, 4)[0].write.when(), None);
        // A byte of it: each byte has what the element had.
        let cells = shadow.cells(4098, 1);
        assert_eq!((cells.len(), cells[0].write.when()), (1, Some(when)));
        assert_eq!(shadow.cells(4096, 8).len(), 8);
        shadow.forget(4096, 1);
        assert_eq!(shadow.cells(4096, 4)[0].write.when(), None);
        // Accesses of eight bytes to elements of four.
        assert_eq!(shadow.cells(8192, 4).len(), 1);
        assert_eq!(shadow.cells(8192, 8).len(), 2);
        assert_eq!(Shadow::in_page(510, 8), 2);
    }
}
