//! Global and constant memory: regions with an address, a name and bytes. An access outside of all regions is an error.

mod cells;

use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use cells::Cells;

/// The address of the first region that [`Memory::add`] adds.
const FIRST: u64 = 0x7f00_0000_0000;
/// Regions begin at multiples of this, as the CUDA driver's do.
const ALIGNMENT: u64 = 256;
/// At least this many unmapped bytes are between two regions.
const GAP: u64 = 4096;

/// The memory that a launch accesses.
#[derive(Debug, Default)]
pub struct Memory {
    regions: Vec<Region>,
    next: u64,
}

/// A range of addresses, such as an array or a variable of the module.
#[derive(Debug)]
pub struct Region {
    name: String,
    base: u64,
    len: u64,
    cells: Cells,
    /// A bit for each sector that a launch has accessed.
    touched: Box<[AtomicU64]>,
}

/// The bytes of a sector.
const SECTOR: u64 = 32;

impl Region {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its first address.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        (0..self.len as usize).map(|at| self.cells.of_1(at).load(Relaxed)).collect()
    }

    /// The sectors of 32 bytes that launches have accessed.
    pub fn touched_sectors(&self) -> u64 {
        self.touched.iter().map(|bits| u64::from(bits.load(Relaxed).count_ones())).sum()
    }

    /// Notes that bytes inside were accessed.
    pub(crate) fn touch(&self, address: u64, size: u64) {
        // Regions begin at multiples of a sector, or an array begins within its first sector.
        let base = self.base / SECTOR;
        let (mut sector, last) = (address / SECTOR - base, (address + size - 1) / SECTOR - base);
        while sector <= last {
            let count = (last - sector + 1).min(64 - sector % 64);
            let (word, bits) = (&self.touched[(sector / 64) as usize], u64::MAX >> (64 - count) << (sector % 64));
            if word.load(Relaxed) & bits != bits {
                word.fetch_or(bits, Relaxed);
            }
            sector += count;
        }
    }

    /// Whether an access of a size at an address is inside.
    pub(crate) fn contains(&self, address: u64, size: u64) -> bool {
        address >= self.base && address - self.base <= self.len && self.len - (address - self.base) >= size
    }

    /// Writes bytes to its beginning.
    fn write(&self, bytes: &[u8]) {
        let (longs, rest) = bytes.as_chunks();
        for (number, long) in longs.iter().enumerate() {
            self.cells.of_8(8 * number).store(u64::from_le_bytes(*long), Relaxed);
        }
        for (offset, byte) in rest.iter().enumerate() {
            self.cells.of_1(8 * longs.len() + offset).store(*byte, Relaxed);
        }
    }

    /// Loads 1 to 8 bytes at an aligned address inside.
    pub(crate) fn load(&self, address: u64, size: u32) -> u64 {
        let at = (address - self.base) as usize;
        match size {
            1 => u64::from(self.cells.of_1(at).load(Acquire)),
            2 => u64::from(self.cells.of_2(at).load(Acquire)),
            4 => u64::from(self.cells.of_4(at).load(Acquire)),
            _ => self.cells.of_8(at).load(Acquire),
        }
    }

    /// The cells of 4-byte accesses from an address on.
    pub(crate) fn words(&self, address: u64) -> &[AtomicU32] {
        self.cells.words((address - self.base) as usize)
    }

    /// Stores 1 to 8 bytes at an aligned address inside.
    pub(crate) fn store(&self, address: u64, size: u32, value: u64) {
        let at = (address - self.base) as usize;
        match size {
            1 => self.cells.of_1(at).store(value as u8, Relaxed),
            2 => self.cells.of_2(at).store(value as u16, Relaxed),
            4 => self.cells.of_4(at).store(value as u32, Relaxed),
            _ => self.cells.of_8(at).store(value, Relaxed),
        }
    }

    /// Replaces 2, 4 or 8 bytes by a function of them in one atomic operation. Returns the old value.
    pub(crate) fn update(&self, address: u64, size: u32, new: impl Fn(u64) -> u64) -> u64 {
        let at = (address - self.base) as usize;
        // The function always has a new value, so both results are the old one.
        macro_rules! update {
            ($cell:ident, $ty:ty) => {{
                let next = |old: $ty| Some(new(u64::from(old)) as $ty);
                let (Ok(old) | Err(old)) = self.cells.$cell(at).fetch_update(AcqRel, Acquire, next);
                u64::from(old)
            }};
        }
        match size {
            2 => update!(of_2, u16),
            4 => update!(of_4, u32),
            _ => self.cells.of_8(at).fetch_update(AcqRel, Acquire, |old| Some(new(old))).unwrap_or_else(|old| old),
        }
    }
}

impl Memory {
    /// Memory without regions.
    pub fn new() -> Self {
        Self { regions: Vec::new(), next: FIRST }
    }

    /// Adds a region with contents at an address of its own, and returns the address.
    pub fn add(&mut self, name: &str, bytes: &[u8]) -> u64 {
        let base = self.next;
        self.next = (base + bytes.len() as u64 + GAP).next_multiple_of(ALIGNMENT);
        self.insert(name, base, bytes);
        base
    }

    /// Adds a region at a fixed address. Returns false, and adds nothing, if the addresses are in use.
    pub fn add_at(&mut self, name: &str, base: u64, bytes: &[u8]) -> bool {
        let end = base.saturating_add(bytes.len() as u64);
        let is_free = self.regions.iter().all(|region| end <= region.base || base >= region.base + region.len);
        if is_free {
            self.insert(name, base, bytes);
            self.next = self.next.max((end + GAP).next_multiple_of(ALIGNMENT));
        }
        is_free
    }

    fn insert(&mut self, name: &str, base: u64, bytes: &[u8]) {
        let sectors = bytes.len() as u64 / SECTOR + 2;
        let region = Region {
            name: name.to_owned(),
            base,
            len: bytes.len() as u64,
            cells: Cells::new(bytes.len()),
            touched: (0..sectors.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
        };
        region.write(bytes);
        let at = self.regions.partition_point(|other| other.base < base);
        self.regions.insert(at, region);
    }

    /// The regions, by address.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// The region that begins at an address.
    pub fn region(&self, base: u64) -> Option<&Region> {
        self.regions.iter().find(|region| region.base == base)
    }

    /// The region that is nearest to an address outside of all regions, and the distance from its end (positive) or its
    /// first byte (negative).
    pub(crate) fn nearest(&self, address: u64) -> Option<(&Region, i64)> {
        let distance = |region: &Region| {
            let end = region.base + region.len;
            if address >= end { (address - end).cast_signed() } else { address.wrapping_sub(region.base).cast_signed() }
        };
        let regions = self.regions.iter().map(|region| (region, distance(region)));
        regions.min_by_key(|(_, distance)| distance.unsigned_abs())
    }

    /// The index of the region that holds an access.
    pub(crate) fn find(&self, address: u64, size: u64) -> Option<usize> {
        let at = self.regions.partition_point(|region| region.base <= address).checked_sub(1)?;
        self.regions[at].contains(address, size).then_some(at)
    }
}
