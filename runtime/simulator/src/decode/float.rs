//! Decodes operations on floats.

use super::{
    arithmetic::{check, last_type},
    function::{Decoder, unsupported},
    table::{Bank, FloatOp, Format, Mode, Operation, Rounding},
};
use crate::{
    count::Class,
    error::Error,
    parse::{Source, Type},
};

/// The class of operations on a type that have no class of their own.
pub(super) fn class_of_type(ty: Type) -> Class {
    if ty == Type::F64 {
        Class::Float64Other
    } else if ty == Type::F32 {
        Class::Float32Other
    } else {
        Class::Float16
    }
}

fn class(op: FloatOp, ty: Type) -> Class {
    match (ty, op) {
        (Type::F32, FloatOp::Add | FloatOp::Sub) => Class::Float32Add,
        (Type::F32, FloatOp::Mul) => Class::Float32Mul,
        (Type::F32, FloatOp::Fma | FloatOp::MulSub | FloatOp::SubMul) => Class::Float32Fma,
        (Type::F64, FloatOp::Add | FloatOp::Sub) => Class::Float64Add,
        (Type::F64, FloatOp::Mul) => Class::Float64Mul,
        (Type::F64, FloatOp::Fma | FloatOp::MulSub | FloatOp::SubMul) => Class::Float64Fma,
        _ => class_of_type(ty),
    }
}

fn operation(name: &str, approximate: bool, propagates_nan: bool) -> Option<(FloatOp, usize)> {
    Some(match name {
        "add" => (FloatOp::Add, 2),
        "sub" => (FloatOp::Sub, 2),
        "mul" => (FloatOp::Mul, 2),
        "fma" | "mad" => (FloatOp::Fma, 3),
        "div" => (FloatOp::Div, 2),
        "sqrt" => (FloatOp::Sqrt, 1),
        "rcp" => (FloatOp::Rcp, 1),
        "min" if propagates_nan => (FloatOp::MinNan, 2),
        "max" if propagates_nan => (FloatOp::MaxNan, 2),
        "min" => (FloatOp::Min, 2),
        "max" => (FloatOp::Max, 2),
        "abs" => (FloatOp::Abs, 1),
        "neg" => (FloatOp::Neg, 1),
        "copysign" => (FloatOp::Copysign, 2),
        "rsqrt" if approximate => (FloatOp::Rsqrt, 1),
        "ex2" if approximate => (FloatOp::Ex2, 1),
        "lg2" if approximate => (FloatOp::Lg2, 1),
        "sin" if approximate => (FloatOp::Sin, 1),
        "cos" if approximate => (FloatOp::Cos, 1),
        "tanh" if approximate => (FloatOp::Tanh, 1),
        _ => return None,
    })
}

/// The modifiers of an instruction with a number of operands.
fn mode(source: &Source, count: usize) -> Result<Mode, Error> {
    check(source, &["rn", "rz", "rm", "rp", "ftz", "noftz", "sat", "approx", "full", "NaN", PACKED])?;
    if source.operands.len() != count + 1 {
        return Err(unsupported(source));
    }
    let written = ["rz", "rm", "rp"].iter().position(|name| source.has(name));
    let rounding = match written {
        Some(0) => Rounding::Zero,
        Some(1) => Rounding::Down,
        Some(_) => Rounding::Up,
        None => Rounding::Nearest,
    };
    let contracts = written.is_none() && !source.has("rn");
    Ok(Mode { rounding, ftz: source.has("ftz"), sat: source.has("sat"), contracts })
}

/// Two values of float32 in a register of 64 bits, since compute capability 10.0.
const PACKED: &str = "f32x2";

/// Decodes an operation on packed float32 to operations on the halves. Products and sums are not contracted.
fn packed(decoder: &mut Decoder, source: &Source) -> Result<bool, Error> {
    let Some((op @ (FloatOp::Add | FloatOp::Sub | FloatOp::Mul | FloatOp::Fma), count)) =
        operation(&source.opcode[0], false, false)
    else {
        return Ok(false);
    };
    let (mode, line) = (mode(source, count)?, source.line);
    let mut halves = [[0; 4]; 2];
    let mut fresh = |decoder: &mut Decoder, index: usize| {
        for half in &mut halves {
            half[index] = decoder.fresh(Bank::Word);
        }
        halves.iter().map(|half| half[index]).collect::<Vec<_>>()
    };
    for (index, operand) in source.operands[1..].iter().enumerate() {
        let a = decoder.read(operand, Type::B64, line)?;
        let parts = fresh(decoder, index + 1);
        decoder.push(source, Operation::Split { ty: Type::B64, parts, a }, Class::Move)?;
    }
    let parts = fresh(decoder, 0);
    for registers in halves {
        decoder.push(source, Operation::Single(op, mode, registers), class(op, Type::F32))?;
    }
    let d = decoder.write(&source.operands[0], Type::B64, line)?;
    decoder.push(source, Operation::Join { ty: Type::B64, d, parts }, Class::Move)?;
    Ok(true)
}

/// Decodes an instruction if it is of this file.
pub(super) fn decode(decoder: &mut Decoder, source: &Source) -> Result<bool, Error> {
    if source.has(PACKED) {
        return packed(decoder, source);
    }
    let Ok(ty) = last_type(source) else { return Ok(false) };
    if ty.is_integer() || ty == Type::Pred {
        return Ok(false);
    }
    let Some((op, count)) = operation(&source.opcode[0], source.has("approx"), source.has("NaN")) else {
        return Ok(false);
    };
    let mode = mode(source, count)?;
    let line = source.line;
    let mut registers = [decoder.write(&source.operands[0], ty, line)?, 0, 0, 0];
    for (index, operand) in source.operands[1..].iter().enumerate() {
        registers[index + 1] = decoder.read(operand, ty, line)?;
    }
    let operation = if ty == Type::F32 {
        Operation::Single(op, mode, registers)
    } else if ty == Type::F64 {
        Operation::Double(op, mode, registers)
    } else {
        let format = if matches!(ty, Type::F16 | Type::F16x2) { Format::F16 } else { Format::Bf16 };
        Operation::Half(op, mode, format, ty.size() == 4, registers)
    };
    decoder.push(source, operation, class(op, ty))?;
    Ok(true)
}
