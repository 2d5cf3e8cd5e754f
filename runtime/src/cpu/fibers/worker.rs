//! When further blocks begin: what a thread of the system makes of the turns of the threads that it runs.

use std::{sync::atomic::Ordering, thread, time::Instant};

use super::{LaunchState, MOST_SLOW, PATIENCE, ResumeResult, SLOW};

/// What a thread of the system makes of its turns.
#[derive(Default)]
pub(super) struct Worker {
    /// What it last saw of the others' progress.
    pub(super) seen: u64,
    /// Since when no thread of its own has come to a barrier or its end.
    pub(super) slow: Option<Instant>,
    /// Since when no thread of the launch has got on, as far as it knows.
    pub(super) stuck: Option<Instant>,
    /// There is no further block.
    pub(super) all_begun: bool,
}

impl Worker {
    /// After a turn of all threads of the blocks that live: how many further blocks are to begin.
    pub(super) fn look(
        &mut self,
        together: &LaunchState,
        turn: ResumeResult,
        n_live: usize,
        n_threads: usize,
    ) -> usize {
        if turn.moved || turn.busy {
            self.seen = together.progress.fetch_add(1, Ordering::Relaxed) + 1;
            self.stuck = None;
        }
        if turn.moved || n_live == 0 {
            self.slow = None;
            return 0;
        }
        if turn.busy {
            let slow = *self.slow.get_or_insert_with(Instant::now);
            if slow.elapsed() < SLOW {
                return 0;
            }
            self.slow = None;
            return usize::from(!self.all_begun && n_threads < MOST_SLOW);
        }
        let progress = together.progress.load(Ordering::Relaxed);
        if progress == self.seen && !self.all_begun {
            // Twice as many, so that there are few turns in which all wait.
            return n_live;
        }
        if progress != self.seen {
            self.seen = progress;
            self.stuck = None;
        }
        // All wait for what another thread of the system writes.
        thread::yield_now();
        0
    }

    /// So many of the further blocks have begun.
    pub(super) fn began(&mut self, together: &LaunchState, begun: usize, wanted: usize) {
        if begun > 0 || wanted == 0 || self.all_begun || self.slow.is_some() {
            return;
        }
        if self.stuck.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            together.full.store(true, Ordering::Relaxed);
        }
        thread::yield_now();
    }
}
