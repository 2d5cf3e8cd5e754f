//! Stride analysis: how the value of an expression changes from thread to thread along a row, and which conjuncts of a
//! condition are uniform in a row or bound it.

use std::cell::Cell;

use weft_artifact::{EXTENT_BITS, Scalar, SlotField, SlotSource};

use crate::{
    analysis::Rematerializable,
    backend::host::plan::plan_ir::{MAX_ROW, MAX_THREADS, Range, SplitCondition},
    ir::{
        Arith, BinaryOp, Class, CompareOp, Const, ExprId, ExprKind, Function, Leaf, LocalId, SpecialRegister, Type,
        UnaryOp,
    },
};

/// The stride of a value along `threadIdx.x`: a lattice of three points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Uniform: stride 0.
    Same,
    /// Unit stride.
    Step,
    /// Any other stride, or unknown.
    Other,
}

/// The number of expressions that one query visits. Rematerializable locals are replaced by their values, which can be
/// large.
const MAX_VISITED: u32 = 512;

/// The maximum bits of a value to which a thread index can be added without overflow.
const MAX_BITS: u32 = u64::BITS - 2;

/// The maximum bits of a value of which a few can be added without overflow.
const MAX_SMALL_BITS: u32 = u64::BITS - 6;

/// The state of the analysis.
pub(crate) struct Forms<'a> {
    /// The kernel.
    pub function: &'a Function,
    /// Its rematerializable locals.
    pub fixed: &'a Rematerializable,
    /// Whether a local is uniform at the queried position.
    pub shared: &'a dyn Fn(LocalId) -> bool,
    /// The value of a local that is not rematerializable, if it has only one at the queried position.
    pub sole: &'a dyn Fn(LocalId) -> Option<ExprId>,
    /// The axis that a row extends along.
    pub axis: u8,
}

impl Forms<'_> {
    /// Splits a condition, or its negation, into a guard of the row and a residual for each thread.
    pub(crate) fn split(&self, cond: ExprId, negated: bool, parts: &mut SplitCondition) {
        self.sort(cond, negated, parts);
        let mut left = std::mem::take(&mut parts.residual);
        left.retain(|&(cond, negated)| match self.remainder(cond, negated, &parts.guard.ranges) {
            Some(range) => {
                parts.guard.ranges.push(range);
                false
            }
            None => true,
        });
        parts.residual = left;
    }

    fn sort(&self, cond: ExprId, negated: bool, parts: &mut SplitCondition) {
        let constant = |id: ExprId, value: bool| matches!(self.function.exprs[id].kind, ExprKind::Const(Const::Bool(is)) if is == value);
        match self.function.class(cond) {
            Class::Arith(Arith::Unary(UnaryOp::Not, a)) => return self.sort(a, !negated, parts),
            Class::Arith(Arith::Binary(BinaryOp::And, a, b)) if !negated => {
                self.sort(a, false, parts);
                return self.sort(b, false, parts);
            }
            Class::Arith(Arith::Binary(BinaryOp::Or, a, b)) if negated => {
                self.sort(a, true, parts);
                return self.sort(b, true, parts);
            }
            // The forms of `a and b` and `a or b`.
            Class::Arith(Arith::Select(a, b, no)) if !negated && constant(no, false) => {
                self.sort(a, false, parts);
                return self.sort(b, false, parts);
            }
            Class::Arith(Arith::Select(a, yes, b)) if negated && constant(yes, true) => {
                self.sort(a, true, parts);
                return self.sort(b, true, parts);
            }
            Class::Leaf(Leaf::Local(local)) if !(self.shared)(local) => {
                if let Some(value) = self.fixed.value(local) {
                    return self.sort(value, negated, parts);
                }
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => {}
        }
        if self.form(cond) == Form::Same {
            parts.guard.rows.push((cond, negated));
        } else {
            let ranges = self.ranges(cond, negated);
            if ranges.is_empty() {
                parts.residual.push((cond, negated));
            }
            parts.guard.ranges.extend(ranges);
        }
    }

    /// The ranges whose conjunction is equivalent to a comparison. Empty if it is not an interval of the row.
    fn ranges(&self, cond: ExprId, negated: bool) -> Vec<Range> {
        let ExprKind::Compare(op, a, b) = self.function.exprs[cond].kind else { return Vec::new() };
        if !matches!(self.function.exprs[a].ty, Type::Scalar(Scalar::I32 | Scalar::I64)) {
            return Vec::new();
        }
        let op = if negated { inverse(op) } else { op };
        let (value, op, bound) = match (self.form(a), self.form(b)) {
            (Form::Step, Form::Same) => (a, op, b),
            (Form::Same, Form::Step) => (b, mirrored(op), a),
            (Form::Other, Form::Same) => return self.quotient(a, op, b).unwrap_or_default(),
            (Form::Same, Form::Other) => return self.quotient(b, mirrored(op), a).unwrap_or_default(),
            (Form::Same, Form::Same) | (Form::Step | Form::Other, _) => return Vec::new(),
        };
        let wraps = self.wraps(value);
        if op == CompareOp::Ne { Vec::new() } else { vec![Range { value, op, bound, times: 1, plus: 0, wraps }] }
    }

    /// The ranges of a comparison of a quotient: `cuda.grid(1) // 32 < n` is `cuda.grid(1) < n * 32`, and
    /// `tid // 32 == w` is `tid >= w * 32 and tid <= w * 32 + 31`.
    fn quotient(&self, mut value: ExprId, op: CompareOp, bound: ExprId) -> Option<Vec<Range>> {
        value = self.known(value);
        let ExprKind::Binary(divide, step, by) = self.function.exprs[value].kind else { return None };
        let by = i64::try_from(self.function.int(by)?).ok()?;
        let times = if matches!(divide, BinaryOp::FloorDiv | BinaryOp::DivNonneg) && by > 0 {
            by
        } else if divide == BinaryOp::Shr && (0..i64::from(MAX_SMALL_BITS)).contains(&by) {
            1 << by
        } else {
            return None;
        };
        let wide = self.function.exprs[step].ty == Type::I64 && self.form(step) == Form::Step;
        let fits = |id: ExprId, more: u32| self.bits(id, &Cell::new(MAX_VISITED)) + more <= MAX_BITS;
        let exact = fits(step, 0) && fits(bound, i64::BITS - times.leading_zeros());
        let first = |op| Range { value: step, op, bound, times, plus: 0, wraps: false };
        let last = |op| Range { plus: times - 1, ..first(op) };
        let ranges = match op {
            CompareOp::Lt | CompareOp::Ge => vec![first(op)],
            CompareOp::Le | CompareOp::Gt => vec![last(op)],
            CompareOp::Eq => vec![first(CompareOp::Ge), last(CompareOp::Le)],
            CompareOp::Ne => return None,
        };
        (wide && exact).then_some(ranges)
    }

    /// The range of a comparison of a remainder whose quotient is zero: `tid // 32 == 0 and tid % 32 < n` is
    /// `tid // 32 == 0 and tid < n`.
    fn remainder(&self, cond: ExprId, negated: bool, ranges: &[Range]) -> Option<Range> {
        let ExprKind::Compare(op, a, b) = self.function.exprs[cond].kind else { return None };
        let op = if negated { inverse(op) } else { op };
        let (rest, op, bound) = match (self.form(a), self.form(b)) {
            (Form::Other, Form::Same) => (a, op, b),
            (Form::Same, Form::Other) => (b, mirrored(op), a),
            _ => return None,
        };
        let ExprKind::Binary(divide, value, by) = self.function.exprs[self.known(rest)].kind else { return None };
        let by = i64::try_from(self.function.int(by)?).ok()?;
        let by = if matches!(divide, BinaryOp::FloorMod | BinaryOp::ModNonneg) {
            by
        } else if divide == BinaryOp::And {
            by.checked_add(1).filter(|by| by & (by - 1) == 0)?
        } else {
            return None;
        };
        let wide = [value, bound].iter().all(|&id| self.function.exprs[id].ty == Type::I64);
        let asked = |op, plus| {
            ranges.iter().any(|range| {
                let is = (range.op, range.times, range.plus) == (op, by, plus);
                is && self.function.int(range.bound) == Some(0) && self.is_x(range.value)
            })
        };
        let first = asked(CompareOp::Ge, 0) && asked(CompareOp::Le, by - 1);
        let range = Range { value, op, bound, times: 1, plus: 0, wraps: false };
        (wide && by > 1 && first && self.is_x(value) && op != CompareOp::Ne).then_some(range)
    }

    /// The value of a rematerializable local; other expressions are returned unchanged.
    fn known(&self, mut id: ExprId) -> ExprId {
        while let Some(value) = self.function.local(id).and_then(|local| self.fixed.value(local)) {
            id = value;
        }
        id
    }

    /// Whether a value is `threadIdx.x`.
    fn is_x(&self, id: ExprId) -> bool {
        let id = self.known(id);
        if let ExprKind::Convert(a) = self.function.exprs[id].kind {
            let widens = self.function.exprs[id].ty == Type::I64 && self.function.exprs[a].ty == Type::I32;
            return widens && self.is_x(a);
        }
        self.axis == 0 && self.function.exprs[id].kind == ExprKind::Special(SpecialRegister::ThreadIdx(0))
    }

    /// Whether a value with unit stride may overflow within a row.
    pub(crate) fn wraps(&self, value: ExprId) -> bool {
        self.bits(value, &Cell::new(MAX_VISITED)) > MAX_BITS
    }

    /// Whether an integer is so small that sums of a few such integers are exact in 64 bits.
    pub(crate) fn is_small(&self, root: ExprId) -> bool {
        self.bits(root, &Cell::new(MAX_VISITED)) <= MAX_SMALL_BITS
    }

    /// A number of bits such that the integer's absolute value is less than two to the power of it.
    fn bits(&self, root: ExprId, effort: &Cell<u32>) -> u32 {
        let expr = &self.function.exprs[root];
        let unknown = match expr.ty {
            Type::Scalar(scalar) => 8 * scalar.size_bytes() as u32,
            Type::Ptr(..) => u64::BITS,
        };
        let Some(left) = effort.get().checked_sub(1) else { return unknown };
        effort.set(left);
        let known = match expr.kind.class() {
            Class::Leaf(Leaf::Const(Const::Int(value))) => u128::BITS - value.unsigned_abs().leading_zeros(),
            Class::Leaf(Leaf::Local(local)) => match self.fixed.value(local) {
                Some(value) => self.bits(value, effort),
                None if self.is_extent(local) => EXTENT_BITS,
                None => unknown,
            },
            Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(_) | SpecialRegister::BlockDim(_))) => {
                MAX_ROW.ilog2() + 1
            }
            Class::Leaf(Leaf::Special(SpecialRegister::OfRow(_))) => i32::BITS - 1 + MAX_THREADS.ilog2(),
            Class::Leaf(Leaf::Special(_)) => i32::BITS - 1,
            Class::Arith(Arith::Convert(a)) if self.function.exprs[a].ty.scalar().is_some_and(Scalar::is_int) => {
                self.bits(a, effort)
            }
            Class::Arith(Arith::Binary(BinaryOp::Add | BinaryOp::Sub, a, b)) => {
                self.bits(a, effort).max(self.bits(b, effort)) + 1
            }
            Class::Arith(Arith::Binary(BinaryOp::Mul, a, b)) => self.bits(a, effort) + self.bits(b, effort),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => unknown,
        };
        known.min(unknown)
    }

    /// Whether a local is an extent of an argument.
    fn is_extent(&self, local: LocalId) -> bool {
        let slots = self.function.params.iter().zip(&self.function.slots);
        slots.into_iter().any(|(&param, slot)| {
            param == local && matches!(slot, SlotSource::Argument { field: SlotField::Shape(_), .. })
        })
    }

    /// Whether a value has the same stride, which may be zero, between all neighboring threads of a row. A conservative
    /// test.
    pub(crate) fn has_uniform_stride(&self, root: ExprId) -> bool {
        let is_same = |id: ExprId| self.form(id) == Form::Same;
        let expr = &self.function.exprs[root];
        match expr.kind.class() {
            Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(_))) => true,
            Class::Leaf(Leaf::Local(local)) if !(self.shared)(local) => {
                self.fixed.value(local).is_some_and(|value| self.has_uniform_stride(value))
            }
            // 32-bit sums may wrap around before they are widened, but a special register does not.
            Class::Arith(Arith::Convert(a)) if expr.ty == Type::I64 && self.function.exprs[a].ty == Type::I32 => {
                is_same(a)
                    || matches!(self.function.exprs[self.known(a)].kind, ExprKind::Special(_))
                        && self.has_uniform_stride(a)
            }
            Class::Arith(Arith::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::AddExact, a, b))
                if expr.ty == Type::I64 =>
            {
                self.has_uniform_stride(a) && self.has_uniform_stride(b)
            }
            Class::Arith(Arith::Binary(BinaryOp::Mul | BinaryOp::MulExact, a, b)) if expr.ty == Type::I64 => {
                (self.has_uniform_stride(a) && is_same(b)) || (is_same(a) && self.has_uniform_stride(b))
            }
            Class::Address { base, by, .. } => self.has_uniform_stride(base) && self.has_uniform_stride(by),
            Class::Leaf(_) | Class::Arith(_) | Class::Load(_) => is_same(root),
        }
    }

    /// The stride of an expression along a row.
    pub(crate) fn form(&self, root: ExprId) -> Form {
        self.form_within(root, &Cell::new(MAX_VISITED))
    }

    fn form_within(&self, root: ExprId, effort: &Cell<u32>) -> Form {
        // A local may depend on its own value in an earlier iteration.
        let Some(left) = effort.get().checked_sub(1) else { return Form::Other };
        effort.set(left);
        let expr = &self.function.exprs[root];
        let same = |is: bool| if is { Form::Same } else { Form::Other };
        let all_same = |ids: &[ExprId]| same(ids.iter().all(|&id| self.form_within(id, effort) == Form::Same));
        match expr.kind.class() {
            Class::Leaf(Leaf::Const(_)) => Form::Same,
            Class::Leaf(Leaf::Base(base)) => same(base.is_of_block()),
            Class::Leaf(Leaf::Local(local)) if (self.shared)(local) => Form::Same,
            Class::Leaf(Leaf::Local(local)) => {
                let value = self.fixed.value(local).or_else(|| (self.sole)(local));
                value.map_or(Form::Other, |value| self.form_within(value, effort))
            }
            Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(axis))) if axis == self.axis => Form::Step,
            Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(_))) => Form::Same,
            Class::Leaf(Leaf::Special(register)) => same(register.is_of_block()),
            // Only 64-bit sums preserve a unit stride: a 32-bit index may wrap around within a row.
            Class::Arith(Arith::Convert(a)) if expr.ty == Type::I64 && self.function.exprs[a].ty == Type::I32 => {
                self.form_within(a, effort)
            }
            Class::Arith(Arith::Binary(BinaryOp::Add, a, b)) if expr.ty == Type::I64 => {
                match (self.form_within(a, effort), self.form_within(b, effort)) {
                    (Form::Same, Form::Same) => Form::Same,
                    (Form::Step, Form::Same) | (Form::Same, Form::Step) => Form::Step,
                    _ => Form::Other,
                }
            }
            // The exception: 32-bit sums that are marked as exact.
            Class::Arith(Arith::Binary(BinaryOp::AddExact, a, b)) if expr.ty == Type::I32 => {
                match (self.form_within(a, effort), self.form_within(b, effort)) {
                    (Form::Same, Form::Same) => Form::Same,
                    (Form::Step, Form::Same) | (Form::Same, Form::Step) => Form::Step,
                    _ => Form::Other,
                }
            }
            Class::Arith(Arith::Binary(BinaryOp::Sub, a, b)) if expr.ty == Type::I64 => {
                match (self.form_within(a, effort), self.form_within(b, effort)) {
                    (form, Form::Same) => form,
                    _ => Form::Other,
                }
            }
            Class::Arith(arith) => all_same(&arith.operands()),
            Class::Address { base, by, .. } => all_same(&[base, by]),
            Class::Load(_) => Form::Other,
        }
    }
}

fn inverse(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Eq => CompareOp::Ne,
        CompareOp::Ne => CompareOp::Eq,
        CompareOp::Lt => CompareOp::Ge,
        CompareOp::Le => CompareOp::Gt,
        CompareOp::Gt => CompareOp::Le,
        CompareOp::Ge => CompareOp::Lt,
    }
}

/// The comparison with its operands swapped.
pub(crate) fn mirrored(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Eq | CompareOp::Ne => op,
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::Le => CompareOp::Ge,
        CompareOp::Gt => CompareOp::Lt,
        CompareOp::Ge => CompareOp::Le,
    }
}
