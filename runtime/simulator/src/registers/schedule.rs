//! The orders of instructions that `ptxas` makes of a basic block, as far as they need more registers.

use super::{liveness::Liveness, weights::Weights};
use crate::{
    decode::{Function, Operation},
    parse::Space,
};

/// Iterations of a short loop that `ptxas` starts together.
const UNROLLED: u32 = 4;

/// The instructions of a block with loads as early as their addresses and the stores before them permit.
pub(super) fn early_loads(function: &Function, liveness: &Liveness, block: usize) -> Vec<usize> {
    let range = liveness.instructions(block);
    let dependences = dependences(function, liveness, block);
    let is_load = |at: &usize| matches!(function.instructions[*at].operation, Operation::Load(_));
    let (mut order, mut placed) = (Vec::new(), vec![false; range.len()]);
    // Loads first, each after the instructions that it depends on.
    for at in range.clone().filter(is_load).chain(range.clone()) {
        let mut stack = vec![(at, 0)];
        while let Some((at, next)) = stack.pop() {
            let own = at - range.start;
            if placed[own] {
                continue;
            }
            if let Some(before) = dependences[own].get(next) {
                stack.push((at, next + 1));
                stack.push((*before, 0));
            } else {
                placed[own] = true;
                order.push(at);
            }
        }
    }
    order
}

/// The registers for the loads of further iterations, if a block is a loop.
pub(super) fn unrolled_loads(function: &Function, liveness: &Liveness, weights: &Weights, block: usize) -> u32 {
    let access = |at: usize| Access::of(&function.instructions[at].operation);
    let is_ordered = liveness.instructions(block).filter_map(access).any(|access| access.is_fence);
    if is_ordered || !liveness.successors[block].contains(&block) {
        return 0;
    }
    let loads =
        liveness.instructions(block).filter(|at| matches!(function.instructions[*at].operation, Operation::Load(_)));
    let registers: u32 = loads.flat_map(|at| &liveness.uses[at].writes).map(|value| weights.values[*value]).sum();
    (UNROLLED - 1) * registers
}

/// The instructions of a block that each of its instructions must follow.
fn dependences(function: &Function, liveness: &Liveness, block: usize) -> Vec<Vec<usize>> {
    let range = liveness.instructions(block);
    let mut writer: Vec<Option<usize>> = vec![None; liveness.count];
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); liveness.count];
    let mut accesses: Vec<(usize, Access)> = Vec::new();
    let mut found = Vec::new();
    for at in range {
        let (mut own, uses) = (Vec::new(), &liveness.uses[at]);
        for value in &uses.reads {
            own.extend(writer[*value]);
            readers[*value].push(at);
        }
        for value in &uses.writes {
            own.extend(writer[*value].replace(at));
            own.extend(readers[*value].drain(..).filter(|reader| *reader != at));
        }
        if let Some(access) = Access::of(&function.instructions[at].operation) {
            own.extend(accesses.iter().filter(|(_, before)| before.orders(access)).map(|(at, _)| *at));
            accesses.push((at, access));
        }
        own.sort_unstable();
        own.dedup();
        found.push(own);
    }
    found
}

/// An access to memory, or what orders accesses.
#[derive(Clone, Copy)]
struct Access {
    space: Space,
    writes: bool,
    /// No other access moves across it.
    is_fence: bool,
}

impl Access {
    fn of(operation: &Operation) -> Option<Self> {
        if let Operation::Load(access) = operation {
            Some(Self { space: access.space, writes: false, is_fence: access.polls })
        } else if let Operation::Store(access) = operation {
            Some(Self { space: access.space, writes: true, is_fence: access.polls })
        } else if let Operation::LoadMatrix(_) = operation {
            Some(Self { space: Space::Shared, writes: false, is_fence: false })
        } else if matches!(
            operation,
            Operation::Atomic(_)
                | Operation::Call(_)
                | Operation::Barrier(_)
                | Operation::Collective(..)
                | Operation::WarpgroupMultiply(_)
                | Operation::Async(_)
                | Operation::Sleep
        ) {
            Some(Self { space: Space::Generic, writes: true, is_fence: true })
        } else {
            None
        }
    }

    /// Whether another access must follow this one. Addresses are not compared.
    fn orders(self, other: Self) -> bool {
        let same = self.space == other.space || self.space == Space::Generic || other.space == Space::Generic;
        self.is_fence || other.is_fence || same && (self.writes || other.writes)
    }
}
