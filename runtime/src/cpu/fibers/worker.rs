//! Decides when further blocks begin, from the progress of a system thread's fibers.

use std::{sync::atomic::Ordering, thread, time::Instant};

use super::{LaunchState, MOST_SLOW, PATIENCE, ResumeResult, SLOW};

/// The progress of a system thread's rounds.
#[derive(Default)]
pub(super) struct Worker {
    /// The others' progress when it was last read.
    pub(super) seen: u64,
    /// Since when no thread of its own has come to a barrier or its end.
    pub(super) slow: Option<Instant>,
    /// Since when no thread of the launch has got on, as far as it knows.
    pub(super) stuck: Option<Instant>,
    /// There is no further block.
    pub(super) all_begun: bool,
}

impl Worker {
    /// After a round over all threads of the live blocks: the number of further blocks to begin.
    pub(super) fn look(
        &mut self,
        together: &LaunchState,
        resumed: ResumeResult,
        n_live: usize,
        n_threads: usize,
    ) -> usize {
        if resumed.moved || resumed.busy {
            self.seen = together.progress.fetch_add(1, Ordering::Relaxed) + 1;
            self.stuck = None;
        }
        if resumed.moved || n_live == 0 {
            self.slow = None;
            return 0;
        }
        if resumed.busy {
            let slow = *self.slow.get_or_insert_with(Instant::now);
            if slow.elapsed() < SLOW {
                return 0;
            }
            self.slow = None;
            return usize::from(!self.all_begun && n_threads < MOST_SLOW);
        }
        let progress = together.progress.load(Ordering::Relaxed);
        if progress == self.seen && !self.all_begun {
            // Twice as many, so that there are few rounds in which all wait.
            return n_live;
        }
        if progress != self.seen {
            self.seen = progress;
            self.stuck = None;
        }
        // All wait for stores of another system thread.
        thread::yield_now();
        0
    }

    /// `begun` of the further blocks have begun.
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
