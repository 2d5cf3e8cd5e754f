//! Finds indices that are non-negative differences, because a condition compares the operands: `if j >= w: … best[j -
//! w] …`.
//!
//! A pass over the statements collects comparisons of two integers from enclosing conditions and from earlier
//! conditional exits. An assignment invalidates the comparisons that read the local.

use std::collections::BTreeSet;

use weft_artifact::Scalar;

use crate::{
    analysis::{Ranges, any_expr, same},
    ir::{
        Arith, BinaryOp, Class, CompareOp, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, UnaryOp, for_each_expr,
        for_each_stmt,
    },
};

/// The maximum number of comparisons that are live at a time.
const MOST: usize = 32;

/// The wraps whose index is not negative.
pub(super) fn wraps(function: &Function, ranges: &Ranges) -> BTreeSet<ExprId> {
    let mut finder = DifferenceFinder { function, ranges, known: Vec::new(), found: BTreeSet::new() };
    finder.list(&function.body);
    finder.found
}

/// `larger - smaller >= least`.
#[derive(Clone, Copy)]
struct KnownDifference {
    larger: ExprId,
    smaller: ExprId,
    least: i128,
}

struct DifferenceFinder<'a> {
    function: &'a Function,
    ranges: &'a Ranges,
    known: Vec<KnownDifference>,
    found: BTreeSet<ExprId>,
}

impl DifferenceFinder<'_> {
    fn list(&mut self, list: &[Stmt]) {
        for stmt in list {
            for root in stmt.kind.exprs() {
                self.look(root);
            }
            match &stmt.kind {
                StmtKind::If { cond, then, otherwise } => {
                    for (arm, negated) in [(then, false), (otherwise, true)] {
                        let before = self.known.clone();
                        self.learn(*cond, negated);
                        self.list(arm);
                        self.known = before;
                    }
                    self.forget(then);
                    self.forget(otherwise);
                    // If the arm never completes, the negation holds after the branch.
                    if leaves(then) {
                        self.learn(*cond, true);
                    } else if leaves(otherwise) {
                        self.learn(*cond, false);
                    }
                }
                StmtKind::Loop { body, step } => {
                    self.forget(body);
                    self.forget(step);
                    let before = self.known.clone();
                    self.list(body);
                    // The loop header is also reached from the latch.
                    self.known.clone_from(&before);
                    self.list(step);
                    self.known = before;
                }
                StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => self.forget(std::slice::from_ref(stmt)),
            }
        }
    }

    /// Collects the wraps in an expression that have no effect.
    fn look(&mut self, root: ExprId) {
        if self.known.is_empty() {
            return;
        }
        let mut wraps = Vec::new();
        for_each_expr(self.function, root, &mut |id| {
            if let Class::Arith(Arith::Wrap { index, .. }) = self.function.class(id) {
                wraps.push((id, index));
            }
        });
        wraps.retain(|&(_, index)| self.is_nonneg(index));
        self.found.extend(wraps.into_iter().map(|(id, _)| id));
    }

    /// Whether an index is a difference of two integers, plus a constant, that comparisons bound below by 0.
    fn is_nonneg(&self, index: ExprId) -> bool {
        let (mut at, mut constant) = (index, 0_i128);
        loop {
            let Class::Arith(Arith::Binary(op, a, b)) = self.function.class(at) else { return false };
            let is_sum = matches!(op, BinaryOp::Add | BinaryOp::AddExact);
            let is_exact = matches!(op, BinaryOp::AddExact | BinaryOp::SubExact);
            if !is_sum && !matches!(op, BinaryOp::Sub | BinaryOp::SubExact) {
                return false;
            }
            let sign = if is_sum { 1 } else { -1 };
            if !is_exact && !self.fits(at, a, b, sign) {
                return false;
            }
            match self.function.int(b) {
                Some(value) => {
                    constant += sign * value;
                    at = a;
                }
                None if sign < 0 => {
                    return self.known.iter().any(|known| {
                        known.least + constant >= 0
                            && same(self.function, known.larger, a)
                            && same(self.function, known.smaller, b)
                    });
                }
                None => return false,
            }
        }
    }

    /// Whether a sum or a difference does not wrap.
    fn fits(&self, id: ExprId, a: ExprId, b: ExprId, sign: i128) -> bool {
        let [a, b] = [a, b].map(|operand| self.ranges.expr(self.function, operand));
        let result = if sign > 0 { a.plus(b) } else { a.minus(b) };
        result.fits(self.function.exprs[id].ty)
    }

    /// Adds the comparisons that a condition implies, or its negation.
    fn learn(&mut self, cond: ExprId, negated: bool) {
        match self.function.class(cond) {
            Class::Arith(Arith::Unary(UnaryOp::Not, inner)) => self.learn(inner, !negated),
            Class::Arith(Arith::Binary(BinaryOp::And, a, b)) if !negated => {
                self.learn(a, false);
                self.learn(b, false);
            }
            Class::Arith(Arith::Binary(BinaryOp::Or, a, b)) if negated => {
                self.learn(a, true);
                self.learn(b, true);
            }
            Class::Arith(Arith::Compare(op, a, b)) => self.compare(op, a, b, negated),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => {}
        }
    }

    fn compare(&mut self, op: CompareOp, a: ExprId, b: ExprId, negated: bool) {
        let is_signed = self.function.exprs[a].ty.scalar().is_some_and(Scalar::is_signed_int);
        // A repeated load may return another value.
        let loads = |id| any_expr(self.function, id, &|kind| matches!(kind, ExprKind::Load(..)));
        if !is_signed || self.known.len() >= MOST || loads(a) || loads(b) {
            return;
        }
        let (larger, smaller, least) = match (op, negated) {
            (CompareOp::Ge, false) | (CompareOp::Lt, true) => (a, b, 0),
            (CompareOp::Gt, false) | (CompareOp::Le, true) => (a, b, 1),
            (CompareOp::Le, false) | (CompareOp::Gt, true) => (b, a, 0),
            (CompareOp::Lt, false) | (CompareOp::Ge, true) => (b, a, 1),
            (CompareOp::Eq | CompareOp::Ne, _) => return,
        };
        self.known.push(KnownDifference { larger, smaller, least });
    }

    /// Drops the comparisons that read locals which some statements assign.
    fn forget(&mut self, list: &[Stmt]) {
        let mut assigned: Vec<LocalId> = Vec::new();
        for_each_stmt(list, &mut |stmt| assigned.extend(stmt.kind.assigned()));
        if assigned.is_empty() {
            return;
        }
        let function = self.function;
        let is_of =
            |id| any_expr(function, id, &|kind| matches!(kind, ExprKind::Local(local) if assigned.contains(local)));
        self.known.retain(|known| !is_of(known.larger) && !is_of(known.smaller));
    }
}

/// Whether control never reaches the end of an arm.
fn leaves(arm: &[Stmt]) -> bool {
    matches!(arm.last(), Some(Stmt { kind: StmtKind::Break | StmtKind::Continue | StmtKind::Return(_), .. }))
}
