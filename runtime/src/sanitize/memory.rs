//! Tracks which bytes of device memory were never written, while the sanitizer is on.
//!
//! New allocations are recorded with all bytes unwritten. Copies and fills by the host and stores by kernels mark bytes
//! as written. Memory that was never recorded counts as written.

use std::{
    any::Any,
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use super::{finding::Finding, page::PAGE};

/// The origin of unwritten bytes that the host reads: a kernel copied them there.
#[derive(Clone, Debug)]
struct Origin {
    by: CopiedBy,
    /// The size of the access of the kernel.
    bytes: u32,
    finding: Finding,
}

/// The block of a launch that copied unwritten bytes. Of several in a page, the first block in the order of the grid is reported: several
/// system threads run the blocks of a launch.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopiedBy {
    pub launch: u32,
    /// The linear index of the block in the grid.
    pub block: u64,
}

impl CopiedBy {
    /// Whether it replaces the one that is recorded.
    const fn replaces(self, recorded: Self) -> bool {
        self.launch != recorded.launch || self.block < recorded.block
    }
}

/// A memory range with the state of each byte: written or not.
#[derive(Debug)]
pub struct Bytes {
    start: u64,
    len: u64,
    /// The start of the page that contains its first byte.
    base: u64,
    /// A bit for each byte of all its pages: set if the byte is in the range and was never written.
    unwritten: Vec<AtomicU64>,
    /// The same: a kernel has copied unwritten bytes there. Only counts where `unwritten` says so, too.
    carried: OnceLock<Vec<AtomicU64>>,
    /// The origins of these, by page.
    origins: Mutex<BTreeMap<u64, Origin>>,
    /// The host reads it as it is.
    of_host: AtomicBool,
}

impl Bytes {
    /// Bytes that are all unwritten.
    pub(super) fn unwritten(start: u64, len: u64) -> Self {
        let base = start / PAGE * PAGE;
        let words = (start.saturating_add(len) - base).div_ceil(PAGE) * (PAGE / 64);
        let bytes = Self {
            start,
            len,
            base,
            unwritten: zeros(words),
            carried: OnceLock::new(),
            origins: Mutex::default(),
            of_host: AtomicBool::new(false),
        };
        bytes.clear();
        bytes
    }

    /// Whether the host reads it as it is.
    pub(super) fn is_of_host(&self) -> bool {
        self.of_host.load(Ordering::Relaxed)
    }

    /// Records that a kernel has copied unwritten bytes to some of up to eight bytes, which is an error if the host reads them. `bits`
    /// is a mask of these bytes, `bytes` the size of the access. A page has one finding per launch, which `make` creates.
    pub(super) fn carry(
        &self,
        address: u64,
        (bits, bytes): (u8, u32),
        by: CopiedBy,
        make: impl FnOnce() -> Option<Finding>,
    ) {
        let carried = self.carried.get_or_init(|| zeros(self.unwritten.len() as u64));
        for byte in (0..8).filter(|byte| bits >> byte & 1 == 1) {
            let at = address + byte - self.base;
            if let Some(word) = carried.get((at / 64) as usize) {
                word.fetch_or(1 << (at % 64), Ordering::Relaxed);
            }
        }
        let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        if origins.get(&(address / PAGE)).is_none_or(|origin| by.replaces(origin.by))
            && let Some(finding) = make()
        {
            origins.insert(address / PAGE, Origin { by, bytes, finding });
        }
    }

    /// Drops the origins of a launch's copies where the findings of these lines already report more.
    pub(super) fn forget_origins(&self, launch: u32, is_found: impl Fn(&Finding) -> bool) {
        if self.carried.get().is_some() {
            let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
            origins.retain(|_, origin| origin.by.launch != launch || !is_found(&origin.finding));
        }
    }

    /// The origins of unwritten bytes that kernels have copied to a range that the host reads, each once.
    fn take_carried(&self, start: u64, bytes: u64) -> Vec<Finding> {
        let mut found: Vec<Finding> = Vec::new();
        let Some(carried) = self.carried.get() else { return found };
        let origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        let (from, to) = self.within(start, start.saturating_add(bytes));
        let first = from / 64;
        for (number, (unwritten, mask)) in self.words(from, to).enumerate() {
            let number = first + number as u64;
            let Some(word) = carried.get(number as usize) else { continue };
            let bits = word.fetch_and(!mask, Ordering::Relaxed) & mask & unwritten.load(Ordering::Relaxed);
            let Some(origin) = origins.get(&((self.base + number * 64) / PAGE)).filter(|_| bits != 0) else {
                continue;
            };
            let count = u64::from(bits.count_ones().div_ceil(origin.bytes.max(1)));
            match found.iter_mut().find(|known| known.is_at_lines_of(&origin.finding)) {
                Some(known) => known.count += count,
                None => found.push(Finding { count, ..origin.finding.clone() }),
            }
        }
        found
    }

    /// Marks all its bytes as unwritten again.
    pub(super) fn clear(&self) {
        self.set_all(self.start, self.start.saturating_add(self.len), true);
    }

    /// Whether it is this memory.
    pub(super) const fn is(&self, start: u64, len: u64) -> bool {
        self.start == start && self.len == len
    }

    #[inline]
    pub(super) fn contains(&self, address: u64, bytes: u64) -> bool {
        address.checked_sub(self.start).is_some_and(|at| at < self.len && bytes <= self.len - at)
    }

    /// Whether it has a byte of these.
    pub(super) fn meets(&self, address: u64, bytes: u64) -> bool {
        address < self.start.saturating_add(self.len) && self.start < address.saturating_add(bytes)
    }

    /// Where the bits of the page of an address are; `None` where it has no such page.
    pub(super) fn page(&self, address: u64) -> Option<u64> {
        let at = address.checked_sub(self.base)? / PAGE * (PAGE / 64);
        Some(self.unwritten.get(at as usize..)?.first()?.as_ptr().expose_provenance() as u64)
    }

    /// A mask of the unwritten bytes among up to eight: the lowest bit is the first byte.
    #[inline]
    pub(super) fn read(&self, address: u64, bytes: u64) -> u8 {
        let at = address - self.base;
        let (word, bit) = ((at / 64) as usize, at % 64);
        let low = self.unwritten.get(word).map_or(0, |bits| bits.load(Ordering::Relaxed)) >> bit;
        let high = if bit + bytes > 64 {
            self.unwritten.get(word + 1).map_or(0, |bits| bits.load(Ordering::Relaxed)) << (64 - bit)
        } else {
            0
        };
        (low | high) as u8 & mask(bytes)
    }

    /// Sets which of up to eight bytes were not written; gives which were not before.
    #[inline]
    pub(super) fn write(&self, address: u64, bytes: u64, unwritten: u8) -> u8 {
        let before = self.read(address, bytes);
        if before == unwritten {
            return before;
        }
        let at = address - self.base;
        if unwritten == 0 && at % 64 + bytes <= 64 {
            self.set(at, u64::from(mask(bytes)), false);
            return before;
        }
        for byte in 0..bytes {
            self.set(at + byte, 1, unwritten >> byte & 1 == 1);
        }
        before
    }

    /// The number of unwritten bytes in a range of it.
    pub(super) fn count(&self, start: u64, bytes: u64) -> u32 {
        let (from, to) = self.within(start, start.saturating_add(bytes));
        self.words(from, to).map(|(bits, mask)| (bits.load(Ordering::Relaxed) & mask).count_ones()).sum()
    }

    /// Sets bits of a word, from that of a byte on.
    #[inline]
    fn set(&self, at: u64, bits: u64, unwritten: bool) {
        let Some(word) = self.unwritten.get((at / 64) as usize) else { return };
        let bits = bits << (at % 64);
        if unwritten {
            word.fetch_or(bits, Ordering::Relaxed);
        } else if word.load(Ordering::Relaxed) & bits != 0 {
            word.fetch_and(!bits, Ordering::Relaxed);
        }
    }

    /// Why it is a fault if the host reads a byte.
    fn origin(&self, address: u64) -> Option<Origin> {
        let at = address - self.base;
        let word = self.carried.get()?.get((at / 64) as usize)?.load(Ordering::Relaxed);
        if word >> (at % 64) & 1 == 0 || !self.is_unwritten(address) {
            return None;
        }
        self.origins.lock().unwrap_or_else(PoisonError::into_inner).get(&(address / PAGE)).cloned()
    }

    fn is_unwritten(&self, address: u64) -> bool {
        self.read(address, 1) != 0
    }

    /// The part of a range that is in it, as offsets from its base.
    fn within(&self, start: u64, end: u64) -> (u64, u64) {
        let from = start.max(self.start) - self.base;
        (from, end.min(self.start.saturating_add(self.len)).saturating_sub(self.base).max(from))
    }

    /// The words of a range, and which of their bits are in it.
    fn words(&self, from: u64, to: u64) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let (first, last) = (from / 64, to.div_ceil(64));
        let words = self.unwritten.get(first as usize..last as usize).unwrap_or_default();
        words.iter().zip(first..).map(move |(word, number)| {
            let after = u64::MAX << from.saturating_sub(number * 64).min(63);
            let before = u64::MAX >> (number * 64 + 64).saturating_sub(to).min(63);
            (word, after & before)
        })
    }

    /// Marks all bytes of a range that it has.
    fn set_all(&self, start: u64, end: u64, unwritten: bool) {
        let (from, to) = self.within(start, end);
        for (word, mask) in self.words(from, to) {
            match (mask, unwritten) {
                (u64::MAX, true) => word.store(u64::MAX, Ordering::Relaxed),
                (u64::MAX, false) => word.store(0, Ordering::Relaxed),
                (_, true) => _ = word.fetch_or(mask, Ordering::Relaxed),
                (_, false) => _ = word.fetch_and(!mask, Ordering::Relaxed),
            }
        }
    }

    /// Marks all bytes of a range that it has as written.
    fn set_written(&self, start: u64, bytes: u64) {
        self.set_all(start, start.saturating_add(bytes), false);
    }
}

fn zeros(n: u64) -> Vec<AtomicU64> {
    (0..n).map(|_| AtomicU64::new(0)).collect()
}

/// A mask of the low `bytes` bits.
#[inline]
fn mask(bytes: u64) -> u8 {
    if bytes >= 8 { u8::MAX } else { (1 << bytes) - 1 }
}

/// Memory of the device, by where it starts.
pub(super) type Known = BTreeMap<u64, Arc<Bytes>>;

/// Freed memory that the device does not reuse yet: its owner is held until then.
#[derive(Debug)]
struct Freed {
    ranges: BTreeMap<u64, u64>,
    /// The owners that keep the ranges allocated, in the order of the frees.
    quarantine: VecDeque<(u64, u64, Box<dyn Any + Send>)>,
    bytes: u64,
}

/// The most bytes of freed memory that are held, so that accesses to them are reported as use after free.
const MOST_FREED: u64 = 256 << 20;

/// The most ranges that are held.
const MAX_QUARANTINED: usize = 1024;

static ON: AtomicBool = AtomicBool::new(false);
static KNOWN: Mutex<Known> = Mutex::new(Known::new());
static FREED: Mutex<Freed> = Mutex::new(Freed { ranges: BTreeMap::new(), quarantine: VecDeque::new(), bytes: 0 });

fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From here on memory is noted that is given out.
pub fn watch() {
    ON.store(true, Ordering::Relaxed);
}

/// Whether it is.
pub fn is_watched() -> bool {
    ON.load(Ordering::Relaxed)
}

/// The device has given out memory.
pub fn given(start: u64, bytes: u64) {
    if is_watched() && bytes > 0 {
        known().insert(start, Arc::new(Bytes::unwritten(start, bytes)));
        FREED.lock().unwrap_or_else(PoisonError::into_inner).ranges.remove(&start);
    }
}

/// It has it back. `memory` is what holds it, which is dropped when accesses to it need no longer be known for what they are.
pub fn taken_back(start: u64, memory: Box<dyn Any + Send>) {
    let Some(known) = known().remove(&start) else { return };
    let mut freed = FREED.lock().unwrap_or_else(PoisonError::into_inner);
    freed.ranges.insert(start, known.len);
    freed.quarantine.push_back((start, known.len, memory));
    freed.bytes += known.len;
    let mut spare = Vec::new();
    while (freed.bytes > MOST_FREED || freed.quarantine.len() > MAX_QUARANTINED)
        && let Some((start, bytes, memory)) = freed.quarantine.pop_front()
    {
        freed.ranges.remove(&start);
        freed.bytes -= bytes;
        spare.push(memory);
    }
    // It is not ours: no lock is held when it ends.
    drop(freed);
    drop(spare);
}

/// Whether memory was noted when it was given out.
pub fn is_noted(start: u64) -> bool {
    is_watched() && known().contains_key(&start)
}

/// Releases all held memory.
pub fn forget_freed() {
    let mut freed = FREED.lock().unwrap_or_else(PoisonError::into_inner);
    let spare = std::mem::take(&mut freed.quarantine);
    freed.ranges.clear();
    freed.bytes = 0;
    drop(freed);
    drop(spare);
}

/// Freed memory now, as ranges.
pub(super) fn freed() -> BTreeMap<u64, u64> {
    FREED.lock().unwrap_or_else(PoisonError::into_inner).ranges.clone()
}

/// Whether some of the ranges has a byte of these.
pub(super) fn has(ranges: &BTreeMap<u64, u64>, start: u64, bytes: u64) -> bool {
    let before = ranges.range(..start.saturating_add(bytes)).next_back();
    before.is_some_and(|(&at, &len)| at.saturating_add(len) > start)
}

/// The host has written bytes.
pub fn written(start: u64, bytes: u64) {
    if !is_watched() {
        return;
    }
    let known = known();
    let end = start.saturating_add(bytes);
    for (_, memory) in known.range(..end).rev().take_while(|(_, memory)| memory.start + memory.len > start) {
        memory.set_written(start, bytes);
    }
}

/// A kernel that is not checked is launched with these cells: it may write all memory that one of them may be the address of.
pub fn written_by_unchecked(cells: &[u64]) {
    if !is_watched() {
        return;
    }
    let known = known();
    for &address in cells {
        if let Some((_, memory)) = known.range(..=address).next_back().filter(|(_, memory)| memory.contains(address, 1))
        {
            memory.set_written(memory.start, memory.len);
        }
    }
}

/// Memory that the host reads and writes as it is.
pub fn of_host(start: u64, bytes: u64) {
    written(start, bytes);
    if let Some(memory) = known().get(&start).filter(|_| is_watched()) {
        memory.of_host.store(true, Ordering::Relaxed);
    }
}

/// The host reads bytes; returns the errors of that read.
#[must_use]
pub fn read_by_host(start: u64, bytes: u64) -> Vec<Finding> {
    if !is_watched() {
        return Vec::new();
    }
    let known = known();
    let near = known.range(..start.saturating_add(bytes)).rev().take_while(|(_, memory)| memory.meets(start, bytes));
    near.flat_map(|(_, memory)| memory.take_carried(start, bytes)).collect()
}

/// Whether an address is in recorded device memory that the host does not read directly.
pub fn is_of_device(address: u64) -> bool {
    known().range(..=address).next_back().is_some_and(|(_, memory)| memory.contains(address, 1) && !memory.is_of_host())
}

/// Bytes were copied: unwritten bytes are unwritten in the copy, too.
pub fn copied(to: u64, from: u64, bytes: u64) {
    if !is_watched() {
        return;
    }
    let all = known();
    let holds = |start: u64| {
        let found = all.range(..=start).next_back().map(|(_, memory)| memory);
        found.filter(|memory| memory.contains(start, bytes)).cloned()
    };
    let (target, source) = (holds(to), holds(from));
    drop(all);
    match (target, source) {
        (Some(target), Some(source)) if !target.is_of_host() => {
            for at in 0..bytes {
                target.set(to - target.base + at, 1, source.is_unwritten(from + at));
                if let Some(Origin { by, bytes, finding }) = source.origin(from + at) {
                    target.carry(to + at, (1, bytes), by, || Some(finding));
                }
            }
        }
        (Some(_), _) => written(to, bytes),
        (None, _) => {}
    }
}

/// A snapshot of the recorded memory.
pub(super) fn now() -> Vec<Arc<Bytes>> {
    known().values().cloned().collect()
}

/// The number of unwritten bytes in a range; `all` is sorted by start.
pub(super) fn unwritten(all: &[Arc<Bytes>], start: u64, bytes: u64) -> u32 {
    let after = all.partition_point(|memory| memory.start < start.saturating_add(bytes));
    let near = all.iter().take(after).rev().take_while(|memory| memory.meets(start, bytes));
    near.map(|memory| memory.count(start, bytes)).sum()
}

/// Whether some of it has bytes of a range, of memory in the order of its starts.
pub(super) fn meets(all: &[Arc<Bytes>], start: u64, bytes: u64) -> bool {
    let after = all.partition_point(|memory| memory.start < start.saturating_add(bytes));
    all.iter().take(after).next_back().is_some_and(|memory| memory.meets(start, bytes))
}

/// A mask of the unwritten bytes among eight; `all` is sorted by start.
pub(super) fn bits(all: &[Arc<Bytes>], address: u64) -> u8 {
    if let Some(memory) = find(all, address, 8) {
        return memory.read(address, 8);
    }
    let bit =
        |byte: u64| u8::from(find(all, address + byte, 1).is_some_and(|memory| memory.is_unwritten(address + byte)));
    (0..8).fold(0, |bits, byte| bits | bit(byte) << byte)
}

/// Sets whether a byte was written, if it is in recorded memory.
pub(super) fn set_bit(all: &[Arc<Bytes>], address: u64, unwritten: u8) {
    if let Some(memory) = find(all, address, 1) {
        memory.write(address, 1, unwritten);
    }
}

/// Of memory in the order of its starts, where the bits of an address's page are; `None` if several have bytes of it, and 0 if
/// none has.
pub(super) fn page(all: &[Arc<Bytes>], address: u64) -> Option<u64> {
    let start = address / PAGE * PAGE;
    let after = all.partition_point(|memory| memory.start < start.saturating_add(PAGE));
    let mut near = all.iter().take(after).rev().take_while(|memory| memory.meets(start, PAGE));
    match (near.next(), near.next()) {
        (None, _) => Some(0),
        (Some(one), None) => one.page(start),
        (Some(_), Some(_)) => None,
    }
}

/// Of memory in the order of its starts, that which has these bytes.
pub(super) fn find(all: &[Arc<Bytes>], address: u64, bytes: u64) -> Option<&Arc<Bytes>> {
    let after = all.partition_point(|memory| memory.start <= address);
    all.get(after.checked_sub(1)?).filter(|memory| memory.contains(address, bytes))
}

#[cfg(test)]
mod tests {
    use super::{Bytes, CopiedBy, Finding};

    #[test]
    fn first_block_of_a_page_is_reported() {
        let report = |launches: &[(u32, u64)]| {
            let memory = Bytes::unwritten(1000, 100);
            for &(launch, block) in launches {
                let finding = Finding {
                    tool: "initcheck",
                    kind: "uninitialized",
                    kernel: "kernel".to_owned(),
                    message: format!("launch {launch}, block {block}"),
                    help: String::new(),
                    count: 1,
                    accesses: Vec::new(),
                };
                memory.carry(1000 + 4 * block, (0b1111, 4), CopiedBy { launch, block }, || Some(finding));
            }
            memory
                .take_carried(1000, 100)
                .into_iter()
                .map(|finding| (finding.message, finding.count))
                .collect::<Vec<_>>()
        };
        assert_eq!(report(&[(1, 3), (1, 0), (1, 2)]), [("launch 1, block 0".to_owned(), 3)]);
        assert_eq!(report(&[(1, 0), (2, 3), (2, 5)]), [("launch 2, block 3".to_owned(), 3)]);
    }

    #[test]
    fn bytes_are_written_one_by_one() {
        let memory = Bytes::unwritten(1000, 100);
        assert_eq!(memory.read(1000, 4), 0b1111);
        memory.write(1001, 2, 0);
        assert_eq!(memory.read(1000, 4), 0b1001);
        memory.write(1060, 8, 0b1010_1010);
        assert_eq!(memory.read(1060, 8), 0b1010_1010);
        memory.set_written(990, 65);
        assert_eq!(memory.read(1048, 8), 0b1000_0000);
        memory.set_written(1000, 1000);
        assert!((0..92).all(|at| memory.read(1000 + at, 8) == 0));
        assert!(memory.contains(1092, 8) && !memory.contains(1093, 8) && !memory.contains(999, 1));
    }
}
