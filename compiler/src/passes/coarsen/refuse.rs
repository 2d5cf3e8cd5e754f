//! Legality of coarsening: a kernel is left unchanged if its threads may observe the order of other threads'
//! statements, or use operations that have no meaning for several threads in one. Each reason is a part of a remark for
//! users.

use weft_artifact::Factors;

use super::vary::{is_read_only, read_only};
use crate::{
    analysis::{WaitAnalysis, escapes},
    ir::{
        Circles, Class, Clock, Effects, ExprId, ExprKind, Function, FunctionKind, LoadHint, LocalArray, LocalId,
        Module, Op, SharedKind, SpecialRegister, Stmt, StmtKind, for_each_expr_of_block, for_each_stmt,
    },
    target::LOCAL_BYTES,
};

/// The maximum number of statements of all copies, to limit LLVM's compilation time.
const MOST_STATEMENTS: usize = 20_000;

/// The maximum number of bytes of local arrays of all copies: a quarter of the limit of a thread.
const MOST_LOCAL_BYTES: u64 = LOCAL_BYTES / 4;

/// Reasons that need no analysis of a module.
pub(super) fn module(module: &Module, circles: &Circles, effects: &[Effects]) -> Result<(), String> {
    if module.kernel().is_none_or(|kernel| kernel.kind != FunctionKind::Kernel) {
        return Err("it is not a kernel".to_owned());
    }
    if module.cooperative {
        return Err("the blocks of its grid wait for each other".to_owned());
    }
    if !circles.is_empty() {
        return Err("a function is recursive".to_owned());
    }
    if module.shared.iter().any(|(_, array)| array.kind == SharedKind::Coop) {
        return Err("it has collective operations (cuda.coop)".to_owned());
    }
    for (id, function) in module.functions.iter() {
        if Some(id) != module.kernel && Effects::of_function(effects, id).synchronizes() {
            return Err(format!("a barrier in a function that it calls: {}", function.name));
        }
        let mut why = None;
        for_each_stmt(&function.body, &mut |stmt| {
            if let StmtKind::Op { op, .. } = stmt.kind {
                why = why.or(reason(op));
            }
        });
        for_each_expr_of_block(function, &function.body, &mut |expr| {
            if let ExprKind::Special(SpecialRegister::LaneId | SpecialRegister::WarpSize) = function.exprs[expr].kind {
                why = why.or(Some("it reads its lane or the warp size"));
            }
        });
        if let Some(why) = why {
            return Err(why.to_owned());
        }
    }
    Ok(())
}

/// Reasons against merging blocks that need no analysis: resources of a block would be needed once per copy.
pub(super) fn merging(module: &Module) -> Result<(), String> {
    if !module.shared.is_empty() || module.dynamic_shared {
        return Err("its blocks cannot be merged: it has shared memory".to_owned());
    }
    let mut counts = false;
    for (_, function) in module.functions.iter() {
        for_each_stmt(&function.body, &mut |stmt| {
            counts |= matches!(stmt.kind, StmtKind::Op { op: Op::BarrierReduce(_), .. });
        });
    }
    if counts {
        Err("its blocks cannot be merged: its barriers reduce over the threads of a block".to_owned())
    } else {
        Ok(())
    }
}

/// The reason why a kernel with an operation is not coarsened.
fn reason(op: Op) -> Option<&'static str> {
    match op {
        Op::Barrier | Op::BarrierReduce(_) | Op::Store(_) => None,
        Op::Load(LoadHint::Volatile) => Some("it has volatile loads (ldcv)"),
        Op::Load(LoadHint::All | LoadHint::Global | LoadHint::Streaming | LoadHint::LastUse) => None,
        Op::Atomic { order, .. } => {
            (order.acquires() || order.releases()).then_some("it has atomic operations that order memory")
        }
        Op::GridBarrier => Some("the blocks of its grid wait for each other"),
        Op::WarpBarrier
        | Op::Shuffle(_)
        | Op::Vote(_)
        | Op::MatchAny
        | Op::MatchAll
        | Op::WarpReduce(_)
        | Op::Multiply(_)
        | Op::MatrixLoad(_)
        | Op::ProductWait(_)
        | Op::MultiplyCells(_)
        | Op::ActiveMask
        | Op::LaneBits(_)
        | Op::LaneFold(_)
        | Op::OfWarps
        | Op::WarpRegion(_) => Some("it has warp operations"),
        Op::Fence(_) => Some("it has fences"),
        Op::Cluster(_) => Some("it has operations of a cluster"),
        Op::AsyncCopy(_) => Some("it copies asynchronously"),
        Op::Print(_) => Some("it prints"),
        Op::Ptx { pure: true, .. } => None,
        Op::Ptx { pure: false, .. } => Some("it has inline PTX"),
        Op::External(_) => Some("it calls linked functions"),
        Op::Clock(Clock::Cycles32 | Clock::Cycles64 | Clock::Nanoseconds) => Some("it reads a clock"),
        Op::Nanosleep => Some("it sleeps"),
        Op::SetRegisters { .. } => Some("it sets the registers of its warps"),
        Op::Breakpoint => Some("it has a breakpoint"),
        Op::Check(_) => Some("it is sanitized"),
        Op::Fault(_) | Op::FaultCall(_) => Some("it raises exceptions"),
    }
}

/// Whether a thread may wait in a loop for a store of another thread, which may be a later copy.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waits {
    /// In any loop.
    anywhere: bool,
    /// In a loop with iterations without a barrier. If each iteration has one, no thread waits longer than that for a
    /// thread of its block, nor for a value that no thread of the launch writes.
    between_barriers: bool,
}

impl Waits {
    /// Returns the reason if such waits are a problem for these factors.
    pub(super) fn refuse(self, factors: Factors) -> Result<(), String> {
        let waits = if factors.blocks_in_one() > 1 { self.anywhere } else { self.between_barriers };
        if waits {
            Err("a thread may wait in a loop for a value that another thread writes".to_owned())
        } else {
            Ok(())
        }
    }
}

/// The loops of a module in which a thread may wait.
pub(super) fn waits(module: &Module, circles: &Circles) -> Waits {
    let waiting = WaitAnalysis::of(module, circles);
    let mut waits = Waits::default();
    for (id, function) in module.functions.iter() {
        let read_only = if Some(id) == module.kernel { read_only(module, function) } else { Vec::new() };
        let is_written = |load: &ExprId| match function.class(*load) {
            Class::Load(pointer) => {
                let is_read = |local: LocalId| read_only.get(local.index()).copied().unwrap_or(false);
                !is_read_only(function, pointer, &is_read)
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } => true,
        };
        for_each_stmt(&function.body, &mut |stmt| {
            if let StmtKind::Loop { body, step } = &stmt.kind
                && let Some(wait) = waiting.wait(function, body, step)
                && (wait.calls || reads_otherwise(body) || wait.loads.iter().any(is_written))
            {
                waits.anywhere = true;
                waits.between_barriers |= !meets(body);
            }
        });
    }
    waits
}

/// Whether a loop reads memory other than by loads: by an atomic operation or a call.
fn reads_otherwise(body: &[Stmt]) -> bool {
    let mut reads = false;
    for_each_stmt(body, &mut |stmt| {
        reads |= match &stmt.kind {
            StmtKind::Op { op, .. } => op.row().memory.reads(),
            StmtKind::Call { .. } => true,
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => false,
        };
    });
    reads
}

/// Whether each iteration that does not exit the loop reaches a barrier.
fn meets(body: &[Stmt]) -> bool {
    let mut stmts = body.iter().take_while(|stmt| !escapes(std::slice::from_ref(stmt)).continues);
    stmts.any(|stmt| matches!(stmt.kind, StmtKind::Op { op: Op::Barrier | Op::BarrierReduce(_), .. }))
}

/// Rejects a kernel that is too large for this number of copies.
pub(super) fn size(function: &Function, copies: usize) -> Result<(), String> {
    let mut count = 0;
    for_each_stmt(&function.body, &mut |_| count += 1);
    if count * copies > MOST_STATEMENTS {
        return Err("it is too large".to_owned());
    }
    let bytes = |array: &LocalArray| array.len.saturating_mul(array.elem.size_bytes());
    let local: u64 = function.local_arrays.iter().map(|(_, array)| bytes(array)).fold(0, u64::saturating_add);
    if local.saturating_mul(copies as u64) > MOST_LOCAL_BYTES {
        return Err("its local arrays are too large".to_owned());
    }
    Ok(())
}
