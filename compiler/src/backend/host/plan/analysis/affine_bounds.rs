//! Sums of values that a row can be asked for before it starts, between which an integer of a thread's is.

use crate::ir::ExprId;

/// Most parts of a sum.
const MOST_TERMS: usize = 6;

/// Constants of sums are no larger.
pub(crate) const LARGEST_CONSTANT: i128 = 1 << 40;

/// Parts that are added or subtracted, and a constant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) terms: Vec<(ExprId, bool)>,
    pub(crate) constant: i128,
}

/// An integer is at least the one sum and at most the other.
#[derive(Clone, Debug)]
pub(crate) struct Between {
    pub(crate) low: Sum,
    pub(crate) high: Sum,
}

/// What is known of a value in the interior.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    Integer(Between),
    Bool(bool),
}

impl Sum {
    pub(crate) fn constant(constant: i128) -> Self {
        Self { terms: Vec::new(), constant }
    }

    pub(crate) fn term(id: ExprId) -> Self {
        Self { terms: vec![(id, false)], constant: 0 }
    }

    /// Whether both have the very same parts.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.terms == other.terms && self.constant == other.constant
    }

    pub(crate) fn negated(&self) -> Self {
        Self { terms: self.terms.iter().map(|&(id, minus)| (id, !minus)).collect(), constant: -self.constant }
    }

    pub(crate) fn plus(&self, other: &Self) -> Option<Self> {
        let terms: Vec<_> = self.terms.iter().chain(&other.terms).copied().collect();
        let constant = self.constant + other.constant;
        (terms.len() <= MOST_TERMS && constant.abs() <= LARGEST_CONSTANT).then_some(Self { terms, constant })
    }

    pub(crate) fn plus_constant(&self, by: i128) -> Option<Self> {
        self.plus(&Self::constant(by))
    }
}

impl Between {
    pub(crate) fn constant(value: i128) -> Self {
        Self::one(Sum::constant(value))
    }

    pub(crate) fn one(sum: Sum) -> Self {
        Self { low: sum.clone(), high: sum }
    }

    pub(crate) fn plus(&self, other: &Self) -> Option<Self> {
        Some(Self { low: self.low.plus(&other.low)?, high: self.high.plus(&other.high)? })
    }

    pub(crate) fn negated(&self) -> Self {
        Self { low: self.high.negated(), high: self.low.negated() }
    }
}
