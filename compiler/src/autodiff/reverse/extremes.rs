//! Running maxima and minima of loops, which the reverse sweep needs without their values of each iteration.
//!
//! ```text
//! for k in range(n):              n_equal: the terms that equal m after the loop, m before the loop included
//!     m = max(m, f(k))            reversed iteration: if f(k) == m { n_equal -= 1; if n_equal == 0 { m = -inf } }
//! ```
//!
//! The reverse begins with the result of the loop. Before an iteration whose term is less, the variable had the same value.
//! Before one whose term equals it, it did if an earlier term does, too. Before the first of these terms, the variable was
//! less: its value has no influence on the result, and its adjoint is 0 from there on, so that infinity stands for it.
//!
//! `if f(k) > m: m = f(k)` is the same, but that of equal terms the first one has the whole derivative (with `>=`, the last
//! one): with the restored variable, a reversed iteration takes the branch that the kernel took, until the adjoint is 0.
//!
//! Legal if the loop uses the variable for nothing else, and computes it once in each iteration.

use super::Emitter;
use crate::{
    autodiff::{plan::Order, sums::Extreme, tape::Repeat},
    ir::{BinaryOp, Block, CompareOp, Const, ExprId, ExprKind, LocalId, Stmt, StmtKind, Type},
    source::Span,
};

/// The number of terms that equal the result.
#[derive(Clone, Copy)]
pub(super) struct Equal {
    extreme: Extreme,
    count: LocalId,
}

impl Emitter<'_> {
    /// Before a loop of the forward sweep: the value before the loop is the first that equals the result.
    pub(super) fn begin_extremes(&mut self, repeat: &Repeat) {
        let plan = self.plan;
        let Order::Backward(restored) = &plan.loops[repeat.id].order else { return };
        if self.is_counting() {
            return;
        }
        for &extreme in &restored.extremes {
            let one = self.int(1, repeat.span);
            let count = self.assigned_to_new("n_equal", one);
            self.equal.insert(extreme.next, Equal { extreme, count });
        }
    }

    /// In the forward sweep: counts the terms that equal the result so far.
    pub(super) fn count_equal(&mut self, next: LocalId, span: Span) {
        let Some(&Equal { extreme, count }) = self.equal.get(&next) else { return };
        let (op, one) = (if extreme.is_max { CompareOp::Gt } else { CompareOp::Lt }, self.int(1, span));
        let (is_new, is_equal) = (self.compared(op, extreme, span), self.compared(CompareOp::Eq, extreme, span));
        let restart = vec![Stmt { kind: StmtKind::Assign(count, one), span }];
        let (now, more) = (self.read(count, span), self.int(1, span));
        let sum = self.binary(BinaryOp::Add, now, more, span);
        let add = vec![Stmt { kind: StmtKind::Assign(count, sum), span }];
        let add = StmtKind::If { cond: is_equal, then: add, otherwise: Block::new() };
        let otherwise = vec![Stmt { kind: add, span }];
        self.push(StmtKind::If { cond: is_new, then: restart, otherwise }, span);
    }

    /// In a reversed iteration: restores the value before it.
    pub(super) fn restore_extreme(&mut self, next: LocalId, span: Span) {
        let Some(&Equal { extreme, count }) = self.equal.get(&next) else { return };
        let is_equal = self.compared(CompareOp::Eq, extreme, span);
        let (now, one) = (self.read(count, span), self.int(1, span));
        let less = self.binary(BinaryOp::Sub, now, one, span);
        let (now, zero) = (self.read(count, span), self.int(0, span));
        let is_first = self.expr(ExprKind::Compare(CompareOp::Eq, now, zero), Type::BOOL, span);
        let infinity = if extreme.is_max { f64::NEG_INFINITY } else { f64::INFINITY };
        let ty = self.function.locals[extreme.header].ty;
        let beyond = self.expr(ExprKind::Const(Const::Float(infinity)), ty, span);
        let forget = vec![Stmt { kind: StmtKind::Assign(extreme.header, beyond), span }];
        let then = vec![
            Stmt { kind: StmtKind::Assign(count, less), span },
            Stmt { kind: StmtKind::If { cond: is_first, then: forget, otherwise: Block::new() }, span },
        ];
        self.push(StmtKind::If { cond: is_equal, then, otherwise: Block::new() }, span);
    }

    /// `term op variable`.
    fn compared(&mut self, op: CompareOp, extreme: Extreme, span: Span) -> ExprId {
        let (term, value) = (self.function.copy_expr(extreme.term), self.read(extreme.header, span));
        self.expr(ExprKind::Compare(op, term, value), Type::BOOL, span)
    }
}
