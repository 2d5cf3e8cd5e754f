//! Polls for cancellation: threads test whether their launch continues, and return from the kernel if it does not.
//!
//! A poll loads the flag of the launch's watch (see `weft_artifact`) and branches on it.
//! [`Polling`](crate::backend::host::plan::Polling) decides where polls are necessary. A function that finds the launch
//! cancelled returns at once. Its caller polls after the call, and returns, too: a cancelled launch remains cancelled.
//! It does not use what the call returned.

use std::mem::offset_of;

use inkwell::{
    IntPredicate,
    basic_block::BasicBlock,
    module::Linkage,
    types::BasicTypeEnum,
    values::{BasicValue, BasicValueEnum, FunctionValue, IntValue},
};

use weft_artifact::{HostConfig, HostWatch};

use crate::{
    backend::{
        host::emit::{
            state::HostHooks,
            watch::{Watch, pointer_at},
        },
        llvm::{FunctionEmitter, ModuleContext, Result, internal},
    },
    ir::Space,
};

/// The name of the function that calls the watch.
const STOPS: &str = "weft.stops";

impl<'ctx> HostHooks<'_, 'ctx> {
    /// Polls the flag, and leaves the function if the launch is cancelled.
    pub(crate) fn look_up(&self, emitter: &FunctionEmitter<'_, 'ctx>) -> Result<()> {
        let Some(Watch { config, flag }) = self.watch.get() else { return internal("a function without its watch") };
        let (cx, builder) = (emitter.cx, &emitter.builder);
        let int = cx.types.context.i32_type();
        let value = builder.build_load(int, flag, "flag")?;
        if let Some(load) = value.as_instruction_value() {
            // Another OS thread writes the flag.
            load.set_volatile(true).or_else(|error| internal(format!("LLVM takes no volatile: {error}")))?;
        }
        let raised = builder.build_int_compare(IntPredicate::NE, value.into_int_value(), int.const_zero(), "")?;
        let (ask, go_on) = (emitter.block("ask"), emitter.block("go_on"));
        builder.build_conditional_branch(raised, ask, go_on)?;
        builder.position_at_end(ask);
        let call = builder.build_call(asking_function(cx)?, &[config.into()], "stops")?;
        let Some(BasicValueEnum::IntValue(stops)) = call.try_as_basic_value().basic() else {
            return internal("no answer whether to stop");
        };
        builder.build_conditional_branch(stops, self.way_out(emitter)?, go_on)?;
        builder.position_at_end(go_on);
        Ok(())
    }

    /// The block that leaves the function. The returned value, if there is one, is zero.
    pub(crate) fn way_out(&self, emitter: &FunctionEmitter<'_, 'ctx>) -> Result<BasicBlock<'ctx>> {
        if let Some(block) = self.stop_to.get() {
            return Ok(block);
        }
        let block = emitter.block("stopped");
        self.stop_to.set(Some(block));
        let builder = emitter.cx.types.context.create_builder();
        builder.position_at_end(block);
        match emitter.value.get_type().get_return_type() {
            None => builder.build_return(None)?,
            Some(BasicTypeEnum::IntType(ty)) => builder.build_return(Some(&ty.const_zero()))?,
            Some(BasicTypeEnum::FloatType(ty)) => builder.build_return(Some(&ty.const_zero()))?,
            Some(BasicTypeEnum::PointerType(ty)) => builder.build_return(Some(&ty.const_zero()))?,
            Some(BasicTypeEnum::StructType(ty)) => builder.build_return(Some(&ty.const_zero()))?,
            Some(
                other @ (BasicTypeEnum::ArrayType(_)
                | BasicTypeEnum::VectorType(_)
                | BasicTypeEnum::ScalableVectorType(_)),
            ) => return internal(format!("a function that returns {other}")),
        };
        Ok(block)
    }
}

/// The function that calls the watch's `look`: `i1(config)`. It is rarely called. It may run a signal handler, which
/// may launch a kernel that writes to the memory of this one.
fn asking_function<'ctx>(cx: &ModuleContext<'_, 'ctx>) -> Result<FunctionValue<'ctx>> {
    if let Some(known) = cx.module.get_function(STOPS) {
        return Ok(known);
    }
    let (types, context) = (cx.types, cx.types.context);
    let (pointer, int) = (types.pointer(Space::Generic), context.i32_type());
    let ty = context.bool_type().fn_type(&[pointer.into()], false);
    let value = cx.module.add_function(STOPS, ty, Some(Linkage::Internal));
    for name in ["nounwind", "noinline", "cold"] {
        cx.attribute(value, name);
    }
    let builder = context.create_builder();
    builder.position_at_end(context.append_basic_block(value, "entry"));
    let Some(BasicValueEnum::PointerValue(config)) = value.get_nth_param(0) else {
        return internal("a function without its parameter");
    };
    let watch = pointer_at(&types, &builder, config, offset_of!(HostConfig, watch))?;
    let callee = pointer_at(&types, &builder, watch, offset_of!(HostWatch, look))?;
    let call = builder.build_indirect_call(int.fn_type(&[pointer.into()], false), callee, &[watch.into()], "")?;
    let Some(BasicValueEnum::IntValue(answer)) = call.try_as_basic_value().basic() else {
        return internal("a call without a value");
    };
    let stops: IntValue<'ctx> = builder.build_int_compare(IntPredicate::NE, answer, int.const_zero(), "")?;
    builder.build_return(Some(&stops))?;
    Ok(value)
}
