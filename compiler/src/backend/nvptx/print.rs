//! Printing on a GPU.
//!
//! A weft kernel writes its output to host memory ([`PrintRing`], `print.ll`). The host reads it when it waits for the
//! kernel, and prints it to `sys.stdout`. The host stores the address of the ring in a global variable of the module.
//! If that is 0 because another program has loaded the PTX, and in code for other compilers, the kernel calls CUDA's
//! `vprintf`.
//!
//! `vprintf` takes a format and a buffer with the arguments, promoted and aligned as in C; here all have eight bytes.
//! It writes to a buffer on the device, which the driver prints when the host synchronizes. The output of one call is
//! not interleaved with others. `vprintf` formats at most 32 arguments (CUDA C++ Programming Guide, "Formatted
//! Output"), so larger formats are split into several calls.

use inkwell::{
    AddressSpace, FloatPredicate, IntPredicate,
    memory_buffer::MemoryBuffer,
    module::Linkage,
    values::{BasicValueEnum, FunctionValue, GlobalValue, PointerValue},
};
use weft_artifact::{FormatPart, PrintRing, format_parts};

use super::SPACES;
use crate::{
    backend::llvm::{FunctionEmitter, ModuleContext, Result, internal},
    ir::{ConstantId, Space},
    request::Entry,
};

/// The library function that writes the output of a call to the ring.
const LIBRARY: &str = include_str!("print.ll");
const PRINT: &str = "weft$print";

/// The maximal number of arguments of one call of `vprintf`.
const MOST: usize = 32;

/// Prints arguments by a format.
pub(super) fn emit<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    format: ConstantId,
    args: &[BasicValueEnum<'ctx>],
) -> Result<Vec<BasicValueEnum<'ctx>>> {
    let Some(constant) = emitter.cx.ir.constants.get(format) else { return internal("a format that is not declared") };
    let bytes = constant.bytes.strip_suffix(b"\0").unwrap_or(&constant.bytes);
    let cx = emitter.cx;
    let pointer = cx.types.pointer(Space::Generic);
    let words = if args.is_empty() {
        pointer.const_null()
    } else {
        emitter.words(&args.iter().map(|&arg| plain(emitter, arg)).collect::<Result<Vec<_>>>()?)?
    };
    if matches!(cx.options.entry, Entry::Foreign(_)) {
        vprintf(emitter, format, bytes, words)?;
        return Ok(Vec::new());
    }
    let builder = &emitter.builder;
    let (context, long) = (cx.types.context, cx.types.context.i64_type());
    let page = builder.build_load(long, word(cx).as_pointer_value(), "page")?.into_int_value();
    let [own, driver, after] = ["print", "vprintf", "printed"].map(|name| emitter.block(name));
    let is_read = builder.build_int_compare(IntPredicate::NE, page, long.const_zero(), "")?;
    builder.build_conditional_branch(is_read, own, driver)?;
    builder.position_at_end(own);
    let page = builder.build_int_to_ptr(page, context.ptr_type(AddressSpace::from(SPACES.global)), "")?;
    let text = builder.build_address_space_cast(cx.constant(format)?, pointer, "")?;
    let length = long.const_int(bytes.len() as u64, false);
    let kinds = kinds(emitter, format, bytes)?;
    let count = long.const_int(args.len() as u64, false);
    let print = library(cx)?;
    builder.build_call(
        print,
        &[page.into(), text.into(), length.into(), words.into(), count.into(), kinds.into()],
        "",
    )?;
    builder.build_unconditional_branch(after)?;
    builder.position_at_end(driver);
    vprintf(emitter, format, bytes, words)?;
    builder.build_unconditional_branch(after)?;
    builder.position_at_end(after);
    Ok(Vec::new())
}

/// The function that writes the output of a call to the ring. The first use links it into the module.
fn library<'ctx>(cx: &ModuleContext<'_, 'ctx>) -> Result<FunctionValue<'ctx>> {
    if let Some(known) = cx.module.get_function(PRINT) {
        return Ok(known);
    }
    let text = MemoryBuffer::create_from_memory_range_copy(LIBRARY.as_bytes(), "print");
    let parsed = match cx.types.context.create_module_from_ir(text) {
        Ok(parsed) => parsed,
        Err(error) => return internal(format!("LLVM cannot read print.ll: {error}")),
    };
    parsed.set_triple(&cx.module.get_triple());
    parsed.set_data_layout(&cx.module.get_data_layout());
    cx.module.link_in_module(parsed).or_else(|error| internal(format!("print.ll is not linked: {error}")))?;
    let Some(function) = cx.module.get_function(PRINT) else { return internal("print.ll lacks its function") };
    function.set_linkage(Linkage::Internal);
    Ok(function)
}

/// The variable in device memory that the host sets to the ring's address.
fn word<'ctx>(cx: &ModuleContext<'_, 'ctx>) -> GlobalValue<'ctx> {
    cx.module.get_global(PrintRing::SYMBOL).unwrap_or_else(|| {
        let long = cx.types.context.i64_type();
        let global = cx.module.add_global(long, Some(AddressSpace::from(SPACES.global)), PrintRing::SYMBOL);
        global.set_initializer(&long.const_zero());
        global.set_linkage(Linkage::External);
        global.set_externally_initialized(true);
        global.set_alignment(8);
        global
    })
}

/// One byte for each argument: 1 for a string, otherwise 0.
fn kinds<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>, format: ConstantId, bytes: &[u8]) -> Result<PointerValue<'ctx>> {
    let mut kinds = Vec::new();
    for part in format_parts(bytes).filter(|part| part.words() > 0) {
        // An argument for the width precedes the value.
        kinds.extend(std::iter::repeat_n(0, part.words() - 1));
        kinds.push(u8::from(part.letter() == Some(b's')));
    }
    let name = format!("kinds.{}", format.index());
    let global = emitter.cx.module.get_global(&name).unwrap_or_else(|| constant(emitter, &kinds, false, &name));
    Ok(emitter.builder.build_address_space_cast(
        global.as_pointer_value(),
        emitter.cx.types.pointer(Space::Generic),
        "",
    )?)
}

/// A byte string in device memory, with or without a terminating zero.
fn constant<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>, bytes: &[u8], ends: bool, name: &str) -> GlobalValue<'ctx> {
    let value = emitter.cx.types.context.const_string(bytes, ends);
    let space = emitter.cx.types.pointer(Space::Global).get_address_space();
    let global = emitter.cx.module.add_global(value.get_type(), Some(space), name);
    global.set_initializer(&value);
    global.set_constant(true);
    global.set_linkage(Linkage::Internal);
    global
}

/// Prints with `vprintf`, in several calls if there are more than `MOST` arguments.
#[expect(unsafe_code, reason = "inkwell's getelementptr is unsafe")]
fn vprintf<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    format: ConstantId,
    bytes: &[u8],
    words: PointerValue<'ctx>,
) -> Result<()> {
    if format_parts(bytes).map(|part| part.words()).sum::<usize>() <= MOST {
        return call(emitter, emitter.cx.constant(format)?, words);
    }
    let long = emitter.cx.types.context.i64_type();
    let part_of = |text: &[u8], first: usize| {
        let name = format!("format.{}.{first}", format.index());
        let format = constant(emitter, text, true, &name).as_pointer_value();
        let at = long.const_int(first as u64, false);
        // SAFETY: one index on an integer type is a valid getelementptr, and there is a word for each argument.
        let words = unsafe { emitter.builder.build_in_bounds_gep(long, words, &[at], "")? };
        call(emitter, format, words)
    };
    let (mut text, mut first, mut count) = (Vec::new(), 0, 0);
    for part in format_parts(bytes) {
        if count + part.words() > MOST {
            part_of(&std::mem::take(&mut text), first)?;
            (first, count) = (first + count, 0);
        }
        count += part.words();
        match part {
            FormatPart::Text(bytes) | FormatPart::Conversion(bytes) => text.extend(bytes),
            FormatPart::Percent => text.extend(b"%%"),
        }
    }
    part_of(&text, first)
}

/// One call of `vprintf`.
fn call<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    format: PointerValue<'ctx>,
    words: PointerValue<'ctx>,
) -> Result<()> {
    let types = emitter.cx.types;
    let builder = &emitter.builder;
    let pointer = types.pointer(Space::Generic);
    let format = builder.build_address_space_cast(format, pointer, "")?;
    let vprintf = emitter.cx.module.get_function("vprintf").unwrap_or_else(|| {
        let ty = types.context.i32_type().fn_type(&[pointer.into(), pointer.into()], false);
        emitter.cx.module.add_function("vprintf", ty, Some(Linkage::External))
    });
    builder.build_call(vprintf, &[format.into(), words.into()], "")?;
    Ok(())
}

/// A float's bits. All NaNs become the canonical positive one, so that every machine prints them without a sign.
fn plain<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>, arg: BasicValueEnum<'ctx>) -> Result<BasicValueEnum<'ctx>> {
    let BasicValueEnum::FloatValue(float) = arg else { return Ok(arg) };
    let long = emitter.cx.types.context.i64_type();
    let is_nan = emitter.builder.build_float_compare(FloatPredicate::UNO, float, float, "")?;
    let bits = emitter.builder.build_bit_cast(float, long, "")?;
    let nan = long.const_int(f64::NAN.to_bits(), false);
    Ok(emitter.builder.build_select(is_nan, nan.into(), bits, "")?)
}
