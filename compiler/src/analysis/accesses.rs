//! The accesses to memory of some statements, for passes that move accesses or combine them.

use crate::ir::{AtomicOp, Class, ExprId, Function, Op, Stmt, StmtKind, Type, for_each_expr_of_stmt, for_each_stmt};

/// An access to memory, with its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// A load, or another operation that only reads.
    Read(ExprId),
    /// A store, or another operation that may write.
    Write(ExprId),
    /// An atomic addition whose result is not used.
    Add(ExprId),
    /// No access, but it orders the accesses of threads: a barrier, a fence.
    Order,
    /// An operation that may access any memory, and a call.
    Any,
}

/// Calls `visit` on each access of some statements and of nested ones.
pub(crate) fn for_each_access(function: &Function, stmts: &[Stmt], visit: &mut dyn FnMut(Access)) {
    for_each_stmt(stmts, &mut |stmt| {
        match &stmt.kind {
            StmtKind::Store { pointer, .. } => visit(Access::Write(*pointer)),
            StmtKind::Op { op, results, args } => of_operation(function, *op, results.is_empty(), args, visit),
            StmtKind::Call { .. } => visit(Access::Any),
            StmtKind::Assign(..)
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => {}
        }
        for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
            if let Class::Load(pointer) = function.class(id) {
                visit(Access::Read(pointer));
            }
        });
    });
}

fn of_operation(function: &Function, op: Op, no_result: bool, args: &[ExprId], visit: &mut dyn FnMut(Access)) {
    let row = op.row();
    if row.orders {
        visit(Access::Order);
    }
    if row.memory == crate::ir::Memory::All {
        visit(Access::Any);
    }
    let is_pointer = |id: &&ExprId| matches!(function.exprs[**id].ty, Type::Ptr(..));
    let (read, written) = op.accessed(args);
    if let Op::Atomic { op: AtomicOp::Add, .. } = op
        && let (&[pointer, _], true) = (args, no_result)
    {
        return visit(Access::Add(pointer));
    }
    written.iter().filter(is_pointer).for_each(|&pointer| visit(Access::Write(pointer)));
    read.iter().filter(is_pointer).for_each(|&pointer| visit(Access::Read(pointer)));
}
