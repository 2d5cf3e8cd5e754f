//! Loads elements of adjoint arrays before the branches and stores in front of them.
//!
//! ```text
//! $x = load x[i]                        $x = load x[i]
//! if $x > 0 { … } else { … }            $g = load y.adjoint[i]
//! $g = load y.adjoint[i]                if $x > 0 { … } else { … }
//! ```
//!
//! Legal if no statement between assigns what the address is computed from, writes the array, or leaves the statements:
//! the load is executed anyway.
//!
//! Profitable because a compiler for GPUs moves no load over a branch or over a store to another array, so that a thread
//! waits for the memory once for each of them. A list of statements gets few such loads, since their values occupy registers.

use super::arrays::{Arrays, Memory};
use crate::{
    analysis::{Access, any_expr, escapes, for_each_access, for_each_read},
    ir::{Align, BinaryOp, Block, Class, ExprId, ExprKind, Function, Local, LocalKind, Stmt, StmtKind, for_each_stmt},
};

/// The most loads that are moved in a list of statements.
const MOST_MOVED: usize = 4;

/// Moves the loads of a function's body.
pub(super) fn run(function: &mut Function, arrays: &Arrays) {
    let mut body = std::mem::take(&mut function.body);
    Mover { function, arrays }.block(&mut body);
    function.body = body;
}

struct Mover<'a> {
    function: &'a mut Function,
    arrays: &'a Arrays,
}

/// A load of an element of an adjoint array.
struct Loaded {
    load: ExprId,
    pointer: ExprId,
    param: u32,
}

impl Mover<'_> {
    fn block(&mut self, block: &mut Block) {
        let mut n_moved = 0;
        let mut out = Block::with_capacity(block.len());
        for mut stmt in std::mem::take(block) {
            for inner in stmt.kind.blocks_mut().into_iter().flatten() {
                self.block(inner);
            }
            let loaded = self.loaded(&stmt).filter(|_| n_moved < MOST_MOVED);
            if let Some(loaded) = loaded
                && let Some(at) = self.earliest(&out, &loaded)
            {
                n_moved += 1;
                out.insert(at, self.split(&mut stmt, &loaded));
            }
            out.push(stmt);
        }
        *block = out;
    }

    /// The load of an assignment, or of an addition to an element.
    fn loaded(&self, stmt: &Stmt) -> Option<Loaded> {
        let function = &*self.function;
        let load = if let StmtKind::Assign(_, value) = stmt.kind {
            value
        } else if let StmtKind::Store { value, .. } = stmt.kind
            && let ExprKind::Binary(BinaryOp::Add, old, _) = function.exprs[value].kind
        {
            old
        } else {
            return None;
        };
        let Class::Load(pointer) = function.class(load) else { return None };
        let Memory::Param(param) = self.arrays.memory(function, pointer) else { return None };
        let is_adjoint = self.arrays.adjoints().any(|(_, adjoint)| adjoint == param);
        let reads = any_expr(function, pointer, &|kind| matches!(kind.class(), Class::Load(_)));
        (is_adjoint && !reads).then_some(Loaded { load, pointer, param })
    }

    /// The index to which a load can be moved, if there is a branch or a write after it.
    fn earliest(&self, before: &[Stmt], loaded: &Loaded) -> Option<usize> {
        let blocks = |stmt: &&Stmt| !self.commutes(stmt, loaded);
        let at = before.iter().rposition(|stmt| blocks(&stmt)).map_or(0, |last| last + 1);
        let is_passed =
            |stmt: &Stmt| matches!(stmt.kind, StmtKind::If { .. } | StmtKind::Store { .. } | StmtKind::Op { .. });
        before[at..].iter().any(is_passed).then_some(at)
    }

    /// Whether a load may be executed before a statement instead of after it.
    fn commutes(&self, stmt: &Stmt, loaded: &Loaded) -> bool {
        let function = &*self.function;
        let stmts = std::slice::from_ref(stmt);
        let mut commutes = !escapes(stmts).any();
        for_each_stmt(stmts, &mut |stmt| commutes &= !matches!(stmt.kind, StmtKind::Loop { .. }));
        for_each_access(function, stmts, &mut |access| {
            commutes &= match access {
                Access::Read(_) => true,
                Access::Write(pointer) | Access::Add(pointer) => !self.arrays.may_be(function, pointer, loaded.param),
                Access::Order | Access::Any => false,
            };
        });
        for_each_read(function, loaded.pointer, &mut |local| {
            for_each_stmt(stmts, &mut |stmt| commutes &= !stmt.kind.assigned().contains(&local));
        });
        commutes
    }

    /// Makes the load a statement of its own, which is returned, and replaces it in its statement.
    fn split(&mut self, stmt: &mut Stmt, loaded: &Loaded) -> Stmt {
        let Loaded { load, pointer, .. } = *loaded;
        let ty = self.function.exprs[load].ty;
        let temp = self.function.locals.push(Local::new("g", LocalKind::Temp, ty));
        let mut edit = self.function.edit(stmt.span);
        let own = edit.function.copy_expr(pointer);
        let value = edit.expr(ExprKind::Load(own, Align::Natural), ty);
        self.function.exprs[load].kind = ExprKind::Local(temp);
        Stmt { kind: StmtKind::Assign(temp, value), span: stmt.span }
    }
}
