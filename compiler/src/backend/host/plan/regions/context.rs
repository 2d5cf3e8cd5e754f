//! Liveness across barriers: the locals and local arrays that are live from one parallel region to another, and so need
//! a context array with an element for each thread.
//!
//! A local is live across a barrier if a region may read it before assigning it. Each region works on copies in
//! registers: it loads such locals when a thread enters the region, and stores those that it assigns when the thread
//! leaves it. Rematerializable locals need no context array; each region that reads them computes them again.
//!
//! The analysis also decides which regions may be annotated as parallel for LLVM.

use std::collections::BTreeSet;

use crate::{
    analysis::{Rematerializable, for_each_mention},
    backend::host::plan::{
        analysis::{dependence, divergence::Uniformity, guarded::recompute, liveness::Uses},
        plan_ir::{LiveAcross, Node, Ordered, Segment, for_each_segment, for_each_split},
    },
    ir::{Effects, ExprId, ExprKind, Function, LocalArrayId, LocalId, Space, StmtKind, Type, for_each_stmt},
    source::Span,
};

type Set = BTreeSet<LocalId>;

/// Fills in which locals each segment loads, stores and recomputes, and whether it is parallel. No thread writes the
/// memory that the parameters in `read_only` point to. Strips store the arrays in `lane_arrays` by lane. Also returns the segments that are not parallel, by their first
/// statements, and why.
pub(crate) fn analyse(
    function: &Function,
    nodes: &mut [Node],
    uniformity: &Uniformity,
    fixed: &Rematerializable,
    functions: &[Effects],
    (read_only, lane_arrays): (&[LocalId], &[LocalArrayId]),
) -> (LiveAcross, Vec<(Span, Ordered)>) {
    let mut live_across = Set::new();
    for_each_split(nodes, &mut |cond| {
        live_across.insert(cond);
    });
    let own = |local: LocalId| uniformity.local_varies(local);
    for_each_segment(nodes, &mut |segment| {
        let uses = Uses::of(function, &segment.body);
        for_each_mention(function, &segment.body, &mut |local| {
            if own(local) && !segment.locals.contains(&local) {
                segment.locals.push(local);
            }
        });
        for &local in uses.exposed.iter().filter(|&&local| own(local)) {
            if fixed.value(local).is_some() {
                recompute(function, fixed, &own, local, &mut segment.recompute);
            } else {
                live_across.insert(local);
                segment.load.push(local);
            }
        }
        for &local in &segment.recompute {
            if !segment.locals.contains(&local) {
                segment.locals.push(local);
            }
        }
        // A local that only some paths assign is loaded too, so that its copy holds the right value when it is stored.
        let partly =
            uses.assigned.iter().filter(|local| !legal!("context.always-assigned", uses.definite.contains(local)));
        segment.load.extend(partly.filter(|local| !uses.exposed.contains(local)));
        segment.store = uses.assigned.into_iter().collect();
    });
    for_each_segment(nodes, &mut |segment| {
        segment.load.retain(|local| live_across.contains(local));
        segment.store.retain(|local| live_across.contains(local));
    });
    let mut arrays = live_arrays(function, nodes, fixed, &live_across);
    arrays.retain(|array| !lane_arrays.contains(array));
    let mut all_ordered = Vec::new();
    for_each_segment(nodes, &mut |segment| {
        let mut ordered = None;
        let mut own_array = false;
        for_each_array(function, fixed, segment, &mut |array| {
            own_array |= !arrays.contains(&array) && !lane_arrays.contains(&array);
        });
        for_each_stmt(&segment.body, &mut |stmt| {
            let effects = match &stmt.kind {
                StmtKind::Op { op, .. } if op.row().is_noticed() => Some(Ordered::Observed(stmt.span)),
                StmtKind::Call { func, .. } => {
                    let effects = Effects::of_function(functions, *func);
                    (effects.noticed || effects.local_arrays).then_some(Ordered::Call(stmt.span))
                }
                StmtKind::Op { .. }
                | StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::If { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => None,
            };
            ordered = ordered.or(effects.filter(|_| !legal!("context.unobserved", false)));
        });
        let dependent = dependence::check(function, fixed, functions, (read_only, lane_arrays), &segment.body)
            .err()
            .filter(|_| !legal!("context.no-dependence", false));
        ordered = ordered
            .or((!legal!("context.no-thread-array", !own_array)).then_some(Ordered::ThreadArray))
            .or(dependent.map(Ordered::Dependence));
        segment.parallel = ordered.is_none();
        if let (Some(ordered), Some(first)) = (ordered, segment.body.first()) {
            all_ordered.push((first.span, ordered));
        }
    });
    (LiveAcross { locals: live_across.into_iter().collect(), arrays }, all_ordered)
}

/// Arrays that may be live across a barrier: those that several segments mention, or one that may run repeatedly. All
/// arrays are, if a pointer that may point into one is.
fn live_arrays(
    function: &Function,
    nodes: &mut [Node],
    fixed: &Rematerializable,
    live_across: &Set,
) -> Vec<LocalArrayId> {
    let points = |local: &LocalId| matches!(function.locals[*local].ty, Type::Ptr(_, Space::Local | Space::Generic));
    let pointer_is_live = live_across.iter().any(points);
    let mut seen = BTreeSet::new();
    let mut twice = BTreeSet::new();
    for_each_segment(nodes, &mut |segment| {
        let mut here = BTreeSet::new();
        for_each_array(function, fixed, segment, &mut |array| {
            here.insert(array);
        });
        for array in here {
            if !legal!("context.one-region", seen.insert(array))
                || !legal!("context.runs-once", !segment.repeats)
                || !legal!("context.no-live-pointer", !pointer_is_live)
            {
                twice.insert(array);
            }
        }
    });
    twice.into_iter().collect()
}

fn for_each_array(
    function: &Function,
    fixed: &Rematerializable,
    segment: &Segment,
    visit: &mut dyn FnMut(LocalArrayId),
) {
    let mut look = |root: ExprId| {
        crate::ir::for_each_expr(function, root, &mut |id| {
            if let ExprKind::LocalBase(array) = function.exprs[id].kind {
                visit(array);
            }
        });
    };
    segment.recompute.iter().filter_map(|&local| fixed.value(local)).for_each(&mut look);
    for_each_stmt(&segment.body, &mut |stmt| stmt.kind.exprs().into_iter().for_each(&mut look));
}
