//! Loops over thread-local arrays, on a GPU.
//!
//! An array is in registers only if all its indices are compile-time constants; a single other index moves the
//! whole array to memory. Hence a loop with a small constant trip count over such an array is unrolled, even beyond
//! LLVM's size limit.

use super::FunctionEmitter;
use crate::ir::{
    BinaryOp, CompareOp, ExprId, ExprKind, LocalId, Space, Stmt, StmtKind, Type, UnaryOp, for_each_expr,
    for_each_expr_of_stmt, for_each_stmt,
};

/// The largest trip count of a loop that is unrolled.
const MAX_TRIP_COUNT: i128 = 32;
/// The maximal number of statements and expressions over all iterations, because LLVM's compile time grows with each.
const SIZE: i128 = 4096;
/// The size that a call counts as: most callees are small, and all functions of the prelude are inlined.
const CALL: i128 = 16;

impl FunctionEmitter<'_, '_> {
    /// Whether a loop has a small constant trip count and its counter indexes a thread-local array. `before` are the
    /// statements before the loop in its block.
    pub(super) fn goes_over_own(&self, before: &[Stmt], body: &[Stmt], step: &[Stmt]) -> bool {
        self.constant_trip_count(before, body, step).is_some_and(|(counter, trip_count)| {
            trip_count <= MAX_TRIP_COUNT && self.numbers_own(counter, body) && trip_count * self.size(body) <= SIZE
        })
    }

    /// The counter of a loop that counts from one constant to another, and its trip count without early exits.
    fn constant_trip_count(&self, before: &[Stmt], body: &[Stmt], step: &[Stmt]) -> Option<(LocalId, i128)> {
        let exprs = &self.function.exprs;
        let [Stmt { kind: StmtKind::Assign(counter, sum), .. }] = step else { return None };
        let ExprKind::Binary(BinaryOp::Add | BinaryOp::AddExact, now, by) = exprs[*sum].kind else { return None };
        let StmtKind::If { cond, then, otherwise } = &body.first()?.kind else { return None };
        let ExprKind::Unary(UnaryOp::Not, test) = exprs[*cond].kind else { return None };
        let ExprKind::Compare(op, tested, stop) = exprs[test].kind else { return None };
        let leaves = matches!(then.last(), Some(Stmt { kind: StmtKind::Break, .. })) && otherwise.is_empty();
        let is_counter = |id: ExprId| self.function.local(id) == Some(*counter);
        if !leaves || !is_counter(now) || !is_counter(tested) || Self::changes(body, *counter) {
            return None;
        }
        // The last statement before the loop that changes the counter.
        let first = before.iter().rfind(|stmt| Self::changes(std::slice::from_ref(*stmt), *counter))?;
        let StmtKind::Assign(_, first) = first.kind else { return None };
        let (first, stop, by) = (self.function.int(first)?, self.function.int(stop)?, self.function.int(by)?);
        let (distance, by) = match op {
            CompareOp::Lt => (stop.checked_sub(first)?.max(0), by),
            CompareOp::Gt => (first.checked_sub(stop)?.max(0), by.checked_neg()?),
            CompareOp::Eq | CompareOp::Ne | CompareOp::Le | CompareOp::Ge => return None,
        };
        (by > 0).then(|| (*counter, distance / by + i128::from(distance % by != 0)))
    }

    fn changes(block: &[Stmt], local: LocalId) -> bool {
        let mut changes = false;
        for_each_stmt(block, &mut |stmt| changes |= stmt.kind.assigned().contains(&local));
        changes
    }

    /// Whether a value derived from the counter indexes a local array, or is passed to a function together with one.
    fn numbers_own(&self, counter: LocalId, iteration: &[Stmt]) -> bool {
        let mut derived = vec![counter];
        let mut found = false;
        for_each_stmt(iteration, &mut |stmt| {
            let comes = |id: ExprId| self.mentions(id, &derived);
            for_each_expr_of_stmt(self.function, &stmt.kind, &mut |id| {
                let (ExprKind::Offset { base, index: number, .. } | ExprKind::ByteOffset { base, bytes: number }) =
                    self.function.exprs[id].kind
                else {
                    return;
                };
                found |= self.is_own(base) && comes(number);
            });
            if !stmt.kind.exprs().into_iter().any(comes) {
                return;
            }
            if let StmtKind::Call { args, .. } = &stmt.kind {
                found |= args.iter().any(|&arg| self.is_own(arg));
            }
            derived.extend(stmt.kind.assigned());
        });
        found
    }

    fn is_own(&self, pointer: ExprId) -> bool {
        matches!(self.function.exprs[pointer].ty, Type::Ptr(_, Space::Local))
    }

    fn mentions(&self, id: ExprId, locals: &[LocalId]) -> bool {
        let mut found = false;
        for_each_expr(self.function, id, &mut |part| {
            found |= self.function.local(part).is_some_and(|local| locals.contains(&local));
        });
        found
    }

    /// The number of statements and expressions; those of unrolled loops count once per iteration.
    fn size(&self, block: &[Stmt]) -> i128 {
        let mut size = 0;
        for (index, stmt) in block.iter().enumerate() {
            size += 1;
            for_each_expr_of_stmt(self.function, &stmt.kind, &mut |_| size += 1);
            match &stmt.kind {
                StmtKind::Loop { body, step } => {
                    let before = block.get(..index).unwrap_or_default();
                    let trip_count = self.constant_trip_count(before, body, step);
                    let unrolled = trip_count.filter(|_| self.goes_over_own(before, body, step));
                    size += unrolled.map_or(1, |(_, trip_count)| trip_count) * (self.size(body) + self.size(step));
                }
                StmtKind::If { then, otherwise, .. } => size += self.size(then) + self.size(otherwise),
                StmtKind::Call { .. } => size += CALL,
                StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => {}
            }
        }
        size
    }
}
