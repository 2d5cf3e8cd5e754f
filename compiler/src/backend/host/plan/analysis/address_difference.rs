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

use weft_artifact::{EXTENT_BITS, SlotField, SlotSource};

use crate::{
    analysis::{Rematerializable, any_expr, same},
    ir::{
        Arith, BinaryOp, Class, Const, ExprId, ExprKind, Function, Leaf, LocalId, SpecialRegister, Stmt, Type,
        for_each_expr, for_each_expr_of_stmt, for_each_stmt,
    },
};

/// The maximum number of monomials of a polynomial.
const MAX_PRODUCTS: usize = 16;

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

/// Monomials, as sorted numbers of factors, and their coefficients. The empty monomial is the constant term.
type Polynomial = BTreeMap<Vec<usize>, i128>;

/// The state of the analysis of a function.
pub(crate) struct Addresses<'a> {
    function: &'a Function,
    fixed: &'a Rematerializable,
    factors: Vec<ExprId>,
    /// The polynomials of rematerializable locals.
    locals: BTreeMap<LocalId, Option<Polynomial>>,
    /// All loads of the code are uniform or have unit stride along `x`.
    coalesced: bool,
}

impl<'a> Addresses<'a> {
    /// Analyzes the loads of a function's code.
    pub(crate) fn of(function: &'a Function, fixed: &'a Rematerializable, body: &[Stmt]) -> Self {
        let mut addresses = Self { function, fixed, factors: Vec::new(), locals: BTreeMap::new(), coalesced: true };
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
        let mut difference = a.index.clone();
        for (factors, times) in &b.index {
            let sum = difference.entry(factors.clone()).or_default();
            *sum = sum.saturating_sub(*times);
        }
        difference.retain(|_, times| *times != 0);
        let fits = |times: i128, bits: u32| times.unsigned_abs() < 1 << bits;
        // Without unit stride along `x`, LLVM would vectorize the annotated accesses element by element, which does not
        // pay.
        let is_row = self.coalesced && self.is_step(&a.index);
        let difference: Vec<_> = difference.into_iter().collect();
        let [(factors, times)] = difference.as_slice() else { return false };
        match factors.as_slice() {
            [] => fits(*times, CONSTANT_BITS) && (is_row || self.is_same(a.before, b.before)),
            // If the extent is 0, the array has no elements, and neither access is executed.
            [factor] => is_row && self.is_extent(self.factors[*factor]) && fits(*times, CONSTANT_BITS - EXTENT_BITS),
            [_, _, ..] => false,
        }
    }

    /// Whether an index has unit stride along `x`.
    fn is_step(&self, index: &Polynomial) -> bool {
        let of_thread: Vec<_> = index.iter().filter(|(factors, _)| self.varies(factors)).collect();
        matches!(of_thread.as_slice(), [(factors, 1)] if matches!(factors.as_slice(), [factor] if self.is_thread(*factor)))
    }

    /// Whether an index is uniform along `x`.
    fn is_one(&self, index: &Polynomial) -> bool {
        !index.keys().any(|factors| self.varies(factors))
    }

    fn varies(&self, factors: &[usize]) -> bool {
        factors.iter().any(|&factor| self.mentions_thread(self.factors[factor]))
    }

    fn is_thread(&self, factor: usize) -> bool {
        let mut id = self.factors[factor];
        while let Class::Arith(Arith::Convert(inner)) = self.function.class(id) {
            id = self.fixed_value(inner);
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

    fn fixed_value(&self, mut id: ExprId) -> ExprId {
        while let Some(value) = self.function.local(id).and_then(|local| self.fixed.value(local)) {
            id = value;
        }
        id
    }

    fn is_extent(&self, id: ExprId) -> bool {
        let Some(local) = self.function.local(id) else { return false };
        let slots = self.function.params.iter().zip(&self.function.slots);
        slots.into_iter().any(|(&param, slot)| {
            param == local && matches!(slot, SlotSource::Argument { field: SlotField::Shape(_), .. })
        })
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
        let known = match self.function.class(id) {
            Class::Leaf(Leaf::Const(Const::Int(value))) => {
                return Some(BTreeMap::from([(Vec::new(), value)]));
            }
            Class::Leaf(Leaf::Local(local)) => match self.fixed.value(local) {
                Some(value) => {
                    if let Some(known) = self.locals.get(&local) {
                        return known.clone();
                    }
                    let found = self.polynomial(value);
                    self.locals.insert(local, found.clone());
                    return found;
                }
                None => None,
            },
            Class::Arith(Arith::Binary(op, a, b)) if self.function.exprs[id].ty == Type::I64 => match op {
                BinaryOp::Add | BinaryOp::AddExact => Some((a, b, Some(1))),
                BinaryOp::Sub | BinaryOp::SubExact => Some((a, b, Some(-1))),
                BinaryOp::Mul | BinaryOp::MulExact => Some((a, b, None)),
                BinaryOp::Div
                | BinaryOp::FloorDiv
                | BinaryOp::FloorMod
                | BinaryOp::DivNonneg
                | BinaryOp::ModNonneg
                | BinaryOp::Pow
                | BinaryOp::Min
                | BinaryOp::Max
                | BinaryOp::And
                | BinaryOp::Or
                | BinaryOp::Xor
                | BinaryOp::Shl
                | BinaryOp::Shr => None,
            },
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
        };
        let Some((a, b, times)) = known else { return self.factor(id) };
        let (a, b) = (self.polynomial(a)?, self.polynomial(b)?);
        let mut sum = Polynomial::new();
        let mut add = |factors: Vec<usize>, times: i128| -> Option<()> {
            let coefficient = sum.entry(factors).or_default();
            *coefficient = coefficient.checked_add(times)?;
            Some(())
        };
        match times {
            Some(times) => {
                a.into_iter().try_for_each(|(factors, often)| add(factors, often))?;
                b.into_iter().try_for_each(|(factors, often)| add(factors, often.checked_mul(times)?))?;
            }
            None => {
                for (left, often) in &a {
                    for (right, times) in &b {
                        let mut factors = [left.as_slice(), right].concat();
                        factors.sort_unstable();
                        add(factors, often.checked_mul(*times)?)?;
                    }
                }
            }
        }
        sum.retain(|_, times| *times != 0);
        (sum.len() <= MAX_PRODUCTS).then_some(sum)
    }

    /// The polynomial of an opaque value: a factor, which must be invariant.
    fn factor(&mut self, id: ExprId) -> Option<Polynomial> {
        if !self.stays(id) {
            return None;
        }
        let known = self.factors.iter().position(|&factor| same(self.function, factor, id));
        let number = known.unwrap_or_else(|| {
            self.factors.push(id);
            self.factors.len() - 1
        });
        Some(BTreeMap::from([(vec![number], 1)]))
    }
}
