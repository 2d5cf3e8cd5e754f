//! Range analysis of loops.

use std::collections::BTreeMap;

use super::{
    RangeAnalysis,
    state::{Change, Mark},
};
use crate::{
    analysis::Interval,
    ir::{BinaryOp, Block, CompareOp, ExprId, ExprKind, LocalId, Stmt, StmtKind, Type, UnaryOp, for_each_stmt},
};

/// The number of fixpoint passes after which ranges that still grow are widened.
const PLAIN_ITERATIONS: u32 = 3;

/// The number of narrowing passes, in which the loop's test removes what widening added.
const BACK_ITERATIONS: u32 = 3;

/// The nesting depth from which a loop starts with its previous result: the analysis would take too long otherwise.
const DEEP: usize = 2;

/// An enclosing loop of the current program point.
pub(super) struct Open {
    /// The start of its iteration.
    mark: Mark,
    breaks: Vec<Change>,
    continues: Vec<Change>,
    /// Whether the program point is in its `step`.
    pub in_step: bool,
    /// An upper bound of its trip count.
    trip_count: Option<i128>,
    /// By local that is only incremented: the increments of an iteration; `None` for other locals.
    added: BTreeMap<LocalId, Option<Interval>>,
}

/// The ranges of locals.
pub(super) type Values = BTreeMap<LocalId, Interval>;

impl<'a> RangeAnalysis<'a> {
    /// Control exits the innermost loop (`for_good`), or its iteration.
    pub(super) fn leave(&mut self, for_good: bool) {
        if let Some(open) = self.loops.last_mut() {
            let change = self.state.change(open.mark);
            if for_good { open.breaks.push(change) } else { open.continues.push(change) }
        }
        self.state.dead = true;
    }

    pub(super) fn walk_loop(&mut self, body: &'a Block, step: &'a Block) {
        let notes = std::mem::replace(&mut self.notes, false);
        let sums = std::mem::replace(&mut self.sums, false);
        let mut entry = Values::new();
        for block in [body, step] {
            for_each_stmt(block, &mut |stmt| {
                for local in stmt.kind.assigned() {
                    entry.insert(local, self.state.get(local));
                }
            });
        }
        let mut head = entry.clone();
        let place = std::ptr::from_ref(body).addr();
        // An inner loop is analyzed for each pass over the outer ones, mostly with the same result.
        let is_deep = self.loops.len() >= DEEP;
        if let Some(before) = self.heads.get(&place).filter(|_| is_deep) {
            for (local, known) in &mut head {
                *known = known.join(before[local]);
            }
        }
        let mut iteration = 0;
        while let Some(back) = self.iteration(body, step, &head, None).back {
            let mut changed = false;
            for (local, known) in &mut head {
                let joined = known.join(back[local]);
                if joined == *known {
                    continue;
                }
                changed = true;
                let all = Interval::of_type(self.function.locals[*local].ty);
                *known = if iteration < PLAIN_ITERATIONS { joined } else { widened(*known, joined, all) };
            }
            if !changed || self.patience == 0 {
                break;
            }
            iteration += 1;
        }
        let trip_count = self.trip_count(body, step, &entry, &head);
        for _ in 0..BACK_ITERATIONS {
            self.sums = true;
            let outcome = self.iteration(body, step, &head, trip_count);
            self.sums = false;
            let mut changed = false;
            for (local, known) in &mut head {
                let mut left = match &outcome.back {
                    Some(back) => entry[local].join(back[local]),
                    None => entry[local],
                };
                if let (Some(trip_count), Some(Some(added))) = (trip_count, outcome.added.get(local)) {
                    let sum = entry[local].plus(added.times(Interval::new(0, trip_count)));
                    if !entry[local].is_none() && sum.fits(self.function.locals[*local].ty) {
                        left = left.meet(sum);
                    }
                }
                left = left.meet(*known);
                changed |= left != *known;
                *known = left;
            }
            if !changed || self.patience == 0 {
                break;
            }
        }
        if is_deep {
            self.heads.insert(place, head.clone());
        }
        (self.notes, self.sums) = (notes, sums);
        let breaks = self.iteration(body, step, &head, trip_count).breaks;
        let mut after = None;
        for change in breaks {
            after = self.state.joined(after, change);
        }
        self.state.put(after);
    }

    /// Analyzes one iteration from the ranges at its start, and restores the state at the loop's start.
    fn iteration(
        &mut self,
        body: &'a Block,
        step: &'a Block,
        head: &Values,
        trip_count: Option<i128>,
    ) -> IterationOutcome {
        let mark = self.state.mark();
        for (local, value) in head {
            self.state.set(*local, *value);
        }
        self.loops.push(Open {
            mark,
            breaks: Vec::new(),
            continues: Vec::new(),
            in_step: false,
            trip_count,
            added: BTreeMap::new(),
        });
        self.block(body);
        let mut end = self.state.take(mark);
        for change in self.loops.last_mut().map(|open| std::mem::take(&mut open.continues)).unwrap_or_default() {
            end = self.state.joined(end, change);
        }
        self.state.put(end);
        if let Some(open) = self.loops.last_mut() {
            open.in_step = true;
        }
        self.block(step);
        let change = self.state.take(mark);
        let back = change.map(|change| {
            head.keys()
                .map(|local| (*local, change.get(local).copied().unwrap_or_else(|| self.state.get(*local))))
                .collect()
        });
        let (breaks, added) = self.loops.pop().map(|open| (open.breaks, open.added)).unwrap_or_default();
        IterationOutcome { back, breaks, added }
    }

    /// Records what an assignment adds to its local in an iteration of each enclosing loop.
    pub(super) fn count_sum(&mut self, local: LocalId, value: ExprId) {
        if !self.sums {
            return;
        }
        let mut each = self.addend(local, value).map(|added| added.join(Interval::of(0)));
        for open in self.loops.iter_mut().rev() {
            // A `None` is final.
            let known = open.added.entry(local).or_insert(Some(Interval::of(0)));
            *known = known.zip(each).map(|(known, more)| known.plus(more));
            each = each.zip(open.trip_count).map(|(more, trip_count)| more.times(Interval::new(0, trip_count)));
        }
    }

    /// Records an assignment to a local that is not an increment.
    pub(super) fn count_other(&mut self, local: LocalId) {
        if self.sums {
            for open in &mut self.loops {
                open.added.insert(local, None);
            }
        }
    }

    /// The increment of `local = value`, if it is one.
    fn addend(&mut self, local: LocalId, value: ExprId) -> Option<Interval> {
        let function = self.function;
        let ExprKind::Binary(op, a, b) = function.exprs[value].kind else { return None };
        let is_local = |id: ExprId| function.exprs[id].kind == ExprKind::Local(local);
        let notes = std::mem::replace(&mut self.notes, false);
        let found = if op == BinaryOp::Add && is_local(a) {
            Some(self.eval(b))
        } else if op == BinaryOp::Add && is_local(b) {
            Some(self.eval(a))
        } else if op == BinaryOp::Sub && is_local(a) {
            Some(self.eval(b).negated())
        } else {
            None
        };
        self.notes = notes;
        found
    }

    /// An upper bound of a loop's trip count: the loop starts with `if not test { break }`, and the test compares a
    /// counter, which each iteration moves towards its bound.
    fn trip_count(&mut self, body: &'a Block, step: &'a Block, entry: &Values, head: &Values) -> Option<i128> {
        let function = self.function;
        let condition = body.first()?.kind.exit_condition()?;
        let ExprKind::Unary(UnaryOp::Not, test) = function.exprs[condition].kind else { return None };
        let mark = self.state.mark();
        for (local, value) in head {
            self.state.set(*local, *value);
        }
        let mut least = None;
        let mut tests = vec![test];
        while let Some(test) = tests.pop() {
            let found = if let ExprKind::Binary(BinaryOp::And, a, b) = function.exprs[test].kind {
                tests.extend([a, b]);
                None
            } else if let ExprKind::Compare(op, a, b) = function.exprs[test].kind {
                self.trip_count_of(body, step, entry, (op, a, b))
            } else if let ExprKind::Select(chooses, a, b) = function.exprs[test].kind {
                // The test of `range(start, stop, step)` by the sign of the step.
                if !self.allows(chooses, false) {
                    tests.push(a);
                } else if !self.allows(chooses, true) {
                    tests.push(b);
                }
                None
            } else {
                None
            };
            least = match (least, found) {
                (Some(least), Some(found)) => Some(i128::min(least, found)),
                (one, other) => one.or(other),
            };
        }
        self.state.take(mark);
        least
    }

    /// The trip count that one comparison allows.
    fn trip_count_of(
        &mut self,
        body: &'a Block,
        step: &'a Block,
        entry: &Values,
        (op, a, b): (CompareOp, ExprId, ExprId),
    ) -> Option<i128> {
        let function = self.function;
        let is_counter = |id: ExprId| function.local(id).filter(|local| entry.contains_key(local));
        // Normalized to have the counter on the left.
        let (op, counter, bound) = match (is_counter(a), is_counter(b)) {
            (Some(counter), None) => (op, counter, b),
            (None, Some(counter)) => (mirrored(op), counter, a),
            (Some(_), Some(_)) | (None, None) => return None,
        };
        let (by, in_step) = self.step_of(body, step, counter)?;
        let start = entry[&counter];
        let bound = self.eval(bound);
        let all = Interval::of_type(function.locals[counter].ty);
        let (distance, by) = match op {
            CompareOp::Lt | CompareOp::Le if by.low > 0 => {
                let last = bound.high.saturating_sub(i128::from(op == CompareOp::Lt));
                let in_range = in_step || last.saturating_add(by.high) <= all.high;
                (in_range.then_some(last.saturating_sub(start.low))?, by.low)
            }
            CompareOp::Gt | CompareOp::Ge if by.high < 0 => {
                let last = bound.low.saturating_add(i128::from(op == CompareOp::Gt));
                let in_range = in_step || last.saturating_add(by.low) >= all.low;
                (in_range.then_some(start.high.saturating_sub(last))?, -by.high)
            }
            CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge | CompareOp::Eq | CompareOp::Ne => {
                return None;
            }
        };
        if start.is_none() {
            return None;
        }
        Some(if distance < 0 { 0 } else { distance / by + 1 })
    }

    /// The increment of a counter that every iteration adds once and nothing else changes, and whether it is in `step`,
    /// where it cannot overflow.
    fn step_of(&mut self, body: &'a Block, step: &'a Block, counter: LocalId) -> Option<(Interval, bool)> {
        let mut assignments = 0;
        for block in [body, step] {
            for_each_stmt(block, &mut |stmt| assignments += usize::from(stmt.kind.assigned().contains(&counter)));
        }
        let at_top = |block: &'a Block| {
            block.iter().find_map(|stmt| {
                if let StmtKind::Assign(local, value) = stmt.kind { (local == counter).then_some(value) } else { None }
            })
        };
        let in_step = at_top(step);
        let value = in_step.or_else(|| if goes_on(body) { None } else { at_top(body) })?;
        if assignments != 1 {
            return None;
        }
        Some((self.addend(counter, value)?, in_step.is_some()))
    }
}

/// An interval that grows, with the bounds that grow at the next threshold: 0 below, so that `(low + high) // 2` of a
/// binary search remains an index, the limits of `int32`, and those of the type.
fn widened(known: Interval, joined: Interval, all: Interval) -> Interval {
    let narrow = Interval::of_type(Type::I32).meet(all);
    let low = if joined.low >= known.low {
        joined.low
    } else if joined.low >= 0 {
        0
    } else if joined.low >= narrow.low && known.low > narrow.low {
        narrow.low
    } else {
        all.low
    };
    let high = if joined.high <= known.high {
        joined.high
    } else if joined.high <= narrow.high && known.high < narrow.high {
        narrow.high
    } else {
        all.high
    };
    Interval::new(low, high)
}

/// The result of analyzing one iteration of a loop.
struct IterationOutcome {
    /// The ranges of the loop's locals at its end; `None` if control does not reach it.
    back: Option<Values>,
    breaks: Vec<Change>,
    added: BTreeMap<LocalId, Option<Interval>>,
}

/// Whether an iteration may end early, by `continue`.
fn goes_on(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match &stmt.kind {
        StmtKind::Continue => true,
        StmtKind::If { then, otherwise, .. } => goes_on(then) || goes_on(otherwise),
        StmtKind::Assign(..)
        | StmtKind::Store { .. }
        | StmtKind::Op { .. }
        | StmtKind::Call { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Break
        | StmtKind::Return(_) => false,
    })
}

fn mirrored(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::Le => CompareOp::Ge,
        CompareOp::Gt => CompareOp::Lt,
        CompareOp::Ge => CompareOp::Le,
        CompareOp::Eq => CompareOp::Eq,
        CompareOp::Ne => CompareOp::Ne,
    }
}
