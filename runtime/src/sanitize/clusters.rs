//! Blocks of a cluster: their threads access each other's shared memory, arrive at each other's barriers, and synchronize.

use std::sync::Arc;

use weft_artifact::{AccessBits, Tools};

use super::{
    access::through,
    barriers::share,
    clock::{Vector, join},
    launch::{AccessRecord, Launch, LiveThread, Verdict},
    record::Spot,
};

impl Launch {
    /// A block that has begun is in a cluster of several blocks.
    pub fn joins_cluster(&mut self, slot: usize, cluster: u64) {
        self.has_clusters = true;
        let Some(block) = self.blocks.get_mut(slot) else { return };
        block.cluster = Some(cluster);
        // Threads of other blocks may access the memory, so its state must not be that of an earlier block.
        let (start, len) = (block.start, block.len);
        self.shadow.forget_bytes(start, len);
        self.show_block(slot);
    }

    /// The slot of the block that has an address in its shared memory, as a thread of a block in a slot sees it: this block, or
    /// another one of its cluster.
    #[inline]
    pub(super) fn owner(&self, slot: usize, address: u64) -> usize {
        if !self.has_clusters {
            return slot;
        }
        let Some(own) = self.blocks.get(slot) else { return slot };
        let has = |start: u64, len: u64| address.wrapping_sub(start) < len;
        if has(own.start, own.len) {
            return slot;
        }
        let is_owner = |block: &super::launch::Block| {
            block.number.is_some() && block.cluster == own.cluster && has(block.start, block.len)
        };
        self.blocks.iter().position(is_owner).unwrap_or(slot)
    }

    /// An access of the shared memory of another block of the cluster, in the slot `owner`.
    pub(super) fn access_remote(
        &mut self,
        caller: LiveThread,
        owner: usize,
        (spot, record): (Spot, AccessRecord),
        now: impl Fn() -> u64,
    ) -> Verdict {
        let AccessRecord { address, bits, .. } = record;
        let bytes = u64::from(bits & AccessBits::SIZE);
        let tools = self.plan.sites.tools;
        let Some(block) = self.blocks.get(owner) else { return Verdict::Goes };
        let Some(thread) = self.blocks.get(caller.slot).and_then(|block| block.threads.get(caller.thread)) else {
            return Verdict::Goes;
        };
        let begun = || block.phases.find((address, bytes), owner, thread, &self.released);
        let stored = || self.stores.find((address, bytes), bits & AccessBits::WRITES != 0);
        let in_flight = block.in_flight.find(address, bytes).map(|copy| (copy, owner));
        if let Some(copy) = in_flight.or_else(begun).or_else(stored) {
            self.found_in_flight(caller, (spot, record), copy);
            return Verdict::Goes;
        }
        let mut verdict = Verdict::Goes;
        if let Some(thread) = self.thread(caller) {
            thread.seen.last = spot.bits().saturating_add(1);
            let mut copies = std::mem::take(&mut thread.copies);
            let memory = self.blocks.get(owner).and_then(|block| block.scratch.as_ref());
            let memory = memory.filter(|memory| tools.has(Tools::INITCHECK) && memory.contains(address, bytes));
            let used = memory.map_or(0, |memory| through(memory, &mut copies, (spot, record), bytes).used);
            if let Some(thread) = self.thread(caller) {
                thread.seen.copies = copies.len() as u32;
                thread.copies = copies;
            }
            if used != 0 {
                verdict = self.found_read(caller, spot, record);
            }
        }
        self.record_poll(caller, record, &now);
        if tools.has(Tools::RACECHECK) {
            self.check_races(caller, spot, record, (bytes, true), now);
        }
        if bits & AccessBits::ATOMIC != 0 {
            self.order(caller, address, bits);
        }
        verdict
    }

    /// All threads of a cluster that have not ended were at its barrier: for each block its slot, and these threads.
    pub fn cluster_met(&mut self, met: &[(usize, Vec<usize>)]) {
        self.changes += 1;
        self.orders = true;
        let mut epochs = Vector::default();
        let mut known = None;
        for (slot, threads) in met {
            let Some(block) = self.blocks.get_mut(*slot) else { continue };
            block.epoch += 1;
            epochs.add_block(block.id, block.epoch);
            share(&mut block.threads, &self.released, threads);
            // They all know the same.
            let first = threads.first().and_then(|&thread| block.threads.get(thread));
            if let Some(own) = first.and_then(|thread| thread.known.as_ref()) {
                join(&mut known, own);
            }
        }
        join(&mut known, &Arc::new(epochs));
        for (slot, threads) in met {
            let Some(block) = self.blocks.get_mut(*slot) else { continue };
            let (epoch, id) = (block.epoch, block.id);
            for &at in threads {
                let Some(thread) = block.threads.get_mut(at) else { continue };
                thread.epoch = epoch;
                thread.known.clone_from(&known);
                thread.see(id, at);
            }
            self.forget_collectives(*slot, threads);
        }
    }
}
