//! Dead code elimination in segments: an assignment of a rematerializable local is dead if its own segment does not
//! read the local, because each other segment computes the local again.

use crate::{
    analysis::{Rematerializable, for_each_read},
    backend::host::plan::plan_ir::{Node, Segment},
    ir::{Function, LocalId, Stmt, StmtKind, for_each_stmt},
};

/// Removes assignments of rematerializable locals that their own segment does not read, and segments that are empty
/// afterwards.
pub(crate) fn drop_unread(function: &Function, fixed: &Rematerializable, nodes: &mut Vec<Node>) {
    nodes.retain_mut(|node| match node {
        Node::Segment(segment) => {
            drop_in(function, fixed, segment);
            !segment.body.is_empty()
        }
        Node::If { then: first, otherwise: second, .. }
        | Node::Split { then: first, otherwise: second, .. }
        | Node::Loop { body: first, step: second, .. } => {
            drop_unread(function, fixed, first);
            drop_unread(function, fixed, second);
            true
        }
        Node::Guarded { inside, .. } => {
            drop_unread(function, fixed, inside);
            true
        }
        Node::Strips(strips) => {
            drop_unread(function, fixed, &mut strips.nodes);
            true
        }
        Node::TransposedRows(transposed) => {
            drop_unread(function, fixed, &mut transposed.nodes);
            drop_unread(function, fixed, &mut transposed.step);
            true
        }
        Node::Once { .. } | Node::Barrier | Node::WarpRegion(_) | Node::Break | Node::Continue | Node::Return => true,
    });
}

fn drop_in(function: &Function, fixed: &Rematerializable, segment: &mut Segment) {
    let mut reads = vec![0_u32; function.locals.len()];
    count_reads(function, &segment.body, &mut |local| reads[local.index()] += 1);
    // In reverse order, because a removed assignment no longer reads other locals.
    for index in (0..segment.body.len()).rev() {
        let StmtKind::Assign(local, value) = segment.body[index].kind else { continue };
        if fixed.value(local).is_some() && reads[local.index()] == 0 {
            segment.body.remove(index);
            for_each_read(function, value, &mut |read| reads[read.index()] -= 1);
        }
    }
}

fn count_reads(function: &Function, body: &[Stmt], visit: &mut dyn FnMut(LocalId)) {
    for_each_stmt(body, &mut |stmt| {
        stmt.kind.exprs().into_iter().for_each(|root| for_each_read(function, root, visit));
    });
}
