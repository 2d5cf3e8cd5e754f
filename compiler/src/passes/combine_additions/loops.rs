//! Loops whose iterations may run in another order: those that carry only sums.

use std::collections::{BTreeMap, BTreeSet};

use super::Combiner;
use crate::{
    analysis::{assigned_in, escapes, for_each_read},
    ir::{BinaryOp, Block, CompareOp, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, UnaryOp, for_each_stmt},
};

/// The largest stride, so that a multiple cannot overflow.
const LARGEST_STRIDE: i128 = 1 << 20;

/// `loop { if not counter < bound { break } … } step { counter += stride }`.
pub(crate) struct Counted {
    pub(crate) counter: LocalId,
    pub(crate) bound: ExprId,
    pub(crate) stride: i128,
}

/// How often a function reads each local.
pub(super) type Reads = BTreeMap<LocalId, usize>;

/// Counts the reads of locals in statements.
pub(super) fn reads_of(function: &Function, stmts: &[Stmt]) -> Reads {
    let mut reads = Reads::new();
    for_each_stmt(stmts, &mut |stmt| {
        for root in stmt.kind.exprs() {
            for_each_read(function, root, &mut |local| *reads.entry(local).or_default() += 1);
        }
    });
    reads
}

/// A counted loop with one exit, whose counter nothing else assigns.
pub(crate) fn counted(function: &Function, body: &Block, step: &Block) -> Option<Counted> {
    let [Stmt { kind: StmtKind::Assign(counter, next), .. }] = step.as_slice() else { return None };
    let ExprKind::Binary(BinaryOp::Add | BinaryOp::AddExact, now, by) = function.exprs[*next].kind else { return None };
    let stride = function.int(by).filter(|stride| (1..=LARGEST_STRIDE).contains(stride))?;
    let (head, iteration) = body.split_first()?;
    let ExprKind::Unary(UnaryOp::Not, goes_on) = function.exprs[head.kind.exit_condition()?].kind else { return None };
    let ExprKind::Compare(CompareOp::Lt, tested, bound) = function.exprs[goes_on].kind else { return None };
    let is_counter = |id| function.local(id) == Some(*counter);
    let fits =
        is_counter(now) && is_counter(tested) && !escapes(iteration).any() && !assigned_in(iteration).contains(counter);
    fits.then_some(Counted { counter: *counter, bound, stride })
}

impl Combiner<'_> {
    /// Whether the iterations of a loop without its test carry only sums (none if `has_sums` is false), and nothing else
    /// that they assign is read after them. `reads`: those of the whole function.
    pub(super) fn is_any_order(&self, iteration: &[Stmt], reads: &Reads, has_sums: bool) -> bool {
        let own = reads_of(self.function, iteration);
        let mut others = BTreeSet::new();
        for local in assigned_in(iteration) {
            let inside = own.get(&local).copied().unwrap_or(0);
            if has_sums && self.is_sum(iteration, local, inside) {
                continue;
            }
            if reads.get(&local).copied().unwrap_or(0) != inside {
                return false;
            }
            others.insert(local);
        }
        self.is_defined_first(iteration, &others, &mut BTreeSet::new())
    }

    /// Whether all assignments of a local are `local = local + e`, which are its only reads.
    fn is_sum(&self, iteration: &[Stmt], local: LocalId, reads: usize) -> bool {
        let function = &*self.function;
        let (mut sums, mut others) = (0, 0);
        for_each_stmt(iteration, &mut |stmt| {
            if !stmt.kind.assigned().contains(&local) {
                return;
            }
            let is_sum = if let StmtKind::Assign(_, value) = stmt.kind
                && let ExprKind::Binary(BinaryOp::Add | BinaryOp::Sub, before, _) = function.exprs[value].kind
            {
                function.local(before) == Some(local)
            } else {
                false
            };
            if is_sum { sums += 1 } else { others += 1 }
        });
        others == 0 && sums == reads
    }

    /// Whether each of some locals is assigned in the statements before they read it.
    fn is_defined_first(&self, stmts: &[Stmt], locals: &BTreeSet<LocalId>, defined: &mut BTreeSet<LocalId>) -> bool {
        for stmt in stmts {
            let mut is_defined = true;
            for root in stmt.kind.exprs() {
                for_each_read(self.function, root, &mut |local| {
                    is_defined &= !locals.contains(&local) || defined.contains(&local);
                });
            }
            if !is_defined {
                return false;
            }
            match &stmt.kind {
                StmtKind::If { then, otherwise, .. } => {
                    let (mut one, mut other) = (defined.clone(), defined.clone());
                    if !self.is_defined_first(then, locals, &mut one)
                        || !self.is_defined_first(otherwise, locals, &mut other)
                    {
                        return false;
                    }
                    defined.extend(one.intersection(&other).copied());
                }
                StmtKind::Loop { .. } => return false,
                StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => defined.extend(stmt.kind.assigned()),
            }
        }
        true
    }
}
