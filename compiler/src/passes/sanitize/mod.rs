//! Inserts the sanitizer's checks of synchronization, before the back end transforms it.
//!
//! The pass inserts a check with its mask before each barrier and each warp operation, a notification before each
//! `return` of the kernel, and a pair of notifications around each call of a function with checks, for the call stack
//! of reports. Accesses need no check in the IR: the back end instruments them.

mod unwritten;

use weft_artifact::{SiteKind, Tools};

use crate::{
    ir::{
        Block, Check, ClusterOp, Const, Expr, ExprId, ExprKind, Function, Module, Op, Stmt, StmtKind, Type,
        for_each_expr_of_block, for_each_stmt,
    },
    source::Span,
};

/// Runs the pass.
pub(super) fn run(module: &mut Module) {
    if module.sanitize.is_empty() {
        return;
    }
    let kernel = module.kernel;
    let checked = checked(module);
    let follows = module.sanitize.has(Tools::INITCHECK);
    for (id, function) in module.functions.iter_mut() {
        let mut body = std::mem::take(&mut function.body);
        instrument(function, &mut body, Some(id) == kernel, &checked);
        function.body = body;
        if follows {
            unwritten::follow(function);
        }
    }
}

/// For each function: whether it has a check.
fn checked(module: &Module) -> Vec<bool> {
    let mut checks: Vec<bool> = vec![false; module.functions.len()];
    loop {
        let mut changed = false;
        for (id, function) in module.functions.iter().filter(|(id, _)| !checks[id.index()]).collect::<Vec<_>>() {
            let mut some = false;
            for_each_stmt(&function.body, &mut |stmt| {
                some |= match &stmt.kind {
                    StmtKind::Store { .. } | StmtKind::Op { .. } => true,
                    StmtKind::Call { func, .. } => checks[func.index()],
                    StmtKind::Assign(..)
                    | StmtKind::If { .. }
                    | StmtKind::Loop { .. }
                    | StmtKind::Break
                    | StmtKind::Continue
                    | StmtKind::Return(_) => false,
                };
            });
            for_each_expr_of_block(function, &function.body, &mut |id| {
                some |= matches!(function.exprs[id].kind, ExprKind::Load(..));
            });
            changed |= some;
            checks[id.index()] = some;
        }
        if !changed {
            return checks;
        }
    }
}

fn instrument(function: &mut Function, block: &mut Block, is_kernel: bool, checked: &[bool]) {
    let mut out = Block::with_capacity(block.len());
    for mut stmt in block.drain(..) {
        for inner in stmt.kind.blocks_mut().into_iter().flatten() {
            instrument(function, inner, is_kernel, checked);
        }
        let span = stmt.span;
        let calls = matches!(stmt.kind, StmtKind::Call { func, .. } if checked[func.index()]);
        let check = match &stmt.kind {
            StmtKind::Op { op, args, .. } => of_op(function, *op, args, stmt.span),
            StmtKind::Return(_) => is_kernel.then(|| (Check::Returns, Vec::new())),
            StmtKind::Call { .. } => calls.then(|| (Check::Enters, Vec::new())),
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
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
        if calls {
            let kind = StmtKind::Op { op: Op::Check(Check::Leaves), results: Vec::new(), args: Vec::new() };
            out.push(Stmt { kind, span });
        }
    }
    *block = out;
}

/// The check before an operation, and its operands.
fn of_op(function: &mut Function, op: Op, args: &[ExprId], span: Span) -> Option<(Check, Vec<ExprId>)> {
    let (meets, shuffle) = match op {
        Op::Barrier | Op::BarrierReduce(_) | Op::Cluster(ClusterOp::Sync) => (SiteKind::Barrier, None),
        Op::GridBarrier => (SiteKind::GridBarrier, None),
        Op::WarpBarrier => (SiteKind::WarpBarrier, None),
        Op::Shuffle(shuffle) => (SiteKind::Shuffle, Some(shuffle)),
        Op::Vote(_) => (SiteKind::Vote, None),
        Op::MatchAny | Op::MatchAll => (SiteKind::Match, None),
        Op::WarpReduce(_) => (SiteKind::WarpReduce, None),
        Op::Multiply(_) => (SiteKind::Multiply, None),
        Op::Atomic { .. }
        | Op::MatrixLoad(_)
        | Op::ProductWait(_)
        | Op::MultiplyCells(_)
        | Op::AsyncCopy(_)
        | Op::Cluster(ClusterOp::Rank | ClusterOp::Size | ClusterOp::Shared)
        | Op::ActiveMask
        | Op::LaneBits(_)
        | Op::LaneFold(_)
        | Op::OfWarps
        | Op::WarpRegion(_)
        | Op::Fence(_)
        | Op::Print(_)
        | Op::Ptx { .. }
        | Op::External(_)
        | Op::Clock(_)
        | Op::Nanosleep
        | Op::SetRegisters { .. }
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
    let has_mask = meets.is_of_warp() && meets != SiteKind::Multiply;
    let mask = if has_mask { args.first().map_or(all, |&mask| function.copy_expr(mask)) } else { all };
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
