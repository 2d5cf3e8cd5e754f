//! Loops over thread-local arrays, on a GPU.
//!
//! An array is in registers only if all its indices are compile-time constants; a single other index moves the
//! whole array to memory. Hence a loop with a small constant trip count over such an array is unrolled, even beyond
//! LLVM's size limit, and so are loops inside whose bounds depend on its counter, as in `for q in range(p + 1, 5)`.

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

/// The counter of a loop that is unrolled, and the values that it may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnrolledCounter {
    local: LocalId,
    values: Interval,
}

/// The least and the greatest value of an integer.
type Interval = (i128, i128);

impl FunctionEmitter<'_, '_> {
    /// The counter of a loop that is to be unrolled: if it has a small trip count, constant once the enclosing loops are
    /// unrolled, and its counter indexes a thread-local array. `before` are the statements before the loop in its block,
    /// `outer` the counters of the enclosing unrolled loops.
    pub(super) fn unrolled_counter(
        &self,
        outer: &[UnrolledCounter],
        before: &[Stmt],
        body: &[Stmt],
        step: &[Stmt],
    ) -> Option<UnrolledCounter> {
        let (counter, trip_count) = self.bounded_trip_count(outer, before, body, step)?;
        let mut inside = outer.to_vec();
        inside.push(counter);
        let is_small = trip_count <= MAX_TRIP_COUNT
            && self.numbers_own(counter.local, body)
            && trip_count * self.size(&inside, body) <= SIZE;
        is_small.then_some(counter)
    }

    /// The counter of a loop that counts to a value that is constant once the enclosing loops are unrolled, and the
    /// greatest trip count without early exits.
    fn bounded_trip_count(
        &self,
        outer: &[UnrolledCounter],
        before: &[Stmt],
        body: &[Stmt],
        step: &[Stmt],
    ) -> Option<(UnrolledCounter, i128)> {
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
        let first = self.value_before(outer, before, *counter)?;
        let (stop, by) = (self.interval(outer, before, stop)?, self.function.int(by)?);
        let (distance, by) = match op {
            CompareOp::Lt => (stop.1.checked_sub(first.0)?.max(0), by),
            CompareOp::Gt => (first.1.checked_sub(stop.0)?.max(0), by.checked_neg()?),
            CompareOp::Eq | CompareOp::Ne | CompareOp::Le | CompareOp::Ge => return None,
        };
        let values = (first.0.min(stop.0), first.1.max(stop.1));
        (by > 0).then(|| (UnrolledCounter { local: *counter, values }, distance / by + i128::from(distance % by != 0)))
    }

    /// The values that a local may have after statements: an enclosing counter, or what its last assignment computes
    /// from constants and such counters.
    fn value_before(&self, outer: &[UnrolledCounter], before: &[Stmt], local: LocalId) -> Option<Interval> {
        let last = before.iter().rposition(|stmt| Self::changes(std::slice::from_ref(stmt), local));
        match last {
            Some(at) => {
                let StmtKind::Assign(_, value) = before[at].kind else { return None };
                self.interval(outer, &before[..at], value)
            }
            None => outer.iter().rev().find(|counter| counter.local == local).map(|counter| counter.values),
        }
    }

    /// The values that an expression after statements may have. `None` if it depends on anything but constants and
    /// enclosing counters.
    fn interval(&self, outer: &[UnrolledCounter], before: &[Stmt], id: ExprId) -> Option<Interval> {
        if let Some(value) = self.function.int(id) {
            return Some((value, value));
        }
        if let Some(local) = self.function.local(id) {
            return self.value_before(outer, before, local);
        }
        let ExprKind::Binary(op, a, b) = self.function.exprs[id].kind else { return None };
        let (a, b) = (self.interval(outer, before, a)?, self.interval(outer, before, b)?);
        if matches!(op, BinaryOp::Add | BinaryOp::AddExact) {
            Some((a.0.checked_add(b.0)?, a.1.checked_add(b.1)?))
        } else if matches!(op, BinaryOp::Sub | BinaryOp::SubExact) {
            Some((a.0.checked_sub(b.1)?, a.1.checked_sub(b.0)?))
        } else {
            None
        }
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
    fn size(&self, outer: &[UnrolledCounter], block: &[Stmt]) -> i128 {
        let mut size = 0;
        for (index, stmt) in block.iter().enumerate() {
            size += 1;
            for_each_expr_of_stmt(self.function, &stmt.kind, &mut |_| size += 1);
            match &stmt.kind {
                StmtKind::Loop { body, step } => {
                    let before = block.get(..index).unwrap_or_default();
                    let counter = self.unrolled_counter(outer, before, body, step);
                    let trip_count = counter.and_then(|_| self.bounded_trip_count(outer, before, body, step));
                    let mut inside = outer.to_vec();
                    inside.extend(counter);
                    let iteration = self.size(&inside, body) + self.size(&inside, step);
                    size += trip_count.map_or(1, |(_, trip_count)| trip_count) * iteration;
                }
                StmtKind::If { then, otherwise, .. } => size += self.size(outer, then) + self.size(outer, otherwise),
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
