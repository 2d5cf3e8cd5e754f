//! Asynchronous copies and their barriers on the CPU: calls of the runtime, which completes a copy where a thread waits
//! for it.

use std::mem::offset_of;

use inkwell::{
    IntPredicate,
    values::{BasicValue, BasicValueEnum},
};
use weft_artifact::{AsyncCopyRecord, HostContext};

use crate::{
    backend::{
        host::emit::position::{Frame, known_offset},
        llvm::{FunctionEmitter, OperandValue, Result, internal},
    },
    ir::{AsyncCopy, Space},
};

/// Calls the context's `copy`. Returns the operation's results.
pub(crate) fn emit<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    frame: &Frame<'ctx>,
    (copy, site): (AsyncCopy, u64),
    operands: &[OperandValue<'ctx>],
) -> Result<Vec<BasicValueEnum<'ctx>>> {
    let (types, builder) = (emitter.cx.types, &emitter.builder);
    let (pointer, long) = (types.pointer(Space::Generic), types.context.i64_type());
    let number = |number: u64| BasicValueEnum::from(long.const_int(number, false));
    let several = |multicast: bool| if multicast { AsyncCopyRecord::MULTICAST } else { 0 };
    let (what, count) = match copy {
        AsyncCopy::Element { bytes } => (AsyncCopyRecord::ELEMENT, bytes.into()),
        AsyncCopy::Commit => (AsyncCopyRecord::COMMIT, 0),
        AsyncCopy::Wait { pending, read: false } => (AsyncCopyRecord::WAIT, pending.into()),
        AsyncCopy::Wait { pending, read: true } => (AsyncCopyRecord::WAIT_READ, pending.into()),
        AsyncCopy::BarrierInit { barriers } => (AsyncCopyRecord::BARRIER_INIT, barriers),
        AsyncCopy::BarrierArrive { .. } => (AsyncCopyRecord::BARRIER_ARRIVE, 0),
        AsyncCopy::BarrierExpect { .. } => (AsyncCopyRecord::BARRIER_EXPECT, 0),
        AsyncCopy::BarrierWait => (AsyncCopyRecord::BARRIER_WAIT, 0),
        AsyncCopy::Bulk { multicast } => (AsyncCopyRecord::BULK + several(multicast), 1),
        AsyncCopy::Box { dims, multicast } => (AsyncCopyRecord::BOX + several(multicast), dims.into()),
        AsyncCopy::BulkStore => (AsyncCopyRecord::BULK_STORE, 0),
        AsyncCopy::BoxStore { dims } => (AsyncCopyRecord::BOX_STORE, dims.into()),
        // The runtime reads the map where it copies.
        AsyncCopy::BoxMap => return Ok(Vec::new()),
    };
    let mut words = vec![number(what), number(count.into())];
    for value in frame.thread.into_iter().chain(frame.block) {
        words.push(builder.build_int_z_extend(value, long, "")?.into());
    }
    words.push(number(site));
    for operand in operands {
        let place = match operand.value {
            BasicValueEnum::PointerValue(place) => place,
            // Indices may be negative.
            BasicValueEnum::IntValue(value) if matches!(copy, AsyncCopy::Box { .. } | AsyncCopy::BoxStore { .. }) => {
                words.push(builder.build_int_s_extend(value, long, "")?.into());
                continue;
            }
            BasicValueEnum::IntValue(value) => {
                words.push(builder.build_int_z_extend(value, long, "")?.into());
                continue;
            }
            BasicValueEnum::ArrayValue(_)
            | BasicValueEnum::FloatValue(_)
            | BasicValueEnum::StructValue(_)
            | BasicValueEnum::VectorValue(_)
            | BasicValueEnum::ScalableVectorValue(_) => return internal("a copy of other operands"),
        };
        if let AsyncCopy::Element { bytes } = copy {
            // An invalid address faults here, at the line of the copy.
            let bytes = types.context.i8_type().array_type(bytes.into());
            let read = builder.build_load(bytes, place, "")?;
            let set = read.as_instruction_value().map_or(Ok(()), |read| read.set_volatile(true));
            set.or_else(|error| internal(format!("no volatile load: {error}")))?;
        }
        words.push(place.into());
    }
    if words.len() > AsyncCopyRecord::LEN {
        return internal("a copy of other operands");
    }
    words.resize(AsyncCopyRecord::LEN, number(0));
    let words = emitter.words(&words)?;
    let place = known_offset(emitter, frame.context, offset_of!(HostContext, copy) as u64)?;
    let callee = builder.build_load(pointer, place, "copy")?.into_pointer_value();
    let ty = types.context.i32_type().fn_type(&[pointer.into(), pointer.into()], false);
    let call = builder.build_indirect_call(ty, callee, &[frame.context.into(), words.into()], "")?;
    let Some(BasicValueEnum::IntValue(done)) = call.try_as_basic_value().basic() else {
        return internal("a copy without a result");
    };
    let zero = types.context.i32_type().const_zero();
    let done = builder.build_int_compare(IntPredicate::NE, done, zero, "")?;
    Ok(vec![done.into(); copy.results()])
}
