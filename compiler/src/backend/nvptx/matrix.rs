//! Products of matrices on a GPU: `mma.sync` and `ldmatrix`.

use inkwell::{
    types::BasicMetadataTypeEnum,
    values::{BasicMetadataValueEnum, BasicValueEnum, CallSiteValue},
};
use weft_artifact::{MatrixPart, MatrixTile, Scalar};

use crate::{
    backend::llvm::{FunctionEmitter, Result, internal},
    ir::{MatrixLoad, Type},
};

/// The constraint of a register: `f` or `d` for floats, `r` for words.
fn constraint(scalar: Scalar) -> &'static str {
    match (scalar.is_float(), scalar.size_bytes()) {
        (true, 8) => "d",
        (true, _) => "f",
        (false, _) => "r",
    }
}

/// The results of a call that all lanes of a warp execute together.
fn together<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    call: CallSiteValue<'ctx>,
    n_results: usize,
) -> Result<Vec<BasicValueEnum<'ctx>>> {
    emitter.cx.make_convergent(call);
    let Some(value) = call.try_as_basic_value().basic() else { return internal("matrices without a result") };
    let values = value.into_struct_value();
    (0..n_results as u32).map(|at| Ok(emitter.builder.build_extract_value(values, at, "")?)).collect()
}

/// Emits the instructions of a tile, those of an accumulator in ascending order of `k`. They are inline PTX, which LTO-IR
/// can contain, too.
pub(super) fn multiply<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    tile: MatrixTile,
    values: &[BasicValueEnum<'ctx>],
) -> Result<Vec<BasicValueEnum<'ctx>>> {
    let (kind, [_, columns, steps]) = (tile.kind(), tile.blocks());
    let (n_a, n_b) = (tile.registers(MatrixPart::A), tile.registers(MatrixPart::B));
    let (of_a, of_b) = (tile.registers_of_block(MatrixPart::A), tile.registers_of_block(MatrixPart::B));
    let of_c = tile.values_of_block();
    if values.len() != n_a + n_b + tile.values() {
        return internal(format!("a product of {} operands", values.len()));
    }
    let (a, rest) = values.split_at(n_a);
    let (b, c) = rest.split_at(n_b);

    let mut first = 0;
    let registers = [of_c, of_a, of_b, of_c].map(|count| {
        let numbers: Vec<String> = (first..first + count).map(|number| format!("${number}")).collect();
        first += count;
        format!("{{{}}}", numbers.join(", "))
    });
    let text = format!("{} {};", tile.ptx(), registers.join(", "));
    let (word, value) = (constraint(kind.register()), constraint(kind.accumulator()));
    let mut constraints = vec![format!("={value}"); of_c];
    constraints.extend(vec![word.to_owned(); of_a + of_b]);
    constraints.extend(vec![value.to_owned(); of_c]);

    let types = emitter.cx.types;
    let result = types.value(Type::Scalar(kind.accumulator()))?;
    let result = types.context.struct_type(&vec![result; of_c], false);
    let mut out = Vec::with_capacity(c.len());
    for (block, accumulators) in c.chunks(of_c).enumerate() {
        let (row, column) = (block / columns, block % columns);
        let mut accumulators = accumulators.to_vec();
        for step in 0..steps {
            let mut args = a[(row * steps + step) * of_a..][..of_a].to_vec();
            args.extend_from_slice(&b[(column * steps + step) * of_b..][..of_b]);
            args.append(&mut accumulators);
            let arg_types: Vec<BasicMetadataTypeEnum<'ctx>> = args.iter().map(|arg| arg.get_type().into()).collect();
            let args: Vec<BasicMetadataValueEnum<'ctx>> = args.iter().map(|&arg| arg.into()).collect();
            let function = result.fn_type(&arg_types, false);
            let code = (text.clone(), constraints.join(","));
            let asm = types.context.create_inline_asm(function, code.0, code.1, false, false, None, false);
            let call = emitter.builder.build_indirect_call(function, asm, &args, "")?;
            accumulators = together(emitter, call, of_c)?;
        }
        out.append(&mut accumulators);
    }
    Ok(out)
}

/// Emits a load of matrices from shared memory.
pub(super) fn load<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    load: MatrixLoad,
    values: &[BasicValueEnum<'ctx>],
) -> Result<Vec<BasicValueEnum<'ctx>>> {
    let &[address] = values else { return internal("a load of matrices without an address") };
    let (count, transposed) = match load {
        MatrixLoad::Two { transposed } => (2, transposed),
        MatrixLoad::Four { transposed } => (4, transposed),
    };
    let trans = if transposed { ".trans" } else { "" };
    let name = format!("llvm.nvvm.ldmatrix.sync.aligned.m8n8.x{count}{trans}.b16");
    let intrinsic = emitter.cx.intrinsic(&name, &[address.get_type()])?;
    together(emitter, emitter.builder.build_call(intrinsic, &[address.into()], "")?, count)
}
