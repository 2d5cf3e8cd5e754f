//! How the value of an expression changes from thread to thread along a row, and which conjuncts of a condition are
//! uniform in a row or bound it.

use weft_artifact::Scalar;

use crate::{
    analysis::{
        Rematerializable,
        affine::{Along, LocalStride, Magnitude, Precision, Stride, Strides},
    },
    backend::host::plan::plan_ir::{MAX_ROW, Range, SplitCondition},
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

/// The largest binary logarithm of a divisor that is a shift.
const MAX_SHIFT: i64 = 57;

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

    /// As [`Self::split`], for one condition.
    pub(crate) fn parts(&self, cond: ExprId, negated: bool) -> SplitCondition {
        let mut parts = SplitCondition::default();
        self.split(cond, negated, &mut parts);
        parts
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
        } else if divide == BinaryOp::Shr && (0..=MAX_SHIFT).contains(&by) {
            1 << by
        } else {
            return None;
        };
        let wide = self.function.exprs[step].ty == Type::I64 && self.form(step) == Form::Step;
        let magnitude = self.magnitude();
        let exact = magnitude.fits(step, 0) && magnitude.fits(bound, i64::BITS - times.leading_zeros());
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
    pub(crate) fn known(&self, id: ExprId) -> ExprId {
        self.fixed.resolve(self.function, id)
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
        self.magnitude().wraps(value)
    }

    /// Whether an integer is so small that sums of a few such integers are exact in 64 bits.
    pub(crate) fn is_small(&self, root: ExprId) -> bool {
        self.magnitude().is_small(root)
    }

    fn magnitude(&self) -> Magnitude<'_> {
        Magnitude { function: self.function, fixed: self.fixed, max_row: MAX_ROW }
    }

    /// Whether a value has the same stride, which may be zero, between all neighboring threads of a row. A conservative
    /// test.
    pub(crate) fn has_uniform_stride(&self, root: ExprId) -> bool {
        self.stride(root) != Stride::Unknown
    }

    /// The stride of an expression along a row, if it is uniform or has unit stride.
    pub(crate) fn form(&self, root: ExprId) -> Form {
        match (self.stride(root), self.function.exprs[root].ty) {
            (Stride::ZERO, _) => Form::Same,
            (Stride::Constant(1), Type::Scalar(_)) => Form::Step,
            (Stride::Constant(_) | Stride::Uniform | Stride::Unknown | Stride::Undefined, _) => Form::Other,
        }
    }

    /// The stride of an expression along a row; of a pointer in bytes.
    pub(crate) fn stride(&self, root: ExprId) -> Stride {
        let local = |local: LocalId| {
            if (self.shared)(local) {
                return LocalStride::Known(Stride::ZERO);
            }
            let value = self.fixed.value(local).or_else(|| (self.sole)(local));
            value.map_or(LocalStride::UNKNOWN, LocalStride::Value)
        };
        let along = Along::Threads(self.axis);
        Strides { function: self.function, along, precision: Precision::Exact, local: &local }.stride(root)
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
