//! Whether threads may run in another order, and in other positions of their block.

use crate::ir::{ExprKind, Module, Op, SpecialRegister, StmtKind, for_each_expr, for_each_stmt};

/// Whether a module's threads may run in any order and in any block position: only their indices along the axes
/// distinguish them.
pub(crate) fn may_move_all(module: &Module) -> bool {
    let mut may = true;
    for (_, function) in module.functions.iter() {
        for_each_stmt(&function.body, &mut |stmt| {
            if let StmtKind::Op { op, .. } = stmt.kind {
                may &= may_move(op);
            }
            for root in stmt.kind.exprs() {
                for_each_expr(function, root, &mut |id| {
                    may &= function.exprs[id].kind != ExprKind::Special(SpecialRegister::LaneId);
                });
            }
        });
    }
    may
}

/// Whether an operation has the same effect in any thread position and in any order of the threads.
fn may_move(op: Op) -> bool {
    match op {
        Op::Atomic { .. } | Op::Load(_) | Op::Store(_) | Op::Barrier | Op::BarrierReduce(_) => true,
        Op::Ptx { pure, .. } => pure,
        Op::GridBarrier
        | Op::WarpBarrier
        | Op::Shuffle(_)
        | Op::Vote(_)
        | Op::MatchAny
        | Op::MatchAll
        | Op::WarpReduce(_)
        | Op::Multiply(_)
        | Op::MatrixLoad(_)
        | Op::ProductWait(_)
        | Op::MultiplyCells(_)
        | Op::AsyncCopy(_)
        | Op::Cluster(_)
        | Op::ActiveMask
        | Op::LaneBits(_)
        | Op::LaneFold(_)
        | Op::OfWarps
        | Op::WarpRegion(_)
        | Op::Fence(_)
        | Op::Print(_)
        | Op::External(_)
        | Op::Clock(_)
        | Op::Nanosleep
        | Op::SetRegisters { .. }
        | Op::Breakpoint
        | Op::Fault(_)
        | Op::FaultCall(_)
        | Op::Check(_) => false,
    }
}
