//! Un-lowering of short-circuit `and`: rewrites `if i < n and v[i] > v[i + 1]` to nested branches again.
//!
//! ```text
//! if $n { $t = $v } else { $t = False }         if $n { if $v { … } }
//! if $t { … }
//! ```
//!
//! The front end lowers `and` to a temporary, because the second operand must not be evaluated if the first one is
//! `False`.
//!
//! Legal if
//!
//! - the statement directly before the branch on the temporary is a branch that assigns the temporary at the end of
//!   each path, and assigns `False` on all paths but one;
//! - the value on that path contains a load (otherwise if-conversion makes a `select` of the branch);
//! - no other statement mentions the temporary;
//! - the branch on the temporary has no `else`, no barrier and no jump.
//!
//! Profitable because the outer condition can become a bound of the thread loop.

use crate::{
    analysis::{any_expr, escapes, for_each_mention},
    backend::host::plan::analysis::structure::holds_barrier,
    ir::{Block, Const, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, Type},
};

/// A local that a branch tests.
struct Decided {
    local: LocalId,
    /// How often the body mentions it.
    mentions: u32,
}

/// Nests the branches of a kernel's body.
pub(crate) fn nest(function: &Function, body: &mut Block) {
    let mut mentions = vec![0_u32; function.locals.len()];
    for_each_mention(function, body, &mut |local| mentions[local.index()] += 1);
    list(function, &mentions, body);
}

fn list(function: &Function, mentions: &[u32], body: &mut Block) {
    let mut out = Block::with_capacity(body.len());
    for mut stmt in std::mem::take(body) {
        if let Some(decider) = out.last_mut()
            && let Some(decided) = decided(function, mentions, &stmt)
            && decides(function, &decided, decider)
            && let StmtKind::If { then, .. } = &mut stmt.kind
        {
            let mut then = Some(std::mem::take(then));
            place(function, decided.local, decider, &mut then);
        } else {
            out.push(stmt);
        }
    }
    for stmt in &mut out {
        for inner in stmt.kind.blocks_mut().into_iter().flatten() {
            list(function, mentions, inner);
        }
    }
    *body = out;
}

/// The local that a branch tests, if the branch has no `else`, no barrier and no jump.
fn decided(function: &Function, mentions: &[u32], stmt: &Stmt) -> Option<Decided> {
    let StmtKind::If { cond, otherwise, .. } = &stmt.kind else { return None };
    let local = function.local(*cond)?;
    let is_condition =
        legal!("nest_conditions.no-else", otherwise.is_empty()) && function.locals[local].ty == Type::BOOL;
    // A barrier or a jump under two conditions would need more masks than under one.
    let is_plain = !holds_barrier(stmt) && !escapes(std::slice::from_ref(stmt)).any();
    (is_condition && is_plain).then(|| Decided { local, mentions: mentions[local.index()] })
}

/// Whether a statement is a branch that assigns the local at the end of each path: `False` on all paths but one, and a
/// value with a load on that one. Only these assignments and the branch on the local may mention it.
fn decides(function: &Function, decided: &Decided, stmt: &Stmt) -> bool {
    let mut ends = Vec::new();
    ends_of(decided.local, stmt, &mut ends);
    let mut inside = 0;
    for_each_mention(function, std::slice::from_ref(stmt), &mut |local| inside += u32::from(local == decided.local));
    let others: Vec<_> = ends.iter().filter(|&&value| !is_false(&function.exprs[value].kind)).collect();
    let loads = |value| any_expr(function, value, &|kind| matches!(kind, ExprKind::Load(..)));
    let once = legal!("nest_conditions.not-read-inside", inside as usize == ends.len())
        && legal!("nest_conditions.not-read-after", inside + 1 == decided.mentions);
    ends.len() > 1 && once && matches!(others.as_slice(), [value] if loads(**value))
}

fn is_false(kind: &ExprKind) -> bool {
    matches!(kind, ExprKind::Const(Const::Bool(false)))
}

/// Collects the values that a statement assigns to a local at the ends of its paths. If no other statement assigns the
/// local, these are the ends of all paths: code never reads a local before it assigns it.
fn ends_of(local: LocalId, stmt: &Stmt, ends: &mut Vec<ExprId>) {
    match &stmt.kind {
        StmtKind::Assign(to, value) if *to == local => ends.push(*value),
        StmtKind::If { then, otherwise, .. } => {
            [then, otherwise].into_iter().filter_map(|arm| arm.last()).for_each(|last| ends_of(local, last, ends));
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

/// Replaces the assignment of the value that is not `False` by a branch on that value around `then`, and removes the
/// other assignments.
fn place(function: &Function, local: LocalId, stmt: &mut Stmt, then: &mut Option<Block>) {
    let StmtKind::If { then: first, otherwise: second, .. } = &mut stmt.kind else { return };
    for arm in [first, second] {
        let Some(last) = arm.last_mut() else { continue };
        match last.kind {
            StmtKind::Assign(to, value) if to == local => {
                let span = last.span;
                arm.pop();
                if !is_false(&function.exprs[value].kind)
                    && let Some(then) = then.take()
                {
                    arm.push(Stmt { kind: StmtKind::If { cond: value, then, otherwise: Block::new() }, span });
                }
            }
            StmtKind::If { .. } => place(function, local, last, then),
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
