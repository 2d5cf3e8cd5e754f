//! Integers and addresses as polynomials: sums of coefficients times products of atoms.
//!
//! An *atom* is a value that is not analyzed further. Which values are equal, and so the same atom, depends on the
//! query: it implements [`Atoms`].

use std::collections::BTreeMap;

use super::{Linear, Precision, bytes_per_step, is_preserved};
use crate::{
    analysis::same,
    ir::{Arith, Class, Const, ExprId, Function, Leaf, LocalId, UnaryOp},
};

/// The maximum number of terms of a polynomial, and of factors of a term. A larger expression is an atom.
const MAX_TERMS: usize = 24;
const MAX_FACTORS: usize = 4;

/// The coefficient of each product of atoms, which are sorted. The constant is the term without atoms.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Polynomial(BTreeMap<Vec<u32>, i128>);

impl Polynomial {
    pub(crate) fn constant(value: i128) -> Self {
        Self::from_terms([(Vec::new(), value)])
    }

    pub(crate) fn atom(number: u32) -> Self {
        Self::from_terms([(vec![number], 1)])
    }

    fn from_terms(terms: impl IntoIterator<Item = (Vec<u32>, i128)>) -> Self {
        Self(terms.into_iter().filter(|&(_, coefficient)| coefficient != 0).collect())
    }

    /// The products of atoms, and their coefficients, none of which is 0.
    pub(crate) fn terms(&self) -> impl ExactSizeIterator<Item = (&[u32], i128)> {
        self.0.iter().map(|(atoms, &coefficient)| (atoms.as_slice(), coefficient))
    }

    /// Its value, if it has no atoms.
    pub(crate) fn as_constant(&self) -> Option<i128> {
        match (self.0.len(), self.0.get([].as_slice())) {
            (0, _) => Some(0),
            (1, constant) => constant.copied(),
            (2.., _) => None,
        }
    }

    /// The coefficient of a product of atoms, which are sorted.
    pub(crate) fn coefficient(&self, atoms: &[u32]) -> i128 {
        self.0.get(atoms).copied().unwrap_or(0)
    }

    /// The quotient and the rest of a division by an atom. No term of the rest has the atom.
    pub(crate) fn divided_by(&self, atom: u32) -> (Self, Self) {
        let (mut quotient, mut rest) = (Self::default(), Self::default());
        for (atoms, &coefficient) in &self.0 {
            let mut others = atoms.clone();
            match others.iter().position(|&one| one == atom) {
                Some(at) => {
                    others.remove(at);
                    quotient.0.insert(others, coefficient);
                }
                None => {
                    rest.0.insert(others, coefficient);
                }
            }
        }
        (quotient, rest)
    }

    /// The quotient of a division of all coefficients by a number, and the rest of the constant; `None` if another
    /// coefficient is not divisible.
    pub(crate) fn divided_by_constant(&self, by: i128) -> Option<(Self, i128)> {
        let (terms, constant) = self.clone().split();
        let is_divisible = terms.0.values().all(|coefficient| coefficient % by == 0);
        let quotients = terms.0.into_iter().map(|(atoms, coefficient)| (atoms, coefficient / by));
        let all = quotients.chain([(Vec::new(), constant.div_euclid(by))]);
        is_divisible.then(|| (Self::from_terms(all), constant.rem_euclid(by)))
    }

    /// The sum of the other terms, and the constant.
    pub(crate) fn split(mut self) -> (Self, i128) {
        let constant = self.0.remove([].as_slice()).unwrap_or(0);
        (self, constant)
    }

    /// This polynomial plus `factor` times another one; `None` if a coefficient has too many bits.
    pub(crate) fn plus(mut self, other: &Self, factor: i128) -> Option<Self> {
        for (atoms, coefficient) in &other.0 {
            let sum = self.0.entry(atoms.clone()).or_default();
            *sum = sum.checked_add(coefficient.checked_mul(factor)?)?;
        }
        self.0.retain(|_, coefficient| *coefficient != 0);
        Some(self)
    }

    /// The product; `None` if a coefficient has too many bits.
    pub(crate) fn times(&self, other: &Self) -> Option<Self> {
        let mut all = Self::default();
        for (left, by) in &self.0 {
            for (right, times) in &other.0 {
                let mut atoms = [left.as_slice(), right].concat();
                atoms.sort_unstable();
                let sum = all.0.entry(atoms).or_default();
                *sum = sum.checked_add(by.checked_mul(*times)?)?;
            }
        }
        all.0.retain(|_, coefficient| *coefficient != 0);
        Some(all)
    }

    /// Whether it is small enough for an analysis.
    pub(crate) fn is_small(&self) -> bool {
        self.0.len() <= MAX_TERMS && self.0.keys().all(|atoms| atoms.len() <= MAX_FACTORS)
    }
}

/// The atoms of a query. `None`: the value has no polynomial.
pub(crate) trait Atoms {
    /// The polynomial of a local, whose read is `read`.
    fn local(&mut self, local: LocalId, read: ExprId) -> Option<Polynomial>;

    /// The atom of any other value.
    fn opaque(&mut self, root: ExprId) -> Option<Polynomial>;
}

/// The polynomial of an integer, or of an address in bytes.
pub(crate) fn polynomial(
    function: &Function,
    precision: Precision,
    atoms: &mut dyn Atoms,
    root: ExprId,
) -> Option<Polynomial> {
    let ty = function.exprs[root].ty;
    let is_estimate = precision == Precision::Estimate;
    let of = |atoms: &mut dyn Atoms, id: ExprId| polynomial(function, precision, atoms, id);
    let sum = match function.class(root) {
        Class::Leaf(Leaf::Const(Const::Int(value))) => return Some(Polynomial::constant(value)),
        Class::Leaf(Leaf::Local(local)) => return atoms.local(local, root),
        Class::Arith(Arith::Convert(a)) if is_preserved(function.exprs[a].ty, ty, precision) => return of(atoms, a),
        Class::Arith(Arith::Wrap { index, .. }) if is_estimate => return of(atoms, index),
        Class::Arith(Arith::Unary(UnaryOp::Neg, a)) if is_estimate => Polynomial::default().plus(&of(atoms, a)?, -1),
        Class::Arith(Arith::Binary(op, a, b)) => match Linear::of(op, ty, precision) {
            Some(Linear::Sum(factor)) => of(atoms, a)?.plus(&of(atoms, b)?, factor),
            Some(Linear::Product) => of(atoms, a)?.times(&of(atoms, b)?),
            None => None,
        },
        Class::Address { base, by, .. } => of(atoms, base)?.plus(&of(atoms, by)?, bytes_per_step(function, root)),
        Class::Leaf(_) | Class::Arith(_) | Class::Load(_) => None,
    };
    sum.filter(Polynomial::is_small).or_else(|| atoms.opaque(root))
}

/// Atoms that are the same if they are the same computation on the same values. The query must be about one position
/// of a program, or about values that do not change.
pub(crate) struct ByStructure<'a> {
    function: &'a Function,
    atoms: Vec<ExprId>,
}

impl<'a> ByStructure<'a> {
    pub(crate) fn new(function: &'a Function) -> Self {
        Self { function, atoms: Vec::new() }
    }

    /// The value of an atom.
    pub(crate) fn value(&self, atom: u32) -> ExprId {
        self.atoms[atom as usize]
    }

    /// The difference of two values, if it is a constant.
    pub(crate) fn difference(&mut self, precision: Precision, a: ExprId, b: ExprId) -> Option<i128> {
        let a = polynomial(self.function, precision, self, a)?;
        let b = polynomial(self.function, precision, self, b)?;
        a.plus(&b, -1)?.as_constant()
    }
}

impl Atoms for ByStructure<'_> {
    fn local(&mut self, _: LocalId, read: ExprId) -> Option<Polynomial> {
        self.opaque(read)
    }

    fn opaque(&mut self, root: ExprId) -> Option<Polynomial> {
        let known = self.atoms.iter().position(|&atom| same(self.function, atom, root));
        let number = known.unwrap_or_else(|| {
            self.atoms.push(root);
            self.atoms.len() - 1
        });
        Some(Polynomial::atom(number as u32))
    }
}
