//! Kernels in which each warp works independently, on a row of a matrix or a node of a graph: the whole kernel, or a
//! branch or loop between two barriers of the block.

use super::{Rematerializable, any_expr};
use crate::ir::{
    Arith, BinaryOp, Class, Effects, ExprId, ExprKind, Function, FunctionKind, Leaf, LocalId, Module, Op,
    SpecialRegister, Stmt, StmtKind, SyncScope, for_each_expr, for_each_expr_of_block, for_each_stmt,
};

/// The warp size.
const LANES: i128 = 32;

/// Whether a kernel profits from launches in which `blockDim.x` is a multiple of the warp size: threads are identified
/// only by their indices, and either no warp waits for another and the lanes of a warp stride through a loop (`for k in
/// range(first + lane, last, 32)`) or exchange values, or lanes exchange values in a branch or loop of which the warps
/// take different paths. The warps of a block are then independent, like blocks, in the kernel or in that statement.
pub(crate) fn gains_by_warps(module: &Module) -> bool {
    let Some(kernel) = module.kernel().filter(|kernel| kernel.kind == FunctionKind::Kernel) else { return false };
    let effects = Effects::of_module(module);
    // Functions that synchronize threads are inlined into the kernel.
    let remains = |id| Some(id) != module.kernel && !Effects::of_function(&effects, id).synchronizes();
    let Some(barriers) = module.functions.iter().map(|(_, function)| barriers(function)).max() else { return false };
    !module.functions.iter().any(|(id, function)| remains(id) && reads_thread_index(function))
        && match barriers {
            Barriers::None => match loop_distribution(kernel) {
                LoopDistribution::OfLanes => true,
                LoopDistribution::None => module.functions.iter().any(|(_, function)| hands_on(function)),
                LoopDistribution::OfThreads => false,
            },
            Barriers::OfBlock => hands_on_in_part(kernel, &effects),
            Barriers::Other => false,
        }
}

/// The operations of a function that warps cannot execute independently, in ascending order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Barriers {
    /// None.
    None,
    /// Barriers of the block.
    OfBlock,
    /// Operations that synchronize more threads, or that reveal the thread's position.
    Other,
}

/// The operations of a function that warps cannot execute independently.
fn barriers(function: &Function) -> Barriers {
    let mut found = Barriers::None;
    for_each_stmt(&function.body, &mut |stmt| {
        if let StmtKind::Op { op, .. } = stmt.kind {
            found = found.max(match op {
                Op::Atomic { .. }
                | Op::Load(_)
                | Op::Store(_)
                | Op::WarpBarrier
                | Op::Shuffle(_)
                | Op::Vote(_)
                | Op::MatchAny
                | Op::MatchAll
                | Op::WarpReduce(_)
                | Op::Multiply(_)
                | Op::MatrixLoad(_)
                | Op::ProductWait(_)
                | Op::ActiveMask
                | Op::Fence(_)
                | Op::AsyncCopy(_)
                | Op::Clock(_)
                | Op::Ptx { pure: true, .. } => Barriers::None,
                Op::Barrier | Op::BarrierReduce(_) => Barriers::OfBlock,
                Op::GridBarrier
                | Op::Cluster(_)
                | Op::LaneBits(_)
                | Op::LaneFold(_)
                | Op::MultiplyCells(_)
                | Op::OfWarps
                | Op::WarpRegion(_)
                | Op::Print(_)
                | Op::Ptx { pure: false, .. }
                | Op::External(_)
                | Op::Nanosleep
                | Op::SetRegisters { .. }
                | Op::Breakpoint
                | Op::Fault(_)
                | Op::FaultCall(_)
                | Op::Check(_) => Barriers::Other,
            });
        }
    });
    found
}

/// Whether a branch or loop synchronizes warps but not the block, and its threads may take different paths.
fn hands_on_in_part(kernel: &Function, effects: &[Effects]) -> bool {
    let varying = varying(kernel);
    let varies = |id: ExprId| any_expr(kernel, id, &|kind| is_varying(kind, &varying));
    let mut found = false;
    for_each_stmt(&kernel.body, &mut |stmt| {
        if found || Effects::of_block(kernel, std::slice::from_ref(stmt), effects).together != SyncScope::Warp {
            return;
        }
        found = match &stmt.kind {
            StmtKind::If { cond, .. } => varies(*cond),
            StmtKind::Loop { body, .. } => {
                let mut exits = false;
                for_each_stmt(body, &mut |inner| {
                    exits |= inner.kind.exit_condition().is_some_and(varies);
                });
                exits
            }
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => false,
        };
    });
    found
}

/// By the local's index: threads may assign different values to it, apart from their different paths.
fn varying(function: &Function) -> Vec<bool> {
    let mut varying = vec![false; function.locals.len()];
    loop {
        let before = varying.clone();
        for_each_stmt(&function.body, &mut |stmt| {
            let varies = match stmt.kind {
                StmtKind::Assign(_, value) => any_expr(function, value, &|kind| is_varying(kind, &before)),
                StmtKind::Op { .. } | StmtKind::Call { .. } => true,
                StmtKind::Store { .. }
                | StmtKind::If { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => false,
            };
            for local in stmt.kind.assigned().into_iter().filter(|_| varies) {
                varying[local.index()] = true;
            }
        });
        if varying == before {
            return varying;
        }
    }
}

/// Whether an expression, apart from its operands, may differ between threads.
fn is_varying(kind: &ExprKind, varying: &[bool]) -> bool {
    match kind.class() {
        Class::Leaf(Leaf::Special(register)) => !register.is_of_block(),
        Class::Leaf(Leaf::Local(local)) => varying[local.index()],
        Class::Load(_) => true,
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } => false,
    }
}

/// Whether lanes of a warp exchange values in a function.
fn hands_on(function: &Function) -> bool {
    let mut hands = false;
    for_each_stmt(&function.body, &mut |stmt| {
        hands |= matches!(stmt.kind, StmtKind::Op { op: Op::Shuffle(_) | Op::Vote(_), .. });
    });
    hands
}

/// Whether a function reads its thread's indices.
fn reads_thread_index(function: &Function) -> bool {
    let mut reads = false;
    for_each_expr_of_block(function, &function.body, &mut |id| {
        if let Class::Leaf(Leaf::Special(register)) = function.class(id) {
            reads |= matches!(register, SpecialRegister::ThreadIdx(_) | SpecialRegister::LaneId);
        }
    });
    reads
}

/// How the iterations of loops are distributed over threads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LoopDistribution {
    /// None.
    None,
    /// The threads of a block or of the grid stride through the loop: their accesses are contiguous.
    OfThreads,
    /// The lanes of a warp stride through the loop.
    OfLanes,
}

/// How the loops are distributed whose counter starts at a value that depends on `threadIdx.x`, by their increments. A
/// counter is a local that the loop's exit test reads.
fn loop_distribution(function: &Function) -> LoopDistribution {
    let fixed = Rematerializable::of(function, &function.body);
    let mut counters = Vec::new();
    for_each_stmt(&function.body, &mut |stmt| {
        if let StmtKind::Loop { body, step } = &stmt.kind
            && let Some(test) = body.first().and_then(|first| first.kind.exit_condition())
        {
            let assigns = if step.is_empty() { body.as_slice() } else { step.as_slice() };
            let tested = |local: LocalId| any_expr(function, test, &|kind| *kind == ExprKind::Local(local));
            counters
                .extend(assigns.iter().filter_map(|stmt| grows(function, stmt)).filter(|(local, _)| tested(*local)));
        }
    });
    let mut found = LoopDistribution::None;
    for_each_stmt(&function.body, &mut |stmt| {
        if let StmtKind::Assign(local, value) = stmt.kind
            && let Some((_, by)) = counters.iter().find(|(counter, _)| *counter == local)
            && depends_on_lane(function, &fixed, local, value)
        {
            if is_32(function, *by) {
                found = LoopDistribution::OfLanes;
            } else if found == LoopDistribution::None {
                found = LoopDistribution::OfThreads;
            }
        }
    });
    found
}

/// The local that a statement increments, and the increment.
fn grows(function: &Function, stmt: &Stmt) -> Option<(LocalId, ExprId)> {
    let StmtKind::Assign(local, value) = stmt.kind else { return None };
    let Class::Arith(Arith::Binary(BinaryOp::Add | BinaryOp::AddExact, a, b)) = function.class(value) else {
        return None;
    };
    [(a, b), (b, a)].into_iter().find_map(|(of, by)| (function.local(of) == Some(local)).then_some((local, by)))
}

fn is_32(function: &Function, id: ExprId) -> bool {
    function.int(id) == Some(LANES)
        || matches!(function.class(id), Class::Leaf(Leaf::Special(SpecialRegister::WarpSize)))
}

/// Whether the initial value of a local depends on `threadIdx.x` or the lane index.
fn depends_on_lane(function: &Function, fixed: &Rematerializable, local: LocalId, value: ExprId) -> bool {
    let (mut depends, mut grows) = (false, false);
    for_each_expr(function, value, &mut |id| match function.class(id) {
        Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(0) | SpecialRegister::LaneId)) => depends = true,
        Class::Leaf(Leaf::Local(read)) => {
            depends |= fixed.local_dependence(read).x || is_lane(function, fixed, read);
            grows |= read == local;
        }
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => {}
    });
    depends && !grows
}

/// Whether a rematerializable local is the lane index.
fn is_lane(function: &Function, fixed: &Rematerializable, local: LocalId) -> bool {
    let mut reads = false;
    if let Some(value) = fixed.value(local) {
        for_each_expr(function, value, &mut |id| {
            reads |= matches!(function.class(id), Class::Leaf(Leaf::Special(SpecialRegister::LaneId)));
        });
    }
    reads
}
