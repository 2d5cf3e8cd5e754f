//! Prefetches at a constant number of iterations ahead in grid-stride loops of blocks that are not merged.
//!
//! ```text
//! for i in range(grid(1), n, gridsize(1)):  for i in range(grid(1), n, gridsize(1)):
//!     s += x[i]                                 prefetch x[i + 4 * gridsize(1)], one per cache line
//!                                               s += x[i]
//! ```
//!
//! It is legal because a prefetch does not fault. The address may only depend on uniform and rematerialized locals, and
//! on locals that the segment computes from these without a load.
//!
//! It pays if the stride depends on the size of the grid: an iteration of the loop then accesses one piece per block,
//! far from the piece of the iteration before, and the hardware prefetcher does not fetch it.

use crate::{
    analysis::{any_expr, for_each_read},
    backend::host::plan::{
        analysis::strides::{Form, Forms},
        plan_ir::{InterchangedLoops, Node, Segment, Stride, StridePrefetch, guards::Peeler},
    },
    ir::{Class, ExprId, ExprKind, Function, LocalId, SpecialRegister, StmtKind, Unit, for_each_expr, for_each_stmt},
};

/// The maximum number of addresses of a segment.
const MAX_ADDRESSES: usize = 4;

/// Finds the loads of segments in grid-stride loops, and sets [`Segment::stride_prefetches`].
pub(crate) fn find(peeler: &Peeler<'_>, interchanged: &InterchangedLoops, nodes: &mut [Node]) {
    for node in nodes {
        if let Node::Loop { body, step, .. } = node {
            let counts = |offset: LocalId| {
                step.iter().any(|node| {
                    let mut counts = false;
                    if let Node::Once { block, .. } = node {
                        for_each_stmt(block, &mut |stmt| counts |= stmt.kind.assigned().contains(&offset));
                    }
                    counts
                })
            };
            let stride = interchanged.strides.iter().find(|stride| counts(stride.offset));
            if let Some(stride) = stride.filter(|stride| is_of_grid(peeler, stride.step)) {
                for inside in &mut *body {
                    if let Node::Segment(segment) = inside {
                        segment.stride_prefetches = loads(peeler, *stride, segment);
                    }
                }
            }
        }
        for part in node.parts_mut() {
            find(peeler, interchanged, part);
        }
    }
}

/// Whether a stride depends on the size of the grid. The hardware prefetcher handles smaller strides.
fn is_of_grid(peeler: &Peeler<'_>, step: ExprId) -> bool {
    let Peeler { function, fixed, .. } = peeler;
    let mut of_grid = any_expr(function, step, &|kind| matches!(kind, ExprKind::Special(SpecialRegister::GridDim(_))));
    for_each_read(function, step, &mut |local| {
        of_grid |= fixed.value(local).is_some_and(|value| is_of_grid(peeler, value));
    });
    of_grid
}

fn loads(peeler: &Peeler<'_>, stride: Stride, segment: &Segment) -> Vec<StridePrefetch> {
    let Peeler { function, uniformity, fixed, .. } = peeler;
    let shared = |local: LocalId| !uniformity.local_varies(local);
    let mut assigned = vec![0_u32; function.locals.len()];
    for_each_stmt(&segment.body, &mut |stmt| {
        stmt.kind.assigned().into_iter().for_each(|local| assigned[local.index()] += 1);
    });
    // Locals that are computed only from values that are known when a thread starts.
    let mut before: Vec<(LocalId, ExprId)> = Vec::new();
    let mut found: Vec<StridePrefetch> = Vec::new();
    for stmt in &segment.body {
        let is_made = |before: &[(LocalId, ExprId)], local: LocalId| {
            shared(local) || segment.recompute.contains(&local) || before.iter().any(|&(made, _)| made == local)
        };
        let all_made = |root: ExprId| {
            let mut made = true;
            for_each_read(function, root, &mut |local| made &= is_made(&before, local));
            made
        };
        let sole = |local: LocalId| before.iter().find_map(|&(made, value)| (made == local).then_some(value));
        let forms = Forms { function, fixed, shared: &shared, sole: &sole, axis: 0 };
        for root in stmt.kind.exprs() {
            for_each_expr(function, root, &mut |id| {
                let ExprKind::Load(pointer, _) = function.exprs[id].kind else { return };
                let Class::Address { base, by, unit: Unit::Elements } = function.class(pointer) else { return };
                let row = forms.form(base) == Form::Same && forms.form(by) == Form::Step;
                let is_known = all_made(pointer) && all_made(stride.step);
                if row && is_known && found.len() < MAX_ADDRESSES {
                    found.push(StridePrefetch { pointer, step: stride.step, before: before.clone() });
                }
            });
        }
        if let StmtKind::Assign(local, value) = stmt.kind
            && assigned[local.index()] == 1
            && all_made(value)
            && legal!("next_stride.no-load", !any_expr(function, value, &|kind| matches!(kind, ExprKind::Load(..))))
        {
            before.push((local, value));
        }
    }
    found.retain(|ahead| counts(function, stride.offset, ahead));
    found
}

/// Whether an address depends on the loop's offset, so that it changes between iterations.
fn counts(function: &Function, offset: LocalId, ahead: &StridePrefetch) -> bool {
    let mut counts = false;
    for root in ahead.before.iter().map(|&(_, value)| value).chain([ahead.pointer]) {
        for_each_read(function, root, &mut |local| counts |= local == offset);
    }
    counts
}
