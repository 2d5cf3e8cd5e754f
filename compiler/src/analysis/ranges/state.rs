//! The ranges of the locals at one program point, and their changes at branches and joins.

use std::collections::BTreeMap;

use super::super::Interval;
use crate::ir::LocalId;

/// The ranges of the locals at the current program point. Changes are recorded, so that the analysis can return to a
/// branch.
pub(super) struct RangeState {
    now: Vec<Interval>,
    /// The changed locals with their previous ranges.
    trail: Vec<(LocalId, Interval)>,
    /// Whether the current program point is unreachable.
    pub dead: bool,
}

/// A position on the trail.
#[derive(Clone, Copy)]
pub(super) struct Mark(usize);

/// The changes since a mark; `None` for unreachable code.
pub(super) type Change = Option<BTreeMap<LocalId, Interval>>;

impl RangeState {
    pub(super) fn new(now: Vec<Interval>) -> Self {
        Self { now, trail: Vec::new(), dead: false }
    }

    /// The current range of a local; empty if it has no value yet.
    pub(super) fn get(&self, local: LocalId) -> Interval {
        self.now[local.index()]
    }

    pub(super) fn set(&mut self, local: LocalId, value: Interval) {
        let place = &mut self.now[local.index()];
        if *place != value {
            self.trail.push((local, *place));
            *place = value;
        }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark(self.trail.len())
    }

    /// The changes since a mark.
    pub(super) fn change(&self, mark: Mark) -> Change {
        if self.dead {
            return None;
        }
        Some(self.trail[mark.0..].iter().map(|(local, _)| (*local, self.get(*local))).collect())
    }

    /// Restores the state at a mark, which was reachable, and returns the changes since.
    pub(super) fn take(&mut self, mark: Mark) -> Change {
        let change = self.change(mark);
        while self.trail.len() > mark.0 {
            let Some((local, before)) = self.trail.pop() else { break };
            self.now[local.index()] = before;
        }
        self.dead = false;
        change
    }

    /// The join of two paths from the current state.
    pub(super) fn joined(&self, a: Change, b: Change) -> Change {
        let (mut a, b) = match (a, b) {
            (None, other) | (other, None) => return other,
            (Some(a), Some(b)) => (a, b),
        };
        for (local, value) in &mut a {
            *value = value.join(b.get(local).copied().unwrap_or_else(|| self.get(*local)));
        }
        for (local, value) in b {
            a.entry(local).or_insert_with(|| value.join(self.get(local)));
        }
        Some(a)
    }

    /// Applies changes to the state.
    pub(super) fn put(&mut self, change: Change) {
        let Some(change) = change else {
            self.dead = true;
            return;
        };
        for (local, value) in change {
            self.set(local, value);
        }
    }
}
