//! Small queries on statements and expressions that several analyses share.

use std::collections::BTreeSet;

use crate::ir::{BinaryOp, Class, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, for_each_expr, for_each_stmt};

/// Calls `visit` on each local that an expression reads.
pub(crate) fn for_each_read(function: &Function, root: ExprId, visit: &mut dyn FnMut(LocalId)) {
    for_each_expr(function, root, &mut |id| {
        if let Some(local) = function.local(id) {
            visit(local);
        }
    });
}

/// Whether the expression or one of its operands satisfies `test`.
pub(crate) fn any_expr(function: &Function, root: ExprId, test: &dyn Fn(&ExprKind) -> bool) -> bool {
    let mut found = false;
    for_each_expr(function, root, &mut |id| found |= test(&function.exprs[id].kind));
    found
}

/// Whether an address is another one for each value of a counter: an array plus the counter and values that do not
/// depend on the `changed` locals, of which the counter is one.
pub(crate) fn differs_by(function: &Function, id: ExprId, counter: LocalId, changed: &BTreeSet<LocalId>) -> bool {
    let inner = |id| differs_by(function, id, counter, changed);
    let is_invariant = |id: ExprId| {
        let mut is_invariant = !any_expr(function, id, &|kind| matches!(kind.class(), Class::Load(_)));
        for_each_read(function, id, &mut |local| is_invariant &= !changed.contains(&local));
        is_invariant
    };
    if let ExprKind::Offset { base, index, scale } = function.exprs[id].kind {
        return scale > 0 && is_invariant(base) && inner(index);
    }
    if let ExprKind::Binary(BinaryOp::Add | BinaryOp::AddExact, a, b) = function.exprs[id].kind {
        return inner(a) && is_invariant(b) || inner(b) && is_invariant(a);
    }
    function.local(id) == Some(counter)
}

/// Calls `visit` on each local that some statements, or nested ones, read or assign.
pub(crate) fn for_each_mention(function: &Function, stmts: &[Stmt], visit: &mut dyn FnMut(LocalId)) {
    for_each_stmt(stmts, &mut |inner| {
        inner.kind.assigned().into_iter().for_each(&mut *visit);
        for root in inner.kind.exprs() {
            for_each_read(function, root, visit);
        }
    });
}

/// Whether some statements, or nested ones, assign a local.
pub(crate) fn assigns(stmts: &[Stmt], local: LocalId) -> bool {
    let mut found = false;
    for_each_stmt(stmts, &mut |inner| found |= inner.kind.assigned().contains(&local));
    found
}

/// The locals that some statements, or nested ones, assign.
pub(crate) fn assigned_in(stmts: &[Stmt]) -> BTreeSet<LocalId> {
    let mut found = BTreeSet::new();
    for_each_stmt(stmts, &mut |stmt| found.extend(stmt.kind.assigned()));
    found
}

/// The jumps out of the enclosing statements that a statement contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Escapes {
    /// A `Return`.
    pub returns: bool,
    /// A `Break` of an enclosing loop.
    pub breaks: bool,
    /// A `Continue` of an enclosing loop.
    pub continues: bool,
}

impl Escapes {
    /// Whether there is one.
    pub(crate) fn any(self) -> bool {
        self.returns || self.breaks || self.continues
    }
}

/// The jumps out of a list of statements.
pub(crate) fn escapes(block: &[Stmt]) -> Escapes {
    let mut all = Escapes::default();
    for stmt in block {
        match &stmt.kind {
            StmtKind::Return(_) => all.returns = true,
            StmtKind::Break => all.breaks = true,
            StmtKind::Continue => all.continues = true,
            StmtKind::If { then, otherwise, .. } => {
                for arm in [then, otherwise] {
                    let inner = escapes(arm);
                    all.returns |= inner.returns;
                    all.breaks |= inner.breaks;
                    all.continues |= inner.continues;
                }
            }
            StmtKind::Loop { body, step } => all.returns |= escapes(body).returns || escapes(step).returns,
            StmtKind::Assign(..) | StmtKind::Store { .. } | StmtKind::Op { .. } | StmtKind::Call { .. } => {}
        }
    }
    all
}
