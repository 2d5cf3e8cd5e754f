//! Thread indices, array indices and trip counts: on a CPU these remain as wide as its registers.

use std::collections::BTreeSet;

use weft_artifact::Scalar;

use crate::ir::{
    Arith, Class, ExprId, Function, Leaf, LocalId, Stmt, StmtKind, for_each_expr, for_each_expr_of_block, for_each_stmt,
};

/// The locals that addresses are computed from, those computed from thread indices, and loop counters.
pub(super) fn wide_values(function: &Function) -> BTreeSet<LocalId> {
    let mut wide = BTreeSet::new();
    for_each_expr_of_block(function, &function.body, &mut |id| {
        if let Class::Address { by, .. } = function.class(id) {
            for_each_expr(function, by, &mut |part| wide.extend(function.local(part)));
        }
    });
    let mut values = Vec::new();
    for_each_stmt(&function.body, &mut |stmt| match &stmt.kind {
        StmtKind::Assign(local, value) => values.push((*local, *value)),
        StmtKind::Loop { body, step } => {
            wide.extend(step.iter().flat_map(|stmt| stmt.kind.assigned()));
            if let Some(Stmt { kind: StmtKind::If { cond, .. }, .. }) = body.first() {
                for_each_expr(function, *cond, &mut |part| wide.extend(function.local(part)));
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
        let before = wide.len();
        for &(local, value) in &values {
            if wide.contains(&local) {
                for_each_expr(function, value, &mut |part| wide.extend(function.local(part)));
            } else if is_wide(function, &wide, value) {
                wide.insert(local);
            }
        }
        if wide.len() == before {
            return wide;
        }
    }
}

/// Whether an integer is computed from such locals or thread indices. A value loaded from an address computed from them
/// does not count.
pub(super) fn is_wide(function: &Function, wide: &BTreeSet<LocalId>, id: ExprId) -> bool {
    match function.class(id) {
        Class::Leaf(Leaf::Special(_)) => true,
        Class::Leaf(Leaf::Local(local)) => wide.contains(&local),
        Class::Leaf(_) | Class::Load(_) => false,
        // A float that becomes an index is converted to 32 bits if it is clamped to them.
        Class::Arith(Arith::Convert(from)) if function.exprs[from].ty.scalar().is_some_and(Scalar::is_float) => false,
        Class::Arith(arith) => arith.operands().iter().any(|&operand| is_wide(function, wide, operand)),
        Class::Address { base, by, .. } => is_wide(function, wide, base) || is_wide(function, wide, by),
    }
}
