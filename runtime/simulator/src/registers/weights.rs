//! How many registers a value needs, and the pressure of an order of instructions.

use super::{Peak, liveness::Liveness};
use crate::decode::{Bank, FloatOp, Function, IntOp, Operation};

/// The registers of each value, and the registers for intermediate results of each instruction.
pub(super) struct Weights {
    pub(super) values: Vec<u32>,
    temporaries: Vec<u32>,
}

impl Weights {
    /// The weights of a function.
    pub(super) fn of(function: &Function, liveness: &Liveness) -> Self {
        let (is_written, is_uniform) = uniform_values(function, liveness);
        let weight = |value: usize| {
            let registers = match liveness.bank(value) {
                Bank::Word => 1,
                Bank::Long => 2,
                Bank::Predicate => 0,
            };
            if is_written[value] && !is_uniform[value] { registers } else { 0 }
        };
        Self {
            values: (0..liveness.count).map(weight).collect(),
            temporaries: function.instructions.iter().map(|each| temporaries(&each.operation)).collect(),
        }
    }

    /// The highest pressure of instructions of a block in some order.
    pub(super) fn peak(&self, liveness: &Liveness, block: usize, order: &[usize]) -> Peak {
        let mut live = liveness.after(block);
        let mut pressure: u32 = (0..liveness.count).filter(|v| live.contains(*v)).map(|v| self.values[v]).sum();
        let mut peak = Peak { pressure, at: order.last().copied().unwrap_or(0) };
        for at in order.iter().rev().copied() {
            let uses = &liveness.uses[at];
            // Results that nothing reads need registers, too.
            let unread: Vec<usize> = uses.writes.iter().copied().filter(|value| live.insert(*value)).collect();
            pressure += unread.iter().map(|value| self.values[*value]).sum::<u32>();
            peak = peak.or(Peak { pressure: pressure + self.temporaries[at], at });
            for value in if uses.replaces { &uses.writes } else { &unread } {
                pressure -= if live.remove(*value) { self.values[*value] } else { 0 };
            }
            for value in &uses.reads {
                pressure += if live.insert(*value) { self.values[*value] } else { 0 };
            }
            peak = peak.or(Peak { pressure: pressure + self.temporaries[at], at });
        }
        peak
    }
}

/// The values that instructions write, and those that need no register of a thread.
///
/// Constants and parameters of the launch are operands from the constant bank. An integer that is written once, and
/// computed from such values and the block's index, is in a uniform register (compute capability 7.5 and newer).
/// Special registers are never written: `ptxas` reads them where they are used.
fn uniform_values(function: &Function, liveness: &Liveness) -> (Vec<bool>, Vec<bool>) {
    let mut writes = vec![0; liveness.count];
    liveness.uses.iter().flat_map(|uses| &uses.writes).for_each(|value| writes[*value] += 1);
    let mut is_uniform: Vec<bool> = writes.iter().map(|count| *count == 0).collect();
    for (register, special) in &function.specials {
        is_uniform[liveness.value(Bank::Word, *register)] = !special.varies();
    }
    let mut changed = true;
    while changed {
        changed = false;
        for (instruction, uses) in function.instructions.iter().zip(&liveness.uses) {
            if is_uniform_operation(&instruction.operation) && uses.reads.iter().all(|value| is_uniform[*value]) {
                for value in uses.writes.iter().filter(|value| writes[**value] == 1) {
                    changed |= !is_uniform[*value];
                    is_uniform[*value] = true;
                }
            }
        }
    }
    (writes.iter().map(|count| *count > 0).collect(), is_uniform)
}

/// Whether an operation with uniform operands can run on the uniform datapath, or its result is in the constant bank.
fn is_uniform_operation(operation: &Operation) -> bool {
    match operation {
        Operation::Word(..)
        | Operation::Long(..)
        | Operation::Short(..)
        | Operation::WordOnly(..)
        | Operation::Mixed(..)
        | Operation::Wide { .. } => true,
        Operation::Convert(how, ..) => how.from.is_integer() && how.to.is_integer(),
        Operation::LoadParam(access) => access.of_kernel,
        Operation::Nop
        | Operation::Insert(..)
        | Operation::Carry { .. }
        | Operation::Single(..)
        | Operation::Double(..)
        | Operation::Half(..)
        | Operation::Compare { .. }
        | Operation::Predicate(..)
        | Operation::Select(..)
        | Operation::Join { .. }
        | Operation::Split { .. }
        | Operation::Load(_)
        | Operation::Store(_)
        | Operation::StoreParam(_)
        | Operation::Atomic(_)
        | Operation::Collective(..)
        | Operation::Multiply(_)
        | Operation::LoadMatrix(_)
        | Operation::WarpgroupMultiply(_)
        | Operation::Async(_)
        | Operation::ActiveMask(_)
        | Operation::IsSpace(..)
        | Operation::ReadClock(..)
        | Operation::Sleep
        | Operation::Barrier(_)
        | Operation::Branch(_)
        | Operation::Call(_)
        | Operation::Return
        | Operation::Exit
        | Operation::Trap => false,
    }
}

/// Operations that `ptxas` expands to many instructions, and their registers for intermediate results: what a kernel
/// with one of them needs more than a kernel with a sum.
const DOUBLES: [(FloatOp, u32); 4] = [(FloatOp::Div, 14), (FloatOp::Sqrt, 10), (FloatOp::Rcp, 6), (FloatOp::Rsqrt, 6)];
const SINGLES: [(FloatOp, u32); 3] = [(FloatOp::Div, 6), (FloatOp::Sqrt, 4), (FloatOp::Rcp, 4)];
const LONGS: [(IntOp, u32); 6] =
    [(IntOp::DivS, 12), (IntOp::RemS, 12), (IntOp::DivU, 7), (IntOp::RemU, 7), (IntOp::MulHiU, 6), (IntOp::MulHiS, 6)];
const WORDS: [(IntOp, u32); 4] = [(IntOp::DivU, 3), (IntOp::DivS, 3), (IntOp::RemU, 3), (IntOp::RemS, 3)];

/// The registers for intermediate results of an operation.
fn temporaries(operation: &Operation) -> u32 {
    fn of<T: PartialEq + Copy>(table: &[(T, u32)], op: T) -> u32 {
        table.iter().find(|(each, _)| *each == op).map_or(0, |(_, registers)| *registers)
    }
    if let Operation::Double(op, ..) = operation {
        of(&DOUBLES, *op)
    } else if let Operation::Single(op, ..) = operation {
        of(&SINGLES, *op)
    } else if let Operation::Long(op, _) = operation {
        of(&LONGS, *op)
    } else if let Operation::Word(op, _) = operation {
        of(&WORDS, *op)
    } else {
        0
    }
}
