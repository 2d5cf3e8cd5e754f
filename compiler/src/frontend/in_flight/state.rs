//! The products in flight at a point of a function, and the locals that hold them.

use std::collections::BTreeMap;

use crate::{ir::LocalId, source::Span};

/// A product.
pub(super) type Id = usize;

/// A bound that no wait exceeds.
pub(super) const MOST_AFTER: u8 = 8;

/// A product in flight.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Flight {
    pub(super) begun: Span,
    /// The fewest products that begin after it on a path to here; [`MOST_AFTER`] if it is complete.
    pub(super) after: u8,
    /// It, or a product that it continues, was in flight where an iteration of the loop begins.
    pub(super) carried: bool,
}

/// What a local holds besides numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Held {
    /// An accumulator of a product, which need not be in flight any more.
    Of(Id, usize),
    /// Accumulators of different products on different paths.
    Unclear,
}

/// The state at a point.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct State {
    pub(super) flights: BTreeMap<Id, Flight>,
    pub(super) held: BTreeMap<LocalId, Held>,
    /// The first product of a chain of products that continue it, since the head of the loop.
    pub(super) origins: BTreeMap<Id, Id>,
}

/// The states at the jumps of a loop.
#[derive(Debug, Default)]
pub(super) struct Exits {
    pub(super) breaks: Vec<State>,
    pub(super) continues: Vec<State>,
}

impl State {
    pub(super) fn set(&mut self, local: LocalId, held: Option<Held>) {
        match held {
            Some(held) => self.held.insert(local, held),
            None => self.held.remove(&local),
        };
    }

    /// Completes all products but the latest ones.
    pub(super) fn complete(&mut self, pending: u8) {
        for flight in self.flights.values_mut() {
            if flight.after >= pending {
                flight.after = MOST_AFTER;
            }
        }
    }

    /// Where a product begins.
    pub(super) fn begun(&self, id: Id) -> Span {
        self.flights.get(&id).map(|flight| flight.begun).unwrap_or_default()
    }

    /// The state where paths with this state and another one meet.
    pub(super) fn joined(mut self, other: Self) -> Self {
        self.flights.retain(|id, _| other.flights.contains_key(id));
        for (id, flight) in &mut self.flights {
            if let Some(of_other) = other.flights.get(id) {
                flight.after = flight.after.min(of_other.after);
                flight.carried |= of_other.carried;
            }
        }
        for (local, held) in &mut self.held {
            if other.held.get(local) != Some(held) {
                *held = Held::Unclear;
            }
        }
        for local in other.held.keys() {
            self.held.entry(*local).or_insert(Held::Unclear);
        }
        self.origins.extend(other.origins);
        self
    }

    /// The products at a loop's head and at the end of an iteration that the same locals hold.
    pub(super) fn pairs(&self, end: &Self) -> Vec<(Id, Id)> {
        let mut pairs = Vec::new();
        for (local, held) in &self.held {
            if let (Held::Of(old, at), Some(Held::Of(new, other))) = (held, end.held.get(local))
                && at == other
                && self.flights.contains_key(old)
                && end.flights.contains_key(new)
                && !pairs.contains(&(*old, *new))
            {
                pairs.push((*old, *new));
            }
        }
        pairs
    }

    /// The state at a loop's head, after a path from the end of an iteration.
    pub(super) fn at_head(mut self, end: &Self, pairs: &[(Id, Id)]) -> Self {
        for (old, new) in pairs {
            if let (Some(flight), Some(of_end)) = (self.flights.get_mut(old), end.flights.get(new)) {
                flight.after = flight.after.min(of_end.after);
            }
        }
        for (local, held) in &mut self.held {
            let is_same = match (*held, end.held.get(local)) {
                (Held::Of(old, at), Some(Held::Of(new, other))) => {
                    at == *other && (pairs.contains(&(old, *new)) || old == *new)
                }
                (Held::Of(..), Some(Held::Unclear) | None) | (Held::Unclear, _) => false,
            };
            if !is_same {
                *held = Held::Unclear;
            }
        }
        for local in end.held.keys() {
            self.held.entry(*local).or_insert(Held::Unclear);
        }
        self
    }
}
