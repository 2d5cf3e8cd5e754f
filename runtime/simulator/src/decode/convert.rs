//! Decodes moves, conversions, and conversions of addresses between state spaces.

use super::{
    LOCAL_BASE, SHARED_BASE,
    arithmetic::{check, last_type, operands},
    float::class_of_type,
    function::{Decoder, bank_of, unsupported},
    table::{Bank, Clock, Conversion, IntOp, Logic, Operation, Reg, Rounding, ToInteger},
};
use crate::{
    count::Class,
    error::Error,
    parse::{Operand, Source, Space, Type},
};

/// Decodes an instruction if it is of this file.
pub(super) fn decode(decoder: &mut Decoder, source: &Source) -> Result<bool, Error> {
    match source.opcode[0].as_str() {
        "mov" => mov(decoder, source)?,
        "cvt" => cvt(decoder, source)?,
        "cvta" => cvta(decoder, source)?,
        "isspacep" => {
            let space = source.opcode.get(1).and_then(|name| Space::parse(name)).ok_or_else(|| unsupported(source))?;
            let [d, a] = operands(source)?;
            let registers = (decoder.write(d, Type::Pred, source.line)?, decoder.read(a, Type::B64, source.line)?);
            decoder.push(
                source,
                Operation::IsSpace(space, source.has("shared::cluster"), registers.0, registers.1),
                Class::Other,
            )?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn clock(name: &str) -> Option<Clock> {
    Some(match name {
        "%clock" | "%clock_lo" => Clock::Cycles,
        "%clock_hi" => Clock::CyclesHi,
        "%clock64" => Clock::Cycles64,
        "%globaltimer" => Clock::Timer,
        "%globaltimer_lo" => Clock::TimerLo,
        "%globaltimer_hi" => Clock::TimerHi,
        _ => return None,
    })
}

fn mov(decoder: &mut Decoder, source: &Source) -> Result<(), Error> {
    check(source, &[])?;
    let ty = last_type(source)?;
    let line = source.line;
    let [d, a] = operands(source)?;
    if let Operand::Vector(parts) = d {
        let part = part_type(source, ty, parts.len())?;
        let parts = parts.iter().map(|operand| decoder.write(operand, part, line)).collect::<Result<_, _>>()?;
        let a = decoder.read(a, ty, line)?;
        return decoder.push(source, Operation::Split { ty, parts, a }, Class::Move);
    }
    if let Operand::Vector(parts) = a {
        let part = part_type(source, ty, parts.len())?;
        let parts = parts.iter().map(|operand| decoder.read(operand, part, line)).collect::<Result<_, _>>()?;
        let d = decoder.write(d, ty, line)?;
        return decoder.push(source, Operation::Join { ty, d, parts }, Class::Move);
    }
    if let Operand::Name(name) = a {
        if let Some(clock) = clock(name) {
            let (bank, d) = decoder.write_any(d, ty, line)?;
            return decoder.push(source, Operation::ReadClock(clock, bank, d), Class::Other);
        }
        if decoder.declared(name).is_none() && name.starts_with('%') {
            // Special registers are words, which may be moved to other sizes.
            let (bank, d) = decoder.write_any(d, ty, line)?;
            let from = decoder.read_any(a, Type::U32, line)?;
            if (bank, from.0, ty.size()) == (Bank::Word, Bank::Word, 4) {
                return decoder.push(source, Operation::Word(IntOp::Mov, [d, from.1, 0, 0]), Class::Move);
            }
            return decoder.push(source, Operation::Convert(resize(Type::U32, ty), (bank, d), from), Class::Move);
        }
    }
    let (d, a) = (decoder.write(d, ty, line)?, decoder.read(a, ty, line)?);
    let operation = match bank_of(ty) {
        Some(Bank::Predicate) => Operation::Predicate(Logic::Mov, [d, a, a]),
        Some(Bank::Word) => Operation::Word(IntOp::Mov, [d, a, 0, 0]),
        Some(Bank::Long) => Operation::Long(IntOp::Mov, [d, a, 0, 0]),
        None => return Err(unsupported(source)),
    };
    decoder.push(source, operation, Class::Move)
}

/// A conversion of bits, without sign.
fn resize(from: Type, to: Type) -> Conversion {
    Conversion { to, from, rounding: Rounding::Nearest, to_integer: None, sat: false, ftz: false }
}

/// The type of the parts of a register.
fn part_type(source: &Source, ty: Type, count: usize) -> Result<Type, Error> {
    match ty.size() as usize / count.max(1) {
        1 => Ok(Type::B8),
        2 => Ok(Type::B16),
        4 => Ok(Type::B32),
        _ => Err(unsupported(source)),
    }
}

fn cvt(decoder: &mut Decoder, source: &Source) -> Result<(), Error> {
    let known = ["rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "sat", "satfinite", "ftz"];
    check(source, &known)?;
    let n = source.opcode.len();
    let types = source.opcode.get(n.wrapping_sub(2)).and_then(|name| Type::parse(name));
    let (Some(to), from) = (types, last_type(source)?) else { return Err(unsupported(source)) };
    if byte(to).is_some() || byte(from).is_some() {
        return bytes(decoder, source, to, from);
    }
    if source.has("satfinite") {
        return Err(unsupported(source));
    }
    let packed = |ty| matches!(ty, Type::F16x2 | Type::Bf16x2 | Type::Pred);
    if packed(to) && !packed(from) && to != Type::Pred {
        return pack(decoder, source, to, from);
    }
    if packed(to) || packed(from) {
        return Err(unsupported(source));
    }
    let rounding = match ["rz", "rm", "rp"].iter().position(|name| source.has(name)) {
        Some(0) => Rounding::Zero,
        Some(1) => Rounding::Down,
        Some(_) => Rounding::Up,
        None => Rounding::Nearest,
    };
    let to_integer = match ["rni", "rzi", "rmi", "rpi"].iter().position(|name| source.has(name)) {
        Some(0) => Some(ToInteger::Nearest),
        Some(1) => Some(ToInteger::Zero),
        Some(2) => Some(ToInteger::Down),
        Some(_) => Some(ToInteger::Up),
        None => None,
    };
    let conversion = Conversion { to, from, rounding, to_integer, sat: source.has("sat"), ftz: source.has("ftz") };
    let [d, a] = operands(source)?;
    let (d, a) = (decoder.write_any(d, to, source.line)?, decoder.read_any(a, from, source.line)?);
    let class = match (to.is_integer(), from.is_integer()) {
        (true, true) => Class::Move,
        (false, _) => class_of_type(to),
        (true, false) => class_of_type(from),
    };
    decoder.push(source, Operation::Convert(conversion, d, a), class)
}

/// `cvt.rn.f16x2.f32 d, high, low`: two conversions and a move.
fn pack(decoder: &mut Decoder, source: &Source, to: Type, from: Type) -> Result<(), Error> {
    check(source, &["rn"])?;
    let [d, high, low] = operands(source)?;
    let line = source.line;
    let d = decoder.write(d, to, line)?;
    let half = if to == Type::F16x2 { Type::F16 } else { Type::Bf16 };
    let mut parts: Vec<Reg> = Vec::new();
    for operand in [low, high] {
        let a = decoder.read(operand, from, line)?;
        let part = decoder.fresh(Bank::Word);
        let conversion = resize(from, half);
        decoder.push(source, Operation::Convert(conversion, (Bank::Word, part), (Bank::Word, a)), Class::Float16)?;
        parts.push(part);
    }
    decoder.push(source, Operation::Join { ty: to, d, parts }, Class::Move)
}

/// The type of the parts of a pair of floats of 8 bits.
fn byte(pair: Type) -> Option<Type> {
    [(Type::E4m3x2, Type::E4m3), (Type::E5m2x2, Type::E5m2)].into_iter().find(|(own, _)| *own == pair).map(|(_, ty)| ty)
}

/// `cvt.rn.satfinite.e4m3x2.f32 d, high, low` and `cvt.rn.f16x2.e4m3x2 d, a`: two conversions, and moves.
fn bytes(decoder: &mut Decoder, source: &Source, to: Type, from: Type) -> Result<(), Error> {
    let line = source.line;
    let (mut sources, part): (Vec<Reg>, _) = match (byte(to), byte(from), from, to) {
        (Some(part), None, Type::F32, _) if source.has("satfinite") => {
            let [_, high, low] = operands(source)?;
            ([low, high].into_iter().map(|operand| decoder.read(operand, from, line)).collect::<Result<_, _>>()?, part)
        }
        (None, Some(part), _, Type::F16x2) => {
            let [_, a] = operands(source)?;
            let a = decoder.read(a, from, line)?;
            let parts = vec![decoder.fresh(Bank::Word), decoder.fresh(Bank::Word)];
            decoder.push(source, Operation::Split { ty: from, parts: parts.clone(), a }, Class::Move)?;
            (parts, part)
        }
        _ => return Err(unsupported(source)),
    };
    let (from_part, to_part) = if to == Type::F16x2 { (part, Type::F16) } else { (from, part) };
    for register in &mut sources {
        let target = decoder.fresh(Bank::Word);
        let conversion = resize(from_part, to_part);
        decoder.push(
            source,
            Operation::Convert(conversion, (Bank::Word, target), (Bank::Word, *register)),
            Class::Float16,
        )?;
        *register = target;
    }
    let Some(d) = source.operands.first() else { return Err(unsupported(source)) };
    let d = decoder.write(d, to, line)?;
    decoder.push(source, Operation::Join { ty: to, d, parts: sources }, Class::Move)
}

fn cvta(decoder: &mut Decoder, source: &Source) -> Result<(), Error> {
    let is_back = source.has("to");
    let name = source.opcode.get(1 + usize::from(is_back)).ok_or_else(|| unsupported(source))?;
    let base = match Space::parse(name) {
        Some(Space::Global | Space::Const) => 0,
        Some(Space::Shared) => SHARED_BASE,
        Some(Space::Local) => LOCAL_BASE,
        Some(Space::Param | Space::Generic) | None => return Err(unsupported(source)),
    };
    let ty = last_type(source)?;
    let [d, a] = operands(source)?;
    let (d, a) = (decoder.write(d, ty, source.line)?, decoder.read(a, ty, source.line)?);
    let base = decoder.number(&Operand::Integer(base), ty, source.line)?.ok_or_else(|| unsupported(source))?;
    if ty.size() != 8 {
        return Err(unsupported(source));
    }
    let op = if is_back { IntOp::Sub } else { IntOp::Add };
    decoder.push(source, Operation::Long(op, [d, a, base, 0]), Class::Move)
}
