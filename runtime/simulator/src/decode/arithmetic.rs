//! Decodes operations on integers, bits and predicates, comparisons and selections.

use super::{
    function::{Decoder, bank_of, unsupported},
    table::{Bank, CarryOp, IntOp, Logic, MixedOp, Operation, Relation, SINK, Vote, WordOp},
};
use crate::{
    count::Class,
    error::Error,
    parse::{Operand, Source, Type},
};

/// The type that the last modifier names.
pub(super) fn last_type(source: &Source) -> Result<Type, Error> {
    source.opcode.last().and_then(|name| Type::parse(name)).ok_or_else(|| unsupported(source))
}

/// The operands, whose number must be right.
pub(super) fn operands<const N: usize>(source: &Source) -> Result<[&Operand; N], Error> {
    let all: Vec<_> = source.operands.iter().collect();
    all.try_into().map_err(|_| Error::at(source.line, format!("`{}` takes {N} operands", source.form())))
}

/// Fails if a modifier is not one of those that are known.
pub(super) fn check(source: &Source, known: &[&str]) -> Result<(), Error> {
    let unknown = source.opcode[1..].iter().find(|name| Type::parse(name).is_none() && !known.contains(&name.as_str()));
    if unknown.is_some() { Err(unsupported(source)) } else { Ok(()) }
}

/// Decodes an instruction if it is of this file.
pub(super) fn decode(decoder: &mut Decoder, source: &Source) -> Result<bool, Error> {
    match source.opcode[0].as_str() {
        "setp" => compare(decoder, source)?,
        "selp" => {
            check(source, &[])?;
            let ty = last_type(source)?;
            let [d, a, b, p] = operands(source)?;
            let registers = [
                decoder.write(d, ty, source.line)?,
                decoder.read(a, ty, source.line)?,
                decoder.read(b, ty, source.line)?,
                decoder.read(p, Type::Pred, source.line)?,
            ];
            let bank = bank_of(ty).unwrap_or(Bank::Long);
            decoder.push(source, Operation::Select(bank, registers), Class::Other)?;
        }
        "and" | "or" | "xor" | "not" if source.has("pred") => predicate(decoder, source)?,
        _ if source.has("cc") || matches!(source.opcode[0].as_str(), "addc" | "subc" | "madc") => {
            return carry(decoder, source);
        }
        "mul" | "mad" if source.has("wide") => wide(decoder, source)?,
        "bfi" => insert(decoder, source)?,
        _ => return Ok(word_only(decoder, source)? || mixed(decoder, source)? || integer(decoder, source)?),
    }
    Ok(true)
}

/// The class of an operation on integers of a type.
pub(super) fn class(ty: Type) -> Class {
    match ty.size() {
        8 => Class::Int64,
        1 | 2 => Class::Int16,
        _ => Class::Int32,
    }
}

fn integer(decoder: &mut Decoder, source: &Source) -> Result<bool, Error> {
    let Ok(ty) = last_type(source) else { return Ok(false) };
    if !ty.is_integer() {
        return Ok(false);
    }
    let (signed, high) = (ty.is_signed(), source.has("hi"));
    let pick = |u, s| if signed { s } else { u };
    let saturates = source.has("sat");
    let op = match (source.opcode[0].as_str(), saturates) {
        ("add", true) => IntOp::AddSat,
        ("sub", true) => IntOp::SubSat,
        (_, true) => return Ok(false),
        ("add", false) => IntOp::Add,
        ("sub", false) => IntOp::Sub,
        ("mul", false) if high => pick(IntOp::MulHiU, IntOp::MulHiS),
        ("mul", false) => IntOp::MulLo,
        ("mad", false) if high => pick(IntOp::MadHiU, IntOp::MadHiS),
        ("mad", false) => IntOp::MadLo,
        ("div", false) => pick(IntOp::DivU, IntOp::DivS),
        ("rem", false) => pick(IntOp::RemU, IntOp::RemS),
        ("min", false) => pick(IntOp::MinU, IntOp::MinS),
        ("max", false) => pick(IntOp::MaxU, IntOp::MaxS),
        ("abs", false) => IntOp::Abs,
        ("neg", false) => IntOp::Neg,
        ("and", false) => IntOp::And,
        ("or", false) => IntOp::Or,
        ("xor", false) => IntOp::Xor,
        ("not", false) => IntOp::Not,
        ("cnot", false) => IntOp::Cnot,
        ("shl", false) => IntOp::Shl,
        ("shr", false) => pick(IntOp::ShrU, IntOp::ShrS),
        ("sad", false) => pick(IntOp::SadU, IntOp::SadS),
        ("brev", false) => IntOp::Brev,
        _ => return Ok(false),
    };
    // `max.relu` is the higher of the result and 0.
    let relu = source.has("relu") && ty == Type::S32 && matches!(op, IntOp::MinS | IntOp::MaxS);
    check(source, &["lo", "hi", "sat", if relu { "relu" } else { "" }])?;
    let line = source.line;
    let Some((d, rest)) = source.operands.split_first().filter(|(_, rest)| rest.len() <= 3) else {
        return Err(unsupported(source));
    };
    let mut registers = [decoder.write(d, ty, line)?, 0, 0, 0];
    for (index, operand) in rest.iter().enumerate() {
        // The distance of a shift is a word at every size.
        let own = if index == 1 && matches!(op, IntOp::Shl | IntOp::ShrU | IntOp::ShrS) { Type::U32 } else { ty };
        registers[index + 1] = decoder.read(operand, own, line)?;
    }
    let operation = match ty.size() {
        2 => Operation::Short(op, registers),
        4 => Operation::Word(op, registers),
        8 => Operation::Long(op, registers),
        _ => return Err(unsupported(source)),
    };
    decoder.push(source, operation, class(ty))?;
    if relu {
        let clamped = [registers[0], registers[0], decoder.word_constant(0), 0];
        decoder.push(source, Operation::Word(IntOp::MaxS, clamped), class(ty))?;
    }
    Ok(true)
}

fn word_only(decoder: &mut Decoder, source: &Source) -> Result<bool, Error> {
    let Ok(ty) = last_type(source) else { return Ok(false) };
    if ty.size() != 4 || !ty.is_integer() {
        return Ok(false);
    }
    let clamp = source.has("clamp");
    let op = match source.opcode[0].as_str() {
        "popc" => WordOp::Popc,
        "clz" => WordOp::Clz,
        "bfe" if ty.is_signed() => WordOp::BfeS,
        "bfe" => WordOp::BfeU,
        "prmt" => WordOp::Prmt,
        "shf" if source.has("l") => WordOp::FunnelLeft { clamp },
        "shf" if source.has("r") => WordOp::FunnelRight { clamp },
        "bfind" if ty.is_signed() => WordOp::FindS,
        "bfind" => WordOp::FindU,
        "dp4a" if source.opcode[1] == source.opcode[2] => {
            if ty.is_signed() {
                WordOp::Dp4aS
            } else {
                WordOp::Dp4aU
            }
        }
        "lop3" => {
            let Some(Operand::Integer(table)) = source.operands.last() else { return Err(unsupported(source)) };
            WordOp::Logic(*table as u8)
        }
        _ => return Ok(false),
    };
    check(source, &["l", "r", "wrap", "clamp"])?;
    let count = source.operands.len() - usize::from(matches!(op, WordOp::Logic(_)));
    if !(2..=4).contains(&count) {
        return Err(unsupported(source));
    }
    let mut registers = [decoder.write(&source.operands[0], ty, source.line)?, 0, 0, 0];
    for (index, operand) in source.operands[1..count].iter().enumerate() {
        registers[index + 1] = decoder.read(operand, Type::U32, source.line)?;
    }
    decoder.push(source, Operation::WordOnly(op, registers), Class::Int32)?;
    Ok(true)
}

fn mixed(decoder: &mut Decoder, source: &Source) -> Result<bool, Error> {
    let Ok(ty) = last_type(source) else { return Ok(false) };
    if ty.size() != 8 || !ty.is_integer() {
        return Ok(false);
    }
    let (op, words) = match source.opcode[0].as_str() {
        "shl" => (MixedOp::Shl, 1),
        "shr" if ty.is_signed() => (MixedOp::ShrS, 1),
        "shr" => (MixedOp::ShrU, 1),
        "bfe" if ty.is_signed() => (MixedOp::BfeS, 2),
        "bfe" => (MixedOp::BfeU, 2),
        "popc" => (MixedOp::Popc, 0),
        "clz" => (MixedOp::Clz, 0),
        _ => return Ok(false),
    };
    check(source, &[])?;
    if source.operands.len() != 2 + words {
        return Err(unsupported(source));
    }
    let result = if matches!(op, MixedOp::Popc | MixedOp::Clz) { Type::U32 } else { ty };
    let line = source.line;
    let mut registers = [decoder.write(&source.operands[0], result, line)?, 0, 0, 0];
    registers[1] = decoder.read(&source.operands[1], ty, line)?;
    for (index, operand) in source.operands[2..].iter().enumerate() {
        registers[index + 2] = decoder.read(operand, Type::U32, line)?;
    }
    decoder.push(source, Operation::Mixed(op, registers), Class::Int64)?;
    Ok(true)
}

fn insert(decoder: &mut Decoder, source: &Source) -> Result<(), Error> {
    check(source, &[])?;
    let ty = last_type(source)?;
    let [d, a, b, at, len] = operands(source)?;
    let line = source.line;
    let registers = [
        decoder.write(d, ty, line)?,
        decoder.read(a, ty, line)?,
        decoder.read(b, ty, line)?,
        decoder.read(at, Type::U32, line)?,
        decoder.read(len, Type::U32, line)?,
    ];
    let bank = bank_of(ty).ok_or_else(|| unsupported(source))?;
    decoder.push(source, Operation::Insert(bank, registers), class(ty))
}

fn wide(decoder: &mut Decoder, source: &Source) -> Result<(), Error> {
    check(source, &["wide"])?;
    let ty = last_type(source)?;
    let pairs = [(Type::U16, Type::U32), (Type::S16, Type::S32), (Type::U32, Type::U64), (Type::S32, Type::S64)];
    let Some((_, twice)) = pairs.into_iter().find(|(narrow, _)| *narrow == ty) else {
        return Err(unsupported(source));
    };
    let line = source.line;
    let count = source.operands.len();
    if count != if source.opcode[0] == "mad" { 4 } else { 3 } {
        return Err(unsupported(source));
    }
    let registers = [
        decoder.write(&source.operands[0], twice, line)?,
        decoder.read(&source.operands[1], ty, line)?,
        decoder.read(&source.operands[2], ty, line)?,
    ];
    let summand = source.operands.get(3).map(|operand| decoder.read(operand, twice, line)).transpose()?;
    decoder.push(source, Operation::Wide { ty, registers, summand }, class(twice))
}

fn carry(decoder: &mut Decoder, source: &Source) -> Result<bool, Error> {
    check(source, &["cc", "lo", "hi"])?;
    let ty = last_type(source)?;
    let (reads, op) = match source.opcode[0].as_str() {
        "add" => (false, CarryOp::Add),
        "addc" => (true, CarryOp::Add),
        "sub" => (false, CarryOp::Sub),
        "subc" => (true, CarryOp::Sub),
        name @ ("mad" | "madc") => {
            let op = match (source.has("hi"), ty.is_signed()) {
                (false, _) => CarryOp::MadLo,
                (true, false) => CarryOp::MadHiU,
                (true, true) => CarryOp::MadHiS,
            };
            (name == "madc", op)
        }
        _ => return Ok(false),
    };
    let bank = bank_of(ty).filter(|_| ty.size() >= 4).ok_or_else(|| unsupported(source))?;
    let mut registers = [decoder.write(&source.operands[0], ty, source.line)?, 0, 0, 0];
    if source.operands.len() != if matches!(op, CarryOp::Add | CarryOp::Sub) { 3 } else { 4 } {
        return Err(unsupported(source));
    }
    for (index, operand) in source.operands[1..].iter().enumerate() {
        registers[index + 1] = decoder.read(operand, ty, source.line)?;
    }
    let operation = Operation::Carry { op, bank, reads, writes: source.has("cc"), registers };
    decoder.push(source, operation, class(ty))?;
    Ok(true)
}

fn predicate(decoder: &mut Decoder, source: &Source) -> Result<(), Error> {
    let op = match source.opcode[0].as_str() {
        "and" => Logic::And,
        "or" => Logic::Or,
        "xor" => Logic::Xor,
        _ => Logic::Not,
    };
    if source.operands.len() != if op == Logic::Not { 2 } else { 3 } {
        return Err(unsupported(source));
    }
    let line = source.line;
    let a = decoder.read(&source.operands[1], Type::Pred, line)?;
    let b = source.operands.get(2).map_or(Ok(a), |operand| decoder.read(operand, Type::Pred, line))?;
    let d = decoder.write(&source.operands[0], Type::Pred, line)?;
    decoder.push(source, Operation::Predicate(op, [d, a, b]), Class::Other)
}

/// The relation of a comparison, and whether it holds for NaN.
fn relation(name: &str) -> Option<(Relation, bool)> {
    Some(match name {
        "eq" => (Relation::Eq, false),
        "ne" => (Relation::Ne, false),
        "lt" | "lo" => (Relation::Lt, false),
        "le" | "ls" => (Relation::Le, false),
        "gt" | "hi" => (Relation::Gt, false),
        "ge" | "hs" => (Relation::Ge, false),
        "equ" => (Relation::Eq, true),
        "neu" => (Relation::Ne, true),
        "ltu" => (Relation::Lt, true),
        "leu" => (Relation::Le, true),
        "gtu" => (Relation::Gt, true),
        "geu" => (Relation::Ge, true),
        "num" => (Relation::Num, false),
        "nan" => (Relation::Nan, false),
        _ => return None,
    })
}

fn compare(decoder: &mut Decoder, source: &Source) -> Result<(), Error> {
    let ty = last_type(source)?;
    let Some((relation, unordered)) = source.opcode.get(1).and_then(|name| relation(name)) else {
        return Err(unsupported(source));
    };
    let middle = &source.opcode[2..source.opcode.len() - 1];
    let logic = match middle {
        [] => None,
        [name] if name == "ftz" && ty == Type::F32 => None,
        [name] if name == "and" => Some(Logic::And),
        [name] if name == "or" => Some(Logic::Or),
        [name] if name == "xor" => Some(Logic::Xor),
        _ => return Err(unsupported(source)),
    };
    if matches!(ty, Type::F16x2 | Type::Bf16x2 | Type::Pred) || ty.size() == 1 {
        return Err(unsupported(source));
    }
    let line = source.line;
    let (p, q) = match source.operands.first() {
        Some(Operand::Pair(p, q)) => (decoder.write(p, Type::Pred, line)?, decoder.write(q, Type::Pred, line)?),
        Some(p) => (decoder.write(p, Type::Pred, line)?, SINK),
        None => return Err(unsupported(source)),
    };
    if source.operands.len() != if logic.is_some() { 4 } else { 3 } {
        return Err(unsupported(source));
    }
    let [a, b] = [decoder.read(&source.operands[1], ty, line)?, decoder.read(&source.operands[2], ty, line)?];
    let logic = match logic {
        Some(logic) => Some((logic, decoder.predicate(&source.operands[3], line)?)),
        None => None::<(Logic, Vote)>,
    };
    let class = if ty.is_integer() { class(ty) } else { super::float::class_of_type(ty) };
    decoder.push(source, Operation::Compare { relation, unordered, ty, p, q, a, b, logic }, class)
}
