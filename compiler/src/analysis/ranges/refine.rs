//! Refines the ranges of the locals in a condition.

use super::{RangeAnalysis, flags, state::Change};
use crate::{
    analysis::Interval,
    ir::{Arith, BinaryOp, Class, CompareOp, ExprId, Leaf, Stmt, Type, UnaryOp},
};

impl RangeAnalysis<'_> {
    /// Refines the state by a condition that has the value `truth`. The condition has just been evaluated.
    pub(super) fn assume(&mut self, cond: ExprId, truth: bool) {
        if self.state.dead {
            return;
        }
        let notes = std::mem::replace(&mut self.notes, false);
        self.holds(cond, truth);
        self.notes = notes;
    }

    /// Refines the state by a condition after the statements `before` of its block. If the condition is a flag that they
    /// assign, as `and` and `or` do, it implies the conditions under which the flag gets its value.
    pub(super) fn assume_after(&mut self, before: &[Stmt], cond: ExprId, truth: bool) {
        self.assume(cond, truth);
        for (implied, truth) in flags::implied(self.function, before, cond, truth) {
            self.assume(implied, truth);
        }
    }

    fn holds(&mut self, cond: ExprId, truth: bool) {
        let function = self.function;
        match function.class(cond) {
            Class::Arith(Arith::Unary(UnaryOp::Not, a)) => self.holds(a, !truth),
            Class::Arith(Arith::Binary(BinaryOp::And, a, b)) if truth => {
                self.holds(a, true);
                self.holds(b, true);
            }
            Class::Arith(Arith::Binary(BinaryOp::Or, a, b)) if !truth => {
                self.holds(a, false);
                self.holds(b, false);
            }
            Class::Arith(Arith::Compare(op, a, b)) => {
                if function.exprs[a].ty.scalar().is_some_and(weft_artifact::Scalar::is_int) {
                    self.compared(if truth { op } else { opposite(op) }, a, b);
                }
            }
            Class::Arith(Arith::Select(chooses, a, b)) => {
                let then = self.chosen((chooses, true), a, truth);
                let otherwise = self.chosen((chooses, false), b, truth);
                let joined = self.state.joined(then, otherwise);
                self.state.put(joined);
            }
            Class::Leaf(Leaf::Local(_)) => self.narrow(cond, Interval::of(i128::from(truth))),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => {}
        }
    }

    /// The refinements if a `select` chooses one of its operands, which has the value `truth`.
    fn chosen(&mut self, (chooses, when): (ExprId, bool), operand: ExprId, truth: bool) -> Change {
        let mark = self.state.mark();
        self.holds(chooses, when);
        if !self.state.dead {
            self.holds(operand, truth);
        }
        self.state.take(mark)
    }

    /// Whether the current ranges allow a condition to have the value `truth`.
    pub(super) fn allows(&mut self, cond: ExprId, truth: bool) -> bool {
        let mark = self.state.mark();
        self.assume(cond, truth);
        self.state.take(mark).is_some()
    }

    fn compared(&mut self, op: CompareOp, a: ExprId, b: ExprId) {
        let (left, right) = (self.eval(a), self.eval(b));
        let below = |of: Interval, less: i128| Interval::new(i128::MIN, of.high.saturating_sub(less));
        let above = |of: Interval, more: i128| Interval::new(of.low.saturating_add(more), i128::MAX);
        match op {
            CompareOp::Lt => {
                self.narrow(a, below(right, 1));
                self.narrow(b, above(left, 1));
            }
            CompareOp::Le => {
                self.narrow(a, below(right, 0));
                self.narrow(b, above(left, 0));
            }
            CompareOp::Gt => {
                self.narrow(a, above(right, 1));
                self.narrow(b, below(left, 1));
            }
            CompareOp::Ge => {
                self.narrow(a, above(right, 0));
                self.narrow(b, below(left, 0));
            }
            CompareOp::Eq => {
                self.narrow(a, right);
                self.narrow(b, left);
            }
            CompareOp::Ne => {
                self.narrow(a, without(left, right));
                self.narrow(b, without(right, left));
            }
        }
    }

    /// Refines the state by an expression whose value is in an interval.
    fn narrow(&mut self, id: ExprId, to: Interval) {
        let function = self.function;
        let expr = &function.exprs[id];
        match expr.kind.class() {
            Class::Leaf(Leaf::Local(local)) => {
                let now = self.state.get(local);
                if now.is_none() {
                    return;
                }
                let left = now.meet(to);
                if left.is_none() {
                    self.state.dead = true;
                } else {
                    self.state.set(local, left);
                }
            }
            // A lossless conversion.
            Class::Arith(Arith::Convert(from)) if is_int(function.exprs[from].ty) && is_int(expr.ty) => {
                if self.eval(from).fits(expr.ty) {
                    self.narrow(from, to);
                }
            }
            Class::Arith(Arith::Unary(UnaryOp::Neg, a)) if self.eval(a).negated().fits(expr.ty) => {
                self.narrow(a, to.negated());
            }
            Class::Arith(Arith::Binary(op, a, b)) if is_int(expr.ty) => {
                let (left, right) = (self.eval(a), self.eval(b));
                match op {
                    BinaryOp::Add if left.plus(right).fits(expr.ty) => {
                        self.narrow(a, to.minus(right));
                        self.narrow(b, to.minus(left));
                    }
                    BinaryOp::Sub if left.minus(right).fits(expr.ty) => {
                        self.narrow(a, to.plus(right));
                        self.narrow(b, left.minus(to));
                    }
                    BinaryOp::Min => {
                        self.narrow(a, Interval::new(to.low, i128::MAX));
                        self.narrow(b, Interval::new(to.low, i128::MAX));
                    }
                    BinaryOp::Max => {
                        self.narrow(a, Interval::new(i128::MIN, to.high));
                        self.narrow(b, Interval::new(i128::MIN, to.high));
                    }
                    BinaryOp::Add
                    | BinaryOp::Sub
                    | BinaryOp::Mul
                    | BinaryOp::AddExact
                    | BinaryOp::SubExact
                    | BinaryOp::MulExact
                    | BinaryOp::Div
                    | BinaryOp::FloorDiv
                    | BinaryOp::FloorMod
                    | BinaryOp::DivNonneg
                    | BinaryOp::ModNonneg
                    | BinaryOp::Pow
                    | BinaryOp::Shl
                    | BinaryOp::Shr
                    | BinaryOp::And
                    | BinaryOp::Or
                    | BinaryOp::Xor => {}
                }
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => {}
        }
    }
}

fn is_int(ty: Type) -> bool {
    ty.scalar().is_some_and(weft_artifact::Scalar::is_int)
}

fn opposite(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Eq => CompareOp::Ne,
        CompareOp::Ne => CompareOp::Eq,
        CompareOp::Lt => CompareOp::Ge,
        CompareOp::Le => CompareOp::Gt,
        CompareOp::Gt => CompareOp::Le,
        CompareOp::Ge => CompareOp::Lt,
    }
}

/// Removes the single value of another interval from an interval, if it is one of its ends.
fn without(of: Interval, other: Interval) -> Interval {
    match other.single() {
        Some(value) if value == of.low => Interval::new(of.low.saturating_add(1), of.high),
        Some(value) if value == of.high => Interval::new(of.low, of.high.saturating_sub(1)),
        Some(_) | None => of,
    }
}
