//! What nodes contain that may become a strip: loops, and the locals that threads carry.

use std::collections::BTreeSet;

use crate::{
    backend::host::plan::{
        analysis::vectorizable,
        plan_ir::{MaskedLoop, Node, for_each_segment},
    },
    ir::{ExprKind, Function, LocalArrayId, LocalId, for_each_expr_of_stmt, for_each_stmt},
};

/// Counts how many segments load each local.
pub(super) fn count_loads(nodes: &mut [Node], loads: &mut [u32]) {
    for_each_segment(nodes, &mut |segment| segment.load.iter().for_each(|local| loads[local.index()] += 1));
}

/// The context locals that segments load or store, those that they store, and the number of their expressions.
pub(super) fn used(function: &Function, nodes: &mut [Node]) -> (BTreeSet<LocalId>, BTreeSet<LocalId>, usize) {
    let (mut slots, mut stored, mut exprs) = (BTreeSet::new(), BTreeSet::new(), 0);
    for_each_segment(nodes, &mut |segment| {
        slots.extend(segment.load.iter().chain(&segment.store).copied());
        stored.extend(segment.store.iter().copied());
        for_each_stmt(&segment.body, &mut |stmt| {
            for_each_expr_of_stmt(function, &stmt.kind, &mut |_| exprs += 1);
        });
    });
    (slots, stored, exprs)
}

/// `true` if a thread carries a value into an iteration of a loop.
pub(super) fn carries(node: &Node, in_loop: bool) -> bool {
    let in_loop = in_loop || matches!(node, Node::Loop { .. });
    matches!(node, Node::Segment(segment) if in_loop && !segment.load.is_empty())
        || node.parts().iter().any(|part| part.iter().any(|inside| carries(inside, in_loop)))
}

/// `true` if a thread calls math functions in a loop, except in loops with the counters `strided_math` and in
/// `masked_loops`.
pub(super) fn computes(
    (function, strided_math, masked_loops): (&Function, &[LocalId], &[MaskedLoop]),
    node: &Node,
    in_loop: bool,
) -> bool {
    if let Node::Loop { counter, body, .. } = node
        && (counter.is_some_and(|counter| strided_math.contains(&counter))
            || body.iter().any(|node| leaves(node, masked_loops)))
    {
        return false;
    }
    let in_loop = in_loop || matches!(node, Node::Loop { .. });
    let here = (function, strided_math, masked_loops);
    matches!(node, Node::Segment(segment) if in_loop && vectorizable::calls_math(function, &segment.body))
        || node.parts().iter().any(|part| part.iter().any(|inside| computes(here, inside, in_loop)))
}

/// `true` for a node that tests whether lanes are active in a loop with divergent exits.
pub(super) fn leaves(node: &Node, masked_loops: &[MaskedLoop]) -> bool {
    matches!(node, Node::If { cond, .. } if masked_loops.iter().any(|of| of.few_active == *cond))
}

/// `true` if a node contains a loop with divergent exits.
pub(super) fn has_masked_loop(node: &Node, masked_loops: &[MaskedLoop]) -> bool {
    leaves(node, masked_loops)
        || node.parts().iter().any(|part| part.iter().any(|inside| has_masked_loop(inside, masked_loops)))
}

pub(super) fn holds_loop(node: &Node) -> bool {
    matches!(node, Node::Loop { .. }) || node.parts().iter().any(|part| part.iter().any(holds_loop))
}

/// Collects the counters of loops.
pub(super) fn counters_of(nodes: &[Node], counters: &mut Vec<LocalId>) {
    for node in nodes {
        if let Node::Loop { counter, .. } = node {
            counters.extend(counter);
        }
        for part in node.parts() {
            counters_of(part, counters);
        }
    }
}

/// Collects the locals that nodes may load before they store them.
pub(super) fn expose(nodes: &[Node], done: &mut BTreeSet<LocalId>, exposed: &mut BTreeSet<LocalId>) {
    for node in nodes {
        if let Node::Segment(segment) = node {
            exposed.extend(segment.load.iter().filter(|local| !done.contains(local)));
            done.extend(segment.store.iter().copied());
        }
        for part in node.parts() {
            // Each part may be skipped.
            expose(part, &mut done.clone(), exposed);
        }
    }
}

/// Collects the locals that statements of the whole block assign.
pub(super) fn assigned_once(nodes: &[Node], found: &mut BTreeSet<LocalId>) {
    for node in nodes {
        if let Node::Once { block, .. } = node {
            for_each_stmt(block, &mut |stmt| found.extend(stmt.kind.assigned()));
        }
        for part in node.parts() {
            assigned_once(part, found);
        }
    }
}

/// Those of some thread-local arrays that the segments of nodes mention.
pub(super) fn mentioned_arrays(function: &Function, nodes: &[Node], arrays: &[LocalArrayId]) -> Vec<LocalArrayId> {
    let mut found = BTreeSet::new();
    mention(function, nodes, &mut found);
    arrays.iter().copied().filter(|array| found.contains(array)).collect()
}

fn mention(function: &Function, nodes: &[Node], found: &mut BTreeSet<LocalArrayId>) {
    for node in nodes {
        if let Node::Segment(segment) = node {
            for body in segment.bodies() {
                for_each_stmt(body, &mut |stmt| {
                    for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
                        if let ExprKind::LocalBase(array) = function.exprs[id].kind {
                            found.insert(array);
                        }
                    });
                });
            }
        }
        node.parts().into_iter().for_each(|part| mention(function, part, found));
    }
}
