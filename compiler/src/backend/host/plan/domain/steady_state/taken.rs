//! The assumptions of the steady state, and the guard that tests them.

use crate::{
    analysis::{any_expr, same},
    backend::host::plan::{
        analysis::strides::{Form, Forms},
        domain::steady_state::{Between, MAX_CONDITIONS, MAX_TERM, Specializer, Sum},
        plan_ir::{Guard, Range},
    },
    ir::{BinaryOp, CompareOp, Const, ExprId, ExprKind, SpecialRegister, Type},
};

impl Specializer<'_, '_> {
    /// Assumes that a value exceeds a bound by at least `distance` (or is below it by as much, without `above`).
    /// Returns `false` if no guard can test this, or if there are too many assumptions.
    pub(super) fn take(&mut self, value: &Between, bound: &Between, above: bool, distance: i128) -> bool {
        let difference =
            if above { value.low.plus(&bound.high.negated()) } else { bound.low.plus(&value.high.negated()) };
        let Some(sum) = difference.and_then(|sum| sum.plus_constant(-distance)) else { return false };
        if !legal!(
            "steady_state.one-bound",
            sum.terms.iter().filter(|&&(id, _)| self.form(id) == Form::Step).count() < 2
        ) {
            return false;
        }
        if sum.terms.is_empty() {
            return sum.constant >= 0;
        }
        if self.is_asked_for(&sum, value, bound) {
            return true;
        }
        self.be_exact(&[value, bound]);
        let alike = self.taken(&sum);
        if let Some(known) = alike.and_then(|at| self.nonneg.get_mut(at)) {
            if !legal!("steady_state.least-constant", known.constant <= sum.constant) {
                known.constant = sum.constant;
            }
            return true;
        }
        let few = self.nonneg.len() < MAX_CONDITIONS;
        if few {
            self.nonneg.push(sum);
        }
        few
    }

    /// `true` if the segment's guard and the assumptions imply that a value is not less than a bound.
    pub(super) fn is_given(&mut self, value: &Between, bound: &Between) -> bool {
        let Some(sum) = value.low.plus(&bound.high.negated()) else { return false };
        if self.is_asked_for(&sum, value, bound) {
            return true;
        }
        let is_taken =
            self.taken(&sum).and_then(|at| self.nonneg.get(at)).is_some_and(|known| known.constant <= sum.constant);
        if is_taken {
            self.be_exact(&[value, bound]);
        }
        is_taken
    }

    /// The index of the assumption with the same terms.
    fn taken(&self, sum: &Sum) -> Option<usize> {
        self.nonneg.iter().position(|known| {
            known.terms.len() == sum.terms.len()
                && known.terms.iter().zip(&sum.terms).all(|(a, b)| a.1 == b.1 && self.same(a.0, b.0))
        })
    }

    /// Assumes that the terms of both ends of some intervals are small. The ends do not wrap then, and so neither do
    /// the values between them.
    pub(super) fn be_exact(&mut self, values: &[&Between]) {
        let ends = values.iter().flat_map(|value| [&value.low, &value.high]);
        for &(id, _) in ends.flat_map(|end| &end.terms) {
            if !self.parts.iter().any(|&known| self.same(known, id)) {
                self.parts.push(id);
            }
        }
    }

    /// `true` if the segment's guard implies that `sum`, the difference of `value` and `bound`, is not negative. Both
    /// must be a single term or a constant: a sum of several terms may wrap.
    fn is_asked_for(&self, sum: &Sum, value: &Between, bound: &Between) -> bool {
        let plain = |between: &Between| match between.low.terms.as_slice() {
            [] => between.low.constant == between.high.constant && between.high.terms.is_empty(),
            [(_, minus)] => !minus && between.low.constant == 0 && between.high.is(&between.low),
            [_, ..] => false,
        };
        plain(value)
            && plain(bound)
            && self.ranges.iter().any(|range| {
                // `value - bound >= distance`, or `bound - value >= distance`.
                let (is_above, distance) = match range.op {
                    CompareOp::Ge => (true, 0),
                    CompareOp::Gt => (true, 1),
                    CompareOp::Le => (false, 0),
                    CompareOp::Lt => (false, 1),
                    CompareOp::Eq | CompareOp::Ne => return false,
                };
                let constant = self.function().int(range.bound);
                let parts = if constant.is_some() { 1 } else { 2 };
                let has = |id: ExprId, negative: bool| {
                    sum.terms.iter().any(|&(term, minus)| minus == negative && self.alike(term, id))
                };
                let least = match constant {
                    Some(constant) if is_above => constant.saturating_add(distance),
                    Some(constant) => constant.saturating_neg().saturating_add(distance),
                    None => distance,
                };
                sum.terms.len() == parts
                    && has(range.value, !is_above)
                    && (constant.is_some() || has(range.bound, is_above))
                    && least.saturating_add(sum.constant) >= 0
            })
    }

    /// `true` if a value grows from thread to thread.
    pub(super) fn steps(&self, value: &Between) -> bool {
        value.low.terms.iter().any(|&(id, _)| self.form(id) == Form::Step)
    }

    /// `true` if a value depends on the position of a thread or block.
    pub(super) fn is_position(&self, value: &Between) -> bool {
        let is = |kind: &ExprKind| {
            use SpecialRegister::{BlockIdx, OfRow, ThreadIdx};
            matches!(kind, ExprKind::Special(ThreadIdx(_) | BlockIdx(_) | OfRow(_)))
        };
        value.low.terms.iter().any(|&(id, _)| any_expr(self.function(), self.named(id), &is))
    }

    /// `true` if two expressions are the same after rematerializable locals at their roots are replaced by their
    /// values.
    pub(super) fn alike(&self, a: ExprId, b: ExprId) -> bool {
        self.same(self.named(a), self.named(b))
    }

    /// The value of a rematerializable local; other expressions as they are.
    pub(super) fn named(&self, root: ExprId) -> ExprId {
        self.peeler.fixed.resolve(self.function(), root)
    }

    /// `true` if two expressions of rematerializable and uniform values are the same computation.
    pub(super) fn same(&self, a: ExprId, b: ExprId) -> bool {
        same(self.function(), a, b)
    }

    // --- The guard ---

    /// The guard for which all sums are exact, and no assumed sum is negative.
    pub(super) fn guard(&mut self, nonneg: &[Sum]) -> Option<Guard> {
        let mut guard = Guard::default();
        for id in std::mem::take(&mut self.parts) {
            if legal!("steady_state.exact-sums", self.is_small(id)) {
                continue;
            }
            for (op, bound) in [(CompareOp::Gt, -MAX_TERM), (CompareOp::Lt, MAX_TERM)] {
                let bound = self.push(ExprKind::Const(Const::Int(bound)), Type::I64, id);
                let value = self.copy(id);
                guard.rows.push((self.push(ExprKind::Compare(op, value, bound), Type::BOOL, id), false));
            }
        }
        for sum in nonneg {
            let at = sum.terms.first()?.0;
            let step = sum.terms.iter().position(|&(id, _)| self.form(id) == Form::Step);
            let mut rest = sum.clone();
            let step = step.map(|index| rest.terms.remove(index));
            let zero = self.push(ExprKind::Const(Const::Int(0)), Type::I64, at);
            match step {
                // `value + rest >= 0`, or `rest - value >= 0`.
                Some((value, minus)) => {
                    let bound = self.built(&if minus { rest } else { rest.negated() }, at);
                    let op = if minus { CompareOp::Le } else { CompareOp::Ge };
                    guard.ranges.push(Range { value: self.copy(value), op, bound, times: 1, plus: 0, wraps: false });
                }
                None => {
                    // The term that grows from row to row is the left side of the comparison, so that it can become a
                    // bound of the loop over rows.
                    let step = rest.terms.iter().position(|&(id, _)| self.form_along(1, id) == Form::Step);
                    let (op, value, bound) = match step.map(|index| rest.terms.remove(index)) {
                        Some((value, true)) => (CompareOp::Le, self.copy(value), self.built(&rest, at)),
                        Some((value, false)) => (CompareOp::Ge, self.copy(value), self.built(&rest.negated(), at)),
                        None => (CompareOp::Ge, self.built(&rest, at), zero),
                    };
                    guard.rows.push((self.push(ExprKind::Compare(op, value, bound), Type::BOOL, at), false));
                }
            }
        }
        Some(guard)
    }

    /// `true` if a term is known to be small enough for exact sums, so that the guard need not test it.
    fn is_small(&self, id: ExprId) -> bool {
        let forms = Forms {
            function: self.peeler.function,
            fixed: self.peeler.fixed,
            shared: &|_| false,
            sole: &|_| None,
            axis: 0,
        };
        forms.is_small(id)
    }

    /// The expression that computes a sum.
    fn built(&mut self, sum: &Sum, at: ExprId) -> ExprId {
        let mut whole = self.push(ExprKind::Const(Const::Int(sum.constant)), Type::I64, at);
        for &(id, minus) in &sum.terms {
            let part = self.copy(id);
            let op = if minus { BinaryOp::Sub } else { BinaryOp::Add };
            whole = self.push(ExprKind::Binary(op, whole, part), Type::I64, at);
        }
        whole
    }
}
