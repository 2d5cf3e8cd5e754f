//! The interior of a row: the threads for which no border is near.
//!
//! Kernels that look at neighbors clamp indices (`min(max(x + dx, 0), w - 1)`), test each of them (`if 0 <= xx < w`), or
//! wrap them around (`(x + 1) % w`). None of that is an index that grows by one from thread to thread, so LLVM gathers
//! element by element. But it does nothing for all threads but those beside a border. So a row is run in up to three
//! parts: the threads near the borders run the body as it is, and those between them a copy without what does nothing
//! there. Which threads these are is computed before the row, as a [`Guard`]; a wrong guess costs a row that has no
//! interior, and never a result.
//!
//! A walk over the statements knows of integers between which two sums they are, each of values that a row can be asked
//! for before it starts: `x + dx` is at least `x - 1` and at most `x + 1`. What it takes for granted of the interior is
//! that a sum is not negative. Sums are exact: that no part of one is so large that it may wrap is part of the guard.

use std::collections::BTreeMap;

use super::{
    forms::{Form, Forms},
    guards::Peeler,
    shape::{Guard, Interior, Range, Segment},
    sums::{Between, Known, LARGEST_CONSTANT, Sum},
    walk::counter,
};
use crate::{
    analysis::any_expr,
    ir::{
        Arith, BinaryOp, Block, Class, CompareOp, Const, Expr, ExprId, ExprKind, Function, Leaf, LocalId,
        SpecialRegister, Stmt, StmtKind, Type, UnaryOp, for_each_expr_of_stmt, for_each_stmt,
    },
};

/// Expressions of the largest body that has a copy.
const MOST_EXPRS: usize = 1500;

/// Most conditions of an interior; each is computed for every row.
const MOST_CONDITIONS: usize = 16;

/// Parts of sums are smaller than this, so that sums are exact in 64 bits.
const LARGEST_TERM: i128 = 1 << 59;

/// A bound that is no larger is where an array begins, not where it ends.
const NEAR_ZERO: i128 = 64;

/// Gives a segment its interior, if it has one that is worth a copy of the body. Guards are off already.
pub(crate) fn find(peeler: &mut Peeler<'_>, segment: &mut Segment) {
    let (mut exprs, mut simple) = (0, true);
    for_each_stmt(&segment.body, &mut |stmt| {
        // Who prints, waits or asks who is here is told apart by where that stands.
        simple &= !matches!(stmt.kind, StmtKind::Op { .. });
        for_each_expr_of_stmt(peeler.function, &stmt.kind, &mut |_| exprs += 1);
    });
    if !simple || exprs > MOST_EXPRS {
        return;
    }
    let before = peeler.function.exprs.len();
    let ranges =
        segment.guard.iter().flat_map(|guard| &guard.ranges).filter(|range| range.times == 1).copied().collect();
    let mut walk = Walk { peeler, ranges, known: BTreeMap::new(), nonneg: Vec::new(), parts: Vec::new(), gains: 0 };
    let body = walk.block(&segment.body);
    let (gains, nonneg) = (walk.gains, std::mem::take(&mut walk.nonneg));
    let guard = if gains == 0 { None } else { walk.guard(&nonneg) };
    let Some(mut guard) = guard else {
        peeler.function.exprs.truncate(before);
        return;
    };
    if guard.is_empty() {
        // The segment's own guard says it all.
        segment.body = body;
        return;
    }
    peeler.complete(&mut guard);
    segment.interior = Some(Interior { guard, body });
}

struct Walk<'a, 'b> {
    peeler: &'a mut Peeler<'b>,
    /// What the segment's guard compares.
    ranges: Vec<Range>,
    /// Of locals, at the position.
    known: BTreeMap<LocalId, Known>,
    /// What is taken for granted: sums that are not negative.
    nonneg: Vec<Sum>,
    /// All parts of the sums between which integers were taken to be: none may be so large that a sum wraps.
    parts: Vec<ExprId>,
    /// How much of the body does nothing in the interior.
    gains: usize,
}

impl Walk<'_, '_> {
    fn function(&self) -> &Function {
        self.peeler.function
    }

    fn form(&self, id: ExprId) -> Form {
        let forms = Forms {
            function: self.peeler.function,
            fixed: self.peeler.fixed,
            shared: &|local| !self.peeler.uniformity.local_varies(local),
            sole: &|_| None,
            axis: 0,
        };
        forms.form(id)
    }

    fn push(&mut self, kind: ExprKind, ty: Type, at: ExprId) -> ExprId {
        let span = self.function().exprs[at].span;
        self.peeler.function.exprs.push(Expr { kind, ty, span })
    }

    // --- Statements ---------------------------------------------------------------------------------------------------

    fn block(&mut self, block: &[Stmt]) -> Block {
        let mut done = Block::new();
        for stmt in block {
            let span = stmt.span;
            let kind = match &stmt.kind {
                StmtKind::Assign(local, value) => {
                    let (copy, known) = self.value(*value);
                    self.assign(*local, known, copy);
                    StmtKind::Assign(*local, copy)
                }
                StmtKind::Store { pointer, value, align } => {
                    StmtKind::Store { pointer: self.value(*pointer).0, value: self.value(*value).0, align: *align }
                }
                StmtKind::Call { results, func, args } => {
                    let args = args.iter().map(|&arg| self.value(arg).0).collect();
                    self.known.retain(|local, _| !results.contains(local));
                    StmtKind::Call { results: results.clone(), func: *func, args }
                }
                StmtKind::If { cond, then, otherwise } => {
                    let (cond, known) = self.value(*cond);
                    if let Some(Known::Bool(holds)) = known {
                        done.extend(self.block(if holds { then } else { otherwise }));
                        continue;
                    }
                    let before = self.known.clone();
                    let first = self.block(then);
                    self.known.clone_from(&before);
                    let second = self.block(otherwise);
                    self.known = before;
                    self.forget(then);
                    self.forget(otherwise);
                    StmtKind::If { cond, then: first, otherwise: second }
                }
                StmtKind::Loop { body, step } => self.turns(body, step),
                other @ (StmtKind::Op { .. } | StmtKind::Break | StmtKind::Continue | StmtKind::Return(_)) => {
                    other.clone()
                }
            };
            done.push(Stmt { kind, span });
        }
        done
    }

    fn assign(&mut self, local: LocalId, known: Option<Known>, value: ExprId) {
        let Some(mut known) = known else {
            self.known.remove(&local);
            return;
        };
        // A fixed local is a shorter name for the sum that it is.
        if let Known::Integer(Between { low, .. }) = &known
            && low.terms.len() > 1
            && self.peeler.fixed.value(local).is_some()
        {
            let read = self.push(ExprKind::Local(local), Type::I64, value);
            if self.form(read) != Form::Other {
                known = Known::Integer(Between::one(Sum::term(read)));
            }
        }
        self.known.insert(local, known);
    }

    /// Forgets what some statements assign.
    fn forget(&mut self, block: &[Stmt]) {
        for_each_stmt(block, &mut |stmt| {
            let assigned = stmt.kind.assigned();
            self.known.retain(|local, _| !assigned.contains(local));
        });
    }

    fn turns(&mut self, body: &[Stmt], step: &[Stmt]) -> StmtKind {
        let first =
            counter(self.function(), body, step).map(|(local, limit)| (local, limit, self.known.get(&local).cloned()));
        self.forget(body);
        self.forget(step);
        let outside = self.known.clone();
        let mut done = Block::new();
        let mut rest = body;
        if let Some((local, limit, first)) = first {
            // The test stands as it is: it ends the loop.
            let limit = self.value(limit).1;
            done.extend(self.copied(&body[..1]));
            rest = &body[1..];
            if let (Some(Known::Integer(first)), Some(Known::Integer(limit))) = (first, limit)
                && let Some(last) = limit.high.plus_constant(-1)
            {
                self.known.insert(local, Known::Integer(Between { low: first.low, high: last }));
            }
        }
        done.extend(self.block(rest));
        self.known = outside;
        StmtKind::Loop { body: done, step: self.copied(step) }
    }

    /// Statements as they are, of expressions of their own.
    fn copied(&mut self, block: &[Stmt]) -> Block {
        let mut done = Block::new();
        for stmt in block {
            let kind = match &stmt.kind {
                StmtKind::Assign(local, value) => StmtKind::Assign(*local, self.copy(*value)),
                StmtKind::If { cond, then, otherwise } => {
                    StmtKind::If { cond: self.copy(*cond), then: self.copied(then), otherwise: self.copied(otherwise) }
                }
                StmtKind::Store { pointer, value, align } => {
                    StmtKind::Store { pointer: self.copy(*pointer), value: self.copy(*value), align: *align }
                }
                StmtKind::Loop { body, step } => StmtKind::Loop { body: self.copied(body), step: self.copied(step) },
                StmtKind::Call { results, func, args } => StmtKind::Call {
                    results: results.clone(),
                    func: *func,
                    args: args.iter().map(|&arg| self.copy(arg)).collect(),
                },
                other @ (StmtKind::Op { .. } | StmtKind::Break | StmtKind::Continue | StmtKind::Return(_)) => {
                    other.clone()
                }
            };
            done.push(Stmt { kind, span: stmt.span });
        }
        done
    }

    // --- Expressions --------------------------------------------------------------------------------------------------

    fn copy(&mut self, id: ExprId) -> ExprId {
        let Expr { kind, ty, .. } = self.function().exprs[id].clone();
        let kind = kind.map_operands(&mut |operand| self.copy(operand));
        self.push(kind, ty, id)
    }

    /// A copy of an expression for the interior, and what is known of its value there.
    fn value(&mut self, id: ExprId) -> (ExprId, Option<Known>) {
        let Expr { kind, ty, .. } = self.function().exprs[id].clone();
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

    /// What is known of an operator's result, and which operand it is, if it is one.
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
            Class::Leaf(Leaf::Const(Const::Int(value))) if is_integer && value.abs() <= LARGEST_CONSTANT => {
                sum(Some(Between::constant(value)))
            }
            Class::Leaf(Leaf::Const(Const::Bool(is))) => (Some(Known::Bool(is)), None),
            Class::Leaf(Leaf::Local(local)) => match (self.known.get(&local), self.peeler.fixed.value(local)) {
                (Some(known), _) => (Some(known.clone()), None),
                // What is computed before the body starts: a clamp of it does nothing either.
                (None, Some(value)) if self.form(id) == Form::Other => match self.value(value) {
                    (copy, Some(known)) => (Some(known), Some(copy)),
                    (_, None) => nothing,
                },
                (None, Some(_) | None) => nothing,
            },
            Class::Arith(Arith::Unary(UnaryOp::Neg, _)) => sum(integer(0).map(Between::negated)),
            Class::Arith(Arith::Unary(UnaryOp::Not, _)) => (truth(0).map(|is| Known::Bool(!is)), None),
            Class::Arith(Arith::Binary(op @ (BinaryOp::And | BinaryOp::Or), ..)) if !is_integer => {
                // `True` decides an `or`, `False` an `and`; the other one leaves the other side.
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
                // An index that runs around is tested against the same size; one that is taken apart into a row and a
                // column is not.
                let around = self.ranges.iter().any(|range| self.alike(range.bound, size));
                if !around || !self.steps(value) || self.steps(by) {
                    return nothing;
                }
                if !(self.take(value, by, false, 1) && self.take(value, &Between::constant(0), true, 0)) {
                    return nothing;
                }
                self.gains += 1;
                (Some(Known::Integer(value.clone())), Some(copies[0]))
            }
            Class::Arith(Arith::Compare(op, ..)) => {
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
                if !self.steps(index) || !self.take(index, &Between::constant(0), true, 0) {
                    return nothing;
                }
                self.gains += 1;
                (Some(Known::Integer(index.clone())), Some(copies[0]))
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => nothing,
        }
    }

    /// The outcome of a comparison in the interior: beyond what is near zero, and below what is not.
    fn comparison(&mut self, op: CompareOp, a: &Between, b: &Between) -> Option<bool> {
        let steps = (self.steps(a), self.steps(b));
        let (value, op, bound) = match steps {
            (true, true) => return None,
            (true, false) => (a, op, b),
            (false, true) => (b, super::forms::mirrored(op), a),
            (false, false) => match (self.is_position(a), self.is_position(b)) {
                (true, false) => (a, op, b),
                (false, true) => (b, super::forms::mirrored(op), a),
                (true, true) | (false, false) => return None,
            },
        };
        let above = bound.high.terms.is_empty() && bound.high.constant <= NEAR_ZERO;
        let (holds, apart) = match (op, above) {
            (CompareOp::Gt, true) | (CompareOp::Lt, false) => (true, 1),
            (CompareOp::Ge, true) | (CompareOp::Le, false) => (true, 0),
            (CompareOp::Lt, true) | (CompareOp::Gt, false) => (false, 0),
            (CompareOp::Le, true) | (CompareOp::Ge, false) => (false, 1),
            (CompareOp::Eq, _) => (false, 1),
            (CompareOp::Ne, _) => (true, 1),
        };
        if !self.take(value, bound, above, apart) {
            return None;
        }
        self.gains += usize::from(steps != (false, false));
        Some(holds)
    }

    /// Takes for granted that a value is so far above a bound, or below it; `false` if that is too much to ask.
    fn take(&mut self, value: &Between, bound: &Between, above: bool, apart: i128) -> bool {
        let difference =
            if above { value.low.plus(&bound.high.negated()) } else { bound.low.plus(&value.high.negated()) };
        let Some(sum) = difference.and_then(|sum| sum.plus_constant(-apart)) else { return false };
        if sum.terms.iter().filter(|&&(id, _)| self.form(id) == Form::Step).count() > 1 {
            return false;
        }
        if sum.terms.is_empty() {
            return sum.constant >= 0;
        }
        if self.is_asked_for(&sum, value, bound) {
            return true;
        }
        // Of both ends: what lies between them is exact where they are.
        let ends = [&value.low, &value.high, &bound.low, &bound.high];
        for &(id, _) in ends.into_iter().flat_map(|end| &end.terms) {
            if !self.parts.iter().any(|&known| self.same(known, id)) {
                self.parts.push(id);
            }
        }
        let alike = self.nonneg.iter().position(|known| {
            known.terms.len() == sum.terms.len()
                && known.terms.iter().zip(&sum.terms).all(|(a, b)| a.1 == b.1 && self.same(a.0, b.0))
        });
        if let Some(known) = alike.and_then(|at| self.nonneg.get_mut(at)) {
            known.constant = known.constant.min(sum.constant);
            return true;
        }
        let few = self.nonneg.len() < MOST_CONDITIONS;
        if few {
            self.nonneg.push(sum);
        }
        few
    }

    /// Whether the segment's guard lets only threads through for which a sum is not negative. The two that it is the
    /// difference of are plain values, so that none of them is the sum of others, which may wrap.
    fn is_asked_for(&self, sum: &Sum, value: &Between, bound: &Between) -> bool {
        let plain = |between: &Between| match between.low.terms.as_slice() {
            [] => between.low.constant == between.high.constant && between.high.terms.is_empty(),
            [(_, minus)] => !minus && between.low.constant == 0 && between.high.is(&between.low),
            [_, ..] => false,
        };
        plain(value)
            && plain(bound)
            && self.ranges.iter().any(|range| {
                // `value - bound >= apart`, or `bound - value >= apart`.
                let (is_above, apart) = match range.op {
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
                    Some(constant) if is_above => constant.saturating_add(apart),
                    Some(constant) => constant.saturating_neg().saturating_add(apart),
                    None => apart,
                };
                sum.terms.len() == parts
                    && has(range.value, !is_above)
                    && (constant.is_some() || has(range.bound, is_above))
                    && least.saturating_add(sum.constant) >= 0
            })
    }

    /// Whether a value grows from thread to thread.
    fn steps(&self, value: &Between) -> bool {
        value.low.terms.iter().any(|&(id, _)| self.form(id) == Form::Step)
    }

    /// Whether a value has to do with where a thread is.
    fn is_position(&self, value: &Between) -> bool {
        let is = |kind: &ExprKind| {
            use SpecialRegister::{BlockIdx, OfRow, ThreadIdx};
            matches!(kind, ExprKind::Special(ThreadIdx(_) | BlockIdx(_) | OfRow(_)))
        };
        value.low.terms.iter().any(|&(id, _)| any_expr(self.function(), self.named(id), &is))
    }

    /// Whether two expressions are the same one but for names.
    fn alike(&self, a: ExprId, b: ExprId) -> bool {
        self.same(self.named(a), self.named(b))
    }

    /// What a name is short for.
    fn named(&self, mut root: ExprId) -> ExprId {
        while let Some(value) = self.function().local(root).and_then(|local| self.peeler.fixed.value(local)) {
            root = value;
        }
        root
    }

    /// Whether two expressions of fixed and shared values are the same one.
    fn same(&self, a: ExprId, b: ExprId) -> bool {
        let (a, b) = (&self.function().exprs[a], &self.function().exprs[b]);
        let operands = |kind: &ExprKind| {
            let mut all = Vec::new();
            let leaf = kind.clone().map_operands(&mut |id| {
                all.push(id);
                ExprId::new(0)
            });
            (leaf, all)
        };
        let ((a_kind, a_operands), (b_kind, b_operands)) = (operands(&a.kind), operands(&b.kind));
        a.ty == b.ty && a_kind == b_kind && a_operands.iter().zip(&b_operands).all(|(&a, &b)| self.same(a, b))
    }

    // --- The guard ----------------------------------------------------------------------------------------------------

    /// The threads for which all sums are exact, and none is negative.
    fn guard(&mut self, nonneg: &[Sum]) -> Option<Guard> {
        let mut guard = Guard::default();
        for id in std::mem::take(&mut self.parts) {
            if self.is_small(id) {
                continue;
            }
            for (op, bound) in [(CompareOp::Gt, -LARGEST_TERM), (CompareOp::Lt, LARGEST_TERM)] {
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
                    guard.ranges.push(Range { value: self.copy(value), op, bound, times: 1, wraps: false });
                }
                None => {
                    let value = self.built(&rest, at);
                    guard.rows.push((self.push(ExprKind::Compare(CompareOp::Ge, value, zero), Type::BOOL, at), false));
                }
            }
        }
        Some(guard)
    }

    /// Whether a part of a sum is known to be smaller than the largest.
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
