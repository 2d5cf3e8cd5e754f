//! Copies of expressions for the steady state, and the intervals of their values there.

use crate::{
    backend::host::plan::{
        analysis::strides::{Form, mirrored},
        domain::steady_state::{Between, Known, MAX_CONSTANT, NEAR_ZERO, Specializer, Sum},
    },
    ir::{Arith, BinaryOp, Class, CompareOp, Const, Expr, ExprId, ExprKind, Leaf, Type, UnaryOp},
};

impl Specializer<'_, '_> {
    /// A copy of an expression without simplifications.
    pub(super) fn copy(&mut self, id: ExprId) -> ExprId {
        self.peeler.function.copy_expr(id)
    }

    /// A copy of an expression for the steady state, and the interval of its value there.
    pub(super) fn value(&mut self, id: ExprId) -> (ExprId, Option<Known>) {
        let Expr { kind, ty, .. } = self.function().exprs[id].clone();
        if ty == Type::I32
            && let Some(known) = self.counted(&kind)
        {
            return (self.push(kind, ty, id), Some(known));
        }
        if ty != Type::I64 && ty != Type::BOOL {
            let kind = kind.map_operands(&mut |operand| self.value(operand).0);
            return (self.push(kind, ty, id), None);
        }
        let mut known = Vec::new();
        let mut copies = Vec::new();
        let new = kind.clone().map_operands(&mut |operand| {
            let (copy, of) = self.value(operand);
            copies.push(copy);
            known.push(of);
            copy
        });
        let (found, copy) = self.operator(id, &kind, &known, &copies);
        let copy = match (copy, &found) {
            (Some(copy), _) => copy,
            (None, Some(Known::Bool(is))) => self.push(ExprKind::Const(Const::Bool(*is)), ty, id),
            (None, _) => self.push(new, ty, id),
        };
        let found = found.or_else(|| {
            let row = ty == Type::I64 && self.form(id) != Form::Other;
            row.then(|| Known::Integer(Between::one(Sum::term(id))))
        });
        (copy, found)
    }

    /// The interval of a 32-bit integer that is a constant or a local, such as a loop counter.
    fn counted(&self, kind: &ExprKind) -> Option<Known> {
        match kind.class() {
            Class::Leaf(Leaf::Const(Const::Int(value))) => Some(Known::Integer(Between::constant(value))),
            Class::Leaf(Leaf::Local(local)) => self.known.get(&local).cloned(),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
        }
    }

    /// The interval of an operator's result. Also returns the operand that the result equals, if there is one.
    fn operator(
        &mut self,
        id: ExprId,
        kind: &ExprKind,
        known: &[Option<Known>],
        copies: &[ExprId],
    ) -> (Option<Known>, Option<ExprId>) {
        let integer = |index: usize| match known.get(index) {
            Some(Some(Known::Integer(between))) => Some(between),
            Some(Some(Known::Bool(_)) | None) | None => None,
        };
        let truth = |index: usize| match known.get(index) {
            Some(Some(Known::Bool(is))) => Some(*is),
            Some(Some(Known::Integer(_)) | None) | None => None,
        };
        let is_integer = self.function().exprs[id].ty == Type::I64;
        let sum = |found: Option<Between>| (found.map(Known::Integer), None);
        let nothing = (None, None);
        match kind.class() {
            Class::Leaf(Leaf::Const(Const::Int(value))) if is_integer && value.abs() <= MAX_CONSTANT => {
                sum(Some(Between::constant(value)))
            }
            Class::Leaf(Leaf::Const(Const::Bool(is))) => (Some(Known::Bool(is)), None),
            Class::Leaf(Leaf::Local(local)) => match (self.known.get(&local), self.peeler.fixed.value(local)) {
                (Some(known), _) => (Some(known.clone()), None),
                // The local is computed before the body starts. Its value may contain clamps, too.
                (None, Some(value)) if self.form(id) == Form::Other => match self.value(value) {
                    (copy, Some(known)) => (Some(known), Some(copy)),
                    (_, None) => nothing,
                },
                (None, Some(_) | None) => nothing,
            },
            Class::Arith(Arith::Unary(UnaryOp::Neg, _)) => sum(integer(0).map(Between::negated)),
            Class::Arith(Arith::Unary(UnaryOp::Not, _)) => (truth(0).map(|is| Known::Bool(!is)), None),
            Class::Arith(Arith::Binary(op @ (BinaryOp::And | BinaryOp::Or), ..)) if !is_integer => {
                // `True` decides an `or`, `False` an `and`; otherwise the result is the other operand.
                let decides = op == BinaryOp::Or;
                match (truth(0), truth(1)) {
                    (Some(is), _) | (_, Some(is)) if is == decides => (Some(Known::Bool(is)), None),
                    (Some(_), Some(is)) => (Some(Known::Bool(is)), None),
                    (Some(_), None) => (None, Some(copies[1])),
                    (None, Some(_)) => (None, Some(copies[0])),
                    (None, None) => nothing,
                }
            }
            Class::Arith(Arith::Binary(BinaryOp::Add | BinaryOp::AddExact, ..)) if is_integer => {
                sum(integer(0).zip(integer(1)).and_then(|(a, b)| a.plus(b)))
            }
            Class::Arith(Arith::Binary(BinaryOp::Sub | BinaryOp::SubExact, ..)) if is_integer => {
                sum(integer(0).zip(integer(1)).and_then(|(a, b)| a.plus(&b.negated())))
            }
            Class::Arith(Arith::Binary(op @ (BinaryOp::Min | BinaryOp::Max), ..)) if is_integer => {
                let Some((first, second)) = integer(0).zip(integer(1)) else { return nothing };
                let (inner, outer, chosen) = match (self.steps(first), self.steps(second)) {
                    (true, false) => (first, second, 0),
                    (false, true) => (second, first, 1),
                    (true, true) | (false, false) => return nothing,
                };
                if !self.take(inner, outer, op == BinaryOp::Max, 0) {
                    return nothing;
                }
                self.gains += 1;
                (Some(Known::Integer(inner.clone())), Some(copies[chosen]))
            }
            Class::Arith(Arith::Binary(BinaryOp::FloorMod | BinaryOp::ModNonneg, _, size)) if is_integer => {
                let Some((value, by)) = integer(0).zip(integer(1)) else { return nothing };
                match self.remainder(value, (size, by), copies) {
                    Some((value, copy)) => (Some(Known::Integer(value)), Some(copy)),
                    None => nothing,
                }
            }
            Class::Arith(Arith::Convert(from)) if is_integer && self.function().exprs[from].ty == Type::I32 => {
                sum(integer(0).cloned())
            }
            Class::Arith(Arith::Compare(op, first, _)) if self.function().exprs[first].ty == Type::I64 => {
                let Some((a, b)) = integer(0).zip(integer(1)) else { return nothing };
                (self.comparison(op, a, b).map(Known::Bool), None)
            }
            Class::Arith(Arith::Select(..)) => match truth(0) {
                Some(is) => {
                    let chosen = if is { 1 } else { 2 };
                    (known[chosen].clone(), Some(copies[chosen]))
                }
                None => nothing,
            },
            Class::Arith(Arith::Wrap { .. }) => {
                let Some(index) = integer(0) else { return nothing };
                // The steady state assumes nothing about an index that is uniform along the row: the guard implies that
                // it is not negative, or its test remains.
                let zero = Between::constant(0);
                let holds =
                    if self.steps(index) { self.take(index, &zero, true, 0) } else { self.is_given(index, &zero) };
                if !holds {
                    return nothing;
                }
                self.gains += 1;
                (Some(Known::Integer(index.clone())), Some(copies[0]))
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => nothing,
        }
    }

    /// The interval of a wrapped-around index in the steady state, and its copy: the dividend, minus the multiples of
    /// the size that were added to keep it nonnegative.
    fn remainder(
        &mut self,
        value: &Between,
        (size, by): (ExprId, &Between),
        copies: &[ExprId],
    ) -> Option<(Between, ExprId)> {
        let &[dividend, divisor] = copies else { return None };
        // The guard of a wrapped-around index compares with the same size. An index that is split into a row and a
        // column has no such guard.
        let around = self.ranges.iter().any(|range| self.alike(range.bound, size));
        if !around || !self.steps(value) || self.steps(by) {
            return None;
        }
        let (inside, times) = self.without(value, by);
        if !(self.take(&inside, by, false, 1) && self.take(&inside, &Between::constant(0), true, 0)) {
            return None;
        }
        if times != 0 {
            // The dividend exceeds the result by whole sizes only if it does not wrap.
            self.be_exact(&[value, by]);
        }
        self.gains += 1;
        let op = if times > 0 { BinaryOp::Sub } else { BinaryOp::Add };
        let mut copy = dividend;
        for _ in 0..times.abs() {
            let size = self.copy(divisor);
            copy = self.push(ExprKind::Binary(op, copy, size), Type::I64, dividend);
        }
        Some((inside, copy))
    }

    /// A value without the whole sizes that were added to it, and their number. The number is negative if sizes were
    /// subtracted.
    fn without(&self, value: &Between, by: &Between) -> (Between, i32) {
        let mut value = value.clone();
        let [(size, false)] = by.low.terms[..] else { return (value, 0) };
        if by.low.constant != 0 || !by.high.is(&by.low) {
            return (value, 0);
        }
        let place =
            |sum: &Sum, sign: bool| sum.terms.iter().position(|&(term, minus)| minus == sign && self.alike(term, size));
        let mut times = 0;
        for (sign, one) in [(false, 1), (true, -1)] {
            while let (Some(low), Some(high)) = (place(&value.low, sign), place(&value.high, sign)) {
                value.low.terms.remove(low);
                value.high.terms.remove(high);
                times += one;
            }
        }
        (value, times)
    }

    /// The outcome of a comparison in the steady state: the value is above a bound near zero, and below any other
    /// bound.
    fn comparison(&mut self, op: CompareOp, a: &Between, b: &Between) -> Option<bool> {
        let steps = (self.steps(a), self.steps(b));
        let (value, op, bound) = match steps {
            (true, true) => return None,
            (true, false) => (a, op, b),
            (false, true) => (b, mirrored(op), a),
            (false, false) => match (self.is_position(a), self.is_position(b)) {
                (true, false) => (a, op, b),
                (false, true) => (b, mirrored(op), a),
                (true, true) | (false, false) => return None,
            },
        };
        let above = bound.high.terms.is_empty() && bound.high.constant <= NEAR_ZERO;
        let (holds, distance) = match (op, above) {
            (CompareOp::Gt, true) | (CompareOp::Lt, false) => (true, 1),
            (CompareOp::Ge, true) | (CompareOp::Le, false) => (true, 0),
            (CompareOp::Lt, true) | (CompareOp::Gt, false) => (false, 0),
            (CompareOp::Le, true) | (CompareOp::Ge, false) => (false, 1),
            (CompareOp::Eq, _) => (false, 1),
            (CompareOp::Ne, _) => (true, 1),
        };
        if !self.take(value, bound, above, distance) {
            return None;
        }
        self.gains += usize::from(steps != (false, false));
        Some(holds)
    }
}
