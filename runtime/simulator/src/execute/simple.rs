//! Executes an instruction that changes no control flow.

#![expect(clippy::inline_always, reason = "the callers are compiled twice: see `simple::block`")]

use super::{
    Cluster, Context, access, atomic, compare,
    compare::Comparison,
    convert, float, integer,
    lanes::{active, mask_of, set},
    matrix,
    warp::Frame,
    warpgroup,
};
use crate::{
    decode::{Bank, CARRY, CarryOp, Clock, Instruction, LOCAL_BASE, Operation, Reg, SHARED_BASE, WINDOW},
    error::Error,
    parse::Space,
};

/// Executes the instructions of a basic block for lanes, and returns those that are active in the last one. Instructions
/// that change the control flow do nothing here.
///
/// The code is compiled twice: for all CPUs, and with the vectors of 256 bits and the fused products that most have.
pub(super) fn block(
    context: &mut Context,
    frame: &mut Frame,
    instructions: &[Instruction],
    mask: u32,
) -> Result<u32, Error> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        #[expect(unsafe_code, reason = "a function for some CPUs only")]
        // SAFETY: the CPU has the features that the function is compiled for.
        return unsafe { block_with_avx2(context, frame, instructions, mask) };
    }
    block_as::<false>(context, frame, instructions, mask)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn block_with_avx2(
    context: &mut Context,
    frame: &mut Frame,
    instructions: &[Instruction],
    mask: u32,
) -> Result<u32, Error> {
    block_as::<true>(context, frame, instructions, mask)
}

#[inline(always)]
fn block_as<const FUSED: bool>(
    context: &mut Context,
    frame: &mut Frame,
    instructions: &[Instruction],
    mask: u32,
) -> Result<u32, Error> {
    let mut active = mask;
    for instruction in instructions {
        active = mask;
        if let Some(guard) = instruction.guard {
            active &= compare::truth(frame, guard);
            context.machine.counters.guarded[context.counter] += u64::from(active.count_ones());
        }
        if active != 0 {
            if !frame.in_flight.is_empty() {
                let checked = frame.in_flight.check(&instruction.operation);
                checked.map_err(|error| Error { line: instruction.line, ..error })?;
            }
            execute::<FUSED>(context, frame, &instruction.operation, active)
                .map_err(|error| Error { line: instruction.line, ..error })?;
        }
        context.counter += 1;
    }
    Ok(active)
}

/// Executes an instruction for the active lanes.
#[inline(always)]
fn execute<const FUSED: bool>(
    context: &mut Context,
    frame: &mut Frame,
    operation: &Operation,
    mask: u32,
) -> Result<(), Error> {
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
        Operation::Single(op, mode, r) => float::single::<FUSED>(*op, *mode, &mut frame.words, r, mask),
        Operation::Double(op, mode, r) => float::double::<FUSED>(*op, *mode, &mut frame.longs, r, mask),
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
        Operation::Multiply(multiply) => matrix::multiply(frame, multiply, mask)?,
        Operation::LoadMatrix(load) => matrix::load(context, frame, load, mask)?,
        Operation::WarpgroupMultiply(multiply) => warpgroup::multiply(context, frame, multiply, mask)?,
        Operation::ActiveMask(d) => set(&mut frame.words, *d, mask, &[mask; 32]),
        Operation::IsSpace(space, of_cluster, p, a) => {
            is_space(&context.machine.cluster, frame, (*space, *of_cluster), (*p, *a), mask);
        }
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
        | Operation::Async(_)
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

fn is_space(cluster: &Cluster, frame: &mut Frame, (space, of_cluster): (Space, bool), (p, a): (Reg, Reg), mask: u32) {
    let addresses = frame.longs[a as usize];
    let within = |base: u64| mask_of(|lane| addresses[lane].wrapping_sub(base) < WINDOW);
    let found = match space {
        Space::Shared if of_cluster => within(SHARED_BASE),
        Space::Shared => {
            within(SHARED_BASE) & mask_of(|lane| !cluster.is_remote(addresses[lane].wrapping_sub(SHARED_BASE)))
        }
        Space::Local => within(LOCAL_BASE),
        Space::Global | Space::Generic => !within(SHARED_BASE) & !within(LOCAL_BASE),
        Space::Const | Space::Param => 0,
    };
    compare::set_predicate(frame, p, mask, found);
}
