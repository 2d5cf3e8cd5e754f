//! What is remembered of memory: the last write and some reads of each element.
//!
//! A page of shadow has cells of one size, that of the first access to the page; the first access that is smaller, or
//! does not lie at a multiple of it, makes them cells of a byte. Writes and reads lie apart, so that what is only read or only
//! written takes no more than it needs. Nothing is ever cleared: blocks have numbers that none had before, by which cells of
//! blocks that are done with are known.
//!
//! Sanitized code reads and changes cells, too, where it finds them by [`HostPage`]: their fields lie as `quick.ll` of the
//! compiler's host back end says.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use weft_artifact::HostPage;

/// Bytes of memory of a page.
pub(super) const PAGE: u64 = 2048;

/// Where code looks for what nobody has done: cells of a page that has none, bits of a page whose bytes are written.
#[repr(align(64))]
struct Nothing([u64; PAGE as usize * size_of::<Write>() / 8]);

static NOTHING: Nothing = Nothing([0; PAGE as usize * size_of::<Write>() / 8]);

/// Pages that code finds where it is to ask about each access.
static NO_PAGES: [HostPage; HostPage::NEAR] = [HostPage::NONE; HostPage::NEAR];

/// Of an access: it was atomic, and so among the threads of a block only.
pub(super) const ATOMIC: u32 = 1;
pub(super) const OF_BLOCK: u32 = 2;
/// An atomic step that writes: it is kept among the reads.
pub(super) const STEP: u32 = 4;

/// Clocks beyond this one are not told apart.
pub(super) const MOST_CLOCK: u32 = (1 << 19) - 1;

/// An access by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct When {
    /// The block's number among all that there were; 0 is no block's.
    pub(super) block: u32,
    pub(super) thread: u32,
    pub(super) epoch: u32,
    pub(super) clock: u32,
    /// [`ATOMIC`], [`OF_BLOCK`] and [`STEP`].
    pub(super) how: u32,
    /// A site and the calls that led there.
    pub(super) spot: Spot,
}

/// A site with the calls that led there: 18 bits of one, 14 of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spot(u32);

impl Spot {
    const SITES: u32 = (1 << 18) - 1;

    #[inline]
    pub(super) fn new(site: u32, calls: u32) -> Self {
        Self(calls << 18 | site.min(Self::SITES))
    }

    /// As code knows it.
    pub(super) const fn bits(self) -> u32 {
        self.0
    }

    pub(super) const fn of_bits(bits: u32) -> Self {
        Self(bits)
    }

    pub(super) const fn site(self) -> u32 {
        self.0 & Self::SITES
    }

    pub(super) const fn chain(self) -> u32 {
        self.0 >> 18
    }
}

/// The last write.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) block: u32,
    pub(super) epoch: u32,
    spot: Spot,
    /// The clock, ten bits of the thread, three bits of how.
    who: u32,
}

/// Reads of some lanes of a warp at one time.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reads {
    pub(super) block: u32,
    pub(super) epoch: u32,
    spot: Spot,
    /// The clock, five bits of the warp, three bits of how.
    who: u32,
    /// Which lanes; 0 if there is no read.
    pub(super) lanes: u32,
}

impl Write {
    #[inline]
    pub(super) fn of(when: &When) -> Self {
        let When { block, thread, epoch, clock, how, spot } = *when;
        Self { block, epoch, spot, who: clock << 13 | thread << 3 | how }
    }

    #[inline]
    pub(super) const fn thread(&self) -> u32 {
        self.who >> 3 & 1023
    }

    pub(super) const fn who(&self) -> u32 {
        self.who
    }

    pub(super) fn when(&self) -> When {
        let Self { block, epoch, spot, who } = *self;
        When { block, thread: self.thread(), epoch, clock: who >> 13, how: who & 7, spot }
    }
}

impl Reads {
    #[inline]
    pub(super) fn of(when: &When) -> Self {
        let When { block, thread, epoch, clock, how, spot } = *when;
        Self { block, epoch, lanes: 1 << (thread % 32), spot, who: clock << 8 | ((thread / 32) << 3) | how }
    }

    pub(super) const fn who(&self) -> u32 {
        self.who
    }

    /// [`ATOMIC`], [`OF_BLOCK`] and [`STEP`].
    pub(super) const fn how(&self) -> u32 {
        self.who & 7
    }

    /// Whether they are steps that write.
    #[inline]
    pub(super) const fn writes(&self) -> bool {
        self.who & STEP != 0
    }

    #[inline]
    pub(super) const fn warp(&self) -> u32 {
        self.who >> 3 & 31
    }

    /// Whether a read differs from these in its lane alone.
    #[inline]
    pub(super) fn takes(&self, read: &Self) -> bool {
        (self.block, self.epoch, self.spot, self.who) == (read.block, read.epoch, read.spot, read.who)
    }

    /// Each of them.
    pub(super) fn each(self) -> impl Iterator<Item = When> {
        let Self { block, epoch, lanes, spot, who } = self;
        let warp = self.warp() * 32;
        (0..32).filter(move |lane| lanes >> lane & 1 == 1).map(move |lane| When {
            block,
            thread: warp + lane,
            epoch,
            clock: who >> 8,
            how: who & 7,
            spot,
        })
    }
}

/// A piece of memory and what is remembered of its elements. What has no cell yet has none at all.
#[derive(Debug)]
pub(super) struct Page {
    /// Bytes of a cell, as a power of two.
    shift: u8,
    /// Its bytes that nobody has written, as far as a launch has counted them: the launch, and how many.
    pub(super) unwritten: (u32, u32),
    /// Where code finds which these are; 0 if it cannot, and all are written.
    pub(super) bits: u64,
    /// The last launch in which a write took there what nobody has written: code takes what was written for that.
    pub(super) carried: u32,
    pub(super) writes: Vec<Write>,
    pub(super) reads: [Vec<Reads>; 2],
}

impl Page {
    /// Cells of a page.
    #[inline]
    pub(super) const fn len(&self) -> usize {
        (PAGE >> self.shift) as usize
    }

    /// The cells of an access that lies in the page.
    #[inline]
    pub(super) fn cells(&mut self, address: u64, bytes: u64) -> std::ops::Range<usize> {
        let offset = address % PAGE;
        let size = 1_u64 << self.shift;
        if bytes == size && offset & (size - 1) == 0 {
            let first = (offset >> self.shift) as usize;
            return first..first + 1;
        }
        if self.shift > 0 && (bytes < size || offset & (size - 1) != 0) {
            self.split();
        }
        let first = (offset >> self.shift) as usize;
        first..((offset + bytes).min(PAGE).div_ceil(1 << self.shift)) as usize
    }

    fn forget(&mut self, address: u64, bytes: u64) {
        fn clear<T: Default>(all: &mut [T], cells: std::ops::Range<usize>) {
            all.iter_mut().take(cells.end).skip(cells.start).for_each(|cell| *cell = T::default());
        }
        let cells = self.cells(address, bytes);
        clear(&mut self.writes, cells.clone());
        for reads in &mut self.reads {
            clear(reads, cells.clone());
        }
    }

    /// Makes cells of a byte.
    #[cold]
    fn split(&mut self) {
        fn repeated<T: Copy>(cells: &[T], each: usize) -> Vec<T> {
            cells.iter().flat_map(|cell| std::iter::repeat_n(*cell, each)).collect()
        }
        let each = 1 << self.shift;
        self.writes = repeated(&self.writes, each);
        self.reads = [repeated(&self.reads[0], each), repeated(&self.reads[1], each)];
        self.shift = 0;
    }

    fn size(&self) -> usize {
        let reads = self.reads.iter().map(Vec::capacity).sum::<usize>();
        self.writes.capacity() * size_of::<Write>() + reads * size_of::<Reads>() + size_of::<Self>()
    }
}

/// Where a page is found at once: arrays often begin at multiples of large powers of two.
#[inline]
const fn slot(number: u64) -> usize {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55) as usize % HostPage::NEAR
}

/// The address of something that code reads, and may change.
fn address_of<T>(all: &[T]) -> u64 {
    all.as_ptr().expose_provenance() as u64
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

/// What is remembered of all memory, also of launches before: it is kept, but never looked at.
#[derive(Debug)]
pub(super) struct Shadow {
    pages: Vec<Page>,
    places: ByAddress<u32>,
    near: Box<[HostPage]>,
    /// The number of the next block.
    pub(super) next_block: u32,
    /// The number of the last launch.
    pub(super) launch: u32,
}

impl Default for Shadow {
    fn default() -> Self {
        let near = NO_PAGES.to_vec().into_boxed_slice();
        Self { pages: Vec::new(), places: ByAddress::default(), near, next_block: 1, launch: 0 }
    }
}

impl Shadow {
    /// Nothing is remembered, and all numbers begin anew but the launch's.
    pub(super) fn forget(&mut self) {
        *self = Self { launch: self.launch, ..Self::default() };
    }

    /// No page is found at once, as in the beginning.
    pub(super) fn forget_near(&mut self) {
        self.near.fill(HostPage::NONE);
    }

    /// The page of an address is not found at once.
    pub(super) fn forget_page(&mut self, address: u64) {
        let number = address / PAGE;
        let near = &mut self.near[slot(number)];
        if near.number == number {
            *near = HostPage::NONE;
        }
    }

    /// The address of the pages that code finds, which are none where it is to ask about each access.
    pub(super) fn near(&self, asks: bool) -> u64 {
        address_of(if asks { &NO_PAGES } else { &self.near })
    }

    /// From here on code finds the page of an access; `is_checked` if it need not be asked whether memory was freed.
    pub(super) fn show(&mut self, address: u64, is_checked: bool) {
        let near = &mut self.near[slot(address / PAGE)];
        let Some(page) = self.pages.get(near.at as usize).filter(|_| near.number == address / PAGE) else { return };
        let key = HostPage::key(address / PAGE * PAGE, page.shift);
        let key = |has: bool| if has && is_checked { key } else { HostPage::NO_KEY };
        let or_nothing = |at: u64, has: bool| if has { at } else { address_of(&NOTHING.0) };
        let or_none = |reads: &[Reads]| if reads.is_empty() { 0 } else { address_of(reads) };
        *near = HostPage {
            writes: or_nothing(address_of(&page.writes), !page.writes.is_empty()),
            reads: or_none(&page.reads[0]),
            second: or_none(&page.reads[1]),
            unwritten: or_nothing(page.bits, page.bits != 0),
            read_key: key(!page.reads[0].is_empty()),
            write_key: key(!page.writes.is_empty()),
            ..*near
        };
    }

    /// The page of an address, which an access of so many bytes meets first.
    #[inline]
    pub(super) fn page(&mut self, address: u64, bytes: u64) -> Option<&mut Page> {
        let number = address / PAGE;
        let slot = slot(number);
        let near = &self.near[slot];
        let at = if near.number == number {
            near.at
        } else {
            let at = self.far(number, address, bytes);
            self.near[slot] = HostPage { number, at, ..HostPage::NONE };
            at
        };
        self.pages.get_mut(at as usize)
    }

    /// What code finds where it looks for the page of an address.
    #[cfg(test)]
    pub(super) fn found(&self, address: u64) -> HostPage {
        let near = self.near[slot(address / PAGE)];
        if near.number == address / PAGE { near } else { HostPage::NONE }
    }

    /// How many of an access's bytes lie in the page of its first.
    #[inline]
    pub(super) fn in_page(address: u64, bytes: u64) -> u64 {
        bytes.min(PAGE - address % PAGE)
    }

    /// Nothing is remembered of some bytes any more: what lies there now is something else.
    pub(super) fn forget_bytes(&mut self, start: u64, bytes: u64) {
        let end = start.saturating_add(bytes);
        let mut at = start;
        while at < end {
            let here = Self::in_page(at, end - at);
            if let Some(&page) = self.places.get(&(at / PAGE))
                && let Some(page) = self.pages.get_mut(page as usize)
            {
                page.forget(at, here);
                self.forget_page(at);
            }
            at += here;
        }
    }

    #[cold]
    fn far(&mut self, number: u64, address: u64, bytes: u64) -> u32 {
        let pages = &mut self.pages;
        *self.places.entry(number).or_insert_with(|| {
            let is_whole = bytes.is_power_of_two() && address.is_multiple_of(bytes);
            let shift = if is_whole { bytes.trailing_zeros().min(3) as u8 } else { 0 };
            pages.push(Page {
                shift,
                unwritten: (0, 0),
                bits: 0,
                carried: 0,
                writes: Vec::new(),
                reads: [Vec::new(), Vec::new()],
            });
            (pages.len() - 1) as u32
        })
    }

    /// Bytes that it takes.
    pub(super) fn size(&self) -> usize {
        self.pages.iter().map(Page::size).sum::<usize>() + self.places.capacity() * 16
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use weft_artifact::HostSeen;

    use super::{ATOMIC, OF_BLOCK, PAGE, Reads, STEP, Shadow, Spot, When, Write};

    #[test]
    fn cells_have_the_size_of_accesses() {
        let mut shadow = Shadow::default();
        let mut cells = |address, bytes| shadow.page(address, bytes).map(|page| page.cells(address, bytes));
        assert_eq!(cells(4096, 4), Some(0..1));
        assert_eq!(cells(4100, 4), Some(1..2));
        assert_eq!(cells(4104, 8), Some(2..4));
        // A byte of it.
        assert_eq!(cells(4098, 1), Some(2..3));
        assert_eq!(cells(4096, 8), Some(0..8));
        // Accesses of eight bytes to elements of four.
        assert_eq!(cells(8192, 4), Some(0..1));
        assert_eq!(cells(8192, 8), Some(0..2));
        assert_eq!(Shadow::in_page(PAGE - 2, 8), 2);
    }

    #[test]
    fn each_byte_has_what_its_element_had() {
        let mut shadow = Shadow::default();
        let when = When { block: 1, thread: 2, epoch: 3, clock: 4, how: 1, spot: Spot::new(5, 6) };
        let page = shadow.page(4096, 4).expect("a page is made");
        page.writes = vec![Write::default(); page.len()];
        page.writes[1] = Write::of(&when);
        assert_eq!(page.cells(4101, 1), 5..6);
        assert_eq!((page.writes[5].when(), page.writes[3].block, page.writes.len()), (when, 0, PAGE as usize));
    }

    /// As `quick.ll` counts.
    #[test]
    fn fields_lie_where_code_looks() {
        assert_eq!((size_of::<Write>(), size_of::<Reads>()), (16, 20));
        let write = Write::of(&When { block: 1, thread: 33, epoch: 2, clock: 1, how: 0, spot: Spot::new(4, 0) });
        assert_eq!((offset_of!(Write, spot), offset_of!(Write, who), write.who() & 0x1ff8), (8, 12, 33 << 3));
        assert_eq!((offset_of!(Reads, spot), offset_of!(Reads, who), offset_of!(Reads, lanes)), (8, 12, 16));
    }

    #[test]
    fn accesses_are_packed_and_unpacked() {
        let when = When { block: 9, thread: 1023, epoch: 7, clock: super::MOST_CLOCK, how: 7, spot: Spot::new(3, 4) };
        assert_eq!(Write::of(&when).when(), when);
        assert_eq!(Reads::of(&when).each().collect::<Vec<_>>(), [when]);
        assert_eq!((when.spot.site(), when.spot.chain()), (3, 4));
    }

    /// As code makes them.
    #[test]
    fn first_accesses_and_steps_are_as_code_says() {
        let when = When { block: 1, thread: 0, epoch: 0, clock: 1, how: ATOMIC | STEP, spot: Spot::default() };
        assert_eq!(Reads::of(&when).who(), HostSeen::FIRST_READ | HostSeen::STEP as u32);
        assert_eq!(Write::of(&When { how: 0, ..when }).who(), HostSeen::FIRST_WRITE);
        assert_eq!(u64::from(OF_BLOCK), HostSeen::OF_BLOCK);
    }
}
