//! Finds out which facts of its launches a kernel's code is better for ([`Module::gains`]): a launch is asked for no others,
//! and only those make variants of a kernel.
//!
//! - *Small*: every kernel computes indices.
//! - *Nonneg*: `prove_nonneg`, which uses it, has found out: the proofs of indices that it gives.
//! - *Disjoint*: the kernel reads an array that it does not write, and writes another one. Loads of the first need not be
//!   done again behind stores, and go through the cache for what nobody writes. Nothing else may write it meanwhile either,
//!   so a kernel that would see that (it waits in a loop, or orders its memory with others') gains nothing; nor do kernels
//!   that know arrays by their addresses.
//! - *Aligned*: the kernel has several loads or several stores of one array, or one in a loop, which LLVM may unroll:
//!   neighbours become one access.

use std::collections::BTreeMap;

use weft_artifact::{Access, Addresses, ArgItem, Facts, SlotField, SlotSource};

use super::access::{Params, origin, origins_of_kernel};
use crate::{
    analysis::Waiting,
    ir::{
        Block, Circles, Class, Const, Function, FunctionKind, Leaf, LoadHint, Module, Op, StmtKind, Type,
        for_each_expr_of_block, for_each_stmt,
    },
};

/// Runs the pass.
pub(super) fn run(module: &mut Module) {
    module.gains = match module.kernel() {
        Some(kernel) if kernel.kind == FunctionKind::Kernel => Facts {
            small: true,
            nonneg: module.gains.nonneg,
            disjoint: gains_by_disjoint(module, kernel),
            aligned: gains_by_aligned(module, kernel),
        },
        Some(_) | None => Facts::NONE,
    };
}

/// Runs the pass for a CPU, whose accesses may as well be unaligned.
pub(super) fn run_on_host(module: &mut Module) {
    run(module);
    module.gains.aligned = false;
}

/// By parameter of the kernel: whether it is an array that nobody writes while the kernel runs, since this is compiled for launches
/// in which those that are written share no memory with it; `None` where it is compiled for others, too.
pub(crate) fn never_written(module: &Module) -> Option<Vec<bool>> {
    let kernel = module.kernel().filter(|kernel| kernel.kind == FunctionKind::Kernel)?;
    let is_read = |slot| memory(module, slot) == Some(Memory::Read);
    (module.facts.disjoint && gains_by_disjoint(module, kernel)).then(|| kernel.slots.iter().map(is_read).collect())
}

/// What a kernel does with the memory behind a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// It reads and does not write it.
    Read,
    /// It may write it.
    Written,
    /// It does neither.
    Unused,
    /// How much it is is not known.
    Unknown,
}

/// What a kernel does with the memory that a slot is the address of; `None` where it is no address.
fn memory(module: &Module, slot: &SlotSource) -> Option<Memory> {
    let SlotSource::Argument { param, path, field: SlotField::Data } = slot else { return None };
    let param = module.params.get(*param as usize)?;
    Some(match param.ty.leaf(path) {
        Some(ArgItem::Array(_) | ArgItem::Record(_)) => match param.access {
            Access { writes: true, .. } => Memory::Written,
            Access { writes: false, reads: true } => Memory::Read,
            Access { writes: false, reads: false } => Memory::Unused,
        },
        Some(ArgItem::Pointer(_) | ArgItem::Value(_)) | None => Memory::Unknown,
    })
}

fn gains_by_disjoint(module: &Module, kernel: &Function) -> bool {
    let memories: Vec<_> = kernel.slots.iter().filter_map(|slot| memory(module, slot)).collect();
    let has = |wanted| memories.contains(&wanted);
    has(Memory::Read)
        && has(Memory::Written)
        && !has(Memory::Unknown)
        && memories.len() <= Addresses::MOST
        && !module.functions.iter().any(|(_, function)| sees_others(function))
        && !Waiting::of(module, &Circles::of(module)).in_module(module)
}

/// Whether a function reaches memory that is no argument's, or orders what it does with what others do.
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
                | Op::ActiveMask
                | Op::LaneBits(_)
                | Op::OfWarps
                | Op::Print(_)
                | Op::Ptx { pure: true, .. }
                | Op::Clock(_)
                | Op::Nanosleep
                | Op::Breakpoint
                | Op::Fault(_)
                | Op::FaultCall(_)
                | Op::Check(_) => false,
            };
        }
    });
    sees
}

/// By parameter of the kernel: how many loads and how many stores it has; those in loops count twice and more.
#[derive(Default)]
struct Accesses(BTreeMap<usize, (u32, u32)>);

impl Accesses {
    fn add(&mut self, params: Params, (loads, stores): (u32, u32)) {
        for param in params {
            let counts = self.0.entry(param).or_default();
            *counts = (counts.0.saturating_add(loads), counts.1.saturating_add(stores));
        }
    }

    fn count(&mut self, function: &Function, origins: &[Params], block: &Block) {
        for_each_expr_of_block(function, block, &mut |id| {
            if let Class::Load(pointer) = function.class(id) {
                self.add(origin(function, origins, pointer), (1, 0));
            }
        });
        for_each_stmt(block, &mut |stmt| match &stmt.kind {
            StmtKind::Store { pointer, .. } => self.add(origin(function, origins, *pointer), (0, 1)),
            // What it does there may be several accesses.
            StmtKind::Call { args, .. } => {
                for &arg in args.iter().filter(|arg| matches!(function.exprs[**arg].ty, Type::Ptr(..))) {
                    self.add(origin(function, origins, arg), (2, 2));
                }
            }
            StmtKind::Op { .. }
            | StmtKind::Assign(..)
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => {}
        });
    }
}

fn gains_by_aligned(module: &Module, kernel: &Function) -> bool {
    let origins = origins_of_kernel(module, kernel);
    let mut accesses = Accesses::default();
    accesses.count(kernel, &origins, &kernel.body);
    for_each_stmt(&kernel.body, &mut |stmt| {
        if let StmtKind::Loop { body, step } = &stmt.kind {
            accesses.count(kernel, &origins, body);
            accesses.count(kernel, &origins, step);
        }
    });
    accesses.0.values().any(|(loads, stores)| *loads > 1 || *stores > 1)
}
