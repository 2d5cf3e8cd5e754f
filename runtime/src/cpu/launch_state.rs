//! State shared by the system threads that run a launch: whether any thread makes progress, why the launch is stopped,
//! and the barrier of all its blocks.
#![expect(unsafe_code, reason = "has a launch given up, whose watch it gets as a pointer")]

use std::sync::{
    Mutex, OnceLock, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use weft_artifact::HostWatch;

use super::invalid_access::Culprit;

/// The state that all threads of a launch share.
#[derive(Default)]
pub(super) struct LaunchState {
    /// Changes when some thread gets on.
    pub(super) progress: AtomicU64,
    /// All threads wait, and there is no memory for more.
    pub(super) full: AtomicBool,
    /// A thread has come to the end of its stack.
    deep: AtomicBool,
    /// The first invalid access.
    invalid: OnceLock<Culprit>,
    grid: Mutex<Grid>,
    /// [`Grid::generation`], for readers without the lock.
    grid_generation: AtomicU64,
}

/// The barrier of all blocks of a launch.
#[derive(Default)]
struct Grid {
    blocks: u64,
    /// Blocks that have come to it.
    come: u64,
    /// Blocks that have ended, which the barrier does not wait for.
    ended: u64,
    /// How often all have been there.
    generation: u64,
}

impl LaunchState {
    /// For a launch of this many blocks.
    pub(super) fn of(blocks: u64) -> Self {
        Self { grid: Mutex::new(Grid { blocks, ..Grid::default() }), ..Self::default() }
    }

    pub(super) fn grid_generation(&self) -> u64 {
        self.grid_generation.load(Ordering::Acquire)
    }

    /// A block arrives at the grid's barrier; returns the phase whose end it waits for.
    pub(super) fn come_to_grid(&self) -> u64 {
        let mut grid = self.grid.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = grid.generation;
        grid.come += 1;
        self.release(&mut grid);
        generation
    }

    pub(super) fn block_ended(&self) {
        let mut grid = self.grid.lock().unwrap_or_else(PoisonError::into_inner);
        grid.ended += 1;
        self.release(&mut grid);
    }

    /// Ends the phase if all blocks that have not ended have arrived.
    fn release(&self, grid: &mut Grid) {
        if grid.come > 0 && grid.come + grid.ended == grid.blocks {
            grid.come = 0;
            grid.generation += 1;
            self.grid_generation.store(grid.generation, Ordering::Release);
        }
    }

    /// Whether the launch was given up because a thread came to the end of its stack.
    pub(super) fn is_deep(&self) -> bool {
        self.deep.load(Ordering::Relaxed)
    }

    /// Gives the launch up because a thread has come there.
    pub(super) fn give_up(&self, watch: *const HostWatch) {
        self.deep.store(true, Ordering::Relaxed);
        Self::leave(watch);
    }

    /// Gives the launch up because a thread has left its code.
    pub(super) fn found_invalid(&self, watch: *const HostWatch, culprit: Culprit) {
        if culprit.invalid.on_stack {
            return self.give_up(watch);
        }
        // Another one was first.
        let _later = self.invalid.set(culprit);
        Self::leave(watch);
    }

    /// The invalid access for which the launch was stopped.
    pub(super) fn invalid(&self) -> Option<&Culprit> {
        self.invalid.get()
    }

    /// Has all threads leave.
    fn leave(watch: *const HostWatch) {
        // SAFETY: the watch is that of the launch which this thread runs.
        let give_up = unsafe { (*watch).give_up };
        // SAFETY: as above.
        unsafe { give_up(watch) };
    }

    /// Whether the launch was given up because there was no memory for all its threads.
    pub(super) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }
}
