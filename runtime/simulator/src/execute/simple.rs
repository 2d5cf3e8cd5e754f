//! Executes an instruction that changes no control flow.

use super::{
    Context, access, atomic, compare,
    compare::Comparison,
    convert, float, integer,
    lanes::{active, mask_of, set},
    warp::Frame,
};
use crate::{
    decode::{Bank, CARRY, CarryOp, Clock, LOCAL_BASE, Operation, Reg, SHARED_BASE, WINDOW},
    error::Error,
    parse::Space,
};

/// Executes an instruction for the active lanes.
pub(super) fn execute(context: &mut Context, frame: &mut Frame, operation: &Operation, mask: u32) -> Result<(), Error> {
    match operation {
        Operation::Short(op, r) => integer::short(*op, &mut frame.words, r, mask),
        Operation::Word(op, r) => integer::word(*op, &mut frame.words, r, mask),
        Operation::Long(op, r) => integer::long(*op, &mut frame.longs, r, mask),
        Operation::WordOnly(op, r) => integer::word_only(*op, &mut frame.words, r, mask),
        Operation::Insert(bank, r) => insert(frame, *bank, *r, mask),
        Operation::Mixed(op, r) => integer::mixed(*op, &mut frame.words, &mut frame.longs, r, mask),
        Operation::Wide { ty, registers, summand } => {
            integer::wide(*ty, (&mut frame.words, &mut frame.longs), *registers, *summand, mask);
        }
        Operation::Carry { op, bank, reads, writes, registers } => {
            carry(frame, *op, *bank, (*reads, *writes), *registers, mask);
        }
        Operation::Single(op, mode, r) => float::single(*op, *mode, &mut frame.words, r, mask),
        Operation::Double(op, mode, r) => float::double(*op, *mode, &mut frame.longs, r, mask),
        Operation::Half(op, mode, format, is_pair, r) => {
            float::half(*op, *mode, *format, *is_pair, &mut frame.words, (r, mask));
        }
        Operation::Compare { relation, unordered, ty, p, q, a, b, logic } => {
            let comparison = Comparison { relation: *relation, unordered: *unordered, ty: *ty, a: *a, b: *b };
            let holds = compare::compare(frame, &comparison);
            compare::set_both(frame, [*p, *q], holds, *logic, mask);
        }
        Operation::Predicate(op, r) => compare::predicate(frame, *op, *r, mask),
        Operation::Select(bank, r) => compare::select(frame, *bank, *r, mask),
        Operation::Convert(conversion, d, a) => convert::convert(frame, *conversion, *d, *a, mask),
        Operation::Join { ty, d, parts } => convert::join(frame, *ty, *d, parts, mask),
        Operation::Split { ty, parts, a } => convert::split(frame, *ty, parts, *a, mask),
        Operation::Load(access) => access::load(context, frame, access, mask)?,
        Operation::Store(access) => access::store(context, frame, access, mask)?,
        Operation::LoadParam(access) => access::load_param(frame, context.machine.setup.params, access, mask)?,
        Operation::StoreParam(access) => access::store_param(frame, access, mask),
        Operation::Atomic(atomic) => atomic::execute(context, frame, atomic, mask)?,
        Operation::ActiveMask(d) => set(&mut frame.words, *d, mask, &[mask; 32]),
        Operation::IsSpace(space, p, a) => is_space(frame, *space, *p, *a, mask),
        Operation::ReadClock(clock, bank, d) => {
            let now = context.machine.clock;
            let value = match clock {
                Clock::Cycles | Clock::Cycles64 | Clock::Timer | Clock::TimerLo => now,
                Clock::CyclesHi | Clock::TimerHi => now >> 32,
            };
            convert::write(frame, (*bank, *d), mask, &[value; 32]);
        }
        Operation::Sleep => context.machine.polls = true,
        Operation::Nop
        | Operation::Collective(..)
        | Operation::Barrier(_)
        | Operation::Branch(_)
        | Operation::Call(_)
        | Operation::Return
        | Operation::Exit
        | Operation::Trap => {}
    }
    Ok(())
}

fn insert(frame: &mut Frame, bank: Bank, [d, a, b, at, len]: [Reg; 5], mask: u32) {
    let bits = if bank == Bank::Long { 64 } else { 32 };
    let (x, y) = (convert::read(frame, (bank, a)), convert::read(frame, (bank, b)));
    let (at, len) = (frame.words[at as usize], frame.words[len as usize]);
    let values = std::array::from_fn(|lane| integer::insert(x[lane], y[lane], at[lane], len[lane], bits));
    convert::write(frame, (bank, d), mask, &values);
}

fn carry(frame: &mut Frame, op: CarryOp, bank: Bank, (reads, writes): (bool, bool), r: [Reg; 4], mask: u32) {
    let bits = if bank == Bank::Long { 64 } else { 32 };
    let [a, b, c] = [r[1], r[2], r[3]].map(|register| convert::read(frame, (bank, register)));
    let before = if reads { frame.predicates[CARRY as usize] } else { 0 };
    let (mut values, mut after) = ([0; 32], 0);
    for lane in active(mask) {
        let (value, out) = integer::carry(op, [a[lane], b[lane], c[lane]], bits, before >> lane & 1 != 0);
        values[lane] = value;
        after |= u32::from(out) << lane;
    }
    convert::write(frame, (bank, r[0]), mask, &values);
    if writes {
        compare::set_predicate(frame, CARRY, mask, after);
    }
}

fn is_space(frame: &mut Frame, space: Space, p: Reg, a: Reg, mask: u32) {
    let addresses = frame.longs[a as usize];
    let within = |base: u64| mask_of(|lane| addresses[lane].wrapping_sub(base) < WINDOW);
    let found = match space {
        Space::Shared => within(SHARED_BASE),
        Space::Local => within(LOCAL_BASE),
        Space::Global | Space::Generic => !within(SHARED_BASE) & !within(LOCAL_BASE),
        Space::Const | Space::Param => 0,
    };
    compare::set_predicate(frame, p, mask, found);
}
