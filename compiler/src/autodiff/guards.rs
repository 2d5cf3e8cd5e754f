//! Barriers in a guard that ends the kernel, as after `if i >= n: return`: all threads are to reach them.
//!
//! | kernel | becomes |
//! |---|---|
//! | `if c { A; barrier; B }` | `g = c; if g { A }; barrier; if g { B }` |
//! | `if c { for k in range(n) { A; barrier; B } }` | `g = c; for k in range(n) { if g { A }; barrier; if g { B } }` |
//!
//! The threads outside of the guard then execute barriers, the loops around these, and what the tests of these loops
//! depend on: only arithmetic on values that all threads have. They do nothing after the guard, so what they assign does
//! not matter. A guard of another form stays as it is, and its barriers are refused later.

use std::collections::BTreeSet;

use super::dependence::differs_in_block;
use crate::{
    analysis::{any_expr, escapes},
    ir::{
        Block, Class, Const, ExprId, ExprKind, Function, Local, LocalId, LocalKind, Op, Stmt, StmtKind, Type, UnaryOp,
        for_each_expr, for_each_stmt,
    },
    source::Span,
};

/// Moves the guards that end a kernel, and that differ in a block, into the parts between their barriers.
pub(super) fn open(function: &mut Function) {
    if !has_barrier(&function.body) {
        return;
    }
    let differing = Differing::of(function);
    let ready = function.params.iter().copied().collect();
    let body = std::mem::take(&mut function.body);
    function.body = last(function, &differing, body, ready);
}

fn has_barrier(block: &[Stmt]) -> bool {
    let mut has = false;
    for_each_stmt(block, &mut |stmt| has |= matches!(stmt.kind, StmtKind::Op { op: Op::Barrier, .. }));
    has
}

fn locals(function: &Function, id: ExprId) -> BTreeSet<LocalId> {
    let mut all = BTreeSet::new();
    for_each_expr(function, id, &mut |id| all.extend(function.local(id)));
    all
}

/// Opens the guard that is the last statement of a list; `ready` has the locals that all threads have assigned before.
fn last(function: &mut Function, differing: &Differing, mut list: Block, mut ready: BTreeSet<LocalId>) -> Block {
    let Some(Stmt { kind: StmtKind::If { cond, then, otherwise }, span }) = list.pop_if(|stmt| is_guard(stmt)) else {
        return list;
    };
    for stmt in &list {
        ready.extend(stmt.kind.assigned());
    }
    if !differing.has(function, cond) {
        let [then, otherwise] = [then, otherwise].map(|arm| last(function, differing, arm, ready.clone()));
        list.push(Stmt { kind: StmtKind::If { cond, then, otherwise }, span });
        return list;
    }
    let mut needed = BTreeSet::new();
    for arm in [&then, &otherwise] {
        tests(function, arm, &mut needed);
    }
    let mut opener = Opener { function, needed, ready, out: Block::new(), guarded: Block::new() };
    let truth = opener.constant(true, span);
    let whole = opener.flag(truth, span);
    let kind = StmtKind::If { cond, then: then.clone(), otherwise: otherwise.clone() };
    if opener.branch(whole, (cond, &then, &otherwise), span).is_some() {
        list.append(&mut opener.out);
    } else {
        list.push(Stmt { kind, span });
    }
    list
}

fn is_guard(stmt: &Stmt) -> bool {
    matches!(&stmt.kind, StmtKind::If { then, otherwise, .. } if has_barrier(then) || has_barrier(otherwise))
}

/// Adds the locals that the tests of loops with barriers depend on.
fn tests(function: &Function, block: &[Stmt], needed: &mut BTreeSet<LocalId>) {
    for_each_stmt(block, &mut |stmt| {
        if let StmtKind::Loop { body, .. } = &stmt.kind
            && has_barrier(body)
        {
            body.iter().filter_map(|stmt| stmt.kind.exit_condition()).for_each(|exit| {
                needed.extend(locals(function, exit));
            });
        }
    });
    loop {
        let before = needed.len();
        for_each_stmt(block, &mut |stmt| {
            if let StmtKind::Assign(to, value) = stmt.kind
                && needed.contains(&to)
            {
                needed.extend(locals(function, value));
            }
        });
        if needed.len() == before {
            return;
        }
    }
}

/// Emits the statements of a guard.
struct Opener<'a> {
    function: &'a mut Function,
    /// The locals that all threads assign.
    needed: BTreeSet<LocalId>,
    /// The locals that all threads have assigned.
    ready: BTreeSet<LocalId>,
    out: Block,
    /// Statements of the guard that are not emitted yet.
    guarded: Block,
}

impl Opener<'_> {
    fn constant(&mut self, value: bool, span: Span) -> ExprId {
        self.function.edit(span).expr(ExprKind::Const(Const::Bool(value)), Type::BOOL)
    }

    /// A new flag with a value.
    fn flag(&mut self, value: ExprId, span: Span) -> LocalId {
        let flag = self.function.locals.push(Local::new("guard", LocalKind::Variable, Type::BOOL));
        self.out.push(Stmt { kind: StmtKind::Assign(flag, value), span });
        flag
    }

    /// Emits the statements so far of the threads in a guard.
    fn flush(&mut self, guard: LocalId, span: Span) {
        let then = std::mem::take(&mut self.guarded);
        if !then.is_empty() {
            let cond = self.function.edit(span).read(guard);
            self.out.push(Stmt { kind: StmtKind::If { cond, then, otherwise: Block::new() }, span });
        }
    }

    /// Whether all threads can compute a value.
    fn is_common(&self, value: ExprId) -> bool {
        let loads = any_expr(self.function, value, &|kind| matches!(kind.class(), Class::Load(_)));
        !loads && locals(self.function, value).is_subset(&self.ready)
    }

    /// Emits a list whose barriers all threads reach. `None` if it has another form.
    fn list(&mut self, guard: LocalId, list: &[Stmt]) -> Option<()> {
        for stmt in list {
            let span = stmt.span;
            if !has_barrier(std::slice::from_ref(stmt)) {
                self.plain(guard, stmt)?;
                continue;
            }
            self.flush(guard, span);
            match &stmt.kind {
                StmtKind::Op { op: Op::Barrier, .. } => self.out.push(stmt.clone()),
                StmtKind::If { cond, then, otherwise } => self.branch(guard, (*cond, then, otherwise), span)?,
                StmtKind::Loop { body, step } => self.repeat(guard, (body, step), span)?,
                StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => return None,
            }
        }
        if let Some(stmt) = list.last() {
            self.flush(guard, stmt.span);
        }
        Some(())
    }

    /// A statement without barriers.
    fn plain(&mut self, guard: LocalId, stmt: &Stmt) -> Option<()> {
        let mut assigned = BTreeSet::new();
        for_each_stmt(std::slice::from_ref(stmt), &mut |stmt| assigned.extend(stmt.kind.assigned()));
        if assigned.is_disjoint(&self.needed) {
            self.guarded.push(stmt.clone());
            return Some(());
        }
        let StmtKind::Assign(to, value) = stmt.kind else { return None };
        self.flush(guard, stmt.span);
        self.is_common(value).then(|| {
            self.out.push(stmt.clone());
            self.ready.insert(to);
        })
    }

    /// A branch with barriers: those of both arms are emitted one after the other.
    fn branch(&mut self, guard: LocalId, (cond, then, otherwise): (ExprId, &Block, &Block), span: Span) -> Option<()> {
        let [no, none] = [(); 2].map(|()| self.constant(false, span));
        let (taken, other) = (self.flag(no, span), self.flag(none, span));
        let value = self.function.copy_expr(cond);
        let not = self.function.edit(span).read(taken);
        let not = self.function.edit(span).expr(ExprKind::Unary(UnaryOp::Not, not), Type::BOOL);
        self.guarded = vec![
            Stmt { kind: StmtKind::Assign(taken, value), span },
            Stmt { kind: StmtKind::Assign(other, not), span },
        ];
        self.flush(guard, span);
        self.list(taken, then)?;
        self.list(other, otherwise)
    }

    /// A loop with barriers, which all threads run.
    fn repeat(&mut self, guard: LocalId, (body, step): (&Block, &Block), span: Span) -> Option<()> {
        let assigns = body.iter().take_while(|stmt| matches!(stmt.kind, StmtKind::Assign(..))).count();
        let (head, rest) = body.split_at(assigns);
        let (exit, rest) = rest.split_first()?;
        let test = exit.kind.exit_condition()?;
        let ways = escapes(rest);
        if ways.breaks || ways.continues {
            return None;
        }
        let outer = std::mem::take(&mut self.out);
        self.list(guard, head)?;
        if !self.is_common(test) {
            return None;
        }
        self.out.push(exit.clone());
        self.list(guard, rest)?;
        let body = std::mem::take(&mut self.out);
        self.list(guard, step)?;
        let step = std::mem::replace(&mut self.out, outer);
        self.out.push(Stmt { kind: StmtKind::Loop { body, step }, span });
        Some(())
    }
}

/// The locals that may differ in a block. It need not be exact: a guard may be opened in any case.
struct Differing(BTreeSet<LocalId>);

impl Differing {
    fn of(function: &Function) -> Self {
        let mut all = Self(BTreeSet::new());
        while all.spread(function, &function.body, false) {}
        all
    }

    fn has(&self, function: &Function, id: ExprId) -> bool {
        any_expr(function, id, &differs_in_block) || !locals(function, id).is_disjoint(&self.0)
    }

    /// Adds locals; returns whether there are new ones.
    fn spread(&mut self, function: &Function, block: &[Stmt], under: bool) -> bool {
        let before = self.0.len();
        for stmt in block {
            match &stmt.kind {
                StmtKind::Assign(to, value) => {
                    if under || self.has(function, *value) {
                        self.0.insert(*to);
                    }
                }
                StmtKind::If { cond, then, otherwise } => {
                    let under = under || self.has(function, *cond);
                    self.spread(function, then, under);
                    self.spread(function, otherwise, under);
                }
                StmtKind::Loop { body, step } => {
                    self.spread(function, body, under);
                    self.spread(function, step, under);
                }
                StmtKind::Op { .. } | StmtKind::Call { .. } => self.0.extend(stmt.kind.assigned()),
                StmtKind::Store { .. } | StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => {}
            }
        }
        self.0.len() > before
    }
}
