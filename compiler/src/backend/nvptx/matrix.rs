//! Products of matrices on a GPU: `mma.sync`, `wgmma.mma_async` and `ldmatrix`.

use inkwell::{
    types::{BasicMetadataTypeEnum, BasicType},
    values::{BasicMetadataValueEnum, BasicValueEnum, CallSiteValue, IntValue, PointerValue},
};
use weft_artifact::{MatrixPart, MatrixProduct, MatrixTile, Scalar, SharedMatrix};

use super::proxy;
use crate::{
    backend::llvm::{FunctionEmitter, Result, internal},
    ir::{MatrixLoad, ProductWait, Type},
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

/// Emits a product of matrices.
pub(super) fn multiply<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    product: MatrixProduct,
    values: &[BasicValueEnum<'ctx>],
) -> Result<Vec<BasicValueEnum<'ctx>>> {
    if product.tile.is_of_warpgroup() {
        of_warpgroup(emitter, product, values)
    } else {
        of_warp(emitter, product.tile, values)
    }
}

/// Emits the instructions of a tile, those of an accumulator in ascending order of `k`. They are inline PTX, which LTO-IR
/// can contain, too.
fn of_warp<'ctx>(
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

/// Emits the instructions of a warpgroup's tile and waits for them, unless the product remains in flight: one inline PTX,
/// because the accumulators must remain in their registers from `wgmma.fence` to `wgmma.wait_group`. Unoptimized code stores
/// them to memory, so it always waits.
fn of_warpgroup<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    product: MatrixProduct,
    values: &[BasicValueEnum<'ctx>],
) -> Result<Vec<BasicValueEnum<'ctx>>> {
    let tile = product.tile;
    let kind = tile.kind();
    let n_values = tile.values();
    let (word, value) = (constraint(kind.register()), constraint(kind.accumulator()));
    // A register of A must not be that of an accumulator, even if both have the same value.
    let mut constraints = vec![format!("=&{value}"); n_values];
    constraints.extend((0..n_values).map(|number| number.to_string()));
    let Some((operands, accumulators)) = values.split_at_checked(values.len().saturating_sub(n_values)) else {
        return internal("a product without accumulators");
    };
    let mut args = accumulators.to_vec();
    let mut rest = operands;
    // The number of the first argument of each operand.
    let mut first = [0, 0];
    for (first, (part, shared)) in first.iter_mut().zip(product.operands()) {
        *first = n_values + args.len();
        if let Some(shared) = shared {
            let &[BasicValueEnum::PointerValue(row), BasicValueEnum::IntValue(column), ref others @ ..] = rest else {
                return internal(format!("{product} without its {part:?}"));
            };
            args.push(descriptor(emitter, (kind.element(part), shared), row, column)?.into());
            constraints.push("l".to_owned());
            rest = others;
        } else {
            let (words, others) = rest.split_at(tile.registers(part).min(rest.len()));
            args.extend(words);
            constraints.extend(vec![word.to_owned(); words.len()]);
            rest = others;
        }
    }
    constraints.push("~{memory}".to_owned());
    let waits = !product.in_flight || !emitter.cx.options.opt;
    let text = instructions_of_warpgroup(product, first, waits);
    accumulated(emitter, (text, &constraints), &args, (kind.accumulator(), n_values))
}

/// Emits inline PTX with an effect, whose results are accumulators.
fn accumulated<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    (text, constraints): (String, &[String]),
    args: &[BasicValueEnum<'ctx>],
    (scalar, n_values): (Scalar, usize),
) -> Result<Vec<BasicValueEnum<'ctx>>> {
    let types = emitter.cx.types;
    let result = types.context.struct_type(&vec![types.value(Type::Scalar(scalar))?; n_values], false);
    let arg_types: Vec<BasicMetadataTypeEnum<'ctx>> = args.iter().map(|arg| arg.get_type().into()).collect();
    let args: Vec<BasicMetadataValueEnum<'ctx>> = args.iter().map(|&arg| arg.into()).collect();
    let function = result.fn_type(&arg_types, false);
    let asm = types.context.create_inline_asm(function, text, constraints.join(","), true, false, None, false);
    let call = emitter.builder.build_indirect_call(function, asm, &args, "")?;
    together(emitter, call, n_values)
}

/// The PTX of a warpgroup's tile, in which the operands are the arguments from the numbers in `first` on.
fn instructions_of_warpgroup(product: MatrixProduct, first: [usize; 2], waits: bool) -> String {
    let tile = product.tile;
    let (kind, [rows, _, steps]) = (tile.kind(), tile.blocks());
    let of_block = tile.values() / rows;
    let of_a = tile.registers_of_block(MatrixPart::A);
    // Only types of 16 bits have transposed operands, and integers no negative ones.
    let signs = if kind.accumulator().is_float() { ", 1, 1" } else { "" };
    let transposed = |shared: Option<SharedMatrix>| match shared {
        Some(shared) if kind.per_register() == 2 => format!(", {}", u8::from(shared.transposed)),
        Some(_) | None => String::new(),
    };
    let tail = format!("p{signs}{}{};", transposed(product.a), transposed(product.b));
    let list = |from: usize, count: usize| {
        let numbers: Vec<String> = (from..from + count).map(|number| format!("${number}")).collect();
        format!("{{{}}}", numbers.join(", "))
    };
    let mut lines = vec![
        "{".to_owned(),
        ".reg .pred p;".to_owned(),
        ".reg .b64 a, b;".to_owned(),
        "setp.ne.b32 p, 1, 0;".to_owned(),
        "wgmma.fence.sync.aligned;".to_owned(),
    ];
    for (block, step) in (0..rows).flat_map(|block| (0..steps).map(move |step| (block, step))) {
        let mut operands = Vec::new();
        for (part, shared) in product.operands() {
            let Some(shared) = shared else {
                operands.push(list(first[0] + (block * steps + step) * of_a, of_a));
                continue;
            };
            let (name, from, block) = match part {
                MatrixPart::A => ("a", first[0], block),
                MatrixPart::B => ("b", first[1], 0),
            };
            let size = kind.element(part).size_bytes() as u32;
            let offset = shared.block_offset(size, block as u32, step as u32) / 16;
            lines.push(format!("add.s64 {name}, ${from}, {offset};"));
            operands.push(name.to_owned());
        }
        let d = list(block * of_block, of_block);
        lines.push(format!("{} {d}, {}, {tail}", tile.ptx(), operands.join(", ")));
    }
    lines.push("wgmma.commit_group.sync.aligned;".to_owned());
    if waits {
        lines.push("wgmma.wait_group.sync.aligned 0;".to_owned());
    }
    lines.push("}".to_owned());
    lines.join("\n\t")
}

/// Emits a wait for products in flight. The accumulators are tied operands. The words of A are operands, because the product
/// reads their registers until then. The numbers are copies in other registers, made before the next product begins: then the
/// next accumulators of the same variable can have the registers of these ones, and no code copies registers in flight.
pub(super) fn wait<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    wait: ProductWait,
    values: &[BasicValueEnum<'ctx>],
) -> Result<Vec<BasicValueEnum<'ctx>>> {
    let (n_words, n_values) = (wait.n_left(), wait.n_values());
    let Some((words, accumulators)) = values.split_at_checked(n_words).filter(|(_, rest)| rest.len() == n_values)
    else {
        return internal(format!("a wait for a product with {} operands", values.len()));
    };
    let text = format!("wgmma.wait_group.sync.aligned {};", wait.pending);
    let Some(tile) = wait.tile else {
        proxy::instruction(emitter, &text)?;
        return Ok(Vec::new());
    };
    let kind = tile.kind();
    let (word, value) = (constraint(kind.register()), constraint(kind.accumulator()));
    let mut constraints = vec![format!("=&{value}"); n_values];
    constraints.extend((0..n_values).map(|number| number.to_string()));
    constraints.extend(vec![word.to_owned(); n_words]);
    constraints.push("~{memory}".to_owned());
    let args = [accumulators, words].concat();
    let complete = accumulated(emitter, (text, &constraints), &args, (kind.accumulator(), n_values))?;
    let types = emitter.cx.types;
    let ty = types.value(Type::Scalar(kind.accumulator()))?;
    let function = ty.fn_type(&[ty.into()], false);
    let copy = |from: BasicValueEnum<'ctx>| {
        let (text, constraints) = ("mov.b32 $0, $1;".to_owned(), format!("={value},{value}"));
        let asm = types.context.create_inline_asm(function, text, constraints, true, false, None, false);
        let call = emitter.builder.build_indirect_call(function, asm, &[from.into()], "")?;
        call.try_as_basic_value().basic().map_or_else(|| internal("a copy without a result"), Ok)
    };
    complete.into_iter().map(copy).collect()
}

/// The descriptor of a matrix in shared memory, from the address of its first row and the column in the row.
fn descriptor<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    (element, shared): (Scalar, SharedMatrix),
    row: PointerValue<'ctx>,
    column: IntValue<'ctx>,
) -> Result<IntValue<'ctx>> {
    let (builder, long) = (&emitter.builder, emitter.cx.types.context.i64_type());
    let int = |value: u64| long.const_int(value, false);
    let width = u64::from(shared.width);
    let bytes = builder.build_int_mul(column, int(element.size_bytes()), "")?;
    let within = builder.build_and(bytes, int(width - 1), "")?;
    let panel = builder.build_right_shift(bytes, int(width.trailing_zeros().into()), false, "")?;
    let panel = builder.build_int_mul(panel, int(shared.panel.into()), "")?;
    let address = builder.build_ptr_to_int(row, long, "")?;
    let address = builder.build_int_add(address, panel, "")?;
    let address = builder.build_int_add(address, within, "")?;
    let address = builder.build_and(address, int(0x3_FFFF), "")?;
    let address = builder.build_right_shift(address, int(4), false, "")?;
    Ok(builder.build_or(address, int(shared.descriptor()), "")?)
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
