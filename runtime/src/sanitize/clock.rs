//! The happens-before relation of threads as vector clocks, compressed by block and by the logs of releases at
//! addresses.

use std::sync::Arc;

use weft_artifact::HostSeen;

use super::{
    barriers::CollectiveCall,
    calls::Depth,
    polling::Look,
    record::{MOST_CLOCK, Reads, Spot, When, Write},
    release_logs::Logs,
    shadow::ByNumber,
    versions::Versions,
};

/// Threads of a warp.
pub(super) const WARP: usize = 32;

/// The known times of threads: a thread's accesses before its time happen before everything that the owner of the
/// vector does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Vector {
    /// Of all threads of a block: those before this epoch.
    pub(super) blocks: ByNumber<u32, u32>,
    /// Of one thread: those of this epoch up to this clock, and of epochs before.
    pub(super) threads: ByNumber<(u32, u16), (u32, u32)>,
    /// Logs of releases at addresses, with everything that these logs know of other threads.
    pub(super) logs: Versions,
}

impl Vector {
    /// Whether an access is known.
    pub(super) fn knows(&self, logs: &Logs, who: (u32, u16), when: (u32, u32)) -> bool {
        self.blocks.get(&who.0).is_some_and(|&before| when.0 < before)
            || self.threads.get(&who).is_some_and(|&known| when <= known)
            || logs.knows(&self.logs, who, when)
    }

    fn add_block(&mut self, block: u32, before: u32) {
        let known = self.blocks.entry(block).or_insert(0);
        *known = before.max(*known);
    }

    fn add_thread(&mut self, who: (u32, u16), at: (u32, u32)) {
        let known = self.threads.entry(who).or_insert(at);
        *known = at.max(*known);
    }

    fn merge(&mut self, other: &Self) {
        for (&block, &before) in &other.blocks {
            self.add_block(block, before);
        }
        for (&who, &at) in &other.threads {
            self.add_thread(who, at);
        }
        self.logs.merge(other.logs.iter());
    }

    fn len(&self) -> usize {
        self.threads.len() + self.blocks.len() + self.logs.len()
    }
}

/// The join of two vectors.
pub(super) fn join(into: &mut Option<Arc<Vector>>, other: &Arc<Vector>) {
    match into {
        None => *into = Some(Arc::clone(other)),
        Some(known) if Arc::ptr_eq(known, other) => {}
        Some(known) => {
            if known.len() < other.len() {
                let mut merged = Vector::clone(other);
                merged.merge(known);
                *known = Arc::new(merged);
            } else {
                Arc::make_mut(known).merge(other);
            }
        }
    }
}

/// A thread while its block lives.
#[derive(Debug)]
pub(super) struct Thread {
    /// The values that the thread's code compares accesses with; [`Thread::see`] refreshes them after a change.
    pub(super) seen: HostSeen,
    /// The number of its block in the grid, if the thread is an iteration of a work-item loop.
    pub(super) block: u32,
    /// Barriers of the block that it has passed.
    pub(super) epoch: u32,
    /// Its clock, which advances where it releases something, up to [`MOST_CLOCK`].
    pub(super) clock: u32,
    /// The function that it is in.
    pub(super) depth: Depth,
    /// The known clock of each lane of its warp.
    pub(super) lanes: Option<Box<[u32; WARP]>>,
    /// The acquired knowledge.
    pub(super) known: Option<Arc<Vector>>,
    /// Its last access to shared memory before it last yielded.
    pub(super) before: Option<Spot>,
    /// It has left by a `return`.
    pub(super) returned: bool,
    /// The location of its current or last barrier.
    pub(super) meeting: CollectiveCall,
    /// The vector that atomic operations release: its knowledge at its last fence, for all threads and for its block.
    pub(super) released: Option<Arc<Vector>>,
    pub(super) released_to_block: Option<Arc<Vector>>,
    /// The location and the scope of the last operation that released these: a waiting thread releases them repeatedly.
    pub(super) left: Option<(u64, bool)>,
    /// The logs that its atomic operations have seen, which its next fence acquires. Releases of its own block are
    /// separate.
    pub(super) seen_wide: ByNumber<u32, u32>,
    pub(super) seen_of_block: ByNumber<u32, u32>,
    /// Values that it copies, by number, of which some bytes were not written when it read them last.
    pub(super) copies: Vec<Copied>,
    /// Its permitted reads of bytes that were never written: source location and address.
    pub(super) unwritten: Vec<(Spot, u64)>,
    /// Its local arrays. A thread of a later block reuses them, and clears them when they begin.
    pub(super) locals: Vec<super::memory::Bytes>,
    /// Whether it waits, as far as that can be seen.
    pub(super) look: Look,
    /// Its last index that was out of bounds.
    pub(super) bad: Option<Bad>,
}

/// A value that a thread has read only to store it somewhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Copied {
    /// The number of the value.
    pub(super) number: u32,
    /// A mask of its bytes that were never written.
    pub(super) unwritten: u8,
    /// Where it was read.
    pub(super) spot: Spot,
    /// From which address.
    pub(super) address: u64,
}

/// An index that was out of bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bad {
    pub(super) spot: Spot,
    pub(super) axis: u32,
    pub(super) index: i64,
    pub(super) extent: i64,
}

impl Default for Thread {
    fn default() -> Self {
        Self {
            seen: HostSeen::NONE,
            block: 0,
            epoch: 0,
            clock: 1,
            depth: Depth::default(),
            lanes: None,
            known: None,
            before: None,
            returned: false,
            meeting: CollectiveCall::default(),
            released: None,
            released_to_block: None,
            left: None,
            seen_wide: ByNumber::default(),
            seen_of_block: ByNumber::default(),
            copies: Vec::new(),
            unwritten: Vec::new(),
            locals: Vec::new(),
            look: Look::default(),
            bad: None,
        }
    }
}

impl Thread {
    /// Sets the values that its code compares with, for the thread with this number in a block.
    pub(super) fn see(&mut self, block: u32, number: usize) {
        let spot = Spot::new(0, self.depth.chain);
        let when = When { block, thread: number as u32, epoch: self.epoch, clock: self.clock, how: 0, spot };
        let (read, write) = (Reads::of(&when), Write::of(&when));
        self.seen = HostSeen {
            block,
            epoch: self.epoch,
            chain: spot.bits(),
            read: read.who(),
            chain_too: spot.bits(),
            write: write.who(),
            lane: read.lanes,
            copies: self.copies.len() as u32,
            knows: u32::from(self.lanes.is_some() || self.known.is_some()),
            ..self.seen
        };
    }

    /// The same, where only the call chain has changed.
    pub(super) fn see_calls(&mut self) {
        let chain = Spot::new(0, self.depth.chain).bits();
        (self.seen.chain, self.seen.chain_too) = (chain, chain);
    }

    /// Its last access to memory that others see.
    pub(super) fn last(&self) -> Option<Spot> {
        self.seen.last.checked_sub(1).map(Spot::of_bits).or(self.before)
    }

    /// Whether it has accessed such memory since the last call.
    pub(super) fn has_looked(&mut self) -> bool {
        self.before = self.last();
        std::mem::take(&mut self.seen.last) != 0
    }

    /// A thread that begins, where another one may have been; `orders` if that may have acquired or released something.
    pub(super) fn begin(&mut self, orders: bool) {
        (self.epoch, self.clock, self.depth) = (0, 1, Depth::default());
        (self.before, self.bad, self.meeting) = (None, None, CollectiveCall::default());
        (self.returned, self.look, self.seen) = (false, Look::default(), HostSeen::NONE);
        self.lanes = None;
        self.copies.clear();
        self.unwritten.clear();
        if orders {
            let locals = std::mem::take(&mut self.locals);
            *self = Self { locals, ..Self::default() };
        }
    }

    /// Starts a new clock value: later accesses are distinguished from earlier ones.
    pub(super) fn tick(&mut self) {
        self.clock = (self.clock + 1).min(MOST_CLOCK);
    }

    /// Its current knowledge, as the thread with this number in a block.
    pub(super) fn snapshot(&self, block: u32, thread: u16) -> Vector {
        let mut vector = self.known.as_ref().map_or_else(Vector::default, |known| Vector::clone(known));
        vector.add_block(block, self.epoch);
        let first = thread - thread % WARP as u16;
        for (lane, &clock) in self.lanes.iter().flat_map(|lanes| lanes.iter().enumerate()) {
            if clock > 0 {
                vector.add_thread((block, first + lane as u16), (self.epoch, clock));
            }
        }
        vector.add_thread((block, thread), (self.epoch, self.clock));
        vector
    }

    /// A fence, for all threads or for its block: acquires the logs that it has seen, and makes its knowledge the
    /// vector that later operations release.
    pub(super) fn fence(&mut self, logs: &Logs, (block, thread): (u32, u16), to_block: bool) {
        self.acquire(logs, to_block);
        let vector = Arc::new(self.snapshot(block, thread));
        self.tick();
        if !to_block {
            self.released = Some(Arc::clone(&vector));
        }
        self.released_to_block = Some(vector);
        self.left = None;
    }

    /// Acquires the logs that it has seen.
    pub(super) fn acquire(&mut self, logs: &Logs, of_block: bool) {
        for seen in std::mem::take(&mut self.seen_of_block) {
            self.knows_log(logs, seen);
        }
        if !of_block {
            for seen in std::mem::take(&mut self.seen_wide) {
                self.knows_log(logs, seen);
            }
        }
    }

    fn knows_log(&mut self, logs: &Logs, seen: (u32, u32)) {
        let is_known =
            self.known.as_ref().and_then(|known| known.logs.get(seen.0)).is_some_and(|known| known >= seen.1);
        if !is_known {
            logs.acquire(&mut Arc::make_mut(self.known.get_or_insert_default()).logs, seen);
        }
    }

    /// Its atomic operation at an address.
    pub(super) fn step(&mut self, logs: &mut Logs, location: u64, (block, number): (u32, u16), step: Step) {
        let wide = logs.seen(location, None).filter(|_| !step.of_block);
        for (seen, is_wide) in [(logs.seen(location, Some(block)), false), (wide, true)] {
            let Some((log, version)) = seen else { continue };
            if step.acquires {
                self.knows_log(logs, (log, version));
            } else {
                // A later version has all of an earlier one.
                (if is_wide { &mut self.seen_wide } else { &mut self.seen_of_block }).insert(log, version);
            }
        }
        if !step.writes {
            return;
        }
        if !step.releases && self.left.replace((location, step.of_block)) == Some((location, step.of_block)) {
            return;
        }
        let (wide, narrow) = if step.releases {
            let vector = Arc::new(self.snapshot(block, number));
            self.tick();
            (Some(Arc::clone(&vector)).filter(|_| !step.of_block), Some(vector))
        } else {
            (self.released.clone().filter(|_| !step.of_block), self.released_to_block.clone())
        };
        if let Some(vector) = wide {
            logs.release(location, None, &vector);
        }
        if let Some(vector) = narrow {
            logs.release(location, Some(block), &vector);
        }
    }
}

/// The ordering effect of an atomic operation.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Step {
    pub(super) acquires: bool,
    pub(super) releases: bool,
    pub(super) of_block: bool,
    pub(super) writes: bool,
}
