//! Marks atomics whose address is equal in all lanes by data flow, and those whose result some instruction reads.
//!
//! A register is uniform if all its writes compute it from uniform registers. Loads of memory, atomics, shuffles and
//! results of calls are taken as varying; parameters of the launch are uniform.

use std::collections::HashSet;

use super::{
    registers,
    table::{Bank, Function, Operation, Reg},
};

/// Marks the atomics of a function.
pub(super) fn mark(function: &mut Function) {
    let mut varying: HashSet<(Bank, Reg)> = HashSet::new();
    for (register, special) in &function.specials {
        if special.varies() {
            varying.insert((Bank::Word, *register));
        }
    }
    let mut before = usize::MAX;
    while before != varying.len() {
        before = varying.len();
        for instruction in &function.instructions {
            let operation = &instruction.operation;
            let is_source = matches!(
                operation,
                Operation::Load(_)
                    | Operation::Atomic(_)
                    | Operation::Collective(..)
                    | Operation::Multiply(_)
                    | Operation::LoadMatrix(_)
                    | Operation::WarpgroupMultiply(_)
                    | Operation::Async(_)
            ) || matches!(operation, Operation::LoadParam(access) if !access.of_kernel);
            let mut varies =
                is_source || instruction.guard.is_some_and(|guard| varying.contains(&(Bank::Predicate, guard.p)));
            registers::for_each(&instruction.operation, &mut |is_write, bank, register| {
                varies |= !is_write && varying.contains(&(bank, register));
            });
            if varies {
                registers::for_each(&instruction.operation, &mut |is_write, bank, register| {
                    if is_write {
                        varying.insert((bank, register));
                    }
                });
            }
        }
    }
    let mut read = HashSet::new();
    for instruction in &function.instructions {
        registers::for_each(&instruction.operation, &mut |is_write, bank, register| {
            if !is_write {
                read.insert((bank, register));
            }
        });
        read.extend(instruction.guard.map(|guard| (Bank::Predicate, guard.p)));
    }
    for instruction in &mut function.instructions {
        if let Operation::Atomic(atomic) = &mut instruction.operation {
            atomic.is_uniform = !varying.contains(&(atomic.address.bank, atomic.address.base));
            atomic.is_value_uniform = !varying.contains(&(atomic.bank, atomic.operands[0]));
            atomic.is_read = read.contains(&(atomic.bank, atomic.d));
        }
    }
}
