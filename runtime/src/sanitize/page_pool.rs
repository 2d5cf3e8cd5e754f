//! Unused pages of shadow memory: a page that one launch has set up serves the next, on any system thread.

use std::sync::{
    LazyLock, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use super::{page::Page, shadow::ByAddress};

/// The most bytes of pages that are cached.
const MAX_CACHED: usize = 512 << 20;

/// The number of maps over which they are distributed, to reduce lock contention.
const SHARDS: usize = 256;

/// By number, with the age of the blocks' numbers in them.
type Shard = Mutex<ByAddress<(u32, Box<Page>)>>;

static IDLE: LazyLock<Box<[Shard]>> = LazyLock::new(|| (0..SHARDS).map(|_| Mutex::default()).collect());
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// The index of a page's map among `n_shards`.
pub(super) const fn shard_of(number: u64, n_shards: usize) -> usize {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize % n_shards
}

fn shard(number: u64) -> MutexGuard<'static, ByAddress<(u32, Box<Page>)>> {
    IDLE[shard_of(number, SHARDS)].lock().unwrap_or_else(PoisonError::into_inner)
}

/// A page that was used before, for a launch of that age.
pub(super) fn take(number: u64, age: u32) -> Option<Box<Page>> {
    let (its_age, page) = shard(number).remove(&number)?;
    BYTES.fetch_sub(page.size(), Ordering::Relaxed);
    (its_age == age).then_some(page)
}

/// A launch of that age uses a page no more.
pub(super) fn give_back(number: u64, age: u32, page: Box<Page>) {
    let size = page.size();
    if BYTES.fetch_add(size, Ordering::Relaxed) + size > MAX_CACHED {
        BYTES.fetch_sub(size, Ordering::Relaxed);
        return;
    }
    // Another launch, or another part of it, has used one for the same memory.
    let before = shard(number).insert(number, (age, page));
    if let Some((_, before)) = before {
        BYTES.fetch_sub(before.size(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use crate::sanitize::{
        numbers::Numbers,
        page::PAGE,
        record::{When, Write},
        shadow::Shadow,
    };

    #[test]
    fn a_page_is_handed_on_from_launch_to_launch() {
        let place = 14 << 40;
        let numbers = Numbers { launch: 1, blocks: (1, 1), age: 5 };
        let written = Write::of(&When { block: 1, ..When::default() });
        let mut shadow = Shadow::of(&numbers);
        shadow.page(place, 4).expect("a page is made").set_write(3, written, 0);
        // Two concurrent launches have a page each, of which one is cached.
        let mut other = Shadow::of(&numbers);
        assert_ne!(other.page(place, 4).expect("a page is made").write(3), written);
        drop(other);
        drop(shadow);
        let mut next = Shadow::of(&Numbers { launch: 2, ..numbers });
        assert_eq!(next.page(place, 4).expect("it is there").write(3), written);
        assert!(next.known(place / PAGE + 1).is_none());
        drop(next);
        // Its numbers begin anew.
        let mut anew = Shadow::of(&Numbers { launch: 3, age: 6, ..numbers });
        assert_eq!(anew.page(place, 4).expect("a page is made").write(3), Write::default());
    }
}
