//! Decodes products of matrices of a warpgroup.

use weft_artifact::{MatrixKind, MatrixPart, MatrixTile};

use super::{
    function::{Decoder, unsupported},
    matrix::elements,
    table::{Bank, Operation, Reg, Vote},
};
use crate::{
    count::Class,
    error::Error,
    parse::{Operand, Source, Type},
};

/// The rows of an instruction of a warpgroup, and the most columns.
const ROWS: i128 = 64;
const MOST_COLUMNS: i128 = 256;

/// The left factor of a product.
#[derive(Debug, Clone)]
pub(crate) enum MatrixOperand {
    Registers(Vec<Reg>),
    Shared(Descriptor),
}

/// A matrix in shared memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Descriptor {
    /// The register with the matrix descriptor.
    pub(crate) register: Reg,
    /// Elements along `k` are in different rows of memory.
    pub(crate) transposed: bool,
}

/// A product of matrices of a warpgroup, `d = a * b + d`: the registers of a lane.
#[derive(Debug, Clone)]
pub(crate) struct WarpgroupMultiply {
    pub(crate) tile: MatrixTile,
    pub(crate) d: Vec<Reg>,
    pub(crate) a: MatrixOperand,
    pub(crate) b: Descriptor,
    /// Whether `d` is added; otherwise zero is.
    pub(crate) adds: Vote,
}

impl WarpgroupMultiply {
    /// Calls a function for each register that the product writes (`true`) or reads.
    pub(super) fn for_each_register(&self, call: &mut impl FnMut(bool, Bank, Reg)) {
        for register in &self.d {
            call(false, Bank::Word, *register);
            call(true, Bank::Word, *register);
        }
        match &self.a {
            MatrixOperand::Registers(registers) => registers.iter().for_each(|own| call(false, Bank::Word, *own)),
            MatrixOperand::Shared(descriptor) => call(false, Bank::Long, descriptor.register),
        }
        call(false, Bank::Long, self.b.register);
        call(false, Bank::Predicate, self.adds.p);
    }
}

/// Decodes an instruction if it is of this file. A warp has its part of a product where it executes the instruction. The number of
/// registers of a thread changes nothing that is simulated.
pub(super) fn decode(decoder: &mut Decoder, source: &Source) -> Result<bool, Error> {
    let form: Vec<&str> = source.opcode.iter().map(String::as_str).collect();
    match form.as_slice() {
        ["wgmma", "mma_async", ..] => multiply(decoder, source)?,
        ["wgmma", "fence", "sync", "aligned"] | ["setmaxnreg", "inc" | "dec", "sync", "aligned", "u32"] => {
            decoder.push(source, Operation::Nop, Class::Other)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The tile of an instruction.
fn tile_of(form: &str) -> Option<MatrixTile> {
    let sizes = (8..=MOST_COLUMNS).step_by(8);
    let kinds = MatrixKind::ALL.into_iter().filter(|kind| kind.has_warpgroup_tiles());
    let mut tiles = kinds.flat_map(|kind| sizes.clone().map(move |n| (kind, n))).filter_map(|(kind, n)| {
        let [_, _, k] = kind.instruction().map(i128::from);
        MatrixTile::new([ROWS, n, k], kind.names(), 128).ok()
    });
    tiles.find(|tile| tile.ptx() == form)
}

fn multiply(decoder: &mut Decoder, source: &Source) -> Result<(), Error> {
    let line = source.line;
    let Some(tile) = tile_of(&source.form()) else { return Err(unsupported(source)) };
    let [d, a, b, adds, rest @ ..] = &source.operands[..] else { return Err(unsupported(source)) };
    let (is_float, is_of_halves) = (tile.kind().accumulator().is_float(), tile.kind().per_register() == 2);
    let accumulator = if is_float { Type::F32 } else { Type::S32 };
    let has_registers = matches!(a, Operand::Vector(_));
    // Floats have the signs of A and B; types of 16 bits whether the matrices in shared memory are transposed.
    let (signs, transposed) = rest.split_at(if is_float { 2 } else { 0 }.min(rest.len()));
    let n_transposed = if is_of_halves { 2 - usize::from(has_registers) } else { 0 };
    let is_known = signs.iter().all(|sign| *sign == Operand::Integer(1))
        && signs.len() == if is_float { 2 } else { 0 }
        && transposed.len() == n_transposed
        && transposed.iter().all(|each| matches!(each, Operand::Integer(0 | 1)));
    if !is_known {
        return Err(unsupported(source));
    }
    let is_transposed = |operand: Option<&Operand>| operand == Some(&Operand::Integer(1));
    let mut descriptor = |operand: &Operand, transposed: bool| {
        decoder.read(operand, Type::B64, line).map(|register| Descriptor { register, transposed })
    };
    let of_b = descriptor(b, is_transposed(transposed.last()))?;
    let a = if has_registers {
        let words = elements(source, a, tile.registers_of_block(MatrixPart::A))?;
        let read = |word: &Operand| decoder.read(word, Type::B32, line);
        MatrixOperand::Registers(words.iter().map(read).collect::<Result<_, _>>()?)
    } else {
        MatrixOperand::Shared(descriptor(a, is_transposed(transposed.first()))?)
    };
    let d = elements(source, d, tile.values())?;
    let d = d.iter().map(|element| decoder.write(element, accumulator, line)).collect::<Result<_, _>>()?;
    let adds = decoder.predicate(adds, line)?;
    let multiply = WarpgroupMultiply { tile, d, a, b: of_b, adds };
    decoder.push(source, Operation::WarpgroupMultiply(Box::new(multiply)), Class::Matrix)
}
