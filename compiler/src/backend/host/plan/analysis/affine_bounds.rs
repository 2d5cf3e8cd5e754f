//! Symbolic bounds of integers: sums of terms that are uniform along `threadIdx.x`, and a constant.

use crate::ir::ExprId;

/// The maximum number of terms of a sum.
const MAX_TERMS: usize = 6;

/// The maximum absolute value of the constant of a sum.
pub(crate) const MAX_CONSTANT: i128 = 1 << 40;

/// Terms, each with whether it is subtracted, and a constant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) terms: Vec<(ExprId, bool)>,
    pub(crate) constant: i128,
}

/// An integer's inclusive lower and upper bound.
#[derive(Clone, Debug)]
pub(crate) struct Between {
    pub(crate) low: Sum,
    pub(crate) high: Sum,
}

/// The bounds of an integer, or the value of a condition, in the steady state of a thread loop.
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

    /// Whether both have the same terms and constant.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.terms == other.terms && self.constant == other.constant
    }

    pub(crate) fn negated(&self) -> Self {
        Self { terms: self.terms.iter().map(|&(id, minus)| (id, !minus)).collect(), constant: -self.constant }
    }

    pub(crate) fn plus(&self, other: &Self) -> Option<Self> {
        let terms: Vec<_> = self.terms.iter().chain(&other.terms).copied().collect();
        let constant = self.constant + other.constant;
        (terms.len() <= MAX_TERMS && constant.abs() <= MAX_CONSTANT).then_some(Self { terms, constant })
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
