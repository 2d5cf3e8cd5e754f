//! Elements of a thread that are known to be different ones: their numbers are polynomials of what does not change, and the difference
//! of two of them is a constant other than 0, or a multiple of an extent.

use std::collections::{BTreeMap, BTreeSet};

use weft_artifact::{EXTENT_BITS, SlotField, SlotSource};

use crate::{
    analysis::{Rematerializable, any_expr, same},
    ir::{
        Arith, BinaryOp, Class, Const, ExprId, ExprKind, Function, Leaf, LocalId, SpecialRegister, Stmt, Type,
        for_each_expr, for_each_expr_of_stmt, for_each_stmt,
    },
};

/// Products of a polynomial, and factors of each.
const MOST_PRODUCTS: usize = 16;

/// A constant's absolute value is below two to the power of this.
const CONSTANT_BITS: u32 = u64::BITS - 2;

/// An element: whose memory it is in, and its number there.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    base: ExprId,
    scale: u32,
    index: Polynomial,
    /// The number without a constant that is added to it last: one of several colors, parts of complex numbers.
    before: ExprId,
}

/// Factors by number, and how often their product is added; no factors: the constant.
type Polynomial = BTreeMap<Vec<usize>, i128>;

/// What polynomials are made of.
pub(crate) struct Places<'a> {
    function: &'a Function,
    fixed: &'a Rematerializable,
    factors: Vec<ExprId>,
    /// Of fixed locals.
    locals: BTreeMap<LocalId, Option<Polynomial>>,
    /// All loads of a row are of one element, or of neighbors.
    coalesced: bool,
}

impl<'a> Places<'a> {
    /// Of a function's code.
    pub(crate) fn of(function: &'a Function, fixed: &'a Rematerializable, body: &[Stmt]) -> Self {
        let mut places = Self { function, fixed, factors: Vec::new(), locals: BTreeMap::new(), coalesced: true };
        let mut loads = Vec::new();
        for_each_stmt(body, &mut |stmt| {
            for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
                if let Class::Load(pointer) = function.class(id) {
                    loads.push(pointer);
                }
            });
        });
        for pointer in loads {
            let place = places.place(pointer);
            places.coalesced &= place.is_some_and(|place| places.is_step(&place.index) || places.is_one(&place.index));
        }
        places
    }

    /// Where a pointer points to, if that can be compared.
    pub(crate) fn place(&mut self, pointer: ExprId) -> Option<Place> {
        let ExprKind::Offset { base, index, scale } = self.function.exprs[pointer].kind else { return None };
        let before = if let ExprKind::Binary(BinaryOp::Add, before, constant) = self.function.exprs[index].kind
            && self.function.int(constant).is_some()
        {
            before
        } else {
            index
        };
        Some(Place { base, scale, index: self.polynomial(index)?, before })
    }

    /// Whether two elements of a thread are never the same one.
    pub(crate) fn are_apart(&self, a: &Place, b: &Place) -> bool {
        if a.scale != b.scale || !self.is_same(a.base, b.base) {
            return false;
        }
        let mut apart = a.index.clone();
        for (factors, times) in &b.index {
            let sum = apart.entry(factors.clone()).or_default();
            *sum = sum.saturating_sub(*times);
        }
        apart.retain(|_, times| *times != 0);
        let fits = |times: i128, bits: u32| times.unsigned_abs() < 1 << bits;
        // Where neighbors are not at neighbors, LLVM is better left without a promise: it would make vectors of single elements.
        let is_row = self.coalesced && self.is_step(&a.index);
        let apart: Vec<_> = apart.into_iter().collect();
        let [(factors, times)] = apart.as_slice() else { return false };
        match factors.as_slice() {
            [] => fits(*times, CONSTANT_BITS) && (is_row || self.is_same(a.before, b.before)),
            // Of an array with an extent of 0 there is no element.
            [factor] => is_row && self.is_extent(self.factors[*factor]) && fits(*times, CONSTANT_BITS - EXTENT_BITS),
            [_, _, ..] => false,
        }
    }

    /// Whether neighbors along `x` have elements next to each other.
    fn is_step(&self, index: &Polynomial) -> bool {
        let of_thread: Vec<_> = index.iter().filter(|(factors, _)| self.varies(factors)).collect();
        matches!(of_thread.as_slice(), [(factors, 1)] if matches!(factors.as_slice(), [factor] if self.is_thread(*factor)))
    }

    /// Whether neighbors along `x` have one element.
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

    /// Whether two expressions have the same value for a thread wherever they stand.
    fn is_same(&self, a: ExprId, b: ExprId) -> bool {
        same(self.function, a, b) && self.stays(a)
    }

    /// Whether an expression has one value for a thread wherever it stands.
    fn stays(&self, id: ExprId) -> bool {
        let varies = |local: LocalId| self.fixed.value(local).is_none() && !self.function.params.contains(&local);
        let moves = |kind: &ExprKind| {
            matches!(kind, ExprKind::Local(local) if varies(*local))
                || matches!(kind, ExprKind::Load(..) | ExprKind::Special(SpecialRegister::OfRow(_)))
        };
        !any_expr(self.function, id, &moves)
    }

    /// A value modulo two to the power of 64.
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
            let place = sum.entry(factors).or_default();
            *place = place.checked_add(times)?;
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
        (sum.len() <= MOST_PRODUCTS).then_some(sum)
    }

    /// What is not looked into: a factor that is known again if it does not change.
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
