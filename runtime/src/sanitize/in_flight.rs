//! The bytes that asynchronous copies will write: from the copy until its thread waits for it, no thread may access them.

use std::collections::BTreeMap;

use super::{
    launch::{Launch, LiveThread},
    page::PAGE,
    record::Spot,
};

/// A copy that is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CopyInFlight {
    /// One past its last byte.
    pub(super) end: u64,
    /// The number of its thread in the block.
    pub(super) thread: usize,
    pub(super) spot: Spot,
    pub(super) ends: Ends,
}

/// How threads know that a copy is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// Its thread has waited for its group.
    Group,
    /// A barrier in shared memory counts it.
    Phase,
    /// Its thread has waited for the read of its source, in shared memory.
    SourceRead,
    /// Its thread has waited for its group, and it has written global memory.
    Written,
}

impl CopyInFlight {
    pub(super) const fn new(end: u64, thread: usize, spot: Spot, ends: Ends) -> Self {
        Self { end, thread, spot, ends }
    }
}

/// The copies to a block's memory, by their first bytes. They do not overlap: a copy to bytes in flight is reported, and
/// replaces the earlier one.
#[derive(Debug, Default)]
pub(super) struct InFlight(BTreeMap<u64, CopyInFlight>);

/// The largest copy, in bytes.
const LARGEST: u64 = 16;

impl InFlight {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// A copy that writes some of these bytes.
    #[inline]
    pub(super) fn find(&self, address: u64, bytes: u64) -> Option<CopyInFlight> {
        if self.0.is_empty() {
            return None;
        }
        let range = address.saturating_sub(LARGEST)..address.saturating_add(bytes);
        self.0.range(range).map(|(_, copy)| *copy).find(|copy| copy.end > address)
    }

    /// Whether there is a copy to the page of an address.
    pub(super) fn is_in_page(&self, address: u64) -> bool {
        self.find(address / PAGE * PAGE, PAGE).is_some()
    }
}

impl Launch {
    /// A thread begins a copy to `bytes` bytes at an address.
    pub fn copy_begins(&mut self, caller: LiveThread, site: u32, (address, bytes): (u64, u64)) {
        let Some(block) = self.blocks.get_mut(caller.slot) else { return };
        let Some(thread) = block.threads.get(caller.thread) else { return };
        let spot = Spot::new(site, thread.depth.chain);
        let copy = CopyInFlight::new(address.saturating_add(bytes), caller.thread, spot, Ends::Group);
        block.in_flight.0.insert(address, copy);
        // Compiled code must not find the page by itself.
        self.shadow.forget_page(address);
    }

    /// A thread has waited for its copy.
    pub fn copy_ends(&mut self, caller: LiveThread, (address, _): (u64, u64)) {
        let Some(block) = self.blocks.get_mut(caller.slot) else { return };
        if block.in_flight.0.get(&address).is_some_and(|copy| copy.thread == caller.thread) {
            block.in_flight.0.remove(&address);
        }
    }
}
