//! Decodes products of matrices and loads of their operands.

use weft_artifact::{MatrixKind, MatrixPart, MatrixTile};

use super::{
    arithmetic::operands,
    function::{Decoder, unsupported},
    memory,
    table::{Bank, LoadMatrix, Multiply, Operation, Reg},
};
use crate::{
    count::Class,
    error::Error,
    parse::{Operand, Source, Type},
};

/// Decodes an instruction if it is of this file.
pub(super) fn decode(decoder: &mut Decoder, source: &Source) -> Result<bool, Error> {
    match source.opcode[0].as_str() {
        "mma" => multiply(decoder, source)?,
        "ldmatrix" => load(decoder, source)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// The operands of a vector, or the operand alone.
pub(super) fn elements(source: &Source, operand: &Operand, count: usize) -> Result<Vec<Operand>, Error> {
    let found = if let Operand::Vector(elements) = operand { elements.clone() } else { vec![operand.clone()] };
    if found.len() == count { Ok(found) } else { Err(unsupported(source)) }
}

/// `mma.sync`: one of the instructions of weft's tiles.
fn multiply(decoder: &mut Decoder, source: &Source) -> Result<(), Error> {
    let one = |kind: MatrixKind| MatrixTile::new(kind.instruction().map(i128::from), kind.names(), 32).ok();
    let mut tiles = MatrixKind::ALL.into_iter().filter_map(one);
    let form = source.opcode.join(".");
    let Some(tile) = tiles.find(|tile| tile.ptx() == form) else { return Err(unsupported(source)) };
    let (register, accumulator) = if tile.kind() == MatrixKind::F64 {
        (Type::F64, Type::F64)
    } else {
        (Type::B32, if tile.kind().accumulator().is_float() { Type::F32 } else { Type::S32 })
    };
    let [d, a, b, c] = operands(source)?;
    let mut read = |operand: &Operand, ty: Type, count: usize| -> Result<Vec<Reg>, Error> {
        elements(source, operand, count)?.iter().map(|element| decoder.read(element, ty, source.line)).collect()
    };
    let values = tile.values_of_block();
    let a = read(a, register, tile.registers_of_block(MatrixPart::A))?;
    let b = read(b, register, tile.registers_of_block(MatrixPart::B))?;
    let c = read(c, accumulator, values)?;
    let d = elements(source, d, values)?;
    let d = d.iter().map(|element| decoder.write(element, accumulator, source.line)).collect::<Result<_, _>>()?;
    let bank = if accumulator == Type::F64 { Bank::Long } else { Bank::Word };
    let rules = decoder.symbols.rules;
    decoder.push(source, Operation::Multiply(Box::new(Multiply { tile, rules, bank, d, a, b, c })), Class::Matrix)
}

/// `ldmatrix` of matrices of eight rows of 16 bytes.
fn load(decoder: &mut Decoder, source: &Source) -> Result<(), Error> {
    let modifiers: Vec<&str> = source.opcode[1..].iter().map(String::as_str).collect();
    let (count, transposed) = match modifiers[..] {
        ["sync", "aligned", "m8n8", count, "shared", "b16"] => (count, false),
        ["sync", "aligned", "m8n8", count, "trans", "shared", "b16"] => (count, true),
        _ => return Err(unsupported(source)),
    };
    let count = match count {
        "x1" => 1,
        "x2" => 2,
        "x4" => 4,
        _ => return Err(unsupported(source)),
    };
    let [d, address] = operands(source)?;
    let d = elements(source, d, count)?;
    let d = d.iter().map(|element| decoder.write(element, Type::B32, source.line)).collect::<Result<_, _>>()?;
    let address = memory::address(decoder, source, address)?;
    decoder.push(source, Operation::LoadMatrix(Box::new(LoadMatrix { d, transposed, address })), Class::Load)
}
