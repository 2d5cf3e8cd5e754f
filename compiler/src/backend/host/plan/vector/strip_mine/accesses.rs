//! How the loops of a strip access memory: rows of threads that share loads, and loops that access another row of a matrix
//! in each iteration.

use std::collections::BTreeSet;

use crate::{
    analysis::for_each_read,
    backend::host::plan::{
        analysis::{
            strides::{Form, Forms},
            vectorizable,
        },
        plan_ir::{Node, guards::Peeler},
        vector::strip_mine::nodes::assigned_once,
    },
    ir::{
        BinaryOp, Class, ExprId, ExprKind, LocalId, Space, Type, for_each_expr, for_each_expr_of_stmt, for_each_stmt,
    },
};

/// Elements from which on a constant is the length of a matrix row that a strip does not access as a whole.
const MIN_MATRIX_ROW: i128 = 1024;

/// Whether a loop loads at least as many elements of matrix rows in an iteration as each thread carries values.
pub(super) fn streams(peeler: &Peeler<'_>, node: &Node) -> bool {
    let Peeler { function, .. } = peeler;
    if let Node::Loop { body, step, .. } = node {
        let mut counts = BTreeSet::new();
        assigned_once(body, &mut counts);
        assigned_once(step, &mut counts);
        let (mut carried, mut loaded) = (BTreeSet::<LocalId>::new(), 0);
        for node in body {
            let Node::Segment(segment) = node else { continue };
            carried.extend(segment.load.iter().chain(&segment.store).copied());
            for_each_stmt(&segment.body, &mut |stmt| {
                for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
                    if let Class::Load(pointer) = function.class(id)
                        && is_of_next_row(peeler, pointer, &counts)
                    {
                        loaded += 1;
                    }
                });
            });
        }
        // A loop inside may load the same elements again.
        return loaded > 0 && loaded >= carried.len();
    }
    node.parts().into_iter().flatten().any(|part| streams(peeler, part))
}

/// Whether an address in global memory has unit stride along the row, and differs by many elements between two
/// iterations of a loop, which assigns `counts`: it contains a product of one of these locals.
fn is_of_next_row(peeler: &Peeler<'_>, pointer: ExprId, counts: &BTreeSet<LocalId>) -> bool {
    let Peeler { function, uniformity, fixed, .. } = peeler;
    let Type::Ptr(_, Space::Global) = function.exprs[pointer].ty else { return false };
    let Class::Address { base, by, .. } = function.class(pointer) else { return false };
    let shared = |local: LocalId| !uniformity.local_varies(local);
    let forms = Forms { function, fixed, shared: &shared, sole: &|_| None, axis: 0 };
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
    is_far && forms.form(base) == Form::Same && forms.form(by) == Form::Step
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
