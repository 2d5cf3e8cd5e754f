//! The loads of an adjoint kernel from elements that only their own iteration changes.
//!
//! ```text
//! $g = load y.adjoint[$c]
//! store y.adjoint[$c] = 0
//! ```
//!
//! An unrolled loop may execute such loads of several iterations before the first store: the address is another one in
//! each iteration, and all writes of the iteration to the array follow the load, at the same address. Arrays of an adjoint
//! kernel do not overlap, and other threads do not access the element without a barrier between, which the loop has not.

use std::collections::BTreeSet;

use super::{Constant, strided::is_global};
use crate::{
    analysis::{differs_by, same},
    ir::{ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, for_each_expr, for_each_stmt},
};

/// A write to global memory: its statement's index, and its address if it is a store.
type Written = (usize, Option<ExprId>);

/// The addresses of these loads.
pub(super) fn own_loads(
    function: &Function,
    iteration: &[Stmt],
    counter: LocalId,
    constant: Option<&Constant>,
) -> BTreeSet<ExprId> {
    let Some(constant) = constant.filter(|constant| constant.is_adjoint) else { return BTreeSet::new() };
    let mut changed = BTreeSet::from([counter]);
    let mut written: Vec<(ExprId, Written)> = Vec::new();
    for (at, stmt) in iteration.iter().enumerate() {
        for_each_stmt(std::slice::from_ref(stmt), &mut |stmt| {
            changed.extend(stmt.kind.assigned());
            if let StmtKind::Store { pointer, .. } = stmt.kind {
                written.push((pointer, (at, Some(pointer))));
            } else if let StmtKind::Op { args, .. } = &stmt.kind {
                let pointers = args.iter().filter(|&&arg| function.exprs[arg].ty.scalar().is_none());
                written.extend(pointers.map(|&arg| (arg, (at, None))));
            }
        });
    }
    written.retain(|&(pointer, _)| is_global(function, pointer));
    let is_own = |at: usize, pointer: ExprId| {
        let of = constant.params_of(function, pointer);
        is_global(function, pointer)
            && !of.is_empty()
            && differs_by(function, pointer, counter, &changed)
            && written.iter().all(|&(other, (after, stored))| {
                let others = constant.params_of(function, other);
                !others.is_empty() && others.is_disjoint(&of)
                    || at <= after && stored.is_some_and(|stored| same(function, stored, pointer))
            })
    };
    let mut own = BTreeSet::new();
    for (at, stmt) in iteration.iter().enumerate().filter(|(_, stmt)| !matches!(stmt.kind, StmtKind::If { .. })) {
        for root in stmt.kind.exprs() {
            for_each_expr(function, root, &mut |id| {
                if let ExprKind::Load(pointer, _) = function.exprs[id].kind
                    && is_own(at, pointer)
                {
                    own.insert(pointer);
                }
            });
        }
    }
    own
}
