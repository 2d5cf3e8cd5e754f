//! Live-range splitting: gives each web of a local (a definition and the uses that it reaches) a local of its own.
//!
//! ```text
//! $i = 0                        $i = 0
//! loop { … $i … }               loop { … $i … }
//! $i = 0                        $i' = 0
//! loop { … $i … }               loop { … $i' … }
//! ```
//!
//! Legal if each mention of the local is dominated by an assignment in the same list of statements, or in a list around
//! it: then no value is live after its list, or in the next iteration. An assignment that reads the local, such as the
//! second one of `west = tx - 1; west = max(west, 0)`, gets a new local, too.
//!
//! Profitable because an analysis describes a local by all its assignments: an induction variable that a second loop
//! reuses would be recognized in neither of the loops.

use crate::{
    analysis::for_each_mention,
    ir::{
        Block, ExprId, ExprKind, Function, LocalId, Module, Stmt, StmtKind, for_each_expr_of_stmt, for_each_stmt,
        for_each_stmt_mut,
    },
};

/// Splits the live ranges of the locals of all functions.
pub(crate) fn run(module: &mut Module) {
    for (_, function) in module.functions.iter_mut() {
        let mut body = std::mem::take(&mut function.body);
        split(function, &mut body);
        function.body = body;
    }
}

/// Splits the live ranges of a body's locals.
pub(crate) fn split(function: &mut Function, body: &mut Block) {
    let mut counts = vec![0_u32; function.locals.len()];
    for_each_stmt(body, &mut |stmt| stmt.kind.assigned().iter().for_each(|local| counts[local.index()] += 1));
    let several = function.locals.iter().map(|(local, _)| local).filter(|local| counts[local.index()] > 1);
    for local in several.collect::<Vec<_>>() {
        split_one(function, body, local);
    }
}

/// Splits the live range of one local.
pub(crate) fn split_one(function: &mut Function, body: &mut Block, local: LocalId) {
    if !function.params.contains(&local) && may_split(function, body, local) {
        Split { function, local, is_first: true }.list(body);
    }
}

/// Whether a statement starts a web: it assigns the local without reading it.
fn begins(function: &Function, stmt: &Stmt, local: LocalId) -> bool {
    matches!(stmt.kind, StmtKind::Assign(to, _) if to == local) && !reads_itself(function, stmt, local)
}

fn reads_itself(function: &Function, stmt: &Stmt, local: LocalId) -> bool {
    let mut reads = false;
    for_each_expr_of_stmt(function, &stmt.kind, &mut |id| reads |= function.local(id) == Some(local));
    reads
}

fn mentions(function: &Function, stmt: &Stmt, local: LocalId) -> bool {
    let mut mentions = false;
    for_each_mention(function, std::slice::from_ref(stmt), &mut |seen| mentions |= seen == local);
    mentions
}

/// Whether each mention of a local in a list is dominated by an assignment that starts a web, in the same list or in a
/// list nested in it.
fn may_split(function: &Function, list: &[Stmt], local: LocalId) -> bool {
    for stmt in list {
        if begins(function, stmt, local) {
            return true;
        }
        if !mentions(function, stmt, local) {
            continue;
        }
        let own = stmt.kind.assigned().contains(&local) || reads_itself(function, stmt, local);
        let inside = match &stmt.kind {
            StmtKind::If { then: first, otherwise: second, .. } | StmtKind::Loop { body: first, step: second } => {
                may_split(function, first, local) && may_split(function, second, local)
            }
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => false,
        };
        if own || !inside {
            return false;
        }
    }
    true
}

/// Gives each web of a local its own local; the first web keeps the original one.
struct Split<'a> {
    function: &'a mut Function,
    local: LocalId,
    is_first: bool,
}

impl Split<'_> {
    fn list(&mut self, list: &mut Block) {
        let mut next = 0;
        while next < list.len() {
            let stmt = &mut list[next];
            next += 1;
            if !begins(self.function, stmt, self.local) {
                stmt.kind.blocks_mut().into_iter().flatten().for_each(|inner| self.list(inner));
                continue;
            }
            let fresh = if std::mem::take(&mut self.is_first) {
                self.local
            } else {
                let local = self.function.locals[self.local].clone();
                self.function.locals.push(local)
            };
            stmt.kind.for_each_assigned_mut(&mut |to| *to = fresh);
            // The web extends to the last statement that reads this value, or a value computed from it in the same
            // list.
            let value = list[next..].iter().take_while(|stmt| !begins(self.function, stmt, self.local));
            let reads = |stmt: &Stmt| !may_split(self.function, std::slice::from_ref(stmt), self.local);
            let reach = value.enumerate().filter(|(_, stmt)| reads(stmt)).last().map_or(0, |(index, _)| index + 1);
            let mut name = fresh;
            for stmt in &mut list[next..next + reach] {
                name = self.rename_or_go_on(stmt, name);
            }
            next += reach;
        }
    }

    /// Renames the local in a statement of the list that starts the web. An assignment to the local that reads it
    /// (`west = max(west, 0)`) gets another new local. Returns the local that the next statements use.
    fn rename_or_go_on(&mut self, stmt: &mut Stmt, name: LocalId) -> LocalId {
        let next = match stmt.kind {
            StmtKind::Assign(to, _) if to == self.local => {
                let local = self.function.locals[self.local].clone();
                self.function.locals.push(local)
            }
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => name,
        };
        self.rename(stmt, name);
        if next != name {
            stmt.kind.for_each_assigned_mut(&mut |to| *to = next);
        }
        next
    }

    fn rename(&mut self, stmt: &mut Stmt, name: LocalId) {
        if name == self.local {
            return;
        }
        let local = self.local;
        let mut assign = |stmt: &mut Stmt| {
            stmt.kind.for_each_assigned_mut(&mut |to| {
                if *to == local {
                    *to = name;
                }
            });
        };
        assign(stmt);
        for inner in stmt.kind.blocks_mut().into_iter().flatten() {
            for_each_stmt_mut(inner, &mut assign);
        }
        let mut reads: Vec<ExprId> = Vec::new();
        for_each_stmt(std::slice::from_ref(stmt), &mut |inner| {
            for_each_expr_of_stmt(self.function, &inner.kind, &mut |id| {
                reads.extend(Some(id).filter(|&id| self.function.local(id) == Some(local)));
            });
        });
        for id in reads {
            self.function.exprs[id].kind = ExprKind::Local(name);
        }
    }
}
