//! Queries about expressions in a loop with transposed accesses.

use weft_artifact::Scalar;

use crate::{
    analysis::{any_expr, same},
    backend::host::plan::{
        analysis::strides::{Form, Forms},
        domain::guards::Peeler,
        loops::interchange,
        vector::transpose::{Known, Transposition},
    },
    ir::{Arith, BinaryOp, Class, Expr, ExprId, ExprKind, Leaf, LocalId, Space, Type, Unit},
};

/// Most expressions of an address or a value, after the locals of an iteration are replaced by their values.
pub(crate) const MAX_EXPRS: u32 = 64;

impl Transposition<'_, '_> {
    /// How an address changes along `threadIdx.x`, if it is uniform or has unit stride; otherwise `None`.
    pub(crate) fn neighbors(&self, pointer: ExprId) -> Option<Form> {
        self.forms(|forms| interchange::is_unit_stride_or_uniform(forms, pointer).then(|| forms.form(pointer)))
    }

    /// Runs a query about strides along a row.
    pub(crate) fn forms<T>(&self, ask: impl FnOnce(&Forms<'_>) -> T) -> T {
        let Peeler { function, uniformity, fixed, .. } = &*self.peeler;
        let shared = |local: LocalId| !uniformity.local_varies(local);
        ask(&Forms { function, fixed, shared: &shared, sole: &|_| None, axis: 0 })
    }

    /// `true` if an element is in global memory and has a type that vectors can hold.
    pub(crate) fn is_plain(&self, pointer: ExprId) -> bool {
        matches!(self.function().exprs[pointer].ty, Type::Ptr(element, Space::Global) if element != Scalar::Bool)
    }

    pub(crate) fn is_never_written(&self, mut pointer: ExprId) -> bool {
        while let Class::Address { base, .. } = self.function().class(pointer) {
            pointer = base;
        }
        self.function().local(pointer).is_some_and(|local| self.function().locals[local].never_written)
    }

    /// An expression in terms of the counter and of loop-invariant values, at the current position of an iteration.
    pub(crate) fn inline(&mut self, root: ExprId, known: &Known) -> Option<ExprId> {
        self.inline_within(root, known, &mut { MAX_EXPRS })
    }

    fn inline_within(&mut self, root: ExprId, known: &Known, left: &mut u32) -> Option<ExprId> {
        *left = left.checked_sub(1)?;
        let Expr { kind, ty, span } = self.function().exprs[root].clone();
        match kind.class() {
            Class::Load(_) => return None,
            Class::Leaf(Leaf::Local(local)) if local != self.counter => {
                if let Some(&value) = known.get(&local) {
                    return self.inline_within(value?, &Known::new(), left);
                }
                let Peeler { uniformity, fixed, .. } = &*self.peeler;
                let is_there =
                    !uniformity.local_varies(local) || fixed.value(local).is_some() || self.fetched.contains(&local);
                if self.assigned.contains(&local) || !is_there {
                    return None;
                }
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } => {}
        }
        let mut whole = true;
        let kind = kind.map_operands(&mut |operand| {
            self.inline_within(operand, known, left).unwrap_or_else(|| {
                whole = false;
                operand
            })
        });
        whole.then(|| self.peeler.function.exprs.push(Expr { kind, ty, span }))
    }

    /// A copy of a uniform expression, without locals of a thread: an absent lane does not compute these.
    pub(crate) fn of_all(&mut self, root: ExprId, left: &mut u32) -> Option<ExprId> {
        *left = left.checked_sub(1)?;
        let Expr { kind, ty, span } = self.function().exprs[root].clone();
        if let ExprKind::Local(local) = kind
            && self.peeler.uniformity.local_varies(local)
        {
            let value = self.peeler.fixed.value(local)?;
            return self.of_all(value, left);
        }
        let mut whole = true;
        let kind = kind.map_operands(&mut |operand| {
            self.of_all(operand, left).unwrap_or_else(|| {
                whole = false;
                operand
            })
        });
        whole.then(|| self.peeler.function.exprs.push(Expr { kind, ty, span }))
    }

    /// `true` if a value depends on the counter.
    pub(crate) fn counts(&self, root: ExprId) -> bool {
        any_expr(self.function(), root, &|kind| *kind == ExprKind::Local(self.counter))
    }

    /// `true` if a value is the counter, possibly widened to 64 bits.
    pub(crate) fn is_counter(&self, id: ExprId) -> bool {
        let expr = &self.function().exprs[id];
        if let ExprKind::Convert(a) = expr.kind {
            return expr.ty == Type::I64 && self.function().exprs[a].ty == Type::I32 && self.is_counter(a);
        }
        expr.kind == ExprKind::Local(self.counter)
    }

    /// `true` if a value grows by one in each iteration, or a pointer by one element; `false` if it is loop-invariant;
    /// `None` if it is neither.
    pub(crate) fn goes_on(&self, root: ExprId) -> Option<bool> {
        if !self.counts(root) {
            return Some(false);
        }
        let expr = &self.function().exprs[root];
        let one_of = |a: ExprId, b: ExprId| match (self.goes_on(a)?, self.goes_on(b)?) {
            (true, false) | (false, true) => Some(true),
            (false, false) | (true, true) => None,
        };
        match expr.kind.class() {
            Class::Leaf(Leaf::Local(_)) => Some(true),
            // A 32-bit sum may wrap, unless it is marked as exact.
            Class::Arith(Arith::Convert(a)) if expr.ty == Type::I64 && self.function().exprs[a].ty == Type::I32 => {
                self.goes_on(a)
            }
            Class::Arith(Arith::Binary(BinaryOp::Add, a, b)) if expr.ty == Type::I64 => one_of(a, b),
            Class::Arith(Arith::Binary(BinaryOp::AddExact, a, b)) if matches!(expr.ty, Type::I32 | Type::I64) => {
                one_of(a, b)
            }
            Class::Arith(Arith::Binary(BinaryOp::Sub, a, b)) if expr.ty == Type::I64 && !self.counts(b) => {
                self.goes_on(a)
            }
            Class::Address { base, by, unit } => {
                let by_one = matches!(expr.kind, ExprKind::Offset { scale: 1, .. });
                match (self.goes_on(base)?, self.goes_on(by)?) {
                    (true, false) => Some(true),
                    (false, true) if by_one && unit == Unit::Elements => Some(true),
                    (false | true, false | true) => None,
                }
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Load(_) => None,
        }
    }

    /// The number of elements from one pointer to another, if it is a constant.
    pub(crate) fn distance(&self, from: ExprId, to: ExprId) -> Option<i128> {
        let function = self.function();
        let element = |id: ExprId| {
            let ExprKind::Offset { base, index, scale: 1 } = function.exprs[id].kind else { return None };
            Some((base, index))
        };
        let ((base, from), (other, to)) = (element(from)?, element(to)?);
        let (mut terms, mut others) = (Vec::new(), Vec::new());
        let (a, b) = (self.terms(from, &mut terms)?, self.terms(to, &mut others)?);
        for term in terms {
            let at = others.iter().position(|&one| same(function, one, term))?;
            others.swap_remove(at);
        }
        (same(function, base, other) && others.is_empty()).then_some(b - a)
    }

    /// Collects the terms of an index, and returns the sum of its constants.
    fn terms(&self, root: ExprId, terms: &mut Vec<ExprId>) -> Option<i128> {
        if let Some(value) = self.function().int(root) {
            return Some(value);
        }
        let expr = &self.function().exprs[root];
        if let ExprKind::Binary(op, a, b) = expr.kind
            && expr.ty == Type::I64
        {
            if matches!(op, BinaryOp::Add | BinaryOp::AddExact) {
                return self.terms(a, terms)?.checked_add(self.terms(b, terms)?);
            }
            if let (BinaryOp::Sub, Some(less)) = (op, self.function().int(b)) {
                return self.terms(a, terms)?.checked_sub(less);
            }
        }
        terms.push(root);
        Some(0)
    }
}
