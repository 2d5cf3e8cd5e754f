//! Races: two accesses of a byte, one a write, not both atomic in a scope that has both, and nothing that orders them.

use super::{
    clock::{Thread, WARP},
    page::Page,
    record::{ATOMIC, OF_BLOCK, Reads, When, Write},
    release_logs::Logs,
};

/// A thread that accesses memory.
#[derive(Clone, Copy)]
pub(super) struct Now<'a> {
    pub(super) thread: &'a Thread,
    /// The releases of the launch.
    pub(super) logs: &'a Logs,
    pub(super) when: When,
    /// The blocks whose accesses count: the first one's number, and how many there are. Others are before all of them.
    pub(super) blocks: (u32, u32),
    /// The launch's first block: those before it are done with, wherever they were.
    pub(super) first: u32,
}

/// A race on an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Race {
    /// The earlier access.
    pub(super) other: When,
    /// It was a write.
    pub(super) was_write: bool,
}

impl Now<'_> {
    /// Whether the accesses of a block count.
    #[inline]
    fn counts(&self, block: u32) -> bool {
        block.wrapping_sub(self.blocks.0) < self.blocks.1
    }

    /// Whether an access is before this one.
    fn happens_after(&self, other: When) -> bool {
        let When { block, thread, epoch, clock, .. } = other;
        let me = &self.when;
        if block == me.block {
            if thread == me.thread || epoch < me.epoch {
                return true;
            }
            if thread as usize / WARP == me.thread as usize / WARP
                && let Some(lanes) = &self.thread.lanes
                && lanes[thread as usize % WARP] >= clock
            {
                return true;
            }
        }
        !self.counts(block)
            || self
                .thread
                .known
                .as_ref()
                .is_some_and(|known| known.knows(self.logs, (block, thread as u16), (epoch, clock)))
    }

    /// Whether both are atomic operations whose scope includes both threads.
    fn is_atomic_with(&self, how: u32, block: u32) -> bool {
        let me = &self.when;
        me.how & how & ATOMIC != 0 && ((me.how | how) & OF_BLOCK == 0 || me.block == block)
    }

    /// Whether two accesses of which one writes race.
    fn races_with(&self, other: When) -> bool {
        !self.is_atomic_with(other.how, other.block) && !self.happens_after(other)
    }

    /// Stores an access in a cell, and returns its races with the cell's previous accesses: the last write, and others.
    #[inline]
    pub(super) fn meet(&self, page: &mut Page, cell: usize, writes: bool) -> Option<[Option<Race>; 2]> {
        let me = &self.when;
        let mut found = [None; 2];
        let write = page.write(cell);
        let is_own = write.block == me.block && (write.thread() == me.thread || write.epoch < me.epoch);
        if !is_own && self.counts(write.block) {
            found[0] = Some(write.when()).filter(|&other| self.races_with(other));
        }
        for reads in [page.reads(0, cell), page.reads(1, cell)] {
            let conflicts = reads.lanes != 0 && (writes || reads.writes()) && !self.happens_after_all(&reads);
            // All lanes of them do the same.
            if conflicts && found[1].is_none() && !self.is_atomic_with(reads.how(), reads.block) {
                found[1] = reads.each().find(|&other| self.races_with(other));
            }
        }
        // An atomic operation is stored beside the last plain write, which it does not replace.
        if writes && me.how & ATOMIC == 0 {
            page.set_write(cell, Write::of(me), self.first);
        } else {
            self.remember(page, cell);
        }
        if found == [None; 2] {
            return None;
        }
        let race = |other, was_write| Race { other, was_write };
        Some([found[0].map(|other| race(other, true)), found[1].map(|other| race(other, false))])
    }

    /// Reads of blocks that are done with, of epochs before, or of the present thread alone, as of most elements.
    #[inline]
    fn happens_after_all(&self, reads: &Reads) -> bool {
        let me = &self.when;
        if reads.block != me.block {
            return !self.counts(reads.block);
        }
        reads.epoch < me.epoch || (reads.warp() == me.thread / 32 && reads.lanes == 1 << (me.thread % 32))
    }

    /// Keeps a read: with others of its warp, in spot of those that are before it, or else of a second warp.
    #[inline]
    fn remember(&self, page: &mut Page, cell: usize) {
        let read = Reads::of(&self.when);
        for which in 0..2 {
            let reads = page.reads(which, cell);
            if reads.takes(&read) {
                let lanes = reads.lanes | read.lanes;
                if lanes != reads.lanes {
                    page.set_reads(which, cell, Reads { lanes, ..read }, self.first);
                }
                return;
            }
            if self.is_free(&reads) {
                page.set_reads(which, cell, read, self.first);
                return;
            }
        }
        self.replace(page, cell, read);
    }

    fn is_free(&self, reads: &Reads) -> bool {
        if reads.lanes == 0 {
            return true;
        }
        // A step of its block does not hide what that has read there, nor that a step: they race with different accesses of other
        // blocks.
        let me = &self.when;
        let among_others = self.blocks.1 > 1;
        let hides = (reads.how() ^ me.how) & ATOMIC == 0
            || reads.block != me.block
            || (!among_others && reads.epoch != me.epoch);
        hides && (self.happens_after_all(reads) || reads.each().all(|other| self.happens_after(other)))
    }

    /// Two warps suffice to find a writer that is ordered after only one of them, and those of different blocks even
    /// more.
    fn replace(&self, page: &mut Page, cell: usize, read: Reads) {
        let (first, second) = (page.reads(0, cell), page.reads(1, cell));
        let is_near = |a: &Reads, b: &Reads| a.block == b.block && a.warp() == b.warp();
        let is_farther = is_near(&first, &second) || (first.block == second.block && read.block != first.block);
        if (is_farther && !second.writes()) || (read.writes() && !(first.writes() && second.writes())) {
            page.set_reads(1, cell, read, self.first);
        }
    }
}
