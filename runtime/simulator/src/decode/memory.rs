//! Decodes loads, stores and atomics.

use super::{
    arithmetic::{check, last_type},
    function::{Decoder, bank_of, unsupported},
    table::{Access, Address, Atomic, AtomicOp, Bank, Operation, ParamAccess, Reg, SINK},
};
use crate::{
    count::Class,
    error::Error,
    parse::{Operand, Source, Space, Type},
};

/// Modifiers of loads and stores that change neither the value nor the counts.
const IGNORED: [&str; 23] = [
    "ca",
    "cg",
    "cs",
    "cv",
    "lu",
    "wb",
    "wt",
    "nc",
    "volatile",
    "relaxed",
    "acquire",
    "release",
    "weak",
    "cta",
    "gpu",
    "sys",
    "cluster",
    "v2",
    "v4",
    "L1::evict_last",
    "L1::evict_first",
    "L1::no_allocate",
    "L1::evict_normal",
];

/// Decodes an instruction if it is of this file.
pub(super) fn decode(decoder: &mut Decoder, source: &Source) -> Result<bool, Error> {
    match source.opcode[0].as_str() {
        "ld" | "ldu" => load(decoder, source)?,
        "st" => store(decoder, source)?,
        "atom" | "red" => atomic(decoder, source)?,
        "cp" => copy(decoder, source)?,
        "prefetch" | "prefetchu" | "applypriority" | "discard" => {
            decoder.push(source, Operation::Nop, Class::Other)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn space(source: &Source) -> Space {
    source.opcode[1..].iter().find_map(|name| Space::parse(name)).unwrap_or(Space::Generic)
}

/// Fails for a modifier that is neither a space nor ignored.
fn check_modifiers(source: &Source, more: &[&str]) -> Result<(), Error> {
    let known: Vec<&str> = IGNORED.iter().copied().chain(more.iter().copied()).collect();
    let own: Vec<_> = source.opcode.iter().filter(|name| Space::parse(name).is_none()).cloned().collect();
    check(&Source { opcode: own, ..source.clone() }, &known).map_err(|_| unsupported(source))
}

fn elements(source: &Source, operand: &Operand) -> Result<Vec<Operand>, Error> {
    let count = if source.has("v4") {
        4
    } else if source.has("v2") {
        2
    } else {
        1
    };
    let found = if let Operand::Vector(elements) = operand { elements.clone() } else { vec![operand.clone()] };
    if found.len() == count { Ok(found) } else { Err(unsupported(source)) }
}

pub(super) fn address(decoder: &mut Decoder, source: &Source, operand: &Operand) -> Result<Address, Error> {
    let Operand::Address(base, offset) = operand else { return Err(unsupported(source)) };
    let (bank, base) = decoder.read_any(base, Type::U64, source.line)?;
    if bank == Bank::Predicate {
        return Err(unsupported(source));
    }
    Ok(Address { bank, base, offset: *offset })
}

fn load(decoder: &mut Decoder, source: &Source) -> Result<(), Error> {
    check_modifiers(source, &[])?;
    let ty = last_type(source)?;
    let [d, a] = super::arithmetic::operands(source)?;
    let elements = elements(source, d)?;
    let registers: Vec<(Bank, Reg)> =
        elements.iter().map(|element| decoder.write_any(element, ty, source.line)).collect::<Result<_, _>>()?;
    if space(source) == Space::Param {
        let operation = Operation::LoadParam(param(decoder, source, a, ty, registers)?);
        return decoder.push(source, operation, Class::Move);
    }
    let address = address(decoder, source, a)?;
    let polls = ["volatile", "relaxed", "acquire", "cv"].iter().any(|name| source.has(name));
    let access = Access { space: space(source), address, ty, registers, polls };
    decoder.push(source, Operation::Load(Box::new(access)), Class::Load)
}

fn param(
    decoder: &mut Decoder,
    source: &Source,
    operand: &Operand,
    ty: Type,
    registers: Vec<(Bank, Reg)>,
) -> Result<Box<ParamAccess>, Error> {
    let Operand::Address(base, offset) = operand else { return Err(unsupported(source)) };
    let Operand::Name(name) = &**base else { return Err(unsupported(source)) };
    let Some((at, of_kernel)) = decoder.find_param(name) else {
        return Err(Error::at(source.line, format!("there is no parameter `{name}`")));
    };
    Ok(Box::new(ParamAccess { of_kernel, offset: at.wrapping_add_signed(*offset as i32), ty, registers }))
}

fn store(decoder: &mut Decoder, source: &Source) -> Result<(), Error> {
    check_modifiers(source, &[])?;
    let ty = last_type(source)?;
    let [a, value] = super::arithmetic::operands(source)?;
    let elements = elements(source, value)?;
    let registers: Vec<(Bank, Reg)> =
        elements.iter().map(|element| decoder.read_any(element, ty, source.line)).collect::<Result<_, _>>()?;
    if space(source) == Space::Param {
        let operation = Operation::StoreParam(param(decoder, source, a, ty, registers)?);
        return decoder.push(source, operation, Class::Move);
    }
    let address = address(decoder, source, a)?;
    let access = Access { space: space(source), address, ty, registers, polls: false };
    decoder.push(source, Operation::Store(Box::new(access)), Class::Store)
}

/// An asynchronous copy to shared memory: a load and a store, so that waiting for it does nothing.
fn copy(decoder: &mut Decoder, source: &Source) -> Result<(), Error> {
    let form: Vec<&str> = source.opcode.iter().map(String::as_str).collect();
    match form.as_slice() {
        ["cp", "async", "commit_group" | "wait_group" | "wait_all"] => {
            decoder.push(source, Operation::Nop, Class::Other)
        }
        ["cp", "async", "ca" | "cg", "shared", "global"] => {
            let [to, from, Operand::Integer(bytes @ (4 | 8 | 16))] = super::arithmetic::operands(source)? else {
                return Err(unsupported(source));
            };
            let (to, from) = (address(decoder, source, to)?, address(decoder, source, from)?);
            let registers: Vec<_> = (0..bytes / 4).map(|_| (Bank::Word, decoder.fresh(Bank::Word))).collect();
            let access = |space, address, registers| Access { space, address, ty: Type::B32, registers, polls: false };
            let load = Operation::Load(Box::new(access(Space::Global, from, registers.clone())));
            decoder.push(source, load, Class::Load)?;
            decoder.push(source, Operation::Store(Box::new(access(Space::Shared, to, registers))), Class::Store)
        }
        _ => Err(unsupported(source)),
    }
}

fn atomic_op(name: &str) -> Option<AtomicOp> {
    Some(match name {
        "add" => AtomicOp::Add,
        "min" => AtomicOp::Min,
        "max" => AtomicOp::Max,
        "and" => AtomicOp::And,
        "or" => AtomicOp::Or,
        "xor" => AtomicOp::Xor,
        "exch" => AtomicOp::Exch,
        "cas" => AtomicOp::Cas,
        "inc" => AtomicOp::Inc,
        "dec" => AtomicOp::Dec,
        _ => return None,
    })
}

fn atomic(decoder: &mut Decoder, source: &Source) -> Result<(), Error> {
    let operations = ["add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec", "acq_rel", "noftz"];
    check_modifiers(source, &operations)?;
    let ty = last_type(source)?;
    let op = source.opcode[1..].iter().find_map(|name| atomic_op(name)).ok_or_else(|| unsupported(source))?;
    let bank = bank_of(ty).filter(|_| ty.size() >= 2).ok_or_else(|| unsupported(source))?;
    let line = source.line;
    let has_result = source.opcode[0] == "atom";
    let (result, rest) = source.operands.split_at(usize::from(has_result).min(source.operands.len()));
    let d = result.first().map_or(Ok(SINK), |d| decoder.write(d, ty, line))?;
    if rest.len() != if op == AtomicOp::Cas { 3 } else { 2 } {
        return Err(unsupported(source));
    }
    let address = address(decoder, source, &rest[0])?;
    let first = decoder.read(&rest[1], ty, line)?;
    let second = rest.get(2).map_or(Ok(first), |operand| decoder.read(operand, ty, line))?;
    let atomic = Atomic {
        op,
        ty,
        space: space(source),
        address,
        bank,
        d,
        operands: [first, second],
        is_read: has_result,
        is_uniform: false,
        is_value_uniform: false,
        adds_one: if let Operand::Integer(value) = rest[1] {
            op == AtomicOp::Add && ty.is_integer() && value == 1 || op == AtomicOp::Inc && value as u32 == u32::MAX
        } else {
            false
        },
    };
    decoder.push(source, Operation::Atomic(Box::new(atomic)), Class::Atomic)
}
