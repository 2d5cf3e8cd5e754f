//! Loops in which a thread waits for what another thread writes.
//!
//! Run one after the other, the first thread of a block would wait for ever for the second. A loop is taken to wait if
//! it can be left by a condition on memory that its own turns do not move on from: the condition depends on a load, or
//! on the result of an operation or a call, whose operands do not change in the loop, and on nothing else that does. So
//! `while cas(lock, 0, 1) != 0` and `while flag[0] == 0` wait; a search `while x[j] != v: j += 1`, and an update that
//! compares with what it last saw, do not.

use super::walk::{escapes, for_each_read};
use crate::ir::{ExprId, ExprKind, Function, LocalId, Module, Stmt, StmtKind, for_each_expr, for_each_stmt};

/// `true` if a function of the module has such a loop.
pub(crate) fn waits(module: &Module) -> bool {
    module.functions.iter().any(|(_, function)| {
        let mut found = false;
        for_each_stmt(&function.body, &mut |stmt| {
            if let StmtKind::Loop { body, step } = &stmt.kind {
                found = found || loop_waits(function, body, step);
            }
        });
        found
    })
}

/// `true` if a thread may wait in a loop with this body and step.
pub(crate) fn loop_waits(function: &Function, body: &[Stmt], step: &[Stmt]) -> bool {
    let mut inside = Inside {
        function,
        changes: vec![false; function.locals.len()],
        memory: vec![false; function.locals.len()],
        progress: vec![false; function.locals.len()],
    };
    for part in [body, step] {
        for_each_stmt(part, &mut |stmt| {
            stmt.kind.assigned().iter().for_each(|local| inside.changes[local.index()] = true);
        });
    }
    // What a local is computed from may be assigned after it.
    while [body, step].iter().fold(false, |more, part| inside.note(part) | more) {}
    inside.left_by_memory(body)
}

struct Inside<'a> {
    function: &'a Function,
    /// By the local's index: the loop assigns it.
    changes: Vec<bool>,
    /// It may hold what came from memory at an address that stays.
    memory: Vec<bool>,
    /// It may hold what the loop's own turns move on.
    progress: Vec<bool>,
}

impl Inside<'_> {
    /// Notes where locals come from; `true` if something is new.
    fn note(&mut self, part: &[Stmt]) -> bool {
        let mut more = false;
        for_each_stmt(part, &mut |stmt| {
            let stays = stmt.kind.exprs().iter().all(|&root| self.stays(root));
            for local in stmt.kind.assigned() {
                let (memory, progress) = if let StmtKind::Assign(_, value) = stmt.kind {
                    (self.reads_memory(value), self.moves(value, Some(local)))
                } else {
                    // The result of an operation or a call.
                    (stays, !stays)
                };
                more |= (memory && !self.memory[local.index()]) || (progress && !self.progress[local.index()]);
                self.memory[local.index()] |= memory;
                self.progress[local.index()] |= progress;
            }
        });
        more
    }

    /// `true` if an expression has the same operands in every turn.
    fn stays(&self, root: ExprId) -> bool {
        let mut stays = true;
        for_each_read(self.function, root, &mut |local| stays &= !self.changes[local.index()]);
        stays
    }

    fn reads_memory(&self, root: ExprId) -> bool {
        let mut found = false;
        for_each_expr(self.function, root, &mut |id| {
            if let ExprKind::Load(pointer, _) = self.function.exprs[id].kind {
                found |= self.stays(pointer);
            } else if let ExprKind::Local(local) = self.function.exprs[id].kind {
                found |= self.memory[local.index()];
            }
        });
        found
    }

    /// `true` if an expression depends on what the turns move on: a local that is computed from itself, a load from an
    /// address that changes.
    fn moves(&self, root: ExprId, of: Option<LocalId>) -> bool {
        let mut found = false;
        for_each_expr(self.function, root, &mut |id| {
            if let ExprKind::Load(pointer, _) = self.function.exprs[id].kind {
                found |= !self.stays(pointer);
            } else if let ExprKind::Local(local) = self.function.exprs[id].kind {
                found |= self.progress[local.index()] || of == Some(local);
            }
        });
        found
    }

    /// `true` if a way out of the loop depends on such memory and on nothing that moves on.
    fn left_by_memory(&self, block: &[Stmt]) -> bool {
        block.iter().any(|stmt| {
            let StmtKind::If { cond, then, otherwise } = &stmt.kind else { return false };
            let (yes, no) = (escapes(then), escapes(otherwise));
            if !(yes.breaks || yes.returns || no.breaks || no.returns) {
                return false;
            }
            (self.reads_memory(*cond) && !self.moves(*cond, None))
                || self.left_by_memory(then)
                || self.left_by_memory(otherwise)
        })
    }
}
