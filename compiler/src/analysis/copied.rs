//! The uses of loaded values: locals that only carry them to a store, and the inputs of values.

use std::collections::HashMap;

use crate::ir::{ExprId, ExprKind, Function, LocalId, StmtKind, for_each_expr_of_stmt, for_each_stmt};

/// Groups of locals that only carry a loaded value to a store, and have no other use. Locals that are assigned to each
/// other form a group.
pub(crate) fn copied(function: &Function) -> Vec<Vec<LocalId>> {
    let n = function.locals.len();
    let mut good = vec![true; n];
    let mut loaded = vec![false; n];
    let mut links: Vec<(LocalId, LocalId)> = Vec::new();
    for param in &function.params {
        good[param.index()] = false;
    }
    for_each_stmt(&function.body, &mut |stmt| {
        let mut spare: Option<ExprId> = None;
        match &stmt.kind {
            StmtKind::Assign(local, value) => {
                if let Some(from) = function.local(*value) {
                    links.push((*local, from));
                    spare = Some(*value);
                } else if matches!(function.exprs[*value].kind, ExprKind::Load(..)) {
                    loaded[local.index()] = true;
                } else {
                    good[local.index()] = false;
                }
            }
            StmtKind::Store { value, .. } => {
                if matches!(function.exprs[*value].kind, ExprKind::Local(_)) {
                    spare = Some(*value);
                }
            }
            StmtKind::Op { results, .. } | StmtKind::Call { results, .. } => {
                for local in results {
                    good[local.index()] = false;
                }
            }
            StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => {}
        }
        for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
            if let ExprKind::Local(local) = function.exprs[id].kind
                && Some(id) != spare
            {
                good[local.index()] = false;
            }
        });
    });
    // A local that is connected to a rejected one is rejected, too.
    loop {
        let mut changed = false;
        for (a, b) in &links {
            let both = good[a.index()] && good[b.index()];
            changed |= good[a.index()] != both || good[b.index()] != both;
            good[a.index()] = both;
            good[b.index()] = both;
        }
        if !changed {
            break;
        }
    }
    let mut class: Vec<usize> = (0..n).collect();
    for (a, b) in links.iter().filter(|(a, b)| good[a.index()] && good[b.index()]) {
        let (from, to) = (class[a.index()], class[b.index()]);
        for one in class.iter_mut().filter(|one| **one == from) {
            *one = to;
        }
    }
    let mut classes: HashMap<usize, Vec<LocalId>> = HashMap::new();
    for (id, _) in function.locals.iter().filter(|(id, _)| good[id.index()]) {
        classes.entry(class[id.index()]).or_default().push(id);
    }
    let mut classes: Vec<_> = classes.into_values().filter(|class| class.iter().any(|id| loaded[id.index()])).collect();
    classes.sort_by_key(|class| class.first().map(|id| id.index()));
    classes
}

/// The inputs of a value: its loads, the locals in it, and the locals in the addresses of its loads.
#[derive(Debug, Default)]
pub(crate) struct ValueInputs {
    /// The pointers of the loads, without loads in addresses.
    pub loads: Vec<ExprId>,
    /// The locals in the value.
    pub values: Vec<LocalId>,
    /// The locals in addresses of its loads.
    pub in_addresses: Vec<LocalId>,
}

impl ValueInputs {
    /// The inputs of an expression.
    pub(crate) fn of(function: &Function, root: ExprId) -> Self {
        let mut parts = Self::default();
        parts.add(function, root, false);
        parts
    }

    fn add(&mut self, function: &Function, root: ExprId, in_address: bool) {
        let kind = &function.exprs[root].kind;
        if let Some(local) = function.local(root) {
            if in_address {
                self.in_addresses.push(local);
            } else {
                self.values.push(local);
            }
        } else if let ExprKind::Load(pointer, _) = kind {
            if !in_address {
                self.loads.push(*pointer);
            }
            self.add(function, *pointer, true);
        } else {
            for operand in kind.operands() {
                self.add(function, operand, in_address);
            }
        }
    }
}
