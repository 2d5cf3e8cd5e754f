//! Barriers in shared memory: what their phases order, and the copies that they count.
//!
//! An arrival releases what its thread knows; a wait acquires what the arrivals of the completed phases released. A copy
//! writes its bytes where it begins, as far as the order among threads is concerned; until a thread knows that the phase
//! which counts the copy has completed, it may not access them. A vector clock has the completed phases of a barrier as the
//! time of a thread that does not exist: the last numbers of threads are those of barriers.

use std::{collections::BTreeMap, sync::Arc};

use weft_artifact::AccessBits;

use super::{
    clock::{Thread, Vector, join},
    in_flight::{CopyInFlight, Ends},
    launch::{AccessRecord, DEADLOCK, Launch, LiveThread, Verdict},
    page::PAGE,
    record::Spot,
    release_logs::Logs,
    shadow::ByNumber,
};

/// The parts in which a copy is checked as reads and writes, in bytes.
const PART: u64 = 4;
/// The epoch of the times that stand for phases: no thread passes as many barriers.
pub(super) const PHASES: u32 = u32::MAX;

/// What the runtime knows of a barrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseState {
    /// The number of completed phases.
    pub completed: u64,
    /// The number of arrivals in each phase.
    pub arrivals: u64,
    /// The number of arrivals that the current phase lacks.
    pub missing: u64,
    /// The number of bytes that it lacks; negative if copies have brought more than it expects.
    pub bytes: i64,
}

/// A range of memory: the address, and the number of bytes.
pub type Range = (u64, u64);

/// The waits of a thread for a barrier.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    /// The number of phases that had completed at its last one.
    completed: u64,
    /// Since then it has arrived, or begun copies that the barrier counts.
    takes_part: bool,
}

/// A barrier.
#[derive(Debug, Default)]
pub(super) struct Barrier {
    /// Its number among those of the block.
    number: u16,
    /// Where it was made, and by which thread.
    made: (Spot, usize),
    /// The number of completed phases.
    completed: u64,
    /// What the arrivals of the current phase have released, and those of the completed phases.
    arriving: Option<Arc<Vector>>,
    released: Option<Arc<Vector>>,
    /// By the slot of the block and the number of the thread.
    waits: ByNumber<(usize, usize), Waits>,
}

impl Barrier {
    /// The thread that stands for it in vector clocks, of a block in a slot. The numbers of blocks change at barriers of the
    /// grid.
    const fn id(&self, slot: usize) -> (u32, u16) {
        (u32::MAX - slot as u32, u16::MAX - self.number)
    }
}

/// A copy that a barrier counts.
#[derive(Clone, Debug)]
struct Bulk {
    /// The slot of the block of its thread.
    slot: usize,
    start: u64,
    copy: CopyInFlight,
    barrier: u64,
    /// The epoch and the clock of its thread where it began.
    begun: (u32, u32),
    /// The phase that counts it: known when it is made.
    phase: Option<u64>,
    /// The completed phases and products of which its thread knew where it began. A thread that waits for the copy knows of them
    /// too, although it is not ordered after what the arrivals had done before.
    known: Vector,
}

/// The barriers of a block, by their addresses, and the copies that they count.
#[derive(Debug, Default)]
pub(super) struct Phases {
    barriers: BTreeMap<u64, Barrier>,
    /// The number of barriers that were made.
    n_made: u16,
    copies: Vec<Bulk>,
}

impl Phases {
    pub(super) fn clear(&mut self) {
        self.barriers.clear();
        self.n_made = 0;
        self.copies.clear();
    }

    /// A copy that writes some of these bytes, and of which the thread does not know that it is complete, with the slot of the
    /// block that copies; `slot` is that of the block that has the bytes.
    #[inline]
    pub(super) fn find(
        &self,
        (address, bytes): Range,
        slot: usize,
        thread: &Thread,
        logs: &Logs,
    ) -> Option<(CopyInFlight, usize)> {
        if self.copies.is_empty() {
            return None;
        }
        let is_unknown = |copy: &&Bulk| {
            let (Some(phase), Some(barrier)) = (copy.phase, self.barriers.get(&copy.barrier)) else { return true };
            let time = (PHASES, phase as u32 + 1);
            !thread.known.as_ref().is_some_and(|known| known.knows(logs, barrier.id(slot), time))
        };
        self.copies_in((address, bytes)).find(is_unknown).map(|copy| (copy.copy, copy.slot))
    }

    /// Whether there is a copy to the page of an address.
    pub(super) fn is_in_page(&self, address: u64) -> bool {
        self.copies_in((address / PAGE * PAGE, PAGE)).next().is_some()
    }

    fn copies_in(&self, (address, bytes): Range) -> impl Iterator<Item = &Bulk> {
        let end = address.saturating_add(bytes);
        self.copies.iter().filter(move |copy| copy.start < end && address < copy.copy.end)
    }
}

impl Launch {
    /// A thread has initialized a number of barriers at adjacent words.
    pub fn barriers_made(&mut self, caller: LiveThread, site: u32, (address, count): (u64, u64)) {
        self.orders = true;
        let Some(block) = self.blocks.get_mut(caller.slot) else { return };
        let Some(thread) = block.threads.get(caller.thread) else { return };
        let made = (Spot::new(site, thread.depth.chain), caller.thread);
        for number in 0..count {
            let barrier = Barrier { number: block.phases.n_made, made, ..Barrier::default() };
            block.phases.n_made = block.phases.n_made.saturating_add(1);
            block.phases.barriers.insert(address + 8 * number, barrier);
        }
    }

    /// A thread arrives at a barrier, in the phase after the completed ones.
    pub fn arrives(&mut self, caller: LiveThread, site: u32, barrier: u64, state: PhaseState) {
        let id = self.number(caller.slot);
        let spot = self.spot(caller, site);
        if state.missing == 0 && state.arrivals > 0 {
            let message = format!("arrives in a phase that has its {} already", arrivals(state.arrivals));
            let help = "make the barrier for as many arrivals as a phase has, and wait for a phase before the next \
                        arrival";
            self.found_phase(caller, (spot, barrier), "too many arrivals", &message, help);
        } else if !self.knows_phase(caller, barrier, state.completed) {
            let message = "arrives without knowing that the phase before has completed: its arrival may be counted in \
                           that phase";
            let help = "wait for the phase before in the thread that arrives, or let it acquire from a thread that has \
                        waited";
            self.found_phase(caller, (spot, barrier), "early arrival", message, help);
        }
        let Some(thread) = self.thread(caller) else { return };
        let vector = Arc::new(thread.snapshot(id, caller.thread as u16));
        thread.tick();
        thread.see(id, caller.thread);
        let Some(known) = self.barrier(caller.slot, barrier) else { return };
        join(&mut known.arriving, &vector);
        known.waits.entry((caller.slot, caller.thread)).or_default().takes_part = true;
    }

    /// A phase of a barrier has completed. Its copies have been [made](Self::bulk_made).
    pub fn phase_completed(&mut self, slot: usize, barrier: u64) {
        self.changes += 1;
        let slot = self.owner(slot, barrier);
        let numbers: Vec<u32> = self.blocks.iter().map(|block| block.id).collect();
        let Some(block) = self.blocks.get_mut(slot) else { return };
        let Phases { barriers, copies, .. } = &mut block.phases;
        let Some(known) = barriers.get_mut(&barrier) else { return };
        let mut vector = Vector::default();
        for copy in copies.iter().filter(|copy| copy.barrier == barrier && copy.phase == Some(known.completed)) {
            vector.add_thread((numbers[copy.slot], copy.copy.thread as u16), copy.begun);
            copy.known.threads.iter().for_each(|(&id, &time)| vector.add_thread(id, time));
        }
        known.completed += 1;
        vector.add_thread(known.id(slot), (PHASES, known.completed as u32));
        if let Some(arriving) = known.arriving.take() {
            join(&mut known.released, &arriving);
        }
        join(&mut known.released, &Arc::new(vector));
        let too_many: Vec<_> = copies.iter().filter(|copy| copy.barrier == barrier && copy.phase.is_none()).collect();
        let too_many: Vec<Bulk> = too_many.into_iter().cloned().collect();
        for Bulk { copy, slot, .. } in too_many {
            let caller = LiveThread { slot, thread: copy.thread };
            let message = "begins a copy of bytes that the phase does not expect: the phase completes without it";
            let help = "pass the bytes of all copies of the phase to `expect`, before or after they begin";
            self.found_phase(caller, (copy.spot, barrier), "unexpected bytes", message, help);
        }
    }

    /// A wait for a phase of a barrier has returned; `state` is that of the barrier.
    pub fn phase_passed(&mut self, caller: LiveThread, site: u32, barrier: u64, state: PhaseState) {
        let id = self.number(caller.slot);
        let spot = self.spot(caller, site);
        let Some(block) = self.blocks.get_mut(caller.slot) else { return };
        let Some(thread) = block.threads.get_mut(caller.thread) else { return };
        let Some(known) = block.phases.barriers.get_mut(&barrier) else { return };
        if let Some(released) = &known.released {
            join(&mut thread.known, released);
            thread.see(id, caller.thread);
        }
        let waits = known.waits.entry((caller.slot, caller.thread)).or_default();
        let before = std::mem::replace(waits, Waits { completed: state.completed, takes_part: false });
        if before.takes_part && before.completed == state.completed {
            let message = "waits for a phase that had completed before, and returns at once, although it takes part in \
                           the phase after it";
            let help = "pass the number of the phase to `wait`: it alternates between even and odd with each phase";
            self.found_phase(caller, (spot, barrier), "old phase", message, help);
        }
    }

    /// A thread waits for a phase of a barrier that no thread can complete. If a thread has raised another exception before,
    /// that is the reason.
    pub fn phase_is_stuck(&mut self, caller: LiveThread, site: u32, barrier: u64, (state, raised): (PhaseState, bool)) {
        if raised && !self.findings.has(DEADLOCK) {
            return;
        }
        let spot = self.spot(caller, site);
        let PhaseState { arrivals: of_phase, missing, bytes, .. } = state;
        let (message, help) = if missing > 0 {
            let message = format!("waits forever: the phase lacks {missing} of its {}", arrivals(of_phase));
            (message, "let as many threads arrive as the barrier was made for, and wait for the current phase")
        } else if bytes > 0 {
            let message = format!("waits forever: the phase expects {bytes} bytes that no copy brings");
            (message, "pass the bytes of the copies of the phase to `expect`")
        } else {
            let message = format!("waits forever: copies have brought {} bytes more than the phase expects", -bytes);
            (message, "pass the bytes of the copies of the phase to `expect`")
        };
        self.found_phase(caller, (spot, barrier), DEADLOCK, &message, help);
    }

    /// A thread begins a copy that a barrier counts, to a range of shared memory, from ranges of other memory. `sites` are
    /// those of the write and of the reads.
    pub fn bulk_begins(
        &mut self,
        caller: LiveThread,
        sites: (u32, u32),
        barrier: u64,
        to: Range,
        from: impl Iterator<Item = Range>,
    ) {
        for range in from {
            self.access_range(caller, sites.1, range, AccessBits::READS);
        }
        self.access_range(caller, sites.0, to, AccessBits::WRITES);
        let owner = self.owner(caller.slot, barrier);
        self.check_products(caller, owner, self.spot(caller, sites.0), to);
        let id = self.number(caller.slot);
        let spot = self.spot(caller, sites.0);
        let (start, end) = (to.0, to.0.saturating_add(to.1));
        let Some(thread) = self.thread(caller) else { return };
        let begun = (thread.epoch, thread.clock);
        let mut known = Vector::default();
        let phases = thread.known.iter().flat_map(|known| &known.threads).filter(|(_, time)| time.0 == PHASES);
        phases.for_each(|(&id, &time)| known.add_thread(id, time));
        thread.tick();
        thread.see(id, caller.thread);
        let copy = CopyInFlight::new(end, caller.thread, spot, Ends::Phase);
        let Some(block) = self.blocks.get_mut(owner) else { return };
        block.phases.copies.retain(|known| known.phase.is_none() || known.copy.end <= start || known.start >= end);
        block.phases.copies.push(Bulk { slot: caller.slot, start, copy, barrier, begun, phase: None, known });
        if let Some(known) = block.phases.barriers.get_mut(&barrier) {
            known.waits.entry((caller.slot, caller.thread)).or_default().takes_part = true;
        }
        // Compiled code must not find the pages by itself.
        for page in start / PAGE..end.div_ceil(PAGE) {
            self.shadow.forget_page(page * PAGE);
        }
    }

    /// The oldest copy of a barrier to an address has been made.
    pub fn bulk_made(&mut self, slot: usize, barrier: u64, to: u64) {
        let slot = self.owner(slot, barrier);
        let Some(block) = self.blocks.get_mut(slot) else { return };
        let Phases { barriers, copies, .. } = &mut block.phases;
        let is_it = |copy: &&mut Bulk| copy.barrier == barrier && copy.start == to && copy.phase.is_none();
        if let (Some(known), Some(copy)) = (barriers.get(&barrier), copies.iter_mut().find(is_it)) {
            copy.phase = Some(known.completed);
        }
    }

    /// A warp reads these ranges of shared memory for a product of its warpgroup. They are checked for bytes in flight here, and
    /// where a copy overwrites them: all threads of the warpgroup read them together, on behalf of each other.
    pub fn product_reads(&mut self, caller: LiveThread, site: u32, ranges: &[Range]) {
        let Some(block) = self.blocks.get(caller.slot) else { return };
        let Some(thread) = block.threads.get(caller.thread) else { return };
        let of_range = |&(address, bytes): &Range| {
            let begun = || block.phases.find((address, bytes), caller.slot, thread, &self.released);
            let in_flight = block.in_flight.find(address, bytes).map(|copy| (copy, caller.slot));
            Some((address, bytes, in_flight.or_else(begun)?))
        };
        if let Some((address, bytes, copy)) = ranges.iter().find_map(of_range) {
            let bits = bytes as u32 | AccessBits::READS;
            let record = AccessRecord { site, address, bits, value: 0, copy: 0 };
            self.found_in_flight(caller, (self.spot(caller, site), record), copy);
        }
        self.record_product(caller, self.spot(caller, site), ranges);
    }

    /// A block has ended: copies that are not made are in flight.
    pub(super) fn check_copies_at_end(&mut self, slot: usize) {
        let copies = self.blocks.get(slot).map(|block| block.phases.copies.clone()).unwrap_or_default();
        for Bulk { copy, barrier, slot, .. } in copies.into_iter().filter(|copy| copy.phase.is_none()) {
            let caller = LiveThread { slot, thread: copy.thread };
            let message = "begins a copy that may not be complete when the block ends: no thread waits for its phase";
            let help = "wait for the phase of the barrier that counts the copy";
            self.found_phase(caller, (copy.spot, barrier), "copy without a wait", message, help);
        }
    }

    /// The parts of a range, as accesses.
    pub(super) fn access_range(&mut self, caller: LiveThread, site: u32, (start, bytes): Range, how: u32) {
        for at in (0..bytes).step_by(PART as usize) {
            let size = PART.min(bytes - at) as u32;
            let record = AccessRecord { site, address: start.saturating_add(at), bits: size | how, value: 0, copy: 0 };
            // A value that is not there differs from all others.
            if self.access(caller, record, || 1) == Verdict::Nowhere {
                return;
            }
        }
    }

    pub(super) fn spot(&self, caller: LiveThread, site: u32) -> Spot {
        let block = self.blocks.get(caller.slot);
        let thread = block.and_then(|block| block.threads.get(caller.thread));
        Spot::new(site, thread.map_or(0, |thread| thread.depth.chain))
    }

    /// Whether a thread knows that a number of phases of a barrier have completed.
    fn knows_phase(&self, caller: LiveThread, barrier: u64, completed: u64) -> bool {
        let owner = self.owner(caller.slot, barrier);
        let thread = self.blocks.get(caller.slot).and_then(|block| block.threads.get(caller.thread));
        let known = self.blocks.get(owner).and_then(|block| block.phases.barriers.get(&barrier));
        let (Some(thread), Some(known)) = (thread, known) else { return true };
        let time = (PHASES, completed as u32);
        let knows = |vector: &Arc<Vector>| vector.knows(&self.released, known.id(owner), time);
        completed == 0 || thread.known.as_ref().is_some_and(knows)
    }

    /// A barrier that a thread of the block in a slot uses.
    fn barrier(&mut self, slot: usize, barrier: u64) -> Option<&mut Barrier> {
        let owner = self.owner(slot, barrier);
        self.blocks.get_mut(owner)?.phases.barriers.get_mut(&barrier)
    }

    /// Where a barrier was made that a thread of the block in a slot uses, and by which thread.
    pub(super) fn barrier_made_at(&self, slot: usize, barrier: u64) -> Option<(Spot, LiveThread)> {
        let slot = self.owner(slot, barrier);
        let (spot, thread) = self.blocks.get(slot)?.phases.barriers.get(&barrier).map(|barrier| barrier.made)?;
        Some((spot, LiveThread { slot, thread }))
    }
}

/// `1 arrival`, `2 arrivals`.
fn arrivals(count: u64) -> String {
    format!("{count} arrival{}", if count == 1 { "" } else { "s" })
}
