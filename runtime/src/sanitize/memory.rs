//! Which bytes of the device's memory nobody has written, while the sanitizer is on.
//!
//! Memory that the device gives out is noted with all its bytes unwritten; what the host copies, fills and kernels write
//! is written from then on. What was never noted counts as written.

use std::{
    any::Any,
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// Bytes of which it is kept whether they were written.
#[derive(Debug)]
pub struct Bytes {
    start: u64,
    len: u64,
    /// A bit a byte: it was not.
    unwritten: Vec<AtomicU64>,
}

impl Bytes {
    /// Bytes of which none was written.
    pub(super) fn unwritten(start: u64, len: u64) -> Self {
        let words = len.div_ceil(64) as usize;
        Self { start, len, unwritten: (0..words).map(|_| AtomicU64::new(u64::MAX)).collect() }
    }

    /// Nobody has written any of its bytes again.
    pub(super) fn clear(&mut self) {
        for word in &mut self.unwritten {
            *word.get_mut() = u64::MAX;
        }
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

    /// Which of up to eight bytes were not written: the lowest bit is the first.
    #[inline]
    pub(super) fn read(&self, address: u64, bytes: u64) -> u8 {
        let at = address - self.start;
        let (word, bit) = ((at / 64) as usize, at % 64);
        let low = self.unwritten.get(word).map_or(0, |bits| bits.load(Ordering::Relaxed)) >> bit;
        let high = if bit + bytes > 64 {
            self.unwritten.get(word + 1).map_or(0, |bits| bits.load(Ordering::Relaxed)) << (64 - bit)
        } else {
            0
        };
        (low | high) as u8 & mask(bytes)
    }

    /// Whether these bytes, which lie at a multiple of their number, are its and were written.
    #[inline]
    pub(super) fn is_written(&self, address: u64, bytes: u64) -> bool {
        let at = address.wrapping_sub(self.start);
        let word = if at < self.len { self.unwritten.get((at / 64) as usize) } else { None };
        word.is_some_and(|bits| (bits.load(Ordering::Relaxed) >> (at % 64)) as u8 & mask(bytes) == 0)
    }

    /// Sets which of up to eight bytes were not written; gives which were not before.
    #[inline]
    pub(super) fn write(&self, address: u64, bytes: u64, unwritten: u8) -> u8 {
        let before = self.read(address, bytes);
        if before != unwritten {
            for byte in 0..bytes {
                self.set(address - self.start + byte, unwritten >> byte & 1 == 1);
            }
        }
        before
    }

    /// How many bytes of a range that it has nobody has written.
    pub(super) fn count(&self, start: u64, bytes: u64) -> u32 {
        let from = start.max(self.start) - self.start;
        let to = start.saturating_add(bytes).min(self.start + self.len).saturating_sub(self.start);
        (from..to).filter(|&at| self.is_unwritten(at)).count() as u32
    }

    fn set(&self, at: u64, unwritten: bool) {
        let Some(word) = self.unwritten.get((at / 64) as usize) else { return };
        let bit = 1 << (at % 64);
        if unwritten {
            word.fetch_or(bit, Ordering::Relaxed);
        } else if word.load(Ordering::Relaxed) & bit != 0 {
            word.fetch_and(!bit, Ordering::Relaxed);
        }
    }

    fn is_unwritten(&self, at: u64) -> bool {
        let word = self.unwritten.get((at / 64) as usize);
        word.is_some_and(|bits| bits.load(Ordering::Relaxed) >> (at % 64) & 1 == 1)
    }

    /// Marks all bytes of a range that it has as written.
    fn set_written(&self, start: u64, bytes: u64) {
        let from = start.max(self.start) - self.start;
        let to = start.saturating_add(bytes).min(self.start + self.len).saturating_sub(self.start);
        let mut at = from;
        while at < to {
            if at.is_multiple_of(64) && to - at >= 64 {
                if let Some(word) = self.unwritten.get((at / 64) as usize) {
                    word.store(0, Ordering::Relaxed);
                }
                at += 64;
            } else {
                self.set(at, false);
                at += 1;
            }
        }
    }
}

/// So many low bits.
#[inline]
fn mask(bytes: u64) -> u8 {
    if bytes >= 8 { u8::MAX } else { (1 << bytes) - 1 }
}

/// Memory of the device, by where it starts.
pub(super) type Known = BTreeMap<u64, Arc<Bytes>>;

/// Memory that the device has back, and does not use yet: whoever gave it keeps it so long.
#[derive(Debug)]
struct Freed {
    ranges: BTreeMap<u64, u64>,
    /// What keeps them, the first that was freed first.
    kept: VecDeque<(u64, u64, Box<dyn Any + Send>)>,
    bytes: u64,
}

/// So many bytes of freed memory are kept, so that accesses to them are known for what they are.
const MOST_FREED: u64 = 256 << 20;

/// So many pieces of it.
const MOST_KEPT: usize = 1024;

static ON: AtomicBool = AtomicBool::new(false);
static KNOWN: Mutex<Known> = Mutex::new(Known::new());
static FREED: Mutex<Freed> = Mutex::new(Freed { ranges: BTreeMap::new(), kept: VecDeque::new(), bytes: 0 });

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
    freed.kept.push_back((start, known.len, memory));
    freed.bytes += known.len;
    let mut spare = Vec::new();
    while (freed.bytes > MOST_FREED || freed.kept.len() > MOST_KEPT)
        && let Some((start, bytes, memory)) = freed.kept.pop_front()
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

/// All that is kept of freed memory is free.
pub fn forget_freed() {
    let mut freed = FREED.lock().unwrap_or_else(PoisonError::into_inner);
    let spare = std::mem::take(&mut freed.kept);
    freed.ranges.clear();
    freed.bytes = 0;
    drop(freed);
    drop(spare);
}

/// Freed memory now, as ranges.
pub(super) fn freed() -> BTreeMap<u64, u64> {
    FREED.lock().unwrap_or_else(PoisonError::into_inner).ranges.clone()
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

/// Bytes were copied: those that nobody has written are unwritten there, too.
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
        (Some(target), Some(source)) => {
            for at in 0..bytes {
                target.set(to - target.start + at, source.is_unwritten(from - source.start + at));
            }
        }
        (Some(_), None) => written(to, bytes),
        (None, _) => {}
    }
}

/// What is noted now.
pub(super) fn now() -> Vec<Arc<Bytes>> {
    known().values().cloned().collect()
}

/// How many bytes of a range nobody has written, of memory in the order of its starts.
pub(super) fn unwritten(all: &[Arc<Bytes>], start: u64, bytes: u64) -> u32 {
    let behind = all.partition_point(|memory| memory.start < start.saturating_add(bytes));
    let near = all.iter().take(behind).rev().take_while(|memory| memory.meets(start, bytes));
    near.map(|memory| memory.count(start, bytes)).sum()
}

/// Of memory in the order of its starts, that which has these bytes.
pub(super) fn find(all: &[Arc<Bytes>], address: u64, bytes: u64) -> Option<&Arc<Bytes>> {
    let behind = all.partition_point(|memory| memory.start <= address);
    all.get(behind.checked_sub(1)?).filter(|memory| memory.contains(address, bytes))
}

#[cfg(test)]
mod tests {
    use super::Bytes;

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
