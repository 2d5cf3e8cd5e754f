//! Races: two accesses of a byte, one a write, not both atomic in a scope that has both, and nothing that orders them.

use super::{
    clock::{Thread, WARP},
    shadow::{ATOMIC, Cell, OF_BLOCK, Reads, When, Write},
};

/// A thread that accesses memory.
#[derive(Clone, Copy)]
pub(super) struct Now<'a> {
    pub(super) thread: &'a Thread,
    pub(super) when: When,
}

/// What is found of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Race {
    /// The earlier access.
    pub(super) other: When,
    /// It was a write.
    pub(super) was_write: bool,
}

impl Now<'_> {
    /// Whether an access is before this one.
    fn is_behind(&self, other: When) -> bool {
        let When { block, thread, epoch, clock, .. } = other;
        let me = &self.when;
        if block == me.block {
            if thread == me.thread || epoch < me.epoch {
                return true;
            }
            if usize::from(thread) / WARP == usize::from(me.thread) / WARP
                && let Some(lanes) = &self.thread.lanes
                && lanes[usize::from(thread) % WARP] >= clock
            {
                return true;
            }
        }
        self.thread.known.as_ref().is_some_and(|known| known.knows(block, thread, epoch, clock))
    }

    /// Whether both are atomic steps among threads that have both.
    fn is_atomic_with(&self, other: When) -> bool {
        let me = &self.when;
        me.how & other.how & ATOMIC != 0 && ((me.how | other.how) & OF_BLOCK == 0 || me.block == other.block)
    }

    /// Whether two accesses of which one writes race.
    fn races_with(&self, other: When) -> bool {
        !self.is_behind(other) && !self.is_atomic_with(other)
    }

    /// What an access meets in a cell, which has it from then on: the last write, and others.
    pub(super) fn meet(&self, cell: &mut Cell, writes: bool) -> [Option<Race>; 2] {
        let written = cell.write.when().filter(|&other| self.races_with(other));
        let mut other = None;
        for reads in cell.reads {
            let conflicts = reads.lanes != 0 && (writes || reads.writes()) && !self.all_behind(reads);
            if conflicts && other.is_none() {
                other = reads.each().find(|&other| self.races_with(other));
            }
        }
        // A step is kept beside the last plain write, which it does not hide.
        if writes && self.when.how & ATOMIC == 0 {
            cell.write = Write::of(self.when);
            cell.reads = [Reads::default(); 2];
        } else {
            self.remember(cell);
        }
        [written.map(|other| Race { other, was_write: true }), other.map(|other| Race { other, was_write: false })]
    }

    /// Reads of the present thread alone, as of most elements.
    fn all_behind(&self, reads: Reads) -> bool {
        let me = &self.when;
        reads.block == me.block
            && (reads.epoch < me.epoch
                || (reads.warp == me.thread / WARP as u16 && reads.lanes == 1 << (me.thread % WARP as u16)))
    }

    /// Keeps a read: with others of its warp, in place of those that are before it, or else of a second warp.
    fn remember(&self, cell: &mut Cell) {
        let read = Reads::of(self.when);
        if let Some(same) = cell.reads.iter_mut().find(|reads| reads.takes(&read)) {
            same.lanes |= read.lanes;
            return;
        }
        let is_free = |reads: &Reads| {
            reads.lanes == 0 || self.all_behind(*reads) || reads.each().all(|other| self.is_behind(other))
        };
        if let Some(free) = cell.reads.iter_mut().find(|reads| is_free(reads)) {
            *free = read;
            return;
        }
        // Two warps are enough to find a writer that is ordered behind one of them only; those of different blocks more so.
        let [first, second] = &mut cell.reads;
        let is_near = |a: &Reads, b: &Reads| a.block == b.block && a.warp == b.warp;
        let is_farther = is_near(first, second) || (first.block == second.block && read.block != first.block);
        if (is_farther && !second.writes()) || (read.writes() && !(first.writes() && second.writes())) {
            *second = read;
        }
    }
}
