//! Whether the value of a variable is read exactly once.

use super::{
    ast::{Expr, ExprKind, Function, Stmt, StmtKind},
    names::{bound_once, free_names},
};

/// Whether a function binds a name by one assignment and reads it by one expression, which each execution of the
/// assignment reaches at most once: after it in the same block, and not in a nested loop or function.
pub fn is_read_once(function: &Function, name: &str) -> bool {
    let all: usize = function.body.iter().map(|stmt| reads(stmt, name, true)).sum();
    all == 1 && bound_once(function).contains(name) && read_after(&function.body, name)
}

/// Whether the name is read after its assignment, anywhere in the block.
fn read_after(block: &[Stmt], name: &str) -> bool {
    block.iter().enumerate().any(|(at, stmt)| match &stmt.kind {
        StmtKind::Assign { targets, .. } => {
            matches!(targets.as_slice(), [Expr { kind: ExprKind::Name(bound), .. }] if bound == name)
                && block[at + 1..].iter().any(|later| reads(later, name, false) > 0)
        }
        StmtKind::If { body, orelse, .. }
        | StmtKind::While { body, orelse, .. }
        | StmtKind::For { body, orelse, .. } => read_after(body, name) || read_after(orelse, name),
        StmtKind::AnnAssign { .. }
        | StmtKind::AugAssign { .. }
        | StmtKind::Expr(_)
        | StmtKind::Return(_)
        | StmtKind::Raise(_)
        | StmtKind::Assert { .. }
        | StmtKind::FunctionDef(_)
        | StmtKind::Delete(_)
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Pass
        | StmtKind::Global(_)
        | StmtKind::Nonlocal(_)
        | StmtKind::Unsupported(_) => false,
    })
}

/// The number of reads of a name in a statement; without `repeated`, reads that may run several times are not counted.
fn reads(stmt: &Stmt, name: &str, repeated: bool) -> usize {
    let block = |stmts: &[Stmt]| stmts.iter().map(|stmt| reads(stmt, name, repeated)).sum::<usize>();
    let of = |expr: &Expr| in_expr(expr, name, repeated);
    let maybe = |expr: &Option<Expr>| expr.as_ref().map_or(0, of);
    match &stmt.kind {
        StmtKind::Assign { targets, value } => {
            of(value) + targets.iter().map(|target| in_target(target, name)).sum::<usize>()
        }
        StmtKind::AnnAssign { target, annotation: _, value } => maybe(value) + in_target(target, name),
        StmtKind::AugAssign { target, op: _, value } => of(value) + of(target),
        StmtKind::Expr(value) => of(value),
        StmtKind::If { test, body, orelse } => of(test) + block(body) + block(orelse),
        StmtKind::While { test, body, orelse } => block(orelse) + if repeated { of(test) + block(body) } else { 0 },
        StmtKind::For { target, iter, body, orelse } => {
            of(iter) + block(orelse) + if repeated { in_target(target, name) + block(body) } else { 0 }
        }
        StmtKind::Return(value) | StmtKind::Raise(value) => maybe(value),
        StmtKind::Assert { test, message } => of(test) + maybe(message),
        StmtKind::FunctionDef(inner) => {
            let defaults: usize = inner.params.iter().map(|param| maybe(&param.default)).sum();
            defaults + usize::from(repeated && free_names(inner).contains(name))
        }
        // Deleting a name and sharing it with other functions counts as more than one read.
        StmtKind::Delete(targets) => targets.iter().map(of).sum::<usize>() * 2,
        StmtKind::Global(_) | StmtKind::Nonlocal(_) | StmtKind::Unsupported(_) => 0,
        StmtKind::Break | StmtKind::Continue | StmtKind::Pass => 0,
    }
}

/// The number of reads of a name in the target of an assignment.
fn in_target(target: &Expr, name: &str) -> usize {
    match &target.kind {
        ExprKind::Name(_) => 0,
        ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().map(|item| in_target(item, name)).sum(),
        ExprKind::Starred(inner) => in_target(inner, name),
        ExprKind::Constant(_)
        | ExprKind::Binary { .. }
        | ExprKind::Unary { .. }
        | ExprKind::Bool { .. }
        | ExprKind::Compare { .. }
        | ExprKind::IfExp { .. }
        | ExprKind::Call { .. }
        | ExprKind::Attribute { .. }
        | ExprKind::Subscript { .. }
        | ExprKind::Slice { .. }
        | ExprKind::Named { .. }
        | ExprKind::Lambda(_)
        | ExprKind::Comprehension { .. }
        | ExprKind::Unsupported(_) => in_expr(target, name, true),
    }
}

fn in_expr(expr: &Expr, name: &str, repeated: bool) -> usize {
    let children = |children: Vec<&Expr>| children.into_iter().map(|child| in_expr(child, name, repeated)).sum();
    match &expr.kind {
        ExprKind::Name(read) => usize::from(read == name),
        ExprKind::Comprehension { loops, .. } if !repeated => {
            loops.first().map_or(0, |first| in_expr(&first.iter, name, repeated))
        }
        ExprKind::Lambda(function) => {
            let defaults: usize = children(expr.children());
            defaults + usize::from(repeated && free_names(function).contains(name))
        }
        ExprKind::Constant(_)
        | ExprKind::Binary { .. }
        | ExprKind::Unary { .. }
        | ExprKind::Bool { .. }
        | ExprKind::Compare { .. }
        | ExprKind::IfExp { .. }
        | ExprKind::Call { .. }
        | ExprKind::Attribute { .. }
        | ExprKind::Subscript { .. }
        | ExprKind::Slice { .. }
        | ExprKind::Tuple(_)
        | ExprKind::List(_)
        | ExprKind::Starred(_)
        | ExprKind::Named { .. }
        | ExprKind::Comprehension { .. }
        | ExprKind::Unsupported(_) => children(expr.children()),
    }
}
