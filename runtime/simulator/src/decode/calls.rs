//! Decodes branches, calls, ends of lanes, and barriers of the block.

use super::{
    arithmetic::check,
    function::{Decoder, unsupported},
    table::{Barrier, BarrierResult, Call, Callee, Operation, Reg, Slot, Vote},
};
use crate::{
    count::Class,
    error::Error,
    parse::{Operand, Source, Type},
};

/// Decodes an instruction if it is of this file.
pub(super) fn decode(decoder: &mut Decoder, source: &Source) -> Result<bool, Error> {
    match source.opcode[0].as_str() {
        "bra" => {
            check(source, &["uni"])?;
            let [Operand::Name(label)] = &source.operands[..] else { return Err(unsupported(source)) };
            decoder.push_branch(source, label)?;
        }
        "ret" => decoder.push(source, Operation::Return, Class::Control)?,
        "exit" => decoder.push(source, Operation::Exit, Class::Control)?,
        "trap" | "brkpt" => decoder.push(source, Operation::Trap, Class::Control)?,
        "call" => call(decoder, source)?,
        "bar" if source.has("warp") => return Ok(false),
        "bar" | "barrier" => barrier(decoder, source)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn slots(decoder: &Decoder, source: &Source, operand: Option<&Operand>) -> Result<Vec<Slot>, Error> {
    let Some(operand) = operand else { return Ok(Vec::new()) };
    let Operand::List(names) = operand else { return Err(unsupported(source)) };
    let slot = |operand: &Operand| if let Operand::Name(name) = operand { decoder.param_slot(name) } else { None };
    names.iter().map(|name| slot(name).ok_or_else(|| unsupported(source))).collect()
}

/// `call (results), function, (arguments);`
fn call(decoder: &mut Decoder, source: &Source) -> Result<(), Error> {
    check(source, &["uni"])?;
    let has_results = matches!(source.operands.first(), Some(Operand::List(_)));
    let results = slots(decoder, source, source.operands.first().filter(|_| has_results))?;
    let rest = &source.operands[usize::from(has_results)..];
    let Some(Operand::Name(name)) = rest.first().filter(|_| rest.len() <= 2) else { return Err(unsupported(source)) };
    let args = slots(decoder, source, rest.get(1))?;
    if decoder.declared(name).is_some() {
        return Err(Error::at(source.line, "calls of function pointers are not supported"));
    }
    let callee = match decoder.symbols.function(name) {
        Some(number) => Callee::Function(number),
        None => Callee::External(name.clone()),
    };
    decoder.push(source, Operation::Call(Box::new(Call { callee, args, results })), Class::Control)
}

fn barrier(decoder: &mut Decoder, source: &Source) -> Result<(), Error> {
    check(source, &["cta", "sync", "arrive", "aligned", "red", "and", "or", "popc"])?;
    let line = source.line;
    let always = Vote { p: decoder.truth(true), negated: false };
    let reduces = source.has("red");
    let mut operands = &source.operands[..];
    let mut result = BarrierResult::None;
    let mut p = always;
    if reduces {
        let [d, .., last] = operands else { return Err(unsupported(source)) };
        result = match source.opcode.iter().find(|name| matches!(name.as_str(), "and" | "or" | "popc")) {
            Some(name) if name == "and" => BarrierResult::And(decoder.write(d, Type::Pred, line)?),
            Some(name) if name == "or" => BarrierResult::Or(decoder.write(d, Type::Pred, line)?),
            Some(_) => BarrierResult::Popc(decoder.write(d, Type::U32, line)?),
            None => return Err(unsupported(source)),
        };
        p = decoder.predicate(last, line)?;
        operands = &operands[1..operands.len() - 1];
    }
    let (id, threads): (Reg, Option<Reg>) = match operands {
        [id] => (decoder.read(id, Type::U32, line)?, None),
        [id, threads] => (decoder.read(id, Type::U32, line)?, Some(decoder.read(threads, Type::U32, line)?)),
        _ => return Err(unsupported(source)),
    };
    let barrier = Barrier { id, threads, waits: !source.has("arrive"), p, result };
    decoder.push(source, Operation::Barrier(Box::new(barrier)), Class::Barrier)
}
