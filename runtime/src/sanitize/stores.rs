//! Asynchronous copies to global memory: until a thread has waited for the read of the source, no thread may write it, and
//! until it has waited for the copy, no thread may access the elements that it writes.
//!
//! A copy is checked as a read of its source and a write of its target where it begins, and again where its thread waits:
//! what other threads do between is ordered with neither.

use weft_artifact::AccessBits;

use super::{
    in_flight::{CopyInFlight, Ends},
    launch::{Launch, LiveThread},
    page::PAGE,
    phases::Range,
    record::Spot,
};

/// A copy for which its thread has not waited.
#[derive(Clone, Debug)]
struct Store {
    /// What the runtime identifies it by.
    number: u64,
    caller: LiveThread,
    /// The sites of its write and of its read, and where it began.
    sites: (u32, u32),
    spots: (Spot, Spot),
    source: Range,
    /// Its thread has waited for the read of the source.
    is_read: bool,
    targets: Vec<Range>,
}

/// The copies of a launch to global memory.
#[derive(Debug, Default)]
pub(super) struct Stores(Vec<Store>);

fn meet((a, n): Range, (b, m): Range) -> bool {
    a < b.saturating_add(m) && b < a.saturating_add(n)
}

impl Stores {
    /// A copy that an access of a range must not precede, and the slot of its block.
    #[inline]
    pub(super) fn find(&self, range: Range, writes: bool) -> Option<(CopyInFlight, usize)> {
        if self.0.is_empty() {
            return None;
        }
        self.0.iter().find_map(|store| {
            let (spot, ends) = if store.targets.iter().any(|target| meet(*target, range)) {
                (store.spots.0, Ends::Written)
            } else if writes && !store.is_read && meet(store.source, range) {
                (store.spots.1, Ends::SourceRead)
            } else {
                return None;
            };
            Some((CopyInFlight::new(0, store.caller.thread, spot, ends), store.caller.slot))
        })
    }

    /// Whether a copy reads or writes the page of an address.
    pub(super) fn is_in_page(&self, address: u64) -> bool {
        let page = (address / PAGE * PAGE, PAGE);
        self.0.iter().any(|store| {
            !store.is_read && meet(store.source, page) || store.targets.iter().any(|target| meet(*target, page))
        })
    }
}

impl Launch {
    /// A thread begins a copy from a range of shared memory to ranges of global memory. `sites` are those of the write and of
    /// the read.
    pub fn store_begins(
        &mut self,
        caller: LiveThread,
        sites: (u32, u32),
        number: u64,
        source: Range,
        targets: Vec<Range>,
    ) {
        self.access_range(caller, sites.1, source, AccessBits::READS);
        for target in &targets {
            self.access_range(caller, sites.0, *target, AccessBits::WRITES);
        }
        // Compiled code must not find the pages by itself.
        for (start, bytes) in targets.iter().copied().chain([source]) {
            for page in start / PAGE..start.saturating_add(bytes).div_ceil(PAGE) {
                self.shadow.forget_page(page * PAGE);
            }
        }
        let spots = (self.spot(caller, sites.0), self.spot(caller, sites.1));
        self.stores.0.push(Store { number, caller, sites, spots, source, is_read: false, targets });
    }

    /// The thread of a copy has waited for the read of its source.
    pub fn store_is_read(&mut self, number: u64) {
        let Some(store) = self.stores.0.iter_mut().find(|store| store.number == number && !store.is_read) else {
            return;
        };
        store.is_read = true;
        let (caller, site, source) = (store.caller, store.sites.1, store.source);
        self.access_range(caller, site, source, AccessBits::READS);
    }

    /// The thread of a copy has waited for it.
    pub fn store_ends(&mut self, number: u64) {
        self.store_is_read(number);
        let Some(at) = self.stores.0.iter().position(|store| store.number == number) else { return };
        let Store { caller, sites, targets, .. } = self.stores.0.remove(at);
        for target in targets {
            self.access_range(caller, sites.0, target, AccessBits::WRITES);
        }
    }

    /// A block has ended: its threads have waited for the reads of the sources of their copies.
    pub(super) fn check_stores_at_end(&mut self, slot: usize) {
        let (ended, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.stores.0).into_iter().partition(|store| store.caller.slot == slot);
        self.stores.0 = others;
        for store in ended.into_iter().filter(|store| !store.is_read) {
            let message =
                "begins a copy whose source may not be read when the block ends: the thread does not wait for it";
            let help = "call `cuda.copy_commit` and `cuda.copy_wait` (with `read=True` if that is enough) in the thread \
                        that copies";
            self.found_phase(store.caller, (store.spots.0, 0), "copy without a wait", message, help);
        }
    }
}
