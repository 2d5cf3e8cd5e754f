//! Converts a kernel's returns, and its `continue`s, to branches, so that the remaining control flow is branches and
//! loops that end by `Break`.
//!
//! ```text
//! if $i >= $n { return }        if $i >= $n { }
//! …                             else { … }
//! ```
//!
//! A return that depends on more than the condition of its branch sets a flag, which the rest tests.

use crate::{
    ir::{Block, Const, Expr, ExprKind, Function, Local, LocalId, LocalKind, Stmt, StmtKind, Type, UnaryOp},
    source::Span,
};

/// Restructures a kernel.
pub(super) fn structure(function: &mut Function) {
    let body = std::mem::take(&mut function.body);
    let flag = function.locals.push(Local::new("returned", LocalKind::Variable, Type::BOOL));
    let mut returns = Returns { function, flag, is_read: false };
    let (mut body, _) = returns.lower(body);
    let is_read = returns.is_read;
    if is_read {
        let clear = returns.set(false, returns.function.span);
        body.insert(0, clear);
    }
    // A flag that is never read is dead, and so are its assignments.
    replace_continues(&mut body);
    function.body = body;
}

/// Whether a list of statements returns: never, on some paths, or on all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exit {
    Never,
    Sometimes,
    Always,
}

struct Returns<'a> {
    function: &'a mut Function,
    /// `true` once the thread has returned.
    flag: LocalId,
    is_read: bool,
}

impl Returns<'_> {
    fn set(&mut self, value: bool, span: Span) -> Stmt {
        let value = self.function.exprs.push(Expr { kind: ExprKind::Const(Const::Bool(value)), ty: Type::BOOL, span });
        Stmt { kind: StmtKind::Assign(self.flag, value), span }
    }

    /// `if flag then`, or `if !flag then`.
    fn when(&mut self, returned: bool, then: Block, span: Span) -> Stmt {
        self.is_read = true;
        let flag = self.function.exprs.push(Expr { kind: ExprKind::Local(self.flag), ty: Type::BOOL, span });
        let cond = if returned {
            flag
        } else {
            self.function.exprs.push(Expr { kind: ExprKind::Unary(UnaryOp::Not, flag), ty: Type::BOOL, span })
        };
        Stmt { kind: StmtKind::If { cond, then, otherwise: Block::new() }, span }
    }

    /// Lowers statements outside of loops.
    fn lower(&mut self, block: Block) -> (Block, Exit) {
        let mut out = Block::new();
        let mut stmts = block.into_iter();
        while let Some(Stmt { kind, span }) = stmts.next() {
            match kind {
                StmtKind::Return(_) => {
                    let set = self.set(true, span);
                    out.push(set);
                    return (out, Exit::Always);
                }
                StmtKind::If { cond, then, otherwise } => {
                    let (mut then, yes) = self.lower(then);
                    let (mut otherwise, no) = self.lower(otherwise);
                    let mut exit = match (yes, no) {
                        (Exit::Never, Exit::Never) => {
                            out.push(Stmt { kind: StmtKind::If { cond, then, otherwise }, span });
                            continue;
                        }
                        (Exit::Always, Exit::Always) => Exit::Always,
                        (Exit::Always | Exit::Sometimes, _) | (_, Exit::Always | Exit::Sometimes) => Exit::Sometimes,
                    };
                    let (rest, rest_exit) = self.lower(stmts.collect());
                    if rest_exit == Exit::Always {
                        exit = Exit::Always;
                    }
                    let mut after = None;
                    match (yes, no) {
                        (Exit::Always, Exit::Never) => otherwise.extend(rest),
                        (Exit::Never, Exit::Always) => then.extend(rest),
                        (Exit::Always, Exit::Always) => {}
                        (Exit::Never | Exit::Sometimes, Exit::Never | Exit::Sometimes)
                        | (Exit::Always, Exit::Sometimes)
                        | (Exit::Sometimes, Exit::Always) => {
                            if !rest.is_empty() {
                                after = Some(self.when(false, rest, span));
                            }
                        }
                    }
                    out.push(Stmt { kind: StmtKind::If { cond, then, otherwise }, span });
                    out.extend(after);
                    return (out, exit);
                }
                StmtKind::Loop { body, step } => {
                    let (body, returns) = self.in_loop(body);
                    out.push(Stmt { kind: StmtKind::Loop { body, step }, span });
                    if returns {
                        let (rest, exit) = self.lower(stmts.collect());
                        if !rest.is_empty() {
                            let rest = self.when(false, rest, span);
                            out.push(rest);
                        }
                        return (out, if exit == Exit::Always { exit } else { Exit::Sometimes });
                    }
                }
                kind @ (StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Break
                | StmtKind::Continue) => out.push(Stmt { kind, span }),
            }
        }
        (out, Exit::Never)
    }

    /// Lowers statements in a loop: a return exits the loop. Returns whether there is one.
    fn in_loop(&mut self, block: Block) -> (Block, bool) {
        let mut out = Block::new();
        let mut any = false;
        for Stmt { kind, span } in block {
            match kind {
                StmtKind::Return(_) => {
                    let set = self.set(true, span);
                    out.extend([set, Stmt { kind: StmtKind::Break, span }]);
                    return (out, true);
                }
                StmtKind::If { cond, then, otherwise } => {
                    let (then, yes) = self.in_loop(then);
                    let (otherwise, no) = self.in_loop(otherwise);
                    any |= yes || no;
                    out.push(Stmt { kind: StmtKind::If { cond, then, otherwise }, span });
                }
                StmtKind::Loop { body, step } => {
                    let (body, returns) = self.in_loop(body);
                    out.push(Stmt { kind: StmtKind::Loop { body, step }, span });
                    if returns {
                        any = true;
                        let leave = self.when(true, vec![Stmt { kind: StmtKind::Break, span }], span);
                        out.push(leave);
                    }
                }
                kind @ (StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Break
                | StmtKind::Continue) => out.push(Stmt { kind, span }),
            }
        }
        (out, any)
    }
}

/// Replaces the `continue`s of all loops in some statements.
fn replace_continues(block: &mut Block) {
    for stmt in block {
        if let StmtKind::Loop { body, .. } = &mut stmt.kind {
            replace_in_iteration(body);
        }
        for inner in stmt.kind.blocks_mut().into_iter().flatten() {
            replace_continues(inner);
        }
    }
}

/// Replaces the `continue`s of statements at the end of an iteration: the statements after a branch with an arm that
/// continues early move into the other arm.
fn replace_in_iteration(block: &mut Block) {
    let goes_on = |arm: &Block| matches!(arm.last(), Some(Stmt { kind: StmtKind::Continue, .. }));
    for index in 0..block.len() {
        let is_last = index + 1 == block.len();
        let rest_after = match &block[index].kind {
            StmtKind::If { then, otherwise, .. } => !is_last && (goes_on(then) || goes_on(otherwise)),
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => false,
        };
        if rest_after || is_last {
            let rest = block.split_off(index + 1);
            let Some(stmt) = block.last_mut() else { return };
            if let StmtKind::If { then, otherwise, .. } = &mut stmt.kind {
                if goes_on(then) {
                    otherwise.extend(rest);
                } else {
                    then.extend(rest);
                }
                replace_in_iteration(then);
                replace_in_iteration(otherwise);
            } else if matches!(stmt.kind, StmtKind::Continue) {
                block.pop();
            }
            return;
        }
    }
}
