//! The conditions that follow from the value of a flag.
//!
//! `if x > 0 and p[x - 1]: …` is lowered to a flag, whose value at the branch implies `x > 0`:
//!
//! ```text
//! if $x > 0 { $t = load $p[$x - 1] } else { $t = False }
//! if $t { … }
//! ```
//!
//! A condition is not returned if a local in it may have changed between its evaluation and the branch.

use crate::{
    analysis::any_expr,
    ir::{Const, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, UnaryOp, for_each_stmt},
};

/// The conditions, with their values, that hold where `cond` has the value `truth` after the statements `before`.
pub(super) fn implied(function: &Function, before: &[Stmt], cond: ExprId, truth: bool) -> Vec<(ExprId, bool)> {
    let (mut cond, mut truth) = (cond, truth);
    while let ExprKind::Unary(UnaryOp::Not, operand) = function.exprs[cond].kind {
        (cond, truth) = (operand, !truth);
    }
    let Some(flag) = function.local(cond) else { return Vec::new() };
    let mut search = Search { function, found: Vec::new(), assigned: Vec::new() };
    search.add(before, (flag, truth));
    let Search { mut found, assigned, .. } = search;
    let changes = |kind: &ExprKind| matches!(kind, ExprKind::Local(local) if assigned.contains(local));
    found.retain(|(implied, _)| !any_expr(function, *implied, &changes));
    found
}

struct Search<'a> {
    function: &'a Function,
    found: Vec<(ExprId, bool)>,
    /// The locals that the visited statements assign.
    assigned: Vec<LocalId>,
}

impl Search<'_> {
    /// Adds the conditions that hold if a flag has a value after some statements, of which the last one assigns it.
    fn add(&mut self, before: &[Stmt], (flag, truth): (LocalId, bool)) {
        let Some((last, earlier)) = before.split_last() else { return };
        for_each_stmt(std::slice::from_ref(last), &mut |stmt| self.assigned.extend(stmt.kind.assigned()));
        match &last.kind {
            StmtKind::Assign(local, value) if *local == flag => {
                self.found.push((*value, truth));
                if let Some(copied) = self.function.local(*value) {
                    self.add(earlier, (copied, truth));
                }
            }
            StmtKind::If { cond, then, otherwise } => {
                let (reaches, arm) = match (gives(self.function, then, flag), gives(self.function, otherwise, flag)) {
                    (Some(other), _) if other != truth => (false, otherwise),
                    (_, Some(other)) if other != truth => (true, then),
                    (Some(_) | None, Some(_) | None) => return,
                };
                self.found.push((*cond, reaches));
                self.add(arm, (flag, truth));
            }
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => {}
        }
    }
}

/// The constant that statements assign to a flag, if they do nothing else.
fn gives(function: &Function, arm: &[Stmt], flag: LocalId) -> Option<bool> {
    let [Stmt { kind: StmtKind::Assign(local, value), .. }] = arm else { return None };
    let ExprKind::Const(Const::Bool(value)) = function.exprs[*value].kind else { return None };
    (*local == flag).then_some(value)
}
