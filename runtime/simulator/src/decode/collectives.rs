//! Decodes collectives of a warp, fences and sleeps.

use super::{
    arithmetic::{check, last_type, operands},
    function::{Decoder, bank_of, unsupported},
    table::{AtomicOp, Bank, Collective, Operation, Reg, SINK, Shuffle},
};
use crate::{
    count::Class,
    error::Error,
    parse::{Operand, Source, Type},
};

/// Decodes an instruction if it is of this file.
pub(super) fn decode(decoder: &mut Decoder, source: &Source) -> Result<bool, Error> {
    let line = source.line;
    match source.opcode[0].as_str() {
        "membar" | "fence" => decoder.push(source, Operation::Nop, Class::Other)?,
        "nanosleep" => decoder.push(source, Operation::Sleep, Class::Other)?,
        "activemask" => {
            let [d] = operands(source)?;
            let d = decoder.write(d, Type::B32, line)?;
            decoder.push(source, Operation::ActiveMask(d), Class::Other)?;
        }
        "bar" => {
            check(source, &["warp", "sync"])?;
            let [mask] = operands(source)?;
            let mask = decoder.read(mask, Type::B32, line)?;
            decoder.push(source, Operation::Collective(Collective::Barrier, mask), Class::Collective)?;
        }
        "shfl" => shuffle(decoder, source)?,
        "vote" => vote(decoder, source)?,
        "match" => equal(decoder, source)?,
        "redux" => reduce(decoder, source)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// The results `d` and `d|p`.
fn results(decoder: &mut Decoder, operand: &Operand, line: u32) -> Result<(Reg, Reg), Error> {
    if let Operand::Pair(d, p) = operand {
        Ok((decoder.write(d, Type::B32, line)?, decoder.write(p, Type::Pred, line)?))
    } else {
        Ok((decoder.write(operand, Type::B32, line)?, SINK))
    }
}

fn shuffle(decoder: &mut Decoder, source: &Source) -> Result<(), Error> {
    check(source, &["sync", "up", "down", "bfly", "idx"])?;
    let line = source.line;
    let mode = match source.opcode.get(2).map(String::as_str) {
        Some("up") => Shuffle::Up,
        Some("down") => Shuffle::Down,
        Some("bfly") => Shuffle::Bfly,
        Some("idx") => Shuffle::Idx,
        _ => return Err(unsupported(source)),
    };
    let [d, a, b, c, mask] = operands(source)?;
    let (d, p) = results(decoder, d, line)?;
    let [a, b, c, mask] = [
        decoder.read(a, Type::B32, line)?,
        decoder.read(b, Type::B32, line)?,
        decoder.read(c, Type::B32, line)?,
        decoder.read(mask, Type::B32, line)?,
    ];
    decoder.push(source, Operation::Collective(Collective::Shuffle(mode, d, p, a, b, c), mask), Class::Collective)
}

fn vote(decoder: &mut Decoder, source: &Source) -> Result<(), Error> {
    check(source, &["sync", "all", "any", "uni", "ballot"])?;
    let line = source.line;
    let [d, p, mask] = operands(source)?;
    let p = decoder.predicate(p, line)?;
    let mask = decoder.read(mask, Type::B32, line)?;
    let collective = if source.has("ballot") {
        Collective::Ballot(decoder.write(d, Type::B32, line)?, p)
    } else {
        let d = decoder.write(d, Type::Pred, line)?;
        match source.opcode.get(2).map(String::as_str) {
            Some("all") => Collective::VoteAll(d, p),
            Some("any") => Collective::VoteAny(d, p),
            Some("uni") => Collective::VoteUni(d, p),
            _ => return Err(unsupported(source)),
        }
    };
    decoder.push(source, Operation::Collective(collective, mask), Class::Collective)
}

fn equal(decoder: &mut Decoder, source: &Source) -> Result<(), Error> {
    check(source, &["sync", "any", "all"])?;
    let line = source.line;
    let ty = last_type(source)?;
    let [d, a, mask] = operands(source)?;
    let (d, p) = results(decoder, d, line)?;
    let a = decoder.read(a, ty, line)?;
    let mask = decoder.read(mask, Type::B32, line)?;
    let bank = bank_of(ty).unwrap_or(Bank::Word);
    let collective =
        if source.has("all") { Collective::MatchAll(d, p, bank, a) } else { Collective::MatchAny(d, bank, a) };
    decoder.push(source, Operation::Collective(collective, mask), Class::Collective)
}

fn reduce(decoder: &mut Decoder, source: &Source) -> Result<(), Error> {
    check(source, &["sync", "add", "min", "max", "and", "or", "xor"])?;
    let line = source.line;
    let ty = last_type(source)?;
    let op = match source.opcode.get(2).map(String::as_str) {
        Some("add") => AtomicOp::Add,
        Some("min") => AtomicOp::Min,
        Some("max") => AtomicOp::Max,
        Some("and") => AtomicOp::And,
        Some("or") => AtomicOp::Or,
        Some("xor") => AtomicOp::Xor,
        _ => return Err(unsupported(source)),
    };
    let [d, a, mask] = operands(source)?;
    let (d, a) = (decoder.write(d, ty, line)?, decoder.read(a, ty, line)?);
    let mask = decoder.read(mask, Type::B32, line)?;
    decoder.push(source, Operation::Collective(Collective::Redux(op, ty.is_signed(), d, a), mask), Class::Collective)
}
