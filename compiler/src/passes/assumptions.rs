//! Finds the assumptions about launches that speed up a kernel's code ([`Module::gains`]): a launch tests no others,
//! and only those produce variants of a kernel.
//!
//! - *Small*: every kernel computes indices.
//! - *Nonneg*: it lets `prove_nonneg`, which runs before, prove more indices.
//! - *Disjoint*: the kernel reads an array that it does not write, and writes another one. Loads from the first array
//!   need not be repeated after stores, and can use the read-only cache. No other thread may write the array meanwhile,
//!   so a kernel that could observe such a write (it waits in a loop, or orders its memory accesses with others') gains
//!   nothing; nor does a kernel that gets arrays by their addresses. On the CPU, also a kernel that only accumulates
//!   into an array gains: each worker can have a private copy, which is added to the array at the end.
//! - *Aligned*: the kernel has several loads or several stores of one array, or one in a loop, which LLVM may unroll:
//!   adjacent accesses are merged.
//! - *Warps*: on the CPU, if no warp waits for another one, and each works on its own row of a matrix, or shuffles or
//!   votes: each warp then runs as a block of its own.

use std::collections::BTreeMap;

use weft_artifact::{Assumptions, Factors};

use super::access::{Params, origin, origins_of_kernel};
use crate::{
    analysis::{gains_by_accumulation, gains_by_disjoint, gains_by_warps},
    ir::{Block, Class, Function, FunctionKind, Module, StmtKind, Type, for_each_expr_of_block, for_each_stmt},
};

/// Runs the pass.
pub(super) fn run(module: &mut Module) {
    module.gains = match module.kernel() {
        Some(kernel) if kernel.kind == FunctionKind::Kernel => Assumptions {
            small: true,
            nonneg: module.gains.nonneg,
            disjoint: gains_by_disjoint(module, kernel),
            aligned: gains_by_aligned(module, kernel),
            warps: false,
        },
        Some(_) | None => Assumptions::NONE,
    };
}

/// Runs the pass for a CPU, where alignment gains nothing.
pub(super) fn run_on_host(module: &mut Module) {
    run(module);
    module.gains.aligned = false;
    module.gains.disjoint |= module
        .kernel()
        .is_some_and(|kernel| kernel.kind == FunctionKind::Kernel && gains_by_accumulation(module, kernel));
    // A coarsened kernel has other warps than the original launch.
    module.gains.warps = module.coarsen == Factors::NONE && gains_by_warps(module);
}

/// By parameter of the kernel: the numbers of loads and of stores; those in loops count at least twice.
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
            // The callee may have several accesses.
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
