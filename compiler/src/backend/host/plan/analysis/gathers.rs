//! Detection of gathers, `a[b[i]]`: accesses whose index depends on a loaded value. A fixpoint over assignments.

use crate::ir::{Class, ExprId, Function, Leaf, LocalId, Stmt, StmtKind, for_each_expr, for_each_stmt};

/// Locals that depend on a loaded value, by index.
pub(crate) struct Loaded(Vec<bool>);

impl Loaded {
    pub(crate) fn of(function: &Function, body: &[Stmt]) -> Self {
        let mut this = Self(vec![false; function.locals.len()]);
        loop {
            let mut more: Vec<LocalId> = Vec::new();
            for_each_stmt(body, &mut |stmt| {
                if let StmtKind::Assign(local, value) = stmt.kind
                    && !this.0[local.index()]
                    && this.is_loaded(function, value)
                {
                    more.push(local);
                }
            });
            if more.is_empty() {
                return this;
            }
            for local in more {
                this.0[local.index()] = true;
            }
        }
    }

    fn is_loaded(&self, function: &Function, root: ExprId) -> bool {
        let mut loaded = false;
        for_each_expr(function, root, &mut |id| {
            loaded |= match function.class(id) {
                Class::Load(_) => true,
                Class::Leaf(Leaf::Local(local)) => self.0.get(local.index()).copied().unwrap_or(false),
                Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } => false,
            };
        });
        loaded
    }

    /// Whether the index of an address depends on a loaded value.
    pub(crate) fn is_lookup(&self, function: &Function, pointer: ExprId) -> bool {
        matches!(function.class(pointer), Class::Address { by, .. } if self.is_loaded(function, by))
    }
}
