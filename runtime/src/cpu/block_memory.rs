//! The memory of blocks whose threads have stacks, cached between launches.

use std::{cell::RefCell, mem};

use super::{
    memory::Allocation,
    stacks::{BlockStack, Stacks},
};

/// Larger stacks, in bytes, are not cached: deep calls have touched their pages.
const MAX_CACHED_BYTES: usize = 512 << 20;
/// A system thread caches the stacks of about this many threads for the next launch.
pub(super) const MAX_CACHED: usize = 4096;

/// The memory of one block. A block begins only after all of it was allocated.
pub(super) struct BlockMemory {
    /// One for each thread, but while its fibers are on them.
    pub(super) stacks: Vec<BlockStack>,
    /// Its shared memory and its contexts across barriers.
    pub(super) scratch: Allocation,
    /// The memory of the stacks.
    _memory: Stacks,
}

/// Block memories of one shape: threads, bytes of a stack, bytes of scratch memory.
#[derive(Default)]
pub(super) struct BlockMemories {
    shape: (usize, usize, usize),
    /// Those that no block has.
    pub(super) free: Vec<BlockMemory>,
}

thread_local! {
    /// Rooms that wait for the next launch.
    static ROOMS: RefCell<BlockMemories> = const { RefCell::new(BlockMemories { shape: (0, 0, 0), free: Vec::new() }) };
}

impl BlockMemories {
    /// The memory that this thread has cached, or an empty one.
    pub(super) fn of(shape: (usize, usize, usize)) -> Self {
        let kept = ROOMS.try_with(|kept| mem::take(&mut *kept.borrow_mut()));
        kept.ok().filter(|kept| kept.shape == shape).unwrap_or(Self { shape, free: Vec::new() })
    }

    /// Keeps some of them for the next launch on this thread.
    pub(super) fn keep(mut self) {
        let each = self.shape.0.saturating_mul(self.shape.1).max(1);
        self.free.truncate((MAX_CACHED / self.shape.0.max(1)).max(1).min(MAX_CACHED_BYTES / each));
        // A thread that ends has no cache any more.
        let _ends = ROOMS.try_with(|kept| *kept.borrow_mut() = self);
    }

    /// A room for another block, with all that it needs; `None` if there is not the memory.
    pub(super) fn take(&mut self) -> Option<BlockMemory> {
        let (n_threads, stack_bytes, scratch_bytes) = self.shape;
        let new = || {
            let scratch = Allocation::new(scratch_bytes.max(1))?;
            let (memory, stacks) = Stacks::new(n_threads, stack_bytes)?;
            Some(BlockMemory { stacks, scratch, _memory: memory })
        };
        self.free.pop().or_else(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_has_all_stacks_or_is_none() {
        let mut rooms = BlockMemories { shape: (5, 128 << 10, 100), free: Vec::new() };
        let room = rooms.take().expect("there is the memory");
        assert_eq!(room.stacks.len(), 5);
        rooms.free.push(room);
        assert_eq!(rooms.take().map(|room| room.stacks.len()), Some(5));
        rooms.shape.1 = 1 << 56;
        assert!(rooms.take().is_none());
    }
}
