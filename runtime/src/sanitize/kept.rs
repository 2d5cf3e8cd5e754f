//! What is kept from one launch to the next: what is remembered of memory, and numbers that none had before.
//!
//! Each thread of the system that runs blocks has memory of its own to remember what it is told in. The thread that launches is
//! number 0, whichever it is.

use std::{
    cell::Cell,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use super::shadow::{ByNumber, Shadow};

/// What is remembered is kept for the next launch, if it takes no more than so many bytes.
const MOST_KEPT: usize = 512 << 20;

/// The thread that launches.
pub(super) const CALLER: u64 = 0;

/// What is kept.
struct Kept {
    /// By thread, with its bytes.
    shadows: Option<ByNumber<u64, (Box<Shadow>, usize)>>,
    /// The number of the last launch.
    launch: u32,
    /// The number of the next block.
    next_block: u32,
    /// Goes on where numbers begin anew: what was remembered before is of no use then.
    age: u32,
}

static KEPT: Mutex<Kept> = Mutex::new(Kept { shadows: None, launch: 0, next_block: 1, age: 0 });

fn kept() -> MutexGuard<'static, Kept> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The numbers of a launch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) launch: u32,
    /// That of its first block among all that there were, and how many it has.
    pub(super) blocks: (u32, u32),
    /// See [`Kept::age`].
    pub(super) age: u32,
}

impl Kept {
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
        let mut kept = kept();
        kept.launch = kept.launch.wrapping_add(1);
        if kept.launch == 0 {
            (kept.launch, kept.age) = (1, kept.age.wrapping_add(1));
        }
        let blocks = kept.blocks(n_blocks);
        Self { launch: kept.launch, blocks, age: kept.age }
    }

    /// New ones for the blocks of a launch, which go on behind a barrier of the grid.
    pub(super) fn of_blocks_anew(self) -> Self {
        let mut kept = kept();
        let blocks = kept.blocks(self.blocks.1);
        Self { blocks, age: kept.age, ..self }
    }
}

/// What a thread remembers memory in, with what it knows of launches before.
#[expect(clippy::unnecessary_box_returns, reason = "it is kept so")]
pub(super) fn take(thread: u64, numbers: &Numbers) -> Box<Shadow> {
    let known = kept().shadows.as_mut().and_then(|shadows| shadows.remove(&thread));
    let mut shadow = known.map(|(shadow, _)| shadow).unwrap_or_default();
    shadow.begin(numbers);
    shadow
}

/// Keeps it for the next launch, unless it is too large.
pub(super) fn give_back(thread: u64, shadow: Box<Shadow>) {
    let size = shadow.size();
    let mut kept = kept();
    let shadows = kept.shadows.get_or_insert_default();
    let all: usize = shadows.iter().filter(|(known, _)| **known != thread).map(|(_, (_, size))| size).sum();
    if all + size <= MOST_KEPT {
        let before = shadows.insert(thread, (shadow, size));
        drop(kept);
        drop(before);
    }
}

/// The number of this thread of the system, as long as it does not launch.
pub(super) fn this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(CALLER + 1);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(CALLER) };
    }
    NUMBER.with(|number| {
        if number.get() == CALLER {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}
