//! Tells the sanitizer of what the threads of a kernel do together, before the back end takes it apart.
//!
//! Before each barrier and each operation of a warp stands a check with its mask, before each `return` of the kernel one
//! that says so. Accesses need none: the back end tells of them as it meets them.

use weft_artifact::SiteKind;

use crate::{
    ir::{Block, Check, Const, Expr, ExprId, ExprKind, Function, Module, Op, Stmt, StmtKind, Type},
    source::Span,
};

/// Runs the pass.
pub(super) fn run(module: &mut Module) {
    if module.sanitize.is_empty() {
        return;
    }
    let kernel = module.kernel;
    for (id, function) in module.functions.iter_mut() {
        let mut body = std::mem::take(&mut function.body);
        tell(function, &mut body, Some(id) == kernel);
        function.body = body;
    }
}

fn tell(function: &mut Function, block: &mut Block, is_kernel: bool) {
    let mut out = Block::with_capacity(block.len());
    for mut stmt in block.drain(..) {
        for inner in stmt.kind.blocks_mut().into_iter().flatten() {
            tell(function, inner, is_kernel);
        }
        let check = match &stmt.kind {
            StmtKind::Op { op, args, .. } => of_op(function, *op, args, stmt.span),
            StmtKind::Return(_) => is_kernel.then(|| (Check::Returns, Vec::new())),
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Call { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue => None,
        };
        if let Some((check, args)) = check {
            let kind = StmtKind::Op { op: Op::Check(check), results: Vec::new(), args };
            out.push(Stmt { kind, span: stmt.span });
        }
        out.push(stmt);
    }
    *block = out;
}

/// The check before an operation, and what it takes.
fn of_op(function: &mut Function, op: Op, args: &[ExprId], span: Span) -> Option<(Check, Vec<ExprId>)> {
    let (meets, shuffle) = match op {
        Op::Barrier | Op::BarrierReduce(_) => (SiteKind::Barrier, None),
        Op::GridBarrier => (SiteKind::GridBarrier, None),
        Op::WarpBarrier => (SiteKind::WarpBarrier, None),
        Op::Shuffle(shuffle) => (SiteKind::Shuffle, Some(shuffle)),
        Op::Vote(_) => (SiteKind::Vote, None),
        Op::MatchAny | Op::MatchAll => (SiteKind::Match, None),
        Op::WarpReduce(_) => (SiteKind::WarpReduce, None),
        Op::Atomic { .. }
        | Op::ActiveMask
        | Op::LaneBits(_)
        | Op::Fence(_)
        | Op::Print(_)
        | Op::Ptx { .. }
        | Op::External(_)
        | Op::Clock(_)
        | Op::Nanosleep
        | Op::Breakpoint
        | Op::Load(_)
        | Op::Store(_)
        | Op::Fault(_)
        | Op::FaultCall(_)
        | Op::Check(_) => return None,
    };
    let mut int = |value: i128| {
        let kind = ExprKind::Const(Const::Int(value));
        function.exprs.push(Expr { kind, ty: Type::I32, span })
    };
    let (all, zero, other) = (int(-1), int(0), int(0));
    let mask = if meets.is_of_warp() { args.first().map_or(all, |&mask| function.copy_expr(mask)) } else { all };
    if !meets.is_of_warp() || meets == SiteKind::WarpBarrier {
        return Some((Check::Meets(meets), vec![mask]));
    }
    let by_and_width = match (shuffle, args) {
        (Some(_), &[_, _, by, width]) => [function.copy_expr(by), function.copy_expr(width)],
        _ => [zero, other],
    };
    let [by, width] = by_and_width;
    Some((Check::Lanes(meets, shuffle), vec![mask, by, width]))
}
