//! Integers as polynomials over atoms, without wrapping, and the inequalities between them that hold at a position.

use crate::{
    analysis::{Interval, affine::Polynomial},
    ir::{BinaryOp, ExprId, LocalId, SpecialRegister},
};

/// The maximum number of inequalities that a proof adds up.
const MAX_DEPTH: u32 = 6;

/// The maximum number of polynomials that a proof visits.
const MAX_VISITED: u32 = 400;

/// The maximum number of inequalities that are recorded at a position.
const MAX_FACTS: usize = 64;

/// An integer: its exact value, and its range.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub sum: Polynomial,
    pub range: Interval,
}

/// Equal keys are equal values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// The value of a parameter.
    Param(LocalId),
    /// A special register.
    Special(SpecialRegister),
    /// An operation on two integers.
    Binary(BinaryOp, Polynomial, Polynomial),
    /// The value of an expression at the position where it is evaluated.
    Expr(ExprId),
    /// A value about which only its range is known.
    Fresh,
}

/// What bounds an atom beside its range.
#[derive(Clone, Debug)]
pub(super) enum Bound {
    /// Nothing.
    None,
    /// It is less than this value, if that is positive.
    Below(Polynomial),
    /// It is the lesser of two values.
    Least(Polynomial, Polynomial),
    /// It is the greater of two values.
    Greatest(Polynomial, Polynomial),
    /// It is one of two values.
    Either(Polynomial, Polynomial),
}

#[derive(Debug)]
struct Atom {
    key: Key,
    range: Interval,
    bound: Bound,
}

/// The inequalities that hold at a position.
#[derive(Debug, Default)]
pub(super) struct Inequalities {
    atoms: Vec<Atom>,
    /// Polynomials that are not negative.
    facts: Vec<Polynomial>,
    /// Atoms whose ranges facts made narrower, with the ranges before.
    narrowed: Vec<(u32, Interval)>,
}

/// A position to which inequalities can be reset.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    atoms: usize,
    facts: usize,
    narrowed: usize,
}

impl Inequalities {
    /// The atom of a value.
    pub(super) fn atom(&mut self, key: Key, range: Interval, bound: Bound) -> Value {
        let known = (key != Key::Fresh).then(|| self.atoms.iter().position(|atom| atom.key == key)).flatten();
        let number = known.unwrap_or_else(|| {
            self.atoms.push(Atom { key, range, bound });
            self.atoms.len() - 1
        });
        Value { sum: Polynomial::atom(number as u32), range: self.atoms[number].range }
    }

    /// The position, to which [`Self::reset`] returns.
    pub(super) fn mark(&self) -> Mark {
        Mark { atoms: self.atoms.len(), facts: self.facts.len(), narrowed: self.narrowed.len() }
    }

    /// Drops the inequalities that were added after a mark, and the atoms, whose ranges may follow from them.
    pub(super) fn reset(&mut self, mark: Mark) {
        self.facts.truncate(mark.facts);
        self.atoms.iter_mut().skip(mark.atoms).for_each(|atom| atom.key = Key::Fresh);
        while self.narrowed.len() > mark.narrowed {
            if let Some((atom, range)) = self.narrowed.pop() {
                self.atoms[atom as usize].range = range;
            }
        }
    }

    /// Adds a polynomial that is not negative.
    pub(super) fn add(&mut self, fact: Polynomial) {
        if self.facts.len() == MAX_FACTS || fact.as_constant().is_some() {
            return;
        }
        let terms: Vec<(u32, i128)> = fact
            .terms()
            .filter_map(|(atoms, times)| match atoms {
                &[atom] if times.abs() == 1 => Some((atom, times)),
                [] | [_, ..] => None,
            })
            .collect();
        for (atom, times) in terms {
            // `times * atom + rest >= 0`
            let Some(rest) = fact.clone().plus(&Polynomial::atom(atom), -times) else { continue };
            let most = self.range(&rest).high;
            let before = self.atoms[atom as usize].range;
            let by_fact = if times > 0 {
                Interval::new(most.saturating_neg(), i128::MAX)
            } else {
                Interval::new(i128::MIN, most)
            };
            let now = before.meet(by_fact);
            if now != before && !now.is_none() {
                self.narrowed.push((atom, before));
                self.atoms[atom as usize].range = now;
            }
        }
        self.facts.push(fact);
    }

    /// The range of a polynomial.
    pub(super) fn range(&self, sum: &Polynomial) -> Interval {
        sum.terms().fold(Interval::of(0), |all, (atoms, times)| {
            let product =
                atoms.iter().fold(Interval::of(times), |product, &atom| product.times(self.atoms[atom as usize].range));
            all.plus(product)
        })
    }

    /// The range of a value, by each inequality that has a term of it.
    pub(super) fn bounded(&self, value: &Value) -> Interval {
        let with = |fact: &Polynomial, factor: i128| {
            let sum = value.sum.clone().plus(fact, factor);
            sum.map_or(Interval::new(i128::MIN, i128::MAX), |sum| self.range(&sum))
        };
        let related =
            |fact: &&Polynomial| fact.terms().any(|(atoms, _)| !atoms.is_empty() && value.sum.coefficient(atoms) != 0);
        self.facts.iter().filter(related).fold(value.range, |range, fact| {
            let now = range.meet(Interval::new(with(fact, -1).low, with(fact, 1).high));
            // No thread is at a position at which inequalities contradict each other.
            if now.is_none() { range } else { now }
        })
    }

    /// Whether a polynomial has no atoms but parameters.
    pub(super) fn is_of_params(&self, sum: &Polynomial) -> bool {
        let is_param = |&atom: &u32| matches!(self.atoms[atom as usize].key, Key::Param(_));
        sum.terms().all(|(atoms, _)| atoms.iter().all(is_param))
    }

    /// Whether the first value is at most the second one.
    pub(super) fn is_at_most(&self, lesser: &Polynomial, greater: &Polynomial) -> bool {
        let difference = greater.clone().plus(lesser, -1);
        difference.is_some_and(|difference| self.proves(&difference, MAX_DEPTH, &mut { MAX_VISITED }))
    }

    /// Whether a polynomial is not negative: it is a sum of recorded inequalities and of terms that are not negative.
    fn proves(&self, sum: &Polynomial, depth: u32, left: &mut u32) -> bool {
        if self.range(sum).is_nonneg() {
            return true;
        }
        let (Some(depth), Some(visits)) = (depth.checked_sub(1), left.checked_sub(1)) else { return false };
        *left = visits;
        let terms: Vec<(&[u32], i128)> = sum.terms().filter(|(atoms, _)| !atoms.is_empty()).collect();
        let falls = terms.iter().any(|&(_, times)| times < 0);
        terms.into_iter().filter(|&(_, times)| !falls || times < 0).any(|(atoms, times)| {
            self.facts.iter().any(|fact| {
                let of_fact = fact.coefficient(atoms);
                let cancels = of_fact != 0 && (of_fact < 0) == (times < 0) && times % of_fact == 0;
                cancels
                    && sum.clone().plus(fact, -(times / of_fact)).is_some_and(|rest| self.proves(&rest, depth, left))
            }) || matches!(atoms, &[atom] if self.proves_by_bound(sum, (atom, times), depth, left))
        })
    }

    /// As [`Self::proves`], by what bounds one of its atoms.
    fn proves_by_bound(&self, sum: &Polynomial, (atom, times): (u32, i128), depth: u32, left: &mut u32) -> bool {
        let mut holds = |sum: Option<Polynomial>| sum.is_some_and(|sum| self.proves(&sum, depth, left));
        let with = |value: &Polynomial| {
            let without = sum.clone().plus(&Polynomial::atom(atom), -times)?;
            without.plus(value, times)
        };
        match &self.atoms[atom as usize].bound {
            Bound::None => false,
            Bound::Below(value) => {
                let most = value.clone().plus(&Polynomial::constant(-1), 1);
                times < 0 && holds(most.as_ref().and_then(with)) && holds(most)
            }
            Bound::Least(a, b) if times < 0 => holds(with(a)) || holds(with(b)),
            Bound::Greatest(a, b) if times > 0 => holds(with(a)) || holds(with(b)),
            Bound::Least(a, b) | Bound::Greatest(a, b) | Bound::Either(a, b) => holds(with(a)) && holds(with(b)),
        }
    }
}
