//! Whether loops that are profitable or legal only as part of a strip are in one.

use crate::{
    backend::host::plan::{
        plan_ir::{MaskedLoop, Node, Plan, Strips},
        vector::strip_mine::nodes::{counters_of, has_masked_loop, mentioned_arrays},
    },
    ir::{Function, LocalArrayId, LocalId},
};

/// `true` if every loop with divergent exits is in a strip whose lanes each have a flag that says whether the lane has
/// left.
pub(crate) fn masked_loops_are_in_strips(nodes: &[Node], masked_loops: &[MaskedLoop]) -> bool {
    masked_loops.iter().all(|one| is_strip_mined(nodes, one))
}

/// `true` if every loop with divergent exits is in a strip that also has the assignments of its first exit.
pub(crate) fn exit_assignments_are_in_strips(nodes: &[Node], masked_loops: &[MaskedLoop]) -> bool {
    masked_loops
        .iter()
        .all(|one| strip_of_masked_loop(nodes, one).is_some_and(|strips| one.has_exit_branch_in(&strips.nodes)))
}

fn is_strip_mined(nodes: &[Node], one: &MaskedLoop) -> bool {
    strip_of_masked_loop(nodes, one).is_some_and(|strips| strips.lane_locals.contains(&one.alive))
}

/// The strip that contains a loop with divergent exits.
fn strip_of_masked_loop<'a>(nodes: &'a [Node], one: &MaskedLoop) -> Option<&'a Strips> {
    nodes.iter().find_map(|node| {
        if let Node::Strips(strips) = node {
            let holds = strips.nodes.iter().any(|inside| has_masked_loop(inside, std::slice::from_ref(one)));
            return holds.then_some(&**strips);
        }
        node.parts().iter().find_map(|part| strip_of_masked_loop(part, one))
    })
}

/// As [`masked_loops_are_in_strips`], where a whole warp is one strip whose lanes have slots for the locals `slots`.
pub(crate) fn masked_loops_are_in_warp(nodes: &[Node], masked_loops: &[MaskedLoop], slots: &[LocalId]) -> bool {
    masked_loops.iter().all(|one| {
        let is_here = nodes.iter().any(|node| has_masked_loop(node, std::slice::from_ref(one)));
        is_here && slots.contains(&one.alive)
    })
}

/// `true` if each loop with one of these counters is in a strip.
pub(crate) fn are_in_strips(nodes: &[Node], strided: &[LocalId]) -> bool {
    let mut counters = Vec::new();
    in_strips(nodes, &|_| true, &mut counters);
    strided.iter().all(|counter| counters.contains(counter))
}

/// `true` if each loop with one of these counters is in a strip with transposed accesses.
pub(crate) fn are_transposed(nodes: &[Node], strided: &[LocalId]) -> bool {
    let mut counters = Vec::new();
    in_strips(nodes, &|strips| strips.transposed, &mut counters);
    strided.iter().all(|counter| counters.contains(counter))
}

fn in_strips(nodes: &[Node], which: &dyn Fn(&Strips) -> bool, counters: &mut Vec<LocalId>) {
    for node in nodes {
        if let Node::Strips(strips) = node
            && which(strips)
        {
            counters_of(&strips.nodes, counters);
        }
        for part in node.parts() {
            in_strips(part, which, counters);
        }
    }
}

/// Whether each array of lanes is in one strip, which is in no loop, and each loop that was masked with them is in a strip.
pub(crate) fn lane_arrays_are_in_strips(plan: &Plan) -> bool {
    let function = &plan.module.functions[plan.kernel];
    let are_masked = plan.lane_arrays.is_empty() || masked_loops_are_in_strips(&plan.cut.nodes, &plan.masked_loops);
    are_masked
        && plan.lane_arrays.iter().all(|&array| {
            let mut strips = 0;
            count_strips(function, &plan.cut.nodes, array, false, &mut strips) && strips == 1
        })
}

/// Counts the strips that have an array of lanes. Returns `false` if other nodes mention the array.
fn count_strips(function: &Function, nodes: &[Node], array: LocalArrayId, repeats: bool, strips: &mut u32) -> bool {
    nodes.iter().all(|node| {
        let is_here = || !mentioned_arrays(function, std::slice::from_ref(node), &[array]).is_empty();
        match node {
            Node::Strips(inside) if inside.lane_arrays.contains(&array) => {
                *strips += 1;
                !repeats
            }
            Node::Strips(_) | Node::Segment(_) => !is_here(),
            Node::Loop { .. } => node.parts().into_iter().all(|part| count_strips(function, part, array, true, strips)),
            Node::Once { .. }
            | Node::If { .. }
            | Node::Guarded { .. }
            | Node::Split { .. }
            | Node::Barrier
            | Node::WarpRegion(_)
            | Node::TransposedRows(_)
            | Node::Break
            | Node::Continue
            | Node::Return => node.parts().into_iter().all(|part| count_strips(function, part, array, repeats, strips)),
        }
    })
}
