//! Shadow memory, in [pages](Page): the last write and some reads of each element.
//!
//! Nothing is ever cleared: blocks have numbers that were never used before, which identify cells of finished blocks.
//! Sanitized code also reads and changes cells, which it finds by [`HostPage`].

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use weft_artifact::HostPage;

use super::{
    numbers::Numbers,
    page::{Cells, PAGE, Page},
    page_pool,
    record::{Reads, Write},
};

/// Memory that compiled code reads as the empty state: cells of a page that has none, bits of a page whose bytes are
/// all written.
#[repr(align(64))]
struct Nothing([u64; PAGE as usize * size_of::<Write>() / 8]);

static NOTHING: Nothing = Nothing([0; PAGE as usize * size_of::<Write>() / 8]);

/// The pages that compiled code sees where it must call the runtime for each access.
static NO_PAGES: [HostPage; HostPage::NEAR] = [HostPage::NONE; HostPage::NEAR];

/// The slot of a page in the cache: a hash, since arrays often begin at multiples of large powers of two.
#[inline]
const fn slot(number: u64) -> usize {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55) as usize % HostPage::NEAR
}

/// The address of something that code reads, and may change.
pub(super) fn address_of<T>(all: &[T]) -> u64 {
    all.as_ptr().expose_provenance() as u64
}

/// Numbers of pages, blocks and threads are spread well enough by a multiplication.
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

    fn write_u16(&mut self, value: u16) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

/// A map by numbers.
pub(super) type ByNumber<K, T> = HashMap<K, T, BuildHasherDefault<Spread>>;

/// A map by addresses.
pub(super) type ByAddress<T> = ByNumber<u64, T>;

/// The shadow memory of a launch, or of a part of one. Its pages also contain the state of earlier launches, which is
/// ignored.
#[derive(Debug)]
pub(super) struct Shadow {
    #[expect(clippy::vec_box, reason = "they are handed on from launch to launch")]
    pages: Vec<Box<Page>>,
    places: ByAddress<u32>,
    near: Box<[HostPage]>,
    /// The number of the last launch.
    pub(super) launch: u32,
    /// The generation of its numbers: the state of other generations is stale.
    age: u32,
}

impl Default for Shadow {
    fn default() -> Self {
        let near = NO_PAGES.to_vec().into_boxed_slice();
        Self { pages: Vec::new(), places: ByAddress::default(), near, launch: 0, age: 0 }
    }
}

impl Shadow {
    /// The shadow memory of a launch that begins.
    pub(super) fn of(numbers: &Numbers) -> Self {
        let mut shadow = Self::default();
        (shadow.launch, shadow.age) = (numbers.launch, numbers.age);
        shadow
    }

    /// The launch continues with other numbers.
    pub(super) fn go_on(&mut self, numbers: &Numbers) {
        if self.age != numbers.age {
            // No earlier block had one of these numbers.
            self.pages.clear();
            self.places.clear();
            self.near.fill(HostPage::NONE);
            self.age = numbers.age;
        }
    }

    /// The slow path of the lookup of an address's page.
    pub(super) fn forget_page(&mut self, address: u64) {
        let number = address / PAGE;
        let near = &mut self.near[slot(number)];
        if near.number == number {
            *near = HostPage::NONE;
        }
    }

    /// The address of the pages that compiled code sees, which are empty where it must call the runtime for each
    /// access.
    pub(super) fn near(&self, calls_runtime: bool) -> u64 {
        address_of(if calls_runtime { &NO_PAGES } else { &self.near })
    }

    /// Lets compiled code find the page of an access from now on; `is_checked` if it need not check for freed memory.
    pub(super) fn show(&mut self, address: u64, is_checked: bool) {
        let near = &mut self.near[slot(address / PAGE)];
        let Some(page) = self.pages.get(near.at as usize).filter(|_| near.number == address / PAGE) else { return };
        let or_nothing = |at: u64| if at == 0 { address_of(&NOTHING.0) } else { at };
        let or_null = |reads: &[Reads]| if reads.is_empty() { 0 } else { address_of(reads) };
        let (writes, reads, second) = match page.kept() {
            Cells::Wide(wide) => {
                let writes = if wide.writes.is_empty() { 0 } else { address_of(&wide.writes) };
                (writes, or_null(&wide.reads[0]), or_null(&wide.reads[1]))
            }
            Cells::Packed(packed) => {
                let directory = address_of(std::slice::from_ref(packed.directory()));
                (packed.writes().map_or(0, address_of), packed.all_reads().map_or(0, address_of), directory)
            }
        };
        // Compiled code handles small cells only if they are packed.
        let is_known = is_checked && (page.shift() > 1) == matches!(page.kept(), Cells::Wide(_));
        let key = HostPage::key(address / PAGE * PAGE, page.shift());
        let key = |at: u64| if at != 0 && is_known { key } else { HostPage::NO_KEY };
        *near = HostPage {
            writes: or_nothing(writes),
            reads,
            second,
            unwritten: or_nothing(page.bits),
            read_key: key(reads),
            write_key: key(writes),
            ..*near
        };
    }

    /// The page of an address, which an access of `bytes` bytes uses first.
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
        self.pages.get_mut(at as usize).map(Box::as_mut)
    }

    /// The result of compiled code's lookup of the page of an address.
    #[cfg(test)]
    pub(super) fn found(&self, address: u64) -> HostPage {
        let near = self.near[slot(address / PAGE)];
        if near.number == address / PAGE { near } else { HostPage::NONE }
    }

    /// The number of an access's bytes in the page of its first byte.
    #[inline]
    pub(super) fn in_page(address: u64, bytes: u64) -> u64 {
        bytes.min(PAGE - address % PAGE)
    }

    /// Drops the state of some bytes: their memory is reused.
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
        let Self { pages, places, age, .. } = self;
        *places.entry(number).or_insert_with(|| {
            pages.push(page_pool::take(number, *age).unwrap_or_else(|| Box::new(Page::of(address, bytes))));
            (pages.len() - 1) as u32
        })
    }

    /// A page that something is remembered of.
    pub(super) fn known(&self, number: u64) -> Option<&Page> {
        self.pages.get(*self.places.get(&number)? as usize).map(Box::as_ref)
    }

    /// Bytes that a page takes, on the average.
    pub(super) fn page_size(&self) -> usize {
        self.pages.iter().map(|page| page.size()).sum::<usize>() / self.pages.len().max(1)
    }
}

impl Drop for Shadow {
    fn drop(&mut self) {
        let mut pages: Vec<_> = std::mem::take(&mut self.pages).into_iter().map(Some).collect();
        for (&number, &at) in &self.places {
            if let Some(page) = pages.get_mut(at as usize).and_then(Option::take) {
                page_pool::give_back(number, self.age, page);
            }
        }
    }
}
