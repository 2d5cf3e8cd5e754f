//! Recursive functions in which a thread waits for what another thread writes.
//!
//! A recursive function is a loop. It is classified as waiting if it reads memory at an address that its recursive
//! calls do not change, however it uses the value.

use super::{ir_queries::for_each_read, rematerializable::Rematerializable};
use crate::ir::{
    Circles, Effects, ExprId, ExprKind, FuncId, Function, LocalId, Module, Space, StmtKind, Touches, Type,
    for_each_expr, for_each_expr_of_block, for_each_stmt,
};

/// Whether a thread may wait in recursive functions.
pub(crate) fn circles_wait(module: &Module, circles: &Circles) -> bool {
    !circles.is_empty() && WaitingRecursion::of(module, circles).wait()
}

/// Values that change from call to call in recursive functions.
struct WaitingRecursion<'a> {
    module: &'a Module,
    circles: &'a Circles,
    /// The rematerializable locals of each function.
    fixed: Vec<Rematerializable>,
    /// By function and local: whether it is a parameter for which a recursive call passes another value, or that the
    /// function assigns.
    moves: Vec<Vec<bool>>,
}

impl<'a> WaitingRecursion<'a> {
    fn of(module: &'a Module, circles: &'a Circles) -> Self {
        let functions = || module.functions.iter().map(|(_, function)| function);
        let fixed = functions().map(|function| Rematerializable::of(function, &function.body)).collect();
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

    /// Updates the parameters that change; returns whether another one does.
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

    /// Whether an argument differs from a parameter of the caller passed on unchanged, and is not a constant.
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

    /// Whether the value of a local may differ between recursive calls.
    fn local_moves(&self, id: FuncId, function: &Function, local: LocalId) -> bool {
        let of_value = |value: ExprId| self.moves(id, function, value);
        match self.fixed[id.index()].value(local) {
            Some(value) => of_value(value),
            // A local that the function assigns may hold any value.
            None => !function.params.contains(&local) || self.moves[id.index()][local.index()],
        }
    }

    fn moves(&self, id: FuncId, function: &Function, root: ExprId) -> bool {
        let mut moves = false;
        for_each_read(function, root, &mut |local| moves |= self.local_moves(id, function, local));
        moves
    }

    /// Whether a function reads memory at the same address as its caller in the recursion.
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
