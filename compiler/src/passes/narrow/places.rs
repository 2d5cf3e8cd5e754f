//! What says where a thread is, what it touches, or how often it turns: on a CPU that stays as wide as its registers.

use std::collections::BTreeSet;

use crate::ir::{
    Class, ExprId, Function, Leaf, LocalId, Stmt, StmtKind, for_each_expr, for_each_expr_of_block, for_each_stmt,
};

/// The locals that addresses are computed of, those that are computed of a thread's numbers, and those that loops count by.
pub(super) fn places(function: &Function) -> BTreeSet<LocalId> {
    let mut places = BTreeSet::new();
    for_each_expr_of_block(function, &function.body, &mut |id| {
        if let Class::Address { by, .. } = function.class(id) {
            for_each_expr(function, by, &mut |part| places.extend(function.local(part)));
        }
    });
    let mut values = Vec::new();
    for_each_stmt(&function.body, &mut |stmt| match &stmt.kind {
        StmtKind::Assign(local, value) => values.push((*local, *value)),
        StmtKind::Loop { body, step } => {
            places.extend(step.iter().flat_map(|stmt| stmt.kind.assigned()));
            if let Some(Stmt { kind: StmtKind::If { cond, .. }, .. }) = body.first() {
                for_each_expr(function, *cond, &mut |part| places.extend(function.local(part)));
            }
        }
        StmtKind::Store { .. }
        | StmtKind::Op { .. }
        | StmtKind::Call { .. }
        | StmtKind::If { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return(_) => {}
    });
    loop {
        let before = places.len();
        for &(local, value) in &values {
            if places.contains(&local) {
                for_each_expr(function, value, &mut |part| places.extend(function.local(part)));
            } else if says_place(function, &places, value) {
                places.insert(local);
            }
        }
        if places.len() == before {
            return places;
        }
    }
}

/// Whether an expression is computed of such locals or of a thread's numbers. What is read from there says nothing of them.
pub(super) fn says_place(function: &Function, places: &BTreeSet<LocalId>, id: ExprId) -> bool {
    match function.class(id) {
        Class::Leaf(Leaf::Special(_)) => true,
        Class::Leaf(Leaf::Local(local)) => places.contains(&local),
        Class::Leaf(_) | Class::Load(_) => false,
        Class::Arith(arith) => arith.operands().iter().any(|&operand| says_place(function, places, operand)),
        Class::Address { base, by, .. } => says_place(function, places, base) || says_place(function, places, by),
    }
}
