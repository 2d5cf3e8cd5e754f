//! Uniformity in a block whose body is cut at its barriers: statements outside of segments run once for the block.

use crate::{
    analysis::{Rematerializable, escapes},
    backend::host::plan::analysis::{divergence::Uniformity, guarded::Regions, structure::holds_barrier},
    ir::{Function, LocalId, Stmt, StmtKind, for_each_stmt},
};

/// The guarded regions of a body, and its divergence. A fixpoint: a local that threads assign is varying, so that only
/// code that runs once for the block assigns uniform locals.
pub(crate) fn shared_by_block(function: &Function, body: &[Stmt], fixed: &Rematerializable) -> (Regions, Uniformity) {
    let (mut pinned, mut differing) = (Vec::new(), Vec::new());
    loop {
        let regions = Regions::of(function, body, fixed, &differing);
        let uniformity = Uniformity::of(function, body, &regions, &pinned);
        let assigned = assigned_by_threads(function, body, &uniformity);
        let varying_offsets: Vec<LocalId> =
            regions.offsets().filter(|&offset| uniformity.local_varies(offset)).collect();
        if assigned.is_empty() && varying_offsets.is_empty() {
            return (regions, uniformity);
        }
        pinned.extend(assigned);
        differing.extend(varying_offsets);
    }
}

/// All locals are varying, except parameters.
pub(crate) fn all_own(function: &Function) -> Uniformity {
    let varying: Vec<_> = function.locals.iter().map(|(id, _)| id).filter(|id| !function.params.contains(id)).collect();
    Uniformity::of(function, &[], &Regions::default(), &varying)
}

/// Uniform locals that a thread's own code assigns. They must be varying, because only code that runs once for the
/// block may assign a local that the block shares.
fn assigned_by_threads(function: &Function, body: &[Stmt], uniformity: &Uniformity) -> Vec<LocalId> {
    let mut found = Vec::new();
    for stmt in body {
        if lifts(function, uniformity, stmt) {
            if let StmtKind::If { then: first, otherwise: second, .. } | StmtKind::Loop { body: first, step: second } =
                &stmt.kind
            {
                found.extend(assigned_by_threads(function, first, uniformity));
                found.extend(assigned_by_threads(function, second, uniformity));
            }
        } else if !runs_once(function, uniformity, stmt) {
            for_each_stmt(std::slice::from_ref(stmt), &mut |inner| {
                found.extend(inner.kind.assigned().into_iter().filter(|&local| !uniformity.local_varies(local)));
            });
        }
    }
    found
}

/// Whether a statement becomes control flow of the block.
pub(crate) fn lifts(function: &Function, uniformity: &Uniformity, stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Loop { .. } => holds_barrier(stmt),
        StmtKind::If { cond, .. } => {
            holds_barrier(stmt) || (escapes(std::slice::from_ref(stmt)).any() && !uniformity.varies(function, *cond))
        }
        StmtKind::Assign(..)
        | StmtKind::Store { .. }
        | StmtKind::Op { .. }
        | StmtKind::Call { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return(_) => false,
    }
}

/// Whether a statement only computes uniform values, so that it runs once for the block.
pub(crate) fn runs_once(function: &Function, uniformity: &Uniformity, stmt: &Stmt) -> bool {
    if escapes(std::slice::from_ref(stmt)).any() {
        return false;
    }
    let mut once = true;
    for_each_stmt(std::slice::from_ref(stmt), &mut |inner| {
        once &= match &inner.kind {
            StmtKind::Assign(local, _) => !uniformity.local_varies(*local),
            StmtKind::If { cond, .. } => !uniformity.varies(function, *cond),
            StmtKind::Loop { .. } | StmtKind::Break | StmtKind::Continue => true,
            StmtKind::Store { .. } | StmtKind::Op { .. } | StmtKind::Call { .. } | StmtKind::Return(_) => false,
        };
    });
    once
}

/// By local: it is assigned once, to a value that is uniform in the block.
pub(crate) fn alike(function: &Function, body: &[Stmt]) -> Vec<bool> {
    let mut counts = vec![0_u32; function.locals.len()];
    for_each_stmt(body, &mut |stmt| stmt.kind.assigned().iter().for_each(|local| counts[local.index()] += 1));
    let uniformity = Uniformity::of(function, body, &Regions::default(), &[]);
    let is_alike = |(id, _): (LocalId, &_)| counts[id.index()] == 1 && !uniformity.local_varies(id);
    function.locals.iter().map(is_alike).collect()
}
