//! Printing on a GPU: calls of CUDA's `vprintf`.
//!
//! It takes a format and a buffer with the arguments, as C promotes and aligns them: here all have eight bytes. It writes
//! into a buffer of the device, which the driver prints when the host waits; a call's text stays together. What has more
//! than 32 arguments it does not format (CUDA C++ Programming Guide, "Formatted Output"): those become several calls.

use inkwell::{
    FloatPredicate,
    module::Linkage,
    values::{BasicValueEnum, PointerValue},
};
use weft_artifact::{FormatPart, format_parts};

use crate::{
    backend::llvm::{FunctionEmitter, Result, internal},
    ir::{ConstantId, Space},
};

/// The arguments of one call.
const MOST: usize = 32;

/// Prints arguments by a format.
pub(super) fn emit<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    format: ConstantId,
    args: &[BasicValueEnum<'ctx>],
) -> Result<Vec<BasicValueEnum<'ctx>>> {
    if args.len() <= MOST {
        call(emitter, emitter.cx.constant(format)?, args)?;
        return Ok(Vec::new());
    }
    let Some(constant) = emitter.cx.ir.constants.get(format) else { return internal("a format that is not declared") };
    let bytes = constant.bytes.strip_suffix(b"\0").unwrap_or(&constant.bytes);
    let mut rest = args;
    let (mut text, mut count) = (Vec::new(), 0);
    for part in format_parts(bytes) {
        if count + part.words() > MOST {
            rest = part_of(emitter, format, &std::mem::take(&mut text), rest)?;
            count = 0;
        }
        count += part.words();
        match part {
            FormatPart::Text(bytes) | FormatPart::Conversion(bytes) => text.extend(bytes),
            FormatPart::Percent => text.extend(b"%%"),
        }
    }
    part_of(emitter, format, &text, rest)?;
    Ok(Vec::new())
}

/// Prints a part of what a format prints; gives the arguments that are left.
fn part_of<'a, 'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    format: ConstantId,
    text: &[u8],
    args: &'a [BasicValueEnum<'ctx>],
) -> Result<&'a [BasicValueEnum<'ctx>]> {
    let count = format_parts(text).map(|part| part.words()).sum();
    let Some((now, later)) = args.split_at_checked(count) else {
        return internal("a format with too many conversions");
    };
    let value = emitter.cx.types.context.const_string(text, true);
    let space = emitter.cx.types.pointer(Space::Global).get_address_space();
    let name = format!("format.{}.{}", format.index(), later.len());
    let global = emitter.cx.module.add_global(value.get_type(), Some(space), &name);
    global.set_initializer(&value);
    global.set_constant(true);
    global.set_linkage(Linkage::Internal);
    call(emitter, global.as_pointer_value(), now)?;
    Ok(later)
}

fn call<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    format: PointerValue<'ctx>,
    args: &[BasicValueEnum<'ctx>],
) -> Result<()> {
    let types = emitter.cx.types;
    let builder = &emitter.builder;
    let pointer = types.pointer(Space::Generic);
    let format = builder.build_address_space_cast(format, pointer, "")?;
    let words = if args.is_empty() {
        pointer.const_null()
    } else {
        emitter.words(&args.iter().map(|&arg| plain(emitter, arg)).collect::<Result<Vec<_>>>()?)?
    };
    let vprintf = emitter.cx.module.get_function("vprintf").unwrap_or_else(|| {
        let ty = types.context.i32_type().fn_type(&[pointer.into(), pointer.into()], false);
        emitter.cx.module.add_function("vprintf", ty, Some(Linkage::External))
    });
    builder.build_call(vprintf, &[format.into(), words.into()], "")?;
    Ok(())
}

/// A float, but for what is no number the one that prints without a sign, on any machine.
fn plain<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>, arg: BasicValueEnum<'ctx>) -> Result<BasicValueEnum<'ctx>> {
    let BasicValueEnum::FloatValue(float) = arg else { return Ok(arg) };
    let long = emitter.cx.types.context.i64_type();
    let is_nan = emitter.builder.build_float_compare(FloatPredicate::UNO, float, float, "")?;
    let bits = emitter.builder.build_bit_cast(float, long, "")?;
    let nan = long.const_int(f64::NAN.to_bits(), false);
    Ok(emitter.builder.build_select(is_nan, nan.into(), bits, "")?)
}
