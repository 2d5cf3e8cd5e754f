//! Alias test for two accesses of a thread to the same array: the difference of their indices, as a symbolic
//! expression.
//!
//! Each index is a polynomial over loop-invariant factors. Two accesses are to different elements if the difference of
//! the polynomials is a nonzero constant, or a nonzero multiple of an extent of an array:
//!
//! ```text
//! out[2 * i] = …; out[2 * i + 1] = …        difference 1: different elements
//! out[i] = …; out[n + i] = …                difference n, an extent: different elements
//! ```
//!
//! The test is positive only where an annotation as independent pays: the accesses have unit stride along `x` and all
//! loads of the code are uniform or have unit stride, or the two indices differ only in a constant that is added last.

use std::collections::{BTreeMap, BTreeSet};

use weft_artifact::EXTENT_BITS;

use crate::{
    analysis::{
        Rematerializable,
        affine::{Atoms, ByStructure, Polynomial, Precision, is_extent, polynomial},
        any_expr, same,
    },
    ir::{
        Arith, BinaryOp, Class, ExprId, ExprKind, Function, Leaf, LocalId, SpecialRegister, Stmt, for_each_expr,
        for_each_expr_of_stmt, for_each_stmt,
    },
};

/// A constant's absolute value is less than two to the power of this.
const CONSTANT_BITS: u32 = u64::BITS - 2;

/// The address of an element: a base pointer and a symbolic index.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    base: ExprId,
    scale: u32,
    index: Polynomial,
    /// The index without a constant that is added last: the same for the channels of a pixel, or the parts of a complex
    /// number.
    before: ExprId,
}

/// The state of the analysis of a function.
pub(crate) struct Addresses<'a> {
    function: &'a Function,
    fixed: &'a Rematerializable,
    factors: ByStructure<'a>,
    /// The polynomials of rematerializable locals.
    locals: BTreeMap<LocalId, Option<Polynomial>>,
    /// All loads of the code are uniform or have unit stride along `x`.
    coalesced: bool,
}

impl<'a> Addresses<'a> {
    /// Analyzes the loads of a function's code.
    pub(crate) fn of(function: &'a Function, fixed: &'a Rematerializable, body: &[Stmt]) -> Self {
        let factors = ByStructure::new(function);
        let mut addresses = Self { function, fixed, factors, locals: BTreeMap::new(), coalesced: true };
        let mut loads = Vec::new();
        for_each_stmt(body, &mut |stmt| {
            for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
                if let Class::Load(pointer) = function.class(id) {
                    loads.push(pointer);
                }
            });
        });
        for pointer in loads {
            let address = addresses.address(pointer);
            addresses.coalesced &=
                address.is_some_and(|address| addresses.is_step(&address.index) || addresses.is_one(&address.index));
        }
        addresses
    }

    /// The address of a pointer, if its index is a polynomial.
    pub(crate) fn address(&mut self, pointer: ExprId) -> Option<Address> {
        let ExprKind::Offset { base, index, scale } = self.function.exprs[pointer].kind else { return None };
        let before = if let ExprKind::Binary(BinaryOp::Add, before, constant) = self.function.exprs[index].kind
            && self.function.int(constant).is_some()
        {
            before
        } else {
            index
        };
        Some(Address { base, scale, index: self.polynomial(index)?, before })
    }

    /// Whether two accesses of a thread are never to the same element.
    pub(crate) fn are_disjoint(&self, a: &Address, b: &Address) -> bool {
        if a.scale != b.scale || !self.is_same(a.base, b.base) {
            return false;
        }
        let Some(difference) = a.index.clone().plus(&b.index, -1) else { return false };
        let fits = |times: i128, bits: u32| times.unsigned_abs() < 1 << bits;
        // Without unit stride along `x`, LLVM would vectorize the annotated accesses element by element, which does not
        // pay.
        let is_row = self.coalesced && self.is_step(&a.index);
        let mut terms = difference.terms();
        let (Some((factors, times)), None) = (terms.next(), terms.next()) else { return false };
        match factors {
            [] => fits(times, CONSTANT_BITS) && (is_row || self.is_same(a.before, b.before)),
            // If the extent is 0, the array has no elements, and neither access is executed.
            &[factor] => {
                let extent = self.function.local(self.factors.value(factor));
                let is_extent = extent.is_some_and(|local| is_extent(self.function, local));
                is_row && is_extent && fits(times, CONSTANT_BITS - EXTENT_BITS)
            }
            [_, _, ..] => false,
        }
    }

    /// Whether an index has unit stride along `x`.
    fn is_step(&self, index: &Polynomial) -> bool {
        let mut of_thread = index.terms().filter(|(factors, _)| self.varies(factors));
        let only = of_thread.next().filter(|_| of_thread.next().is_none());
        matches!(only, Some((&[factor], 1)) if self.is_thread(factor))
    }

    /// Whether an index is uniform along `x`.
    fn is_one(&self, index: &Polynomial) -> bool {
        !index.terms().any(|(factors, _)| self.varies(factors))
    }

    fn varies(&self, factors: &[u32]) -> bool {
        factors.iter().any(|&factor| self.mentions_thread(self.factors.value(factor)))
    }

    fn is_thread(&self, factor: u32) -> bool {
        let mut id = self.factors.value(factor);
        while let Class::Arith(Arith::Convert(inner)) = self.function.class(id) {
            id = self.fixed.resolve(self.function, inner);
        }
        matches!(self.function.class(id), Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(0))))
    }

    fn mentions_thread(&self, root: ExprId) -> bool {
        let (mut mentions, mut left, mut seen) = (false, vec![root], BTreeSet::new());
        while let Some(root) = left.pop() {
            for_each_expr(self.function, root, &mut |id| match self.function.class(id) {
                Class::Leaf(Leaf::Special(register)) => mentions |= register == SpecialRegister::ThreadIdx(0),
                Class::Leaf(Leaf::Local(local)) => {
                    left.extend(self.fixed.value(local).filter(|_| seen.insert(local)));
                }
                Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => {}
            });
        }
        mentions
    }

    /// Whether two expressions are equal and invariant.
    fn is_same(&self, a: ExprId, b: ExprId) -> bool {
        same(self.function, a, b) && self.stays(a)
    }

    /// Whether an expression is invariant: a thread computes the same value everywhere in the function.
    fn stays(&self, id: ExprId) -> bool {
        let varies = |local: LocalId| self.fixed.value(local).is_none() && !self.function.params.contains(&local);
        let moves = |kind: &ExprKind| {
            matches!(kind, ExprKind::Local(local) if varies(*local))
                || matches!(kind, ExprKind::Load(..) | ExprKind::Special(SpecialRegister::OfRow(_)))
        };
        !any_expr(self.function, id, &moves)
    }

    /// The polynomial of a value, modulo 2^64.
    fn polynomial(&mut self, id: ExprId) -> Option<Polynomial> {
        polynomial(self.function, Precision::Exact, self, id)
    }
}

impl Atoms for Addresses<'_> {
    fn local(&mut self, local: LocalId, read: ExprId) -> Option<Polynomial> {
        let Some(value) = self.fixed.value(local) else { return self.opaque(read) };
        if let Some(known) = self.locals.get(&local) {
            return known.clone();
        }
        let found = self.polynomial(value);
        self.locals.insert(local, found.clone());
        found
    }

    /// A factor, which must be invariant.
    fn opaque(&mut self, root: ExprId) -> Option<Polynomial> {
        if self.stays(root) { self.factors.opaque(root) } else { None }
    }
}
