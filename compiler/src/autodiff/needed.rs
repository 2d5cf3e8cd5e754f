//! What an execution of a part of the tape computes and writes.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    arrays::Memory,
    tape::{Branch, Call, List, Repeat, Values, for_each_event},
};
use crate::ir::LocalId;

/// What an execution of a list computes and writes.
#[derive(Clone, Debug, Default)]
pub(super) struct Needed {
    /// The values.
    pub(super) values: Values,
    /// Those of them that have their values before.
    pub(super) given: Values,
    /// Those of the given values that each execution of their loads pops from the records of a loop, with its number.
    pub(super) popped: BTreeMap<LocalId, usize>,
    /// Values whose loads it reaches without computing them.
    pub(super) reached: Values,
    /// The writes to shared and local arrays, and the barriers.
    pub(super) events: BTreeSet<usize>,
    /// The shared and local arrays whose contents it uses, or that the reverse of a nested loop uses.
    pub(super) contents: BTreeSet<Memory>,
}

impl Needed {
    /// Whether a value is computed.
    pub(super) fn computes(&self, value: LocalId) -> bool {
        self.values.contains(&value) && !self.given.contains(&value)
    }

    /// Whether a call is executed.
    pub(super) fn calls(&self, call: &Call) -> bool {
        call.results.iter().any(|&to| self.computes(to)) || call.event.is_some_and(|event| self.events.contains(&event))
    }

    /// Whether it uses contents that barriers order: those of arrays that threads share.
    pub(super) fn orders_contents(&self) -> bool {
        self.contents.iter().any(|&memory| !matches!(memory, Memory::Local(_)))
    }

    fn reaches(&self, value: LocalId) -> bool {
        self.values.contains(&value) || self.reached.contains(&value)
    }

    /// Whether a branch pops values.
    pub(super) fn pops_in(&self, branch: &Branch) -> bool {
        !self.popped.is_empty() && branch.defined().iter().any(|value| self.popped.contains_key(value))
    }

    /// Whether a branch has something of it.
    pub(super) fn has_branch(&self, branch: &Branch) -> bool {
        branch.defined().into_iter().any(|value| self.reaches(value))
            || self.has_events(&branch.then)
            || self.has_events(&branch.otherwise)
    }

    /// Whether a loop has something of it.
    pub(super) fn has_loop(&self, repeat: &Repeat) -> bool {
        repeat.defined().into_iter().any(|value| self.reaches(value))
            || self.has_events(&repeat.head)
            || self.has_events(&repeat.body)
    }

    /// Whether a list has events of it.
    pub(super) fn has_events(&self, list: &List) -> bool {
        let mut found = false;
        for_each_event(list, &mut |event, _| found |= self.events.contains(&event));
        found
    }

    /// The size of its sets.
    pub(super) fn len(&self) -> usize {
        self.values.len() + self.events.len() + self.contents.len()
    }
}
