//! The registers that an operation reads and writes.

use super::table::{
    Address, Bank, Barrier, BarrierResult, CARRY, Collective, IntOp, LoadMatrix, MixedOp, Multiply, Operation, Reg,
    SINK,
};
use crate::parse::Type;

/// Calls a function for each register that an operation reads (`false`) or writes (`true`). Operands that an operation
/// does not use are register 0, the sink, and are left out.
pub(crate) fn for_each(operation: &Operation, f: &mut dyn FnMut(bool, Bank, Reg)) {
    let mut call = |writes: bool, bank: Bank, register: Reg| {
        if register != SINK {
            f(writes, bank, register);
        }
    };
    match operation {
        Operation::Nop
        | Operation::Sleep
        | Operation::Branch(_)
        | Operation::Call(_)
        | Operation::Return
        | Operation::Exit
        | Operation::Trap => {}
        Operation::Short(_, r) | Operation::Word(_, r) | Operation::Single(_, _, r) | Operation::WordOnly(_, r) => {
            all(&mut call, Bank::Word, r);
        }
        Operation::Half(_, _, _, _, r) => all(&mut call, Bank::Word, r),
        Operation::Long(op, r) => {
            let is_shift = matches!(op, IntOp::Shl | IntOp::ShrU | IntOp::ShrS);
            debug_assert!(!is_shift, "shifts of 64 bits are mixed");
            all(&mut call, Bank::Long, r);
        }
        Operation::Double(_, _, r) => all(&mut call, Bank::Long, r),
        Operation::Insert(bank, [d, a, b, at, len]) => {
            all(&mut call, *bank, &[*d, *a, *b]);
            call(false, Bank::Word, *at);
            call(false, Bank::Word, *len);
        }
        Operation::Mixed(op, [d, a, b, c]) => {
            let counts = matches!(op, MixedOp::Popc | MixedOp::Clz);
            call(true, if counts { Bank::Word } else { Bank::Long }, *d);
            call(false, Bank::Long, *a);
            call(false, Bank::Word, *b);
            call(false, Bank::Word, *c);
        }
        Operation::Wide { ty, registers: [d, a, b], summand } => {
            let twice = if ty.size() == 4 { Bank::Long } else { Bank::Word };
            call(true, twice, *d);
            call(false, Bank::Word, *a);
            call(false, Bank::Word, *b);
            call(false, twice, summand.unwrap_or(SINK));
        }
        Operation::Carry { bank, reads, writes, registers, .. } => {
            all(&mut call, *bank, registers);
            call(false, Bank::Predicate, if *reads { CARRY } else { SINK });
            call(true, Bank::Predicate, if *writes { CARRY } else { SINK });
        }
        Operation::Compare { ty, p, q, a, b, logic, .. } => {
            let bank = bank(*ty);
            call(true, Bank::Predicate, *p);
            call(true, Bank::Predicate, *q);
            call(false, bank, *a);
            call(false, bank, *b);
            call(false, Bank::Predicate, logic.map_or(SINK, |(_, vote)| vote.p));
        }
        Operation::Predicate(_, r) => all(&mut call, Bank::Predicate, r),
        Operation::Select(bank, [d, a, b, p]) => {
            all(&mut call, *bank, &[*d, *a, *b]);
            call(false, Bank::Predicate, *p);
        }
        Operation::Convert(_, d, a) => {
            call(true, d.0, d.1);
            call(false, a.0, a.1);
        }
        Operation::Join { ty, d, parts } => {
            call(true, bank(*ty), *d);
            for part in parts {
                call(false, Bank::Word, *part);
            }
        }
        Operation::Split { ty, parts, a } => {
            call(false, bank(*ty), *a);
            for part in parts {
                call(true, Bank::Word, *part);
            }
        }
        Operation::Load(_)
        | Operation::Store(_)
        | Operation::LoadParam(_)
        | Operation::StoreParam(_)
        | Operation::Atomic(_) => of_memory(operation, &mut call),
        Operation::Collective(collective, mask) => {
            call(false, Bank::Word, *mask);
            of_collective(collective, &mut call);
        }
        Operation::Multiply(multiply) => of_product(multiply, &mut call),
        Operation::LoadMatrix(load) => of_matrices(load, &mut call),
        Operation::WarpgroupMultiply(multiply) => multiply.for_each_register(&mut call),
        Operation::Async(op) => op.for_each_register(&mut call),
        Operation::ActiveMask(d) => call(true, Bank::Word, *d),
        Operation::IsSpace(_, _, p, a) => {
            call(true, Bank::Predicate, *p);
            call(false, Bank::Long, *a);
        }
        Operation::ReadClock(_, bank, d) => call(true, *bank, *d),
        Operation::Barrier(barrier) => of_barrier(barrier, &mut call),
    }
}

/// The first register is the result, the others are operands.
fn all(call: &mut impl FnMut(bool, Bank, Reg), bank: Bank, registers: &[Reg]) {
    for (index, register) in registers.iter().enumerate() {
        call(index == 0, bank, *register);
    }
}

fn address(call: &mut impl FnMut(bool, Bank, Reg), address: &Address) {
    call(false, address.bank, address.base);
}

fn bank(ty: Type) -> Bank {
    if ty.size() == 8 { Bank::Long } else { Bank::Word }
}

/// The registers of an instruction that accesses memory or parameters.
fn of_memory(operation: &Operation, call: &mut impl FnMut(bool, Bank, Reg)) {
    if let Operation::Load(access) = operation {
        address(call, &access.address);
        access.registers.iter().for_each(|(bank, register)| call(true, *bank, *register));
    } else if let Operation::Store(access) = operation {
        address(call, &access.address);
        access.registers.iter().for_each(|(bank, register)| call(false, *bank, *register));
    } else if let Operation::LoadParam(access) = operation {
        access.registers.iter().for_each(|(bank, register)| call(true, *bank, *register));
    } else if let Operation::StoreParam(access) = operation {
        access.registers.iter().for_each(|(bank, register)| call(false, *bank, *register));
    } else if let Operation::Atomic(atomic) = operation {
        address(call, &atomic.address);
        call(true, atomic.bank, atomic.d);
        atomic.operands.iter().for_each(|operand| call(false, atomic.bank, *operand));
    }
}

fn of_product(product: &Multiply, call: &mut impl FnMut(bool, Bank, Reg)) {
    product.d.iter().for_each(|register| call(true, product.bank, *register));
    let read = [&product.a, &product.b, &product.c].into_iter().flatten();
    read.for_each(|register| call(false, product.bank, *register));
}

fn of_matrices(load: &LoadMatrix, call: &mut impl FnMut(bool, Bank, Reg)) {
    load.d.iter().for_each(|register| call(true, Bank::Word, *register));
    address(call, &load.address);
}

fn of_barrier(barrier: &Barrier, call: &mut impl FnMut(bool, Bank, Reg)) {
    call(false, Bank::Word, barrier.id);
    call(false, Bank::Word, barrier.threads.unwrap_or(SINK));
    call(false, Bank::Predicate, barrier.p.p);
    match barrier.result {
        BarrierResult::None => {}
        BarrierResult::And(p) | BarrierResult::Or(p) => call(true, Bank::Predicate, p),
        BarrierResult::Popc(d) => call(true, Bank::Word, d),
    }
}

fn of_collective(collective: &Collective, call: &mut impl FnMut(bool, Bank, Reg)) {
    match *collective {
        Collective::Shuffle(_, d, p, a, b, c) => {
            all(call, Bank::Word, &[d, a, b, c]);
            call(true, Bank::Predicate, p);
        }
        Collective::VoteAll(d, vote) | Collective::VoteAny(d, vote) | Collective::VoteUni(d, vote) => {
            all(call, Bank::Predicate, &[d, vote.p]);
        }
        Collective::Ballot(d, vote) => {
            call(true, Bank::Word, d);
            call(false, Bank::Predicate, vote.p);
        }
        Collective::MatchAny(d, bank, a) => {
            call(true, Bank::Word, d);
            call(false, bank, a);
        }
        Collective::MatchAll(d, p, bank, a) => {
            call(true, Bank::Word, d);
            call(true, Bank::Predicate, p);
            call(false, bank, a);
        }
        Collective::Redux(_, _, d, a) => all(call, Bank::Word, &[d, a]),
        Collective::Barrier => {}
    }
}
