//! Arrays that a kernel only reads, and whether other threads may write them while it runs.

use weft_artifact::{Access, Addresses, ArgItem, SlotField, SlotSource};

use super::WaitAnalysis;
use crate::ir::{
    Circles, Class, Const, Function, FunctionKind, Leaf, LoadHint, Module, Op, StmtKind, for_each_expr_of_block,
    for_each_stmt,
};

/// By parameter of the kernel: whether it is an array that no thread writes while the kernel runs, because the code
/// assumes that written arrays share no memory with it; `None` without that assumption.
pub(crate) fn never_written(module: &Module) -> Option<Vec<bool>> {
    let kernel = module.kernel().filter(|kernel| kernel.kind == FunctionKind::Kernel)?;
    let is_read = |slot| memory(module, slot) == Some(Memory::Read);
    (module.assumptions.disjoint && gains_by_disjoint(module, kernel))
        .then(|| kernel.slots.iter().map(is_read).collect())
}

/// By parameter of the kernel: whether it is an array in which the kernel only accumulates, and which no thread
/// accesses otherwise while the kernel runs, because the code assumes that it shares no memory with others; `None`
/// without that assumption.
pub(crate) fn only_accumulated(module: &Module) -> Option<Vec<bool>> {
    let kernel = module.kernel().filter(|kernel| kernel.kind == FunctionKind::Kernel)?;
    let is_accumulated = |slot| memory(module, slot) == Some(Memory::Accumulated);
    (module.assumptions.disjoint && gains_by_accumulation(module, kernel))
        .then(|| kernel.slots.iter().map(is_accumulated).collect())
}

/// How a kernel accesses the memory of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// It reads and does not write it.
    Read,
    /// It may write it.
    Written,
    /// It accumulates there, and does nothing else with it.
    Accumulated,
    /// It does not access it.
    Unused,
    /// The size of the memory is unknown.
    Unknown,
}

/// How a kernel accesses the memory whose address a slot holds; `None` if the slot is not an address.
fn memory(module: &Module, slot: &SlotSource) -> Option<Memory> {
    let SlotSource::Argument { param, path, field: SlotField::Data } = slot else { return None };
    let param = module.params.get(*param as usize)?;
    Some(match param.ty.leaf(path) {
        Some(ArgItem::Array(_) | ArgItem::Record(_)) => match param.access {
            Access { accumulates: true, .. } => Memory::Accumulated,
            Access { writes: true, .. } => Memory::Written,
            Access { writes: false, reads: true, .. } => Memory::Read,
            Access { writes: false, reads: false, .. } => Memory::Unused,
        },
        Some(ArgItem::Pointer(_) | ArgItem::Value(_)) | None => Memory::Unknown,
    })
}

/// Whether the kernel gains from launches in which no array that it only reads shares memory with one that it writes.
pub(crate) fn gains_by_disjoint(module: &Module, kernel: &Function) -> bool {
    let memories = memories(module, kernel);
    let has = |wanted| memories.contains(&wanted);
    has(Memory::Read) && (has(Memory::Written) || has(Memory::Accumulated)) && is_alone(module, &memories)
}

/// Whether the kernel gains from launches in which no array that it only accumulates into shares memory with another
/// one.
pub(crate) fn gains_by_accumulation(module: &Module, kernel: &Function) -> bool {
    let memories = memories(module, kernel);
    memories.contains(&Memory::Accumulated) && is_alone(module, &memories)
}

fn memories(module: &Module, kernel: &Function) -> Vec<Memory> {
    kernel.slots.iter().filter_map(|slot| memory(module, slot)).collect()
}

/// Whether the launch knows all memory that the kernel accesses, and the kernel observes no concurrent stores of
/// others.
fn is_alone(module: &Module, memories: &[Memory]) -> bool {
    !memories.contains(&Memory::Unknown)
        && memories.len() <= Addresses::MOST
        && !module.functions.iter().any(|(_, function)| sees_others(function))
        && !WaitAnalysis::of(module, &Circles::of(module)).in_module(module)
}

/// Whether a function accesses memory other than that of arguments, or orders its memory accesses with others'.
fn sees_others(function: &Function) -> bool {
    let mut sees = false;
    for_each_expr_of_block(function, &function.body, &mut |id| {
        sees |= matches!(function.class(id), Class::Leaf(Leaf::Const(Const::Address(_))));
    });
    for_each_stmt(&function.body, &mut |stmt| {
        if let StmtKind::Op { op, .. } = stmt.kind {
            sees |= match op {
                Op::Fence(_) | Op::Load(LoadHint::Volatile) | Op::External(_) | Op::Ptx { pure: false, .. } => true,
                Op::Atomic { order, .. } => order.acquires() || order.releases(),
                Op::Load(LoadHint::All | LoadHint::Global | LoadHint::Streaming | LoadHint::LastUse)
                | Op::Store(_)
                | Op::Barrier
                | Op::BarrierReduce(_)
                | Op::GridBarrier
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
                | Op::Print(_)
                | Op::Ptx { pure: true, .. }
                | Op::Clock(_)
                | Op::Nanosleep
                | Op::SetRegisters { .. }
                | Op::Breakpoint
                | Op::Fault(_)
                | Op::FaultCall(_)
                | Op::Check(_) => false,
            };
        }
    });
    sees
}
