//! The loops of a function.

use std::collections::BTreeMap;

use super::env::Env;
use crate::source::Span;

/// The variables before a loop, at its head and after it.
#[derive(Clone, Debug)]
pub(in crate::frontend) struct LoopTypes {
    pub(in crate::frontend) entry: Env,
    pub(in crate::frontend) header: Env,
    pub(in crate::frontend) exit: Env,
}

/// The types of a function's loops, by span and by the iterations of the unrolled loops around them.
pub(in crate::frontend) type LoopTable = BTreeMap<(Span, Vec<usize>), LoopTypes>;

/// A loop that is being lowered.
#[derive(Debug)]
pub(in crate::frontend) struct LoopState {
    /// The types at the head, to which `continue` converts.
    pub(in crate::frontend) header: Env,
    /// The types after the loop, to which `break` converts; in a dry run, those found up to now.
    pub(in crate::frontend) exit: Env,
    /// Environments of the `continue`s.
    pub(in crate::frontend) continues: Vec<Env>,
    /// Environments of the `break`s.
    pub(in crate::frontend) breaks: Vec<Env>,
    /// The environment after the last iteration, if the loop has an `else`; otherwise exhaustion is a `break`, too.
    pub(in crate::frontend) exhausted: Env,
}

/// The loops of the function that is being lowered.
#[derive(Debug, Default)]
pub(in crate::frontend) struct Loops {
    /// The loops that are being lowered, outermost first.
    pub(in crate::frontend) open: Vec<LoopState>,
    /// The types of all loops that are known.
    pub(in crate::frontend) known: LoopTable,
    /// The indices of the current items of the enclosing unrolled loops, outermost first.
    pub(in crate::frontend) unrolled: Vec<usize>,
}

impl Loops {
    /// The known types of the loop at a span.
    pub(in crate::frontend) fn types(&self, place: Span) -> Option<&LoopTypes> {
        self.known.get(&(place, self.unrolled.clone()))
    }

    /// Records the types that a pass has found.
    pub(in crate::frontend) fn note(&mut self, place: Span, found: LoopTypes) {
        self.known.insert((place, self.unrolled.clone()), found);
    }
}
