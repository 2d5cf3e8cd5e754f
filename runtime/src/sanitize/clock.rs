//! Who knows what of whom: vector clocks, kept small by blocks.

use std::{collections::HashMap, sync::Arc};

use super::{
    calls::Depth,
    meet::Meeting,
    shadow::{MOST_CLOCK, Spot},
};

/// Threads of a warp.
pub(super) const WARP: usize = 32;

/// Places that a loop may look at which waits.
pub(super) const RECENT: usize = 4;

/// What is known of threads: their accesses before a time are before everything that whoever knows it does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Vector {
    /// Of all threads of a block: those before this epoch.
    blocks: HashMap<u32, u32>,
    /// Of one thread: those of this epoch up to this clock, and of epochs before.
    threads: HashMap<(u32, u16), (u32, u32)>,
}

impl Vector {
    /// Whether an access is known.
    pub(super) fn knows(&self, block: u32, thread: u16, epoch: u32, clock: u32) -> bool {
        self.blocks.get(&block).is_some_and(|&before| epoch < before)
            || self.threads.get(&(block, thread)).is_some_and(|&known| (epoch, clock) <= known)
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
    }
}

/// What both know.
pub(super) fn join(into: &mut Option<Arc<Vector>>, other: &Arc<Vector>) {
    match into {
        None => *into = Some(Arc::clone(other)),
        Some(known) if Arc::ptr_eq(known, other) => {}
        Some(known) => {
            let smaller = known.threads.len() + known.blocks.len() < other.threads.len() + other.blocks.len();
            if smaller {
                let mut merged = Vector::clone(other);
                merged.merge(known);
                *known = Arc::new(merged);
            } else {
                Arc::make_mut(known).merge(other);
            }
        }
    }
}

/// A thread while its block lives. What each access asks for comes first.
#[derive(Debug, Default)]
pub(super) struct Thread {
    /// Barriers of the block that it has passed.
    pub(super) epoch: u32,
    /// Goes on where it releases something, up to [`MOST_CLOCK`].
    pub(super) clock: u32,
    /// The function that it is in.
    pub(super) depth: Depth,
    /// Of each lane of its warp: the clock up to which its accesses are known.
    pub(super) lanes: Option<Box<[u32; WARP]>>,
    /// What it has acquired.
    pub(super) known: Option<Arc<Vector>>,
    /// Its last access to memory that others see.
    pub(super) last: Option<Spot>,
    /// It has accessed such memory since it last let others go on.
    pub(super) has_looked: bool,
    /// It has left by a `return`.
    pub(super) returned: bool,
    /// Where it meets others, or last has.
    pub(super) meeting: Meeting,
    /// What atomic steps release: what it knew at its last fence, for all and for its block.
    pub(super) released: Option<Arc<Vector>>,
    pub(super) released_to_block: Option<Arc<Vector>>,
    /// What its atomic steps have seen that is known behind its next fence; what its own block released apart.
    pub(super) seen: Option<Arc<Vector>>,
    pub(super) seen_of_block: Option<Arc<Vector>>,
    /// Values on their way from one place to another, by number: which of their bytes nobody has written.
    pub(super) copies: Vec<(u32, u8)>,
    /// What it has read that nobody has written, and may use: where, and which address.
    pub(super) unwritten: Vec<(Spot, u64)>,
    /// Its local arrays. A thread of a later block takes them over, and clears them when they begin.
    pub(super) locals: Vec<super::memory::Bytes>,
    /// Where its last accesses went: who waits looks at the same places again and again.
    pub(super) recent: [u64; RECENT],
    /// Its last index that was out of bounds.
    pub(super) bad: Option<Bad>,
}

/// An index that was out of bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bad {
    pub(super) spot: Spot,
    pub(super) axis: u32,
    pub(super) index: i64,
    pub(super) extent: i64,
}

impl Thread {
    /// A thread that begins, where another one may have been; `orders` if that may have acquired or released something.
    pub(super) fn begin(&mut self, orders: bool) {
        (self.epoch, self.clock, self.depth) = (0, 1, Depth::default());
        (self.last, self.bad, self.meeting) = (None, None, Meeting::default());
        (self.has_looked, self.returned, self.recent) = (false, false, [0; RECENT]);
        self.lanes = None;
        self.copies.clear();
        self.unwritten.clear();
        if orders {
            let locals = std::mem::take(&mut self.locals);
            *self = Self { clock: 1, locals, ..Self::default() };
        }
    }

    /// What it does from here on is told apart from what it has done.
    pub(super) fn tick(&mut self) {
        self.clock = (self.clock + 1).min(MOST_CLOCK);
    }

    /// What it knows now, as the thread with a number of a block.
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

    /// A fence, for all or for its block: what it has seen is known, and what it knows is what it releases from here on.
    pub(super) fn fence(&mut self, block: u32, thread: u16, to_block: bool) {
        self.acquire(to_block);
        let vector = Arc::new(self.snapshot(block, thread));
        self.tick();
        if !to_block {
            self.released = Some(Arc::clone(&vector));
        }
        self.released_to_block = Some(vector);
    }

    /// What it has seen is known.
    pub(super) fn acquire(&mut self, of_block: bool) {
        if let Some(seen) = self.seen_of_block.take() {
            join(&mut self.known, &seen);
        }
        if let Some(seen) = self.seen.take_if(|_| !of_block) {
            join(&mut self.known, &seen);
        }
    }
}

/// What was released at a place.
#[derive(Debug, Default)]
pub(super) struct Released {
    /// To everybody.
    wide: Option<Arc<Vector>>,
    /// To the threads of a block, by it.
    narrow: HashMap<u32, Arc<Vector>>,
}

/// An atomic step as far as it orders something.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Step {
    pub(super) acquires: bool,
    pub(super) releases: bool,
    pub(super) of_block: bool,
    pub(super) writes: bool,
}

impl Released {
    /// A thread's step at the place.
    pub(super) fn step(&mut self, thread: &mut Thread, (block, number): (u32, u16), step: Step) {
        if let Some(narrow) = self.narrow.get(&block) {
            join(if step.acquires { &mut thread.known } else { &mut thread.seen_of_block }, narrow);
        }
        if let Some(wide) = self.wide.as_ref().filter(|_| !step.of_block) {
            join(if step.acquires { &mut thread.known } else { &mut thread.seen }, wide);
        }
        if !step.writes {
            return;
        }
        let (wide, narrow) = if step.releases {
            let vector = Arc::new(thread.snapshot(block, number));
            thread.tick();
            (Some(Arc::clone(&vector)).filter(|_| !step.of_block), Some(vector))
        } else {
            (thread.released.clone().filter(|_| !step.of_block), thread.released_to_block.clone())
        };
        if let Some(wide) = wide {
            join(&mut self.wide, &wide);
        }
        if let Some(vector) = narrow {
            let mut known = self.narrow.remove(&block);
            join(&mut known, &vector);
            self.narrow.extend(known.map(|known| (block, known)));
        }
    }
}
