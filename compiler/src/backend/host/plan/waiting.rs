//! Loops in which a thread waits for what another thread writes.
//!
//! Run one after the other, the first thread of a block would wait for ever for the second. A loop is taken to wait if
//! it can be left by a condition on memory that its own turns do not move on from: the condition depends on a load, or
//! on the result of an operation or a call, whose operands do not change in the loop, and on nothing else that does. So
//! `while cas(lock, 0, 1) != 0` and `while flag[0] == 0` wait; a search `while x[j] != v: j += 1`, and an update that
//! compares with what it last saw, do not.
//!
//! A function that calls itself is a loop, too. It is taken to wait if it reads memory at a place that its calls of itself
//! do not move on from, whatever it does with what it read.

use super::{
    fixed::Fixed,
    walk::{escapes, for_each_read},
};
use crate::ir::{
    Circles, Effects, ExprId, ExprKind, FuncId, Function, LocalId, Module, Space, Stmt, StmtKind, Touches, Type,
    for_each_expr, for_each_expr_of_block, for_each_stmt,
};

/// `true` if a function of the module has such a loop, or is one.
pub(crate) fn waits(module: &Module, circles: &Circles) -> bool {
    circles_wait(module, circles)
        || module.functions.iter().any(|(_, function)| {
            let mut found = false;
            for_each_stmt(&function.body, &mut |stmt| {
                if let StmtKind::Loop { body, step } = &stmt.kind {
                    found = found || loop_waits(function, body, step);
                }
            });
            found
        })
}

/// `true` if a thread may wait in functions that call themselves.
pub(crate) fn circles_wait(module: &Module, circles: &Circles) -> bool {
    !circles.is_empty() && Rounds::of(module, circles).wait()
}

/// What moves on from call to call on circles.
struct Rounds<'a> {
    module: &'a Module,
    circles: &'a Circles,
    /// Of each function, the locals that have one value, and can be computed again.
    fixed: Vec<Fixed>,
    /// By function and local: a parameter that a call on the circle gives something else, or that the function assigns.
    moves: Vec<Vec<bool>>,
}

impl<'a> Rounds<'a> {
    fn of(module: &'a Module, circles: &'a Circles) -> Self {
        let functions = || module.functions.iter().map(|(_, function)| function);
        let fixed = functions().map(|function| Fixed::of(function, &function.body)).collect();
        let moves = functions().map(|function| {
            let mut assigned = vec![false; function.locals.len()];
            for_each_stmt(&function.body, &mut |stmt| {
                stmt.kind.assigned().iter().for_each(|local| assigned[local.index()] = true);
            });
            assigned
        });
        let moves = moves.collect();
        let mut rounds = Self { module, circles, fixed, moves };
        while rounds.note() {}
        rounds
    }

    /// Notes which parameters move on; `true` if another one does.
    fn note(&mut self) -> bool {
        let mut found = Vec::new();
        for (id, function) in self.module.functions.iter() {
            for_each_stmt(&function.body, &mut |stmt| {
                let StmtKind::Call { func, args, .. } = &stmt.kind else { return };
                if !self.circles.have_both(id, *func) {
                    return;
                }
                for (&param, &arg) in self.module.functions[*func].params.iter().zip(args) {
                    if self.is_moved(id, function, arg) && !self.moves[func.index()][param.index()] {
                        found.push((func.index(), param.index()));
                    }
                }
            });
        }
        for &(func, param) in &found {
            self.moves[func][param] = true;
        }
        !found.is_empty()
    }

    /// Whether an argument is something else than a parameter as it came, and no constant.
    fn is_moved(&self, id: FuncId, function: &Function, arg: ExprId) -> bool {
        match function.local(arg) {
            Some(local) if function.params.contains(&local) => self.local_moves(id, function, local),
            Some(local) => self.fixed[id.index()].value(local).is_none_or(|value| self.is_moved(id, function, value)),
            None => {
                let mut reads = false;
                for_each_expr(function, arg, &mut |expr| {
                    let kind = &function.exprs[expr].kind;
                    reads |= matches!(kind, ExprKind::Local(_) | ExprKind::Load(..));
                });
                reads
            }
        }
    }

    /// Whether a local may differ from call to call.
    fn local_moves(&self, id: FuncId, function: &Function, local: LocalId) -> bool {
        let of_value = |value: ExprId| self.moves(id, function, value);
        match self.fixed[id.index()].value(local) {
            Some(value) => of_value(value),
            // One that is assigned in the function holds anything.
            None => !function.params.contains(&local) || self.moves[id.index()][local.index()],
        }
    }

    fn moves(&self, id: FuncId, function: &Function, root: ExprId) -> bool {
        let mut moves = false;
        for_each_read(function, root, &mut |local| moves |= self.local_moves(id, function, local));
        moves
    }

    /// Whether something reads memory where it has read in the call before.
    fn wait(&self) -> bool {
        let effects = Effects::of_module(self.module);
        let mut waits = false;
        for (id, function) in self.module.functions.iter().filter(|(id, _)| self.circles.contains(*id)) {
            let others = |ty: Type| !matches!(ty, Type::Ptr(_, Space::Local | Space::Constant));
            for_each_expr_of_block(function, &function.body, &mut |expr| {
                if let ExprKind::Load(pointer, _) = function.exprs[expr].kind {
                    waits |= others(function.exprs[pointer].ty) && !self.moves(id, function, pointer);
                }
            });
            for_each_stmt(&function.body, &mut |stmt| {
                let (reads, args) = match &stmt.kind {
                    StmtKind::Op { op, args, .. } => (op.row().memory.reads(), args),
                    StmtKind::Call { func, args, .. } if !self.circles.have_both(id, *func) => {
                        (Effects::of_function(&effects, *func).touches >= Touches::Reads, args)
                    }
                    StmtKind::Call { .. }
                    | StmtKind::Assign(..)
                    | StmtKind::Store { .. }
                    | StmtKind::If { .. }
                    | StmtKind::Loop { .. }
                    | StmtKind::Break
                    | StmtKind::Continue
                    | StmtKind::Return(_) => return,
                };
                waits |= reads && !args.iter().any(|&arg| self.moves(id, function, arg));
            });
        }
        waits
    }
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
