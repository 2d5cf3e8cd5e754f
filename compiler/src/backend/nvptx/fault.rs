//! Faults on a GPU.
//!
//! A module has two variables in device memory: `weft$fault_claim`, which the first thread with a fault acquires by a
//! compare-and-swap, and `weft$fault_page`, in which the host stores the address of a record in host memory. The thread
//! that has acquired the claim writes the record. The kernel marks the record as complete after the outermost call that
//! the fault propagates through. Hence faults add no cost to a launch, and the host can test for a fault without
//! calling the driver.

use inkwell::{
    AddressSpace, AtomicOrdering, IntPredicate,
    module::Linkage,
    values::{BasicValueEnum, FunctionValue, GlobalValue, IntValue, PointerValue},
};
use weft_artifact::FaultRecord;

use super::{SPACES, atomics};
use crate::{
    backend::llvm::{FunctionEmitter, Hooks, ModuleContext, Result, internal},
    ir::{CallSiteId, FaultId, FunctionKind, Scope, SpecialRegister},
};

/// The claim's symbol, and that of the record's address. The runtime knows them, too.
const CLAIM: &str = "weft$fault_claim";
const PAGE: &str = "weft$fault_page";
/// The function that reports a fault.
const REPORT: &str = "weft$report";

/// The status that a function returns: the thread has ended, and, in addition, its fault is the reported one.
const ENDED: u64 = 1;
const REPORTED: u64 = 2;

/// Declares the variables of a module that reports faults, even if they are unused, because the host searches for them.
pub(super) fn declare(cx: &ModuleContext<'_, '_>) {
    word(cx, CLAIM, 4);
    word(cx, PAGE, 8);
}

/// Reports a fault, if it is the first; returns the function's status.
pub(super) fn raise<'ctx>(
    hooks: &dyn Hooks<'ctx>,
    emitter: &FunctionEmitter<'_, 'ctx>,
    fault: FaultId,
    values: &[BasicValueEnum<'ctx>],
) -> Result<BasicValueEnum<'ctx>> {
    let context = emitter.cx.types.context;
    let &[index, extent] = values else { return internal("a fault without its values") };
    let report = match emitter.cx.module.get_function(REPORT) {
        Some(known) => known,
        None => report(hooks, emitter)?,
    };
    let number = context.i64_type().const_int(fault.index() as u64, false);
    let alone = emitter.cx.ir.faults.get(fault).is_some_and(|fault| fault.alone);
    let whole = alone || emitter.function.kind == FunctionKind::Kernel;
    let whole = context.bool_type().const_int(u64::from(whole), false);
    emitter.call(report, &[number.into(), index, extent, whole.into()])
}

/// The module's function that reports a fault. It takes the fault's number, an index, an extent, and whether the record
/// is complete. It is not inlined and cold: a checked kernel has many calls of it, which are hardly ever executed.
fn report<'ctx>(hooks: &dyn Hooks<'ctx>, user: &FunctionEmitter<'_, 'ctx>) -> Result<FunctionValue<'ctx>> {
    let cx = user.cx;
    let context = cx.types.context;
    let (int, long, bit) = (context.i32_type(), context.i64_type(), context.bool_type());
    let ty = int.fn_type(&[long.into(), long.into(), long.into(), bit.into()], false);
    let function = cx.module.add_function(REPORT, ty, Some(Linkage::Internal));
    for attribute in ["noinline", "cold", "nounwind"] {
        cx.attribute(function, attribute);
    }
    let emitter = &FunctionEmitter::new(cx, user.function, function, hooks);
    let params: Vec<_> = function.get_param_iter().map(BasicValueEnum::into_int_value).collect();
    let &[number, index, extent, whole] = params.as_slice() else { return internal("a function without parameters") };
    let builder = &emitter.builder;
    let claim = word(cx, CLAIM, 4);
    let taken = builder.build_cmpxchg(
        claim.as_pointer_value(),
        int.const_zero(),
        int.const_int(1, false),
        AtomicOrdering::Monotonic,
        AtomicOrdering::Monotonic,
    )?;
    let first = builder.build_extract_value(taken, 1, "first")?.into_int_value();
    let [report, end, other, done] = ["report", "end", "other", "done"].map(|name| emitter.block(name));
    builder.build_conditional_branch(first, report, other)?;
    builder.position_at_end(other);
    builder.build_return(Some(&int.const_int(ENDED, false)))?;
    builder.position_at_end(report);
    let record = record(emitter)?;
    store(emitter, record, FaultRecord::FAULT, number)?;
    for axis in 0..3_u8 {
        for (first, register) in [
            (FaultRecord::THREAD, SpecialRegister::ThreadIdx(axis)),
            (FaultRecord::BLOCK, SpecialRegister::BlockIdx(axis)),
        ] {
            let value = hooks.special(emitter, register)?;
            let value = builder.build_int_z_extend(value, long, "")?;
            store(emitter, record, first + usize::from(axis), value)?;
        }
    }
    store(emitter, record, FaultRecord::INDEX, index)?;
    store(emitter, record, FaultRecord::EXTENT, extent)?;
    store(emitter, record, FaultRecord::N_CALLS, long.const_zero())?;
    builder.build_conditional_branch(whole, done, end)?;
    builder.position_at_end(done);
    finish(emitter, record)?;
    builder.build_unconditional_branch(end)?;
    builder.position_at_end(end);
    builder.build_return(Some(&int.const_int(REPORTED, false)))?;
    Ok(function)
}

/// Adds to the record a call that the fault propagates through, if it is the reported fault.
pub(super) fn call<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    place: CallSiteId,
    values: &[BasicValueEnum<'ctx>],
) -> Result<()> {
    let context = emitter.cx.types.context;
    let (int, long) = (context.i32_type(), context.i64_type());
    let &[BasicValueEnum::IntValue(code)] = values else { return internal("a call without its end") };
    let builder = &emitter.builder;
    let mine = builder.build_int_compare(IntPredicate::EQ, code, int.const_int(REPORTED, false), "")?;
    let [add, room, whole, after] = ["add_call", "add_place", "add_end", "called"].map(|name| emitter.block(name));
    builder.build_conditional_branch(mine, add, after)?;
    builder.position_at_end(add);
    let record = record(emitter)?;
    let at = field(emitter, record, long.const_int(FaultRecord::N_CALLS as u64, false))?;
    let count = builder.build_load(long, at, "calls")?.into_int_value();
    let most = long.const_int(FaultRecord::MOST_CALLS as u64, false);
    let fits = builder.build_int_compare(IntPredicate::ULT, count, most, "")?;
    builder.build_conditional_branch(fits, room, whole)?;
    builder.position_at_end(room);
    let first = long.const_int(FaultRecord::CALLS as u64, false);
    let place = long.const_int(place.index() as u64, false);
    builder.build_store(field(emitter, record, builder.build_int_add(first, count, "")?)?, place)?;
    builder.build_unconditional_branch(whole)?;
    builder.position_at_end(whole);
    builder.build_store(at, builder.build_int_add(count, long.const_int(1, false), "")?)?;
    if emitter.function.kind == FunctionKind::Kernel {
        finish(emitter, record)?;
    }
    builder.build_unconditional_branch(after)?;
    builder.position_at_end(after);
    Ok(())
}

/// Marks the record as complete.
fn finish<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>, record: PointerValue<'ctx>) -> Result<()> {
    atomics::membar(emitter, Scope::System)?;
    store(emitter, record, FaultRecord::DONE, emitter.cx.types.context.i64_type().const_int(1, false))
}

/// The address of the record.
fn record<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>) -> Result<PointerValue<'ctx>> {
    let context = emitter.cx.types.context;
    let page = word(emitter.cx, PAGE, 8);
    let address = emitter.builder.build_load(context.i64_type(), page.as_pointer_value(), "page")?.into_int_value();
    Ok(emitter.builder.build_int_to_ptr(address, context.ptr_type(AddressSpace::from(SPACES.global)), "")?)
}

/// A variable of the module in device memory, which the host writes.
fn word<'ctx>(cx: &ModuleContext<'_, 'ctx>, name: &str, bytes: u32) -> GlobalValue<'ctx> {
    let module = cx.module;
    module.get_global(name).unwrap_or_else(|| {
        let context = cx.types.context;
        let ty = if bytes == 8 { context.i64_type() } else { context.i32_type() };
        let global = module.add_global(ty, Some(AddressSpace::from(SPACES.global)), name);
        global.set_initializer(&ty.const_zero());
        global.set_linkage(Linkage::External);
        global.set_externally_initialized(true);
        global.set_alignment(bytes);
        global
    })
}

#[expect(unsafe_code, reason = "inkwell's getelementptr is unsafe")]
fn field<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    record: PointerValue<'ctx>,
    at: IntValue<'ctx>,
) -> Result<PointerValue<'ctx>> {
    // SAFETY: one index on an integer type is a valid getelementptr; the index is within the record.
    Ok(unsafe { emitter.builder.build_in_bounds_gep(at.get_type(), record, &[at], "")? })
}

fn store<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    record: PointerValue<'ctx>,
    at: usize,
    value: IntValue<'ctx>,
) -> Result<()> {
    let at = emitter.cx.types.context.i64_type().const_int(at as u64, false);
    let stored = emitter.builder.build_store(field(emitter, record, at)?, value)?;
    stored.set_volatile(true).or_else(|error| internal(format!("a store that is not volatile: {error}")))
}
