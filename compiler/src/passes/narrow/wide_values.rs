//! Thread indices, array indices and trip counts: on a CPU these remain as wide as its registers.
//!
//! A *selected* index does not, such as that of a minimum:
//!
//! ```text
//! for k in range(n):
//!     if distance[k] < best: best, found = distance[k], k
//! out[i] = table[found]
//! ```
//!
//! It is selected in each iteration, in as many lanes as the vectors of the other values have, and used after the loop.

use std::collections::BTreeSet;

use weft_artifact::Scalar;

use crate::ir::{
    Arith, Class, ExprId, Function, Leaf, LocalId, Stmt, StmtKind, for_each_expr, for_each_expr_of_block, for_each_stmt,
};

/// The locals that addresses are computed from, those computed from thread indices, and loop counters.
pub(super) fn wide_values(function: &Function) -> BTreeSet<LocalId> {
    let selected = Selections::of(function);
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
        wide.retain(|local| !selected.contains(local));
        let before = wide.len();
        for &(local, value) in &values {
            if selected.contains(&local) {
                continue;
            }
            if wide.contains(&local) {
                for_each_expr(function, value, &mut |part| wide.extend(function.local(part)));
            } else if is_wide(function, &wide, value) {
                wide.insert(local);
            }
        }
        wide.retain(|local| !selected.contains(local));
        if wide.len() == before {
            return wide;
        }
    }
}

/// The locals to which branches of loops assign copies of other values, and which these loops do not read. A bound of a
/// binary search is read: each iteration would extend and truncate it.
struct Selections<'a> {
    function: &'a Function,
    found: BTreeSet<LocalId>,
    /// Locals with other values, and those that the loops that select them read.
    excluded: BTreeSet<LocalId>,
}

impl Selections<'_> {
    fn of(function: &Function) -> BTreeSet<LocalId> {
        let mut this = Selections { function, found: BTreeSet::new(), excluded: BTreeSet::new() };
        this.list(&function.body, None);
        let Selections { mut found, excluded, .. } = this;
        found.retain(|local| !excluded.contains(local));
        found
    }

    /// Visits a list. `here` collects the locals to which branches of the innermost loop assign; `None` outside of such
    /// a branch.
    fn list(&mut self, list: &[Stmt], mut here: Option<&mut BTreeSet<LocalId>>) {
        for stmt in list {
            match &stmt.kind {
                StmtKind::Assign(local, value) => {
                    if !is_copy(self.function, *value) {
                        self.excluded.insert(*local);
                    } else if let Some(here) = &mut here {
                        here.insert(*local);
                    }
                }
                StmtKind::If { then, otherwise, .. } => {
                    self.list(then, here.as_deref_mut());
                    self.list(otherwise, here.as_deref_mut());
                }
                StmtKind::Loop { body, step } => {
                    let mut selected = BTreeSet::new();
                    for stmt in body {
                        if let StmtKind::If { then, otherwise, .. } = &stmt.kind {
                            self.list(then, Some(&mut selected));
                            self.list(otherwise, Some(&mut selected));
                        } else {
                            self.list(std::slice::from_ref(stmt), None);
                        }
                    }
                    self.list(step, None);
                    for_each_expr_of_block(self.function, body, &mut |id| {
                        self.excluded.extend(self.function.local(id).filter(|local| selected.contains(local)));
                    });
                    self.found.append(&mut selected);
                }
                StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => self.excluded.extend(stmt.kind.assigned()),
            }
        }
    }
}

/// Whether a value is a constant or another local.
fn is_copy(function: &Function, value: ExprId) -> bool {
    match function.class(value) {
        Class::Leaf(Leaf::Const(_) | Leaf::Local(_)) => true,
        Class::Arith(Arith::Convert(of)) => is_copy(function, of),
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
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
