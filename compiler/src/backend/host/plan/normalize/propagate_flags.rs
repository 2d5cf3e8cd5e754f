//! Flag propagation: replaces a phi of the constants `True` and `False`, one for each arm of a branch, by the condition
//! of the branch.
//!
//! ```text
//! if $c {                       $f = $c
//!     $f = True                 if $f {
//!     …                             …
//! } else {                      } else {
//!     $f = False
//!     …                             …
//! }                             }
//! ```
//!
//! The flag may also be cleared before a branch that has no `else`, if only assignments and stores come between.
//!
//! Legal if each arm assigns the flag on every path, and the statements before these assignments do not read it.
//!
//! Pays if this is the only assignment of the arm, and no other code reads the flag until then: only then does the flag
//! become the name of a predicate, which [`rematerialize_predicates`](super::rematerialize_predicates) can compute again
//! where a branch tests it.

use crate::{
    analysis::for_each_mention,
    ir::{Block, Const, Expr, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, Type, for_each_expr, for_each_stmt},
};

/// Propagates conditions to the flags of a body.
pub(crate) fn name(function: &mut Function, list: &mut Block) {
    for stmt in list.iter_mut() {
        stmt.kind.blocks_mut().into_iter().flatten().for_each(|inner| name(function, inner));
    }
    let mut next = 0;
    while next < list.len() {
        if let Some(named) = in_arms(function, &mut list[next]).or_else(|| before(function, list, next)) {
            list.insert(next, named);
            next += 1;
        }
        next += 1;
    }
}

/// Rewrites a branch that sets a flag in one arm and clears it in the other. Returns the assignment of the condition to
/// the flag; the branch then tests the flag.
fn in_arms(function: &mut Function, stmt: &mut Stmt) -> Option<Stmt> {
    let span = stmt.span;
    let StmtKind::If { cond, then, otherwise } = &mut stmt.kind else { return None };
    let flag = then.iter().find_map(|stmt| {
        let StmtKind::Assign(flag, _) = stmt.kind else { return None };
        sets(function, then, flag, true).and(Some(flag))
    })?;
    let (set, cleared) = (sets(function, then, flag, true)?, sets(function, otherwise, flag, false)?);
    if asks(function, *cond, flag) {
        return None;
    }
    then.remove(set);
    otherwise.remove(cleared);
    let named = Stmt { kind: StmtKind::Assign(flag, *cond), span };
    *cond = function.exprs.push(Expr { kind: ExprKind::Local(flag), ty: Type::BOOL, span });
    Some(named)
}

/// As [`in_arms`], for a flag that is cleared before the branch, with only assignments and stores between.
fn before(function: &mut Function, list: &mut Block, at: usize) -> Option<Stmt> {
    let (done, rest) = list.split_at_mut(at);
    let stmt = rest.first_mut()?;
    let span = stmt.span;
    let StmtKind::If { cond, then, otherwise } = &mut stmt.kind else { return None };
    if !otherwise.is_empty() {
        return None;
    }
    let straight =
        done.iter().rev().take_while(|stmt| matches!(stmt.kind, StmtKind::Assign(..) | StmtKind::Store { .. }));
    let straight = straight.count();
    let between = &mut done[at - straight..];
    let (cleared, flag) = between.iter().enumerate().rev().find_map(|(index, stmt)| {
        let StmtKind::Assign(flag, value) = stmt.kind else { return None };
        let sets = is_bool(function, value, false) && sets(function, then, flag, true).is_some();
        sets.then_some((index, flag))
    })?;
    if asks(function, *cond, flag) || mentions(function, &between[cleared + 1..], flag) {
        return None;
    }
    let set = sets(function, then, flag, true)?;
    then.remove(set);
    // The assignment of `False` becomes dead and is left to later passes.
    let named = Stmt { kind: StmtKind::Assign(flag, *cond), span };
    *cond = function.exprs.push(Expr { kind: ExprKind::Local(flag), ty: Type::BOOL, span });
    Some(named)
}

/// The index of the statement by which an arm assigns a constant to a flag. Only assignments and stores that do not
/// mention the flag may precede it, and no later statement of the arm may assign the flag.
fn sets(function: &Function, arm: &[Stmt], flag: LocalId, to: bool) -> Option<usize> {
    let is_set = |stmt: &Stmt| matches!(stmt.kind, StmtKind::Assign(local, value) if local == flag && is_bool(function, value, to));
    let at = arm.iter().position(is_set)?;
    let (first, rest) = (&arm[..at], &arm[at + 1..]);
    let straight = first.iter().all(|stmt| matches!(stmt.kind, StmtKind::Assign(..) | StmtKind::Store { .. }));
    let mut changes = false;
    for_each_stmt(rest, &mut |stmt| changes |= stmt.kind.assigned().contains(&flag));
    (legal!("propagate_flags.each-path", straight)
        && legal!("propagate_flags.not-read-before", !mentions(function, first, flag))
        && !changes)
        .then_some(at)
}

fn is_bool(function: &Function, id: ExprId, is: bool) -> bool {
    matches!(function.exprs[id].kind, ExprKind::Const(Const::Bool(value)) if value == is)
}

fn asks(function: &Function, root: ExprId, local: LocalId) -> bool {
    let mut asks = false;
    for_each_expr(function, root, &mut |id| asks |= function.local(id) == Some(local));
    asks
}

fn mentions(function: &Function, list: &[Stmt], local: LocalId) -> bool {
    let mut mentions = false;
    for_each_mention(function, list, &mut |seen| mentions |= seen == local);
    mentions
}
