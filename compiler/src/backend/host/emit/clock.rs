//! Clocks of the host: the CPU's cycle counter, and the system's real-time clock in nanoseconds.
//!
//! Generated code is not linked to the C library, so it makes the system call itself.

use inkwell::{types::BasicMetadataTypeEnum, values::BasicValueEnum, values::IntValue};

use crate::{
    backend::llvm::{FunctionEmitter, Result, internal},
    ir::Clock,
};

/// The current time: an `i32` for [`Clock::Cycles32`], else an `i64`.
pub(crate) fn now<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>, clock: Clock) -> Result<IntValue<'ctx>> {
    let context = emitter.cx.types.context;
    let cycles = || {
        let read = emitter.cx.intrinsic("llvm.readcyclecounter", &[])?;
        match emitter.call(read, &[])? {
            BasicValueEnum::IntValue(value) => Ok(value),
            other @ (BasicValueEnum::ArrayValue(_)
            | BasicValueEnum::FloatValue(_)
            | BasicValueEnum::PointerValue(_)
            | BasicValueEnum::StructValue(_)
            | BasicValueEnum::VectorValue(_)
            | BasicValueEnum::ScalableVectorValue(_)) => internal(format!("a clock gives {other}")),
        }
    };
    match clock {
        Clock::Cycles64 => cycles(),
        Clock::Cycles32 => Ok(emitter.builder.build_int_truncate(cycles()?, context.i32_type(), "")?),
        Clock::Nanoseconds => nanoseconds(emitter),
    }
}

/// The system call `clock_gettime` on each architecture: its number, and the instruction and constraints of the inline
/// assembly. Clock 0 is the real-time clock, which a GPU's `%globaltimer` corresponds to.
const ASK: Option<(u64, &str, &str)> = if cfg!(all(target_arch = "x86_64", target_os = "linux")) {
    Some((228, "syscall", "={rax},{rax},{rdi},{rsi},~{rcx},~{r11},~{memory}"))
} else if cfg!(all(target_arch = "aarch64", target_os = "linux")) {
    Some((113, "svc #0", "={x0},{x8},{x0},{x1},~{memory}"))
} else {
    None
};

fn nanoseconds<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>) -> Result<IntValue<'ctx>> {
    let (builder, context) = (&emitter.builder, emitter.cx.types.context);
    let long = context.i64_type();
    let Some((number, text, constraints)) = ASK else { return internal("this system's clock is not known") };
    let pair = long.array_type(2);
    // The `alloca` is in the entry block, so that a loop does not grow the stack in each iteration.
    let here = emitter.current()?;
    let Some(entry) = emitter.value.get_first_basic_block() else { return internal("a function without a block") };
    match entry.get_first_instruction() {
        Some(first) => builder.position_before(&first),
        None => builder.position_at_end(entry),
    }
    let time = builder.build_alloca(pair, "time")?;
    builder.position_at_end(here);
    let params: [BasicMetadataTypeEnum<'ctx>; 3] = [long.into(), long.into(), time.get_type().into()];
    let ty = long.fn_type(&params, false);
    let ask = context.create_inline_asm(ty, text.to_owned(), constraints.to_owned(), true, false, None, false);
    let args = [long.const_int(number, false).into(), long.const_zero().into(), time.into()];
    builder.build_indirect_call(ty, ask, &args, "")?;
    let BasicValueEnum::ArrayValue(time) = builder.build_load(pair, time, "")? else {
        return internal("a time has two parts");
    };
    let [seconds, rest] = [0, 1].map(|part| builder.build_extract_value(time, part, ""));
    let (seconds, rest) = (seconds?.into_int_value(), rest?.into_int_value());
    let billion = long.const_int(1_000_000_000, false);
    Ok(builder.build_int_add(builder.build_int_mul(seconds, billion, "")?, rest, "")?)
}
