//! Walks over statements and expressions.

use super::{Block, ExprId, Function, Stmt};

/// Calls `visit` on every statement of a block and of the blocks inside it, outer before inner.
pub fn for_each_stmt<'a>(block: &'a Block, visit: &mut dyn FnMut(&'a Stmt)) {
    use super::StmtKind::{If, Loop};
    for stmt in block {
        visit(stmt);
        if let If { then, otherwise, .. } = &stmt.kind {
            for_each_stmt(then, visit);
            for_each_stmt(otherwise, visit);
        }
        if let Loop { body, step } = &stmt.kind {
            for_each_stmt(body, visit);
            for_each_stmt(step, visit);
        }
    }
}

/// As [`for_each_stmt`], to change statements; a statement is visited before those inside it.
pub fn for_each_stmt_mut(block: &mut Block, visit: &mut dyn FnMut(&mut Stmt)) {
    use super::StmtKind::{If, Loop};
    for stmt in block {
        visit(stmt);
        if let If { then, otherwise, .. } = &mut stmt.kind {
            for_each_stmt_mut(then, visit);
            for_each_stmt_mut(otherwise, visit);
        }
        if let Loop { body, step } = &mut stmt.kind {
            for_each_stmt_mut(body, visit);
            for_each_stmt_mut(step, visit);
        }
    }
}

/// Calls `visit` on an expression and everything below it, parents before children.
pub fn for_each_expr(function: &Function, root: ExprId, visit: &mut dyn FnMut(ExprId)) {
    use super::ExprKind as Kind;
    visit(root);
    match &function.exprs[root].kind {
        Kind::Const(_)
        | Kind::Local(_)
        | Kind::Special(_)
        | Kind::SharedBase(_)
        | Kind::DynamicShared
        | Kind::LocalBase(_) => {}
        Kind::Unary(_, a) | Kind::Convert(a) | Kind::Load(a) => for_each_expr(function, *a, visit),
        Kind::Binary(_, a, b)
        | Kind::Compare(_, a, b)
        | Kind::Offset { base: a, index: b, .. }
        | Kind::ByteOffset { base: a, bytes: b }
        | Kind::Wrap { index: a, extent: b } => {
            for_each_expr(function, *a, visit);
            for_each_expr(function, *b, visit);
        }
        Kind::Select(a, b, c) => {
            for id in [a, b, c] {
                for_each_expr(function, *id, visit);
            }
        }
        Kind::Math(_, args) => {
            for id in args {
                for_each_expr(function, *id, visit);
            }
        }
    }
}
