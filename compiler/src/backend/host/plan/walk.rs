//! Small questions about statements and expressions that several steps of the plan ask.

use crate::{
    ir::{Block, ExprId, ExprKind, Function, LocalId, Op, Stmt, StmtKind, Together, for_each_expr, for_each_stmt},
    source::Span,
};

/// Calls `visit` on each local that an expression reads.
pub(crate) fn for_each_read(function: &Function, root: ExprId, visit: &mut dyn FnMut(LocalId)) {
    for_each_expr(function, root, &mut |id| {
        if let Some(local) = function.local(id) {
            visit(local);
        }
    });
}

/// `true` if the expression or one below it satisfies `test`.
pub(crate) fn any_expr(function: &Function, root: ExprId, test: &dyn Fn(&ExprKind) -> bool) -> bool {
    let mut found = false;
    for_each_expr(function, root, &mut |id| found |= test(&function.exprs[id].kind));
    found
}

/// Calls `visit` on each local that some statements, or those inside them, read or assign.
pub(crate) fn for_each_mention(function: &Function, stmts: &[Stmt], visit: &mut dyn FnMut(LocalId)) {
    for_each_stmt(stmts, &mut |inner| {
        inner.kind.assigned().into_iter().for_each(&mut *visit);
        for root in inner.kind.exprs() {
            for_each_read(function, root, visit);
        }
    });
}

/// Which ways out of the statements around it a statement holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Escapes {
    /// A `Return`.
    pub returns: bool,
    /// A `Break` of a loop outside.
    pub breaks: bool,
    /// A `Continue` of a loop outside.
    pub continues: bool,
}

impl Escapes {
    /// `true` if there is one.
    pub(crate) fn any(self) -> bool {
        self.returns || self.breaks || self.continues
    }
}

/// The ways out of a list of statements.
pub(crate) fn escapes(block: &[Stmt]) -> Escapes {
    let mut all = Escapes::default();
    for stmt in block {
        match &stmt.kind {
            StmtKind::Return(_) => all.returns = true,
            StmtKind::Break => all.breaks = true,
            StmtKind::Continue => all.continues = true,
            StmtKind::If { then, otherwise, .. } => {
                for arm in [then, otherwise] {
                    let inner = escapes(arm);
                    all.returns |= inner.returns;
                    all.breaks |= inner.breaks;
                    all.continues |= inner.continues;
                }
            }
            StmtKind::Loop { body, step } => all.returns |= escapes(body).returns || escapes(step).returns,
            StmtKind::Assign(..) | StmtKind::Store { .. } | StmtKind::Op { .. } | StmtKind::Call { .. } => {}
        }
    }
    all
}

/// `true` if threads must reach a statement together.
pub(crate) fn is_barrier(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Op { op, .. } => op.row().together > Together::None,
        StmtKind::Assign(..)
        | StmtKind::Store { .. }
        | StmtKind::Call { .. }
        | StmtKind::If { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return(_) => false,
    }
}

/// `true` if a statement, or one inside it, is a barrier.
pub(crate) fn holds_barrier(stmt: &Stmt) -> bool {
    let mut found = false;
    for_each_stmt(std::slice::from_ref(stmt), &mut |inner| found |= is_barrier(inner));
    found
}

/// A way to a statement: the indices of the statements around it, each followed in its first block, and its own.
pub(crate) type Path = Vec<usize>;

/// The list that a way without its last index leads to.
pub(crate) fn list_at<'a>(body: &'a mut Block, path: &[usize]) -> Option<&'a mut Block> {
    let mut list = body;
    for &index in path {
        match &mut list.get_mut(index)?.kind {
            StmtKind::If { then: first, .. } | StmtKind::Loop { body: first, .. } => list = first,
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => return None,
        }
    }
    Some(list)
}

/// Marks the end of a turn: any order of threads between cuts is right.
pub(crate) fn cut_here(span: Span) -> Stmt {
    Stmt { kind: StmtKind::Op { op: Op::Barrier, results: Vec::new(), args: Vec::new() }, span }
}
