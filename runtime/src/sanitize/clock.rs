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

/// The number of threads in a warp.
pub(super) const WARP: usize = 32;

/// A vector clock: for each known thread, the time before which all its accesses happen before everything that the
/// owner of the vector does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Vector {
    /// For all threads of a block: the first epoch that is not known.
    pub(super) blocks: ByNumber<u32, u32>,
    /// For one thread: the last known time, as epoch and clock. Earlier epochs are known too.
    pub(super) threads: ByNumber<(u32, u16), (u32, u32)>,
    /// The known versions of release logs, including everything that these logs know of other threads.
    pub(super) logs: Versions,
}

impl Vector {
    /// Whether an access happens before the owner's current state.
    pub(super) fn knows(&self, logs: &Logs, thread_id: (u32, u16), when: (u32, u32)) -> bool {
        self.blocks.get(&thread_id.0).is_some_and(|&before| when.0 < before)
            || self.threads.get(&thread_id).is_some_and(|&known| when <= known)
            || logs.knows(&self.logs, thread_id, when)
    }

    pub(super) fn add_block(&mut self, block: u32, before: u32) {
        let known = self.blocks.entry(block).or_insert(0);
        *known = before.max(*known);
    }

    pub(super) fn add_thread(&mut self, thread_id: (u32, u16), at: (u32, u32)) {
        let known = self.threads.entry(thread_id).or_insert(at);
        *known = at.max(*known);
    }

    fn merge(&mut self, other: &Self) {
        for (&block, &before) in &other.blocks {
            self.add_block(block, before);
        }
        for (&thread_id, &at) in &other.threads {
            self.add_thread(thread_id, at);
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

/// The state of a thread while its block runs.
#[derive(Debug)]
pub(super) struct Thread {
    /// The values that the thread's code compares accesses with; [`Thread::see`] refreshes them after a change.
    pub(super) seen: HostSeen,
    /// The number of its block in the grid, if the thread is an iteration of a work-item loop.
    pub(super) block: u32,
    /// Barriers of the block that it has passed.
    pub(super) epoch: u32,
    /// Its clock, which advances at each release, up to [`MOST_CLOCK`].
    pub(super) clock: u32,
    /// The function that it is in.
    pub(super) depth: Depth,
    /// The known clock of each lane of its warp.
    pub(super) lanes: Option<Box<[u32; WARP]>>,
    /// The vector clock that it has acquired from other threads.
    pub(super) known: Option<Arc<Vector>>,
    /// Its last access to shared memory before it last yielded.
    pub(super) before: Option<Spot>,
    /// Whether it has ended with a `return`.
    pub(super) returned: bool,
    /// The location of its current or last barrier.
    pub(super) collective: CollectiveCall,
    /// The vector clocks that its atomic operations release: its state at its last fence, with device scope and with
    /// block scope.
    pub(super) released: Option<Arc<Vector>>,
    pub(super) released_to_block: Option<Arc<Vector>>,
    /// The address and the scope of the last operation that released these. It avoids repeated releases by a waiting
    /// thread.
    pub(super) left: Option<(u64, bool)>,
    /// The logs that its atomic operations have observed and that its next fence acquires. Releases of its own block
    /// are separate.
    pub(super) seen_wide: ByNumber<u32, u32>,
    pub(super) seen_of_block: ByNumber<u32, u32>,
    /// Values that it copies, by number, some of whose bytes were uninitialized at their last read.
    pub(super) copies: Vec<Copied>,
    /// Its permitted reads of uninitialized bytes: source location and address.
    pub(super) unwritten: Vec<(Spot, u64)>,
    /// Its local arrays. A thread of a later block reuses and clears them.
    pub(super) locals: Vec<super::memory::Bytes>,
    /// The state of the heuristic that detects waiting.
    pub(super) look: Look,
    /// Its last out-of-bounds index.
    pub(super) bad: Option<Bad>,
}

/// A value that a thread has read only to store it elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Copied {
    /// The number of the value.
    pub(super) number: u32,
    /// A mask of its uninitialized bytes.
    pub(super) unwritten: u8,
    /// The source location of the read.
    pub(super) spot: Spot,
    /// The address of the read.
    pub(super) address: u64,
}

/// An out-of-bounds index.
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
            collective: CollectiveCall::default(),
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
    /// Sets the values that compiled code compares accesses with, for the thread with this number in a block.
    pub(super) fn see(&mut self, block: u32, number: usize) {
        let spot = Spot::new(0, self.depth.chain);
        let when = When { block, thread: number as u32, epoch: self.epoch, clock: self.clock, how: 0, spot };
        let (read, write) = (Reads::of(&when), Write::of(&when));
        self.seen = HostSeen {
            block,
            epoch: self.epoch,
            chain: spot.bits(),
            read: read.packed(),
            chain_too: spot.bits(),
            write: write.packed(),
            lane: read.lanes,
            copies: self.copies.len() as u32,
            knows: u32::from(self.lanes.is_some() || self.known.is_some()),
            ..self.seen
        };
    }

    /// The same after a change of only the call chain.
    pub(super) fn see_calls(&mut self) {
        let chain = Spot::new(0, self.depth.chain).bits();
        (self.seen.chain, self.seen.chain_too) = (chain, chain);
    }

    /// Its last access to memory visible to other threads.
    pub(super) fn last(&self) -> Option<Spot> {
        self.seen.last.checked_sub(1).map(Spot::of_bits).or(self.before)
    }

    /// Whether it has accessed such memory since the previous call.
    pub(super) fn has_looked(&mut self) -> bool {
        self.before = self.last();
        std::mem::take(&mut self.seen.last) != 0
    }

    /// Resets the state for a new thread that reuses it. `orders`: the previous thread may have acquired or released
    /// something.
    pub(super) fn begin(&mut self, orders: bool) {
        (self.epoch, self.clock, self.depth) = (0, 1, Depth::default());
        (self.before, self.bad, self.collective) = (None, None, CollectiveCall::default());
        (self.returned, self.look, self.seen) = (false, Look::default(), HostSeen::NONE);
        self.lanes = None;
        self.copies.clear();
        self.unwritten.clear();
        if orders {
            let locals = std::mem::take(&mut self.locals);
            *self = Self { locals, ..Self::default() };
        }
    }

    /// Advances the clock: later accesses are distinguished from earlier ones.
    pub(super) fn tick(&mut self) {
        self.clock = (self.clock + 1).min(MOST_CLOCK);
    }

    /// Its current vector clock, as the thread with this number in a block.
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

    /// A fence with device scope or block scope: acquires the observed logs, and makes the current vector clock the one
    /// that later operations release.
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

    /// Acquires the observed logs.
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

    /// An atomic operation at an address.
    pub(super) fn step(&mut self, logs: &mut Logs, location: u64, (block, number): (u32, u16), step: Step) {
        let wide = logs.seen(location, None).filter(|_| !step.of_block);
        for (seen, is_wide) in [(logs.seen(location, Some(block)), false), (wide, true)] {
            let Some((log, version)) = seen else { continue };
            if step.acquires {
                self.knows_log(logs, (log, version));
            } else {
                // A later version includes all earlier ones.
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
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(super) struct Step {
    pub(super) acquires: bool,
    pub(super) releases: bool,
    pub(super) of_block: bool,
    pub(super) writes: bool,
}
