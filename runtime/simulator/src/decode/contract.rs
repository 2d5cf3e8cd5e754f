//! Contraction: a product whose only use is a sum becomes one fused multiply-add, as `ptxas` makes of it.
//!
//! Before: `mul.f32 p, a, b; ... add.f32 d, p, c`. After: `fma.rn.f32 d, a, b, c`. Legal if neither has a rounding,
//! both have the same type and flushing, the product is written once and read once, both are in one straight line of
//! code, neither has a guard, and `a` and `b` have no other value at the sum. Where both operands of a sum are such
//! products, the first is fused; which one `ptxas` takes is not documented.

use std::collections::HashMap;

use super::{
    registers,
    table::{Bank, FloatOp, Function, Mode, Operation, Reg},
};
use crate::count::Class;

/// Contracts products and sums of a function. Its blocks are not known yet.
pub(super) fn contract(function: &mut Function) {
    let (mut writes, mut reads) =
        (HashMap::<(Bank, Reg), Vec<usize>>::new(), HashMap::<(Bank, Reg), Vec<usize>>::new());
    for (at, instruction) in function.instructions.iter().enumerate() {
        registers::for_each(&instruction.operation, &mut |is_write, bank, register| {
            let list = if is_write { &mut writes } else { &mut reads };
            list.entry((bank, register)).or_default().push(at);
        });
    }
    let targets: Vec<usize> = function
        .instructions
        .iter()
        .filter_map(|i| if let Operation::Branch(target) = i.operation { Some(target as usize) } else { None })
        .collect();
    for at in 0..function.instructions.len() {
        let Some((bank, FloatOp::Mul, mode, product)) = parts(&function.instructions[at].operation) else { continue };
        let one = |map: &HashMap<(Bank, Reg), Vec<usize>>| match map.get(&(bank, product[0])).map(Vec::as_slice) {
            Some([one]) => Some(*one),
            _ => None,
        };
        let (Some(_), Some(sum_at)) = (one(&writes), one(&reads)) else { continue };
        let Some((_, op, sum_mode, sum)) = parts(&function.instructions[sum_at].operation) else { continue };
        let is_straight = sum_at > at
            && !targets.iter().any(|target| (at + 1..=sum_at).contains(target))
            && function.instructions[at..sum_at].iter().all(|i| !matches!(i.operation, Operation::Branch(_)))
            && function.instructions[at].guard.is_none()
            && function.instructions[sum_at].guard.is_none();
        let changes = |register: Reg| {
            writes.get(&(bank, register)).is_some_and(|list| list.iter().any(|w| (at + 1..sum_at).contains(w)))
        };
        let both = mode.contracts && sum_mode.contracts && mode.ftz == sum_mode.ftz && !mode.sat;
        if !is_straight || !both || product[1..3].iter().any(|register| changes(*register)) {
            continue;
        }
        let is_first = sum[1] == product[0];
        let other = if is_first { sum[2] } else { sum[1] };
        let op = if op == FloatOp::Add {
            FloatOp::Fma
        } else if op == FloatOp::Sub {
            if is_first { FloatOp::MulSub } else { FloatOp::SubMul }
        } else {
            continue;
        };
        let fused = [sum[0], product[1], product[2], other];
        let (operation, class) = match bank {
            Bank::Long => (Operation::Double(op, sum_mode, fused), Class::Float64Fma),
            Bank::Word | Bank::Predicate => (Operation::Single(op, sum_mode, fused), Class::Float32Fma),
        };
        function.instructions[sum_at].operation = operation;
        function.instructions[sum_at].class = class;
        function.instructions[at].operation = Operation::Nop;
        function.instructions[at].class = Class::Move;
    }
}

fn parts(operation: &Operation) -> Option<(Bank, FloatOp, Mode, [Reg; 4])> {
    if let Operation::Single(op, mode, registers) = operation {
        Some((Bank::Word, *op, *mode, *registers))
    } else if let Operation::Double(op, mode, registers) = operation {
        Some((Bank::Long, *op, *mode, *registers))
    } else {
        None
    }
}
