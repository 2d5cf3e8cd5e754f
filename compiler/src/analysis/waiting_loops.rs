//! Loops in which a thread waits for what another thread writes.
//!
//! If the threads of a block ran one after the other, the first thread would wait forever for the second. A loop is
//! classified as waiting if it has an exit condition on memory on which its own iterations make no progress: the
//! condition depends on a load, or on the result of an operation or a call, whose operands are loop-invariant, and on
//! nothing else that changes. So `while cas(lock, 0, 1) != 0` and `while flag[0] == 0` wait. A search `while x[j] != v:
//! j += 1`, and an update that compares with the last value seen, do not. Neither does a loop that writes the memory
//! that it reads in each iteration, such as one that draws random numbers, nor one that reads only the thread's own
//! memory.
//!
//! A loop also waits if such a condition decides whether an iteration makes progress: `while t < n: if add(ready, t, 0)
//! != 0: t += 1` (see [`no_progress`](super::no_progress)).
//!
//! A function that calls itself is a loop, too ([`waiting_recursion`](super::waiting_recursion)).

use super::{
    ir_queries::{escapes, for_each_read},
    no_progress::{NoProgressIterations, exposed},
    reads::{Reads, is_own_space, same},
    waiting_recursion::circles_wait,
};
use crate::ir::{
    Circles, ExprId, ExprKind, FuncId, Function, LocalId, Module, Op, Stmt, StmtKind, for_each_expr, for_each_stmt,
};

/// The memory that a waiting thread polls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wait {
    /// The loads that the exit conditions depend on.
    pub loads: Vec<ExprId>,
    /// Whether the exit conditions also depend on reads of a function, or of an operation that is not atomic.
    pub calls: bool,
}

impl Wait {
    fn add(&mut self, other: Self) {
        self.loads.extend(other.loads);
        self.calls |= other.calls;
    }
}

/// For each function of a module, the memory that it reads and whether it waits for other threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitAnalysis {
    /// The memory that each function reads.
    reads: Vec<Reads>,
    /// Whether recursive functions wait for other threads.
    pub circles: bool,
}

impl WaitAnalysis {
    /// Analyzes a module.
    pub(crate) fn of(module: &Module, circles: &Circles) -> Self {
        Self { reads: Reads::of_module(module), circles: circles_wait(module, circles) }
    }

    /// Whether a thread may wait anywhere in the module.
    pub(crate) fn in_module(&self, module: &Module) -> bool {
        self.circles
            || module.functions.iter().any(|(_, function)| {
                let mut found = false;
                for_each_stmt(&function.body, &mut |stmt| {
                    if let StmtKind::Loop { body, step } = &stmt.kind {
                        found = found || self.in_loop(function, body, step);
                    }
                });
                found
            })
    }

    /// Whether a thread may wait in a loop with this body and step.
    pub(crate) fn in_loop(&self, function: &Function, body: &[Stmt], step: &[Stmt]) -> bool {
        self.wait(function, body, step).is_some()
    }

    /// How a thread may wait in a loop with this body and step; `None` if it does not.
    pub(crate) fn wait(&self, function: &Function, body: &[Stmt], step: &[Stmt]) -> Option<Wait> {
        let exposed = exposed(function, body, step);
        let mut all = Vec::new();
        for part in [body, step] {
            for_each_stmt(part, &mut |stmt| all.push(stmt));
        }
        let inside = Inside::of(self, function, &all, &exposed, own_stores(body, step));
        let mut conds = Vec::new();
        inside.exits_by_memory(body, &mut conds);
        let mut wait = (!conds.is_empty()).then(|| inside.what_is_read(&all, &conds));
        let idle = NoProgressIterations::of(function, body, step, &exposed);
        if !idle.decisions.is_empty() {
            let inside = Inside::of(self, function, &idle.stmts, &exposed, own_stores(body, step));
            let conds: Vec<_> = idle.decisions.iter().copied().filter(|&cond| inside.waits_for(cond)).collect();
            if !conds.is_empty() {
                wait.get_or_insert_default().add(inside.what_is_read(&idle.stmts, &conds));
            }
        }
        wait
    }

    fn reads(&self, func: FuncId) -> Reads {
        self.reads.get(func.index()).copied().unwrap_or(Reads::Others)
    }
}

/// The pointers that each iteration of a loop stores to.
fn own_stores(body: &[Stmt], step: &[Stmt]) -> Vec<ExprId> {
    let mut pointers = Vec::new();
    for part in [body, step] {
        for stmt in part {
            if let StmtKind::Store { pointer, .. } = &stmt.kind {
                pointers.push(*pointer);
            }
            if escapes(std::slice::from_ref(stmt)).continues {
                break;
            }
        }
    }
    pointers
}

/// The origin of the values of locals in the iterations of a loop.
struct Inside<'a> {
    waiting: &'a WaitAnalysis,
    function: &'a Function,
    /// By the local's index: whether it may vary between iterations.
    varies: Vec<bool>,
    /// By the local's index: whether it may hold a value from memory at a loop-invariant address.
    memory: Vec<bool>,
    /// By the local's index: whether it may hold a value that the loop's own iterations change.
    progress: Vec<bool>,
    /// The pointers that each iteration stores to.
    stores: Vec<ExprId>,
}

impl<'a> Inside<'a> {
    /// Analyzes the statements of the iterations; `exposed` has the locals that an iteration may read before it assigns
    /// them.
    fn of(
        waiting: &'a WaitAnalysis,
        function: &'a Function,
        stmts: &[&Stmt],
        exposed: &[bool],
        stores: Vec<ExprId>,
    ) -> Self {
        let none = vec![false; function.locals.len()];
        let mut inside = Self { waiting, function, varies: none.clone(), memory: none.clone(), progress: none, stores };
        inside.note_what_varies(stmts, exposed);
        // The inputs of a local may be assigned after it.
        while stmts.iter().fold(false, |more, stmt| inside.note(stmt) | more) {}
        inside
    }

    /// A local that an iteration assigns once, before it reads it, and from loop-invariant values, is loop-invariant.
    fn note_what_varies(&mut self, stmts: &[&Stmt], exposed: &[bool]) {
        let mut counts = vec![0_u32; self.function.locals.len()];
        for stmt in stmts {
            for local in stmt.kind.assigned() {
                counts[local.index()] += 1;
                let again = matches!(stmt.kind, StmtKind::Assign(_, value) if !self.loads(value));
                self.varies[local.index()] |= exposed[local.index()] || counts[local.index()] > 1 || !again;
            }
        }
        loop {
            let mut more = false;
            for stmt in stmts {
                if let StmtKind::Assign(local, value) = stmt.kind {
                    more |= !self.varies[local.index()] && !self.is_invariant(value);
                    self.varies[local.index()] |= !self.is_invariant(value);
                }
            }
            if !more {
                break;
            }
        }
    }

    /// Updates the origin of a statement's locals; returns whether something has changed.
    fn note(&mut self, stmt: &Stmt) -> bool {
        let mut more = false;
        for local in stmt.kind.assigned() {
            let (memory, progress) = self.source(stmt, local);
            more |= (memory && !self.memory[local.index()]) || (progress && !self.progress[local.index()]);
            self.memory[local.index()] |= memory;
            self.progress[local.index()] |= progress;
        }
        more
    }

    /// Whether a value that a statement assigns to a local depends on memory, and whether the iterations change it.
    fn source(&self, stmt: &Stmt, local: LocalId) -> (bool, bool) {
        let exprs = stmt.kind.exprs();
        let of_values = || {
            (exprs.iter().any(|&root| self.reads_memory(root)), exprs.iter().any(|&root| self.moves(root, Some(local))))
        };
        let is_invariant = || exprs.iter().all(|&root| self.is_invariant(root));
        match &stmt.kind {
            StmtKind::Call { func, .. } => match self.waiting.reads(*func) {
                Reads::Nothing => of_values(),
                Reads::Own => (false, true),
                Reads::Steps | Reads::Others => (is_invariant(), !is_invariant()),
            },
            StmtKind::Op { .. } => (is_invariant(), !is_invariant()),
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => of_values(),
        }
    }

    fn loads(&self, root: ExprId) -> bool {
        let mut found = false;
        for_each_expr(self.function, root, &mut |id| {
            found |= matches!(self.function.exprs[id].kind, ExprKind::Load(..));
        });
        found
    }

    /// Whether the operands of an expression are loop-invariant.
    fn is_invariant(&self, root: ExprId) -> bool {
        let mut is_invariant = true;
        for_each_read(self.function, root, &mut |local| is_invariant &= !self.varies[local.index()]);
        is_invariant
    }

    /// Whether each iteration stores to the address.
    fn is_stored(&self, pointer: ExprId) -> bool {
        self.stores.iter().any(|&store| same(self.function, store, pointer))
    }

    /// Whether a load reads the same address in each iteration, and other threads may have written it.
    fn reads_again(&self, load: ExprId) -> bool {
        let ExprKind::Load(pointer, _) = self.function.exprs[load].kind else { return false };
        !is_own_space(self.function, pointer) && self.is_invariant(pointer) && !self.is_stored(pointer)
    }

    fn reads_memory(&self, root: ExprId) -> bool {
        let mut found = false;
        for_each_expr(self.function, root, &mut |id| {
            if let ExprKind::Load(..) = self.function.exprs[id].kind {
                found |= self.reads_again(id);
            } else if let ExprKind::Local(local) = self.function.exprs[id].kind {
                found |= self.memory[local.index()];
            }
        });
        found
    }

    /// Whether an expression depends on progress of the iterations: on a local that is computed from itself, on a load
    /// from an address that changes, or on a load from an address that each iteration stores to.
    fn moves(&self, root: ExprId, of: Option<LocalId>) -> bool {
        let mut found = false;
        for_each_expr(self.function, root, &mut |id| {
            if let ExprKind::Load(pointer, _) = self.function.exprs[id].kind {
                found |= !self.is_invariant(pointer) || self.is_stored(pointer);
            } else if let ExprKind::Local(local) = self.function.exprs[id].kind {
                found |= self.progress[local.index()] || of == Some(local);
            }
        });
        found
    }

    /// Whether a condition depends on memory that others write, and on no progress of the iterations.
    fn waits_for(&self, cond: ExprId) -> bool {
        self.reads_memory(cond) && !self.moves(cond, None)
    }

    /// The exit conditions of the loop that depend on such memory and on no progress.
    fn exits_by_memory(&self, block: &[Stmt], conds: &mut Vec<ExprId>) {
        for stmt in block {
            let StmtKind::If { cond, then, otherwise } = &stmt.kind else { continue };
            let (yes, no) = (escapes(then), escapes(otherwise));
            if !(yes.breaks || yes.returns || no.breaks || no.returns) {
                continue;
            }
            if self.waits_for(*cond) {
                conds.push(*cond);
            }
            self.exits_by_memory(then, conds);
            self.exits_by_memory(otherwise, conds);
        }
    }

    /// The memory that such conditions depend on, through the locals that these statements assign.
    fn what_is_read(&self, stmts: &[&Stmt], conds: &[ExprId]) -> Wait {
        let mut wait = Wait::default();
        let mut followed = vec![false; self.function.locals.len()];
        let mut open = conds.to_vec();
        while let Some(root) = open.pop() {
            for_each_expr(self.function, root, &mut |id| {
                if self.reads_again(id) && !wait.loads.contains(&id) {
                    wait.loads.push(id);
                }
            });
            for_each_read(self.function, root, &mut |local| {
                if !self.memory[local.index()] || std::mem::replace(&mut followed[local.index()], true) {
                    return;
                }
                for stmt in stmts.iter().filter(|stmt| stmt.kind.assigned().contains(&local)) {
                    open.extend(stmt.kind.exprs());
                    wait.calls |= self.calls(stmt);
                }
            });
        }
        wait
    }

    /// Whether the result of a statement comes from memory that a function, or an operation that is not atomic, reads.
    fn calls(&self, stmt: &Stmt) -> bool {
        match &stmt.kind {
            StmtKind::Call { func, .. } => self.waiting.reads(*func) == Reads::Others,
            StmtKind::Op { op, .. } => op.row().memory.reads() && !matches!(op, Op::Atomic { .. }),
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => false,
        }
    }
}
