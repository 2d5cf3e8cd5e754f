//! The normal form of loops: the only exit is a test at the start of an iteration.

use super::refusals::unsupported;
use crate::{
    analysis::escapes,
    diagnostic::Diagnostic,
    ir::{
        BinaryOp, Block, Const, Expr, ExprId, ExprKind, Function, Local, LocalId, LocalKind, Stmt, StmtKind, Type,
        UnaryOp,
    },
    normalize::jumps::branched,
    source::Span,
};

/// A loop in normal form.
pub(super) struct Normal {
    /// Statements before the loop.
    pub(super) before: Block,
    /// Statements before the test.
    pub(super) head: Block,
    /// The condition that ends the loop.
    pub(super) exit: ExprId,
    /// The other statements of an iteration.
    pub(super) body: Block,
    /// The statements between two iterations.
    pub(super) step: Block,
}

/// Brings a loop into normal form: a `continue` becomes a branch, and a `break` in the body sets a flag that the test
/// reads. Only the loop reads what its
/// step assigns, so the step may run after a `break`, too.
pub(super) fn normal_form(function: &mut Function, body: Block, step: Block, span: Span) -> Result<Normal, Diagnostic> {
    let refused = || unsupported(span, "a loop with these jumps", "write the loop with one condition at its start");
    let assigns = body.iter().take_while(|stmt| matches!(stmt.kind, StmtKind::Assign(..))).count();
    let test = body.get(assigns).and_then(|stmt| stmt.kind.exit_condition());
    let (head, exit, rest) = match test {
        Some(exit) => {
            let mut head = body;
            let mut rest = head.split_off(assigns);
            rest.remove(0);
            (head, exit, rest)
        }
        None => (Block::new(), constant(function, false, span), body),
    };
    let ways = escapes(&rest);
    let mut normal = Normal { before: Block::new(), head, exit, body: rest, step };
    if ways.breaks {
        let flag = function.locals.push(Local::new("stopped", LocalKind::Variable, Type::BOOL));
        normal.before.push(set(function, flag, false, span));
        let mut left = |span: Span| (vec![set(function, flag, true, span)], unless(function, flag, span));
        normal.body = branched(&normal.body, Some(&mut left)).ok_or_else(refused)?;
        let flagged = read(function, flag, span);
        let kind = ExprKind::Binary(BinaryOp::Or, flagged, normal.exit);
        normal.exit = function.exprs.push(Expr { kind, ty: Type::BOOL, span });
    } else if ways.continues {
        normal.body = branched(&normal.body, None).ok_or_else(refused)?;
    }
    Ok(normal)
}

fn constant(function: &mut Function, value: bool, span: Span) -> ExprId {
    function.exprs.push(Expr { kind: ExprKind::Const(Const::Bool(value)), ty: Type::BOOL, span })
}

fn read(function: &mut Function, local: LocalId, span: Span) -> ExprId {
    function.exprs.push(Expr { kind: ExprKind::Local(local), ty: function.locals[local].ty, span })
}

fn set(function: &mut Function, local: LocalId, value: bool, span: Span) -> Stmt {
    let value = constant(function, value, span);
    Stmt { kind: StmtKind::Assign(local, value), span }
}

fn unless(function: &mut Function, local: LocalId, span: Span) -> ExprId {
    let value = read(function, local, span);
    function.exprs.push(Expr { kind: ExprKind::Unary(UnaryOp::Not, value), ty: Type::BOOL, span })
}
