//! Loops of a list whose counters have the same values.

use super::{
    sums::Tape,
    tape::{Carried, Definition, Repeat, Values},
};
use crate::{
    analysis::any_expr,
    ir::{Class, ExprId, ExprKind, LocalId},
};

/// Two loops of a list with counters that start at the same value, have the same step, and end by the same test: for each
/// iteration of one, the other one has an iteration with the same counter.
#[derive(Clone)]
pub(super) struct SameRange<'a> {
    tape: Tape<'a>,
    /// The counters.
    counters: (LocalId, LocalId),
    /// The values that the loops define.
    defined: Values,
}

impl<'a> SameRange<'a> {
    /// The counters of two different loops of a list, if they have the same values.
    pub(super) fn of(tape: Tape<'a>, one: &Repeat, other: &Repeat) -> Option<Self> {
        let mut defined = one.defined();
        defined.extend(other.defined());
        let pairs = one.carried.iter().flat_map(|a| other.carried.iter().map(move |b| (a, b)));
        pairs
            .map(|(a, b)| (Self { tape, counters: (a.header, b.header), defined: defined.clone() }, a, b))
            .find_map(|(range, a, b)| range.counts_as((one, a), (other, b)).then_some(range))
    }

    fn counts_as(&self, (one, a): (&Repeat, &Carried), (other, b): (&Repeat, &Carried)) -> bool {
        let Some((x, y)) = self.tape.counter(one, a).zip(self.tape.counter(other, b)) else { return false };
        x.is_negative == y.is_negative
            && self.has_same_value(x.init, y.init)
            && self.has_same(x.step, y.step)
            && self.has_same(one.exit, other.exit)
    }

    /// Whether an expression of one loop has the value of an expression of the other one in iterations with the same
    /// counter.
    pub(super) fn has_same(&self, one: ExprId, other: ExprId) -> bool {
        let function = self.tape.function;
        let (one, other) = (self.expanded(one), self.expanded(other));
        match (function.local(one), function.local(other)) {
            (Some(one), Some(other)) => self.is_same(one, other),
            (Some(_), None) | (None, Some(_)) => false,
            (None, None) => {
                let (a, b) = (&function.exprs[one], &function.exprs[other]);
                let (of_a, of_b) = (a.kind.operands(), b.kind.operands());
                let head = |kind: &ExprKind| kind.clone().map_operands(&mut |_| one);
                let loads = matches!(a.kind.class(), Class::Load(_));
                !loads
                    && a.ty == b.ty
                    && of_a.len() == of_b.len()
                    && head(&a.kind) == head(&b.kind)
                    && of_a.iter().zip(of_b.iter()).all(|(&p, &q)| self.has_same(p, q))
            }
        }
    }

    fn has_same_value(&self, one: LocalId, other: LocalId) -> bool {
        self.is_same(one, other)
            || self.definition(one).zip(self.definition(other)).is_some_and(|(a, b)| self.has_same(a, b))
    }

    /// Whether two values are the counters, or one value from before the loops.
    fn is_same(&self, one: LocalId, other: LocalId) -> bool {
        (one, other) == self.counters || one == other && !self.defined.contains(&one)
    }

    /// What a value is computed from: values, without loads.
    fn definition(&self, value: LocalId) -> Option<ExprId> {
        match self.tape.definitions.get(&value)? {
            &Definition::Expr(id, _) => {
                let loads = any_expr(self.tape.function, id, &|kind| matches!(kind.class(), Class::Load(_)));
                (!loads).then_some(id)
            }
            Definition::Join { .. }
            | Definition::Header { .. }
            | Definition::Unrepeatable(_)
            | Definition::Opaque(_) => None,
        }
    }

    /// The expression that an expression reads from a value.
    fn expanded(&self, mut id: ExprId) -> ExprId {
        while let Some(next) = self.tape.function.local(id).and_then(|value| self.definition(value)) {
            id = next;
        }
        id
    }
}
