//! Sums of values that a row can be asked for before it starts, between which an integer of a thread's is.

use crate::ir::ExprId;

/// Most parts of a sum.
const MOST_TERMS: usize = 6;

/// Constants of sums are no larger.
pub(super) const LARGEST_CONSTANT: i128 = 1 << 40;

/// Parts that are added or subtracted, and a constant.
#[derive(Clone, Debug, Default)]
pub(super) struct Sum {
    pub(super) terms: Vec<(ExprId, bool)>,
    pub(super) constant: i128,
}

/// An integer is at least the one sum and at most the other.
#[derive(Clone, Debug)]
pub(super) struct Between {
    pub(super) low: Sum,
    pub(super) high: Sum,
}

/// What is known of a value in the interior.
#[derive(Clone, Debug)]
pub(super) enum Known {
    Integer(Between),
    Bool(bool),
}

impl Sum {
    pub(super) fn constant(constant: i128) -> Self {
        Self { terms: Vec::new(), constant }
    }

    pub(super) fn term(id: ExprId) -> Self {
        Self { terms: vec![(id, false)], constant: 0 }
    }

    /// Whether both have the very same parts.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.terms == other.terms && self.constant == other.constant
    }

    pub(super) fn negated(&self) -> Self {
        Self { terms: self.terms.iter().map(|&(id, minus)| (id, !minus)).collect(), constant: -self.constant }
    }

    pub(super) fn plus(&self, other: &Self) -> Option<Self> {
        let terms: Vec<_> = self.terms.iter().chain(&other.terms).copied().collect();
        let constant = self.constant + other.constant;
        (terms.len() <= MOST_TERMS && constant.abs() <= LARGEST_CONSTANT).then_some(Self { terms, constant })
    }

    pub(super) fn plus_constant(&self, by: i128) -> Option<Self> {
        self.plus(&Self::constant(by))
    }
}

impl Between {
    pub(super) fn constant(value: i128) -> Self {
        Self::one(Sum::constant(value))
    }

    pub(super) fn one(sum: Sum) -> Self {
        Self { low: sum.clone(), high: sum }
    }

    pub(super) fn plus(&self, other: &Self) -> Option<Self> {
        Some(Self { low: self.low.plus(&other.low)?, high: self.high.plus(&other.high)? })
    }

    pub(super) fn negated(&self) -> Self {
        Self { low: self.high.negated(), high: self.low.negated() }
    }
}
