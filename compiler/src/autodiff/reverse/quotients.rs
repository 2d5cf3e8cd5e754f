//! Quotients by a value from outside of a loop: the adjoint of the divisor is divided after the loop.
//!
//! ```text
//! y = a / b                   b' += -(g / b) * y      becomes      sum += g * a, and after the loop b' += -(sum / b) / b
//! ```
//!
//! Legal in loops that run in the kernel's order: no iteration reads the adjoint of a value from outside. A sum of 0 adds
//! nothing, so that a loop without iterations, or with adjoints of 0, divides by nothing. The terms are rounded in another
//! order, and `g * a` overflows where `g` times `a` is beyond the type's range, even if `g / b * y` is not.
//!
//! Profitable always: a product in place of a quotient, and the loop does not compute `y` again for it.

use std::collections::BTreeMap;

use super::Emitter;
use crate::{
    autodiff::{
        build::adjoint_type,
        needed::Needed,
        rules::Evaluated,
        tape::{List, Node, Repeat, Values},
    },
    ir::{BinaryOp, Block, CompareOp, ExprId, ExprKind, LocalId, StmtKind, Type, UnaryOp},
    source::Span,
};

/// By the divisor: the sum of the adjoints of quotients times their dividends.
pub(super) type Sums = BTreeMap<LocalId, LocalId>;

impl Emitter<'_> {
    /// Starts the sums of a loop. Returns those of the loop around.
    pub(super) fn begin_quotients(&mut self, repeat: &Repeat, again: &Needed) -> Sums {
        let mut divisors = Values::new();
        self.divisors(&repeat.body, &repeat.defined(), again, &mut divisors);
        let mut sums = Sums::new();
        for divisor in divisors {
            let ty = self.function.locals[divisor].ty;
            let (sum, zero) = (self.temp("quotients", ty), self.zero(ty, repeat.span));
            self.push(StmtKind::Assign(sum, zero), repeat.span);
            sums.insert(divisor, sum);
        }
        std::mem::replace(&mut self.quotients, sums)
    }

    /// Adds the sums of a loop to the adjoints of the divisors. `outer` are those of the loop around.
    pub(super) fn end_quotients(&mut self, repeat: &Repeat, outer: Sums) {
        let span = repeat.span;
        for (divisor, sum) in std::mem::replace(&mut self.quotients, outer) {
            let ty = self.function.locals[sum].ty;
            let (value, zero) = (self.read(sum, span), self.zero(ty, span));
            let cond = self.expr(ExprKind::Compare(CompareOp::Ne, value, zero), Type::BOOL, span);
            self.open();
            let mut quotient = self.read(sum, span);
            for _ in 0..2 {
                let by = self.read(divisor, span);
                quotient = self.binary(BinaryOp::Div, quotient, by, span);
            }
            let term = self.expr(ExprKind::Unary(UnaryOp::Neg, quotient), ty, span);
            self.contribute(divisor, term, span);
            let then = self.close();
            self.push(StmtKind::If { cond, then, otherwise: Block::new() }, span);
        }
    }

    /// Adds to the sum of a divisor; false if it has none.
    pub(super) fn sums_quotient(&mut self, (of, divisor): (Evaluated, LocalId), span: Span) -> bool {
        let ExprKind::Binary(BinaryOp::Div, dividend, by) = self.tape.function.exprs[of.id].kind else { return false };
        let Some(&sum) = self.quotients.get(&divisor).filter(|_| self.tape.function.local(by) == Some(divisor)) else {
            return false;
        };
        let (adjoint, dividend) = (self.read(of.adjoint, span), self.function.copy_expr(dividend));
        let term = self.binary(BinaryOp::Mul, adjoint, dividend, span);
        let before = self.read(sum, span);
        let after = self.binary(BinaryOp::Add, before, term, span);
        self.push(StmtKind::Assign(sum, after), span);
        true
    }

    /// Finds the divisors from outside of a loop, in its list and its branches, all of whose dividends it computes.
    fn divisors(&self, list: &List, own: &Values, again: &Needed, found: &mut Values) {
        let mut refused = Values::new();
        self.divisors_in(list, own, &mut |divisor, dividend| {
            let function = self.tape.function;
            let ty = function.locals[divisor].ty;
            let is_known = function.local(dividend).is_none_or(|value| again.computes(value));
            if is_known && adjoint_type(ty) == ty && self.receives(divisor) {
                found.insert(divisor);
            } else {
                refused.insert(divisor);
            }
        });
        found.retain(|divisor| !refused.contains(divisor));
    }

    fn divisors_in(&self, list: &List, own: &Values, visit: &mut dyn FnMut(LocalId, ExprId)) {
        let function = self.tape.function;
        for node in list {
            match node {
                Node::Define { to, value, .. } => {
                    if let ExprKind::Binary(BinaryOp::Div, dividend, by) = function.exprs[*value].kind
                        && let Some(divisor) = function.local(by).filter(|divisor| !own.contains(divisor))
                        && self.tape.activity.is_active(*to)
                    {
                        visit(divisor, dividend);
                    }
                }
                Node::If(branch) => {
                    self.divisors_in(&branch.then, own, visit);
                    self.divisors_in(&branch.otherwise, own, visit);
                }
                // A loop has its own sums.
                Node::Loop(_)
                | Node::Unrepeatable { .. }
                | Node::Exchange(_)
                | Node::Call(_)
                | Node::Store(_)
                | Node::Add(_)
                | Node::Barrier { .. } => {}
            }
        }
    }
}
