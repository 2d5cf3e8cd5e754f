//! Asynchronous copies on the CPU: calls of the runtime, which completes a copy where the thread waits for it.

use std::mem::offset_of;

use inkwell::values::{BasicValue, BasicValueEnum};
use weft_artifact::{AsyncCopyRecord, HostContext};

use crate::{
    backend::{
        host::emit::position::{Frame, known_offset},
        llvm::{FunctionEmitter, OperandValue, Result, internal},
    },
    ir::{AsyncCopy, Space},
};

/// Calls the context's `copy`.
pub(crate) fn emit<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    frame: &Frame<'ctx>,
    (copy, site): (AsyncCopy, u32),
    operands: &[OperandValue<'ctx>],
) -> Result<()> {
    let (types, builder) = (emitter.cx.types, &emitter.builder);
    let (pointer, long) = (types.pointer(Space::Generic), types.context.i64_type());
    let number = |number: u64| BasicValueEnum::from(long.const_int(number, false));
    let (what, count) = match copy {
        AsyncCopy::Element { bytes } => (AsyncCopyRecord::ELEMENT, bytes),
        AsyncCopy::Commit => (AsyncCopyRecord::COMMIT, 0),
        AsyncCopy::Wait { pending } => (AsyncCopyRecord::WAIT, pending),
    };
    let mut words = vec![number(what), number(count.into())];
    for value in frame.thread.into_iter().chain(frame.block) {
        words.push(builder.build_int_z_extend(value, long, "")?.into());
    }
    match (copy, operands) {
        (AsyncCopy::Element { bytes }, [to, from]) => {
            for operand in [to, from] {
                let BasicValueEnum::PointerValue(place) = operand.value else {
                    return internal("a copy without its two pointers");
                };
                // An invalid address faults here, at the line of the copy.
                let bytes = types.context.i8_type().array_type(bytes.into());
                let read = builder.build_load(bytes, place, "")?;
                let set = read.as_instruction_value().map_or(Ok(()), |read| read.set_volatile(true));
                set.or_else(|error| internal(format!("no volatile load: {error}")))?;
                words.push(place.into());
            }
        }
        (AsyncCopy::Commit | AsyncCopy::Wait { .. }, []) => words.extend([number(0), number(0)]),
        (AsyncCopy::Element { .. } | AsyncCopy::Commit | AsyncCopy::Wait { .. }, _) => {
            return internal("a copy of other operands");
        }
    }
    words.push(number(site.into()));
    let words = emitter.words(&words)?;
    let place = known_offset(emitter, frame.context, offset_of!(HostContext, copy) as u64)?;
    let callee = builder.build_load(pointer, place, "copy")?.into_pointer_value();
    let ty = types.context.void_type().fn_type(&[pointer.into(), pointer.into()], false);
    builder.build_indirect_call(ty, callee, &[frame.context.into(), words.into()], "")?;
    Ok(())
}
