//! Threads on fibers: the entry runs a single thread on its own stack, and calls the runtime where the thread waits for
//! others.
//!
//! The runtime switches between the threads of a block at barriers. It also switches after a number of loop iterations,
//! so that a thread that waits in a loop for another thread's store lets the other thread run. The design is in
//! `docs/design/cpu-fibers.md`.

use std::mem::offset_of;

use inkwell::{
    IntPredicate,
    values::{BasicValueEnum, FunctionValue, IntValue, PointerValue},
};
use weft_artifact::{HostContext, MatrixProduct, SharedMatrix};

use crate::{
    analysis::Rematerializable,
    backend::{
        host::{
            checked::{
                calls::{self, Instrumentation},
                seen::Seen,
                sites::Recorder,
            },
            emit::{
                frame::Offsets,
                position::{Fields, Frame, array_alloca, field, fields, frame, place_of, receive},
                state::HostHooks,
            },
            plan::Polling,
        },
        llvm::{FunctionEmitter, ModuleContext, OperandValue, Result, internal},
    },
    ir::{self, CallSiteId, ConstantId, FaultId, FuncId},
};

/// Emits the entry, which runs one thread of one block.
pub(super) fn emit(
    cx: &ModuleContext<'_, '_>,
    id: FuncId,
    offsets: &Offsets,
    polling: &Polling,
    symbol: &str,
    recorder: Option<&Recorder<'_>>,
) -> Result<()> {
    let function = &cx.ir.functions[id];
    let pointer = cx.types.pointer(ir::Space::Generic);
    let ty = cx.types.context.void_type().fn_type(&[pointer.into()], false);
    let value: FunctionValue<'_> = cx.module.add_function(symbol, ty, None);
    cx.attribute(value, "nounwind");
    let Some(given) = value.get_nth_param(0) else { return internal("the entry has no context") };
    let given = given.into_pointer_value();

    let types = cx.types;
    let builder = types.context.create_builder();
    builder.position_at_end(types.context.append_basic_block(value, "start"));
    let Fields { slots, config, first, scratch, thread, .. } = fields(&types, &builder, given)?;
    let outside = frame(&types, &builder, config, scratch, given)?;
    let block = place_of(&types, &builder, first, outside.grid_dim)?;
    let thread = place_of(&types, &builder, thread, outside.block_dim)?;
    let fixed = Rematerializable::of(function, &function.body);
    let mut hooks = HostHooks::new(offsets, Frame { thread, block, ..outside }, (polling, &fixed));
    hooks.stacks = true;
    hooks.instrumentation = recorder.map(|recorder| Instrumentation::new(recorder, id, function.span));
    hooks.next_site.set(HostHooks::first_site(id));
    let mut emitter = FunctionEmitter::new(cx, function, value, &hooks);
    let first = emitter.current()?;
    // Allocas must be in the function's entry block.
    emitter.builder.position_at_end(builder.get_insert_block().map_or_else(|| internal("no block"), Ok)?);
    emitter.declare_locals()?;
    if hooks.instrumentation.is_some() {
        hooks.seen.set(Some(Seen::declare(&types, &emitter.builder, given, true)?));
    }
    let mut arrays = Vec::new();
    for (_, array) in function.local_arrays.iter() {
        arrays.push(Some(array_alloca(cx, &emitter.builder, array)?));
    }
    *hooks.arrays.borrow_mut() = arrays;
    emitter.builder.build_unconditional_branch(first)?;
    emitter.builder.position_at_end(first);
    receive(&emitter, function, slots)?;
    if hooks.instrumentation.is_some() {
        calls::arrays(&emitter, hooks.frame.get().context, &hooks.arrays.borrow())?;
        hooks.reload(&emitter)?;
    }
    emitter.emit_block(&function.body)?;
    emitter.finish()
}

/// Calls the context's `wait`. `mask` is the mask of lanes or the number of a site, `warp` selects the threads.
pub(super) fn wait<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    context: PointerValue<'ctx>,
    mask: IntValue<'ctx>,
    warp: IntValue<'ctx>,
) -> Result<()> {
    let types = emitter.cx.types;
    let pointer = types.pointer(ir::Space::Generic);
    let place = field(&types, &emitter.builder, context, offset_of!(HostContext, wait))?;
    let callee = emitter.builder.build_load(pointer, place, "wait")?.into_pointer_value();
    let int = types.context.i32_type();
    let ty = types.context.void_type().fn_type(&[pointer.into(), int.into(), int.into()], false);
    emitter.builder.build_indirect_call(ty, callee, &[context.into(), mask.into(), warp.into()], "")?;
    Ok(())
}

/// Calls the context's `print`.
pub(super) fn print<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    context: PointerValue<'ctx>,
    format: ConstantId,
    operands: &[OperandValue<'ctx>],
) -> Result<()> {
    let types = emitter.cx.types;
    let (pointer, long) = (types.pointer(ir::Space::Generic), types.context.i64_type());
    let Some(len) = emitter.cx.ir.constants.get(format).map(|format| format.bytes.len() - 1) else {
        return internal("a format that is not declared");
    };
    let args: Vec<_> = operands.iter().map(|operand| operand.value).collect();
    let args = emitter.words(&args)?;
    let format = emitter.cx.constant(format)?;
    let place = field(&types, &emitter.builder, context, offset_of!(HostContext, print))?;
    let callee = emitter.builder.build_load(pointer, place, "print")?.into_pointer_value();
    let ty = types.context.void_type().fn_type(&[pointer.into(), long.into(), pointer.into()], false);
    let len = long.const_int(len as u64, false);
    emitter.builder.build_indirect_call(ty, callee, &[format.into(), len.into(), args.into()], "")?;
    Ok(())
}

/// Calls the context's `multiply` with the addresses of a warp's cells, and the site in sanitized code.
pub(super) fn multiply<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    context: PointerValue<'ctx>,
    (product, site): (MatrixProduct, u32),
    operands: &[OperandValue<'ctx>],
) -> Result<()> {
    let types = emitter.cx.types;
    let (pointer, long) = (types.pointer(ir::Space::Generic), types.context.i64_type());
    let mut cells: Vec<BasicValueEnum<'ctx>> = Vec::new();
    if product.tile.is_of_warpgroup() {
        let layouts = product.operands().map(|(_, shared)| shared.map_or(0, SharedMatrix::code));
        cells.extend(layouts.map(|code| BasicValueEnum::from(long.const_int(code, false))));
    }
    cells.extend(operands.iter().map(|operand| operand.value));
    let cells = emitter.words(&cells)?;
    let place = field(&types, &emitter.builder, context, offset_of!(HostContext, multiply))?;
    let callee = emitter.builder.build_load(pointer, place, "multiply")?.into_pointer_value();
    let int = types.context.i32_type();
    let params = [pointer.into(), long.into(), int.into(), pointer.into()];
    let ty = types.context.void_type().fn_type(&params, false);
    let (code, site) = (long.const_int(product.tile.code(), false), int.const_int(site.into(), false));
    emitter.builder.build_indirect_call(ty, callee, &[context.into(), code.into(), site.into(), cells.into()], "")?;
    Ok(())
}

/// Calls the context's `wait` at a site in the code, and returns the mask of the warp's lanes that are at the same
/// site.
pub(super) fn lanes_here<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    context: PointerValue<'ctx>,
    site: u32,
) -> Result<IntValue<'ctx>> {
    let types = emitter.cx.types;
    let int = types.context.i32_type();
    let at_site = int.const_int(u64::from(HostContext::AT_SITE), false);
    wait(emitter, context, int.const_int(u64::from(site), false), at_site)?;
    let place = field(&types, &emitter.builder, context, offset_of!(HostContext, lanes))?;
    Ok(emitter.builder.build_load(int, place, "lanes")?.into_int_value())
}

/// Waits for the threads of the cluster, and returns whether they have come.
pub(super) fn meet_cluster<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    context: PointerValue<'ctx>,
) -> Result<IntValue<'ctx>> {
    let types = emitter.cx.types;
    let int = types.context.i32_type();
    wait(emitter, context, int.const_all_ones(), int.const_int(u64::from(HostContext::OF_CLUSTER), false))?;
    let place = field(&types, &emitter.builder, context, offset_of!(HostContext, lanes))?;
    let is_stuck = emitter.builder.build_load(int, place, "lanes")?.into_int_value();
    Ok(emitter.builder.build_int_compare(IntPredicate::EQ, is_stuck, int.const_zero(), "")?)
}

/// Calls the context's `fault`, and returns its result.
pub(super) fn fault<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    frame: &Frame<'ctx>,
    id: FaultId,
    operands: &[OperandValue<'ctx>],
) -> Result<BasicValueEnum<'ctx>> {
    let types = emitter.cx.types;
    let (pointer, long) = (types.pointer(ir::Space::Generic), types.context.i64_type());
    let mut words = vec![long.const_int(id.index() as u64, false).into()];
    for value in frame.thread.into_iter().chain(frame.block) {
        words.push(emitter.builder.build_int_z_extend(value, long, "")?.into());
    }
    words.extend(operands.iter().map(|operand| operand.value));
    let words = emitter.words(&words)?;
    let place = field(&types, &emitter.builder, frame.context, offset_of!(HostContext, fault))?;
    let callee = emitter.builder.build_load(pointer, place, "fault")?.into_pointer_value();
    let ty = types.context.i32_type().fn_type(&[pointer.into(), pointer.into()], false);
    let call = emitter.builder.build_indirect_call(ty, callee, &[frame.context.into(), words.into()], "code")?;
    call.try_as_basic_value().basic().map_or_else(|| internal("a fault gives nothing"), Ok)
}

/// Adds a call to the reported fault: calls the context's `called` if the first operand is 2, the code of that fault.
pub(super) fn called<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    context: PointerValue<'ctx>,
    call: CallSiteId,
    operands: &[OperandValue<'ctx>],
) -> Result<()> {
    let types = emitter.cx.types;
    let builder = &emitter.builder;
    let (pointer, int) = (types.pointer(ir::Space::Generic), types.context.i32_type());
    let Some(OperandValue { value: BasicValueEnum::IntValue(code), .. }) = operands.first() else {
        return internal("a call without its end");
    };
    let mine = builder.build_int_compare(IntPredicate::EQ, *code, int.const_int(2, false), "")?;
    let (add, after) = (emitter.block("add_call"), emitter.block("called"));
    builder.build_conditional_branch(mine, add, after)?;
    builder.position_at_end(add);
    let place = field(&types, builder, context, offset_of!(HostContext, called))?;
    let callee = builder.build_load(pointer, place, "called")?.into_pointer_value();
    let ty = types.context.void_type().fn_type(&[pointer.into(), int.into()], false);
    let number = int.const_int(call.index() as u64, false);
    builder.build_indirect_call(ty, callee, &[context.into(), number.into()], "")?;
    builder.build_unconditional_branch(after)?;
    builder.position_at_end(after);
    Ok(())
}

/// Emits the stack check at the start of a recursive function: below the stack limit it calls the context's `deep` and
/// exits.
pub(super) fn look_down<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    hooks: &HostHooks<'_, 'ctx>,
    context: PointerValue<'ctx>,
) -> Result<()> {
    let types = emitter.cx.types;
    let builder = &emitter.builder;
    let (pointer, long) = (types.pointer(ir::Space::Generic), types.context.i64_type());
    let place = field(&types, builder, context, offset_of!(HostContext, lowest))?;
    let lowest = builder.build_load(long, place, "lowest")?.into_int_value();
    let frame = emitter.cx.intrinsic("llvm.frameaddress", &[pointer.into()])?;
    let frame = builder.build_call(frame, &[types.context.i32_type().const_zero().into()], "frame")?;
    let Some(frame) = frame.try_as_basic_value().basic() else { return internal("a frame without an address") };
    let frame = builder.build_ptr_to_int(frame.into_pointer_value(), long, "")?;
    let over = builder.build_int_compare(IntPredicate::ULT, frame, lowest, "")?;
    let (deep, go_on) = (emitter.block("deep"), emitter.block("go_on"));
    builder.build_conditional_branch(over, deep, go_on)?;
    builder.position_at_end(deep);
    let place = field(&types, builder, context, offset_of!(HostContext, deep))?;
    let callee = builder.build_load(pointer, place, "deep")?.into_pointer_value();
    let ty = types.context.void_type().fn_type(&[pointer.into()], false);
    builder.build_indirect_call(ty, callee, &[context.into()], "")?;
    builder.build_unconditional_branch(hooks.way_out(emitter)?)?;
    builder.position_at_end(go_on);
    Ok(())
}

/// Decrements the context's `iterations` at a loop iteration or recursive call, and calls its `pause` at 0. `waits`:
/// the loop waits for a store of another thread.
pub(super) fn turn<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>, context: PointerValue<'ctx>, waits: bool) -> Result<()> {
    let types = emitter.cx.types;
    let builder = &emitter.builder;
    let long = types.context.i64_type();
    let place = field(&types, builder, context, offset_of!(HostContext, iterations))?;
    let turns = builder.build_load(long, place, "turns")?.into_int_value();
    let left = builder.build_int_sub(turns, long.const_int(1, false), "")?;
    builder.build_store(place, left)?;
    let over = builder.build_int_compare(IntPredicate::EQ, left, long.const_zero(), "")?;
    let (pause, go_on) = (emitter.block("pause"), emitter.block("go_on"));
    builder.build_conditional_branch(over, pause, go_on)?;
    builder.position_at_end(pause);
    let pointer = types.pointer(ir::Space::Generic);
    let place = field(&types, builder, context, offset_of!(HostContext, pause))?;
    let callee = builder.build_load(pointer, place, "pause")?.into_pointer_value();
    let int = types.context.i32_type();
    let waits = int.const_int(u64::from(waits), false);
    let ty = types.context.void_type().fn_type(&[pointer.into(), int.into()], false);
    builder.build_indirect_call(ty, callee, &[context.into(), waits.into()], "")?;
    builder.build_unconditional_branch(go_on)?;
    builder.position_at_end(go_on);
    Ok(())
}
