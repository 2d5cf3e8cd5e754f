//! Uses of locals in a segment: which may be read before they are assigned, and which are assigned.

use std::collections::BTreeSet;

use crate::{
    analysis::{escapes, for_each_read},
    ir::{Function, LocalId, Stmt, StmtKind, for_each_stmt},
};

type Set = BTreeSet<LocalId>;

/// Uses of locals in a segment.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    /// Locals that may be read before they are assigned (upward-exposed).
    pub exposed: Set,
    /// Locals that are assigned on some path.
    pub assigned: Set,
    /// Locals that are assigned on every path.
    pub definite: Set,
}

impl Uses {
    /// The uses in a segment's body.
    pub(crate) fn of(function: &Function, body: &[Stmt]) -> Self {
        let mut flow = Flow { function, exposed: Set::new(), breaks: Vec::new() };
        let end = flow.block(body, Set::new());
        let mut all = Set::new();
        for_each_stmt(body, &mut |stmt| all.extend(stmt.kind.assigned()));
        let definite = if escapes(body).any() { Set::new() } else { end.unwrap_or_default() };
        Self { exposed: flow.exposed, assigned: all, definite }
    }
}

/// Forward dataflow over statements, with the set of locals that are assigned on every path to the position.
struct Flow<'a> {
    function: &'a Function,
    exposed: Set,
    /// For each loop around the position, the locals that are assigned at all of its breaks; `None` before the first
    /// break.
    breaks: Vec<Option<Set>>,
}

impl Flow<'_> {
    /// The locals that are assigned at the end of a block; `None` if its end is unreachable.
    fn block(&mut self, block: &[Stmt], mut set: Set) -> Option<Set> {
        for stmt in block {
            for root in stmt.kind.exprs() {
                for_each_read(self.function, root, &mut |local| {
                    if !set.contains(&local) {
                        self.exposed.insert(local);
                    }
                });
            }
            match &stmt.kind {
                StmtKind::If { then, otherwise, .. } => {
                    let then = self.block(then, set.clone());
                    let otherwise = self.block(otherwise, set);
                    set = both(then, otherwise)?;
                }
                StmtKind::Loop { body, step } => {
                    self.breaks.push(None);
                    // A `continue` may reach the step with fewer locals assigned than the end of the body.
                    let end = self.block(body, set.clone());
                    let before_step = if escapes(body).continues { set } else { end.unwrap_or(set) };
                    self.block(step, before_step);
                    set = self.breaks.pop().flatten()?;
                }
                StmtKind::Break => {
                    if let Some(at_breaks) = self.breaks.last_mut() {
                        *at_breaks = both(at_breaks.take(), Some(set));
                    }
                    return None;
                }
                StmtKind::Continue | StmtKind::Return(_) => return None,
                other @ (StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }) => set.extend(other.assigned()),
            }
        }
        Some(set)
    }
}

/// The locals that are assigned on both paths; an unreachable path does not restrict the set.
fn both(a: Option<Set>, b: Option<Set>) -> Option<Set> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.intersection(&b).copied().collect()),
        (one, None) | (None, one) => one,
    }
}
