//! A cache of large freed allocations. A launch on a NumPy array needs device memory while it runs. The system maps
//! fresh memory page by page on first access, which costs more than most kernels.
//!
//! - Cached memory has no other owner: it enters by value when its buffer is dropped, and leaves by value.
//! - The cache is bounded. It is freed before an allocation fails or the machine runs out of memory.
//! - No thread waits for the lock: in a forked process, a thread that does not exist there may hold it forever. A
//!   thread that fails to lock bypasses the cache and never reads the guarded state, which may be inconsistent.

use std::{
    mem::{self, ManuallyDrop},
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{machine, memory::Allocation};

/// Smaller allocations are not cached, because the allocator caches them itself.
pub(super) const SMALLEST: usize = 1 << 20;
/// The maximum number of cached bytes.
const MOST: usize = 1 << 30;
/// The cache uses at most this fraction (1/4) of the machine's memory.
const SHARE: u64 = 4;
/// An allocation is not reused if it exceeds the requested size by more than this fraction (1/4).
const WASTE: usize = 4;

/// Freed memory that is cached for later allocations.
#[derive(Debug)]
pub(super) struct FreeList {
    /// The least recently freed comes first.
    list: Mutex<ManuallyDrop<Vec<Allocation>>>,
    /// The number of cached bytes. Written under the lock of `list`.
    bytes: AtomicUsize,
    most: usize,
}

impl FreeList {
    /// An empty cache, with the limit for a machine with this much memory.
    pub(super) fn new(total_memory: u64) -> Self {
        Self::at_most(usize::try_from(total_memory / SHARE).map_or(MOST, |share| share.min(MOST)))
    }

    fn at_most(most: usize) -> Self {
        Self { list: Mutex::default(), bytes: AtomicUsize::new(0), most }
    }

    /// The number of cached bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed) as u64
    }

    /// At least `bytes` bytes, cached or fresh, with undefined contents; `None` if memory is exhausted.
    pub(super) fn allocate(&self, bytes: usize) -> Option<Allocation> {
        if bytes >= SMALLEST {
            if let Some(found) = self.take(bytes) {
                return Some(found);
            }
            // The system overcommits memory, and kills a process that touches too much of it.
            if self.bytes() > 0 && machine::memory_info().0 < bytes as u64 {
                self.free_all();
            }
        }
        Allocation::new(bytes).or_else(|| {
            self.free_all();
            Allocation::new(bytes)
        })
    }

    /// Caches a freed allocation.
    pub(super) fn keep(&self, allocation: Allocation) {
        let size = allocation.size();
        if allocation.len() < SMALLEST || size > self.most {
            return;
        }
        let Some(mut list) = self.lock() else { return };
        let mut bytes = self.bytes.load(Ordering::Relaxed) + size;
        let mut n_old = 0;
        for old in list.iter() {
            if bytes <= self.most {
                break;
            }
            bytes -= old.size();
            n_old += 1;
        }
        let old: Vec<Allocation> = list.drain(..n_old).collect();
        list.push(allocation);
        self.bytes.store(bytes, Ordering::Relaxed);
        // Returning memory to the system is slow, so it happens outside the lock.
        drop(list);
        drop(old);
    }

    /// The best-fitting allocation. Among equal ones, the most recently freed.
    fn take(&self, bytes: usize) -> Option<Allocation> {
        if self.bytes.load(Ordering::Relaxed) < bytes {
            return None;
        }
        let mut list = self.lock()?;
        let fits = |held: &Allocation| held.len() >= bytes && held.len() - bytes <= bytes / WASTE;
        let (i, _) = list.iter().enumerate().rev().filter(|(_, held)| fits(held)).min_by_key(|(_, held)| held.len())?;
        let found = list.remove(i);
        self.bytes.fetch_sub(found.size(), Ordering::Relaxed);
        Some(found)
    }

    /// Returns all cached memory to the system.
    pub(super) fn free_all(&self) {
        let Some(mut list) = self.lock() else { return };
        let all = mem::take(&mut **list);
        self.bytes.store(0, Ordering::Relaxed);
        drop(list);
        drop(all);
    }

    fn lock(&self) -> Option<MutexGuard<'_, ManuallyDrop<Vec<Allocation>>>> {
        self.list.try_lock().ok()
    }
}

impl Drop for FreeList {
    /// If a thread of the parent process was changing the list during a fork, the list is leaked.
    fn drop(&mut self) {
        self.free_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn allocate(kept: &FreeList, bytes: usize) -> Allocation {
        kept.allocate(bytes).expect("there is memory")
    }

    /// Allocates all of them at once, then frees them in this order.
    fn free(kept: &FreeList, sizes: &[usize]) -> Vec<*mut u8> {
        let all: Vec<Allocation> = sizes.iter().map(|bytes| allocate(kept, *bytes)).collect();
        let starts = all.iter().map(Allocation::start).collect();
        for allocation in all {
            kept.keep(allocation);
        }
        starts
    }

    #[test]
    fn freed_memory_comes_back_and_live_memory_does_not() {
        let kept = FreeList::new(u64::MAX);
        let [start] = free(&kept, &[5 * MIB])[..] else { panic!("one was freed") };
        let (first, second) = (allocate(&kept, 5 * MIB), allocate(&kept, 5 * MIB));
        assert_eq!(first.start(), start);
        assert!(
            second.start() >= start.wrapping_add(first.size()) || second.start().wrapping_add(second.size()) <= start
        );
        kept.keep(second);
        assert_ne!(allocate(&kept, 5 * MIB).start(), start, "`first` is still in use");
    }

    #[test]
    fn the_best_fit_wins_and_too_large_ones_stay() {
        let kept = FreeList::new(u64::MAX);
        let [six, five, four] = free(&kept, &[6 * MIB, 5 * MIB, 4 * MIB])[..] else { panic!("three were freed") };
        let found = allocate(&kept, 5 * MIB - 1);
        assert_eq!((found.start(), found.len()), (five, 5 * MIB));
        let next = allocate(&kept, 5 * MIB - 1);
        assert_eq!(next.start(), six);
        let other = allocate(&kept, 3 * MIB);
        assert_ne!(other.start(), four, "a third more than was requested");
        assert_eq!(kept.bytes(), allocate(&kept, 4 * MIB).size() as u64);
        assert_eq!(kept.bytes(), 0);
    }

    #[test]
    fn of_equal_ones_the_last_freed_comes_first() {
        let kept = FreeList::new(u64::MAX);
        let [older, newer] = free(&kept, &[2 * MIB, 2 * MIB])[..] else { panic!("two were freed") };
        let (first, second) = (allocate(&kept, 2 * MIB), allocate(&kept, 2 * MIB));
        assert_eq!((first.start(), second.start()), (newer, older));
    }

    #[test]
    fn it_is_bounded_and_the_oldest_goes_first() {
        let kept = FreeList::at_most(8 * MIB);
        let [_, middle, last] = free(&kept, &[3 * MIB, 2 * MIB, 4 * MIB])[..] else { panic!("three were freed") };
        assert!(kept.bytes() <= 8 << 20, "{}", kept.bytes());
        let starts: Vec<_> = kept.list.lock().expect("no one has it").iter().map(Allocation::start).collect();
        assert_eq!(starts, [middle, last]);
        free(&kept, &[8 * MIB]);
        let starts: Vec<_> = kept.list.lock().expect("no one has it").iter().map(Allocation::start).collect();
        assert_eq!(starts, [middle, last], "with its slack it is more than the bound");
        assert_eq!(FreeList::new(2 << 30).most, 512 * MIB);
        assert_eq!(FreeList::new(64 << 30).most, 1024 * MIB);
    }

    #[test]
    fn small_memory_is_not_kept() {
        let kept = FreeList::new(u64::MAX);
        free(&kept, &[1, 4096, SMALLEST - 1]);
        assert_eq!(kept.bytes(), 0);
        free(&kept, &[SMALLEST]);
        assert!(kept.bytes() >= SMALLEST as u64);
    }

    #[test]
    fn it_goes_before_an_allocation_fails() {
        let kept = FreeList::new(u64::MAX);
        free(&kept, &[2 * MIB]);
        assert!(kept.allocate(1 << 60).is_none());
        assert_eq!(kept.bytes(), 0);
    }

    #[test]
    fn a_lock_that_is_never_released_stops_no_one() {
        let kept = FreeList::new(u64::MAX);
        let [start] = free(&kept, &[2 * MIB])[..] else { panic!("one was freed") };
        let bytes = kept.bytes();
        mem::forget(kept.list.lock().expect("no one has it"));
        let fresh = allocate(&kept, 2 * MIB);
        assert_ne!(fresh.start(), start);
        kept.keep(fresh);
        assert!(kept.allocate(1 << 60).is_none());
        assert_eq!(kept.bytes(), bytes);
    }
}
