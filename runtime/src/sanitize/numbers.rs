//! Numbers of launches and blocks that none had before.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The last numbers.
struct Last {
    launch: u32,
    next_block: u32,
    age: u32,
}

static LAST: Mutex<Last> = Mutex::new(Last { launch: 0, next_block: 1, age: 0 });

fn last() -> MutexGuard<'static, Last> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The numbers of a launch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) launch: u32,
    /// That of its first block among all that there were, and how many it has.
    pub(super) blocks: (u32, u32),
    /// Goes on where numbers begin anew: what was remembered before is of no use then.
    pub(super) age: u32,
}

impl Last {
    fn blocks(&mut self, n_blocks: u32) -> (u32, u32) {
        let (first, next) = match self.next_block.checked_add(n_blocks) {
            Some(next) => (self.next_block, next),
            None => {
                self.age = self.age.wrapping_add(1);
                (1, n_blocks.saturating_add(1))
            }
        };
        self.next_block = next;
        (first, n_blocks)
    }
}

impl Numbers {
    /// Those of a launch that begins.
    pub(super) fn next(n_blocks: u32) -> Self {
        let mut last = last();
        last.launch = last.launch.wrapping_add(1);
        if last.launch == 0 {
            (last.launch, last.age) = (1, last.age.wrapping_add(1));
        }
        let blocks = last.blocks(n_blocks);
        Self { launch: last.launch, blocks, age: last.age }
    }

    /// New ones for the blocks of a launch, which continue after a barrier of the grid.
    pub(super) fn of_blocks_anew(self) -> Self {
        let mut last = last();
        let blocks = last.blocks(self.blocks.1);
        Self { blocks, age: last.age, ..self }
    }
}
