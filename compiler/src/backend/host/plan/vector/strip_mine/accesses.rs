//! How the loops of a strip access memory: rows of threads that share loads, and loops that access another row of a matrix
//! in each iteration.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    analysis::{for_each_read, same},
    backend::host::plan::{
        analysis::{
            strides::{Form, Forms},
            vectorizable,
        },
        plan_ir::{Node, Segment, guards::Peeler},
        vector::strip_mine::nodes::assigned_once,
    },
    ir::{
        BinaryOp, Class, ExprId, ExprKind, LocalId, Space, StmtKind, Type, for_each_expr, for_each_expr_of_stmt,
        for_each_stmt,
    },
};

/// Elements from which on a constant is the length of a matrix row that a strip does not access as a whole.
const MIN_MATRIX_ROW: i128 = 1024;

/// Most bytes of context values that a loop accesses for each byte of a matrix row that it loads. More of them are worth
/// registers.
const MAX_CARRIED: u64 = 8;

/// Whether all loops of some nodes access matrix rows as streams. In an iteration, they load at least as many elements as
/// they change context values, and no element again, and the context values that they access are at most [`MAX_CARRIED`]
/// times as large as these elements. A loop inside of a loop may load the same elements again.
pub(super) fn all_stream(peeler: &Peeler<'_>, nodes: &[Node]) -> bool {
    let mut loops = Vec::new();
    outer_loops(nodes, &mut loops);
    let mut values = BTreeMap::new();
    values_of_locals(nodes, &mut values);
    !loops.is_empty() && loops.into_iter().all(|(body, step)| streams(peeler, &values, body, step))
}

/// The value of each local that the segments of some nodes assign once, and `None` for those that they assign again.
fn values_of_locals(nodes: &[Node], values: &mut BTreeMap<LocalId, Option<ExprId>>) {
    for node in nodes {
        if let Node::Segment(segment) = node {
            for_each_stmt(&segment.body, &mut |stmt| {
                let value = if let StmtKind::Assign(_, value) = stmt.kind { Some(value) } else { None };
                for local in stmt.kind.assigned() {
                    values.entry(local).and_modify(|known| *known = None).or_insert(value);
                }
            });
        }
        node.parts().into_iter().for_each(|part| values_of_locals(part, values));
    }
}

/// Collects the bodies and the steps of the loops that are in no other loop.
fn outer_loops<'a>(nodes: &'a [Node], loops: &mut Vec<(&'a [Node], &'a [Node])>) {
    for node in nodes {
        if let Node::Loop { body, step, .. } = node {
            loops.push((body, step));
        } else {
            node.parts().into_iter().for_each(|part| outer_loops(part, loops));
        }
    }
}

fn streams(peeler: &Peeler<'_>, values: &BTreeMap<LocalId, Option<ExprId>>, body: &[Node], step: &[Node]) -> bool {
    let Peeler { function, .. } = peeler;
    let mut counts = BTreeSet::new();
    assigned_once(body, &mut counts);
    assigned_once(step, &mut counts);
    let [mut carried, mut changed] = [const { BTreeSet::<LocalId>::new() }; 2];
    let (mut loaded, mut loaded_bytes) = (Vec::<(ExprId, ExprId)>::new(), 0);
    for_each_segment_of_iteration(body, &mut |segment| {
        carried.extend(segment.load.iter().chain(&segment.store));
        changed.extend(&segment.store);
        for_each_stmt(&segment.body, &mut |stmt| {
            for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
                if let Class::Load(pointer) = function.class(id)
                    && let Some(base) = base_of_next_row(peeler, values, pointer, &counts)
                    && !loaded.iter().any(|&(other, _)| same(function, pointer, other))
                {
                    loaded.push((pointer, base));
                    loaded_bytes += function.exprs[id].ty.host_bytes();
                }
            });
        });
    });
    // A strip finds rows that other iterations have loaded in the nearest cache.
    let is_loaded_again = loaded
        .iter()
        .enumerate()
        .any(|(index, &(_, base))| loaded[..index].iter().any(|&(_, other)| same(function, base, other)));
    let carried_bytes: u64 = carried.iter().map(|&local| function.locals[local].ty.host_bytes()).sum();
    let is_stream = loaded.len() >= changed.len() && MAX_CARRIED * loaded_bytes >= carried_bytes;
    !loaded.is_empty() && is_stream && !is_loaded_again
}

/// Calls a function for the segments of one iteration of a loop, also for those in branches on which the block agrees.
fn for_each_segment_of_iteration(nodes: &[Node], with: &mut impl FnMut(&Segment)) {
    for node in nodes {
        match node {
            Node::Segment(segment) => with(segment),
            Node::If { then, otherwise, .. } => {
                for_each_segment_of_iteration(then, with);
                for_each_segment_of_iteration(otherwise, with);
            }
            Node::Once { .. }
            | Node::Guarded { .. }
            | Node::Split { .. }
            | Node::Barrier
            | Node::WarpRegion(_)
            | Node::Strips(_)
            | Node::TransposedRows(_)
            | Node::Loop { .. }
            | Node::Break
            | Node::Continue
            | Node::Return => {}
        }
    }
}

/// The array of an address in global memory that has unit stride along the row, and that differs by many elements between
/// two iterations of a loop, which assigns `counts`: it contains a product of one of these locals.
fn base_of_next_row(
    peeler: &Peeler<'_>,
    values: &BTreeMap<LocalId, Option<ExprId>>,
    pointer: ExprId,
    counts: &BTreeSet<LocalId>,
) -> Option<ExprId> {
    let Peeler { function, uniformity, fixed, .. } = peeler;
    let Type::Ptr(_, Space::Global) = function.exprs[pointer].ty else { return None };
    let Class::Address { base, by, .. } = function.class(pointer) else { return None };
    let shared = |local: LocalId| !uniformity.local_varies(local);
    let sole = |local: LocalId| values.get(&local).copied().flatten();
    let forms = Forms { function, fixed, shared: &shared, sole: &sole, axis: 0 };
    let is_counted = |id: ExprId| {
        let mut is_counted = false;
        for_each_read(function, id, &mut |local| is_counted |= counts.contains(&local));
        is_counted
    };
    let mut is_far = false;
    for_each_expr(function, by, &mut |id| {
        if let ExprKind::Binary(BinaryOp::Mul | BinaryOp::MulExact, a, b) = function.exprs[id].kind {
            let is_long = |id: ExprId| function.int(id).is_none_or(|elements| elements >= MIN_MATRIX_ROW);
            is_far |= (is_counted(a) && is_long(b)) || (is_counted(b) && is_long(a));
        }
    });
    (is_far && forms.form(base) == Form::Same && forms.form(by) == Form::Step).then_some(base)
}

/// Sets `shares` if several rows load the same elements in a loop.
pub(super) fn share_loads(peeler: &Peeler<'_>, node: &Node, in_loop: bool, shares: &mut bool) {
    if let (Node::Segment(segment), true) = (node, in_loop) {
        let Peeler { function, uniformity, fixed, .. } = peeler;
        *shares |= vectorizable::rows_share(function, &segment.body, fixed, uniformity);
    }
    for part in node.parts() {
        for inside in part {
            share_loads(peeler, inside, in_loop || matches!(node, Node::Loop { .. }), shares);
        }
    }
}
