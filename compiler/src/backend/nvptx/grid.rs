//! The barrier of a grid whose blocks all run at the same time.
//!
//! A cooperative launch provides eight bytes of memory for the grid: `%envreg1` and `%envreg2` are the halves of their
//! address. The second word is for a barrier and starts at 0. Each block adds 1 to it, except for the first block,
//! whose summand makes the total 2^31. Hence the highest bit flips when the last block arrives, and the other bits are
//! 0 again.

use inkwell::{
    AtomicOrdering, IntPredicate,
    values::{BasicValue, BasicValueEnum, IntValue},
};

use super::{SPACES, atomics::membar, hooks::effect};
use crate::{
    backend::llvm::{FunctionEmitter, Result, int, internal},
    ir::Scope,
};

/// The bit that flips when all blocks have arrived.
const GENERATION: u64 = 1 << 31;

/// Reads a special register.
fn register<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>, name: &str) -> Result<IntValue<'ctx>> {
    let read = emitter.cx.intrinsic(&format!("llvm.nvvm.read.ptx.sreg.{name}"), &[])?;
    int(emitter.call(read, &[])?)
}

/// Whether all components of a register are 0.
fn is_first<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>, name: &str) -> Result<IntValue<'ctx>> {
    let [x, y, z] = ["x", "y", "z"].map(|axis| register(emitter, &format!("{name}.{axis}")));
    let builder = &emitter.builder;
    let any = builder.build_or(builder.build_or(x?, y?, "")?, z?, "")?;
    let zero = any.get_type().const_zero();
    Ok(builder.build_int_compare(IntPredicate::EQ, any, zero, "first")?)
}

/// Emits the barrier for all threads of the grid.
pub(super) fn barrier<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>) -> Result<Vec<BasicValueEnum<'ctx>>> {
    let (builder, context) = (&emitter.builder, emitter.cx.types.context);
    let (word, long) = (context.i32_type(), context.i64_type());
    let wait = || effect(emitter, "llvm.nvvm.barrier.cta.sync.all", &[word.const_zero().into()]);
    wait()?;
    let [arrive, poll, end] = ["arrive", "turn", "arrived"].map(|name| emitter.block(name));
    let first = is_first(emitter, "tid")?;
    builder.build_conditional_branch(first, arrive, end)?;

    builder.position_at_end(arrive);
    let high = builder.build_int_z_extend(register(emitter, "envreg1")?, long, "")?;
    let high = builder.build_left_shift(high, long.const_int(32, false), "")?;
    let low = builder.build_int_z_extend(register(emitter, "envreg2")?, long, "")?;
    let address = builder.build_or(high, low, "")?;
    let address = builder.build_int_nuw_add(address, long.const_int(4, false), "")?;
    let global = context.ptr_type(inkwell::AddressSpace::from(SPACES.global));
    let place = builder.build_int_to_ptr(address, global, "barrier")?;
    let [x, y, z] = ["x", "y", "z"].map(|axis| register(emitter, &format!("nctaid.{axis}")));
    let blocks = builder.build_int_mul(builder.build_int_mul(x?, y?, "")?, z?, "blocks")?;
    let others = builder.build_int_sub(blocks, word.const_int(1, false), "")?;
    let rest = builder.build_int_sub(word.const_int(GENERATION, false), others, "")?;
    let step = builder.build_select(is_first(emitter, "ctaid")?, rest, word.const_int(1, false), "")?;
    membar(emitter, Scope::Device)?;
    let before = builder.build_atomicrmw(inkwell::AtomicRMWBinOp::Add, place, int(step)?, AtomicOrdering::Monotonic)?;
    builder.build_unconditional_branch(poll)?;

    builder.position_at_end(poll);
    let now = builder.build_load(word, place, "now")?;
    let Some(load) = now.as_instruction_value() else { return internal("a load is no instruction") };
    load.set_volatile(true).or_else(|error| internal(format!("a volatile load: {error}")))?;
    let changed = builder.build_xor(before, int(now)?, "")?;
    let changed = builder.build_and(changed, word.const_int(GENERATION, false), "")?;
    let waits = builder.build_int_compare(IntPredicate::EQ, changed, word.const_zero(), "")?;
    let seen = emitter.block("seen");
    builder.build_conditional_branch(waits, poll, seen)?;
    builder.position_at_end(seen);
    membar(emitter, Scope::Device)?;
    builder.build_unconditional_branch(end)?;
    builder.position_at_end(end);
    wait()
}
